//! The checks of kinds that need few.

use serde_json::Value;

use super::names;
use crate::dev::apiserver::object::meta_str;
use crate::dev::apiserver::status::FieldError;

/// The most bytes that a ConfigMap's or Secret's values may have together.
const DATA_MAX: usize = 1024 * 1024;

fn keys(object: &Value, field: &str, out: &mut Vec<FieldError>) -> usize {
    let mut size = 0;
    for (key, value) in object.get(field).and_then(Value::as_object).into_iter().flatten() {
        size += value.as_str().map_or(0, str::len);
        let path = format!("{field}[{key}]");
        if key.len() > 253 {
            out.push(FieldError::invalid(&*path, &key.as_str().into(), "must be no more than 253 bytes"));
        }
        let fits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if !fits || key == "." || key.starts_with("..") {
            let msg = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                       or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            out.push(FieldError::invalid(path, &key.as_str().into(), msg));
        }
    }
    size
}

fn immutable(new: &Value, old: Option<&Value>, fields: &[&str], out: &mut Vec<FieldError>) {
    let Some(old) = old.filter(|o| o.get("immutable") == Some(&Value::Bool(true))) else { return };
    let msg = "field is immutable when `immutable` is set";
    if new.get("immutable") != Some(&Value::Bool(true)) {
        out.push(FieldError::forbidden("immutable", msg));
    }
    for field in fields {
        if new.get(field) != old.get(field) {
            out.push(FieldError::forbidden(*field, msg));
        }
    }
}

/// ConfigMaps: keys, sizes, immutability.
pub(crate) fn config_map(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let size = keys(new, "data", &mut out) + keys(new, "binaryData", &mut out);
    for key in new.get("binaryData").and_then(Value::as_object).into_iter().flatten().map(|(k, _)| k) {
        if new.get("data").is_some_and(|d| d.get(key).is_some()) {
            let msg = "duplicate of key present in binaryData";
            out.push(FieldError::invalid(format!("data[{key}]"), &key.as_str().into(), msg));
        }
    }
    if size > DATA_MAX {
        out.push(FieldError::too_long("", DATA_MAX));
    }
    immutable(new, old, &["data", "binaryData"], &mut out);
    out
}

/// Secrets: keys, sizes, immutability, a type that does not change.
pub(crate) fn secret(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut out = Vec::new();
    if keys(new, "data", &mut out) > DATA_MAX * 4 / 3 {
        out.push(FieldError::too_long("data", DATA_MAX));
    }
    if let Some(old) = old.filter(|o| o.get("type") != new.get("type")) {
        let shown = new.get("type").or_else(|| old.get("type")).cloned().unwrap_or(Value::Null);
        out.push(FieldError::invalid("type", &shown, "field is immutable"));
    }
    immutable(new, old, &["data"], &mut out);
    out
}

/// Pods: as much as makes them Pods.
pub(crate) fn pod(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let containers = new.pointer("/spec/containers").and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
        out.push(FieldError::required("spec.containers", ""));
    }
    for (i, container) in containers.into_iter().flatten().enumerate() {
        let field = format!("spec.containers[{i}].name");
        match container.get("name").and_then(Value::as_str) {
            None | Some("") => out.push(FieldError::required(field, "")),
            Some(name) => {
                for msg in names::label(name) {
                    out.push(FieldError::invalid(&*field, &name.into(), &msg));
                }
            }
        }
    }
    out
}

/// Events, as stored: the namespace of what they are about, and what events.k8s.io/v1 asks for.
pub(crate) fn event(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let text = |path: &str| new.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let about = text("/involvedObject/namespace");
    let namespace = meta_str(new, "namespace");
    let fits = if about.is_empty() { matches!(namespace, "" | "default" | "kube-system") } else { about == namespace };
    if !fits {
        out.push(FieldError::invalid("involvedObject.namespace", &about.into(), "does not match event.namespace"));
    }
    if text("/eventTime").is_empty() {
        // The older form asks for nothing more.
        return out;
    }
    for (path, field) in [("/reportingComponent", "reportingController"), ("/reportingInstance", "reportingInstance")] {
        if text(path).is_empty() {
            out.push(FieldError::required(field, ""));
        }
    }
    for msg in names::qualified(text("/reportingComponent")) {
        if !text("/reportingComponent").is_empty() {
            out.push(FieldError::invalid("reportingController", &text("/reportingComponent").into(), &msg));
        }
    }
    for (path, field, max) in
        [("/reportingInstance", "reportingInstance", 128), ("/action", "action", 128), ("/reason", "reason", 128)]
    {
        if field != "reportingInstance" && text(path).is_empty() {
            out.push(FieldError::required(field, ""));
        }
        if text(path).len() > max {
            out.push(FieldError::invalid(field, &text(path).into(), &format!("can have at most {max} characters")));
        }
    }
    if text("/message").len() > 1024 {
        out.push(FieldError::invalid("message", &text("/message").into(), "can have at most 1024 characters"));
    }
    if !matches!(text("/type"), "Normal" | "Warning") {
        let msg = "has invalid value: must be Normal or Warning";
        out.push(FieldError::invalid("type", &text("/type").into(), msg));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|e| e.field).collect()
    }

    #[test]
    fn config_maps() {
        assert!(config_map(&json!({"data": {"a.b-c_D": "x"}, "binaryData": {"e": "AA=="}}), None).is_empty());
        assert_eq!(fields(config_map(&json!({"data": {"a b": "x", "..": ""}}), None)), ["data[..]", "data[a b]"]);
        assert_eq!(fields(config_map(&json!({"data": {"a": "x"}, "binaryData": {"a": ""}}), None)), ["data[a]"]);
        let fixed = json!({"immutable": true, "data": {"a": "x"}});
        assert!(config_map(&fixed, Some(&fixed)).is_empty());
        assert_eq!(fields(config_map(&json!({"data": {"a": "y"}}), Some(&fixed))), ["immutable", "data"]);
        assert_eq!(config_map(&json!({"data": {"a": "x".repeat(DATA_MAX + 1)}}), None).len(), 1);
    }

    #[test]
    fn events() {
        let new = json!({
            "metadata": {"namespace": "n"}, "involvedObject": {"namespace": "n"}, "eventTime": "t", "action": "a",
            "reason": "r", "type": "Normal", "reportingComponent": "x.io/c", "reportingInstance": "i",
        });
        assert!(event(&new, None).is_empty());
        let old = json!({"metadata": {"namespace": "n"}, "involvedObject": {"namespace": "n"}});
        assert!(event(&old, None).is_empty());
        let other = json!({"metadata": {"namespace": "m"}, "involvedObject": {"namespace": "n"}, "eventTime": "t"});
        assert_eq!(
            fields(event(&other, None)),
            ["involvedObject.namespace", "reportingController", "reportingInstance", "action", "reason", "type"]
        );
    }

    #[test]
    fn pods() {
        assert_eq!(fields(pod(&json!({}), None)), ["spec.containers"]);
        assert!(pod(&json!({"spec": {"containers": [{"name": "a"}]}}), None).is_empty());
        assert_eq!(pod(&json!({"spec": {"containers": [{}, {"name": "A"}]}}), None).len(), 2);
    }
}
