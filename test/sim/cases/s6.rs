//! S6: how a term ends.

use super::authors::Reluctant;
use super::{S, all_held, blind, bucket, cut_off, held, init, judge, ms, stubborn, terms};
use crate::world::{Character, World, timing};
use leasehold::dev::apiserver::{Commit, Effect, Match, Outage, Verb};
use leasehold::leader::fatal::Fatal;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// When buckets were released by a PUT, in true time.
fn releases(world: &World) -> Arc<Mutex<Vec<Duration>>> {
    let (times, truth) = (Arc::new(Mutex::new(Vec::new())), world.truth);
    let log = Arc::clone(&times);
    world.server.on_commit(move |commit: &Commit| {
        let holder = |o: &Option<Arc<leasehold::dev::apiserver::Object>>| {
            o.as_ref().and_then(|o| o.value().pointer("/spec/holderIdentity")?.as_str().map(str::to_owned))
        };
        let was = holder(&commit.before).is_some_and(|h| !h.is_empty());
        if was && holder(&commit.after).is_some_and(|h| h.is_empty()) {
            log.lock().expect("whole").push(truth.now());
        }
    });
    times
}

/// V1, B7: drain-timeout passes with a guard out that listens to nobody. Nothing is released before it is back; nothing
/// is lost either, since it is renewed meanwhile.
#[tokio::test(start_paused = true)]
async fn s6_no_release_while_a_guard_is_out() {
    let world = World::new(240, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(S).await;
    let released = releases(&world);
    let guard = stubborn(&world, &a, 15 * S);
    a.tell_to_stop();
    let told = world.truth.now();
    all_held(&world, &[&b], 16 * S).await;
    guard.await.expect("it ends");
    let released = released.lock().expect("whole").clone();
    assert_eq!(released.len(), 1);
    assert!(released[0] >= told + 15 * S, "{:?} after the stop", released[0] - told);
    world.until("the stopped one has ended", S, || !a.is_running()).await;
    judge(&world).await;
}

/// H18: a guard that cannot be stopped and is still out when others may soon act ends the process.
#[tokio::test(start_paused = true)]
async fn s6_a_guard_out_of_a_lost_term_ends_the_process() {
    let world = World::new(241, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    tokio::time::sleep(S).await;
    cut_off(&a);
    let cut = world.truth.now();
    let guard = stubborn(&world, &a, 60 * S);
    let fatals = Arc::clone(&world.fatals);
    world.until("the process is ended", 20 * S, || !fatals.lock().expect("whole").is_empty()).await;
    // 0.9 of lease-duration after the send of the last renewal that counts, which was up to a retry-period before.
    let took = world.truth.now() - cut;
    assert!((11 * S..=ms(13_510)).contains(&took), "{took:?}");
    assert!(matches!(fatals.lock().expect("whole")[0], Fatal::GuardOut { guards: 1, .. }));
    guard.abort();
}

/// V2: no other is promoted while demote runs.
#[tokio::test(start_paused = true)]
async fn s6_demote_before_release() {
    let world = World::new(242, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character { aware: Some(Reluctant::slow(4 * S)), ..Character::default() });
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(S).await;
    let released = releases(&world);
    let told = world.truth.now();
    a.stop().await;
    all_held(&world, &[&b], S).await;
    let released = released.lock().expect("whole").clone();
    assert_eq!(released.len(), 3);
    assert!(released.iter().all(|at| *at >= told + 4 * S), "{released:?}, told at {told:?}");
    judge(&world).await;
}

/// V4, B6, H10: a release lands and its answer is lost. Whoever sent it acts no more, whatever it believes.
#[tokio::test(start_paused = true)]
async fn s6_term_over_once_the_release_is_sent() {
    let world = World::new(243, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character { aware: Some(Reluctant::new(1)), ..Character::default() });
    a.faults.inject(Match::verb(Verb::Update).name(bucket(0, 1)).nth(2), Effect::HangAfter);
    world.until("taken", S, || terms(&world) == 1).await;
    blind(&a);
    let b = world.replica(Character::default());
    all_held(&world, &[&b], 2 * S).await;
    tokio::time::sleep(30 * S).await;
    assert_eq!((a.held(), b.held()), (0, 1));
    judge(&world).await;
}

/// The same for a stop: the release lands, its answer is lost; for another bucket it lands after the time-out.
#[tokio::test(start_paused = true)]
async fn s6_a_release_of_unknown_outcome_ends_the_term() {
    let world = World::new(10, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    let release = |i| Match::verb(Verb::Update).name(bucket(i, 3)).times(1);
    a.tell_to_stop();
    a.faults.inject(release(0), Effect::HangAfter);
    a.faults.inject(release(1), Effect::LateCommit(4 * S));
    all_held(&world, &[&b], 20 * S).await;
    world.until("the stopped one has ended", 20 * S, || !a.is_running()).await;
    judge(&world).await;
}

/// V3: the deadline passes, demote runs, and the bucket, nobody else's yet, is still named its own. Taken then it would
/// have two terms.
#[tokio::test(start_paused = true)]
async fn s6_not_taken_again_before_demote_returned() {
    let world = World::new(244, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character { aware: Some(Reluctant::slow(8 * S)), ..Character::default() });
    all_held(&world, &[&a], S).await;
    tokio::time::sleep(S).await;
    let outage = cut_off(&a);
    world.until("lost", 12 * S, || a.held() == 0).await;
    let lost = world.truth.now();
    a.faults.remove(outage);
    // The same for what another has had and released meanwhile: here nobody has.
    all_held(&world, &[&a], 20 * S).await;
    assert!(world.truth.now() - lost >= 8 * S, "{:?}", world.truth.now() - lost);
    judge(&world).await;
}

/// A stop ends although what is named as ours can neither be read nor released: it has run out by then.
#[tokio::test(start_paused = true)]
async fn s6_a_stop_ends_in_an_outage() {
    for outage in [Outage::Refused, Outage::BlackHole, Outage::Answers(503)] {
        let world = World::new(44, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        a.faults.inject(Match::any(), Effect::Outage(outage));
        world.until("every term lost", 12 * S, || a.held() == 0).await;
        tokio::time::sleep(20 * S).await;
        tokio::time::timeout(20 * S, a.stop()).await.expect("a stop takes no longer than lease-duration");
        judge(&world).await;
    }
}

/// A stop hands over at once: from the end of a term to the next one's promote.
#[tokio::test(start_paused = true)]
async fn s6_a_stop_hands_over_at_once() {
    use crate::history::What;
    use leasehold::leader::Reason;
    let world = World::new(4, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    assert_eq!(held(&[&b]), 0);
    a.stop().await;
    all_held(&world, &[&b], S).await;
    let entries = world.history.entries();
    for i in 0..10 {
        let name = bucket(i, 10);
        let ended = entries
            .iter()
            .find(|e| matches!(&e.what, What::Ended { bucket, reason: Reason::Shutdown, .. } if *bucket == name));
        let promoted = entries.iter().rev().find(|e| matches!(&e.what, What::Promoted { bucket } if *bucket == name));
        let gap = promoted.expect("promoted").at - ended.expect("ended").at;
        assert!(gap < ms(100), "{name}: {gap:?}");
    }
    judge(&world).await;
}
