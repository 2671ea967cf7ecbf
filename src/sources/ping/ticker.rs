//! The schedules of one bucket, for one term: fires what is due, and keeps the bucket's checkpoint.
//!
//! # Guarantees
//! - A tick is fired under a guard, once per term. The checkpoint passes it only after it was answered, and before its
//!   guard is dropped: so a release carries it, and over a clean hand-over no tick is fired twice.
//! - The next holder fires what came due since the checkpoint, each with its own scheduled time, no older than
//!   `catch_up`; over a crash that repeats the ticks since the last checkpoint that was written.
//! - A tick from before its source was made is not fired.
//!
//! # Caveats
//! An edit of a schedule while nobody holds the bucket is taken as if it had stood since the checkpoint.

use super::position::{self, Position};
use crate::clock::SharedClock;
use crate::leader::{BoxError, CheckpointError, Guard, Term};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
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

/// All sources that this replica knows, by key.
pub(super) type Catalog<S> = BTreeMap<String, Arc<S>>;

/// What bounds a ticker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Ticks older than this are left out.
    pub(super) catch_up: Duration,
    /// How many ticks of a bucket may be out at one time.
    pub(super) at_once: usize,
}

struct Ticker<S> {
    term: Term,
    clock: SharedClock,
    bounds: Bounds,
    sources: Catalog<S>,
    /// The next tick of each source, and the time after which the one after it is looked for where that is later.
    due: BinaryHeap<Reverse<(Timestamp, String, Timestamp)>>,
    position: Position,
    /// Every tick before this has been begun.
    scan: Timestamp,
    /// The latest time that the wall clock has shown.
    latest: Timestamp,
    /// Sources have been taken up before: what is new counts from then on.
    began: bool,
    out: FuturesUnordered<BoxFuture<'static, (Timestamp, Option<Guard>)>>,
}

/// Runs until the term drains and what is out has ended.
///
/// # Errors
/// None that last: a checkpoint that cannot be read is said, and left behind.
pub(super) async fn run<S: Source>(
    mut catalog: watch::Receiver<Option<Arc<Catalog<S>>>>,
    term: Term,
    clock: SharedClock,
    bounds: Bounds,
) -> Result<(), BoxError> {
    // Which sources there are has to be known first: a checkpoint moved before that would pass their ticks.
    let first = match term.run(catalog.wait_for(Option::is_some)).await {
        Ok(Ok(first)) => first.clone(),
        Ok(Err(_)) | Err(_) => return Ok(()),
    };
    let now = clock.wall();
    let from = start(&term, now, bounds);
    if term.checkpoint().load().is_none() {
        // So that a crash from here on loses nothing, the bucket's first place stands in the Lease before it fires.
        let stored = term.checkpoint().store(&position::format(from));
        let written = async { term.checkpoint().flush().await };
        match (stored, term.run(written).await) {
            (Ok(()), Ok(Ok(()))) => {}
            (Err(e @ CheckpointError::TooLarge(_)), _) => return Err(e.into()),
            _ => return Ok(()),
        }
    }
    let mut ticker = Ticker {
        term,
        clock,
        bounds,
        sources: Catalog::new(),
        due: BinaryHeap::new(),
        position: Position::new(from),
        scan: from,
        latest: now,
        began: false,
        out: FuturesUnordered::new(),
    };
    ticker.take_up(first.as_deref());
    ticker.tick(catalog).await;
    Ok(())
}

/// Where to begin: at the checkpoint, but not before what `catch_up` reaches.
fn start(term: &Term, now: Timestamp, bounds: Bounds) -> Timestamp {
    let oldest = back(now, bounds.catch_up);
    let Some(text) = term.checkpoint().load() else { return now };
    match position::parse(&text) {
        // Written by a replica whose clock is ahead: it has fired what lies between. Further ahead than any tick is
        // caught up, it is no clock's difference.
        Ok(at) if at > forth(now, bounds.catch_up) => {
            tracing::warn!(bucket = %term.bucket(), %at, "the checkpoint lies in the future: begun from now");
            now
        }
        Ok(at) => {
            if at < oldest {
                tracing::info!(bucket = %term.bucket(), %at, catch_up = ?bounds.catch_up, "the checkpoint is older than is caught up");
            }
            at.max(oldest)
        }
        Err(e) => {
            tracing::error!(bucket = %term.bucket(), error = %e, "the bucket's checkpoint is not this adapter's: begun from now");
            now
        }
    }
}

fn back(t: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|d| t.checked_sub(d).ok()).unwrap_or(Timestamp::MIN)
}

fn forth(t: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|d| t.checked_add(d).ok()).unwrap_or(Timestamp::MAX)
}

/// The last instant before `t`: a search after it finds `t` itself.
fn just_before(t: Timestamp) -> Timestamp {
    back(t, Duration::from_nanos(1))
}

fn just_after(t: Timestamp) -> Timestamp {
    forth(t, Duration::from_nanos(1))
}

/// The first tick of a source from `from` on.
fn first<S: Source>(key: &str, source: &Arc<S>, from: Timestamp) -> Option<Reverse<(Timestamp, String, Timestamp)>> {
    let from = source.created().map_or(from, |c| c.max(from));
    let at = source.next(just_before(from))?;
    Some(Reverse((at, key.to_owned(), at)))
}

impl<S: Source> Ticker<S> {
    async fn tick(&mut self, mut catalog: watch::Receiver<Option<Arc<Catalog<S>>>>) {
        let term = self.term.clone();
        let mut draining = std::pin::pin!(term.draining());
        loop {
            self.fire_due();
            self.save();
            let pause = self.pause();
            let room = self.out.len() < self.bounds.at_once;
            tokio::select! {
                biased;
                () = &mut draining => break,
                Some((at, guard)) = self.out.next() => self.answered(at, guard),
                changed = catalog.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let now = catalog.borrow_and_update().clone();
                    self.take_up(now.as_deref());
                }
                () = tokio::time::sleep(pause), if room => {}
            }
        }
        while let Some((at, guard)) = self.out.next().await {
            self.answered(at, guard);
        }
    }

    /// To the next tick, by the wall clock read now; short, since that clock may jump.
    fn pause(&self) -> Duration {
        let most = Duration::from_secs(1);
        let Some(Reverse((at, ..))) = self.due.peek() else { return most };
        let left = at.duration_since(self.clock.wall());
        Duration::try_from(left).unwrap_or(Duration::ZERO).min(most)
    }

    /// The sources are these now; only this bucket's count.
    fn take_up(&mut self, catalog: Option<&Catalog<S>>) {
        let Some(catalog) = catalog else { return };
        let began = std::mem::replace(&mut self.began, true);
        let bucket = self.term.bucket();
        let mine: Catalog<S> =
            catalog.iter().filter(|(key, _)| bucket.has(key)).map(|(k, s)| (k.clone(), Arc::clone(s))).collect();
        let same = self.sources.len() == mine.len()
            && self.sources.iter().zip(&mine).all(|((a, x), (b, y))| a == b && Arc::ptr_eq(x, y));
        if same {
            return;
        }
        let before = std::mem::replace(&mut self.sources, mine);
        if !began {
            return self.plan();
        }
        // What came due under the schedules as they stood is still fired, with the sources as they are now; what is new
        // counts from here.
        let now = self.scan.max(self.clock.wall());
        let mut due = BinaryHeap::new();
        let mut kept = BTreeSet::new();
        for Reverse((at, key, after)) in self.due.drain() {
            let (Some(was), Some(is)) = (before.get(&key), self.sources.get(&key)) else { continue };
            if Arc::ptr_eq(was, is) {
                due.push(Reverse((at, key.clone(), after)));
            } else if at <= now {
                due.push(Reverse((at, key.clone(), just_before(now))));
            } else {
                continue;
            }
            kept.insert(key);
        }
        self.due = due;
        for (key, source) in &self.sources {
            let unchanged = before.get(key).is_some_and(|was| Arc::ptr_eq(was, source));
            if !unchanged && !kept.contains(key) {
                self.due.extend(first(key, source, now));
            }
        }
        // A source that is there for the first time must not be caught up from before by the next holder.
        self.begun(self.clock.wall());
    }

    fn plan(&mut self) {
        self.due = self.sources.iter().filter_map(|(key, source)| first(key, source, self.scan)).collect();
    }

    /// Every tick that is due by `now` has been begun, but for those that are still to be.
    fn begun(&mut self, now: Timestamp) {
        let begun = match self.due.peek() {
            Some(Reverse((next, ..))) if *next <= now => *next,
            _ => just_after(now),
        };
        self.scan = self.scan.max(begun);
        self.position.begun(self.scan);
    }

    fn fire_due(&mut self) {
        let now = self.clock.wall();
        if forth(now, self.bounds.catch_up) < self.latest.max(self.scan) {
            tracing::warn!(bucket = %self.term.bucket(), was = %self.latest, %now, "the wall clock went back: ticks are counted from now");
            self.scan = now;
            self.latest = now;
            self.plan();
        }
        self.latest = self.latest.max(now);
        let oldest = back(now, self.bounds.catch_up);
        while self.out.len() < self.bounds.at_once {
            let Some(Reverse((at, ..))) = self.due.peek() else { break };
            let at = *at;
            if at > now {
                break;
            }
            // None: draining, or past the deadline. The next holder fires it.
            let Some(guard) = self.term.guard() else { return };
            let Some(Reverse((_, key, after))) = self.due.pop() else { break };
            let Some(source) = self.sources.get(&key).cloned() else { continue };
            let late = at < oldest;
            let after = if late { just_before(oldest).max(after) } else { after };
            if let Some(next) = source.next(after) {
                self.due.push(Reverse((next, key.clone(), next)));
            }
            if late {
                tracing::warn!(source = %key, %at, catch_up = ?self.bounds.catch_up, "ticks older than is caught up are left out");
                continue;
            }
            // Those of one time are begun together or the position waits at it.
            self.position.sent(at);
            self.out.push(Box::pin(async move {
                let settled = source.fire(&guard, at).await;
                (at, settled.then_some(guard))
            }));
        }
        // Idle buckets do not move: each move is a write in the end.
        if !self.out.is_empty() {
            self.begun(now);
        }
    }

    /// The guard is dropped here, after the checkpoint has passed the tick: a drain that waits for it finds it there.
    fn answered(&mut self, at: Timestamp, guard: Option<Guard>) {
        if guard.is_some() {
            self.position.answered(at);
            self.save();
        }
    }

    fn save(&mut self) {
        // Ended: the next holder goes on from what was written. Too large it can't be.
        let _ = self.term.checkpoint().store(&position::format(self.position.answered_before()));
    }
}

#[cfg(test)]
mod tests;
