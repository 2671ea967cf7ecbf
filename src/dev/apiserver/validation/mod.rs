//! What may be stored: metadata, and each kind's own rules beyond its schema.

pub(crate) mod kinds;
pub(crate) mod lease;
pub(crate) mod meta;
pub(crate) mod names;

use serde_json::Value;

use super::status::FieldError;

/// For kinds that have no rules beyond their schema.
pub(crate) fn nothing(_: &Value, _: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}
