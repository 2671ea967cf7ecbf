//! Validation of custom resources against their schema, in the words of kube-openapi.

use serde_json::Value;

use super::{Checks, Format, List, Schema, Type, join, time};
use crate::dev::apiserver::status::FieldError;

/// Checks a value; adds what is wrong with it.
pub(crate) fn validate(value: &Value, schema: &Schema, path: &str, out: &mut Vec<FieldError>) {
    if value.is_null() && schema.nullable {
        return;
    }
    if !of_type(value, schema.ty) {
        let wanted = match schema.ty {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::IntOrString | Type::Any => "integer,string",
        };
        let given = type_of(value);
        let text = format!("{path} in body must be of type {wanted}: {given:?}");
        out.push(FieldError::type_invalid(path, &given.into(), &text));
        return;
    }
    match value {
        Value::Object(map) => {
            for key in &schema.required {
                if !map.contains_key(key) {
                    out.push(FieldError::required(join(path, key), ""));
                }
            }
            for (key, child) in map {
                if let Some(known) = schema.field(key) {
                    validate(child, known, &join(path, key), out);
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                validate(item, schema.item(), &format!("{path}[{i}]"), out);
            }
            duplicates(items, &schema.list, path, out);
        }
        Value::String(text) if schema.format == Format::DateTime && !time::is_date_time(text) => {
            let msg = format!("{path} in body must be of type date-time: {text:?}");
            out.push(FieldError::invalid(path, value, &msg));
        }
        _ => {}
    }
    if let Some(checks) = &schema.checks {
        limits(value, checks, path, out);
        combined(value, checks, path, out);
    }
}

fn of_type(value: &Value, ty: Type) -> bool {
    match ty {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => is_integer(value),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntOrString => value.is_string() || is_integer(value),
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn duplicates(items: &[Value], list: &List, path: &str, out: &mut Vec<FieldError>) {
    let identity = |item: &Value| -> Value {
        match list {
            List::Map(keys) => {
                let mut map = serde_json::Map::new();
                for key in keys {
                    if let Some(v) = item.get(key) {
                        map.insert(key.clone(), v.clone());
                    }
                }
                Value::Object(map)
            }
            _ => item.clone(),
        }
    };
    if *list == List::Atomic {
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for (i, item) in items.iter().enumerate() {
        let identity = identity(item);
        if !seen.insert(identity.to_string()) {
            out.push(FieldError::duplicate(format!("{path}[{i}]"), &identity));
        }
    }
}

fn limits(value: &Value, c: &Checks, path: &str, out: &mut Vec<FieldError>) {
    let mut bad = |text: String| out.push(FieldError::invalid(path, value, &format!("{path} in body {text}")));
    if let Some(n) = value.as_f64() {
        match c.minimum {
            Some(min) if c.exclusive_minimum && n <= min => bad(format!("should be greater than {min}")),
            Some(min) if n < min => bad(format!("should be greater than or equal to {min}")),
            _ => {}
        }
        match c.maximum {
            Some(max) if c.exclusive_maximum && n >= max => bad(format!("should be less than {max}")),
            Some(max) if n > max => bad(format!("should be less than or equal to {max}")),
            _ => {}
        }
        if let Some(step) = c.multiple_of.filter(|s| *s > 0.0) {
            let quotient = n / step;
            if (quotient - quotient.round()).abs() > 1e-9 {
                bad(format!("should be a multiple of {step}"));
            }
        }
    }
    let len = |n: usize| n as u64;
    if let Some(text) = value.as_str() {
        let chars = len(text.chars().count());
        if let Some(min) = c.min_length.filter(|min| chars < *min) {
            bad(format!("should be at least {min} chars long"));
        }
        if let Some((pattern, _)) = c.pattern.as_ref().filter(|(_, r)| !r.is_match(text)) {
            bad(format!("should match '{pattern}'"));
        }
    }
    if let Some(items) = value.as_array()
        && let Some(min) = c.min_items.filter(|min| len(items.len()) < *min)
    {
        bad(format!("should have at least {min} items"));
    }
    if let Some(map) = value.as_object()
        && let Some(min) = c.min_properties.filter(|min| len(map.len()) < *min)
    {
        bad(format!("should have at least {min} properties"));
    }
    // These have words of their own.
    if let Some(text) = value.as_str()
        && let Some(max) = c.max_length.filter(|max| len(text.chars().count()) > *max)
    {
        out.push(FieldError::too_long(path, usize::try_from(max).unwrap_or(usize::MAX)));
    }
    let count = value.as_array().map(Vec::len).zip(c.max_items).map(|(n, max)| (n, max, "items"));
    let count = count.or_else(|| {
        value.as_object().map(serde_json::Map::len).zip(c.max_properties).map(|(n, m)| (n, m, "properties"))
    });
    if let Some((n, max, what)) = count.filter(|(n, max, _)| len(*n) > *max) {
        out.push(FieldError {
            field: path.to_owned(),
            reason: "FieldValueTooMany",
            message: format!("Too many: {n}: must have at most {max} {what}"),
        });
    }
    if !c.one_of.is_empty() && !c.one_of.contains(value) {
        let known: Vec<String> = c.one_of.iter().map(Value::to_string).collect();
        out.push(FieldError::unsupported(path, value, &known));
    }
}

fn combined(value: &Value, c: &Checks, path: &str, out: &mut Vec<FieldError>) {
    let errors = |schema: &Schema| {
        let mut found = Vec::new();
        validate(value, schema, path, &mut found);
        found
    };
    let mut all_hold = true;
    for schema in &c.all {
        let found = errors(schema);
        all_hold &= found.is_empty();
        out.extend(found);
    }
    let mut bad = |text: &str| out.push(FieldError::invalid(path, value, &format!("{path:?} {text}")));
    if !all_hold {
        bad("must validate all the schemas (allOf)");
    }
    if !c.any.is_empty() && !c.any.iter().any(|s| errors(s).is_empty()) {
        bad("must validate at least one schema (anyOf)");
    }
    if !c.one.is_empty() {
        match c.one.iter().filter(|s| errors(s).is_empty()).count() {
            1 => {}
            0 => bad("must validate one and only one schema (oneOf). Found none valid"),
            n => bad(&format!("must validate one and only one schema (oneOf). Found {n} valid alternatives")),
        }
    }
    if c.not.as_ref().is_some_and(|s| errors(s).is_empty()) {
        bad("must not validate the schema (not)");
    }
}
