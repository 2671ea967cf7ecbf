//! POST.

use http::StatusCode;

use super::{Outcome, write};
use crate::dev::apiserver::object::meta_str;
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::Status;

/// Makes an object. Its uid is the server's choice, whatever the body says.
pub(super) fn create(state: &mut State, call: &Call) -> Result<Outcome, Status> {
    if call.name.is_some() || (call.resource.namespaced && call.namespace.is_none()) {
        return Err(Status::method_not_allowed());
    }
    let new = write::body(call)?;
    if !matches!(meta_str(&new, "resourceVersion"), "" | "0") {
        return Err(Status::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    write::store_new(state, call, new, StatusCode::CREATED)
}
