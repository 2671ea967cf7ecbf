//! A fleet of replicas over the in-memory API server, on paused time.

use crate::clock::{SkewedClock, Truth};
use crate::history::{History, What};
use crate::proxy::{Meddle, Proxy};
use crate::spy::Eyes;
use futures::task::AtomicWaker;
use leasehold::bucket::Hash;
use leasehold::clock::SharedClock;
use leasehold::config::{Config, Timing};
use leasehold::dev::apiserver::{Effect, Faults, Match, Options, Outage, Server};
use leasehold::elector::standard::Standard;
use leasehold::elector::{Queue, Status, Strategy};
use leasehold::leader::fatal::Fatal;
use leasehold::leader::observe::{Event, Observer};
use leasehold::leader::{DynLeaderAware, Leadership};
use leasehold::lease::{Connector, Manager};
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
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
    stop: CancellationToken,
    elector: JoinHandle<()>,
    worker: JoinHandle<()>,
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
            Event::TermEnded { bucket, token, reason, .. } => {
                What::Ended { bucket: bucket.name().to_owned(), token: *token, reason: *reason }
            }
            Event::Notice { code, text } => What::Notice(format!("{code}: {text}")),
            _ => return,
        };
        self.history.add(self.truth.now(), &self.replica, what);
    }
}

/// How a replica differs from others.
pub struct Character {
    pub timing: Option<Timing>,
    pub buckets: Option<u32>,
    pub clock_offset: Duration,
    pub clock_ppm: i64,
    pub aware: Option<Arc<dyn DynLeaderAware>>,
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
            clock_offset: Duration::from_secs(1000),
            clock_ppm: 0,
            aware: None,
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
            .hash(Hash::Knative)
            .build()
            .expect("valid")
    }

    pub fn replica(&self, character: Character) -> Replica {
        let n = self.born.fetch_add(1, Ordering::Relaxed);
        let name = format!("r{n}");
        let clock = Arc::new(SkewedClock::new(self.truth, character.clock_offset, character.clock_ppm));
        let shared: SharedClock = clock.clone();
        let recorder = Recorder { truth: self.truth, history: self.history.clone(), replica: name.clone() };
        let observer = Arc::new(recorder);
        let server = Proxy { inner: self.server.client(&name), meddle: character.meddle.clone() };
        let client = kube::Client::new(self.eyes.spy(server, &name), NAMESPACE);
        let manager = Manager::new(Connector::client(client), NAMESPACE, shared.clone()).expect("a client");
        let (config, config_seen) = watch::channel(Arc::new(self.config(&character)));
        let timing = character.timing.unwrap_or(self.timing);
        let part = timing.renew_deadline.as_secs_f64() / timing.lease_duration.as_secs_f64();
        self.history.add(self.truth.now(), &name, What::Counts { part });
        let fatals = Arc::clone(&self.fatals);
        let status = Status::default();
        let queue = Queue {
            component: COMPONENT.to_owned(),
            name: QUEUE.to_owned(),
            identity: character
                .identity
                .clone()
                .unwrap_or_else(|| format!("{name}_{:08x}", self.rng.clone().u32(..) ^ u32::try_from(n).expect("few"))),
            config: config_seen,
            clock: shared,
            observer,
            on_fatal: Arc::new(move |why| fatals.lock().expect("whole").push(why)),
            status: status.clone(),
        };
        let leadership = Leadership::new();
        let mut links: Vec<Arc<dyn DynLeaderAware>> = vec![Arc::new(leadership.clone())];
        links.extend(character.aware);
        let aware = Arc::new(leasehold::leader::Chain::new(links));
        let stop = CancellationToken::new();
        let ice = Ice::default();
        let elector = Standard::new(manager).build(queue).expect("valid").run(aware, stop.clone());
        let worker = tokio::spawn(work(
            leadership.clone(),
            self.truth,
            self.history.clone(),
            name.clone(),
            fastrand::Rng::with_seed(self.rng.clone().u64(..) ^ n),
        ));
        Replica {
            faults: self.server.faults(&name),
            name,
            clock,
            leadership,
            config,
            status,
            stop,
            elector: tokio::spawn(ice.clone().freezes(elector)),
            ice,
            worker,
            truth: self.truth,
            history: self.history.clone(),
        }
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
        let noise = |w: &What| matches!(w, What::Act { .. } | What::Asked | What::Wrote { .. });
        let interesting = entries.iter().filter(|e| !noise(&e.what));
        let all: Vec<String> = interesting.map(|e| format!("{:?} {} {:?}", e.at, e.replica, e.what)).collect();
        all[all.len().saturating_sub(40)..].to_vec()
    }

    /// Fails on any broken rule.
    pub fn judge(&self) {
        let found = self.history.violations();
        assert!(found.is_empty(), "{found:#?}\n{:#?}", self.tail());
        let fatals = self.fatals.lock().expect("whole");
        assert!(fatals.is_empty(), "{fatals:?}");
    }
}

/// Stops a future from being polled for a while.
#[derive(Clone, Default)]
pub struct Ice(Arc<(AtomicBool, AtomicWaker)>);

impl Ice {
    pub fn freeze(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }

    pub fn thaw(&self) {
        self.0.0.store(false, Ordering::Relaxed);
        self.0.1.wake();
    }

    async fn freezes<F: Future>(self, inner: F) -> F::Output {
        let mut inner = std::pin::pin!(inner);
        poll_fn(|cx| {
            self.0.1.register(cx.waker());
            if self.0.0.load(Ordering::Relaxed) { Poll::Pending } else { inner.as_mut().poll(cx) }
        })
        .await
    }
}

impl Replica {
    /// Other durations from now on.
    pub fn configure(&self, world: &World, timing: Timing) {
        let part = timing.renew_deadline.as_secs_f64() / timing.lease_duration.as_secs_f64();
        self.history.add(self.truth.now(), &self.name, What::Counts { part });
        let character = Character { timing: Some(timing), ..Character::default() };
        self.config.send_replace(Arc::new(world.config(&character)));
    }

    pub fn held(&self) -> usize {
        self.leadership.held().len()
    }

    /// Stops in good order; returns when it has.
    pub async fn stop(self) {
        self.stop.cancel();
        let bound = Duration::from_mins(10);
        tokio::time::timeout(bound, self.elector).await.expect("a stop that ends").expect("no panic");
        self.worker.abort();
    }

    pub fn tell_to_stop(&self) {
        self.stop.cancel();
    }

    pub fn is_running(&self) -> bool {
        !self.elector.is_finished()
    }

    /// kill -9: nothing of it reaches the server any more, what it was doing does not count.
    pub fn kill(self) {
        self.history.add(self.truth.now(), &self.name, What::Died);
        self.faults.inject(Match::any(), Effect::Outage(Outage::BlackHole));
        self.elector.abort();
        self.worker.abort();
    }
}

/// Acts on random keys as often as it may.
async fn work(leadership: Leadership, truth: Truth, history: History, replica: String, mut rng: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_millis(rng.u64(5..60))).await;
        let key = format!("ns/{}", rng.u32(0..40));
        let Some(guard) = leadership.guard(&key) else { continue };
        let (history, replica) = (history.clone(), replica.clone());
        let length = Duration::from_millis(if rng.u32(0..20) == 0 { rng.u64(0..4000) } else { rng.u64(0..80) });
        tokio::spawn(async move {
            let began = truth.now();
            let bucket = guard.bucket().name().to_owned();
            let _ = guard.run(tokio::time::sleep(length)).await;
            let until = truth.now();
            drop(guard);
            history.add(began, &replica, What::Act { bucket, key, until });
        });
    }
}
