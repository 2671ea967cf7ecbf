//! A panic in an author's code is that author's trouble: the bucket goes on, and so does the election.

use super::support::{Author, Log, SECOND, World, settle};
use crate::bucket::Bucket;
use crate::clock::virtual_time::VirtualClock;
use crate::leader::observe::{Event, Observer, Observers};
use crate::leader::tenure::Told;
use crate::leader::{BoxError, Chain, DynLeaderAware, Reason, Term};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test(start_paused = true)]
async fn a_panic_in_promote_is_a_failure_of_it() {
    let mut world = World::new(Author::new().promoting(|_| async { panic!("no such {}", "table") }));
    let (tenure, _) = world.begin();
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Released, true));
    assert_eq!(
        world.log.lines(),
        ["event: begun", "promote", "event: promote failed: promote panicked: no such table", "event: ended released",]
    );
    assert!(tenure.term().guard().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_promote_that_is_being_cancelled_ends_it() {
    let mut world = World::new(Author::new().promoting(|term: Term| async move {
        term.cancelled().await;
        panic!("cancelled");
    }));
    let (tenure, _) = world.begin();
    settle().await;
    tenure.end(Reason::Released);
    assert!(world.ended().await.clean);
    assert!(!world.log.lines().iter().any(|l| l.starts_with("demote")));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_demote_counts_as_its_return() {
    for reason in [Reason::Released, Reason::Lost] {
        let mut world = World::new(Author::new().demoting(|_| async { panic!("demoted") }));
        let (tenure, _) = world.begin_promoted().await;
        tenure.end(reason);
        let ended = world.ended().await;
        assert_eq!((ended.reason, ended.clean), (reason, reason == Reason::Released));
        assert_eq!(world.log.lines().last().unwrap(), &format!("event: ended {}", reason.as_str()));
    }
}

/// A twin written by hand can panic before there is a future to poll.
struct Sudden;

impl DynLeaderAware for Sudden {
    fn promote(&self, term: Term) -> BoxFuture<'_, Result<(), BoxError>> {
        assert!(term.bucket().index() > 0, "sudden");
        Box::pin(async { Ok(()) })
    }
    fn demote<'a>(&'a self, _: &'a Bucket, _: Reason) -> BoxFuture<'a, ()> {
        panic!("sudden");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_there_is_a_future_is_caught_too() {
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    let mut world = World::with(Arc::new(Sudden), clock, log);
    let layout = super::support::buckets(2);
    let (_zero, _) = world.begin_of(layout.bucket(0), super::support::LIMITS);
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    assert!(world.ended().await.clean);
    let (one, _) = world.begin_of(layout.bucket(1), super::support::LIMITS);
    assert!(matches!(world.next().await, Told::Promoted(_)));
    one.end(Reason::Shutdown);
    assert!(world.ended().await.clean);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_link_rolls_back_the_links_before_it() {
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    let chain = Chain::new([
        Arc::new(Author::named("a", &log)) as Arc<dyn DynLeaderAware>,
        Arc::new(Author::named("b", &log).promoting(|_| async { panic!("b broke") })),
        Arc::new(Author::named("c", &log)),
    ]);
    let mut world = World::with(Arc::new(chain), clock, log);
    let _tenure = world.begin();
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    world.ended().await;
    assert_eq!(
        world.log.lines(),
        [
            "event: begun",
            "a promote",
            "a promote ok",
            "b promote",
            "a demote released",
            "a demote returned",
            "event: promote failed: promote panicked: b broke",
            "event: ended released",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_demote_of_a_link_leaves_none_undemoted() {
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    let chain = Chain::new([
        Arc::new(Author::named("a", &log)) as Arc<dyn DynLeaderAware>,
        Arc::new(Author::named("b", &log).demoting(|_| async { panic!("b broke") })),
        Arc::new(Author::named("c", &log)),
    ]);
    let mut world = World::with(Arc::new(chain), clock, log);
    let (tenure, _) = world.begin_promoted().await;
    tenure.end(Reason::Shutdown);
    assert!(world.ended().await.clean);
    let lines = world.log.lines();
    let demotes: Vec<_> = lines.iter().filter(|l| l.contains("demote")).collect();
    assert_eq!(
        demotes,
        ["c demote shutdown", "c demote returned", "b demote shutdown", "a demote shutdown", "a demote returned",]
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_an_observer_leaves_no_bucket_stuck_and_no_listener_deaf() {
    let mut world = World::new(Author::new().demoting(|_| tokio::time::sleep(SECOND)));
    let heard = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&heard);
    let panics: Arc<dyn Observer> = Arc::new(|_: &Event| panic!("metrics"));
    let counts: Arc<dyn Observer> = Arc::new(move |_: &Event| {
        counting.fetch_add(1, Ordering::SeqCst);
    });
    for observer in [Arc::clone(&panics), Arc::new(Observers::new([panics, counts]))] {
        world.around.observer = observer;
        let (tenure, _) = world.begin_promoted().await;
        assert!(tenure.term().guard().is_some());
        tenure.end(Reason::Released);
        assert!(world.ended().await.clean);
    }
    assert_eq!(heard.load(Ordering::SeqCst), 4, "begun, promoted, guards out, ended");
}
