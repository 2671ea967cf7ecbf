//! The objects and their history: etcd's part of the work.
//!
//! # Guarantees
//! - One revision for all kinds; each committed change raises it by one, and nothing else does.
//! - Every revision from the last compaction on can be read back: the present plus the log, undone.
//! - The log is bounded, by number, by size and by age. What falls out of it raises the compacted revision, so a reader learns
//!   that it missed something (410) instead of missing it.
//!
//! # Assumptions
//! The caller holds the one lock around it; nothing here waits.

mod snapshot;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

pub use snapshot::Snapshot;
pub(crate) use table::{Change, Table};

use super::object::{Key, Object};

/// Which table an object lives in. Two resources that are views of one kind (core and events.k8s.io Events) share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableId(usize);

/// What a read that needs an older revision gets told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest revision that can still be read.
    pub(crate) oldest: u64,
}

/// The bounds of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Changes kept, over all tables.
    pub(crate) changes: usize,
    /// Bytes kept, over all tables, as JSON.
    pub(crate) bytes: usize,
    /// How long a change can be asked for at least; etcd is compacted by the API server in this way.
    pub(crate) age: Duration,
}

/// The tables and the one revision.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    compacted: u64,
    incarnation: u64,
    tables: Vec<Table>,
    names: Vec<(String, String)>,
    window: Window,
    logged: usize,
    logged_bytes: usize,
    /// The last tick of the compaction by age, and the revisions that were newest then and one tick earlier.
    mark: (Instant, u64, u64),
}

impl Store {
    pub(crate) fn new(revision: u64, window: Window, now: Instant) -> Self {
        Self {
            revision,
            compacted: revision,
            incarnation: 0,
            tables: Vec::new(),
            names: Vec::new(),
            window,
            logged: 0,
            logged_bytes: 0,
            mark: (now, revision, revision),
        }
    }

    /// The revision of the newest change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest revision that can be read.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Grows by one at each restore: a watch of an earlier incarnation has ended.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The table of a group's resource, made when first asked for.
    pub(crate) fn table_id(&mut self, group: &str, plural: &str) -> TableId {
        if let Some(at) = self.names.iter().position(|(g, p)| g == group && p == plural) {
            return TableId(at);
        }
        self.names.push((group.to_owned(), plural.to_owned()));
        self.tables.push(Table::new());
        TableId(self.tables.len() - 1)
    }

    pub(crate) fn table(&self, id: TableId) -> &Table {
        &self.tables[id.0]
    }

    /// Writes a version of an object; the answer is the version as stored.
    pub(crate) fn put(&mut self, id: TableId, key: Key, value: Value, now: Instant) -> Arc<Object> {
        self.age(now);
        self.revision += 1;
        let object = Object::new(key, self.revision, value);
        let bytes = self.tables[id.0].put(object.clone(), now);
        self.log_grew(id, bytes);
        object
    }

    /// Removes an object; the answer is its last content at the revision of the deletion.
    pub(crate) fn delete(&mut self, id: TableId, key: &Key, now: Instant) -> Option<Arc<Object>> {
        self.age(now);
        let (gone, bytes) = self.tables[id.0].delete(key, self.revision + 1, now)?;
        self.revision += 1;
        self.log_grew(id, bytes);
        Some(gone)
    }

    /// Raises the oldest revision that can be asked for.
    ///
    /// Reads of an earlier revision, and new watches from one, are answered with 410 from now on. A watch that is open
    /// already goes on: its changes leave the log only with age or number.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.revision));
    }

    /// Drops the changes up to `revision` from the log. A watch that has not read them by now has lost them.
    fn forget(&mut self, revision: u64) {
        self.compact(revision);
        for table in &mut self.tables {
            let (changes, bytes) = table.forget(revision);
            self.logged -= changes;
            self.logged_bytes -= bytes;
        }
        for table in &self.tables {
            table.wake();
        }
    }

    fn log_grew(&mut self, id: TableId, bytes: usize) {
        self.logged += 1;
        self.logged_bytes += bytes;
        self.tables[id.0].wake();
        let Window { changes, bytes, .. } = self.window;
        // Revisions in the log are without gaps, so so many changes are so many revisions. What goes over the bound
        // takes a quarter of the log along, so that this is rare.
        let kept = self.logged as u64;
        if self.logged > changes || (self.logged_bytes > bytes && kept > 1) {
            self.forget(self.revision - (kept - (kept / 4).max(1)));
        }
    }

    /// Compacts by age: every `age`, to the revision that was newest at the last such moment.
    pub(crate) fn age(&mut self, now: Instant) {
        let (at, newest, before) = self.mark;
        if now.saturating_duration_since(at) >= self.window.age {
            self.mark = (now, self.revision, newest);
            self.compact(newest);
            self.forget(before);
        }
    }

    /// Whether a read at `revision` is still possible.
    ///
    /// # Errors
    /// When it is older than the last compaction.
    pub(crate) fn readable(&self, revision: u64) -> Result<(), Compacted> {
        if revision < self.compacted { Err(Compacted { oldest: self.compacted }) } else { Ok(()) }
    }
}
