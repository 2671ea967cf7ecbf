//! Decoding as Go does it, for built-in kinds: types are checked, nulls and unknown fields dropped, times normalised.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Format, Schema, Type, join, time};

/// What decoding found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Fields that the kind does not have; they have been dropped.
    pub(crate) unknown: Vec<String>,
    /// What cannot be decoded, in Go's words.
    pub(crate) error: Option<String>,
}

impl Report {
    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }
}

/// Decodes a value in place. After an error the value is of no use.
pub(crate) fn decode(value: &mut Value, schema: &Schema, report: &mut Report) {
    walk(value, schema, &mut Place { path: String::new(), holder: &schema.name, field: String::new() }, report);
}

/// Where decoding stands: the path with indices, the struct that holds the field, and the path without indices.
struct Place<'a> {
    path: String,
    holder: &'a str,
    field: String,
}

fn go_type(schema: &Schema) -> String {
    match schema.ty {
        Type::Integer if schema.format == Format::Int32 => "int32".into(),
        Type::Integer => "int64".into(),
        Type::Number => "float64".into(),
        Type::Boolean => "bool".into(),
        Type::String if schema.format == Format::Byte => "[]uint8".into(),
        Type::String => "string".into(),
        Type::Array => format!("[]{}", go_type(schema.item())),
        Type::Object if schema.additional.is_some() => "map[string]string".into(),
        Type::Object | Type::Any | Type::IntOrString if schema.name.is_empty() => "interface {}".into(),
        Type::Object | Type::Any | Type::IntOrString => format!("v1.{}", schema.name),
    }
}

fn walk(value: &mut Value, schema: &Schema, at: &mut Place<'_>, report: &mut Report) {
    let given = match &*value {
        Value::Null => return,
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(n) => format!("number {n}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    let mismatch = |at: &Place<'_>| {
        let given = if given.starts_with("number") && !matches!(schema.ty, Type::Integer) { "number" } else { &given };
        format!(
            "json: cannot unmarshal {given} into Go struct field {}.{} of type {}",
            at.holder,
            at.field,
            go_type(schema)
        )
    };
    match (schema.ty, &mut *value) {
        (Type::Any | Type::Object, Value::Object(_)) => fields(value, schema, at, report),
        (Type::Any, _) => {}
        (Type::Array, Value::Array(items)) => {
            for (i, item) in items.iter_mut().enumerate() {
                let mut inner = Place { path: format!("{}[{i}]", at.path), holder: at.holder, field: at.field.clone() };
                walk(item, schema.item(), &mut inner, report);
            }
        }
        (Type::String, Value::String(text)) => {
            let normal = match schema.format {
                Format::Time => time::seconds(text).map(Some),
                Format::MicroTime => time::micro(text).map(Some),
                Format::Byte => {
                    STANDARD.decode(&*text).map(|_| None).map_err(|_| "illegal base64 data at input byte 0".to_owned())
                }
                _ => Ok(None),
            };
            match normal {
                // Go's zero time is no time.
                Ok(Some(t)) if t.starts_with("0001-01-01T00:00:00") => *value = Value::Null,
                Ok(Some(t)) => *text = t,
                Ok(None) => {}
                Err(e) => report.fail(e),
            }
        }
        (Type::Integer, Value::Number(n)) => {
            let fits = match schema.format {
                Format::Int32 => n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
                _ => n.is_i64(),
            };
            if !fits {
                report.fail(mismatch(at));
            }
        }
        (Type::Number, Value::Number(_)) | (Type::Boolean, Value::Bool(_)) => {}
        (Type::IntOrString, Value::Number(_) | Value::String(_)) => {}
        _ => report.fail(mismatch(at)),
    }
}

fn fields(value: &mut Value, schema: &Schema, at: &Place<'_>, report: &mut Report) {
    let Value::Object(map) = value else { return };
    let keeps = schema.preserve || (schema.properties.is_empty() && schema.additional.is_none());
    map.retain(|key, child| {
        let Some(known) = schema.field(key) else {
            if keeps {
                return true;
            }
            report.unknown.push(join(&at.path, key));
            return false;
        };
        let holder = if schema.name.is_empty() { at.holder } else { &schema.name };
        let mut inner = Place { path: join(&at.path, key), holder, field: join(&at.field, key) };
        walk(child, known, &mut inner, report);
        // A null is an absent field to Go; in a map it is the zero value, which for a string is "".
        if child.is_null() && schema.additional.is_some() && known.ty == Type::String {
            *child = Value::String(String::new());
        }
        !child.is_null()
    });
}
