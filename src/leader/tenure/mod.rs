//! One holding from its promote to its demote, for whoever writes an elector.
//!
//! # Guarantees
//! - Promote, gate open, drain, demote, in that order, in one task per bucket: nothing of it waits for another bucket,
//!   and no renewal waits for it.
//! - A term given up in good order (rule S6): no new guards; those that are out end by themselves or are cancelled at
//!   drain-timeout; then demote; only then [`Ended::clean`] says that a release may be sent.
//! - A term that was lost ends at once: its guards are cancelled, then demote. Its checkpoint takes nothing more.
//! - A panic in promote is a failure of it; one in demote is logged and counts as its return; one in an observer is
//!   logged. None leaves the bucket stuck.
//! - What cannot be stopped is handed to [`OnFatal`]: a guard out at 0.9 of lease-duration after the last renewal that
//!   counts was sent (and a twentieth of lease-duration, at most 1 s, of running time after its cancelling), or a guard
//!   or demote not ended twice drain-timeout after it should have.
//!
//! # Assumptions
//! The elector keeps renewing while a drain lasts, and calls [`Tenure::end`] with [`Reason::Lost`] when the deadline
//! has come. Guards need neither: they read the clock. A tenure whose deadline has come ends itself as lost, should its
//! elector be stuck: then [`Ended`] is told without an end having been asked for.

mod run;

use self::run::Run;
use super::fatal::OnFatal;
use super::observe::{self, Event, SharedObserver};
use super::{DynLeaderAware, Reason, Term};
use crate::clock::{Instant, SharedClock};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// The durations that bound a holding; durations change live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a promote may take before the bucket is given back.
    pub promote: Duration,
    /// How long guards may finish before they are cancelled.
    pub drain_timeout: Duration,
    /// After the send of the last renewal that counts, another replica may act.
    pub lease_duration: Duration,
    /// From the send of the last renewal that counts to the deadline.
    pub renew_deadline: Duration,
}

/// What a tenure tells its elector.
#[derive(Debug)]
pub enum Told {
    /// `promote` returned Ok; the gate is open.
    Promoted(Term),
    /// `promote` failed, or took longer than it may. No guard was ever given, so the bucket may be released now; it may
    /// not be taken again before [`Told::Ended`], which comes by itself. Not told of a term that is ending already.
    PromoteFailed(Term),
    /// The tenure is over.
    Ended(Term, Ended),
}

/// How a tenure ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub reason: Reason,
    /// Given up in good order: the final checkpoint and the release may be sent, unless [`Tenure::ending`] says by then
    /// that the term was lost, or the release was sent after [`Told::PromoteFailed`].
    pub clean: bool,
}

/// What a tenure needs besides its term.
#[derive(Clone)]
pub struct Surroundings {
    /// Who is promoted and demoted.
    pub aware: Arc<dyn DynLeaderAware>,
    /// The clock that decides.
    pub clock: SharedClock,
    /// Who is told what happens.
    pub observer: SharedObserver,
    /// What happens when something cannot be stopped.
    pub on_fatal: OnFatal,
    /// Where the elector hears of it.
    pub told: mpsc::UnboundedSender<Told>,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

/// That a holding ends.
#[derive(Debug, Clone, Copy)]
struct End {
    reason: Reason,
    /// The term's deadline when this was told. Of a term that was lost it is the last: the [`Deadline`](super::Deadline)
    /// may be shared with terms that go on.
    deadline: Instant,
}

/// A holding under way. Dropping it ends it as lost.
#[derive(Debug)]
pub struct Tenure {
    term: Term,
    end: watch::Sender<Option<End>>,
    limits: watch::Sender<Limits>,
}

impl Tenure {
    /// Begins: tells the observer, and calls `promote` in a task of its own.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn begin(term: Term, limits: Limits, around: Surroundings) -> Self {
        let end = watch::Sender::new(None);
        let (limits, limits_seen) = watch::channel(limits);
        let begun = Event::TermBegun {
            bucket: term.bucket().clone(),
            token: term.token(),
            at: around.clock.now(),
            deadline: term.deadline(),
        };
        observe::tell(&*around.observer, &begun);
        tokio::spawn(Run::new(term.clone(), end.clone(), limits_seen, around).run());
        Self { term, end, limits }
    }

    /// Its term.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Ends it: in good order, or, with [`Reason::Lost`], at once. A loss overtakes a drain that is under way; nothing
    /// overtakes a loss. From the return of this call on no guard is given.
    pub fn end(&self, reason: Reason) {
        end_as(&self.term, &self.end, reason);
    }

    /// Why it is ending, if it is.
    pub fn ending(&self) -> Option<Reason> {
        self.end.borrow().map(|end| end.reason)
    }

    /// The durations have changed. To be called when a renewal sent under them has counted: the deadline as it stands is
    /// taken to be that renewal's send plus [`Limits::renew_deadline`].
    pub fn limit(&self, limits: Limits) {
        self.limits.send_if_modified(|now| std::mem::replace(now, limits) != limits);
    }
}

fn end_as(term: &Term, end: &watch::Sender<Option<End>>, reason: Reason) {
    let deadline = term.deadline();
    if reason == Reason::Lost {
        term.forfeit();
    } else {
        term.close();
    }
    end.send_if_modified(|now| {
        let change = now.is_none_or(|now| reason == Reason::Lost && now.reason != Reason::Lost);
        if change {
            *now = Some(End { reason, deadline });
        }
        change
    });
}

impl Drop for Tenure {
    fn drop(&mut self) {
        self.end(Reason::Lost);
    }
}
