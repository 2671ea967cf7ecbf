//! YAML as JSON: for bodies that are sent as YAML, and for the definitions of the built-in kinds.

use serde_json::Value;

/// Reads one YAML document.
///
/// # Errors
/// What the parser found, for people.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    serde_yaml::from_slice(bytes).map_err(|e| e.to_string())
}
