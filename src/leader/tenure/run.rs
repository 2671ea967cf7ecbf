//! The task of one tenure: promote, drain, demote.

use super::{End, Ended, Limits, Surroundings, Told, end_as};
use crate::clock::{Instant, sleep_until};
use crate::leader::aware::{self, in_full};
use crate::leader::fatal::Fatal;
use crate::leader::observe::{self, Event};
use crate::leader::{Reason, Term};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How much later than the deadline the elector may notice it.
const OVERDUE: Duration = Duration::from_millis(100);

/// What became of a promote.
enum Promoted {
    /// It returned Ok and the gate is open.
    Open,
    /// It returned Ok, but the term was given up at `shut`, before the gate opened. A demote is owed.
    TooLate { shut: Instant },
    /// It did not return Ok, or was not called. No demote is owed.
    Not { shut: Instant },
}

/// See the module.
pub(super) struct Run {
    term: Term,
    end: watch::Sender<Option<End>>,
    limits: watch::Receiver<Limits>,
    around: Surroundings,
    /// The promote took too long, and the elector was told so: nobody has to tell this task to end.
    gave_up: bool,
}

impl Run {
    pub(super) fn new(
        term: Term,
        end: watch::Sender<Option<End>>,
        limits: watch::Receiver<Limits>,
        around: Surroundings,
    ) -> Self {
        Self { term, end, limits, around, gave_up: false }
    }

    pub(super) async fn run(mut self) {
        let acted_until = match self.promote().await {
            Promoted::Open => {
                let reason = self.ending().await;
                self.drain(reason).await;
                // The gate has drained: the last guard is in now, or was cancelled at the deadline at the latest.
                let acted_until = self.now();
                self.demote().await;
                acted_until
            }
            Promoted::TooLate { shut } => {
                self.ending().await;
                self.demote().await;
                shut
            }
            Promoted::Not { shut } => shut,
        };
        // Nothing acts any more, so nothing new can be answered: what was stored last goes with the release.
        self.term.checkpoint().end();
        let reason = self.reason().unwrap_or(Reason::Released);
        self.tell(&Event::TermEnded {
            bucket: self.term.bucket().clone(),
            token: self.term.token(),
            reason,
            acted_until: acted_until.min(self.deadline()),
            at: self.now(),
        });
        let clean = reason != Reason::Lost;
        // The elector may have been dropped: then nobody releases, and the Lease runs out.
        let _ = self.around.told.send(Told::Ended(self.term.clone(), Ended { reason, clean }));
    }

    fn now(&self) -> Instant {
        self.around.clock.now()
    }

    fn tell(&self, event: &Event) {
        observe::tell(&*self.around.observer, event);
    }

    /// Why it ends, as it stands: a loss may have overtaken a drain.
    fn reason(&self) -> Option<Reason> {
        self.end.borrow().map(|end| end.reason)
    }

    /// The deadline: of a term that was lost, as it stood then.
    fn deadline(&self) -> Instant {
        match *self.end.borrow() {
            Some(End { reason: Reason::Lost, deadline }) => deadline,
            _ => self.term.deadline(),
        }
    }

    /// Returns why it ends, once it has been told to.
    async fn ending(&mut self) -> Reason {
        if self.gave_up {
            return self.reason().unwrap_or(Reason::Released);
        }
        let mut end = self.end.subscribe();
        tokio::select! {
            biased;
            // A tenure that is dropped ends as lost, and this end of the channel is held: it does not close.
            end = end.wait_for(Option::is_some) => end.ok().and_then(|end| *end).map_or(Reason::Lost, |end| end.reason),
            () = self.overdue() => Reason::Lost,
        }
    }

    /// Returns when the deadline has passed and the elector, which is stuck, has told nobody: then it ends as lost. What
    /// reads no deadline may still be acting.
    async fn overdue(&self) {
        loop {
            let deadline = self.term.deadline();
            if deadline == Instant::from_nanos(u64::MAX) {
                return std::future::pending().await;
            }
            sleep_until(&*self.around.clock, deadline + OVERDUE).await;
            if self.now() >= self.term.deadline() + OVERDUE {
                tracing::warn!(bucket = %self.term.bucket(), "the deadline has passed and the election is stuck: the term ends");
                return end_as(&self.term, &self.end, Reason::Lost);
            }
        }
    }

    /// Returns once a loss has been told.
    async fn lost(mut end: watch::Receiver<Option<End>>) {
        let _ = end.wait_for(|end| end.is_some_and(|end| end.reason == Reason::Lost)).await;
    }

    async fn promote(&mut self) -> Promoted {
        if self.reason().is_some() {
            self.term.cancel();
            return Promoted::Not { shut: self.now() };
        }
        let bound = self.now() + self.limits.borrow().promote;
        let aware = Arc::clone(&self.around.aware);
        let clock = Arc::clone(&self.around.clock);
        let promote = aware::promote(&*aware, self.term.clone());
        tokio::pin!(promote);
        let mut end = self.end.subscribe();
        let result = tokio::select! {
            biased;
            result = &mut promote => Some(result),
            () = sleep_until(&*clock, bound) => None,
            () = async { drop(end.wait_for(Option::is_some).await); } => None,
        };
        // Read before the gate opens: no guard was given before that.
        let at = self.now();
        match result {
            Some(Ok(())) if self.term.open() => {
                self.tell(&Event::Promoted { bucket: self.term.bucket().clone(), token: self.term.token(), at });
                let _ = self.around.told.send(Told::Promoted(self.term.clone()));
                Promoted::Open
            }
            Some(Ok(())) => Promoted::TooLate { shut: at },
            Some(Err(e)) => {
                self.failed(&in_full(&*e));
                Promoted::Not { shut: at }
            }
            None => {
                // Cancelled through the term, then awaited: never dropped half-way.
                self.term.cancel();
                self.gave_up = self.failed("it took longer than renew-deadline");
                match promote.await {
                    Ok(()) => Promoted::TooLate { shut: at },
                    Err(_) => Promoted::Not { shut: at },
                }
            }
        }
    }

    /// Says that promote failed. False where the term is ending anyway: then that is no failure but the end of it.
    fn failed(&self, why: &str) -> bool {
        let bucket = self.term.bucket().clone();
        if let Some(reason) = self.reason() {
            tracing::debug!(%bucket, why, reason = reason.as_str(), "promote did not return Ok before the term ended");
            self.term.cancel();
            return false;
        }
        tracing::error!(%bucket, why, "promote failed: the bucket is given back and tried again after a back-off");
        // The release may be sent from here on, and nothing is written after that.
        self.term.forfeit();
        self.tell(&Event::PromoteFailed { bucket, why: why.to_owned() });
        let _ = self.around.told.send(Told::PromoteFailed(self.term.clone()));
        true
    }

    /// Returns when no guard is out.
    async fn drain(&mut self, reason: Reason) {
        let began = self.now();
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
                () = self.term.gate().drained() => {}
                () = sleep_until(&*self.around.clock, until) => {}
                () = Self::lost(self.end.subscribe()) => {}
                () = self.overdue() => {}
            }
            if self.term.guards_out() > 0 {
                tracing::warn!(bucket = %self.term.bucket(), guards = self.term.guards_out(), "drain-timeout: what is out is cancelled");
            }
        }
        // With no guard out too: what the author left running beside them watches this, and demote may wait for it.
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
        let cancelled = self.now();
        let running = (limits.lease_duration / 20).min(Duration::from_secs(1));
        // Of this process's running time: a stopped process gets its share after it wakes, so it is counted in slices.
        for _ in 0..10 {
            tokio::time::sleep(running / 10).await;
        }
        let hangs = cancelled + limits.drain_timeout.saturating_mul(2);
        loop {
            // The deadline still moves while a graceful drain is being renewed.
            let sent = self.deadline() - limits.renew_deadline;
            let expires = sent + limits.lease_duration / 10 * 9;
            let now = self.now();
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

    async fn demote(&mut self) {
        let reason = self.reason().unwrap_or(Reason::Released);
        let began = self.now();
        let bound = self.limits.borrow().drain_timeout.saturating_mul(2);
        let bucket = self.term.bucket().clone();
        let demote = aware::demote(&*self.around.aware, &bucket, reason);
        tokio::pin!(demote);
        tokio::select! {
            biased;
            () = &mut demote => {}
            () = sleep_until(&*self.around.clock, began + bound) => {
                let waited = self.now().since(began);
                (self.around.on_fatal)(Fatal::DemoteHangs { bucket: bucket.clone(), waited });
                demote.await;
            }
        }
    }
}
