//! Structural schemas: what the fields of a kind are, for built-in kinds and for those of CRDs alike.
//!
//! One form serves decoding (types, unknown fields, times), validation, defaulting, strategic merge, server-side apply
//! and the published OpenAPI documents.

pub(crate) mod builtin;
pub(crate) mod decode;
mod parse;
pub(crate) mod proto;
pub(crate) mod structural;
#[cfg(test)]
mod tests;
pub(crate) mod time;
pub(crate) mod validate;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

pub(crate) use parse::parse;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Type {
    /// Anything: the schema says nothing about it.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

/// The formats that decoding knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    #[default]
    None,
    Int32,
    Int64,
    /// `metav1.Time`: RFC 3339, whole seconds.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with exactly six decimals.
    MicroTime,
    /// Base64.
    Byte,
    /// A date and time in a custom resource: checked, kept as it is.
    DateTime,
}

/// How the items of a list are told apart, for server-side apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum List {
    /// Not at all: the list is one value.
    #[default]
    Atomic,
    /// By their value.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

/// How a strategic merge treats a list (or a map).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Merge {
    /// The field that tells items apart; none for lists of plain values.
    pub(crate) key: Option<String>,
    /// Whether a patch is merged into it (it is put in its place otherwise).
    pub(crate) into: bool,
    /// Whether a merge keeps only the keys that the patch names (`retainKeys`).
    pub(crate) retain_keys: bool,
}

/// Limits on a value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks {
    pub(crate) one_of: Vec<Value>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<(String, regex::Regex)>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all: Vec<Arc<Schema>>,
    pub(crate) any: Vec<Arc<Schema>>,
    pub(crate) one: Vec<Arc<Schema>>,
    pub(crate) not: Option<Arc<Schema>>,
}

/// What one value may be.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an extension of its own")]
pub(crate) struct Schema {
    /// The Go type's name, for decoding errors; empty where there is none.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) format: Format,
    pub(crate) properties: BTreeMap<String, Arc<Schema>>,
    /// What the values of a map are.
    pub(crate) additional: Option<Arc<Schema>>,
    pub(crate) items: Option<Arc<Schema>>,
    /// Unknown fields are kept.
    pub(crate) preserve: bool,
    /// It is a whole object of its own, with kind, apiVersion and metadata.
    pub(crate) embedded: bool,
    pub(crate) nullable: bool,
    pub(crate) required: Vec<String>,
    pub(crate) default: Option<Value>,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) list: List,
    /// For server-side apply, the map is one value.
    pub(crate) atomic: bool,
    pub(crate) merge: Merge,
    /// The field's number in the protobuf form; 0 where it has none.
    pub(crate) proto: u64,
    /// In the protobuf form, Go leaves it out when it is not set.
    pub(crate) proto_optional: bool,
}

static ANY: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema { preserve: true, ..Schema::default() }));

impl Schema {
    /// A schema that says nothing.
    pub(crate) fn any() -> &'static Arc<Schema> {
        &ANY
    }

    /// The schema of a field; none where the field is not known.
    pub(crate) fn field(&self, key: &str) -> Option<&Arc<Schema>> {
        self.properties.get(key).or(self.additional.as_ref())
    }

    /// The schema of a field, or of anything where the field is not known.
    pub(crate) fn field_or_any(&self, key: &str) -> &Arc<Schema> {
        self.field(key).unwrap_or(&ANY)
    }

    /// The schema of a list's items.
    pub(crate) fn item(&self) -> &Arc<Schema> {
        self.items.as_ref().unwrap_or(&ANY)
    }
}

/// The path of a field, as messages show it.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
