//! Removing objects that hold others: a namespace goes with its content, a CRD with its objects.
//!
//! On a cluster a controller does this. Here it is done at once, but for what has finalizers: then the holder stays,
//! terminating, until the last of its content has gone.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::dev::apiserver::kinds::{Resource, crd};
use crate::dev::apiserver::object::{
    Key, Object, child_mut, has_finalizers, is_terminating, meta_mut, meta_str, object_mut,
};
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::state::State;

/// Whether objects of this kind hold others.
fn holds(resource: &Resource) -> bool {
    is_namespace(resource) || resource.definition == crd::DEFINITION
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

/// Everything that an object holds, with the resource of each.
fn content(state: &State, resource: &Resource, holder: &Object) -> Vec<(Arc<Resource>, Arc<Object>)> {
    let mut out = Vec::new();
    let mut seen = Vec::new();
    let spec = |key: &str| holder.value().pointer(key).and_then(Value::as_str).unwrap_or_default();
    for inner in state.registry.all() {
        let (within, namespace) = if is_namespace(resource) {
            (inner.namespaced, Some(holder.name()))
        } else {
            (inner.group == spec("/spec/group") && inner.plural == spec("/spec/names/plural"), None)
        };
        // A kind in two versions is one table.
        if within && !seen.contains(&inner.table) {
            seen.push(inner.table);
            let objects = state.store.table(inner.table).range(namespace, None);
            out.extend(objects.map(|o| (inner.clone(), o.clone())));
        }
    }
    out
}

/// Whether an object may go: nothing that it holds is left.
pub(super) fn may_go(state: &State, call: &Call, object: &Object) -> bool {
    !holds(&call.resource) || content(state, &call.resource, object).is_empty()
}

/// Asks for an object to go. With finalizers, or with content that has some, it is marked and stays; the answer is
/// what is left of it then.
pub(super) fn delete(
    state: &mut State,
    call: &Call,
    resource: &Arc<Resource>,
    object: &Arc<Object>,
) -> Option<Arc<Object>> {
    if !has_finalizers(object.value()) && !holds(resource) {
        remove(state, call, resource, object.key());
        return None;
    }
    let marked = if is_terminating(object.value()) { object.clone() } else { mark(state, call, resource, object) };
    if holds(resource) {
        for (inner, held) in content(state, resource, &marked) {
            delete(state, call, &inner, &held);
        }
    }
    // What it held may have taken it along.
    let still = state.get(resource, marked.key())?;
    if !has_finalizers(still.value()) && content_is_gone(state, resource, &still) {
        remove(state, call, resource, still.key());
        return None;
    }
    Some(still)
}

fn content_is_gone(state: &State, resource: &Resource, object: &Object) -> bool {
    !holds(resource) || content(state, resource, object).is_empty()
}

fn mark(state: &mut State, call: &Call, resource: &Resource, object: &Arc<Object>) -> Arc<Object> {
    let stamp = state.timestamp();
    let mut marked = object.value().clone();
    let m = meta_mut(&mut marked);
    m.insert("deletionTimestamp".into(), stamp.into());
    if !holds(resource) {
        m.insert("deletionGracePeriodSeconds".into(), json!(0));
    }
    if let Some(generation) = m.get("generation").and_then(Value::as_i64) {
        m.insert("generation".into(), (generation + 1).into());
    }
    if is_namespace(resource) {
        child_mut(object_mut(&mut marked), "status").insert("phase".into(), "Terminating".into());
    }
    state.put(call, resource, object.key().clone(), marked)
}

/// Removes an object, and after it the holder that was only waiting for it.
pub(super) fn remove(state: &mut State, call: &Call, resource: &Resource, key: &Key) -> Option<Arc<Object>> {
    let gone = state.remove(call, resource, key)?;
    let namespaces = state.registry.find("", "v1", "namespaces").cloned();
    let crds = state.registry.any(crd::GROUP, crd::PLURAL).cloned();
    let of_kind = format!("{}.{}", resource.plural, resource.group);
    for (holders, name) in [(namespaces, gone.namespace()), (crds, of_kind.as_str())] {
        let Some(holders) = holders.filter(|_| !name.is_empty()) else { continue };
        let Some(holder) = state.get(&holders, &Key::new("", name)) else { continue };
        let waits = is_terminating(holder.value()) && !has_finalizers(holder.value());
        if waits && meta_str(holder.value(), "name") == name && content(state, &holders, &holder).is_empty() {
            remove(state, call, &holders, holder.key());
        }
    }
    Some(gone)
}
