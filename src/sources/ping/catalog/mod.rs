//! Which PingSources there are, from a file or from the API, ready to fire.
//!
//! # Guarantees
//! - A source that cannot fire (its schedule, its data, its sink) is said once per edit and left out; it keeps none of
//!   the others from firing.
//! - A source that did not change in anything that its events depend on stays the same entry, whatever is written into
//!   its status.
//! - A file that cannot be read any more, and an API that cannot be reached, leave the last sources in force.

mod api;
mod entry;
mod file;
#[cfg(test)]
#[cfg(feature = "dev")]
mod tests;

use super::position::Key;
use super::source::PingSource;
use super::ticker::{Catalog, Known};
use crate::adapter::Sink;
pub(super) use entry::Entry;
#[cfg(test)]
pub(super) use entry::NotFiring;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A source, and what came of it.
struct Judged {
    made_of: PingSource,
    /// None: it does not fire, and why has been said.
    entry: Option<Arc<Entry>>,
}

impl Judged {
    /// Whether `source` would be judged alike.
    fn holds_for(&self, source: &PingSource) -> bool {
        let (now, then) = (source, &self.made_of);
        now.spec == then.spec
            && now.metadata.uid == then.metadata.uid
            && now.metadata.creation_timestamp == then.metadata.creation_timestamp
            && now.metadata.deletion_timestamp.is_some() == then.metadata.deletion_timestamp.is_some()
            && now.sink_uri() == then.sink_uri()
            && now.ready() == then.ready()
    }
}

/// Keeps the catalog.
pub(super) struct Keeper {
    sink: Sink,
    /// For how long an event is tried that its sink does not take.
    keep_trying: Duration,
    judged: BTreeMap<Key, Judged>,
    /// None until it is known for the first time.
    out: watch::Sender<Option<Arc<Catalog<Entry>>>>,
}

impl Keeper {
    pub(super) fn new(sink: Sink, keep_trying: Duration) -> (Self, Known<Entry>) {
        let (out, seen) = watch::channel(None);
        (Self { sink, keep_trying, judged: BTreeMap::new(), out }, seen)
    }

    /// This is a source now.
    fn put(&mut self, source: PingSource) {
        let key = Key::from(source.key());
        if self.judged.get(&key).is_some_and(|judged| judged.holds_for(&source)) {
            return;
        }
        let entry = match Entry::new(&source, &self.sink, self.keep_trying) {
            Ok(entry) => Some(Arc::new(entry)),
            Err(why) => {
                why.say(&key);
                None
            }
        };
        self.judged.insert(key, Judged { made_of: source, entry });
    }

    /// There is no such source any more.
    fn remove(&mut self, key: &str) {
        self.judged.remove(key);
    }

    /// These are all there are.
    fn replace(&mut self, sources: impl IntoIterator<Item = PingSource>) {
        let mut there = BTreeSet::new();
        for source in sources {
            there.insert(source.key());
            self.put(source);
        }
        self.judged.retain(|key, _| there.contains(&**key));
    }

    /// Those that fire are given to the buckets, if they are others than before.
    fn publish(&self) {
        let fires = |(key, judged): (&Key, &Judged)| Some((Arc::clone(key), Arc::clone(judged.entry.as_ref()?)));
        let catalog: Catalog<Entry> = self.judged.iter().filter_map(fires).collect();
        self.out.send_if_modified(|now| {
            let same = now.as_ref().is_some_and(|now| {
                let mut pairs = now.iter().zip(&catalog);
                now.len() == catalog.len() && pairs.all(|((a, x), (b, y))| a == b && Arc::ptr_eq(x, y))
            });
            if !same {
                *now = Some(Arc::new(catalog));
            }
            !same
        });
    }
}
