//! One per process and namespace, for all its queues: the client, the watch, the view, and who may run which queue.
//!
//! # Guarantees
//! - One watch, however many queues. Each subscriber is told of its own names in the order in which they happened,
//!   beginning with a list.
//! - A queue has at most one elector in the process.

use super::client::{Connect, Failure, GRANTS, LeaseClient};
use super::record::Record;
use super::watch::{self, Bounds};
use crate::clock::SharedClock;
use crate::elector::BuildError;
use crate::leader::BoxError;
use crate::leader::observe::{Event, Listeners, Observer, SharedObserver};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc, watch as watch_channel};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a subscriber is told.
#[derive(Debug, Clone)]
pub enum Seen {
    /// Everything there is, at one revision: what is not in it is not there.
    Listed {
        /// The revision of the list.
        revision: u64,
        /// The Leases that the subscriber asked for.
        records: Vec<Arc<Record>>,
    },
    /// Made or changed.
    Changed(Arc<Record>),
    /// Deleted; its revision is that of the deletion.
    Deleted(Arc<Record>),
    /// The cluster's revision went back (a restored etcd): nothing seen before counts. A list follows.
    WentBack {
        /// The highest seen.
        from: u64,
        /// Where it is now.
        to: u64,
    },
}

type Filter = Box<dyn Fn(&str) -> bool + Send + Sync>;

struct Subscriber {
    wants: Filter,
    told: mpsc::UnboundedSender<Seen>,
}

#[derive(Default)]
struct State {
    listed: bool,
    revision: u64,
    leases: BTreeMap<String, Arc<Record>>,
    subscribers: Vec<Subscriber>,
}

/// The watched view.
pub(super) struct View {
    state: Mutex<State>,
    relist: Notify,
    /// Why the Leases cannot be seen, while they can't.
    trouble: watch_channel::Sender<Option<String>>,
    observer: Arc<Listeners>,
}

impl View {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn revision(&self) -> u64 {
        self.state().revision
    }

    pub(super) async fn relist_wanted(&self) {
        self.relist.notified().await;
    }

    pub(super) fn tell(&self, seen: &Seen) {
        let mut state = self.state();
        state.subscribers.retain(|s| s.told.send(seen.clone()).is_ok());
    }

    pub(super) fn listed(&self, revision: u64, records: Vec<Record>) {
        let mut state = self.state();
        state.listed = true;
        state.revision = revision;
        state.leases = records.into_iter().map(|r| (r.name.clone(), Arc::new(r))).collect();
        let State { subscribers, leases, .. } = &mut *state;
        subscribers.retain(|s| s.told.send(snapshot(leases, revision, &s.wants)).is_ok());
    }

    /// False: it is older than what was seen, so only a list can tell how things stand.
    pub(super) fn changed(&self, record: Record) -> bool {
        let mut state = self.state();
        if record.revision <= state.revision {
            return false;
        }
        state.revision = record.revision;
        let record = Arc::new(record);
        state.leases.insert(record.name.clone(), Arc::clone(&record));
        state
            .subscribers
            .retain(|s| !(s.wants)(&record.name) || s.told.send(Seen::Changed(Arc::clone(&record))).is_ok());
        true
    }

    /// False: it is older than what was seen.
    pub(super) fn deleted(&self, record: Record) -> bool {
        let mut state = self.state();
        // Servers before 1.16 gave the deleted object its last version; then the view's own revision has to do.
        if record.revision < state.leases.get(&record.name).map_or(0, |r| r.revision) {
            return false;
        }
        state.revision = state.revision.max(record.revision);
        let record = Arc::new(record);
        state.leases.remove(&record.name);
        state
            .subscribers
            .retain(|s| !(s.wants)(&record.name) || s.told.send(Seen::Deleted(Arc::clone(&record))).is_ok());
        true
    }

    /// False: it is older than what was seen.
    pub(super) fn bookmark(&self, revision: u64) -> bool {
        let mut state = self.state();
        let forward = revision >= state.revision;
        state.revision = state.revision.max(revision);
        forward
    }

    pub(super) fn trouble(&self, doing: &str, failure: &Failure) {
        let forbidden = matches!(failure, Failure::Forbidden(_));
        let help = if forbidden { format!(". Grant {GRANTS}; tried again every few seconds") } else { String::new() };
        let text = format!("the Leases can't be seen: {doing}: {failure}{help}");
        let news = self.trouble.send_replace(Some(text.clone())).as_ref() != Some(&text);
        if news {
            tracing::warn!("{text}");
            let code = if forbidden { "forbidden" } else { "watch" };
            self.observer.observe(&Event::Notice { code, text });
        }
    }

    pub(super) fn clear_trouble(&self) {
        if self.trouble.send_replace(None).is_some() {
            tracing::info!("the Leases are seen again");
        }
    }
}

fn snapshot(leases: &BTreeMap<String, Arc<Record>>, revision: u64, wants: &Filter) -> Seen {
    let records = leases.iter().filter(|(name, _)| wants(name)).map(|(_, r)| Arc::clone(r)).collect();
    Seen::Listed { revision, records }
}

struct Inner {
    client: LeaseClient,
    view: Arc<View>,
    /// What runs in this process: the names that a queue uses, by component and queue.
    queues: Mutex<HashMap<(String, String), Vec<String>>>,
    watching: Mutex<Option<DropGuard>>,
    bounds: Bounds,
    listeners: Arc<Listeners>,
}

/// See the module. Cheap to clone; the watch ends when the last clone is dropped.
#[derive(Clone)]
pub struct Manager(Arc<Inner>);

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("client", &self.0.client).finish_non_exhaustive()
    }
}

/// The names that a queue has claimed in this process; dropped, they are free again.
#[derive(Debug)]
pub struct Claim {
    manager: Manager,
    key: (String, String),
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.manager.queues().remove(&self.key);
    }
}

/// What a subscriber gets.
#[derive(Debug)]
pub struct Subscription(mpsc::UnboundedReceiver<Seen>);

impl Subscription {
    /// The next thing seen. Cancel-safe. Never ends while the manager lives.
    pub async fn next(&mut self) -> Seen {
        match self.0.recv().await {
            Some(seen) => seen,
            None => std::future::pending().await,
        }
    }
}

impl Manager {
    /// A manager for the Leases of `namespace`. Nothing is sent before something subscribes.
    ///
    /// # Errors
    /// What `connect` says.
    pub fn new(connect: Arc<dyn Connect>, namespace: &str, clock: SharedClock) -> Result<Self, BoxError> {
        let listeners = Arc::new(Listeners::default());
        let client = LeaseClient::new(connect, namespace, clock, listeners.clone())?;
        let view = View {
            state: Mutex::default(),
            relist: Notify::new(),
            trouble: watch_channel::Sender::new(None),
            observer: Arc::clone(&listeners),
        };
        Ok(Self(Arc::new(Inner {
            client,
            view: Arc::new(view),
            queues: Mutex::default(),
            watching: Mutex::default(),
            bounds: Bounds::default(),
            listeners,
        })))
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<(String, String), Vec<String>>> {
        self.0.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells `observer` of every request from here on, once however often it is given.
    pub fn listen(&self, observer: &SharedObserver) {
        self.0.listeners.join(observer);
    }

    /// The client.
    pub fn client(&self) -> &LeaseClient {
        &self.0.client
    }

    /// Claims a queue and the Lease names it uses.
    ///
    /// # Errors
    /// [`BuildError::Twice`] where the queue has an elector already, [`BuildError::Name`] where another queue uses one
    /// of the names.
    pub fn claim(&self, component: &str, queue: &str, names: Vec<String>) -> Result<Claim, BuildError> {
        let key = (component.to_owned(), queue.to_owned());
        let mut queues = self.queues();
        if queues.contains_key(&key) {
            return Err(BuildError::Twice { component: key.0, queue: key.1 });
        }
        for ((other, other_queue), taken) in queues.iter() {
            if let Some(name) = names.iter().find(|n| taken.contains(n)) {
                return Err(BuildError::Name(format!(
                    "the Lease name {name:?} of queue {queue:?} in component {component:?} is also one of queue {other_queue:?} in \
                     component {other:?}: two queues would fight for one Lease; rename one, or map its prefix with map-lease-prefix"
                )));
            }
        }
        queues.insert(key.clone(), names);
        drop(queues);
        Ok(Claim { manager: self.clone(), key })
    }

    /// Subscribes to the Leases whose names `wants`, beginning with a list. The first subscriber starts the watch.
    pub fn subscribe(&self, wants: impl Fn(&str) -> bool + Send + Sync + 'static) -> Subscription {
        let (told, seen) = mpsc::unbounded_channel();
        let wants: Filter = Box::new(wants);
        {
            let mut state = self.0.view.state();
            if state.listed {
                let _ = told.send(snapshot(&state.leases, state.revision, &wants));
            }
            state.subscribers.push(Subscriber { wants, told });
        }
        let mut watching = self.0.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.is_none() {
            let stop = CancellationToken::new();
            *watching = Some(stop.clone().drop_guard());
            let (client, view, bounds) = (self.0.client.clone(), Arc::clone(&self.0.view), self.0.bounds);
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = watch::run(client, view, bounds) => {}
                }
            });
        }
        Subscription(seen)
    }

    /// Why the Leases cannot be seen, for as long as they can't.
    pub fn trouble(&self) -> watch_channel::Receiver<Option<String>> {
        self.0.view.trouble.subscribe()
    }

    /// The view has missed something: list anew, on a fresh connection.
    pub fn relist(&self) {
        self.0.view.relist.notify_one();
    }
}
