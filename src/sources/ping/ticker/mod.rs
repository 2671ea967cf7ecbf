//! The schedules of one bucket, for one term: fires what is due, and keeps the bucket's checkpoint.
//!
//! # Guarantees
//! - A tick is fired under a guard, once per term. The checkpoint passes it only after it was answered, and before its
//!   guard is dropped: so a release carries it, and over a clean hand-over no tick is fired twice.
//! - The next holder fires what came due since the checkpoint, each with its own scheduled time, no older than
//!   `catch_up`; over a crash that repeats the ticks since the last checkpoint that was written.
//! - A bucket's first place stands in its Lease before anything fires.
//! - A tick from before its source was made is not fired. A source that becomes known in the middle of a term counts
//!   from then.
//! - A sink that does not answer holds up the sources that send to it. The others share what is left of `at_once`, of
//!   which one source takes a sixteenth at most.
//! - A bucket in which nothing fires writes nothing.
//!
//! # Caveats
//! - Ticks are counted by the wall clock. Where that goes back by more than `catch_up`, ticks count from there and may
//!   be fired again, under the ids that they had; where it goes back by less, nothing fires until it has caught up.
//! - An edit of a schedule is taken as if it had stood since the last tick that was begun; while nobody holds the bucket,
//!   since the checkpoint.
//! - After a hand-over in which a tick had no answer in time, ticks of the same source that were answered after it are
//!   fired again; where more than 32 sources were so, those of the whole bucket.

mod left_out;
mod plan;
#[cfg(test)]
mod tests;

pub(super) use plan::Catalog;

use super::position::{Key, Mark, Position, Saved, back, forth, just_after};
use crate::clock::SharedClock;
use crate::leader::{BoxError, CheckpointError, Guard, Term};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use left_out::LeftOut;
use plan::Plan;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What fires: a schedule, and something to do at each of its times.
pub(super) trait Source: Send + Sync + 'static {
    /// The first time after `after`; None if there is none.
    fn next(&self, after: Timestamp) -> Option<Timestamp>;
    /// When it was made, where that is known.
    fn created(&self) -> Option<Timestamp>;
    /// Fires the tick scheduled at `at`. True: nothing remains to be done about it; false: the term ended first.
    fn fire<'a>(&'a self, guard: &'a Guard, at: Timestamp) -> BoxFuture<'a, bool>;
}

/// All sources, None until they are known for the first time.
pub(super) type Known<S> = watch::Receiver<Option<Arc<Catalog<S>>>>;

/// What bounds a ticker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How far back the next holder of a bucket fires what came due while nobody held it.
    pub(super) catch_up: Duration,
    /// How many ticks of a bucket may be out at one time.
    pub(super) at_once: usize,
}

impl Bounds {
    /// A tick is begun late by some time even where nothing is to be caught up: timers are late, and clocks differ.
    const LATE: Duration = Duration::from_secs(5);

    /// How late a tick may be begun by a replica that holds its bucket, and how far wall clocks are taken to be apart.
    fn late(self) -> Duration {
        self.catch_up.max(Self::LATE)
    }

    /// How many ticks of one source may be out at one time.
    fn per_source(self) -> usize {
        (self.at_once / 16).max(1)
    }
}

/// The wall clock is looked at this often, since it may jump.
const LOOK: Duration = Duration::from_secs(1);
/// And so often while the deadline has passed and nobody has said yet that the term is over.
const NO_GUARD: Duration = Duration::from_millis(100);

struct Ticker<S> {
    term: Term,
    clock: SharedClock,
    bounds: Bounds,
    plan: Plan<S>,
    position: Position,
    /// The latest that the wall clock has shown.
    seen: Timestamp,
    out: FuturesUnordered<BoxFuture<'static, Fired>>,
    left_out: LeftOut,
}

/// What came of a tick. Without the guard: the term ended first.
struct Fired {
    at: Timestamp,
    key: Key,
    guard: Option<Guard>,
}

/// Runs until the term drains and what is out has ended.
///
/// # Errors
/// The first checkpoint is refused.
pub(super) async fn run<S: Source>(
    mut known: Known<S>,
    term: Term,
    clock: SharedClock,
    bounds: Bounds,
) -> Result<(), BoxError> {
    // Which sources there are has to be known first: a checkpoint moved before that would pass their ticks.
    let first = match term.run(known.wait_for(Option::is_some)).await {
        Ok(Ok(first)) => first.clone(),
        Ok(Err(_)) | Err(_) => return Ok(()),
    };
    let seen = clock.wall();
    let found = found(&term, seen, bounds);
    let from = found.clone().unwrap_or_else(|| Saved::before(seen));
    if found.is_none() {
        match begin_checkpoint(&term, &from).await {
            Ok(()) => {}
            Err(CheckpointError::Ended) => return Ok(()),
            Err(e @ CheckpointError::TooLarge(_)) => return Err(e.into()),
        }
    }
    let mut ticker = Ticker {
        term,
        clock,
        bounds,
        plan: Plan::new(),
        position: Position::new(from),
        seen,
        out: FuturesUnordered::new(),
        left_out: LeftOut::default(),
    };
    ticker.take_up(first.as_deref(), None);
    ticker.position.all_known();
    ticker.tick(known).await;
    Ok(())
}

/// The checkpoint, but not from before what `catch_up` reaches. None: there is none to go on from.
fn found(term: &Term, now: Timestamp, bounds: Bounds) -> Option<Saved> {
    let bucket = term.bucket();
    let saved = match Saved::parse(&term.checkpoint().load()?) {
        Ok(saved) => saved,
        Err(e) => {
            tracing::error!(%bucket, error = %e, "the bucket's checkpoint is not this adapter's: ticks count from now");
            return None;
        }
    };
    let (at, oldest) = (saved.at(), back(now, bounds.catch_up));
    // Written by a replica whose clock is ahead: it has fired what lies between. Further ahead than any tick is caught up,
    // it is no clock's difference.
    if at > forth(now, bounds.late()) {
        tracing::warn!(%bucket, %at, %now, "the bucket's checkpoint lies in the future: ticks count from now");
        return None;
    }
    if at < oldest {
        tracing::info!(%bucket, %at, catch_up = ?bounds.catch_up, "the checkpoint is older than what is caught up");
    }
    Some(saved.not_before(oldest))
}

/// Puts a first checkpoint into the Lease, so that a crash from here on loses nothing.
async fn begin_checkpoint(term: &Term, from: &Saved) -> Result<(), CheckpointError> {
    term.checkpoint().store(&from.text())?;
    // Without Leases there is no token, and nobody who would write it.
    if term.token().is_none() {
        return Ok(());
    }
    term.run(term.checkpoint().flush()).await.unwrap_or(Err(CheckpointError::Ended))
}

impl<S: Source> Ticker<S> {
    async fn tick(&mut self, mut known: Known<S>) {
        let term = self.term.clone();
        let mut draining = std::pin::pin!(term.draining());
        loop {
            let pause = self.fire_due();
            self.save();
            tokio::select! {
                biased;
                () = &mut draining => break,
                Some(fired) = self.out.next() => self.answered(fired),
                changed = known.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let now = known.borrow_and_update().clone();
                    self.take_up(now.as_deref(), Some(self.clock.wall()));
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
        while let Some(fired) = self.out.next().await {
            self.answered(fired);
        }
    }

    fn take_up(&mut self, catalog: Option<&Catalog<S>>, now: Option<Timestamp>) {
        let Some(catalog) = catalog else { return };
        let bucket = self.term.bucket();
        self.plan.take_up(catalog, |key| bucket.has(key), now, &mut self.position);
    }

    /// Begins what is due. Answers how long there is nothing to do, if nothing else happens.
    fn fire_due(&mut self) -> Duration {
        let now = self.clock.wall();
        if forth(now, self.bounds.late()) < self.seen {
            tracing::warn!(bucket = %self.term.bucket(), was = %self.seen, %now, "the wall clock went back: ticks count from now");
            self.seen = now;
            self.position.restart(now);
            self.plan.restart(now, &mut self.position);
        }
        self.seen = self.seen.max(now);
        let oldest = back(now, self.bounds.late());
        let (mut begun, mut pause) = (false, LOOK);
        while self.out.len() < self.bounds.at_once {
            let Some((at, key)) = self.plan.first().filter(|(at, _)| *at <= now) else { break };
            if at < oldest {
                self.left_out.add(at);
                self.plan.leave_out(oldest, &mut self.position);
                continue;
            }
            // A tick that waited is counted already.
            if self.position.opened_before(&key, at) >= self.bounds.per_source() {
                self.plan.wait(&mut self.position);
                continue;
            }
            let Some(guard) = self.term.guard() else {
                // Draining, or past the deadline: the next holder fires it.
                pause = NO_GUARD;
                break;
            };
            let Some((at, key, source)) = self.plan.begin(&mut self.position) else { break };
            begun = true;
            self.out.push(Box::pin(async move {
                let settled = source.fire(&guard, at).await;
                Fired { at, key, guard: settled.then_some(guard) }
            }));
        }
        self.left_out.say(self.term.bucket(), oldest, self.clock.now());
        // A bucket in which nothing was begun does not move: each move is a write in the end.
        if begun {
            let due = self.plan.first().filter(|(at, _)| *at <= now);
            self.position.begun_before(due.map_or_else(|| Mark::before(just_after(now)), |(at, key)| Mark { at, key }));
        }
        match self.plan.first_at() {
            // As many are out as may be: an answer is what is waited for.
            Some(at) if at <= now => pause,
            Some(at) => Duration::try_from(at.duration_since(now)).unwrap_or(LOOK).min(LOOK),
            None => LOOK,
        }
    }

    /// The guard is dropped here, after the checkpoint has passed the tick: a drain that waits for it finds it there.
    fn answered(&mut self, Fired { at, key, guard }: Fired) {
        if guard.is_some() {
            self.position.close(&key, at);
            self.plan.wake(&key);
            self.save();
        }
        drop(guard);
    }

    fn save(&mut self) {
        // Refused when the term has ended: the next holder goes on from what was written. Too large it can't be.
        let _ = self.term.checkpoint().store(&self.position.saved().text());
    }
}
