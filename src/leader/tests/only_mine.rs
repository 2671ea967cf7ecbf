use super::support::{Author, LIMITS, World, buckets, key_of, settle};
use crate::leader::tenure::{Tenure, Told};
use crate::leader::{Leadership, Reason};
use futures::{FutureExt, StreamExt, stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Holds bucket 0 of two. With a key of it, and one of the other.
async fn half() -> (World, Leadership, Tenure, String, String) {
    let leadership = Leadership::new();
    let mut world = World::new(Author::new());
    world.around.aware = Arc::new(leadership.clone());
    let layout = buckets(2);
    let (tenure, _) = world.begin_of(layout.bucket(0), LIMITS);
    assert!(matches!(world.next().await, Told::Promoted(_)));
    (world, leadership, tenure, key_of(&layout.bucket(0)), key_of(&layout.bucket(1)))
}

#[tokio::test(start_paused = true)]
async fn what_is_ours_comes_out_in_order_with_a_guard_and_the_rest_does_not() {
    let (_world, leadership, tenure, mine, other) = half().await;
    let events = [(&mine, 1), (&other, 2), (&mine, 3), (&other, 4), (&mine, 5)];
    let out: Vec<_> = leadership.only_mine(stream::iter(events), |(key, _)| key).collect().await;
    assert_eq!(out.iter().map(|(_, (_, n))| *n).collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(tenure.term().guards_out(), 3);
    assert!(out.iter().all(|(guard, _)| guard.term().is_same(tenure.term())));
    drop(out);
    assert_eq!(tenure.term().guards_out(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_out_once_the_term_is_over() {
    let (mut world, leadership, tenure, mine, _) = half().await;
    let (send, events) = mpsc::unbounded_channel::<String>();
    let events = stream::unfold(events, |mut events| async { events.recv().await.map(|e| (e, events)) });
    let mut out = leadership.only_mine(events, |key: &String| key.as_str());
    send.send(mine.clone()).unwrap();
    let (guard, _) = out.next().await.unwrap();
    drop(guard);
    assert!(out.next().now_or_never().is_none(), "nothing there, not the end");
    tenure.end(Reason::Released);
    send.send(mine.clone()).unwrap();
    assert!(out.next().now_or_never().is_none());
    world.ended().await;

    // A later term gets what comes later.
    let layout = buckets(2);
    let (_tenure, _) = world.begin_of(layout.bucket(0), LIMITS);
    assert!(matches!(world.next().await, Told::Promoted(_)));
    send.send(mine.clone()).unwrap();
    assert!(out.next().await.is_some());
    drop(send);
    assert!(out.next().await.is_none(), "the source ended");
}

#[tokio::test(start_paused = true)]
async fn past_the_deadline_nothing_comes_out_by_the_clock_alone() {
    let (world, leadership, _tenure, mine, _) = half().await;
    world.clock.suspend(LIMITS.renew_deadline);
    let out: Vec<_> = leadership.only_mine(stream::iter([&mine]), |key| key).collect().await;
    assert!(out.is_empty());
}

/// A source that is always ready and never ours must leave its task a chance to do something else.
#[tokio::test(start_paused = true)]
async fn a_busy_source_of_others_keys_does_not_keep_its_task() {
    let (_world, leadership, _tenure, _, other) = half().await;
    let seen = AtomicUsize::new(0);
    let events = stream::repeat_with(|| {
        seen.fetch_add(1, Ordering::SeqCst);
        &other
    });
    let mut out = leadership.only_mine(events, |key| key);
    for polls in 1..=3 {
        assert!(out.next().now_or_never().is_none());
        let seen = seen.load(Ordering::SeqCst);
        assert!(seen > 0 && seen <= polls * 1024, "{seen} events in {polls} polls");
    }
    // It asks to be polled again by itself.
    tokio::select! {
        biased;
        _ = out.next() => panic!("none is ours"),
        () = settle() => {}
    }
    assert!(seen.load(Ordering::SeqCst) > 3 * 1024, "woken by itself");
}
