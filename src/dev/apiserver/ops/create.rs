//! POST.

use http::StatusCode;

use super::write::{Tracking, store_new};
use super::{Outcome, decode, token};
use crate::dev::apiserver::object::meta_str;
use crate::dev::apiserver::request::{Call, Sub};
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::Status;

/// Makes an object. Its uid is the server's choice, whatever the body says.
pub(super) fn create(state: &mut State, call: &Call) -> Result<Outcome, Status> {
    if call.sub == Some(Sub::Token) {
        return token::create(state, call);
    }
    if call.name.is_some() || (call.resource.namespaced && call.namespace.is_none()) {
        return Err(Status::method_not_allowed());
    }
    let new = decode::body(state, call)?;
    if !matches!(meta_str(&new, "resourceVersion"), "" | "0") {
        return Err(Status::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    store_new(state, call, new, StatusCode::CREATED, Tracking::Here)
}
