//! What happens in an election, told to whoever wants to know: metrics, the readiness page, a fleet's judge, a test.
//!
//! One enum and one method, so that nothing is counted twice and a new listener needs no new plumbing.

use super::aware::panic_text;
use super::{FencingToken, Reason};
use crate::bucket::Bucket;
use crate::clock::Instant;
use arc_swap::ArcSwap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// One thing that happened. Times are on the clock of the process that tells.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A take was answered and judged: the term stands, its gate still shut.
    TermBegun {
        /// The bucket.
        bucket: Bucket,
        /// Its token; none in strategies without Leases.
        token: Option<FencingToken>,
        /// When the take was judged.
        at: Instant,
        /// The first deadline.
        deadline: Instant,
    },
    /// `promote` returned Ok and the gate is open.
    Promoted {
        /// The bucket.
        bucket: Bucket,
        /// The token of the term.
        token: Option<FencingToken>,
        /// When, and not after the first guard was given.
        at: Instant,
    },
    /// `promote` failed or took longer than renew-deadline.
    PromoteFailed {
        /// The bucket.
        bucket: Bucket,
        /// The author's error, or that it hung.
        why: String,
    },
    /// A renewal counted.
    DeadlineMoved {
        /// The bucket.
        bucket: Bucket,
        /// The token of the term.
        token: Option<FencingToken>,
        /// The deadline as it now stands.
        deadline: Instant,
    },
    /// The gate has shut: so many guards were out.
    GuardsOut {
        /// The bucket.
        bucket: Bucket,
        /// The token of the term.
        token: Option<FencingToken>,
        /// How many.
        guards: u64,
        /// When.
        at: Instant,
    },
    /// The gate is shut, the last guard is in and `demote` has returned.
    TermEnded {
        /// The bucket.
        bucket: Bucket,
        /// The token of the term.
        token: Option<FencingToken>,
        /// Why.
        reason: Reason,
        /// Until when anything acted at the latest: the last guard's drop, and never later than the deadline. Of a term
        /// whose gate never opened: when that was decided.
        acted_until: Instant,
        /// When the term was over, `demote` included.
        at: Instant,
    },
    /// A strategy without Leases assumes a bucket, since this is the replica of that ordinal.
    Assumed {
        /// The bucket.
        bucket: Bucket,
        /// The ordinal of the pod in its StatefulSet.
        ordinal: u32,
    },
    /// A Lease request was answered or given up.
    Request {
        /// get, list, watch, create, update or delete.
        verb: &'static str,
        /// ok, conflict, not_found, forbidden, timeout, or the class of the failure.
        outcome: &'static str,
        /// How long it took.
        took: Duration,
    },
    /// Something a person should know, as a short code and a sentence; the same again while it lasts is not repeated.
    Notice {
        /// A stable code, such as `foreign-holder`.
        code: &'static str,
        /// The sentence.
        text: String,
    },
}

/// A listener. Called from the election's own tasks: it must be quick and must not block.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// A shared listener.
pub type SharedObserver = Arc<dyn Observer>;

/// Tells one listener. Its panic is logged and goes no further: an election does not die of its metrics.
pub fn tell(observer: &dyn Observer, event: &Event) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| observer.observe(event))) {
        tracing::error!(why = panic_text(&*panic), ?event, "an observer panicked: it may have missed this event");
    }
}

/// Listeners that join while it is told, each once.
#[derive(Default)]
pub struct Listeners(ArcSwap<Vec<SharedObserver>>);

impl Listeners {
    /// One more, unless it is there already.
    pub fn join(&self, one: &SharedObserver) {
        self.0.rcu(|all| {
            let known = all.iter().any(|o| Arc::ptr_eq(o, one));
            let new = (!known).then(|| Arc::clone(one));
            all.iter().cloned().chain(new).collect::<Vec<_>>()
        });
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Listeners").field(&self.0.load().len()).finish()
    }
}

impl Observer for Listeners {
    fn observe(&self, event: &Event) {
        for one in self.0.load().iter() {
            tell(&**one, event);
        }
    }
}

/// Several listeners as one. Where one panics the others are told all the same.
#[derive(Clone, Default)]
pub struct Observers(Vec<SharedObserver>);

impl Observers {
    /// Those given.
    pub fn new(all: impl IntoIterator<Item = SharedObserver>) -> Self {
        Self(all.into_iter().collect())
    }

    /// One more.
    pub fn push(&mut self, one: SharedObserver) {
        self.0.push(one);
    }
}

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}

impl Observer for Observers {
    fn observe(&self, event: &Event) {
        for one in &self.0 {
            tell(&**one, event);
        }
    }
}
