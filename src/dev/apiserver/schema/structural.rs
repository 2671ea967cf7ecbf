//! Custom resources: pruning and defaulting by their schema, and what a CRD's schema must be like.

use serde_json::{Map, Value};

use super::{Schema, Type, join};
use crate::dev::apiserver::status::FieldError;

/// The fields that every object has beside those of its schema.
const OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops the fields that the schema does not know; says which.
pub(crate) fn prune(value: &mut Value, schema: &Schema, root: bool, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.retain(|key, child| {
            if (root || schema.embedded) && OBJECT.contains(&key.as_str()) {
                return true;
            }
            match schema.field(key) {
                Some(known) => {
                    prune(child, known, false, &join(path, key), unknown);
                    true
                }
                None if schema.preserve => true,
                None => {
                    unknown.push(join(path, key));
                    false
                }
            }
        }),
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                prune(item, schema.item(), false, &format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Fills in defaults. A null in a field that may not be null gives way to the default.
pub(crate) fn default(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            for (key, field) in &schema.properties {
                if let Some(default) = &field.default
                    && map.get(key).is_none_or(|v| v.is_null() && !field.nullable)
                {
                    map.insert(key.clone(), default.clone());
                }
            }
            for (key, child) in map.iter_mut() {
                if let Some(field) = schema.field(key) {
                    default_child(child, field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| default_child(item, schema.item())),
        _ => {}
    }
}

fn default_child(value: &mut Value, schema: &Schema) {
    if schema.ty != Type::Any || !schema.properties.is_empty() {
        default(value, schema);
    }
}

/// Checks that a CRD's schema is structural: each node says its type, and nothing that a server would not take.
pub(crate) fn check(schema: &Value, path: &str, out: &mut Vec<FieldError>) {
    let Some(map) = schema.as_object() else {
        out.push(FieldError::required(path, "schemas are required"));
        return;
    };
    match map.get("type").and_then(Value::as_str) {
        Some("object") => {}
        None | Some("") => out.push(FieldError::required(format!("{path}.type"), "must not be empty at the root")),
        Some(other) => {
            out.push(FieldError::invalid(format!("{path}.type"), &other.into(), "must be object at the root"));
        }
    }
    node(map, path, true, 0, out);
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

fn node(map: &Map<String, Value>, path: &str, root: bool, depth: usize, out: &mut Vec<FieldError>) {
    if depth > 40 {
        out.push(FieldError::forbidden(path, "the schema is too deep"));
        return;
    }
    let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
    let ty = map.get("type").and_then(Value::as_str).unwrap_or_default();
    let free = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if ty.is_empty() && !free && !root {
        out.push(FieldError::required(format!("{path}.type"), "must not be empty for specified object fields"));
    }
    if !ty.is_empty() && !TYPES.contains(&ty) {
        let known = TYPES.map(|t| format!("{t:?}"));
        out.push(FieldError::unsupported(format!("{path}.type"), &ty.into(), &known));
    }
    if map.contains_key("$ref") {
        out.push(FieldError::forbidden(format!("{path}.$ref"), "$ref is not supported"));
    }
    if flag("uniqueItems") {
        let msg = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        out.push(FieldError::forbidden(format!("{path}.uniqueItems"), msg));
    }
    if let Some(pattern) = map.get("pattern").and_then(Value::as_str)
        && regex::Regex::new(pattern).is_err()
    {
        let msg = "must be a valid regular expression, but isn't";
        out.push(FieldError::invalid(format!("{path}.pattern"), &pattern.into(), msg));
    }
    if ty == "array" && !map.get("items").is_some_and(Value::is_object) {
        out.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    let additional = map.get("additionalProperties");
    if map.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty())
        && additional.is_some_and(|a| *a != Value::Bool(false))
    {
        let msg = "additionalProperties and properties are mutual exclusive";
        out.push(FieldError::forbidden(format!("{path}.additionalProperties"), msg));
    }
    for (key, child) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if root && key == "metadata" {
            continue;
        }
        let at = format!("{path}.properties[{key}]");
        match child.as_object() {
            Some(child) => node(child, &at, false, depth + 1, out),
            None => out.push(FieldError::type_invalid(at, child, "must be a schema")),
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = map.get(key).and_then(Value::as_object) {
            node(child, &format!("{path}.{key}"), false, depth + 1, out);
        }
    }
}
