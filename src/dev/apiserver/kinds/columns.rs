//! The columns that `kubectl get` shows.

use serde_json::Value;

use super::jsonpath::JsonPath;
use crate::dev::apiserver::object::{meta, meta_str};

/// One column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// Above 0, shown with `-o wide` only.
    pub(crate) priority: i64,
    pub(crate) cell: Cell,
}

/// Where a column's value comes from.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// From the stored object.
    Of(fn(&Value) -> Value),
    /// The age, given when it was made.
    Age,
    /// The time since the moment that a function finds.
    Since(fn(&Value) -> Value),
    /// The value at a CRD's JSONPath.
    Path(JsonPath),
    /// The time since the moment at a CRD's JSONPath.
    SincePath(JsonPath),
}

fn column(name: &str, ty: &str, cell: Cell) -> Column {
    let format = if name == "Name" { "name" } else { "" };
    Column { name: name.into(), ty: ty.into(), format: format.into(), description: String::new(), priority: 0, cell }
}

fn name() -> Column {
    column("Name", "string", Cell::Of(|o| meta_str(o, "name").into()))
}

fn age() -> Column {
    column("Age", "string", Cell::Age)
}

fn text(o: &Value, path: &[&str]) -> Value {
    let found = path.iter().try_fold(o, |at, key| at.get(key));
    found.cloned().filter(|v| !v.is_null()).unwrap_or_else(|| "".into())
}

fn count(o: &Value, keys: &[&str]) -> Value {
    let n: usize = keys
        .iter()
        .map(|k| match o.get(k) {
            Some(Value::Object(m)) => m.len(),
            Some(Value::Array(a)) => a.len(),
            _ => 0,
        })
        .sum();
    n.into()
}

/// Name and age: what every kind has.
pub(super) fn plain() -> Vec<Column> {
    vec![name(), age()]
}

pub(super) fn lease() -> Vec<Column> {
    vec![name(), column("Holder", "string", Cell::Of(|o| text(o, &["spec", "holderIdentity"]))), age()]
}

pub(super) fn config_map() -> Vec<Column> {
    vec![name(), column("Data", "string", Cell::Of(|o| count(o, &["data", "binaryData"]))), age()]
}

pub(super) fn secret() -> Vec<Column> {
    vec![
        name(),
        column("Type", "string", Cell::Of(|o| text(o, &["type"]))),
        column("Data", "string", Cell::Of(|o| count(o, &["data"]))),
        age(),
    ]
}

pub(super) fn service_account() -> Vec<Column> {
    vec![name(), column("Secrets", "string", Cell::Of(|o| count(o, &["secrets"]))), age()]
}

pub(super) fn namespace() -> Vec<Column> {
    vec![name(), column("Status", "string", Cell::Of(|o| text(o, &["status", "phase"]))), age()]
}

pub(super) fn crd() -> Vec<Column> {
    vec![name(), column("Created At", "date", Cell::Of(|o| meta_str(o, "creationTimestamp").into()))]
}

pub(super) fn pod() -> Vec<Column> {
    vec![
        name(),
        column(
            "Ready",
            "string",
            Cell::Of(|o| {
                let all = o.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
                let statuses = o.pointer("/status/containerStatuses").and_then(Value::as_array);
                let ready = statuses.into_iter().flatten().filter(|s| s.get("ready") == Some(&true.into())).count();
                format!("{ready}/{all}").into()
            }),
        ),
        column(
            "Status",
            "string",
            Cell::Of(|o| {
                if meta(o).contains_key("deletionTimestamp") {
                    "Terminating".into()
                } else {
                    text(o, &["status", "phase"])
                }
            }),
        ),
        column(
            "Restarts",
            "string",
            Cell::Of(|o| {
                let statuses = o.pointer("/status/containerStatuses").and_then(Value::as_array);
                let sum: i64 = statuses
                    .into_iter()
                    .flatten()
                    .filter_map(|s| s.get("restartCount").and_then(Value::as_i64))
                    .fold(0, i64::saturating_add);
                sum.into()
            }),
        ),
        age(),
    ]
}

pub(super) fn event() -> Vec<Column> {
    let object = |o: &Value| -> Value {
        let kind = text(o, &["involvedObject", "kind"]);
        let kind = kind.as_str().unwrap_or_default().to_lowercase();
        format!("{kind}/{}", text(o, &["involvedObject", "name"]).as_str().unwrap_or_default()).into()
    };
    let last = |o: &Value| -> Value {
        ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
            .iter()
            .find_map(|p| o.pointer(p).filter(|v| v.is_string()).cloned())
            .unwrap_or(Value::Null)
    };
    vec![
        column("Last Seen", "string", Cell::Since(last)),
        column("Type", "string", Cell::Of(|o| text(o, &["type"]))),
        column("Reason", "string", Cell::Of(|o| text(o, &["reason"]))),
        column("Object", "string", Cell::Of(object)),
        column(
            "Message",
            "string",
            Cell::Of(|o| {
                let message = text(o, &["message"]);
                message.as_str().unwrap_or_default().trim().into()
            }),
        ),
        Column { priority: 1, ..name() },
    ]
}
