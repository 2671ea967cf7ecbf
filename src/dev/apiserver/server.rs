//! The server as its users see it.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::audit::{Counts, Record};
use super::core::Core;
use super::faults::{Board, Cut, Faults, Match};
use super::local::Local;
use super::object::{Key, Object};
use super::options::Options;
use super::request::Verb;
use super::state::{Commit, Denial};
use super::store::Snapshot;

/// An API server in memory. Clones are the same server; it lives as long as anything holds it.
#[derive(Debug, Clone)]
pub struct Server {
    pub(crate) core: Arc<Core>,
}

impl Default for Server {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Server {
    /// A server with nothing in it but the namespaces that every cluster has.
    pub fn new(options: Options) -> Self {
        Self { core: Core::new(options) }
    }

    /// A connection within this process, of a client of this name.
    pub fn client(&self, name: &str) -> Local {
        Local::new(self.core.clone(), name)
    }

    fn board(&self) -> &Board {
        &self.core.faults
    }

    /// The faults of one client; `*` for those of all clients.
    pub fn faults(&self, client: &str) -> Faults {
        self.board().handle(client)
    }

    /// Refuses requests as an authorizer does: 403. `*` stands for any client or resource, `None` for any verb.
    pub fn deny(&self, client: &str, verb: Option<Verb>, resource: &str) {
        self.core.state().denied.push(Denial { client: client.into(), verb, resource: resource.into() });
    }

    /// Takes back a denial made with the same arguments.
    pub fn allow(&self, client: &str, verb: Option<Verb>, resource: &str) {
        let denial = Denial { client: client.into(), verb, resource: resource.into() };
        self.core.state().denied.retain(|d| *d != denial);
    }

    /// The revision of the newest change.
    pub fn revision(&self) -> u64 {
        self.core.state().store.revision()
    }

    /// Forgets the history up to a revision, as etcd's compaction does: reads of it and watches from it get 410.
    /// Watches that are open go on.
    pub fn compact(&self, revision: u64) {
        self.core.state().store.compact(revision);
    }

    /// A copy of everything.
    pub fn snapshot(&self) -> Snapshot {
        self.core.state().store.snapshot()
    }

    /// Goes back to a snapshot, as restoring etcd from one does: the revision goes back too, so that revisions
    /// repeat, and every open watch breaks.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.core.state().restore(snapshot);
    }

    /// The newest version of an object, as it is stored; none where there is none.
    pub fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let state = self.core.state();
        let resource = state.registry.all().find(|r| r.group == group && r.plural == plural)?.clone();
        state.get(&resource, &Key::new(namespace, name))
    }

    /// Calls `f` with every change, in order, as it is committed.
    ///
    /// It runs inside the commit: it must not block, and must not call the server.
    pub fn on_commit(&self, f: impl Fn(&Commit) + Send + Sync + 'static) {
        self.core.state().observers.push(Box::new(f));
    }

    /// Every change from now on, in order. What is not received is kept, so receive.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<Commit> {
        let (tx, rx) = mpsc::unbounded_channel();
        self.on_commit(move |commit| {
            // A receiver that is gone wants no more.
            let _ = tx.send(commit.clone());
        });
        rx
    }

    /// Calls `f` with every request, when it has been carried out or given up.
    pub fn on_request(&self, f: impl Fn(&Record) + Send + Sync + 'static) {
        self.core.audit.observe(Arc::new(f));
    }

    /// The last requests, oldest first: as many as [`Options::audit`] keeps.
    pub fn requests(&self) -> Vec<Record> {
        self.core.audit.records()
    }

    /// How many requests for a resource (by its plural) have arrived since the start, of one client or of all.
    pub fn counts(&self, client: Option<&str>, resource: &str) -> Counts {
        self.core.audit.counts(client, resource)
    }

    /// How many requests for Leases have arrived since the start, of all clients.
    pub fn lease_requests(&self) -> Counts {
        self.counts(None, "leases")
    }

    /// Ends the open watches that the match covers; says how many. See [`Faults::cut_watches`].
    pub fn cut_watches(&self, which: &Match, how: Cut) -> usize {
        self.faults("*").cut_watches(which, how)
    }
}
