//! What all writes share: filling in metadata, judging the result, noting who wrote it, storing it.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value};

use super::{Outcome, decode, expire, reap};
use crate::dev::apiserver::kinds::Resource;
use crate::dev::apiserver::managed::{self, Writer};
use crate::dev::apiserver::object::{
    Key, Object, has_finalizers, is_terminating, meta, meta_mut, meta_str, object_mut,
};
use crate::dev::apiserver::request::{Call, Sub};
use crate::dev::apiserver::schema::Schema;
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::{FieldError, Status};
use crate::dev::apiserver::validation;

/// Who notes the managed fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracking {
    /// The write itself: what differs was set by its manager.
    Here,
    /// They stand in the object already: server-side apply has noted them.
    Done,
}

/// The largest object that etcd takes, in bytes.
const OBJECT_MAX: usize = 1536 * 1024;

fn too_large() -> Status {
    Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", "etcdserver: request is too large")
}

/// Settles the namespace: the path's, which the body may repeat.
fn place(call: &Call, object: &mut Value) -> Result<(), Status> {
    let given = meta_str(object, "namespace");
    if !call.resource.namespaced {
        if !given.is_empty() {
            meta_mut(object).remove("namespace");
        }
        return Ok(());
    }
    if !given.is_empty() && given != call.ns() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta_mut(object).insert("namespace".into(), call.ns().into());
    Ok(())
}

/// 422 with everything that was found, where anything was.
fn judged(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&resource.group, &resource.kind, name, errors)) }
}

/// Makes a new object of what a client sent. The metadata that is the server's own is the server's.
pub(super) fn store_new(
    state: &mut State,
    call: &Call,
    mut new: Value,
    code: StatusCode,
    tracking: Tracking,
) -> Result<Outcome, Status> {
    let resource = &call.resource;
    place(call, &mut new)?;
    admit_into_namespace(state, call, &new)?;
    let misfits = decode::misfits(call, &new);
    let mut new = resource.view.store(new);
    let stamp = state.timestamp();
    let uid = state.new_uid();
    let generate = meta_str(&new, "generateName").to_owned();
    let m = meta_mut(&mut new);
    for key in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        m.remove(key);
    }
    m.insert("uid".into(), uid.into());
    m.insert("creationTimestamp".into(), stamp.into());
    if resource.rules.generation {
        m.insert("generation".into(), 1.into());
    }
    if m.get("name").and_then(Value::as_str).is_none_or(str::is_empty) && !generate.is_empty() {
        // Room is left for the suffix, as upstream does.
        let base: String = generate.chars().take(58).collect();
        m.insert("name".into(), format!("{base}{}", state.new_suffix()).into());
    }
    if resource.status {
        object_mut(&mut new).remove("status");
    }
    (resource.rules.prepare)(&mut new, None);
    tidy(&mut new);
    let name = meta_str(&new, "name").to_owned();
    let mut errors = validation::meta::validate(resource, &new);
    errors.extend(misfits);
    errors.extend((resource.rules.validate)(&new, None));
    judged(resource, &name, &errors)?;
    let key = Key::new(call.ns(), &name);
    if let Some(there) = state.get(resource, &key) {
        let status = Status::already_exists(resource, &name);
        return Err(if is_terminating(there.value()) {
            let text = format!("object is being deleted: {}", status.message());
            status.with_message(text)
        } else {
            status
        });
    }
    if call.body.len() > OBJECT_MAX / 2 && new.to_string().len() > OBJECT_MAX {
        return Err(too_large());
    }
    track(state, call, &mut new, None, tracking);
    if call.query.dry_run {
        return Ok(Outcome::Draft(code, new));
    }
    expire::expire(state, call);
    Ok(Outcome::Object(code, state.put(call, resource, key, new)))
}

/// Refuses what would be made in a namespace that is not there, or is on its way out.
fn admit_into_namespace(state: &State, call: &Call, new: &Value) -> Result<(), Status> {
    if !call.resource.namespaced {
        return Ok(());
    }
    let Some(namespaces) = state.registry.find("", "v1", "namespaces") else { return Ok(()) };
    match state.get(namespaces, &Key::new("", call.ns())) {
        None => Err(Status::not_found(namespaces, call.ns())),
        Some(ns) if is_terminating(ns.value()) => {
            let why = format!("unable to create new content in namespace {} because it is being terminated", call.ns());
            Err(Status::forbidden_because(&call.resource, meta_str(new, "name"), &why))
        }
        Some(_) => Ok(()),
    }
}

/// Puts a new version of an object, as the resource shows it, in place of `old`, which is the newest.
pub(super) fn store_over(
    state: &mut State,
    call: &Call,
    old: &Arc<Object>,
    mut new: Value,
    tracking: Tracking,
) -> Result<Outcome, Status> {
    let resource = &call.resource;
    place(call, &mut new)?;
    let mut new = resource.view.store(new);
    if call.sub == Some(Sub::Status) {
        new = with_status_of(old.value(), &mut new);
    } else if resource.status {
        // The status is not this path's to change.
        match old.value().get("status") {
            Some(status) => object_mut(&mut new).insert("status".into(), status.clone()),
            None => object_mut(&mut new).remove("status"),
        };
    }
    keep_system_fields(old, &mut new);
    (resource.rules.prepare)(&mut new, Some(old.value()));
    tidy(&mut new);
    if resource.rules.generation && changed_beyond_meta(resource, old.value(), &new) {
        let before = meta(old.value()).get("generation").and_then(Value::as_i64).unwrap_or(0);
        meta_mut(&mut new).insert("generation".into(), (before + 1).into());
    }
    let mut errors = validation::meta::validate(resource, &new);
    errors.extend(validation::meta::validate_update(&new, old.value()));
    errors.extend(decode::misfits(call, &resource.view.show(&new)));
    errors.extend((resource.rules.validate)(&new, Some(old.value())));
    judged(resource, old.name(), &errors)?;
    track(state, call, &mut new, Some(old.value()), tracking);
    if call.query.dry_run {
        return Ok(Outcome::Draft(StatusCode::OK, new));
    }
    if call.body.len() > OBJECT_MAX / 2 && new.to_string().len() > OBJECT_MAX {
        return Err(too_large());
    }
    if new == *old.value() {
        // Nothing changes: nothing is written, and the resourceVersion stays.
        return Ok(Outcome::Object(StatusCode::OK, old.clone()));
    }
    if is_terminating(old.value()) && !has_finalizers(&new) && reap::may_go(state, call, old) {
        // The last finalizer has gone: so does the object. The answer is what was sent.
        reap::remove(state, call, resource, old.key());
        return Ok(Outcome::Draft(StatusCode::OK, new));
    }
    Ok(Outcome::Object(StatusCode::OK, state.put(call, resource, old.key().clone(), new)))
}

/// Keeps what is the server's own, where the client left it out; what it changed is judged later.
fn keep_system_fields(old: &Object, new: &mut Value) {
    let before = meta(old.value());
    let m = meta_mut(new);
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if m.get(key).is_none_or(|v| v.is_null() || v.as_str() == Some("")) {
            match before.get(key) {
                Some(value) => m.insert(key.into(), value.clone()),
                None => m.remove(key),
            };
        }
    }
    match before.get("generation") {
        Some(generation) => m.insert("generation".into(), generation.clone()),
        None => m.remove("generation"),
    };
    // Written anew when stored; until then it must not count as a change.
    m.insert("resourceVersion".into(), old.revision().to_string().into());
}

/// The old object with the new one's status: what a write to the status path may change.
fn with_status_of(old: &Value, new: &mut Value) -> Value {
    let mut out = old.clone();
    for key in ["uid", "managedFields"] {
        if let Some(v) = meta(new).get(key) {
            meta_mut(&mut out).insert(key.into(), v.clone());
        }
    }
    match object_mut(new).remove("status") {
        Some(status) => object_mut(&mut out).insert("status".into(), status),
        None => object_mut(&mut out).remove("status"),
    };
    out
}

/// Whether anything but metadata (and a status with a path of its own) differs.
fn changed_beyond_meta(resource: &Resource, old: &Value, new: &Value) -> bool {
    let skip = |key: &str| key == "metadata" || (resource.status && key == "status");
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return true };
    let differ =
        |a: &Map<String, Value>, b: &Map<String, Value>| a.iter().any(|(k, v)| !skip(k) && b.get(k) != Some(v));
    differ(old, new) || differ(new, old)
}

fn track(state: &State, call: &Call, new: &mut Value, old: Option<&Value>, tracking: Tracking) {
    if !state.managed_fields {
        meta_mut(new).remove("managedFields");
        return;
    }
    if tracking == Tracking::Done {
        return;
    }
    let schema = if call.resource.view.is_stored() { &call.resource.schema } else { Schema::any() };
    managed::update(new, old, schema, &writer(call, &call.resource.api_version(), &state.timestamp()));
}

/// Who writes, for managed fields.
pub(super) fn writer<'a>(call: &'a Call, api_version: &'a str, time: &'a str) -> Writer<'a> {
    Writer {
        manager: call.query.field_manager.as_deref().unwrap_or(&call.manager),
        api_version,
        subresource: call.sub.map_or("", Sub::as_str),
        time,
    }
}

/// Drops what Go's `omitempty` would not write, in metadata: null, empty maps, lists and strings.
fn tidy(object: &mut Value) {
    meta_mut(object).retain(|key, v| match v {
        Value::Null => false,
        Value::Object(m) => !m.is_empty(),
        // An empty list of managed fields is a wish; see `managed::update`.
        Value::Array(a) => !a.is_empty() || key == "managedFields",
        Value::String(s) => !s.is_empty(),
        _ => true,
    });
}
