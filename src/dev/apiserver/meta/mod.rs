//! What the server says about itself: health, version, discovery, OpenAPI documents.

mod discovery;
mod openapi;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::body::ResponseBody;
use super::core::{Core, json as as_json, refusal};
use super::object::to_bytes;
use super::status::Status;

/// The paths that `/` lists, beside those of the API groups.
const PATHS: [&str; 7] = ["/api", "/api/v1", "/apis", "/healthz", "/openapi/v3", "/readyz", "/version"];

/// Answers a request for a path that is no resource's.
pub(crate) fn answer(core: &Core, head: &Parts, parts: &[String]) -> Response<ResponseBody> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return refusal(&Status::method_not_allowed());
    }
    let accept = head.headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let ok = |value: Value| as_json(StatusCode::OK, to_bytes(&value));
    match parts.as_slice() {
        [] => ok(json!({ "paths": paths(core) })),
        ["healthz" | "livez" | "readyz", ..] => text("ok"),
        ["version"] => ok(version(&core.options.version)),
        ["openapi", "v3"] => ok(openapi::root(&core.state().registry)),
        ["openapi", "v3", "api", v] => document(core, "", v),
        ["openapi", "v3", "apis", group, v] => document(core, group, v),
        ["api" | "apis", ..] => {
            let state = core.state();
            match discovery::answer(&state.registry, &parts, accept) {
                Some(found) => {
                    let mut response = ok(found.value);
                    if let Ok(media) = HeaderValue::from_str(&found.media) {
                        response.headers_mut().insert(CONTENT_TYPE, media);
                    }
                    response
                }
                None => refusal(&Status::no_such_path()),
            }
        }
        _ => refusal(&Status::no_such_path()),
    }
}

fn document(core: &Core, group: &str, version: &str) -> Response<ResponseBody> {
    match openapi::document(&core.state().registry, group, version) {
        Some(document) => as_json(StatusCode::OK, to_bytes(&document)),
        None => refusal(&Status::no_such_path()),
    }
}

fn text(text: &'static str) -> Response<ResponseBody> {
    let mut response = as_json(StatusCode::OK, Bytes::from_static(text.as_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn paths(core: &Core) -> Vec<String> {
    let mut out: Vec<String> = PATHS.iter().map(|p| (*p).to_owned()).collect();
    for resource in core.state().registry.all().filter(|r| !r.group.is_empty()) {
        let path = format!("/apis/{}/{}", resource.group, resource.version);
        if !out.contains(&path) {
            out.push(path);
        }
    }
    out.sort();
    out
}

fn version(version: &str) -> Value {
    let mut numbers = version.trim_start_matches('v').split('.');
    json!({
        "major": numbers.next().unwrap_or_default(), "minor": numbers.next().unwrap_or_default(),
        "gitVersion": version, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
