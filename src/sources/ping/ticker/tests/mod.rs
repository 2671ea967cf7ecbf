//! One bucket's ticks on virtual time.

mod checkpoint;
mod clocks;
mod edits;
mod handover;
mod load;
mod support;

use crate::bucket::{BucketSet, Hash};
use crate::clock::Clock;
use std::sync::atomic::Ordering;
use support::{SECOND, World, seconds};

#[tokio::test(start_paused = true)]
async fn each_due_tick_is_fired_once_and_in_time() {
    let world = World::new(1);
    world.publish([("n/a", 1), ("n/b", 7), ("n/c", 60)].map(|(key, every)| world.source(key, every, None)));
    let began = world.now();
    let _held = world.take().await;
    tokio::time::sleep(150 * SECOND + SECOND / 2).await;
    for (key, every) in [("n/a", 1), ("n/b", 7), ("n/c", 60)] {
        assert_eq!(world.sink.of(key), seconds(began, world.now(), every), "{key}");
    }
    for (key, at, when) in world.sink.sent() {
        let late = when.duration_since(at).as_millis();
        assert!((0..50).contains(&late), "{key} of {at} came {late} ms late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bucket_fires_its_own_sources_only() {
    let world = World::new(1);
    let set = BucketSet::new(Hash::Knative, ["q.00-of-02", "q.01-of-02"]).unwrap();
    let keys: Vec<String> = (0..20).map(|i| format!("n/{i}")).collect();
    world.publish(keys.iter().map(|key| world.source(key, 1, None)));
    let bucket = set.bucket(0);
    let _held = world.take_as(bucket.clone(), true).await;
    tokio::time::sleep(2 * SECOND).await;
    let fired = keys.iter().filter(|key| !world.sink.of(key).is_empty());
    let own: Vec<&String> = keys.iter().filter(|key| bucket.has(key)).collect();
    assert!(!own.is_empty() && own.len() < keys.len());
    assert_eq!(fired.collect::<Vec<_>>(), own);
}

#[tokio::test(start_paused = true)]
async fn nothing_fires_before_the_sources_are_known() {
    let world = World::new(1);
    let held = world.take().await;
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(world.lease.position(), None, "a checkpoint moved now would pass their ticks");
    let known = world.now();
    world.publish([world.source("n/a", 1, None)]);
    tokio::time::sleep(3 * SECOND).await;
    assert_eq!(world.sink.of("n/a"), seconds(known, world.now(), 1));
    held.release().await;
}

#[tokio::test(start_paused = true)]
async fn past_the_deadline_nothing_fires_though_nobody_has_said_so() {
    let world = World::new(1);
    world.publish([world.source("n/a", 1, None)]);
    let held = world.take().await;
    tokio::time::sleep(3 * SECOND).await;
    let deadline = held.stop_renewing();
    tokio::time::sleep(30 * SECOND).await;
    let last = world.sink.sent().pop().unwrap().2;
    assert!(last.duration_since(world.now()).as_secs() < -10 && world.clock.now() > deadline);
}

#[tokio::test(start_paused = true)]
async fn a_term_that_ends_before_it_began_does_nothing() {
    let world = World::new(1);
    world.lease.stuck.store(true, Ordering::SeqCst);
    world.publish([world.source("n/a", 1, None)]);
    let held = world.take().await;
    tokio::time::sleep(2 * SECOND).await;
    held.release().await;
    assert_eq!(world.sink.sent(), []);
}
