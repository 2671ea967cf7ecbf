//! One holding from its promote to its demote, for whoever writes an elector.
//!
//! # Guarantees
//! - Promote, gate open, drain, demote, in that order, in one task per bucket: nothing of it waits for another bucket,
//!   and no renewal waits for it.
//! - A term given up in good order (rule S6): no new guards; those that are out end by themselves or are cancelled at
//!   drain-timeout; then demote; only then [`Ended::clean`] says that a release may be sent.
//! - A term that was lost ends at once: its guards are cancelled, then demote.
//! - What cannot be stopped is handed to [`OnFatal`]: a guard out at 0.9 of lease-duration after the last renewal that
//!   counts was sent (and a twentieth of lease-duration, at most 1 s, of running time after its cancelling), or a guard
//!   or demote not ended twice drain-timeout after it should have.
//!
//! # Assumptions
//! The elector keeps renewing while a drain lasts, and calls [`Tenure::end`] with [`Reason::Lost`] when the deadline
//! has come. Guards need neither: they read the clock.

use super::fatal::{Fatal, OnFatal};
use super::observe::{Event, SharedObserver};
use super::{DynLeaderAware, Reason, Term};
use crate::clock::{Instant, SharedClock, sleep_until};
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
    /// not be taken again before [`Told::Ended`].
    PromoteFailed(Term),
    /// The tenure is over.
    Ended(Term, Ended),
}

/// How a tenure ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub reason: Reason,
    /// Given up in good order: the final checkpoint and the release may be sent.
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

/// A holding under way. Dropping it ends it as lost.
#[derive(Debug)]
pub struct Tenure {
    term: Term,
    end: watch::Sender<Option<Reason>>,
    limits: watch::Sender<Limits>,
}

impl Tenure {
    /// Begins: tells the observer, and calls `promote` in a task of its own.
    pub fn begin(term: Term, limits: Limits, around: Surroundings) -> Self {
        let (end, ended) = watch::channel(None);
        let (limits, limits_seen) = watch::channel(limits);
        around.observer.observe(&Event::TermBegun {
            bucket: term.bucket().clone(),
            token: term.token(),
            at: around.clock.now(),
            deadline: term.deadline(),
        });
        let run = Run { term: term.clone(), end: ended, limits: limits_seen, around };
        tokio::spawn(run.run());
        Self { term, end, limits }
    }

    /// Its term.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Ends it: in good order, or, with [`Reason::Lost`], at once. A loss overtakes a drain that is under way; nothing
    /// overtakes a loss. From the return of this call on no guard is given.
    pub fn end(&self, reason: Reason) {
        if reason == Reason::Lost {
            self.term.cancel();
        } else {
            self.term.close();
        }
        self.end.send_if_modified(|now| {
            let change = now.is_none() || (reason == Reason::Lost && *now != Some(Reason::Lost));
            if change {
                *now = Some(reason);
            }
            change
        });
    }

    /// Why it is ending, if it is.
    pub fn ending(&self) -> Option<Reason> {
        *self.end.borrow()
    }

    /// The durations have changed.
    pub fn limit(&self, limits: Limits) {
        self.limits.send_if_modified(|now| std::mem::replace(now, limits) != limits);
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        self.end(Reason::Lost);
    }
}

struct Run {
    term: Term,
    end: watch::Receiver<Option<Reason>>,
    limits: watch::Receiver<Limits>,
    around: Surroundings,
}

impl Run {
    async fn run(mut self) {
        let promoted = self.promote().await;
        if promoted {
            let reason = self.ending().await;
            self.drain(reason).await;
            let reason = self.reason_now(reason);
            self.demote(reason).await;
        } else {
            self.term.cancel();
        }
        // Nothing acts any more, so nothing new can be answered: what was stored last goes with the release.
        self.term.checkpoint().end();
        let reason = self.reason_now(Reason::Released);
        let now = self.around.clock.now();
        if !promoted {
            self.observe_end(reason, now.min(self.term.deadline()), now);
        }
        let clean = reason != Reason::Lost;
        // The elector may have been dropped: then nobody releases, and the Lease runs out.
        let _ = self.around.told.send(Told::Ended(self.term.clone(), Ended { reason, clean }));
    }

    fn tell(&self, event: &Event) {
        self.around.observer.observe(event);
    }

    /// What the end is by now: a loss may have overtaken a drain.
    fn reason_now(&self, otherwise: Reason) -> Reason {
        (*self.end.borrow()).unwrap_or(otherwise)
    }

    async fn ending(&mut self) -> Reason {
        loop {
            if let Some(reason) = *self.end.borrow_and_update() {
                return reason;
            }
            if self.end.changed().await.is_err() {
                return self.reason_now(Reason::Lost);
            }
        }
    }

    /// Returns once a loss has been told.
    async fn lost(end: &mut watch::Receiver<Option<Reason>>) {
        while *end.borrow_and_update() != Some(Reason::Lost) {
            if end.changed().await.is_err() {
                // The tenure was dropped, which ends it as lost before the sender goes.
                return;
            }
        }
    }

    /// True: promoted, so a demote is owed.
    async fn promote(&mut self) -> bool {
        let bound = self.around.clock.now() + self.limits.borrow().promote;
        let aware = Arc::clone(&self.around.aware);
        let promote = aware.promote(self.term.clone());
        tokio::pin!(promote);
        let clock = Arc::clone(&self.around.clock);
        let mut end = self.end.clone();
        let result = tokio::select! {
            biased;
            r = &mut promote => Some(r),
            () = sleep_until(&*clock, bound) => None,
            () = async { while end.borrow_and_update().is_none() && end.changed().await.is_ok() {} } => None,
        };
        let hung = result.is_none();
        let result = if let Some(result) = result {
            result
        } else {
            // Cancelled through the term, then awaited: never dropped half-way.
            self.term.cancel();
            if self.end.borrow().is_none() {
                self.fail("it took longer than renew-deadline");
            }
            promote.await
        };
        match result {
            Ok(()) if !hung && self.term.open() => {
                self.tell(&Event::Promoted {
                    bucket: self.term.bucket().clone(),
                    token: self.term.token(),
                    at: self.around.clock.now(),
                });
                let _ = self.around.told.send(Told::Promoted(self.term.clone()));
                true
            }
            Ok(()) => true,
            Err(e) if !hung => {
                self.term.cancel();
                self.fail(&e.to_string());
                false
            }
            Err(_) => false,
        }
    }

    fn fail(&self, why: &str) {
        let bucket = self.term.bucket().clone();
        tracing::error!(%bucket, why, "promote failed: the bucket is given back and tried again after a back-off");
        self.tell(&Event::PromoteFailed { bucket, why: why.to_owned() });
        let _ = self.around.told.send(Told::PromoteFailed(self.term.clone()));
    }

    /// Returns when no guard is out.
    async fn drain(&mut self, reason: Reason) {
        let began = self.around.clock.now();
        self.tell(&Event::GuardsOut {
            bucket: self.term.bucket().clone(),
            token: self.term.token(),
            guards: self.term.guards_out(),
            at: began,
        });
        if reason != Reason::Lost {
            let until = began + self.limits.borrow().drain_timeout;
            tokio::select! {
                biased;
                () = self.term.gate().drained() => return,
                () = sleep_until(&*self.around.clock, until) => {}
                () = Self::lost(&mut self.end) => {}
            }
            if self.term.guards_out() > 0 {
                tracing::warn!(bucket = %self.term.bucket(), guards = self.term.guards_out(), "drain-timeout: what is out is cancelled");
            }
        }
        self.term.cancel();
        tokio::select! {
            biased;
            () = self.term.gate().drained() => {}
            why = self.cannot_stop() => {
                (self.around.on_fatal)(why);
                // Only where the hook returns (a test): the truth stays that a guard is out.
                self.term.gate().drained().await;
            }
        }
    }

    /// Resolves when a guard that was cancelled may be waited for no longer.
    async fn cannot_stop(&self) -> Fatal {
        let limits = *self.limits.borrow();
        let cancelled = self.around.clock.now();
        let running = (limits.lease_duration / 20).min(Duration::from_secs(1));
        // Of this process's running time: a stopped process gets its share after it wakes, so it is counted in slices.
        for _ in 0..10 {
            tokio::time::sleep(running / 10).await;
        }
        let hangs = cancelled + 2 * limits.drain_timeout;
        loop {
            // The deadline still moves while a graceful drain is being renewed.
            let sent = self.term.deadline() - limits.renew_deadline;
            let expires = sent + limits.lease_duration * 9 / 10;
            let now = self.around.clock.now();
            let (bucket, guards) = (self.term.bucket().clone(), self.term.guards_out());
            if now >= expires {
                return Fatal::GuardOut { bucket, guards, silent: now.since(sent) };
            }
            if now >= hangs {
                return Fatal::GuardHangs { bucket, guards, waited: now.since(cancelled) };
            }
            sleep_until(&*self.around.clock, expires.min(hangs)).await;
        }
    }

    async fn demote(&mut self, reason: Reason) {
        let acted_until = self.acted_until();
        let began = self.around.clock.now();
        let bound = 2 * self.limits.borrow().drain_timeout;
        let aware = Arc::clone(&self.around.aware);
        let bucket = self.term.bucket().clone();
        let demote = aware.demote(&bucket, reason);
        tokio::pin!(demote);
        tokio::select! {
            biased;
            () = &mut demote => {}
            () = sleep_until(&*self.around.clock, began + bound) => {
                (self.around.on_fatal)(Fatal::DemoteHangs { bucket: bucket.clone(), waited: self.around.clock.now().since(began) });
                demote.await;
            }
        }
        self.observe_end(self.reason_now(reason), acted_until, self.around.clock.now());
    }

    /// The gate has drained: the last guard is in now, or was in at the latest when they were cancelled, if none was out.
    fn acted_until(&self) -> Instant {
        self.around.clock.now().min(self.term.deadline())
    }

    fn observe_end(&self, reason: Reason, acted_until: Instant, at: Instant) {
        self.tell(&Event::TermEnded {
            bucket: self.term.bucket().clone(),
            token: self.term.token(),
            reason,
            acted_until,
            at,
        });
    }
}
