//! PUT, and the preconditions that it shares with patches.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::write::{Tracking, store_new, store_over};
use super::{Outcome, decode};
use crate::dev::apiserver::object::{Key, Object, meta_str};
use crate::dev::apiserver::request::query::version;
use crate::dev::apiserver::request::{Call, Sub};
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::{FieldError, Status};

/// Puts a whole object in place.
///
/// The uid in the body is a precondition, also against an object that is gone: then 409. Without one, a PUT of a kind
/// that allows it (Leases among them) makes the object anew: 201, whatever resourceVersion it carries.
pub(super) fn put(state: &mut State, call: &Call) -> Result<Outcome, Status> {
    if call.name.is_none() {
        return Err(Status::method_not_allowed());
    }
    let new = decode::body(state, call)?;
    named_as_in_path(call, &new)?;
    let key = Key::new(call.ns(), call.named());
    match state.get(&call.resource, &key) {
        Some(old) => over(state, call, &old, new, Tracking::Here),
        None if !call.resource.rules.create_on_update || call.sub == Some(Sub::Status) => {
            Err(Status::not_found(&call.resource, call.named()))
        }
        None => {
            same_uid(call, &new, "")?;
            store_new(state, call, new, StatusCode::CREATED, Tracking::Here)
        }
    }
}

/// Puts `new` in place of `old`, if its uid and resourceVersion are those of `old`.
pub(super) fn over(
    state: &mut State,
    call: &Call,
    old: &Arc<Object>,
    new: Value,
    tracking: Tracking,
) -> Result<Outcome, Status> {
    same_uid(call, &new, old.uid())?;
    let resource = &call.resource;
    match version(meta_str(&new, "resourceVersion"))?.filter(|v| *v != 0) {
        None if !resource.rules.unconditional_update => {
            // Upstream names the resource here where it names the kind elsewhere, and prints the zero in hexadecimal.
            let error = FieldError::invalid_raw("metadata.resourceVersion", "0x0", "must be specified for an update");
            return Err(Status::invalid(&resource.group, &resource.plural, call.named(), &[error]));
        }
        Some(v) if v != old.revision() => return Err(Status::stale_write(resource, call.named())),
        _ => {}
    }
    store_over(state, call, old, new, tracking)
}

fn same_uid(call: &Call, new: &Value, found: &str) -> Result<(), Status> {
    let wanted = meta_str(new, "uid");
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let key = format!("/registry/{}/{}/{}", call.resource.plural, call.ns(), call.named());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    Err(Status::conflict(&call.resource, call.named(), &why))
}

fn named_as_in_path(call: &Call, new: &Value) -> Result<(), Status> {
    let name = meta_str(new, "name");
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.named()
        )));
    }
    if name != call.named() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.named()
        )));
    }
    let namespace = meta_str(new, "namespace");
    if call.resource.namespaced && !namespace.is_empty() && namespace != call.ns() {
        return Err(Status::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            call.ns()
        )));
    }
    Ok(())
}
