//! Schemas from their OpenAPI form.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Checks, Format, List, Merge, Schema, Type};

/// The deepest schema that is read; below it anything goes. It bounds recursion, also through `$ref`.
const DEPTH: usize = 48;

/// Reads a schema. What it does not know it leaves out: a CRD is judged by [`super::structural`] before.
pub(crate) fn parse(schema: &Value, definitions: &Map<String, Value>) -> Arc<Schema> {
    node(schema, definitions, 0)
}

fn node(schema: &Value, definitions: &Map<String, Value>, depth: usize) -> Arc<Schema> {
    let Some(map) = schema.as_object().filter(|_| depth < DEPTH) else { return Schema::any().clone() };
    if let Some(name) = map.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name);
        let Some(target) = definitions.get(name) else { return Schema::any().clone() };
        let mut found = (*node(target, definitions, depth + 1)).clone();
        name.rsplit('.').next().unwrap_or(name).clone_into(&mut found.name);
        // What stands beside a $ref belongs to the field.
        extensions(map, &mut found);
        return Arc::new(found);
    }
    let child = |key: &str| map.get(key).filter(|v| v.is_object()).map(|v| node(v, definitions, depth + 1));
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
    let mut properties = BTreeMap::new();
    for (key, value) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        properties.insert(key.clone(), node(value, definitions, depth + 1));
    }
    let additional = match map.get("additionalProperties") {
        Some(Value::Bool(true)) => Some(Schema::any().clone()),
        _ => child("additionalProperties"),
    };
    let ty = match text("type") {
        _ if flag("x-kubernetes-int-or-string") || text("format") == "int-or-string" => Type::IntOrString,
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        _ => Type::Any,
    };
    let format = match text("format") {
        "int32" => Format::Int32,
        "int64" => Format::Int64,
        "time" => Format::Time,
        "micro-time" => Format::MicroTime,
        "byte" => Format::Byte,
        "date-time" => Format::DateTime,
        _ => Format::None,
    };
    let mut out = Schema {
        ty,
        format,
        properties,
        additional,
        items: child("items"),
        preserve: flag("x-kubernetes-preserve-unknown-fields") || flag("x-kubernetes-embedded-resource"),
        embedded: flag("x-kubernetes-embedded-resource"),
        nullable: flag("nullable"),
        required: strings(map.get("required")),
        default: map.get("default").filter(|v| !v.is_null()).cloned(),
        checks: checks(map, definitions, depth),
        ..Schema::default()
    };
    extensions(map, &mut out);
    Arc::new(out)
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn extensions(map: &Map<String, Value>, out: &mut Schema) {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    match text("x-kubernetes-list-type") {
        Some("map") => out.list = List::Map(strings(map.get("x-kubernetes-list-map-keys"))),
        Some("set") => out.list = List::Set,
        Some(_) => out.list = List::Atomic,
        None => {}
    }
    if let Some(number) = map.get("x-proto").and_then(Value::as_u64) {
        out.proto = number;
        out.proto_optional = map.get("x-proto-optional") == Some(&Value::Bool(true));
    }
    if text("x-kubernetes-map-type") == Some("atomic") {
        out.atomic = true;
    }
    if let Some(strategy) = text("x-kubernetes-patch-strategy") {
        out.merge = Merge {
            key: text("x-kubernetes-patch-merge-key").map(str::to_owned),
            into: strategy.split(',').any(|s| s == "merge"),
            retain_keys: strategy.split(',').any(|s| s == "retainKeys"),
        };
    }
}

fn checks(map: &Map<String, Value>, definitions: &Map<String, Value>, depth: usize) -> Option<Box<Checks>> {
    const KEYS: [&str; 17] = [
        "enum",
        "minimum",
        "exclusiveMinimum",
        "maximum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
    ];
    if !KEYS.iter().any(|k| map.contains_key(*k)) {
        return None;
    }
    let number = |key: &str| map.get(key).and_then(Value::as_f64);
    let count = |key: &str| map.get(key).and_then(Value::as_u64);
    let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
    let list = |key: &str| map.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let nodes = |key: &str| list(key).iter().map(|v| node(v, definitions, depth + 1)).collect();
    Some(Box::new(Checks {
        one_of: list("enum"),
        minimum: number("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: map
            .get("pattern")
            .and_then(Value::as_str)
            .and_then(|p| regex::Regex::new(p).ok().map(|r| (p.to_owned(), r))),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        all: nodes("allOf"),
        any: nodes("anyOf"),
        one: nodes("oneOf"),
        not: map.get("not").map(|v| node(v, definitions, depth + 1)),
    }))
}
