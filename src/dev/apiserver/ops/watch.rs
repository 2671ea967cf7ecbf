//! Opening a watch: from where it starts and what it shows first.

use std::sync::Arc;

use super::{Outcome, Staleness};
use crate::dev::apiserver::object::Object;
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::request::query::Match;
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::{FieldError, Status};

/// A watch that has been let in.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Shown first, each as ADDED.
    pub(crate) initial: Vec<Arc<Object>>,
    /// Whether a bookmark marks the end of what is shown first.
    pub(crate) mark_initial: bool,
    /// Changes after this revision follow.
    pub(crate) after: u64,
    /// The incarnation of the store; the watch ends with it.
    pub(crate) incarnation: u64,
    /// Set where the revision asked for is compacted already: the watch opens, says so and ends, as upstream's does.
    pub(crate) too_old: Option<u64>,
    /// Wakes on changes.
    pub(crate) news: std::sync::Arc<tokio::sync::Notify>,
}

/// Lets a watch in.
///
/// Without a resourceVersion, and with 0, it first shows what is there. With any other it starts after that revision,
/// even where the server has not reached it (a restored etcd): nothing is shown until it has.
pub(super) fn open(state: &State, call: &Call, stale: Staleness) -> Result<Outcome, Status> {
    let q = &call.query;
    let store = &state.store;
    let current = store.revision();
    let streams = q.send_initial_events == Some(true);
    match (q.send_initial_events, q.version_match) {
        (None, None) | (Some(_), Some(Match::NotOlderThan)) => {}
        (None, Some(_)) => {
            return Err(invalid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
        }
        (Some(_), _) => {
            return Err(invalid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
    }
    let from = q.resource_version.filter(|v| *v > 0);
    let shows = streams || (from.is_none() && q.send_initial_events != Some(false));
    let table = store.table(call.resource.table);
    let mut opened = Opened {
        initial: Vec::new(),
        mark_initial: streams && q.bookmarks,
        after: current,
        incarnation: store.incarnation(),
        too_old: None,
        news: table.news(),
    };
    if shows {
        if let Some(wanted) = from.filter(|w| *w > current) {
            return Err(Status::too_large_revision(wanted, current));
        }
        let chosen = |o: &&Arc<Object>| {
            call.namespace.as_deref().is_none_or(|ns| o.namespace() == ns) && q.selector.matches(o.value())
        };
        let at = stale.map_or(current, |s| s.clamp(store.compacted(), current));
        opened.initial = if at == current {
            table.range(call.namespace.as_deref(), None).filter(chosen).cloned().collect()
        } else {
            table.at(at).values().filter(chosen).cloned().collect()
        };
        opened.after = at;
    } else if let Some(from) = from {
        opened.after = from;
        if store.readable(from).is_err() {
            opened.too_old = Some(store.compacted());
        }
    }
    Ok(Outcome::Watch(opened))
}

fn invalid(why: &str) -> Status {
    Status::invalid("meta.k8s.io", "ListOptions", "", &[FieldError::forbidden("resourceVersionMatch", why)])
}
