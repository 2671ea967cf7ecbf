//! A fleet of replicas over the in-memory API server, on paused time.

use crate::clock::{SkewedClock, Truth};
use crate::history::version::{Cut, Version};
use crate::history::{Call, History, What};
pub use crate::process::Ice;
use crate::process::{Life, Work};
use crate::proxy::{Meddle, Proxy};
use crate::spy::Eyes;
use futures::future::BoxFuture;
use leasehold::bucket::{Bucket, Hash};
use leasehold::clock::SharedClock;
use leasehold::config::{Config, Timing};
use leasehold::dev::apiserver::{Faults, Options, Server, Snapshot};
use leasehold::elector::standard::Standard;
use leasehold::elector::{Queue, Status, Strategy};
use leasehold::leader::fatal::Fatal;
use leasehold::leader::observe::{Event, Observer};
use leasehold::leader::{BoxError, DynLeaderAware, Leadership, Reason, Term};
use leasehold::lease::{Connector, Manager};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const COMPONENT: &str = "pingsource-mt-adapter";
pub const QUEUE: &str = "adapter";
pub const NAMESPACE: &str = "default";

pub fn timing(lease: u64, deadline: u64, retry: u64) -> Timing {
    let secs = Duration::from_secs;
    Timing::new(secs(lease), secs(deadline), secs(retry)).expect("valid")
}

/// The world: a server, a true time, replicas.
pub struct World {
    pub server: Server,
    pub truth: Truth,
    pub history: History,
    pub buckets: u32,
    pub timing: Timing,
    pub rng: fastrand::Rng,
    pub fatals: Arc<Mutex<Vec<Fatal>>>,
    born: AtomicU64,
    eyes: Eyes,
}

/// One running replica.
pub struct Replica {
    pub name: String,
    pub clock: Arc<SkewedClock>,
    pub leadership: Leadership,
    pub config: watch::Sender<Arc<Config>>,
    pub status: Status,
    pub faults: Faults,
    /// Freezes the elector: its answers, its events and its timers come late. Guards are given as ever.
    pub ice: Ice,
    /// Freezes all else of the process: its work, and what it sends and hears.
    pub process: Ice,
    stop: CancellationToken,
    elector: JoinHandle<()>,
    worker: JoinHandle<()>,
    work: Work,
    life: Life,
    truth: Truth,
    history: History,
}

struct Recorder {
    truth: Truth,
    history: History,
    replica: String,
}

impl Observer for Recorder {
    fn observe(&self, event: &Event) {
        let what = match event {
            Event::TermBegun { bucket, token, .. } => What::Begun { bucket: bucket.name().to_owned(), token: *token },
            Event::Promoted { bucket, .. } => What::Promoted { bucket: bucket.name().to_owned() },
            Event::GuardsOut { bucket, .. } => What::Shut { bucket: bucket.name().to_owned() },
            Event::PromoteFailed { bucket, .. } => What::PromoteFailed { bucket: bucket.name().to_owned() },
            Event::TermEnded { bucket, token, reason, .. } => {
                What::Ended { bucket: bucket.name().to_owned(), token: *token, reason: *reason }
            }
            Event::Notice { code, text } => What::Notice(format!("{code}: {text}")),
            _ => return,
        };
        self.history.add(self.truth.now(), &self.replica, what);
    }
}

/// Notes what a LeaderAware is told, and when it has returned.
struct Watched {
    aware: Arc<dyn DynLeaderAware>,
    recorder: Recorder,
}

impl Recorder {
    fn aware(&self, bucket: &Bucket, call: Call) {
        let what = What::Aware { bucket: bucket.name().to_owned(), call };
        self.history.add(self.truth.now(), &self.replica, what);
    }
}

impl DynLeaderAware for Watched {
    fn promote(&self, term: Term) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            let bucket = term.bucket().clone();
            self.recorder.aware(&bucket, Call::Promote);
            let done = self.aware.promote(term).await;
            self.recorder.aware(&bucket, Call::PromoteDone(done.is_ok()));
            done
        })
    }

    fn demote<'a>(&'a self, bucket: &'a Bucket, reason: Reason) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.recorder.aware(bucket, Call::Demote);
            self.aware.demote(bucket, reason).await;
            self.recorder.aware(bucket, Call::DemoteDone);
        })
    }
}

/// How a replica differs from others.
pub struct Character {
    pub timing: Option<Timing>,
    pub buckets: Option<u32>,
    pub hash: Option<Hash>,
    pub clock_offset: Duration,
    pub clock_ppm: i64,
    pub aware: Option<Arc<dyn DynLeaderAware>>,
    /// What cannot be stopped ends the process, as it does outside of tests; else the run fails.
    pub exits: bool,
    /// Some of its work takes longer than any term that is not renewed.
    pub long_work: bool,
    /// Instead of one of its own.
    pub identity: Option<String>,
    /// What meddles with its requests on their way.
    pub meddle: Option<Meddle>,
}

impl Default for Character {
    fn default() -> Self {
        Self {
            timing: None,
            buckets: None,
            hash: None,
            clock_offset: Duration::from_secs(1000),
            clock_ppm: 0,
            aware: None,
            exits: false,
            long_work: false,
            identity: None,
            meddle: None,
        }
    }
}

impl World {
    pub fn new(seed: u64, buckets: u32, timing: Timing) -> Self {
        let truth = Truth::begin();
        let server_clock: SharedClock = Arc::new(SkewedClock::new(truth, Duration::from_secs(5), 0));
        let options = Options { first_revision: 1000, ..Options::seeded(server_clock, seed) };
        let server = Server::new(options);
        let history = History::default();
        let eyes = Eyes::open(&server, truth, &history);
        Self {
            server,
            eyes,
            truth,
            history,
            buckets,
            timing,
            rng: fastrand::Rng::with_seed(seed),
            fatals: Arc::default(),
            born: AtomicU64::new(0),
        }
    }

    pub fn config(&self, character: &Character) -> Config {
        let timing = character.timing.unwrap_or(self.timing);
        let Timing { lease_duration, renew_deadline, retry_period, .. } = timing;
        Config::builder()
            .timing(lease_duration, renew_deadline, retry_period)
            .buckets(character.buckets.unwrap_or(self.buckets))
            .hash(character.hash.unwrap_or(Hash::Knative))
            .build()
            .expect("valid")
    }

    pub fn replica(&self, character: Character) -> Replica {
        let n = self.born.fetch_add(1, Ordering::Relaxed);
        let name = format!("r{n}");
        let clock = Arc::new(SkewedClock::new(self.truth, character.clock_offset, character.clock_ppm));
        let shared: SharedClock = clock.clone();
        let recorder = || Recorder { truth: self.truth, history: self.history.clone(), replica: name.clone() };
        let observer = Arc::new(recorder());
        let process = Ice::default();
        let server = Proxy { inner: self.server.client(&name), meddle: character.meddle.clone() };
        let number = self.rng.clone().u32(..) ^ u32::try_from(n).expect("few");
        let identity = character.identity.clone().unwrap_or_else(|| format!("{name}_{number:08x}"));
        let spy = self.eyes.spy(server, &name, &identity, process.clone());
        let client = kube::Client::new(spy, NAMESPACE);
        let manager = Manager::new(Connector::client(client), NAMESPACE, shared.clone()).expect("a client");
        let (config, config_seen) = watch::channel(Arc::new(self.config(&character)));
        let timing = character.timing.unwrap_or(self.timing);
        let hash = match character.hash {
            Some(Hash::Ring) => "ring",
            _ => "knative",
        };
        let wants = Cut { buckets: character.buckets.unwrap_or(self.buckets), hash: hash.to_owned() };
        self.history.add(self.truth.now(), &name, What::Born { wants, timing });
        let life = Life {
            name: name.clone(),
            truth: self.truth,
            history: self.history.clone(),
            faults: self.server.faults(&name),
            tasks: Arc::default(),
        };
        let fatals = Arc::clone(&self.fatals);
        let status = Status::default();
        let queue = Queue {
            component: COMPONENT.to_owned(),
            name: QUEUE.to_owned(),
            identity,
            config: config_seen,
            clock: shared,
            observer,
            on_fatal: if character.exits {
                let life = life.clone();
                Arc::new(move |_| life.end())
            } else {
                Arc::new(move |why| fatals.lock().expect("whole").push(why))
            },
            status: status.clone(),
        };
        let leadership = Leadership::new();
        let mut links: Vec<Arc<dyn DynLeaderAware>> = vec![Arc::new(leadership.clone())];
        links.extend(character.aware);
        let aware = Arc::new(leasehold::leader::Chain::new(links));
        let aware = Arc::new(Watched { aware, recorder: recorder() });
        let stop = CancellationToken::new();
        let ice = Ice::default();
        let elector = Standard::new(manager).build(queue).expect("valid").run(aware, stop.clone());
        let work = Work {
            leadership: leadership.clone(),
            truth: self.truth,
            history: self.history.clone(),
            replica: name.clone(),
            process: process.clone(),
            long: character.long_work,
            let_go: Arc::default(),
        };
        let rng = fastrand::Rng::with_seed(self.rng.clone().u64(..) ^ n);
        let worker = tokio::spawn(process.clone().freezes(work.clone().run(rng)));
        let ended = (self.truth, self.history.clone(), name.clone());
        let elector = tokio::spawn(ice.clone().freezes(async move {
            elector.await;
            let (truth, history, name) = ended;
            history.add(truth.now(), &name, What::Stopped);
        }));
        *life.tasks.lock().expect("whole") = vec![elector.abort_handle(), worker.abort_handle()];
        Replica {
            faults: self.server.faults(&name),
            name,
            clock,
            leadership,
            config,
            status,
            stop,
            elector,
            ice,
            process,
            worker,
            work,
            life,
            truth: self.truth,
            history: self.history.clone(),
        }
    }

    /// Restores etcd from `backup`.
    pub fn restore(&self, backup: &Snapshot) {
        self.server.restore(backup);
        let lease = |name: &String| self.server.object("coordination.k8s.io", "leases", NAMESPACE, name);
        let leases = self.history.leases().iter().filter_map(lease).map(|o| Arc::new(Version::of(o.value()))).collect();
        self.history.add(self.truth.now(), "etcd", What::Restored { leases });
    }

    /// Waits until `holds` is true, at most for `bound` of virtual time; how long it took.
    pub async fn until(&self, what: &str, bound: Duration, mut holds: impl FnMut() -> bool) -> Duration {
        let began = self.truth.now();
        while !holds() {
            let waited = self.truth.now() - began;
            assert!(waited < bound, "after {waited:?}: not yet {what}; history: {:#?}", self.tail());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.truth.now() - began
    }

    fn tail(&self) -> Vec<String> {
        let entries = self.history.entries();
        let noise = |w: &What| {
            matches!(w, What::Act { .. } | What::Asked(_) | What::Answered { .. } | What::Wrote(_) | What::Aware { .. })
        };
        let interesting = entries.iter().filter(|e| !noise(&e.what));
        let all: Vec<String> = interesting.map(|e| format!("{:?} {} {:?}", e.at, e.replica, e.what)).collect();
        all[all.len().saturating_sub(40)..].to_vec()
    }

    /// Fails on any broken rule.
    ///
    /// SIM_DUMP names a file into which all that happened is written, one thing a line.
    pub fn judge(&self) {
        if let Ok(path) = std::env::var("SIM_DUMP") {
            let all: Vec<String> =
                self.history.entries().iter().map(|e| format!("{:?} {} {:?}\n", e.at, e.replica, e.what)).collect();
            std::fs::write(path, all.concat()).expect("written");
        }
        let found = self.history.violations();
        assert!(found.is_empty(), "{found:#?}\n{:#?}", self.tail());
        let fatals = self.fatals.lock().expect("whole");
        assert!(fatals.is_empty(), "{fatals:?}");
    }
}

impl Replica {
    /// Other durations from now on.
    pub fn configure(&self, world: &World, timing: Timing) {
        self.history.add(self.truth.now(), &self.name, What::Configured { timing });
        let character = Character { timing: Some(timing), ..Character::default() };
        self.config.send_replace(Arc::new(world.config(&character)));
    }

    pub fn held(&self) -> usize {
        self.leadership.held().len()
    }

    /// Stops in good order; returns when it has.
    pub async fn stop(self) {
        self.tell_to_stop();
        let bound = Duration::from_mins(10);
        let ended = tokio::time::timeout(bound, self.elector).await.expect("a stop that ends");
        // Cancelled: it has ended itself meanwhile.
        assert!(ended.as_ref().err().is_none_or(tokio::task::JoinError::is_cancelled), "{ended:?}");
        self.worker.abort();
    }

    pub fn tell_to_stop(&self) {
        if !self.stop.is_cancelled() && self.is_alive() {
            self.history.add(self.truth.now(), &self.name, What::Told);
        }
        self.stop.cancel();
    }

    /// It has not been killed, and has not ended itself.
    pub fn is_alive(&self) -> bool {
        !self.life.tasks.lock().expect("whole").is_empty()
    }

    pub fn is_running(&self) -> bool {
        !self.elector.is_finished()
    }

    /// kill -9: nothing of it reaches the server any more, what it was doing does not count.
    pub fn kill(self) {
        self.life.end();
    }

    /// Work under a guard that heeds no cancelling, for so long; false where it holds nothing.
    pub fn hold(&self, key: String, length: Duration) -> bool {
        let Some(guard) = self.leadership.guard(&key) else { return false };
        tokio::spawn(self.work.clone().hold(guard, key, length));
        true
    }

    /// That work ends.
    pub fn let_go(&self) {
        self.work.let_go.notify_waiters();
    }

    /// What goes on after a freeze or a suspend: its election, its work, or both.
    pub fn thaws(&self) -> impl Fn(bool, bool) + use<> {
        let (ice, process) = (self.ice.clone(), self.process.clone());
        let (truth, history, name) = (self.truth, self.history.clone(), self.name.clone());
        move |election, work| {
            history.add(truth.now(), &name, What::Woke);
            if election {
                ice.thaw();
            }
            if work {
                process.thaw();
            }
        }
    }

    /// The machine sleeps, or the process is stopped: nothing of it runs, its clock does.
    pub fn suspend(&self) {
        self.ice.freeze();
        self.process.freeze();
    }
}
