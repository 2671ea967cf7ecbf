//! Which tick of which source is next.
//!
//! # Guarantees
//! - A source costs something when it becomes known, is edited or fires, and nothing in between: 10,000 sources that do
//!   not fire are one look at the first of them.
//! - Each source keeps its place: what comes due of it is begun once, whatever becomes of the others, and an edit
//!   neither repeats nor passes a tick.
//! - A tick that is due and stands before what the position has passed is open there.

use super::Source;
use crate::sources::ping::position::{Key, Mark, Position, just_after, just_before};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All sources that a replica knows, by key.
pub(in crate::sources::ping) type Catalog<S> = BTreeMap<Key, Arc<S>>;

struct Planned<S> {
    source: Arc<S>,
    /// Every tick before this has been begun.
    place: Timestamp,
    next: Option<Timestamp>,
    /// `next` is due, but waits until an earlier tick of the source has been answered.
    waits: bool,
}

/// The sources of one bucket with their next ticks.
pub(super) struct Plan<S> {
    sources: BTreeMap<Key, Planned<S>>,
    /// Of each source that does not wait.
    next: BTreeSet<(Timestamp, Key)>,
}

impl<S: Source> Plan<S> {
    pub(super) fn new() -> Self {
        Self { sources: BTreeMap::new(), next: BTreeSet::new() }
    }

    /// The first tick of those that do not wait.
    pub(super) fn first(&self) -> Option<(Timestamp, Key)> {
        self.next.first().cloned()
    }

    /// The time of the first tick.
    pub(super) fn first_at(&self) -> Option<Timestamp> {
        self.next.first().map(|(at, _)| *at)
    }

    /// The sources are these now; those that the bucket does not have are to be left out by `has`. `now` is None at the
    /// start: then each goes on from the position.
    pub(super) fn take_up(
        &mut self,
        catalog: &Catalog<S>,
        has: impl Fn(&str) -> bool,
        now: Option<Timestamp>,
        position: &mut Position,
    ) {
        let gone: Vec<Key> = self.sources.keys().filter(|key| !catalog.contains_key(*key)).cloned().collect();
        for key in gone {
            self.forget(&key, position);
            self.sources.remove(&key);
        }
        for (key, source) in catalog.iter().filter(|(key, _)| has(key)) {
            let known = self.sources.get(key);
            if known.is_some_and(|k| Arc::ptr_eq(&k.source, source)) {
                continue;
            }
            let place = match (known, now) {
                // What was due under the old schedule and has not been begun is not passed, nor begun twice.
                (Some(known), Some(now)) => known.place.max(known.next.map_or(now, |next| next.min(now))),
                (Some(known), None) => known.place,
                (None, Some(now)) => position.place(key).max(now),
                (None, None) => position.place(key),
            };
            self.forget(key, position);
            let planned = Planned { source: Arc::clone(source), place, next: None, waits: false };
            self.sources.insert(Arc::clone(key), planned);
            self.look(key, position);
        }
    }

    /// Every source counts from `now`, whatever has been begun.
    pub(super) fn restart(&mut self, now: Timestamp, position: &mut Position) {
        let all: Vec<Key> = self.sources.keys().cloned().collect();
        for key in all {
            self.forget(&key, position);
            if let Some(planned) = self.sources.get_mut(&key) {
                planned.place = now;
            }
            self.look(&key, position);
        }
    }

    /// The first tick is begun: what to fire.
    pub(super) fn begin(&mut self, position: &mut Position) -> Option<(Timestamp, Key, Arc<S>)> {
        let (at, key) = self.next.pop_first()?;
        position.open(&key, at);
        let source = self.go_on(&key, just_after(at), position)?;
        Some((at, key, source))
    }

    /// The first tick is left out, and with it all of its source before `oldest`.
    pub(super) fn leave_out(&mut self, oldest: Timestamp, position: &mut Position) {
        if let Some((at, key)) = self.next.pop_first() {
            position.close(&key, at);
            self.go_on(&key, oldest.max(just_after(at)), position);
        }
    }

    /// The first tick waits until [`Plan::wake`].
    pub(super) fn wait(&mut self, position: &mut Position) {
        if let Some((at, key)) = self.next.pop_first() {
            position.open(&key, at);
            if let Some(planned) = self.sources.get_mut(&key) {
                planned.waits = true;
            }
        }
    }

    /// A source's tick need not wait any longer.
    pub(super) fn wake(&mut self, key: &Key) {
        if let Some(planned) = self.sources.get_mut(key)
            && let Some(next) = planned.next.filter(|_| planned.waits)
        {
            planned.waits = false;
            self.next.insert((next, Arc::clone(key)));
        }
    }

    fn go_on(&mut self, key: &Key, place: Timestamp, position: &mut Position) -> Option<Arc<S>> {
        let planned = self.sources.get_mut(key)?;
        planned.place = place;
        let source = Arc::clone(&planned.source);
        self.look(key, position);
        Some(source)
    }

    /// Looks for the next tick of a source that has none planned.
    fn look(&mut self, key: &Key, position: &mut Position) {
        let Some(planned) = self.sources.get_mut(key) else { return };
        let from = planned.source.created().map_or(planned.place, |created| created.max(planned.place));
        planned.next = planned.source.next(just_before(from));
        planned.waits = false;
        let Some(at) = planned.next else { return };
        let mark = Mark { at, key: Arc::clone(key) };
        if mark < *position.begun() {
            position.open(key, at);
        }
        self.next.insert((at, mark.key));
    }

    /// Takes back what [`Plan::look`] and [`Plan::wait`] did.
    fn forget(&mut self, key: &Key, position: &mut Position) {
        if let Some(at) = self.sources.get(key).and_then(|planned| planned.next) {
            self.next.remove(&(at, Arc::clone(key)));
            position.close(key, at);
        }
    }
}
