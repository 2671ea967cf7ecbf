//! DELETE, of one object and of a collection.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{Outcome, Page, decode, reap};
use crate::dev::apiserver::object::{Key, Object, has_finalizers};
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::schema::builtin;
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::{FieldError, Status, deleted};

/// What a delete asks for beside the name.
#[derive(Debug, Default)]
struct DeleteOptions {
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: bool,
}

impl DeleteOptions {
    /// Reads the options from the body, and those that the query has.
    fn read(call: &Call) -> Result<Self, Status> {
        let mut out = Self { dry_run: call.query.dry_run, ..Self::default() };
        let mut policy = call.query.propagation_policy.clone();
        if !call.body.is_empty() {
            let body = decode::json(call, builtin::schema(builtin::DELETE_OPTIONS))?;
            let text = |at: Option<&Value>| at.and_then(Value::as_str).map(str::to_owned);
            let preconditions = body.get("preconditions");
            out.uid = text(preconditions.and_then(|p| p.get("uid")));
            out.resource_version = text(preconditions.and_then(|p| p.get("resourceVersion")));
            policy = text(body.get("propagationPolicy")).or(policy);
            let runs = body.get("dryRun").and_then(Value::as_array);
            out.dry_run |= runs.is_some_and(|r| r.iter().any(|v| v == "All"));
        }
        if let Some(policy) = policy.filter(|p| !["Foreground", "Background", "Orphan"].contains(&p.as_str())) {
            let known = ["\"Background\"", "\"Foreground\"", "\"Orphan\""].map(str::to_owned);
            let error = FieldError::unsupported("propagationPolicy", &policy.into(), &known);
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &[error]));
        }
        Ok(out)
    }

    fn check(&self, call: &Call, found: &Object) -> Result<(), Status> {
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != found.uid()) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have \
                 been deleted and then recreated",
                found.uid()
            );
            return Err(Status::conflict(&call.resource, found.name(), &why));
        }
        let there = found.revision().to_string();
        if let Some(rv) = self.resource_version.as_deref().filter(|rv| *rv != there) {
            let why = format!(
                "the ResourceVersion in the precondition ({rv}) does not match the ResourceVersion in record \
                 ({there}). The object might have been modified"
            );
            return Err(Status::conflict(&call.resource, found.name(), &why));
        }
        Ok(())
    }
}

/// Deletes one object; with finalizers, marks it and leaves it to them.
pub(super) fn one(state: &mut State, call: &Call) -> Result<Outcome, Status> {
    let options = DeleteOptions::read(call)?;
    let key = Key::new(call.ns(), call.named());
    let found = state.get(&call.resource, &key).ok_or_else(|| Status::not_found(&call.resource, call.named()))?;
    options.check(call, &found)?;
    Ok(remove(state, call, &found, options.dry_run))
}

/// Deletes what a collection's selector selects. The answer is the list of it.
pub(super) fn collection(state: &mut State, call: &Call) -> Result<Outcome, Status> {
    let options = DeleteOptions::read(call)?;
    let selector = &call.query.selector;
    let items: Vec<Arc<Object>> = state
        .store
        .table(call.resource.table)
        .range(call.namespace.as_deref(), None)
        .filter(|o| selector.matches(o.value()))
        .cloned()
        .collect();
    for item in &items {
        options.check(call, item)?;
    }
    for item in &items {
        remove(state, call, item, options.dry_run);
    }
    Ok(Outcome::List(Page { revision: state.store.revision(), items, continue_token: None, remaining: None }))
}

fn remove(state: &mut State, call: &Call, found: &Arc<Object>, dry_run: bool) -> Outcome {
    let resource = &call.resource;
    let left = if dry_run {
        Some(found.clone()).filter(|o| has_finalizers(o.value()))
    } else {
        reap::delete(state, call, resource, found)
    };
    match left {
        Some(left) => Outcome::Object(StatusCode::OK, left),
        None if resource.rules.returns_deleted => Outcome::Object(StatusCode::OK, found.clone()),
        None => Outcome::Status(StatusCode::OK, deleted(resource, found.name(), found.uid())),
    }
}
