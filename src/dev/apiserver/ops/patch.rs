//! PATCH.

use http::StatusCode;
use serde_json::Value;

use super::update::over;
use super::write::{Tracking, store_new, writer};
use super::{Outcome, decode};
use crate::dev::apiserver::managed;
use crate::dev::apiserver::object::{Key, meta, meta_mut, meta_str};
use crate::dev::apiserver::patch::{self, Form};
use crate::dev::apiserver::request::{Call, Sub};
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::Status;

/// Patches an object; by server-side apply, makes it where it is not there.
///
/// A resourceVersion or uid that the patch sets is a precondition.
pub(super) fn patch(state: &mut State, call: &Call) -> Result<Outcome, Status> {
    if call.name.is_none() {
        return Err(Status::method_not_allowed());
    }
    let form = patch::form(&call.content_type, &call.resource)?;
    let change = match form {
        Form::Apply => decode::json(call, &call.resource.schema)?,
        _ => serde_json::from_slice(&call.body)
            .map_err(|e| Status::bad_request(format!("error decoding patch: json parse error: {e}")))?,
    };
    let key = Key::new(call.ns(), call.named());
    let old = state.get(&call.resource, &key);
    if form == Form::Apply {
        return apply(state, call, old.as_ref(), change);
    }
    let old = old.ok_or_else(|| Status::not_found(&call.resource, call.named()))?;
    let new = patch::patched(form, &call.resource, &call.resource.show(old.value()), &change)?;
    let new = decode::object(state, call, new)?;
    over(state, call, &old, new, Tracking::Here)
}

fn apply(
    state: &mut State,
    call: &Call,
    old: Option<&std::sync::Arc<crate::dev::apiserver::object::Object>>,
    config: Value,
) -> Result<Outcome, Status> {
    if call.query.field_manager.is_none() {
        return Err(Status::bad_request(
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ));
    }
    if meta(&config).get("managedFields").is_some_and(|m| !m.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    // Judged as an object of its own first: types and unknown fields, but no defaults, which nobody applied.
    let mut config = decode::applied(state, call, config)?;
    let name = meta_str(&config, "name").to_owned();
    if name != call.named() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.named()
        )));
    }
    if call.resource.namespaced {
        meta_mut(&mut config).insert("namespace".into(), call.ns().into());
    }
    let (version, time) = (call.resource.api_version(), state.timestamp());
    let writer = writer(call, &version, &time);
    let live = old.map(|o| call.resource.show(o.value()));
    let new = managed::apply(live.as_ref(), &config, &call.resource, &writer, call.query.force)?;
    let new = decode::object(state, call, new)?;
    match old {
        Some(old) => over(state, call, old, new, Tracking::Done),
        None if call.sub == Some(Sub::Status) => Err(Status::not_found(&call.resource, call.named())),
        None => {
            if !meta_str(&new, "uid").is_empty() {
                let why = "uid mismatch: the provided object specified uid, and no existing object was found";
                return Err(Status::conflict(&call.resource, call.named(), why));
            }
            store_new(state, call, new, StatusCode::CREATED, Tracking::Done)
        }
    }
}
