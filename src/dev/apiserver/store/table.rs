//! One kind's objects and the log of their changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::dev::apiserver::object::{Key, Object};

/// One committed change.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Its revision.
    pub(crate) revision: u64,
    /// The version before; none for a creation.
    pub(crate) prev: Option<Arc<Object>>,
    /// The version after; for a deletion the last content, at the deletion's revision.
    pub(crate) now: Arc<Object>,
    /// Whether the object is gone with it.
    pub(crate) deleted: bool,
    /// When, on the runtime's timer: for watches that lag.
    pub(crate) at: Instant,
    /// What it takes up, as JSON.
    bytes: usize,
}

/// One kind's objects.
#[derive(Debug)]
pub(crate) struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    log: VecDeque<Change>,
    /// The newest change that the log has dropped.
    forgotten: u64,
    /// A Notify wakes in the order in which it was asked; a watch channel wakes in one drawn by lot, and no simulation
    /// would repeat itself.
    news: Arc<Notify>,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { objects: BTreeMap::new(), log: VecDeque::new(), forgotten: 0, news: Arc::default() }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// The objects of a namespace (all, where none is named), after `after` where that is given.
    pub(crate) fn range<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let from = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(ns)) => Bound::Included(Key::new(ns, "")),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range((from, Bound::Unbounded))
            .take_while(move |(key, _)| namespace.is_none_or(|ns| &*key.namespace == ns))
            .map(|(_, object)| object)
    }

    /// The objects as they were at `revision`, which must not be compacted: the present, with what came later undone.
    pub(crate) fn at(&self, revision: u64) -> BTreeMap<Key, Arc<Object>> {
        let mut then = self.objects.clone();
        for change in self.log.iter().rev().take_while(|c| c.revision > revision) {
            match &change.prev {
                Some(prev) => then.insert(prev.key().clone(), prev.clone()),
                None => then.remove(change.now.key()),
            };
        }
        then
    }

    /// One object as it was at `revision`, which must not be compacted.
    pub(crate) fn get_at(&self, key: &Key, revision: u64) -> Option<Arc<Object>> {
        match self.changes_after(revision).find(|c| c.now.key() == key) {
            Some(change) => change.prev.clone(),
            None => self.get(key).cloned(),
        }
    }

    /// The changes after `revision`, in order.
    pub(crate) fn changes_after(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let from = self.log.partition_point(|c| c.revision <= revision);
        self.log.range(from..)
    }

    /// Whether the log still has every change after `revision`.
    pub(crate) fn remembers(&self, revision: u64) -> bool {
        revision >= self.forgotten
    }

    /// Wakes whenever something changed, was compacted or was restored.
    pub(crate) fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.news)
    }

    pub(super) fn wake(&self) {
        self.news.notify_waiters();
    }

    /// Adds a change; says what it takes up.
    pub(super) fn put(&mut self, object: Arc<Object>, at: Instant) -> usize {
        let prev = self.objects.insert(object.key().clone(), object.clone());
        let bytes = object.json().len();
        self.log.push_back(Change { revision: object.revision(), prev, now: object, deleted: false, at, bytes });
        bytes
    }

    /// Adds a deletion; says what was deleted and what the change takes up.
    pub(super) fn delete(&mut self, key: &Key, revision: u64, at: Instant) -> Option<(Arc<Object>, usize)> {
        let prev = self.objects.remove(key)?;
        let now = prev.at(revision);
        let bytes = now.json().len();
        self.log.push_back(Change { revision, prev: Some(prev), now: now.clone(), deleted: true, at, bytes });
        Some((now, bytes))
    }

    /// Drops the changes up to `revision`; says how many, and what they took up.
    pub(super) fn forget(&mut self, revision: u64) -> (usize, usize) {
        let n = self.log.partition_point(|c| c.revision <= revision);
        let mut bytes = 0;
        for change in self.log.drain(..n) {
            bytes += change.bytes;
            self.forgotten = change.revision;
        }
        (n, bytes)
    }

    pub(super) fn objects(&self) -> &BTreeMap<Key, Arc<Object>> {
        &self.objects
    }

    /// Puts other objects in place of these, without a history.
    pub(super) fn replace(&mut self, objects: BTreeMap<Key, Arc<Object>>) {
        self.objects = objects;
        self.log.clear();
        self.forgotten = 0;
    }
}
