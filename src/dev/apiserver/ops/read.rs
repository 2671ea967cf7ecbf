//! GET of one object.

use http::StatusCode;

use super::{Outcome, Staleness};
use crate::dev::apiserver::object::Key;
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::Status;

/// Reads one object. Without a resourceVersion the answer is the newest; with one it may be stale, never older than
/// asked.
pub(super) fn get(state: &State, call: &Call, stale: Staleness) -> Result<Outcome, Status> {
    let key = Key::new(call.ns(), call.named());
    let current = state.store.revision();
    if let Some(wanted) = call.query.resource_version.filter(|w| *w > current) {
        return Err(Status::too_large_revision(wanted, current));
    }
    let found = match stale {
        Some(at) => state.store.table(call.resource.table).get_at(&key, at.max(state.store.compacted())),
        None => state.get(&call.resource, &key),
    };
    match found {
        Some(object) => Ok(Outcome::Object(StatusCode::OK, object)),
        None => Err(Status::not_found(&call.resource, call.named())),
    }
}
