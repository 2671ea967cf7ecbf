//! One holder after another, in good order and not, at many timings.

use super::support::{SECOND, World, seconds};
use crate::sources::ping::position::{Position, Saved, back};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn pause(world: &mut World, most_ms: u64) {
    let ms = world.random.u64(0..most_ms);
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Sources, bounds and a sink by a seed.
fn world_of(seed: u64) -> World {
    let mut world = World::new(seed);
    world.bounds.at_once = [1, 2, 16, 256][world.random.usize(..4)];
    let latency = [0, 30, 700, 3000][world.random.usize(..4)];
    world.sink.latency_ms.store(latency, Ordering::SeqCst);
    let sources = world.random.usize(1..6);
    // One at a time and slow: no more than can be had in a minute.
    world.publish_some(sources, if world.bounds.at_once < 16 { 20 } else { 4 });
    world
}

/// Every tick of every source up to now, as often as it came.
fn assert_all(world: &World, began: jiff::Timestamp, seed: u64, fits: impl Fn(usize) -> bool) {
    let counts = world.sink.counts();
    let catalog = world.catalog.borrow().clone().unwrap();
    let mut expected = 0;
    for source in catalog.values() {
        for at in seconds(began, world.now(), source.period) {
            let came = counts.get(&(source.key.clone(), at)).copied().unwrap_or(0);
            assert!(fits(came), "seed {seed}: {} of {at} came {came} times", source.key);
            expected += 1;
        }
    }
    assert!(expected > 0 && counts.len() == expected, "seed {seed}: {expected} expected, {} came", counts.len());
}

#[tokio::test(start_paused = true)]
async fn over_clean_hand_overs_each_tick_comes_once() {
    for seed in 0..200 {
        let mut world = world_of(seed);
        pause(&mut world, 1500).await;
        let began = world.now();
        for _ in 0..4 {
            let held = world.take().await;
            pause(&mut world, 8000).await;
            held.release().await;
            pause(&mut world, 3000).await;
        }
        world.sink.latency_ms.store(0, Ordering::SeqCst);
        let held = world.take().await;
        tokio::time::sleep(10 * SECOND).await;
        held.release().await;
        assert_all(&world, began, seed, |came| came == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn over_crashes_none_is_lost_and_only_what_the_lease_does_not_say_comes_again() {
    let mut again = 0;
    for seed in 0..200 {
        let mut world = world_of(seed);
        pause(&mut world, 1500).await;
        let mut began = None;
        for _ in 0..6 {
            let found = world.lease.position().map(|text| Position::new(Saved::parse(&text).unwrap()));
            let before = world.sink.sent().len();
            // Nothing was there before the first checkpoint stood, and nothing is promised from before that.
            began = began.or_else(|| found.is_none().then(|| world.now()));
            let held = world.take().await;
            pause(&mut world, 8000).await;
            if world.random.u8(..4) == 0 {
                held.release().await;
            } else {
                held.kill().await;
            }
            if world.lease.position().is_none() {
                began = None;
            }
            if let Some(mut found) = found {
                let mut places = BTreeMap::new();
                for (key, at, when) in world.sink.sent().into_iter().skip(before) {
                    let place = *places.entry(key.clone()).or_insert_with(|| found.place(&key));
                    assert!(at >= place, "seed {seed}: {key} of {at} came again at {when}, though {place} stood");
                }
            }
            pause(&mut world, 3000).await;
        }
        world.sink.latency_ms.store(0, Ordering::SeqCst);
        let began = began.unwrap_or_else(|| world.now());
        let held = world.take().await;
        tokio::time::sleep(10 * SECOND).await;
        held.release().await;
        assert_all(&world, began, seed, |came| came >= 1);
        again += world.sink.counts().values().filter(|came| **came > 1).count();
    }
    assert!(again > 0, "the crashes did not hit anything");
}

/// A hand-over in the middle of those of one time: the checkpoint says at which of them.
#[tokio::test(start_paused = true)]
async fn a_hand_over_among_ticks_of_one_time_repeats_none_of_them() {
    let mut world = World::new(1);
    world.bounds.at_once = 16;
    world.sink.latency_ms.store(200, Ordering::SeqCst);
    world.publish((0..400).map(|i| world.source(&format!("n/{i:03}"), 60, None)));
    let mut terms = 0;
    while world.sink.sent().len() < 400 {
        let held = world.take().await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        held.release().await;
        terms += 1;
    }
    assert!(terms > 3);
    let keys: Vec<String> = world.sink.sent().into_iter().map(|(key, ..)| key).collect();
    assert!(keys.is_sorted(), "in order, over all terms");
    assert!(world.sink.counts().values().all(|came| *came == 1));
    assert_eq!(world.sink.most_out.load(Ordering::SeqCst), 16);
}

/// What a killed replica has written last decides, though it has done more.
#[tokio::test(start_paused = true)]
async fn a_crash_repeats_what_came_after_the_last_write() {
    let world = World::new(1);
    world.publish([world.source("n/a", 1, None)]);
    let held = world.take().await;
    tokio::time::sleep(5 * SECOND + SECOND / 2).await;
    world.lease.stuck.store(true, Ordering::SeqCst);
    let written = Saved::parse(&world.lease.position().unwrap()).unwrap().at();
    tokio::time::sleep(5 * SECOND).await;
    held.kill().await;
    world.lease.stuck.store(false, Ordering::SeqCst);
    let fired = world.sink.of("n/a");
    let _held = world.take().await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(world.sink.of("n/a")[fired.len()..], seconds(written, world.now(), 1));
    assert!(written > back(world.now(), 10 * SECOND));
}
