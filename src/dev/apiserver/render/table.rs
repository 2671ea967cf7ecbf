//! Tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Include, age, metadata};
use crate::dev::apiserver::kinds::{Cell, Resource};
use crate::dev::apiserver::object::meta_str;

/// A table of rows.
pub(super) fn table(resource: &Resource, meta: &Value, rows: &[Value], columns: bool) -> Value {
    let definitions: Vec<Value> = resource
        .columns
        .iter()
        .filter(|_| columns)
        .map(|c| {
            json!({
                "name": c.name, "type": c.ty, "format": c.format, "description": c.description, "priority": c.priority,
            })
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// The row of a stored object.
pub(super) fn row(resource: &Resource, stored: &Value, include: Include, now: Timestamp) -> Value {
    let since = |at: Option<&Value>| -> Value {
        at.and_then(Value::as_str).map_or_else(|| "<unknown>".into(), |t| age::since(t, now).into())
    };
    let cells: Vec<Value> = resource
        .columns
        .iter()
        .map(|column| match &column.cell {
            Cell::Of(f) => f(stored),
            Cell::Age => since(Some(&meta_str(stored, "creationTimestamp").into())),
            Cell::Since(f) => since(Some(&f(stored))),
            Cell::Path(path) => cell(&path.find(stored), &column.ty),
            Cell::SincePath(path) => match path.find(stored).first() {
                Some(at) => since(Some(at)),
                None => Value::Null,
            },
        })
        .collect();
    match include {
        Include::Nothing => json!({"cells": cells}),
        Include::Metadata => json!({"cells": cells, "object": metadata(stored)}),
        Include::Object => json!({"cells": cells, "object": resource.show(stored)}),
    }
}

/// What a JSONPath found, as one cell: numbers and booleans as such, anything else as text.
fn cell(found: &[&Value], ty: &str) -> Value {
    match found {
        [] | [Value::Null] => Value::Null,
        [one @ (Value::String(_) | Value::Number(_) | Value::Bool(_))] => match ty {
            "string" if !one.is_string() => one.to_string().into(),
            _ => (*one).clone(),
        },
        many => {
            let texts: Vec<String> =
                many.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
            texts.join(",").into()
        }
    }
}
