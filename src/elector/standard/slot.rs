//! One bucket in the standard strategy: what is known of its Lease, and what this replica is doing about it.

use crate::bucket::Bucket;
use crate::clock::Instant;
use crate::elector::known::{How, Known, Look};
use crate::leader::tenure::Limits;
use crate::leader::{Deadline, Reason, Saved, Term};
use crate::lease::{LayoutId, Record, Spec};
use std::sync::Arc;
use std::time::Duration;

/// A write of ours that may land, or may have landed.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    /// The clock read before it was sent: what is found counts from there (rule S5).
    pub(super) sent: Instant,
    /// Those of the configuration under which it says its duration: from its sending they count, if it lands.
    pub(super) limits: Limits,
    /// What it writes. Each has a renewTime of its own, so it is known again.
    pub(super) spec: Spec,
    /// The uid and revision it is conditional on.
    pub(super) uid: String,
    pub(super) base: u64,
    /// The checkpoint that rides on it.
    pub(super) checkpoint: Option<u64>,
    /// The request that carries it.
    pub(super) number: u64,
}

/// Writes on one version whose outcome is not known, before the oldest are forgotten: one of those that lands is not
/// known again, and its bucket left alone until it expires.
const MOST_ATTEMPTS: usize = 64;

/// A term of this bucket.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    pub(super) term: Term,
    pub(super) deadline: Arc<Deadline>,
    pub(super) layout: LayoutId,
    /// Those of the last write that counts.
    pub(super) limits: Limits,
    pub(super) next_renewal: Instant,
    /// Ending in good order: renewed until it has ended.
    pub(super) ending: Option<Reason>,
}

/// What a take stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// This long was waited, by what was known when it was decided. Until it is judged, after the answer, nothing is
    /// released by a record, which others would take at once.
    Waited(Duration),
    /// Judged to have been long enough: nobody else may act for as long as it is ours.
    Sound,
}

impl Default for Basis {
    fn default() -> Self {
        Self::Waited(Duration::ZERO)
    }
}

impl Basis {
    /// Whether it was long enough, now that the layout Lease says `longest`.
    pub(super) fn holds(self, longest: Duration) -> bool {
        match self {
            Self::Waited(waited) => longest <= waited,
            Self::Sound => true,
        }
    }
}

/// What this replica is doing about a bucket.
#[derive(Debug, Clone, Default)]
pub(super) enum Phase {
    /// Nothing: watching.
    #[default]
    Idle,
    /// A take is out, or its outcome is not known.
    Taking,
    /// Taken; the layout Lease is read before the term begins (design 6.1).
    Judging {
        /// The revision of the take, which its token has: a stranger's label since then is no take (S9).
        taken: u64,
        deadline: Arc<Deadline>,
        limits: Limits,
        layout: LayoutId,
        /// The read that judges it; None until one was sent after the take had been answered.
        read: Option<u64>,
    },
    /// A term stands.
    Held(Box<Holding>),
    /// The term is over and a release has been sent, or is to be.
    Releasing {
        /// Then it is left to run out.
        until: Instant,
    },
    /// Stopping, and it could not be released in time: it runs out by itself.
    Left,
}

/// One bucket.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) bucket: Bucket,
    pub(super) known: Known,
    pub(super) phase: Phase,
    /// The longest duration that has bound under this name, also in Leases that are gone.
    pub(super) longest: Duration,
    /// The last checkpoint seen under this name: whoever makes the Lease anew after a deletion puts it back.
    pub(super) saved: Option<Saved>,
    /// Writes that may still land, and the last one known to stand.
    pub(super) attempts: Vec<Attempt>,
    pub(super) confirmed: Option<(String, Spec)>,
    /// A request is out: one at a time per Lease (rule S3).
    pub(super) busy: bool,
    /// The last write failed: read before the next one (rule S5).
    pub(super) unsure: bool,
    /// Not before: after a failure.
    pub(super) retry_at: Instant,
    pub(super) failures: u32,
    /// Writes that have failed in a row: reads in between succeed, and must not hasten them.
    pub(super) write_failures: u32,
    /// No write before.
    pub(super) write_at: Instant,
    /// What the last take of what was not ours stands on.
    pub(super) basis: Basis,
    /// A promote failed: not taken again before.
    pub(super) resting_until: Instant,
    pub(super) promote_failures: u32,
    /// A tenure of this process has not ended: not taken again before its demote has returned (rule S6).
    pub(super) tenure: bool,
    /// The final checkpoint, which goes with the release.
    pub(super) checkpoint: Option<(u64, Saved)>,
}

impl Slot {
    pub(super) fn new(bucket: Bucket) -> Self {
        Self {
            bucket,
            known: Known::Unknown,
            phase: Phase::Idle,
            longest: Duration::ZERO,
            saved: None,
            attempts: Vec::new(),
            confirmed: None,
            busy: false,
            unsure: false,
            retry_at: Instant::ORIGIN,
            failures: 0,
            write_failures: 0,
            write_at: Instant::ORIGIN,
            basis: Basis::default(),
            resting_until: Instant::ORIGIN,
            promote_failures: 0,
            tenure: false,
            checkpoint: None,
        }
    }

    /// A version of the Lease was read.
    pub(super) fn look(&mut self, record: &Arc<Record>, how: How, now: Instant) -> Look {
        let look = self.known.look(record, how, now);
        if look != Look::Stale {
            self.longest = self.longest.max(record.longest());
            if record.saved.is_some() {
                self.saved.clone_from(&record.saved);
            }
            // A write conditional on an older version can't land any more, unless it is the one that stands.
            self.attempts.retain(|a| a.base >= record.revision || (a.uid == record.uid && a.spec == record.spec));
        }
        look
    }

    /// The attempt that the known Lease shows to have landed.
    pub(super) fn landed(&self) -> Option<&Attempt> {
        let record = self.known.record()?;
        self.attempts.iter().find(|a| a.uid == record.uid && a.spec == record.spec)
    }

    /// What stands in the Lease is what this process wrote there.
    pub(super) fn is_own_write(&self) -> bool {
        let Some(record) = self.known.record() else { return false };
        self.landed().is_some()
            || self.confirmed.as_ref().is_some_and(|(uid, spec)| *uid == record.uid && *spec == record.spec)
    }

    /// The Lease names `me`.
    pub(super) fn names(&self, me: &str) -> bool {
        self.known.record().is_some_and(|r| r.spec.holder == me)
    }

    pub(super) fn holding(&self) -> Option<&Holding> {
        match &self.phase {
            Phase::Held(holding) => Some(holding),
            _ => None,
        }
    }

    pub(super) fn holding_mut(&mut self) -> Option<&mut Holding> {
        match &mut self.phase {
            Phase::Held(holding) => Some(holding),
            _ => None,
        }
    }

    /// Counts towards what this replica holds: a take already sent counts too (design 5.1).
    pub(super) fn counts(&self) -> bool {
        matches!(self.phase, Phase::Taking | Phase::Judging { .. } | Phase::Held(_))
    }

    /// A request failed: the next try is later each time.
    pub(super) fn failed(&mut self, now: Instant, pause: Duration) {
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now + pause;
    }

    /// A write failed: it is read after `read`, and written again no sooner than after `write`.
    pub(super) fn write_failed(&mut self, now: Instant, read: Duration, write: Duration) {
        self.write_failures = self.write_failures.saturating_add(1);
        self.unsure = true;
        self.retry_at = now + read;
        self.write_at = now + write;
    }

    /// A request brought an answer.
    pub(super) fn succeeded(&mut self, wrote: bool) {
        self.failures = 0;
        self.unsure = false;
        if wrote {
            self.write_failures = 0;
            self.write_at = Instant::ORIGIN;
        }
        self.retry_at = self.write_at;
    }

    /// One more write is out. Of two that write the same (a wall clock that stands still) the first is kept: what is
    /// found counts from there (S5).
    pub(super) fn attempt(&mut self, attempt: Attempt) {
        if let Some(same) = self.attempts.iter_mut().find(|a| a.uid == attempt.uid && a.spec == attempt.spec) {
            same.base = same.base.max(attempt.base);
            return;
        }
        if self.attempts.len() >= MOST_ATTEMPTS {
            self.attempts.remove(0);
        }
        self.attempts.push(attempt);
    }
}
