//! Manifests: YAML files of one or more Kubernetes objects, as kubectl takes them. The one place that reads YAML.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A manifest that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not YAML.
    #[error("document {at}: {source}")]
    Yaml {
        /// Which document, from 1.
        at: usize,
        /// What the parser says, with line and column.
        source: serde_yaml::Error,
    },
    /// Not the object that is expected.
    #[error("document {at}{}: {source}", .name.as_ref().map(|n| format!(" ({n})")).unwrap_or_default())]
    Object {
        /// Which document, from 1.
        at: usize,
        /// The object's name, where it has one.
        name: Option<String>,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// The objects in `text`: documents separated by `---`, empty ones skipped, lists (`kind: List`) taken apart.
///
/// # Errors
/// The first document that is not YAML, or not a `T`.
pub fn objects<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, ManifestError> {
    let mut found = Vec::new();
    for (i, document) in serde_yaml::Deserializer::from_str(text).enumerate() {
        let at = i + 1;
        let value = Value::deserialize(document).map_err(|source| ManifestError::Yaml { at, source })?;
        let items = match value {
            Value::Null => continue,
            Value::Object(mut list)
                if list.get("kind").and_then(Value::as_str).is_some_and(|k| k.ends_with("List")) =>
            {
                match list.remove("items") {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                }
            }
            one => vec![one],
        };
        for item in items {
            let name = item.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
            found.push(serde_json::from_value(item).map_err(|source| ManifestError::Object { at, name, source })?);
        }
    }
    Ok(found)
}

/// Reads one document.
///
/// # Errors
/// What the parser found, for people.
#[cfg(feature = "dev")]
pub(crate) fn document(bytes: &[u8]) -> Result<Value, String> {
    serde_yaml::from_slice(bytes).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Debug)]
    struct Thing {
        n: u32,
    }

    #[test]
    fn documents_and_lists() {
        let text = "---\nn: 1\n---\n# nothing\n---\nkind: ThingList\nitems:\n- n: 2\n- n: 3\n";
        let all: Vec<Thing> = objects(text).expect("good");
        assert_eq!(all.iter().map(|t| t.n).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn says_where_it_is_wrong() {
        let error = objects::<Thing>("n: 1\n---\nmetadata: {name: x}\nn: one\n").expect_err("bad").to_string();
        assert!(error.starts_with("document 2 (x): "), "{error}");
        let error = objects::<Thing>("n: [\n").expect_err("bad").to_string();
        assert!(error.starts_with("document 1: "), "{error}");
    }
}
