//! A copy of everything at one revision, and going back to it: what restoring an etcd snapshot does.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::Store;
use crate::dev::apiserver::object::{Key, Object};

/// Everything that was stored at one revision.
#[derive(Debug, Clone)]
pub struct Snapshot {
    revision: u64,
    tables: Vec<BTreeMap<Key, Arc<Object>>>,
}

impl Snapshot {
    /// The revision it was taken at.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl Store {
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot { revision: self.revision, tables: self.tables.iter().map(|t| t.objects().clone()).collect() }
    }

    /// Goes back to `snapshot`: its objects, and its revision, which the next writes count on from.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot, now: Instant) {
        self.revision = snapshot.revision;
        self.compacted = snapshot.revision;
        self.incarnation += 1;
        self.logged = 0;
        self.logged_bytes = 0;
        self.mark = (now, snapshot.revision, snapshot.revision);
        for (at, table) in self.tables.iter_mut().enumerate() {
            // A table made after the snapshot was empty then.
            table.replace(snapshot.tables.get(at).cloned().unwrap_or_default());
            table.wake();
        }
    }
}
