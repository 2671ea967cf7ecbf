//! Patches: what each form makes of an object.

mod strategic;

use http::StatusCode;
use serde_json::Value;

use super::kinds::Resource;
use super::status::Status;
pub(crate) use strategic::strategic;

/// The most operations that a JSON patch may have.
const OPERATIONS_MAX: usize = 10_000;
/// The most bytes that the copies of a JSON patch may add, as upstream bounds them.
const COPIED_MAX: usize = 3 * 1024 * 1024;

/// The form of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, for kinds that are built in.
    Strategic,
    /// Server-side apply.
    Apply,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The form that a content type names, where the kind takes it.
pub(crate) fn form(content_type: &str, resource: &Resource) -> Result<Form, Status> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        JSON => Ok(Form::Json),
        MERGE => Ok(Form::Merge),
        STRATEGIC if resource.custom.is_none() => Ok(Form::Strategic),
        APPLY => Ok(Form::Apply),
        _ if resource.custom.is_some() => Err(Status::unsupported_media(media, &[JSON, MERGE, APPLY])),
        _ => Err(Status::unsupported_media(media, &[JSON, MERGE, STRATEGIC, APPLY])),
    }
}

/// Carries out a JSON patch. Copies are counted, since a few of them can double a document many times over.
fn json(document: &mut Value, operations: &[json_patch::PatchOperation]) -> Result<(), Status> {
    let mut copied = 0;
    for operation in operations {
        if let json_patch::PatchOperation::Copy(copy) = operation {
            copied += document.pointer(copy.from.as_str()).map_or(0, |v| v.to_string().len());
            if copied > COPIED_MAX {
                let text = format!("Unable to complete: the accumulated size increase of copies is over {COPIED_MAX}");
                return Err(Status::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", text));
            }
        }
        json_patch::patch(document, std::slice::from_ref(operation)).map_err(|e| {
            let text = format!("the server rejected our request due to an error in our request: {e}");
            Status::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", text)
        })?;
    }
    Ok(())
}

/// The object that a patch (of a form other than apply) makes of `old`.
pub(crate) fn patched(form: Form, resource: &Resource, old: &Value, patch: &Value) -> Result<Value, Status> {
    let mut new = old.clone();
    match form {
        Form::Json => {
            let operations: json_patch::Patch = serde_json::from_value(patch.clone())
                .map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?;
            if operations.0.len() > OPERATIONS_MAX {
                let text = format!(
                    "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
                    operations.0.len()
                );
                return Err(Status::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", text));
            }
            json(&mut new, &operations)?;
        }
        Form::Merge | Form::Apply => {
            if !patch.is_object() {
                return Err(Status::bad_request("error decoding patch: json: cannot unmarshal into a map"));
            }
            json_patch::merge(&mut new, patch);
        }
        Form::Strategic => {
            let Value::Object(map) = patch else {
                return Err(Status::bad_request("error decoding patch: json: cannot unmarshal into a map"));
            };
            strategic(&mut new, map, &resource.schema).map_err(Status::bad_request)?;
        }
    }
    Ok(new)
}
