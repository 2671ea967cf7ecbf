//! Leases, as coordination.k8s.io/v1 has them.

use serde_json::Value;

use super::names;
use crate::dev::apiserver::status::FieldError;

/// Checks a Lease's spec.
pub(crate) fn validate(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let Some(spec) = new.get("spec") else { return out };
    let number = |key: &str| spec.get(key).filter(|v| v.is_number());
    if let Some(n) = number("leaseDurationSeconds").filter(|n| n.as_i64().is_none_or(|n| n <= 0)) {
        out.push(FieldError::invalid("spec.leaseDurationSeconds", n, "must be greater than 0"));
    }
    if let Some(n) = number("leaseTransitions").filter(|n| n.as_i64().is_none_or(|n| n < 0)) {
        out.push(FieldError::invalid("spec.leaseTransitions", n, "must be greater than or equal to 0"));
    }
    let strategy = spec.get("strategy").and_then(Value::as_str);
    if let Some(s) = strategy {
        if s.contains('/') {
            for msg in names::qualified(s) {
                out.push(FieldError::invalid("spec.strategy.strategy", &s.into(), &msg));
            }
        } else if s != "OldestEmulationVersion" {
            let known = ["\"OldestEmulationVersion\"".to_owned()];
            out.push(FieldError::unsupported("spec.strategy.strategy", &s.into(), &known));
        }
    }
    let preferred = spec.get("preferredHolder").and_then(Value::as_str).is_some_and(|p| !p.is_empty());
    if preferred && strategy.is_none_or(str::is_empty) {
        let msg = "may only be specified if `strategy` is defined";
        out.push(FieldError::forbidden("spec.preferredHolder", msg));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_and_transitions() {
        let check = |spec: Value| -> Vec<String> {
            validate(&json!({"spec": spec}), None).into_iter().map(|e| format!("{}: {}", e.field, e.message)).collect()
        };
        assert!(check(json!({"leaseDurationSeconds": i32::MAX, "leaseTransitions": 0})).is_empty());
        assert!(check(json!({})).is_empty());
        assert!(validate(&json!({}), None).is_empty());
        assert_eq!(
            check(json!({"leaseDurationSeconds": 0, "leaseTransitions": -1})),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
        assert_eq!(check(json!({"preferredHolder": "a"})).len(), 1);
        assert_eq!(check(json!({"strategy": "x"})).len(), 1);
    }
}
