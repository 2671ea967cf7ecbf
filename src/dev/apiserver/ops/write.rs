//! What all writes share: reading a body, filling in metadata, judging the result, storing it.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::Outcome;
use crate::dev::apiserver::kinds::Resource;
use crate::dev::apiserver::object::{
    Key, Object, has_finalizers, is_terminating, meta, meta_mut, meta_str, object_mut,
};
use crate::dev::apiserver::request::{Call, Sub};
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::{FieldError, Status};
use crate::dev::apiserver::validation;

/// Reads the object in a body.
pub(super) fn body(call: &Call) -> Result<Value, Status> {
    let value: Value = serde_json::from_slice(&call.body).map_err(|e| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {e}",
            call.resource.kind
        ))
    })?;
    typed(call, value)
}

/// Checks that an object is of the kind that the path names, and says so in it.
pub(super) fn typed(call: &Call, mut value: Value) -> Result<Value, Status> {
    let (kind, version) = (&call.resource.kind, call.resource.api_version());
    if !value.is_object() {
        return Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: json: cannot unmarshal {} into Go value of type \
             {kind}",
            call.resource.version,
            go_type(&value)
        )));
    }
    let given = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (given_kind, given_version) = (given("kind"), given("apiVersion"));
    if !given_version.is_empty() && given_version != version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({version})"
        )));
    }
    if !given_kind.is_empty() && given_kind != *kind {
        return Err(Status::bad_request(format!(
            "{given_kind} in version {:?} cannot be handled as a {kind}: no kind {given_kind:?} is registered for \
             this resource",
            call.resource.version
        )));
    }
    let map = object_mut(&mut value);
    map.insert("kind".into(), kind.clone().into());
    map.insert("apiVersion".into(), version.into());
    if !map.get("metadata").is_some_and(Value::is_object) {
        map.insert("metadata".into(), Value::Object(serde_json::Map::new()));
    }
    Ok(value)
}

/// A value's type, as Go's JSON errors name it.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Settles the namespace: the path's, which the body may repeat.
pub(super) fn place(call: &Call, object: &mut Value) -> Result<(), Status> {
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
pub(super) fn judged(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&resource.group, &resource.kind, name, errors)) }
}

/// Makes a new object of what a client sent. The metadata that is the server's own is the server's.
pub(super) fn store_new(state: &mut State, call: &Call, mut new: Value, code: StatusCode) -> Result<Outcome, Status> {
    let resource = &call.resource;
    place(call, &mut new)?;
    admit_into_namespace(state, call, &new)?;
    let stamp = state.timestamp();
    let uid = state.new_uid();
    let generate = meta_str(&new, "generateName").to_owned();
    let m = meta_mut(&mut new);
    for key in
        ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        m.remove(key);
    }
    m.insert("uid".into(), uid.into());
    m.insert("creationTimestamp".into(), stamp.into());
    m.remove("generation");
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
    tidy(&mut new);
    let name = meta_str(&new, "name").to_owned();
    let mut errors = validation::meta::validate(resource, &new);
    errors.extend((resource.rules.validate)(&new, None));
    judged(resource, &name, &errors)?;
    let key = Key::new(call.ns(), &name);
    if let Some(there) = state.get(resource, &key) {
        let status = Status::already_exists(resource, &name);
        return Err(if is_terminating(there.value()) {
            Status::new(status.code(), "AlreadyExists", format!("object is being deleted: {}", status.message()))
        } else {
            status
        });
    }
    if call.query.dry_run {
        return Ok(Outcome::Value(code, new));
    }
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

/// Puts a new version of an object in place of `old`, which is the newest.
pub(super) fn store_over(state: &mut State, call: &Call, old: &Arc<Object>, mut new: Value) -> Result<Outcome, Status> {
    let resource = &call.resource;
    place(call, &mut new)?;
    if call.sub == Some(Sub::Status) {
        new = with_status_of(old.value(), &mut new);
    } else if resource.status {
        // The status is not this path's to change.
        match old.value().get("status") {
            Some(status) => object_mut(&mut new).insert("status".into(), status.clone()),
            None => object_mut(&mut new).remove("status"),
        };
    }
    let m = meta_mut(&mut new);
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if m.get(key).is_none_or(|v| v.is_null() || v.as_str() == Some("")) {
            match meta(old.value()).get(key) {
                Some(value) => m.insert(key.into(), value.clone()),
                None => m.remove(key),
            };
        }
    }
    m.remove("selfLink");
    match meta(old.value()).get("generation") {
        Some(generation) => m.insert("generation".into(), generation.clone()),
        None => m.remove("generation"),
    };
    // Written anew when stored; until then it must not count as a change.
    m.insert("resourceVersion".into(), old.revision().to_string().into());
    tidy(&mut new);
    if resource.rules.generation && changed_beyond_meta(resource, old.value(), &new) {
        let before = meta(old.value()).get("generation").and_then(Value::as_i64).unwrap_or(0);
        meta_mut(&mut new).insert("generation".into(), (before + 1).into());
    }
    let mut errors = validation::meta::validate(resource, &new);
    errors.extend(validation::meta::validate_update(&new, old.value()));
    errors.extend((resource.rules.validate)(&new, Some(old.value())));
    judged(resource, old.name(), &errors)?;
    if call.query.dry_run {
        return Ok(Outcome::Value(StatusCode::OK, new));
    }
    if new == *old.value() {
        // Nothing changes: nothing is written, and the resourceVersion stays.
        return Ok(Outcome::Object(StatusCode::OK, old.clone()));
    }
    if is_terminating(old.value()) && !has_finalizers(&new) {
        // The last finalizer has gone: so does the object. The answer is what was sent.
        state.remove(call, resource, old.key());
        return Ok(Outcome::Value(StatusCode::OK, new));
    }
    Ok(Outcome::Object(StatusCode::OK, state.put(call, resource, old.key().clone(), new)))
}

/// The old object with the new one's status: what a write to the status path may change.
fn with_status_of(old: &Value, new: &mut Value) -> Value {
    let mut out = old.clone();
    for key in ["uid", "resourceVersion"] {
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
    let differ = |a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>| {
        a.iter().any(|(k, v)| !skip(k) && b.get(k) != Some(v))
    };
    differ(old, new) || differ(new, old)
}

/// Drops what Go's `omitempty` would not write, in metadata: null, empty maps, lists and strings.
fn tidy(object: &mut Value) {
    meta_mut(object).retain(|_, v| match v {
        Value::Null => false,
        Value::Object(m) => !m.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::String(s) => !s.is_empty(),
        _ => true,
    });
}
