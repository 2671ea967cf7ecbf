//! ObjectMeta: what every object's metadata must be like.

use serde_json::Value;

use super::names;
use crate::dev::apiserver::kinds::Resource;
use crate::dev::apiserver::object::{meta, meta_str};
use crate::dev::apiserver::status::FieldError;

/// The most bytes that keys and values of all annotations may have together.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Checks the metadata of an object.
pub(crate) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    let m = meta(object);
    let name = meta_str(object, "name");
    let generate = meta_str(object, "generateName");
    if !generate.is_empty() {
        for msg in resource.rules.name.check(generate, true) {
            out.push(FieldError::invalid("metadata.generateName", &generate.into(), &msg));
        }
    }
    if name.is_empty() {
        out.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        for msg in resource.rules.name.check(name, false) {
            out.push(FieldError::invalid("metadata.name", &name.into(), &msg));
        }
    }
    for key in ["labels", "annotations"] {
        let Some(map) = m.get(key).and_then(Value::as_object) else { continue };
        let field = format!("metadata.{key}");
        for (k, v) in map {
            // Annotation keys are judged in lower case, label keys as they stand.
            let judged = if key == "annotations" { k.to_lowercase() } else { k.clone() };
            for msg in names::qualified(&judged) {
                out.push(FieldError::invalid(&*field, &k.as_str().into(), &msg));
            }
            if key == "labels" {
                for msg in names::label_value(v.as_str().unwrap_or_default()) {
                    out.push(FieldError::invalid(&*field, v, &msg));
                }
            }
        }
        let size: usize = map.iter().map(|(k, v)| k.len() + v.as_str().unwrap_or_default().len()).sum();
        if key == "annotations" && size > ANNOTATIONS_MAX {
            out.push(FieldError::too_long(&*field, ANNOTATIONS_MAX));
        }
    }
    owners(m.get("ownerReferences"), &mut out);
    for f in m.get("finalizers").and_then(Value::as_array).into_iter().flatten() {
        let name = f.as_str().unwrap_or_default();
        for msg in names::qualified(name) {
            out.push(FieldError::invalid("metadata.finalizers", f, &msg));
        }
        if !name.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(&name) {
            let msg = "name is neither a standard finalizer name nor is it fully qualified";
            out.push(FieldError::invalid("metadata.finalizers", f, msg));
        }
    }
    out
}

fn owners(refs: Option<&Value>, out: &mut Vec<FieldError>) {
    let mut controllers = 0;
    for (i, owner) in refs.and_then(Value::as_array).into_iter().flatten().enumerate() {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
                let field = format!("metadata.ownerReferences[{i}].{key}");
                let what = if key == "apiVersion" { "version".to_owned() } else { key.to_owned() };
                out.push(FieldError::invalid(field, &"".into(), &format!("{what} must not be empty")));
            }
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            controllers += 1;
        }
    }
    if controllers > 1 {
        let msg = "Only one reference can have Controller set to true";
        out.push(FieldError::invalid_raw("metadata.ownerReferences", &controllers.to_string(), msg));
    }
}

/// Checks what may not change in an update.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    for key in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (n, o) = (meta(new).get(key), meta(old).get(key));
        if n != o {
            let shown = n.cloned().unwrap_or(Value::Null);
            out.push(FieldError::invalid(format!("metadata.{key}"), &shown, "field is immutable"));
        }
    }
    let finalizers = |v: &Value| -> Vec<String> {
        let all = meta(v).get("finalizers").and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if meta(old).get("deletionTimestamp").is_some() {
        let before = finalizers(old);
        let added: Vec<String> = finalizers(new).into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let msg = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
            );
            out.push(FieldError::forbidden("metadata.finalizers", &msg));
        }
    }
    out
}
