//! The time in which a replica holds a bucket: its gate, its token, its deadline.

use super::checkpoint::Checkpoint;
use super::gate::Gate;
use super::guard::while_in_force;
use super::{FencingToken, Guard, Lost, Saved};
use crate::bucket::Bucket;
use crate::clock::{Instant, SharedClock};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The instant from which on no guard is given; shared by all terms that one renewal prolongs. Grows with each renewal
/// that counts; moved back only by [`Deadline::lower`].
#[derive(Debug)]
pub struct Deadline(AtomicU64);

impl Deadline {
    /// A deadline at `at`.
    pub fn at(at: Instant) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(at.as_nanos())))
    }

    /// One that never comes, for strategies without Leases.
    pub fn never() -> Arc<Self> {
        Self::at(Instant::from_nanos(u64::MAX))
    }

    /// As it stands.
    pub fn get(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Acquire))
    }

    /// Moves it to `to`, unless that is earlier than where it stands.
    ///
    /// Only the send time of a renewal that counts, plus renew-deadline, may be given here (rule S2). Whoever calls it
    /// has judged that the term is still in force.
    pub fn extend(&self, to: Instant) {
        self.0.fetch_max(to.as_nanos(), Ordering::AcqRel);
    }
}

impl Deadline {
    /// Moves it back to `to`, unless it is earlier already: for a renewal about to be sent that says a shorter
    /// lease-duration than the one before, since others may count from it as soon as it lands.
    pub fn lower(&self, to: Instant) {
        self.0.fetch_min(to.as_nanos(), Ordering::AcqRel);
    }
}

/// What a term is made of. Made by an elector when a take has been answered and judged.
#[derive(Debug)]
pub struct TermParts {
    /// The bucket that is held.
    pub bucket: Bucket,
    /// Its fencing token; none in strategies without Leases.
    pub token: Option<FencingToken>,
    /// Its deadline.
    pub deadline: Arc<Deadline>,
    /// The clock that decides.
    pub clock: SharedClock,
    /// The last checkpoint found in the Lease.
    pub saved: Option<Saved>,
}

#[derive(Debug)]
struct Inner {
    bucket: Bucket,
    token: Option<FencingToken>,
    deadline: Arc<Deadline>,
    clock: SharedClock,
    gate: Gate,
    /// The gate has opened.
    opened: CancellationToken,
    /// No new guards are given; those that are out may finish.
    draining: CancellationToken,
    /// Those that are out must stop.
    cancelled: CancellationToken,
    checkpoint: Arc<Checkpoint>,
}

/// The holding of one bucket by this process, from a take to a release or a loss.
///
/// # Guarantees
/// - [`Term::guard`] answers Some only after `promote` returned Ok, before the drain began, and before the deadline by
///   a clock read at that moment.
/// - A term that is over never comes back: a bucket taken again is another term with a larger token.
#[derive(Debug, Clone)]
pub struct Term(Arc<Inner>);

impl Term {
    /// A term whose gate is still shut; see [`super::tenure`] for who opens and ends it.
    pub fn new(parts: TermParts) -> Self {
        let TermParts { bucket, token, deadline, clock, saved } = parts;
        Self(Arc::new(Inner {
            checkpoint: Checkpoint::new(token, saved),
            bucket,
            token,
            deadline,
            clock,
            gate: Gate::new(),
            opened: CancellationToken::new(),
            draining: CancellationToken::new(),
            cancelled: CancellationToken::new(),
        }))
    }

    /// The bucket that is held.
    pub fn bucket(&self) -> &Bucket {
        &self.0.bucket
    }

    /// Its fencing token; none in strategies without Leases.
    pub fn token(&self) -> Option<FencingToken> {
        self.0.token
    }

    /// The position of the source, kept in the bucket's Lease.
    pub fn checkpoint(&self) -> &Arc<Checkpoint> {
        &self.0.checkpoint
    }

    /// Leave to act, if the term is current. Lock-free; allocates nothing.
    #[inline]
    pub fn guard(&self) -> Option<Guard> {
        if !self.0.gate.enter() {
            return None;
        }
        // Counted first, then the clock is read: a closer that saw nobody inside is never followed by a guard.
        let guard = Guard::entered(self.clone());
        if self.past_deadline() { None } else { Some(guard) }
    }

    /// Whether a guard would be given now.
    pub fn is_current(&self) -> bool {
        self.0.gate.is_open() && !self.past_deadline()
    }

    /// Polls `work` under a guard while the term is in force: unlike [`Guard::run`] it stops as soon as the drain
    /// begins, so it suits waiting for input, not sending it on.
    ///
    /// # Errors
    /// [`Lost`] when the term is not or no longer in force; `work` is then dropped at once.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let _guard = self.guard().ok_or(Lost)?;
        while_in_force(self, self.draining(), work).await
    }

    /// The deadline as it stands.
    pub fn deadline(&self) -> Instant {
        self.0.deadline.get()
    }

    /// Time to the deadline as it stands, by a clock read now; zero when it has passed.
    pub fn left(&self) -> Duration {
        self.0.deadline.get().since(self.0.clock.now())
    }

    /// Resolves when no new guards are given: a drain, a loss, a shutdown. A deadline that passes unnoticed is seen by
    /// [`Term::guard`] and [`Term::run`], which read the clock.
    pub async fn draining(&self) {
        self.0.draining.cancelled().await;
    }

    /// Resolves with true when the gate opens, with false when the term ends before that.
    pub async fn opened(&self) -> bool {
        tokio::select! {
            biased;
            () = self.0.opened.cancelled() => true,
            () = self.0.draining.cancelled() => false,
        }
    }

    /// Resolves when what runs under the term, `promote` included, has to stop.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }

    /// How many guards are out.
    pub fn guards_out(&self) -> u64 {
        self.0.gate.inside()
    }

    pub(super) fn when_cancelled(&self) -> impl Future<Output = ()> + '_ {
        self.0.cancelled.cancelled()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.cancelled.is_cancelled()
    }

    #[inline]
    pub(super) fn past_deadline(&self) -> bool {
        self.0.clock.now() >= self.0.deadline.get()
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// Opens the gate; false where the term has been closed meanwhile.
    pub(super) fn open(&self) -> bool {
        let open = self.0.gate.open();
        if open {
            self.0.opened.cancel();
        }
        open
    }

    /// No new guards from here on.
    pub(super) fn close(&self) {
        self.0.gate.close();
        self.0.draining.cancel();
    }

    /// What is out must stop.
    pub(super) fn cancel(&self) {
        self.close();
        self.0.cancelled.cancel();
    }

    /// What is out must stop, and nothing is written in the name of this term any more: a flush would wait for ever.
    pub(super) fn forfeit(&self) {
        self.cancel();
        self.0.checkpoint.end();
    }

    /// Whether both are the same term, not merely terms of the same bucket.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
