//! A tenure in a world of its own: a clock, a log of what happened and when, and an author whose code is scripted.

use crate::bucket::{Bucket, BucketSet, Hash, lease_name};
use crate::clock::virtual_time::VirtualClock;
use crate::clock::{Clock, Instant};
use crate::leader::fatal::Fatal;
use crate::leader::observe::Event;
use crate::leader::tenure::{Ended, Limits, Surroundings, Tenure, Told};
use crate::leader::{BoxError, Deadline, DynLeaderAware, FencingToken, LeaderAware, Reason, Saved, Term, TermParts};
use futures::future::BoxFuture;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// As shipped: 15 s, 10 s, 2 s.
pub(super) const LIMITS: Limits = Limits {
    promote: Duration::from_secs(10),
    drain_timeout: Duration::from_secs(10),
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
};

pub(super) fn buckets(n: u32) -> Arc<BucketSet> {
    BucketSet::new(Hash::Knative, (0..n).map(|i| lease_name("feeds.adapter", i, n))).unwrap()
}

/// A key that `bucket` has.
pub(super) fn key_of(bucket: &Bucket) -> String {
    (0..100_000).map(|i| format!("ns/{}-{i}", "x".repeat(i % 7))).find(|key| bucket.has(key)).unwrap()
}

/// Lets every task run on until it waits, without any time passing.
pub(super) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Waits for what must come, for at most an hour of the timers' time.
pub(super) async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(Duration::from_hours(1), what).await.expect("it came within an hour")
}

/// Whether it has been dropped: for the inside of a future.
#[derive(Debug, Clone, Default)]
pub(super) struct Dropped(Arc<AtomicBool>);

impl Dropped {
    pub(super) fn yet(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The thing to put inside.
    pub(super) fn mark(&self) -> impl Send + Sync + use<> {
        struct Mark(Dropped);
        impl Drop for Mark {
            fn drop(&mut self) {
                self.0.0.store(true, Ordering::SeqCst);
            }
        }
        Mark(self.clone())
    }
}

/// What happened, in words, and when.
#[derive(Debug, Clone)]
pub(super) struct Log {
    lines: Arc<Mutex<Vec<(Instant, String)>>>,
    clock: VirtualClock,
    began: Instant,
}

impl Log {
    pub(super) fn new(clock: &VirtualClock) -> Self {
        Self { lines: Arc::default(), clock: clock.clone(), began: clock.now() }
    }

    pub(super) fn say(&self, line: impl Into<String>) {
        self.lines.lock().unwrap().push((self.clock.now(), line.into()));
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }

    pub(super) fn has(&self, line: &str) -> bool {
        self.lines().iter().any(|l| l == line)
    }

    /// When this was said, from the beginning; it must have been said once.
    #[track_caller]
    pub(super) fn at(&self, line: &str) -> Duration {
        let lines = self.lines.lock().unwrap();
        let found: Vec<_> = lines.iter().filter(|(_, l)| l == line).collect();
        assert_eq!(found.len(), 1, "{line:?} once in {lines:#?}");
        found[0].0.since(self.began)
    }

    /// It was said at `at`, give or take what tokio's timers round up to.
    #[track_caller]
    pub(super) fn assert_at(&self, line: &str, at: Duration) {
        let was = self.at(line);
        assert!(was >= at && was - at <= Duration::from_millis(20), "{line:?} at {was:?}, not at {at:?}: {self:#?}");
    }
}

type Promote = Box<dyn Fn(Term) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;
type Demote = Box<dyn Fn(Reason) -> BoxFuture<'static, ()> + Send + Sync>;

/// An author's code. Says in the log when it is called and when it returns.
pub(super) struct Author {
    promote: Promote,
    demote: Demote,
    log: Option<Log>,
    name: &'static str,
}

impl Author {
    /// Whose promote returns Ok at once, and demote at once.
    pub(super) fn new() -> Self {
        Self {
            promote: Box::new(|_| Box::pin(async { Ok(()) })),
            demote: Box::new(|_| Box::pin(async {})),
            log: None,
            name: "",
        }
    }

    /// One whose lines in the log begin with a name.
    pub(super) fn named(name: &'static str, log: &Log) -> Self {
        Self { name, log: Some(log.clone()), ..Self::new() }
    }

    pub(super) fn promoting<F>(mut self, f: impl Fn(Term) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.promote = Box::new(move |term| Box::pin(f(term)));
        self
    }

    pub(super) fn demoting<F>(mut self, f: impl Fn(Reason) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.demote = Box::new(move |reason| Box::pin(f(reason)));
        self
    }

    fn say(&self, line: &str) {
        let log = self.log.as_ref().expect("the world gave a log");
        log.say(if self.name.is_empty() { line.to_owned() } else { format!("{} {line}", self.name) });
    }
}

impl LeaderAware for Author {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        self.say("promote");
        let result = (self.promote)(term).await;
        self.say(if result.is_ok() { "promote ok" } else { "promote err" });
        result
    }

    async fn demote(&self, _: &Bucket, reason: Reason) {
        self.say(&format!("demote {}", reason.as_str()));
        (self.demote)(reason).await;
        self.say("demote returned");
    }
}

pub(super) struct World {
    pub(super) clock: VirtualClock,
    pub(super) log: Log,
    pub(super) told: mpsc::UnboundedReceiver<Told>,
    pub(super) around: Surroundings,
}

impl World {
    pub(super) fn new(mut author: Author) -> Self {
        let clock = VirtualClock::new();
        let log = Log::new(&clock);
        author.log = Some(log.clone());
        Self::with(Arc::new(author), clock, log)
    }

    pub(super) fn with(aware: Arc<dyn DynLeaderAware>, clock: VirtualClock, log: Log) -> Self {
        let (told, receiver) = mpsc::unbounded_channel();
        let (events, fatals) = (log.clone(), log.clone());
        let around = Surroundings {
            aware,
            clock: clock.shared(),
            observer: Arc::new(move |event: &Event| events.say(in_words(event))),
            on_fatal: Arc::new(move |why| {
                fatals.say(match why {
                    Fatal::GuardOut { .. } => "fatal: guard out",
                    Fatal::GuardHangs { .. } => "fatal: guard hangs",
                    Fatal::DemoteHangs { .. } => "fatal: demote hangs",
                });
            }),
            told,
        };
        Self { clock, log, told: receiver, around }
    }

    /// A term of `bucket` whose last renewal was sent now.
    pub(super) fn term_of(&self, bucket: Bucket, saved: Option<Saved>) -> (Term, Arc<Deadline>) {
        let deadline = Deadline::at(self.clock.now() + LIMITS.renew_deadline);
        let term = Term::new(TermParts {
            bucket,
            token: Some(FencingToken::new(0, 7)),
            deadline: Arc::clone(&deadline),
            clock: self.clock.shared(),
            saved,
        });
        (term, deadline)
    }

    /// The tenure of the only bucket, from here on.
    pub(super) fn begin(&self) -> (Tenure, Arc<Deadline>) {
        self.begin_of(buckets(1).bucket(0), LIMITS)
    }

    pub(super) fn begin_of(&self, bucket: Bucket, limits: Limits) -> (Tenure, Arc<Deadline>) {
        let (term, deadline) = self.term_of(bucket, None);
        (Tenure::begin(term, limits, self.around.clone()), deadline)
    }

    /// Begins, and waits until the gate is open.
    pub(super) async fn begin_promoted(&mut self) -> (Tenure, Arc<Deadline>) {
        let (tenure, deadline) = self.begin();
        match self.next().await {
            Told::Promoted(term) => assert!(term.is_same(tenure.term())),
            other => panic!("not promoted but {other:?}"),
        }
        (tenure, deadline)
    }

    /// What the elector is told next.
    pub(super) async fn next(&mut self) -> Told {
        soon(self.told.recv()).await.expect("the tenure's task lives")
    }

    /// Whether the elector has been told anything it has not heard yet.
    pub(super) fn quiet(&mut self) -> bool {
        self.told.try_recv().is_err()
    }

    /// Waits for the end, whatever is told before.
    pub(super) async fn ended(&mut self) -> Ended {
        loop {
            if let Told::Ended(_, ended) = self.next().await {
                return ended;
            }
        }
    }
}

/// As a renewal that counts every two seconds: the deadline stays ahead while this is polled.
pub(super) async fn renewing(clock: &VirtualClock, deadline: &Deadline) -> std::convert::Infallible {
    loop {
        deadline.extend(clock.now() + LIMITS.renew_deadline);
        tokio::time::sleep(2 * SECOND).await;
    }
}

fn in_words(event: &Event) -> String {
    match event {
        Event::TermBegun { .. } => "event: begun".to_owned(),
        Event::Promoted { .. } => "event: promoted".to_owned(),
        Event::PromoteFailed { why, .. } => format!("event: promote failed: {why}"),
        Event::GuardsOut { guards, .. } => format!("event: guards out {guards}"),
        Event::TermEnded { reason, .. } => format!("event: ended {}", reason.as_str()),
        other => format!("event: {other:?}"),
    }
}
