//! The verbs. Each runs whole under the one lock, without waiting: that is what makes it atomic.

mod bootstrap;
mod create;
mod decode;
mod delete;
mod expire;
mod list;
mod patch;
mod read;
mod reap;
mod token;
mod update;
mod watch;
mod write;

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::object::Object;
use super::request::{Call, Verb};
use super::state::State;
use super::status::Status;
pub(crate) use bootstrap::bootstrap;
pub(crate) use list::Page;
pub(crate) use watch::Opened;

/// What a verb comes to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// An object as it is stored.
    Object(StatusCode, Arc<Object>),
    /// An object in its stored form that is not stored: a dry run, or the last words of one that is gone.
    Draft(StatusCode, Value),
    /// A Status, or another answer that is no object.
    Status(StatusCode, Value),
    /// A page of a collection.
    List(Page),
    /// A watch, to be followed from here.
    Watch(Opened),
}

/// How stale a read is to be, where a fault rule says so: a revision, which may be compacted.
pub(crate) type Staleness = Option<u64>;

/// Carries out a request.
///
/// # Errors
/// The Status to answer with. Nothing was changed then.
pub(crate) fn perform(state: &mut State, call: &Call, stale: Staleness) -> Result<Outcome, Status> {
    if state.denies(call) {
        return Err(Status::forbidden(
            &call.resource,
            call.named(),
            &call.client,
            call.verb.as_str(),
            call.sub.map(super::request::Sub::as_str),
            call.namespace.as_deref(),
        ));
    }
    state.store.age(tokio::time::Instant::now());
    match call.verb {
        Verb::Get => read::get(state, call, stale),
        Verb::List => list::list(state, call, stale),
        Verb::Watch => watch::open(state, call, stale),
        Verb::Create => create::create(state, call),
        Verb::Update => update::put(state, call),
        Verb::Patch => patch::patch(state, call),
        Verb::Delete => delete::one(state, call),
        Verb::DeleteCollection => delete::collection(state, call),
    }
}
