//! One bucket in a world of its own: a Lease that an elector writes, replicas that come and go, and sources whose events
//! are kept.

use super::super::{Bounds, Catalog, Source, run};
use crate::bucket::{Bucket, BucketSet};
use crate::clock::virtual_time::VirtualClock;
use crate::clock::{Clock, Instant};
use crate::leader::fatal::Fatal;
use crate::leader::tenure::{Limits, Surroundings, Tenure, Told};
use crate::leader::{Deadline, FencingToken, Guard, Reason, Saved, Term, TermParts, per_bucket};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const BOUNDS: Bounds = Bounds { catch_up: Duration::from_mins(1), at_once: 256 };

/// What a sink was sent, in order: the source, the scheduled time, and when.
pub(super) type Sent = (String, Timestamp, Timestamp);

/// Takes events as it is told to.
#[derive(Debug)]
pub(super) struct Sink {
    sent: Mutex<Vec<Sent>>,
    clock: VirtualClock,
    /// Answers take up to so many milliseconds.
    pub(super) latency_ms: AtomicU64,
    /// Answers to sources whose keys contain this do not come.
    pub(super) dead: Mutex<Option<&'static str>>,
    random: Mutex<fastrand::Rng>,
    pub(super) out: AtomicUsize,
    pub(super) most_out: AtomicUsize,
}

impl Sink {
    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The scheduled times of a source, in the order of sending.
    pub(super) fn of(&self, key: &str) -> Vec<Timestamp> {
        self.sent().into_iter().filter(|(k, ..)| k == key).map(|(_, at, _)| at).collect()
    }

    /// How often each tick came.
    pub(super) fn counts(&self) -> BTreeMap<(String, Timestamp), usize> {
        let mut counts = BTreeMap::new();
        for (key, at, _) in self.sent() {
            *counts.entry((key, at)).or_default() += 1;
        }
        counts
    }

    async fn take(&self, key: &str, guard: &Guard, at: Timestamp) -> bool {
        self.sent.lock().unwrap().push((key.to_owned(), at, self.clock.wall()));
        self.most_out.fetch_max(self.out.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let dead = self.dead.lock().unwrap().is_some_and(|part| key.contains(part));
        let most = self.latency_ms.load(Ordering::SeqCst);
        let latency = self.random.lock().unwrap().u64(0..=most);
        let answer = async {
            if dead {
                std::future::pending::<()>().await;
            }
            // Even tokio's shortest timer would end the turn: an answer that is there at once must be possible.
            if latency > 0 {
                tokio::time::sleep(Duration::from_millis(latency)).await;
            }
        };
        let answered = guard.run(answer).await.is_ok();
        self.out.fetch_sub(1, Ordering::SeqCst);
        answered
    }
}

/// Fires at every multiple of `period` seconds since 1970.
#[derive(Debug)]
pub(super) struct Every {
    pub(super) key: String,
    pub(super) period: i64,
    pub(super) created: Option<Timestamp>,
    pub(super) sink: Arc<Sink>,
    /// How often its schedule was asked.
    pub(super) asked: AtomicUsize,
}

impl Source for Every {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let second = after.as_nanosecond().div_euclid(1_000_000_000);
        let next = (i64::try_from(second).unwrap().div_euclid(self.period) + 1) * self.period;
        Timestamp::from_second(next).ok()
    }
    fn created(&self) -> Option<Timestamp> {
        self.created
    }
    fn fire<'a>(&'a self, guard: &'a Guard, at: Timestamp) -> BoxFuture<'a, bool> {
        Box::pin(self.sink.take(&self.key, guard, at))
    }
}

/// The bucket's Lease: what replicas have written.
#[derive(Debug, Default)]
pub(super) struct Lease {
    pub(super) saved: Mutex<Option<Saved>>,
    pub(super) writes: AtomicUsize,
    /// Nothing is written any more, though it is asked for.
    pub(super) stuck: AtomicBool,
}

impl Lease {
    pub(super) fn holding(position: &str) -> Self {
        let saved = Saved { position: position.to_owned(), token: None };
        Self { saved: Mutex::new(Some(saved)), ..Self::default() }
    }

    pub(super) fn position(&self) -> Option<String> {
        self.saved.lock().unwrap().as_ref().map(|s| s.position.clone())
    }

    /// Writes what is pending; the answer comes a moment later.
    async fn write(&self, term: &Term, random: &mut fastrand::Rng) {
        if self.stuck.load(Ordering::SeqCst) {
            return;
        }
        if let Some((number, saved)) = term.checkpoint().pending() {
            *self.saved.lock().unwrap() = Some(saved);
            self.writes.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(random.u64(0..30))).await;
            term.checkpoint().mark_written(number);
        }
    }
}

pub(super) struct World {
    pub(super) clock: VirtualClock,
    pub(super) sink: Arc<Sink>,
    pub(super) lease: Arc<Lease>,
    pub(super) catalog: watch::Sender<Option<Arc<Catalog<Every>>>>,
    pub(super) bounds: Bounds,
    pub(super) random: fastrand::Rng,
    tokens: AtomicU64,
}

/// A replica that holds the bucket.
pub(super) struct Holder {
    tenure: Tenure,
    told: mpsc::UnboundedReceiver<Told>,
    pub(super) term: Term,
    lease: Arc<Lease>,
    elector: AbortOnDropHandle<()>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let clock = VirtualClock::new();
        let mut random = fastrand::Rng::with_seed(seed);
        let sink = Sink {
            sent: Mutex::default(),
            clock: clock.clone(),
            latency_ms: AtomicU64::new(0),
            dead: Mutex::default(),
            random: Mutex::new(random.fork()),
            out: AtomicUsize::new(0),
            most_out: AtomicUsize::new(0),
        };
        Self {
            clock,
            sink: Arc::new(sink),
            lease: Arc::default(),
            catalog: watch::channel(None).0,
            bounds: BOUNDS,
            random,
            tokens: AtomicU64::new(0),
        }
    }

    pub(super) fn source(&self, key: &str, period: i64, created: Option<Timestamp>) -> Arc<Every> {
        let (key, sink) = (key.to_owned(), Arc::clone(&self.sink));
        Arc::new(Every { key, period, created, sink, asked: AtomicUsize::new(0) })
    }

    /// The catalog is this from now on; whose entry is the same source as before stays that.
    pub(super) fn publish(&self, sources: impl IntoIterator<Item = Arc<Every>>) {
        let catalog = sources.into_iter().map(|s| (s.key.as_str().into(), s)).collect();
        self.catalog.send_replace(Some(Arc::new(catalog)));
    }

    /// `n` sources, each with its own period of up to `slowest` seconds.
    pub(super) fn publish_some(&mut self, n: usize, slowest: i64) {
        let periods: Vec<i64> = (0..n).map(|_| self.random.i64(1..=slowest)).collect();
        self.publish(periods.iter().enumerate().map(|(i, every)| self.source(&format!("n/{i}"), *every, None)));
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    /// Takes the bucket: the gate is open when this returns.
    pub(super) async fn take(&self) -> Holder {
        self.take_as(BucketSet::universal().bucket(0), true).await
    }

    pub(super) async fn take_as(&self, bucket: Bucket, leases: bool) -> Holder {
        let token = self.tokens.fetch_add(1, Ordering::SeqCst) + 1;
        let deadline = Deadline::at(self.clock.now() + Duration::from_secs(10));
        let term = Term::new(TermParts {
            bucket,
            token: leases.then(|| FencingToken::new(0, token)),
            deadline: Arc::clone(&deadline),
            clock: self.clock.shared(),
            saved: self.lease.saved.lock().unwrap().clone().filter(|_| leases),
        });
        let (known, clock, bounds) = (self.catalog.subscribe(), self.clock.shared(), self.bounds);
        let work = move |term| run(known.clone(), term, Arc::clone(&clock), bounds);
        let (tell, mut told) = mpsc::unbounded_channel();
        let around = Surroundings {
            aware: Arc::new(per_bucket(work)),
            clock: self.clock.shared(),
            observer: Arc::new(|_: &crate::leader::observe::Event| {}),
            on_fatal: Arc::new(|why: Fatal| panic!("{why}")),
            told: tell,
        };
        let limits = Limits {
            promote: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(10),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
        };
        let tenure = Tenure::begin(term.clone(), limits, around);
        assert!(matches!(told.recv().await, Some(Told::Promoted(_))));
        let elector = {
            let (term, lease, clock) = (term.clone(), Arc::clone(&self.lease), self.clock.clone());
            let mut random = self.random.clone();
            tokio::spawn(async move {
                let mut renew = tokio::time::interval(2 * SECOND);
                loop {
                    tokio::select! {
                        _ = renew.tick() => deadline.extend(clock.now() + Duration::from_secs(10)),
                        () = term.checkpoint().wanted() => {}
                    }
                    if leases {
                        lease.write(&term, &mut random).await;
                    }
                }
            })
        };
        Holder { tenure, told, term, lease: Arc::clone(&self.lease), elector: AbortOnDropHandle::new(elector) }
    }
}

impl Holder {
    /// Gives the bucket up in good order; the release carries the last checkpoint.
    pub(super) async fn release(mut self) {
        self.tenure.end(Reason::Released);
        loop {
            if let Some(Told::Ended(term, ended)) = self.told.recv().await {
                assert!(ended.clean);
                if let Some((_, saved)) = term.checkpoint().pending() {
                    *self.lease.saved.lock().unwrap() = Some(saved);
                }
                return;
            }
        }
    }

    /// No renewal comes any more, and nobody has noticed. Answers the deadline.
    pub(super) fn stop_renewing(&self) -> Instant {
        self.elector.abort();
        self.term.deadline()
    }

    /// The process dies: nothing more is written, and whatever it does is dropped.
    pub(super) async fn kill(mut self) {
        self.elector.abort();
        self.tenure.end(Reason::Lost);
        while !matches!(self.told.recv().await, Some(Told::Ended(..))) {}
    }
}

/// Lets every task run on until it waits, without any time passing.
pub(super) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// The whole seconds from `from` on, before `to`, that are a multiple of `every`.
pub(super) fn seconds(from: Timestamp, to: Timestamp, every: i64) -> Vec<Timestamp> {
    let first = from.as_second() + i64::from(from.subsec_nanosecond() > 0);
    (first..=to.as_second())
        .filter(|s| s % every == 0)
        .map(|s| Timestamp::from_second(s).unwrap())
        .filter(|t| *t >= from && *t < to)
        .collect()
}
