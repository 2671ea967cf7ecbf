//! From the bytes of a body to an object of the kind that the path names.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::dev::apiserver::object::{meta_mut, object_mut};
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::request::query::FieldValidation;
use crate::dev::apiserver::schema::decode::{Report, decode};
use crate::dev::apiserver::schema::{self, Schema, proto, structural};
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::{FieldError, Status};

/// Whether a content type means YAML.
fn is_yaml(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    media == "application/yaml" || media.ends_with("+yaml")
}

/// Reads a body as JSON, or as YAML or protobuf where the content type says so.
pub(super) fn json(call: &Call, schema: &Schema) -> Result<Value, Status> {
    let media = call.content_type.split(';').next().unwrap_or_default().trim();
    if media == proto::MEDIA && proto::known(schema) {
        return proto::decode(&call.body, schema).map_err(Status::bad_request);
    }
    if is_yaml(media) {
        return crate::manifest::document(&call.body)
            .map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")));
    }
    if !media.is_empty() && media != "*/*" && !media.contains("json") {
        return Err(Status::unsupported_media(media, &["application/json", "application/yaml"]));
    }
    serde_json::from_slice(&call.body).map_err(|e| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {e}",
            call.resource.kind
        ))
    })
}

/// Reads the object in a body.
pub(super) fn body(state: &mut State, call: &Call) -> Result<Value, Status> {
    let value = json(call, &call.resource.schema)?;
    object(state, call, value)
}

fn cannot(call: &Call, why: &str) -> Status {
    let kind = &call.resource.kind;
    let version = &call.resource.version;
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// Reads an applied configuration: as [`object`] does, but without defaults, which nobody applied.
pub(super) fn applied(state: &mut State, call: &Call, value: Value) -> Result<Value, Status> {
    read(state, call, value, false)
}

/// Makes of a value an object of the call's kind: its type, its fields' types, its unknown fields, its defaults.
///
/// # Errors
/// 400 where it cannot be decoded, 422 where a custom resource does not fit its schema.
pub(super) fn object(state: &mut State, call: &Call, value: Value) -> Result<Value, Status> {
    read(state, call, value, true)
}

fn read(state: &mut State, call: &Call, value: Value, defaults: bool) -> Result<Value, Status> {
    let mut value = typed(call, value)?;
    let resource = &call.resource;
    let mut report = Report::default();
    if resource.custom.is_some() {
        if let Some(meta) = value.get_mut("metadata") {
            let mut inner = Report::default();
            decode(meta, schema::builtin::object_meta(), &mut inner);
            report.unknown.extend(inner.unknown.into_iter().map(|f| format!("metadata.{f}")));
            report.error = inner.error;
        }
        structural::prune(&mut value, &resource.schema, true, "", &mut report.unknown);
        if defaults {
            structural::default(&mut value, &resource.schema);
        }
    } else {
        decode(&mut value, &resource.schema, &mut report);
    }
    if let Some(error) = report.error {
        return Err(cannot(call, &error));
    }
    unknown(state, call, report.unknown)?;
    Ok(value)
}

/// Refuses, warns of or passes over unknown fields, as the request asks.
fn unknown(state: &mut State, call: &Call, mut fields: Vec<String>) -> Result<(), Status> {
    if fields.is_empty() {
        return Ok(());
    }
    fields.sort();
    let texts: Vec<String> = fields.iter().map(|f| format!("unknown field {f:?}")).collect();
    match call.query.field_validation {
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            state.warnings.extend(texts);
            Ok(())
        }
        FieldValidation::Strict => Err(cannot(call, &format!("strict decoding error: {}", texts.join(", ")))),
    }
}

/// Checks that an object is of the kind that the path names, and says so in it.
fn typed(call: &Call, mut value: Value) -> Result<Value, Status> {
    let (kind, version) = (&call.resource.kind, call.resource.api_version());
    if !value.is_object() {
        return Err(cannot(call, &format!("json: cannot unmarshal {} into Go value of type {kind}", go_type(&value))));
    }
    let given = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (given_kind, given_version) = (given("kind"), given("apiVersion"));
    if !given_version.is_empty() && given_version != version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({version})"
        )));
    }
    if !given_kind.is_empty() && given_kind != *kind {
        return Err(Status::new(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            format!(
                "{given_kind} in version {:?} cannot be handled as a {kind}: converting ({given_kind}) to ({kind}): \
                 unknown conversion",
                call.resource.version
            ),
        ));
    }
    let map = object_mut(&mut value);
    map.insert("kind".into(), kind.clone().into());
    map.insert("apiVersion".into(), version.into());
    if map.get("metadata").is_none_or(Value::is_null) {
        map.insert("metadata".into(), Value::Object(Map::new()));
    }
    if !map["metadata"].is_object() {
        let given = go_type(&map["metadata"]);
        return Err(cannot(
            call,
            &format!("json: cannot unmarshal {given} into Go struct field {kind}.metadata of type v1.ObjectMeta"),
        ));
    }
    meta_mut(&mut value).remove("selfLink");
    Ok(value)
}

/// A value's type, as Go's JSON errors name it.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What is wrong with a custom resource by its schema.
pub(super) fn misfits(call: &Call, object: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    if call.resource.custom.is_some() {
        schema::validate::validate(object, &call.resource.schema, "", &mut out);
    }
    out
}
