//! TokenRequest: a token for a ServiceAccount. It has the form of a JWT and is signed by nobody.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Outcome, decode};
use crate::dev::apiserver::object::Key;
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::schema::builtin;
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::{FieldError, Status};

/// Seconds that a token lasts where the request does not say.
const LASTS: i64 = 3600;

/// Makes a token.
pub(super) fn create(state: &mut State, call: &Call) -> Result<Outcome, Status> {
    let account = state
        .get(&call.resource, &Key::new(call.ns(), call.named()))
        .ok_or_else(|| Status::not_found(&call.resource, call.named()))?;
    let request = decode::json(call, builtin::schema(builtin::TOKEN_REQUEST))?;
    let spec = request.get("spec").cloned().unwrap_or_else(|| json!({}));
    let lasts = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(LASTS);
    if !(600..=1 << 32).contains(&lasts) {
        let msg = "may not specify a duration less than 10 minutes or larger than 2^32 seconds";
        let error = FieldError::invalid("spec.expirationSeconds", &lasts.into(), msg);
        return Err(Status::invalid("authentication.k8s.io", "TokenRequest", "", &[error]));
    }
    let audiences = match spec.get("audiences") {
        Some(Value::Array(a)) if !a.is_empty() => Value::Array(a.clone()),
        _ => json!(["https://kubernetes.default.svc.cluster.local"]),
    };
    let now = state.clock.wall();
    let expires = now.checked_add(SignedDuration::from_secs(lasts)).unwrap_or(now);
    let part = |v: Value| URL_SAFE_NO_PAD.encode(v.to_string());
    let claims = json!({
        "aud": audiences, "iat": now.as_second(), "nbf": now.as_second(), "exp": expires.as_second(),
        "iss": "https://kubernetes.default.svc.cluster.local", "jti": state.new_uid(),
        "sub": format!("system:serviceaccount:{}:{}", call.ns(), call.named()),
        "kubernetes.io": {
            "namespace": call.ns(), "serviceaccount": {"name": call.named(), "uid": account.uid()},
        },
    });
    let token = format!("{}.{}.{}", part(json!({"alg": "none", "typ": "JWT"})), part(claims), "unsigned");
    let answer = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": call.named(), "namespace": call.ns(), "creationTimestamp": state.timestamp()},
        "spec": {"audiences": audiences, "expirationSeconds": lasts},
        "status": {"token": token, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
    });
    Ok(Outcome::Status(StatusCode::CREATED, answer))
}
