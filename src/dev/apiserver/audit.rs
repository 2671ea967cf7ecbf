//! What was asked of the server: a bounded log, counts by verb, and observers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::core::Core;
use super::request::{Call, Sub, Verb};
use crate::clock::Instant;

/// One request, when it was done with.
#[derive(Debug, Clone)]
pub struct Record {
    /// When it arrived, on the server's clock.
    pub arrived: Instant,
    /// When it was carried out, or (where it never was) given up.
    pub done: Instant,
    /// Who asked.
    pub client: Arc<str>,
    /// What for.
    pub verb: Verb,
    /// The group; empty for the core group.
    pub group: String,
    /// The plural, as in `leases`.
    pub resource: String,
    /// `status` and the like; none for the object itself.
    pub subresource: Option<&'static str>,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path, or the one given to what was created.
    pub name: Option<String>,
    /// The code that the server came to, which a fault may have kept from the client; none where the request was
    /// never carried out: dropped by a rule, or cancelled.
    pub code: Option<u16>,
    /// The newest revision after a write that committed one; none otherwise.
    pub revision: Option<u64>,
}

/// Requests of one resource, by verb: `lease_requests` of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Reads of one object.
    pub get: u64,
    /// Reads of a collection.
    pub list: u64,
    /// Watches opened.
    pub watch: u64,
    /// POSTs.
    pub create: u64,
    /// PUTs.
    pub update: u64,
    /// PATCHes.
    pub patch: u64,
    /// Deletes, of one object or of a collection.
    pub delete: u64,
}

impl Counts {
    fn add(&mut self, verb: Verb, n: u64) {
        match verb {
            Verb::Get => self.get += n,
            Verb::List => self.list += n,
            Verb::Watch => self.watch += n,
            Verb::Create => self.create += n,
            Verb::Update => self.update += n,
            Verb::Patch => self.patch += n,
            Verb::Delete | Verb::DeleteCollection => self.delete += n,
        }
    }
}

type RequestFn = Arc<dyn Fn(&Record) + Send + Sync>;

struct Inner {
    records: VecDeque<Record>,
    /// By resource, client and verb. Clients are few: one per replica.
    counts: BTreeMap<(String, Arc<str>, Verb), u64>,
    observers: Vec<RequestFn>,
    keep: usize,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

/// The audit log.
#[derive(Debug)]
pub(crate) struct Audit(Mutex<Inner>);

impl Audit {
    pub(crate) fn new(keep: usize) -> Self {
        Self(Mutex::new(Inner { records: VecDeque::new(), counts: BTreeMap::new(), observers: Vec::new(), keep }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn observe(&self, f: RequestFn) {
        self.lock().observers.push(f);
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.lock().records.iter().cloned().collect()
    }

    /// Counts of a resource, of one client or of all.
    pub(crate) fn counts(&self, client: Option<&str>, resource: &str) -> Counts {
        let mut out = Counts::default();
        for ((r, c, verb), n) in &self.lock().counts {
            if r == resource && client.is_none_or(|client| **c == *client) {
                out.add(*verb, *n);
            }
        }
        out
    }

    /// Counts a request that has arrived. It is recorded when the answer is dropped, done or not.
    pub(crate) fn arrived(&self, call: &Call) {
        *self.lock().counts.entry((call.resource.plural.clone(), call.client.clone(), call.verb)).or_default() += 1;
    }

    fn push(&self, record: &Record) {
        let observers = {
            let mut inner = self.lock();
            if inner.keep > 0 {
                if inner.records.len() == inner.keep {
                    inner.records.pop_front();
                }
                inner.records.push_back(record.clone());
            }
            inner.observers.clone()
        };
        for observer in observers {
            observer(record);
        }
    }
}

/// A request under way; recorded when it is done with, or dropped.
pub(crate) struct Pending {
    core: Arc<Core>,
    record: Option<Record>,
}

impl Pending {
    pub(crate) fn new(core: Arc<Core>, call: &Call) -> Self {
        core.audit.arrived(call);
        let now = core.options.clock.now();
        let record = Record {
            arrived: now,
            done: now,
            client: call.client.clone(),
            verb: call.verb,
            group: call.resource.group.clone(),
            resource: call.resource.plural.clone(),
            subresource: call.sub.map(Sub::as_str),
            namespace: call.namespace.clone(),
            name: call.about().map(str::to_owned),
            code: None,
            revision: None,
        };
        Self { core, record: Some(record) }
    }

    /// The request was carried out.
    pub(crate) fn done(&mut self, code: u16, revision: Option<u64>, name: Option<String>) {
        if let Some(record) = self.record.as_mut() {
            record.code = Some(code);
            record.revision = revision;
            if name.is_some() {
                record.name = name;
            }
        }
        self.file();
    }

    fn file(&mut self) {
        if let Some(mut record) = self.record.take() {
            record.done = self.core.options.clock.now();
            self.core.audit.push(&record);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.file();
    }
}
