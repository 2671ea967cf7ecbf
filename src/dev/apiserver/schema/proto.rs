//! The protobuf form of the built-in kinds, which Go's typed clients send: `kubectl create configmap` among them.
//!
//! Only reading is needed: a client that sends protobuf takes JSON for an answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Format, Schema, Type};

/// The media type.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// What begins each body.
const MAGIC: &[u8] = b"k8s\0";

/// The deepest nesting that is read.
const DEPTH: usize = 32;

/// One field as it is on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads fields one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut out = 0_u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            out |= u64::from(first & 0x7f).checked_shl(shift)?;
            if first & 0x80 == 0 {
                return Some(out);
            }
        }
        None
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next field: its number and content. `Some(None)` at the end.
    #[allow(
        clippy::option_option,
        reason = "the outer says whether the bytes can be read, the inner whether any are left"
    )]
    fn field(&mut self) -> Option<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.varint()?;
        let content = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let n = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(n)?)
            }
            5 => Wire::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some(Some((tag >> 3, content)))
    }
}

/// Reads a body: the envelope with kind and apiVersion, and in it an object of the schema.
///
/// # Errors
/// What is wrong with it, for people.
pub(crate) fn decode(body: &[u8], schema: &Schema) -> Result<Value, String> {
    let bad = || "the protobuf body cannot be read".to_owned();
    let envelope = body.strip_prefix(MAGIC).ok_or_else(|| {
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]".to_owned()
    })?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), None);
    let mut reader = Reader(envelope);
    while let Some((number, content)) = reader.field().ok_or_else(bad)? {
        match (number, content) {
            (1, Wire::Bytes(meta)) => {
                let mut inner = Reader(meta);
                while let Some((number, content)) = inner.field().ok_or_else(bad)? {
                    let Wire::Bytes(text) = content else { continue };
                    let text = std::str::from_utf8(text).map_err(|_| bad())?.to_owned();
                    match number {
                        1 => api_version = text,
                        2 => kind = text,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = Some(bytes),
            _ => {}
        }
    }
    let mut value = message(raw.unwrap_or_default(), schema, 0).ok_or_else(bad)?;
    if let Some(map) = value.as_object_mut() {
        for (key, text) in [("apiVersion", api_version), ("kind", kind)] {
            if !text.is_empty() {
                map.insert(key.into(), text.into());
            }
        }
    }
    Ok(value)
}

/// Whether objects of a schema can be read from protobuf.
pub(crate) fn known(schema: &Schema) -> bool {
    schema.properties.values().any(|p| p.proto > 0)
}

fn message(bytes: &[u8], schema: &Schema, depth: usize) -> Option<Value> {
    if depth > DEPTH {
        return None;
    }
    let mut out = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, content)) = reader.field()? {
        let Some((key, field)) = schema.properties.iter().find(|(_, f)| f.proto == number) else { continue };
        match field.ty {
            Type::Array => {
                let item = value(&content, field.item(), depth)?;
                match out.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new())) {
                    Value::Array(items) => items.push(item),
                    _ => return None,
                }
            }
            Type::Object if field.additional.is_some() => {
                let Wire::Bytes(entry) = content else { return None };
                let (k, v) = entry_of(entry, field, depth)?;
                match out.entry(key.clone()).or_insert_with(|| Value::Object(Map::new())) {
                    Value::Object(map) => map.insert(k, v),
                    _ => return None,
                };
            }
            _ => {
                let found = value(&content, field, depth)?;
                // Go writes what is not optional even when it is empty; in JSON it leaves it out.
                let empty = match &found {
                    Value::Null => true,
                    Value::String(s) => s.is_empty(),
                    Value::Number(n) => n.as_i64() == Some(0),
                    _ => false,
                };
                if !empty || (field.proto_optional && !found.is_null()) {
                    out.insert(key.clone(), found);
                }
            }
        }
    }
    Some(Value::Object(out))
}

fn entry_of(bytes: &[u8], field: &Schema, depth: usize) -> Option<(String, Value)> {
    let schema = field.additional.as_ref()?;
    let (mut key, mut found) = (String::new(), Value::String(String::new()));
    let mut reader = Reader(bytes);
    while let Some((number, content)) = reader.field()? {
        match (number, &content) {
            (1, Wire::Bytes(k)) => std::str::from_utf8(k).ok()?.clone_into(&mut key),
            (2, _) => found = value(&content, schema, depth)?,
            _ => {}
        }
    }
    Some((key, found))
}

fn value(content: &Wire<'_>, schema: &Schema, depth: usize) -> Option<Value> {
    Some(match (schema.ty, content) {
        (Type::Integer, Wire::Number(n)) => n.cast_signed().into(),
        (Type::Boolean, Wire::Number(n)) => (*n != 0).into(),
        (Type::String, Wire::Bytes(bytes)) => match schema.format {
            Format::Byte => STANDARD.encode(bytes).into(),
            Format::Time | Format::MicroTime => time(bytes, schema.format)?,
            _ => std::str::from_utf8(bytes).ok()?.into(),
        },
        // Its one field is JSON.
        (Type::Object, Wire::Bytes(bytes)) if schema.name == "FieldsV1" => {
            let mut reader = Reader(bytes);
            match reader.field()? {
                Some((1, Wire::Bytes(json))) => serde_json::from_slice(json).ok()?,
                _ => Value::Object(Map::new()),
            }
        }
        (Type::Object, Wire::Bytes(bytes)) => message(bytes, schema, depth + 1)?,
        _ => return None,
    })
}

fn time(bytes: &[u8], format: Format) -> Option<Value> {
    let (mut seconds, mut nanos) = (None, 0);
    let mut reader = Reader(bytes);
    while let Some((number, content)) = reader.field()? {
        match (number, content) {
            (1, Wire::Number(n)) => seconds = Some(n.cast_signed()),
            (2, Wire::Number(n)) => nanos = i32::try_from(n.cast_signed()).ok()?,
            _ => {}
        }
    }
    let Some(seconds) = seconds else { return Some(Value::Null) };
    let at = jiff::Timestamp::new(seconds, nanos).ok()?;
    let layout = if format == Format::MicroTime { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Some(at.strftime(layout).to_string().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::dev::apiserver::schema::builtin;

    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(content.len()).expect("short")];
        out.extend_from_slice(content);
        out
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [bytes(1, b"v1"), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &meta), bytes(2, raw)].concat()
    }

    #[test]
    fn reads_a_config_map_as_kubectl_sends_it() {
        // A name, an empty namespace and an empty creationTimestamp, as Go writes them.
        let meta = [bytes(1, b"c"), bytes(3, b""), bytes(8, b"")].concat();
        let entry = [bytes(1, b"k"), bytes(2, b"v")].concat();
        let raw = [bytes(1, &meta), bytes(2, &entry)].concat();
        assert_eq!(
            decode(&body("ConfigMap", &raw), builtin::schema("io.k8s.api.core.v1.ConfigMap")),
            Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}))
        );
    }

    #[test]
    fn reads_a_lease() {
        let time = [0x08, 0x80, 0x81, 0xc8, 0xac, 0x06, 0x10, 0xe8, 0x07];
        let spec = [bytes(1, b""), vec![0x10, 15], bytes(4, &time), vec![0x28, 0]].concat();
        let raw = bytes(2, &spec);
        let lease = decode(&body("Lease", &raw), builtin::schema(builtin::LEASE)).expect("reads");
        assert_eq!(
            lease["spec"],
            json!({
                "holderIdentity": "", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "renewTime": "2024-01-01T00:00:00.000001Z",
            })
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
            let schema = builtin::schema("io.k8s.api.core.v1.Event");
            let _ = decode(&noise, schema);
            let _ = decode(&[MAGIC, &noise].concat(), schema);
            let _ = message(&noise, schema, 0);
        }
    }
}
