//! The schemas of the built-in kinds, as OpenAPI definitions that are read once.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::{Schema, parse};

/// The definition of a Lease.
pub(crate) const LEASE: &str = "io.k8s.api.coordination.v1.Lease";
/// The definition of ObjectMeta.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The definition of a TokenRequest.
pub(crate) const TOKEN_REQUEST: &str = "io.k8s.api.authentication.v1.TokenRequest";
/// The definition of DeleteOptions.
pub(crate) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// All definitions, by name, with `$ref` as the bare name of another.
pub(crate) static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut all = Map::new();
    for text in [
        include_str!("definitions/meta.yaml"),
        include_str!("definitions/core.yaml"),
        include_str!("definitions/coordination.yaml"),
        include_str!("definitions/events.yaml"),
        include_str!("definitions/apiextensions.yaml"),
    ] {
        // The files are part of the program, and a test reads them all.
        if let Ok(Value::Object(part)) = crate::manifest::document(text.as_bytes()) {
            all.extend(part);
        }
    }
    all
});

static SCHEMAS: LazyLock<BTreeMap<String, Arc<Schema>>> = LazyLock::new(|| {
    let read = |name: &String| parse(&serde_json::json!({ "$ref": name }), &DEFINITIONS);
    DEFINITIONS.keys().map(|name| (name.clone(), read(name))).collect()
});

/// The schema of ObjectMeta.
pub(crate) fn object_meta() -> &'static Arc<Schema> {
    schema(OBJECT_META)
}

/// The schema of a definition; one that says nothing where there is no such definition.
pub(crate) fn schema(name: &str) -> &'static Arc<Schema> {
    SCHEMAS.get(name).unwrap_or_else(|| Schema::any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dev::apiserver::schema::Type;

    #[test]
    fn every_definition_is_read_and_every_reference_leads_somewhere() {
        assert_eq!(DEFINITIONS.len(), 36, "{:?}", DEFINITIONS.keys().collect::<Vec<_>>());
        let mut refs = Vec::new();
        for value in DEFINITIONS.values() {
            collect(value, &mut refs);
        }
        for name in refs {
            assert!(DEFINITIONS.contains_key(&name), "{name}");
        }
        for name in DEFINITIONS.keys() {
            assert_eq!(schema(name).ty, Type::Object, "{name}");
        }
    }

    fn collect(value: &Value, refs: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, child) in map {
                    match child.as_str() {
                        Some(name) if key == "$ref" => refs.push(name.to_owned()),
                        _ => collect(child, refs),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|i| collect(i, refs)),
            _ => {}
        }
    }
}
