//! Events go after an hour, as on a real server.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::dev::apiserver::object::{Key, meta_str};
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::state::State;

/// How long an Event is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(1);
/// How often Events are looked through, at most.
const EVERY: Duration = Duration::from_mins(5);

/// When an Event is made: removes those that are too old.
pub(super) fn expire(state: &mut State, call: &Call) {
    if call.resource.kind != "Event" || call.resource.custom.is_some() || state.expired.elapsed() < EVERY {
        return;
    }
    state.expired = Instant::now();
    let Ok(before) = state.clock.wall().checked_sub(KEPT) else { return };
    let old: Vec<Key> = state
        .store
        .table(call.resource.table)
        .range(None, None)
        .filter(|o| meta_str(o.value(), "creationTimestamp").parse::<Timestamp>().is_ok_and(|t| t < before))
        .map(|o| o.key().clone())
        .collect();
    for key in old {
        state.remove(call, &call.resource, &key);
    }
}
