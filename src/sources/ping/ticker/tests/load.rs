//! Many sources, slow sinks.

use super::support::{SECOND, World, seconds};
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[tokio::test(start_paused = true)]
async fn no_more_are_out_than_may_be_and_none_is_passed() {
    let mut world = World::new(1);
    world.bounds.at_once = 32;
    world.sink.latency_ms.store(1500, Ordering::SeqCst);
    world.publish((0..100).map(|i| world.source(&format!("n/{i:02}"), 10, None)));
    let began = world.now();
    let held = world.take().await;
    tokio::time::sleep(45 * SECOND).await;
    held.release().await;
    assert_eq!(world.sink.most_out.load(Ordering::SeqCst), 32);
    let times: Vec<_> = world.sink.sent().into_iter().map(|(_, at, _)| at).collect();
    assert!(times.is_sorted(), "begun in order");
    for i in 0..100 {
        assert_eq!(world.sink.of(&format!("n/{i:02}")), seconds(began, world.now(), 10));
    }
}

/// A sink that never answers holds up what is sent to it, not its neighbours.
#[tokio::test(start_paused = true)]
async fn a_dead_sink_does_not_hold_up_other_sources() {
    let mut world = World::new(1);
    world.bounds.at_once = 64;
    *world.sink.dead.lock().unwrap() = Some("dead");
    let keys: Vec<String> = (0..5).flat_map(|i| [format!("n/dead{i}"), format!("n/well{i}")]).collect();
    world.publish(keys.iter().map(|key| world.source(key, 1, None)));
    let began = world.now();
    let held = world.take().await;
    tokio::time::sleep(50 * SECOND + SECOND / 2).await;
    let now = world.now();
    for key in &keys {
        let expected = seconds(began, now, 1);
        let expected = if key.contains("dead") { &expected[..4] } else { &expected[..] };
        assert_eq!(world.sink.of(key), expected, "{key}");
    }
    assert!(world.sink.sent().iter().all(|(_, at, when)| when.duration_since(*at).as_millis() < 50));
    // It comes back: what waited is sent, as far as it is caught up.
    held.release().await;
    *world.sink.dead.lock().unwrap() = None;
    let _held = world.take().await;
    tokio::time::sleep(5 * SECOND).await;
    for key in keys.iter().filter(|key| key.contains("well")) {
        assert_eq!(world.sink.of(key), seconds(began, world.now(), 1), "{key}");
    }
    let mut dead = world.sink.of("n/dead0");
    dead.drain(..4);
    assert!(dead.len() > 60 && dead.is_sorted(), "{}", dead.len());
}

/// What it costs is counted, not timed: how often schedules are asked, each of which may take thousands of steps.
#[tokio::test(start_paused = true)]
async fn ten_thousand_sources_cost_what_fires_and_changes() {
    const N: usize = 10_000;
    let world = World::new(1);
    world.sink.latency_ms.store(500, Ordering::SeqCst);
    tokio::time::sleep(SECOND).await;
    let mut sources: Vec<_> = (0..N).map(|i| world.source(&format!("n/{i}"), 600, None)).collect();
    let asked = |sources: &[Arc<super::support::Every>]| -> usize {
        sources.iter().map(|s| s.asked.load(Ordering::SeqCst)).sum()
    };
    world.publish(sources.clone());
    let _held = world.take().await;
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(asked(&sources), N, "each once at the start");
    tokio::time::sleep(300 * SECOND).await;
    assert_eq!(asked(&sources), N, "nothing in between");
    sources[7] = world.source("n/7", 600, None);
    world.publish(sources.clone());
    tokio::time::sleep(SECOND).await;
    assert_eq!(asked(&sources), N, "an edit asks the one that is edited");
    tokio::time::sleep(330 * SECOND).await;
    assert_eq!(asked(&sources), 2 * N, "once more for each tick");
    assert_eq!(world.sink.sent().len(), N);
    assert_eq!(world.sink.most_out.load(Ordering::SeqCst), 256);
    assert!(world.lease.writes.load(Ordering::SeqCst) < 30);
}
