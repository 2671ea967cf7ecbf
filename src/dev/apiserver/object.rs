//! A stored object: one JSON value, never changed after it was committed, with its bytes kept for all who read it.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value};

/// Where an object lives in its table. Ordered as a list shows objects: by namespace, then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Key {
    /// The namespace; empty for what is cluster-scoped.
    pub(crate) namespace: Arc<str>,
    /// The name.
    pub(crate) name: Arc<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// One version of an object, as committed.
pub struct Object {
    key: Key,
    revision: u64,
    value: Value,
    json: OnceLock<Bytes>,
}

impl Object {
    /// A version of an object committed at `revision`; writes that revision into its metadata.
    pub(crate) fn new(key: Key, revision: u64, mut value: Value) -> Arc<Self> {
        meta_mut(&mut value).insert("resourceVersion".into(), revision.to_string().into());
        Arc::new(Self { key, revision, value, json: OnceLock::new() })
    }

    /// The same content under another revision: what a watch shows for a deletion.
    pub(crate) fn at(&self, revision: u64) -> Arc<Self> {
        Self::new(self.key.clone(), revision, self.value.clone())
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// The namespace; empty for what is cluster-scoped.
    pub fn namespace(&self) -> &str {
        &self.key.namespace
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        meta_str(&self.value, "uid")
    }

    /// The revision of the write that made this version.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The whole object, in the form in which it is stored.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The object's bytes as JSON, made once.
    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| to_bytes(&self.value))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.key.namespace, self.key.name, self.revision)
    }
}

/// A value as bytes. Writing a JSON value into memory has no way to fail; were one found, the answer is empty.
pub(crate) fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The metadata of an object; empty where there is none.
pub(crate) fn meta(value: &Value) -> &Map<String, Value> {
    value.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// The metadata of an object, made where there is none.
pub(crate) fn meta_mut(value: &mut Value) -> &mut Map<String, Value> {
    child_mut(object_mut(value), "metadata")
}

/// The map in `value`; what is not a map becomes an empty one.
pub(crate) fn object_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// The map under `key`, made where there is none.
pub(crate) fn child_mut<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    object_mut(map.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

/// A string in an object's metadata; empty where there is none.
pub(crate) fn meta_str<'a>(value: &'a Value, key: &str) -> &'a str {
    meta(value).get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the metadata has finalizers.
pub(crate) fn has_finalizers(value: &Value) -> bool {
    meta(value).get("finalizers").and_then(Value::as_array).is_some_and(|a| !a.is_empty())
}

/// Whether a delete has been asked for.
pub(crate) fn is_terminating(value: &Value) -> bool {
    meta(value).get("deletionTimestamp").is_some_and(|v| !v.is_null())
}
