//! Sources that come, go and change while their bucket is held.

use super::support::{SECOND, World, seconds};
use crate::sources::ping::position::back;
use jiff::Timestamp;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_new_source_counts_from_when_it_is_known() {
    let world = World::new(1);
    let old = world.source("n/old", 1, None);
    world.publish([old.clone()]);
    let began = world.now();
    let held = world.take().await;
    tokio::time::sleep(10 * SECOND + SECOND / 2).await;
    let known = world.now();
    world.publish([old, world.source("n/new", 1, Some(back(known, Duration::from_hours(1))))]);
    tokio::time::sleep(10 * SECOND).await;
    held.release().await;
    assert_eq!(world.sink.of("n/old"), seconds(began, world.now(), 1));
    assert_eq!(world.sink.of("n/new"), seconds(known, world.now(), 1));
}

#[tokio::test(start_paused = true)]
async fn an_edited_schedule_counts_from_the_edit() {
    let world = World::new(1);
    world.publish([world.source("n/a", 10, None), world.source("n/b", 1, None)]);
    let began = world.now();
    let _held = world.take().await;
    tokio::time::sleep(15 * SECOND + SECOND / 2).await;
    let edited = world.now();
    world.publish([world.source("n/a", 1, None), world.source("n/b", 10, None)]);
    tokio::time::sleep(15 * SECOND).await;
    let then = |before: i64, after: i64| [seconds(began, edited, before), seconds(edited, world.now(), after)].concat();
    assert_eq!(world.sink.of("n/a"), then(10, 1));
    assert_eq!(world.sink.of("n/b"), then(1, 10));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_gone_fires_no_more_and_one_made_anew_counts_from_then() {
    let world = World::new(1);
    world.publish([world.source("n/a", 1, None)]);
    let began = world.now();
    let held = world.take().await;
    tokio::time::sleep(5 * SECOND + SECOND / 2).await;
    let gone = world.now();
    world.publish([]);
    tokio::time::sleep(5 * SECOND).await;
    let anew = world.now();
    world.publish([world.source("n/a", 1, Some(anew))]);
    tokio::time::sleep(5 * SECOND).await;
    held.release().await;
    assert_eq!(world.sink.of("n/a"), [seconds(began, gone, 1), seconds(anew, world.now(), 1)].concat());
}

/// An edit at the very moment at which a tick is due, ticks that wait for room, and ticks that wait for their source's
/// own: none is passed, none comes twice.
#[tokio::test(start_paused = true)]
async fn edits_at_any_moment_pass_and_repeat_nothing() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        world.bounds.at_once = [1, 16, 256][world.random.usize(..3)];
        world.sink.latency_ms.store(world.random.u64(0..400), Ordering::SeqCst);
        let keys = ["n/a", "n/b", "n/c"];
        let fresh = |world: &World| world.publish(keys.map(|key| world.source(key, 1, None)));
        fresh(&world);
        let began = world.now();
        let held = world.take().await;
        let end = began + Duration::from_secs(15);
        while world.now() < end {
            // On the second as often as not.
            let wait = match world.random.u64(..3) {
                0 => u64::from(1_000_000_000 - world.now().subsec_nanosecond().unsigned_abs()),
                1 => world.random.u64(..300_000_000),
                _ => 1_000_000 * world.random.u64(..300),
            };
            tokio::time::sleep(Duration::from_nanos(wait)).await;
            fresh(&world);
        }
        world.sink.latency_ms.store(0, Ordering::SeqCst);
        tokio::time::sleep(5 * SECOND + SECOND / 2).await;
        held.release().await;
        let expected: Vec<Timestamp> = seconds(began, world.now(), 1);
        for key in keys {
            let mut fired = world.sink.of(key);
            fired.sort_unstable();
            assert_eq!(fired, expected, "{key}, seed {seed}");
        }
    }
}
