//! S2: what a term's deadline is, and what moves it.

use super::{S, all_held, blind, cut_off, init, judge, ms, said};
use crate::world::{Character, World, timing};
use leasehold::config::Timing;
use leasehold::dev::apiserver::{Effect, Match, Verb};
use std::sync::{Arc, Mutex};

/// B3: answers come late; what they prolong counts from before the send.
#[tokio::test(start_paused = true)]
async fn s2_deadline_from_before_the_send() {
    let world = World::new(200, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    // Nor does its watch show it any sooner.
    blind(&a);
    let slow = a.faults.inject(Match::verb(Verb::Update).times(1), Effect::DelayAfter(ms(2500)));
    world.until("a slow renewal under way", 3 * S, || a.faults.fired(slow) == 1).await;
    // It is the last.
    a.faults.inject(Match::verbs([Verb::Update, Verb::Get]), Effect::HangBefore);
    all_held(&world, &[&b], 20 * S).await;
    tokio::time::sleep(5 * S).await;
    judge(&world).await;
}

/// A5: a deadline that is the lease itself is one slow tick from two holders.
#[test]
fn s2_renew_deadline_below_lease_duration() {
    for (lease, deadline, fits) in [(15_000, 12_000, true), (15_000, 12_001, false), (15_000, 15_000, false)] {
        let timing = Timing::new(ms(lease), ms(deadline), 2 * S);
        assert_eq!(timing.is_ok(), fits, "{lease} ms, {deadline} ms: {timing:?}");
    }
}

/// R9: a list of several pages is of several revisions: ours are asked for in one, from quorum.
#[tokio::test(start_paused = true)]
async fn s2_a_list_of_one_revision() {
    let world = World::new(201, 3, timing(15, 10, 2));
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    let meddle: crate::proxy::Meddle = Arc::new(move |parts, _| {
        let query = parts.uri.query().unwrap_or_default();
        if parts.method == "GET" && parts.uri.path().ends_with("/leases") && !query.contains("watch=") {
            log.lock().expect("whole").push(query.to_owned());
        }
    });
    let a = world.replica(Character { meddle: Some(meddle), ..Character::default() });
    all_held(&world, &[&a], 20 * S).await;
    let asked = asked.lock().expect("whole").clone();
    // The view's, and those of the first start.
    assert!(asked.len() >= 2, "{asked:?}");
    for query in asked {
        assert!(!query.contains("limit") && !query.contains("resourceVersion"), "{query}");
    }
    judge(&world).await;
}

/// H12: a checkpoint is no write of its own: what carries it is a renewal that others see as one, and counts as one.
#[tokio::test(start_paused = true)]
async fn s2_a_checkpoint_rides_on_the_renewal() {
    let world = World::new(202, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    let name = super::bucket(0, 1);
    let written = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&written);
    world.server.on_commit(move |commit| {
        let Some(after) = commit.after.as_deref().filter(|o| o.name() == name) else { return };
        let text = |pointer: &str| after.value().pointer(pointer).map(ToString::to_string).unwrap_or_default();
        log.lock().expect("whole").push((text("/spec/renewTime"), text("/metadata/annotations")));
    });
    let term = a.leadership.terms().remove(0);
    for i in 0..40 {
        term.checkpoint().store(&format!("page {i}")).expect("kept");
        term.checkpoint().flush().await.expect("written");
        tokio::time::sleep(ms(150)).await;
    }
    for pair in written.lock().expect("whole").windows(2) {
        assert!(pair[0].0 < pair[1].0, "a write that renews nothing: {pair:?}");
    }
    // The last of them counts, for the holder as for those that wait: no more and no less.
    cut_off(&a);
    let cut = world.truth.now();
    all_held(&world, &[&b], 20 * S).await;
    assert!(world.truth.now() - cut > 14 * S, "{:?}", world.truth.now() - cut);
    judge(&world).await;
}

/// The machine sleeps, for a minute or an hour: no timer has run, and no guard is given on waking.
#[tokio::test(start_paused = true)]
async fn s2_no_guard_after_a_suspend() {
    for length in [60, 3600] {
        let world = World::new(39, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        a.clock.sleep(length * S);
        assert!((0..40).all(|i| a.leadership.guard(&format!("ns/{i}")).is_none()), "a guard past the deadline");
        world.until("the deadline is said to have passed", 2 * S, || said(&world, "deadline")).await;
        all_held(&world, &[&a], 5 * S).await;
        judge(&world).await;
    }
}

/// V10, A4: whoever is shown nothing any more is stopped by its own writes, or goes on by them; it never acts for longer.
#[tokio::test(start_paused = true)]
async fn s2_a_silent_watch_costs_time_never_safety() {
    let world = World::new(37, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    b.faults.inject(Match::verb(Verb::Watch), Effect::SilentWatch);
    tokio::time::sleep(300 * S).await;
    assert_eq!((a.held(), b.held(), super::lost(&world)), (3, 0, 0));
    blind(&a);
    tokio::time::sleep(60 * S).await;
    assert_eq!((a.held(), super::lost(&world)), (3, 0), "its own writes show it what it holds");
    judge(&world).await;
}
