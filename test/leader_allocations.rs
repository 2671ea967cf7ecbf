//! The hot path of the gate, over the machine's own clock: asking for a guard allocates nothing, given or refused.

use leasehold::bucket::{Bucket, BucketSet, Hash, lease_name};
use leasehold::clock::{Boottime, Clock};
use leasehold::leader::observe::Observers;
use leasehold::leader::tenure::{Limits, Surroundings, Tenure, Told};
use leasehold::leader::{Deadline, FencingToken, Leadership, Reason, Term, TermParts, fatal};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::sync::mpsc;

const DAY: Duration = Duration::from_hours(24);

/// Holds the first of four buckets, through the front door.
async fn holding(leadership: &Leadership) -> (Tenure, Arc<BucketSet>) {
    let set = BucketSet::new(Hash::Knative, (0..4).map(|i| lease_name("feeds.adapter", i, 4))).expect("four names");
    let (told, mut hears) = mpsc::unbounded_channel();
    let term = Term::new(TermParts {
        bucket: set.bucket(0),
        token: Some(FencingToken::new(0, 1)),
        deadline: Deadline::at(Boottime.now() + DAY),
        clock: Arc::new(Boottime),
        saved: None,
    });
    let limits = Limits { promote: DAY, drain_timeout: DAY, lease_duration: DAY, renew_deadline: DAY };
    let around = Surroundings {
        aware: Arc::new(leadership.clone()),
        clock: Arc::new(Boottime),
        observer: Arc::new(Observers::default()),
        on_fatal: fatal::exits(),
        told,
    };
    let tenure = Tenure::begin(term, limits, around);
    assert!(matches!(hears.recv().await, Some(Told::Promoted(_))));
    (tenure, set)
}

fn key_of(bucket: &Bucket) -> String {
    (0..100_000).map(|i| format!("ns/{}{i}", "x".repeat(i % 9))).find(|key| bucket.has(key)).expect("it has one")
}

#[track_caller]
fn allocates_nothing(what: &str, mut f: impl FnMut()) {
    // The first look in a thread registers it with arc-swap, once.
    f();
    let seen = allocation_counter::measure(|| {
        for _ in 0..100 {
            f();
        }
    });
    assert_eq!(seen.count_total, 0, "{what}");
}

#[tokio::test]
async fn a_guard_allocates_nothing() {
    let leadership = Leadership::new();
    allocates_nothing("refused, nothing is held", || assert!(leadership.guard("ns/name").is_none()));
    let (tenure, set) = holding(&leadership).await;
    let (mine, other) = (key_of(&set.bucket(0)), key_of(&set.bucket(1)));
    let term = tenure.term().clone();

    allocates_nothing("given by key", || assert!(leadership.guard(&mine).is_some()));
    allocates_nothing("refused by key", || assert!(leadership.guard(&other).is_none()));
    allocates_nothing("given by the term", || assert!(term.guard().is_some()));
    allocates_nothing("a fork", || drop(term.guard().expect("current").fork()));
    allocates_nothing("a look", || assert!(term.is_current() && !term.left().is_zero()));

    let events = futures::stream::iter([&mine, &other].into_iter().cycle());
    let mut ours = std::pin::pin!(leadership.only_mine(events, |key| key.as_str()));
    allocates_nothing("narrowing a stream", || {
        let polled = futures::Stream::poll_next(ours.as_mut(), &mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready());
    });

    // On another thread too, and while guards of it are out there.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| allocates_nothing("given on another thread", || assert!(leadership.guard(&mine).is_some())));
        }
    });

    tenure.end(Reason::Released);
    allocates_nothing("refused, the term has ended", || assert!(leadership.guard(&mine).is_none()));
    assert_eq!(term.guards_out(), 0);

    // The counter counts.
    assert_ne!(allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1)))).count_total, 0);
}

#[tokio::test]
async fn work_under_a_guard_that_need_not_wait_allocates_nothing() {
    let leadership = Leadership::new();
    let (tenure, _) = holding(&leadership).await;
    let guard = tenure.term().guard().expect("current");
    allocates_nothing("Guard::run", || {
        let polled = std::pin::pin!(guard.run(async { 1 })).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready());
    });
}
