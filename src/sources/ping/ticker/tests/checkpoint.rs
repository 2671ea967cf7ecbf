//! What stands in the Lease, and what the next holder makes of it.

use super::support::{Lease, SECOND, World, seconds, settle};
use crate::sources::ping::position::{Saved, back, forth};
use crate::sources::ping::testing::Logged;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn the_first_checkpoint_stands_in_the_lease_before_anything_fires() {
    let world = World::new(1);
    world.lease.stuck.store(true, Ordering::SeqCst);
    world.publish([world.source("n/a", 1, None)]);
    let began = world.now();
    let _held = world.take().await;
    tokio::time::sleep(7 * SECOND).await;
    assert_eq!(world.sink.sent(), []);
    world.lease.stuck.store(false, Ordering::SeqCst);
    tokio::time::sleep(4 * SECOND).await;
    assert_eq!(world.sink.of("n/a"), seconds(began, world.now(), 1), "none of the wait is lost");
}

#[tokio::test(start_paused = true)]
async fn without_leases_nothing_is_waited_for() {
    let world = World::new(1);
    world.publish([world.source("n/a", 1, None)]);
    let _held = world.take_as(crate::bucket::BucketSet::universal().bucket(0), false).await;
    tokio::time::sleep(3 * SECOND).await;
    assert!(world.sink.of("n/a").len() >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_in_which_nothing_fires_writes_once() {
    for every in [None, Some(3600)] {
        let world = World::new(1);
        world.publish(every.map(|every| world.source("n/a", every, None)));
        tokio::time::sleep(SECOND).await;
        let held = world.take().await;
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(world.lease.writes.load(Ordering::SeqCst), 1, "{every:?}");
        held.release().await;
        assert_eq!(world.lease.writes.load(Ordering::SeqCst), 1, "{every:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_moves_as_ticks_are_answered_and_stands_between_them() {
    let world = World::new(1);
    world.publish([world.source("n/a", 60, None)]);
    let _held = world.take().await;
    tokio::time::sleep(9 * MINUTE + 59 * SECOND).await;
    // The first place, and one for each of ten ticks (the first of which is due at once).
    assert_eq!(world.lease.writes.load(Ordering::SeqCst), 11);
}

#[tokio::test(start_paused = true)]
async fn what_came_due_meanwhile_is_caught_up_within_bounds() {
    let mut world = World::new(1);
    let began = world.now();
    world.lease = Arc::new(Lease::holding(&Saved::before(back(began, 5 * MINUTE)).text()));
    world.publish((0..50).map(|i| world.source(&format!("n/{i:02}"), 1, None)));
    let logged = Logged::here();
    let _held = world.take().await;
    settle().await;
    let all = seconds(back(began, world.bounds.catch_up), forth(began, Duration::from_nanos(1)), 1);
    for i in 0..50 {
        let fired = world.sink.of(&format!("n/{i:02}"));
        assert_eq!(fired, all[..fired.len()], "in order, from the bound on");
    }
    tokio::time::sleep(SECOND / 2).await;
    assert_eq!(world.sink.of("n/49"), all);
    assert_eq!(logged.with("older than what is caught up").len(), 1);
    assert_eq!(logged.with("left out").len(), 0, "said already");
}

#[tokio::test(start_paused = true)]
async fn without_catching_up_each_tick_is_fired_all_the_same() {
    let mut world = World::new(1);
    world.bounds.catch_up = Duration::ZERO;
    world.lease = Arc::new(Lease::holding(&Saved::before(back(world.now(), MINUTE)).text()));
    world.publish([world.source("n/a", 1, None)]);
    tokio::time::sleep(SECOND / 2).await;
    let began = world.now();
    let _held = world.take().await;
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(world.sink.of("n/a"), seconds(began, world.now(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_source_is_not_fired_from_before_it_was_made() {
    let mut world = World::new(1);
    let began = world.now();
    let made = back(began, Duration::from_millis(4500));
    world.lease = Arc::new(Lease::holding(&Saved::before(back(began, 30 * SECOND)).text()));
    world.publish([world.source("n/old", 1, Some(back(began, MINUTE))), world.source("n/new", 1, Some(made))]);
    let _held = world.take().await;
    tokio::time::sleep(SECOND / 2).await;
    assert_eq!(world.sink.of("n/old"), seconds(back(began, 30 * SECOND), world.now(), 1));
    assert_eq!(world.sink.of("n/new"), seconds(made, world.now(), 1));
}

#[tokio::test(start_paused = true)]
async fn one_from_a_clock_that_is_ahead_is_waited_for() {
    let mut world = World::new(1);
    let ahead = forth(world.now(), 30 * SECOND);
    world.lease = Arc::new(Lease::holding(&Saved::before(ahead).text()));
    world.publish([world.source("n/a", 1, None)]);
    let _held = world.take().await;
    tokio::time::sleep(40 * SECOND).await;
    assert_eq!(world.sink.of("n/a"), seconds(ahead, world.now(), 1));
}

#[tokio::test(start_paused = true)]
async fn one_that_no_clock_can_have_written_is_said_and_replaced() {
    let far = Saved::before(forth(World::new(1).now(), 120 * MINUTE)).text();
    for (found, said) in [(far.as_str(), "lies in the future"), ("17", "is not this adapter's"), ("", "is not this")] {
        let mut world = World::new(1);
        let logged = Logged::here();
        world.lease = Arc::new(Lease::holding(found));
        world.lease.stuck.store(true, Ordering::SeqCst);
        world.publish([world.source("n/a", 1, None)]);
        let began = world.now();
        let _held = world.take().await;
        tokio::time::sleep(3 * SECOND).await;
        assert_eq!(world.sink.sent(), [], "{found:?}: a crash now would start from it again");
        world.lease.stuck.store(false, Ordering::SeqCst);
        tokio::time::sleep(4 * SECOND).await;
        assert_eq!(world.sink.of("n/a"), seconds(began, world.now(), 1), "{found:?}");
        assert_eq!(logged.with(said).len(), 1, "{found:?}");
        assert!(Saved::parse(&world.lease.position().unwrap()).unwrap().at() >= began);
    }
}

/// A tick without an answer stays where it is; those of other sources are passed.
#[tokio::test(start_paused = true)]
async fn a_tick_without_an_answer_is_the_next_holders() {
    let world = World::new(1);
    world.publish(["n/a", "n/dead", "n/z"].map(|key| world.source(key, 1, None)));
    *world.sink.dead.lock().unwrap() = Some("dead");
    let began = world.now();
    let held = world.take().await;
    tokio::time::sleep(5 * SECOND + SECOND / 2).await;
    held.release().await;
    let first = world.sink.of("n/dead");
    assert_eq!(first[0], began);
    *world.sink.dead.lock().unwrap() = None;
    let held = world.take().await;
    tokio::time::sleep(5 * SECOND).await;
    held.release().await;
    let all = seconds(began, world.now(), 1);
    for key in ["n/a", "n/z"] {
        assert_eq!(world.sink.of(key), all, "{key}: once each");
    }
    assert_eq!(world.sink.of("n/dead")[first.len()..], all, "each again");
}
