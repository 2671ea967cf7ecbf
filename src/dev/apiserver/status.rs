//! Answers that are errors, in the form a real API server gives them: a `Status` with reason, details and causes.
//!
//! Texts and fields follow k8s.io/apimachinery's `api/errors` and `util/validation/field`, since clients (and people)
//! match on them.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::kinds::Resource;

/// One field that was refused, as `util/validation/field` words it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// The path, as in `spec.leaseDurationSeconds`.
    pub(crate) field: String,
    /// The machine-readable reason, as in `FieldValueInvalid`.
    pub(crate) reason: &'static str,
    /// The text after the path.
    pub(crate) message: String,
}

impl FieldError {
    /// The value is there and is wrong.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {detail}", shown(value)),
        }
    }

    /// The value is there and is wrong; `shown` is printed as it stands.
    pub(crate) fn invalid_raw(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueInvalid", message: format!("Invalid value: {shown}: {detail}") }
    }

    /// The value is missing.
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { field: field.into(), reason: "FieldValueRequired", message }
    }

    /// The value may not be set here.
    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueForbidden", message: format!("Forbidden: {detail}") }
    }

    /// The value stands twice.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {}", shown(value)),
        }
    }

    /// The value is not one of a fixed set.
    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[String]) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {}: supported values: {}", shown(value), supported.join(", ")),
        }
    }

    /// The value is longer than allowed.
    pub(crate) fn too_long(field: impl Into<String>, max: usize) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {max} bytes"),
        }
    }

    /// The value is of another type than the schema says.
    pub(crate) fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: {}: {detail}", shown(value)),
        }
    }
}

/// A value as Go's `field.Error` prints it: strings quoted, numbers and booleans plain, the rest as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => format!("{:?}", value.to_string()),
        other => other.to_string(),
    }
}

/// An error answer. Boxed inside, so that a `Result` that carries it stays small.
#[derive(Debug, Clone)]
pub(crate) struct Status(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Map<String, Value>,
    meta_continue: Option<String>,
}

impl Status {
    /// An error with a code, a reason and a text, without details.
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, reason, message: message.into(), details: Map::new(), meta_continue: None }))
    }

    fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.details.insert(key.to_owned(), value.into());
        self
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        if !name.is_empty() {
            self.0.details.insert("name".into(), name.into());
        }
        if !group.is_empty() {
            self.0.details.insert("group".into(), group.into());
        }
        self.0.details.insert("kind".into(), kind.into());
        self
    }

    fn about_resource(self, resource: &Resource, name: &str) -> Self {
        self.about(&resource.group, &resource.plural, name)
    }

    /// 404 for an object.
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{} {name:?} not found", resource.qualified()))
            .about_resource(resource, name)
    }

    /// 404 for a path that nothing serves.
    pub(crate) fn no_such_path() -> Self {
        let mut s = Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
        s.0.details = Map::new();
        s
    }

    /// 409: the name is taken.
    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let text = format!("{} {name:?} already exists", resource.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", text).about_resource(resource, name)
    }

    /// 409: a precondition (uid or resourceVersion) does not hold.
    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let text = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", text).about_resource(resource, name)
    }

    /// 409: the resourceVersion is not the newest.
    pub(crate) fn stale_write(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 422: fields were refused. `kind` is a kind, or (for a missing resourceVersion) a resource, as upstream has it.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut texts: Vec<String> = Vec::new();
        for e in errors {
            let text = if e.field.is_empty() { e.message.clone() } else { format!("{}: {}", e.field, e.message) };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes: Vec<Value> =
            errors.iter().map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field})).collect();
        let text = format!("{qualified} {name:?} is invalid: {text}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", text).about(group, kind, name).detail("causes", causes)
    }

    /// 400.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 403, worded as the RBAC authorizer words it.
    pub(crate) fn forbidden(
        resource: &Resource,
        name: &str,
        user: &str,
        verb: &str,
        sub: Option<&str>,
        namespace: Option<&str>,
    ) -> Self {
        let what = match sub {
            Some(sub) => format!("{}/{sub}", resource.plural),
            None => resource.plural.clone(),
        };
        let scope = match namespace {
            Some(ns) => format!("in the namespace {ns:?}"),
            None => "at the cluster scope".to_owned(),
        };
        let why = format!("User {user:?} cannot {verb} resource {what:?} in API group {:?} {scope}", resource.group);
        Self::forbidden_because(resource, name, &why)
    }

    /// 403 for another reason than RBAC's.
    pub(crate) fn forbidden_because(resource: &Resource, name: &str, why: &str) -> Self {
        let text = if name.is_empty() {
            format!("{} is forbidden: {why}", resource.qualified())
        } else {
            format!("{} {name:?} is forbidden: {why}", resource.qualified())
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", text).about_resource(resource, name)
    }

    /// 410: the revision asked for has been compacted.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 410 for a continue token, with one that goes on from the newest revision instead.
    pub(crate) fn expired_continue(token: String) -> Self {
        let text = "The provided continue parameter is too old to display a consistent list result. You can start a \
                    new list without the continue parameter, or use the continue token in this response to retrieve \
                    the remainder of the results. Continuing with the provided token results in an inconsistent list \
                    - objects that were created, modified, or deleted between the time the first chunk was returned \
                    and now may show up in the list.";
        let mut s = Self::expired(text);
        s.0.meta_continue = Some(token);
        s
    }

    /// 504: the caller wants a revision that this server has not reached.
    pub(crate) fn too_large_revision(wanted: u64, current: u64) -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Too large resource version: {wanted}, current: {current}"),
        )
        .detail("causes", json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]))
        .detail("retryAfterSeconds", 1)
    }

    /// 405.
    pub(crate) fn method_not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", text)
    }

    /// 415.
    pub(crate) fn unsupported_media(given: &str, accepted: &[&str]) -> Self {
        let text = format!(
            "the body of the request was in an unknown format ({given:?}) - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", text)
    }

    /// 413.
    pub(crate) fn too_large(limit: usize) -> Self {
        let text = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", text)
    }

    /// The Status that goes with a code that a fault rule asks for.
    pub(crate) fn of_code(code: StatusCode, retry_after: Option<u64>) -> Self {
        let (reason, message) = match code.as_u16() {
            400 => ("BadRequest", "the server rejected our request for an unknown reason"),
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "forbidden"),
            404 => ("NotFound", "the server could not find the requested resource"),
            409 => ("Conflict", "the server reported a conflict"),
            410 => ("Expired", "The resourceVersion for the provided watch is too old."),
            429 => ("TooManyRequests", "Too many requests, please try again later."),
            500 => ("InternalError", "Internal error occurred: etcdserver: request timed out"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "the server was unable to return a response in the time allotted"),
            _ => ("Unknown", "an error on the server has prevented the request from succeeding"),
        };
        let status = Self::new(code, reason, message);
        match retry_after {
            Some(s) => status.detail("retryAfterSeconds", s),
            None => status,
        }
    }

    /// The same with another text.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// Adds the causes that server-side apply gives with a conflict.
    pub(crate) fn with_causes(self, causes: Vec<Value>) -> Self {
        self.detail("causes", causes)
    }

    /// The HTTP code.
    pub(crate) fn code(&self) -> StatusCode {
        self.0.code
    }

    /// The text for people.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Seconds for a Retry-After header.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.0.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// The Status object.
    pub(crate) fn to_value(&self) -> Value {
        let Inner { code, reason, message, details, meta_continue } = &*self.0;
        let mut meta = Map::new();
        if let Some(token) = meta_continue {
            meta.insert("continue".into(), token.clone().into());
        }
        let mut v = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": meta, "status": "Failure",
            "message": message, "code": code.as_u16(),
        });
        if !reason.is_empty() {
            v["reason"] = (*reason).into();
        }
        if !details.is_empty() {
            v["details"] = Value::Object(details.clone());
        }
        v
    }
}

/// The Status that answers a delete.
pub(crate) fn deleted(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = Map::new();
    details.insert("name".into(), name.into());
    if !resource.group.is_empty() {
        details.insert("group".into(), resource.group.clone().into());
    }
    details.insert("kind".into(), resource.plural.clone().into());
    details.insert("uid".into(), uid.into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
