//! What the server is at one moment: everything that the one lock guards.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::kinds::{Registry, Resource, crd};
use super::object::{Key, Object};
use super::options::Options;
use super::request::{Call, Verb};
use super::store::{Snapshot, Store, Window};
use crate::clock::SharedClock;

/// One committed change, as an observer gets it.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The revision.
    pub revision: u64,
    /// The group of the kind; empty for the core group.
    pub group: String,
    /// The kind's plural, as in `leases`.
    pub resource: String,
    /// The client whose request it was.
    pub client: Arc<str>,
    /// What the request was.
    pub verb: Verb,
    /// The version before; none for a creation.
    pub before: Option<Arc<Object>>,
    /// The version after; none for a deletion.
    pub after: Option<Arc<Object>>,
    /// When, on the server's clock.
    pub at: crate::clock::Instant,
}

pub(crate) type CommitFn = Box<dyn Fn(&Commit) + Send + Sync>;

/// A denial: `*` stands for any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) client: String,
    pub(crate) verb: Option<Verb>,
    pub(crate) resource: String,
}

pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) rng: fastrand::Rng,
    pub(crate) clock: SharedClock,
    pub(crate) denied: Vec<Denial>,
    pub(crate) observers: Vec<CommitFn>,
    /// What the present request's client is to be warned of.
    pub(crate) warnings: Vec<String>,
    /// When Events were last looked through for old ones.
    pub(crate) expired: Instant,
    /// Whether managed fields are kept.
    pub(crate) managed_fields: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("revision", &self.store.revision()).finish_non_exhaustive()
    }
}

impl State {
    pub(crate) fn new(options: &Options) -> Self {
        let window =
            Window { changes: options.history.max(8), bytes: options.history_bytes, age: options.compact_every };
        let mut store = Store::new(options.first_revision.max(1), window, Instant::now());
        let registry = Registry::builtin(&mut store);
        Self {
            store,
            registry,
            rng: fastrand::Rng::with_seed(options.seed),
            clock: options.clock.clone(),
            denied: Vec::new(),
            observers: Vec::new(),
            warnings: Vec::new(),
            expired: Instant::now(),
            managed_fields: options.managed_fields,
        }
    }

    /// A new uid, from the server's own generator: the same seed gives the same uids.
    pub(crate) fn new_uid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.rng.u128(..).to_be_bytes()).into_uuid().to_string()
    }

    /// Five characters for a generateName, from the alphabet that upstream uses (no vowels, no look-alikes).
    pub(crate) fn new_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(ALPHABET[self.rng.usize(..ALPHABET.len())])).collect()
    }

    /// The wall clock, as metadata shows it: whole seconds.
    pub(crate) fn timestamp(&self) -> String {
        self.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The present version of an object.
    pub(crate) fn get(&self, resource: &Resource, key: &Key) -> Option<Arc<Object>> {
        self.store.table(resource.table).get(key).cloned()
    }

    /// Commits a version of an object and tells the observers.
    pub(crate) fn put(&mut self, call: &Call, resource: &Resource, key: Key, value: Value) -> Arc<Object> {
        let before = self.get(resource, &key);
        let after = self.store.put(resource.table, key, value, Instant::now());
        self.tell(call, resource, before, Some(&after), after.revision());
        if resource.definition == crd::DEFINITION {
            self.serve(after.value());
        }
        after
    }

    /// Commits a deletion and tells the observers; none where nothing was there.
    pub(crate) fn remove(&mut self, call: &Call, resource: &Resource, key: &Key) -> Option<Arc<Object>> {
        let before = self.get(resource, key);
        let gone = self.store.delete(resource.table, key, Instant::now())?;
        self.tell(call, resource, before, None, gone.revision());
        if resource.definition == crd::DEFINITION {
            let (group, plural) = crd::names(gone.value());
            self.registry.remove_custom(group, plural);
        }
        Some(gone)
    }

    /// Serves what a CRD brings, in place of what it brought before.
    fn serve(&mut self, definition: &Value) {
        let (group, plural) = crd::names(definition);
        self.registry.remove_custom(group, plural);
        for resource in crd::resources(definition, &mut self.store) {
            self.registry.add(resource);
        }
    }

    /// Goes back to a snapshot, and to the kinds that were served then.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot) {
        self.store.restore(snapshot, Instant::now());
        self.registry.clear_custom();
        let Some(crds) = self.registry.any(crd::GROUP, crd::PLURAL).map(|r| r.table) else { return };
        let definitions: Vec<Arc<Object>> = self.store.table(crds).range(None, None).cloned().collect();
        for definition in definitions {
            self.serve(definition.value());
        }
    }

    fn tell(
        &self,
        call: &Call,
        resource: &Resource,
        before: Option<Arc<Object>>,
        after: Option<&Arc<Object>>,
        revision: u64,
    ) {
        if self.observers.is_empty() {
            return;
        }
        let commit = Commit {
            revision,
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            client: call.client.clone(),
            verb: call.verb,
            before,
            after: after.cloned(),
            at: self.clock.now(),
        };
        for observer in &self.observers {
            observer(&commit);
        }
    }

    /// Whether a denial covers this request.
    pub(crate) fn denies(&self, call: &Call) -> bool {
        self.denied.iter().any(|d| {
            (d.client == "*" || *d.client == *call.client)
                && d.verb.is_none_or(|v| v == call.verb)
                && (d.resource == "*" || d.resource == call.resource.plural)
        })
    }
}
