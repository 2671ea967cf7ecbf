//! S4: whose word is taken for how long.

use super::{
    S, all_held, blind, bucket, cut_off, held, init, judge, layout, lost, ms, patch, person, remove, terms, terms_of,
};
use crate::world::{Character, World, timing};
use leasehold::dev::apiserver::{Effect, Match, Verb};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Q3: a stranger's label changes the resourceVersion: the term goes on, and so does the silence of the dead.
#[tokio::test(start_paused = true)]
async fn s4_silence_by_spec_not_resource_version() {
    let world = World::new(30, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    for i in 0..30 {
        patch(&world, &bucket(0, 3), json!({"metadata": {"labels": {"n": i.to_string()}}})).await;
        tokio::time::sleep(ms(700)).await;
    }
    assert_eq!((a.held(), terms(&world)), (3, 3));
    let kept = person(&world).get(&bucket(0, 3)).await.expect("there");
    assert_eq!(kept.metadata.labels.expect("kept")["n"], "29", "a label was lost in a write");
    a.kill();
    for i in 0..16 {
        patch(&world, &bucket(0, 3), json!({"metadata": {"labels": {"n": i.to_string()}}})).await;
        tokio::time::sleep(S).await;
    }
    assert_eq!(b.held(), 3, "an annotator kept a dead holder alive");
    judge(&world).await;
}

/// B2: who sees nothing believes the holder silent. Its take is conditional on what it saw, and after the conflict what
/// it reads is new: it waits again.
#[tokio::test(start_paused = true)]
async fn s4_the_write_on_the_newest_resource_version() {
    let world = World::new(220, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    blind(&b);
    let before = world.server.counts(Some(&b.name), "leases");
    tokio::time::sleep(100 * S).await;
    let after = world.server.counts(Some(&b.name), "leases");
    assert!(after.update > before.update, "it tried");
    assert!(after.update - before.update <= 3 * 7, "once a lease-duration: {after:?}");
    assert_eq!((a.held(), b.held(), lost(&world)), (3, 0, 0));
    judge(&world).await;
}

/// H11, T1: the holder's duration is the longer one. Cut off, its Leases deleted: who waits must wait as long as it acts.
#[tokio::test(start_paused = true)]
async fn s4_the_longer_duration_binds() {
    for deleted in [false, true] {
        let world = World::new(32, 3, timing(60, 40, 10));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        let b = world.replica(Character { timing: Some(timing(15, 10, 2)), ..Character::default() });
        tokio::time::sleep(20 * S).await;
        cut_off(&a);
        for i in 0..3 {
            if deleted {
                remove(&world, &bucket(i, 3)).await;
            }
        }
        let cut = world.truth.now();
        all_held(&world, &[&b], 90 * S).await;
        let took = world.truth.now() - cut;
        assert!(took >= 49 * S, "{took:?}");
        judge(&world).await;
    }
}

/// T2: one's own short take is the last thing seen; another's long take is not seen, and its Lease deleted. The layout
/// Lease says, to whoever has taken, that it waited too short.
#[tokio::test(start_paused = true)]
async fn s4_longest_seen_not_last_seen() {
    let world = World::new(221, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let c = world.replica(Character::default());
    all_held(&world, &[&c], S).await;
    tokio::time::sleep(5 * S).await;
    blind(&c);
    // Of the layout Lease it reads only what it must: what it has taken is judged by it.
    let cut = cut_off(&c);
    let a = world.replica(Character { timing: Some(timing(60, 40, 10)), ..Character::default() });
    world.until("taken for long", 70 * S, || a.held() == 1).await;
    tokio::time::sleep(S).await;
    cut_off(&a);
    remove(&world, &bucket(0, 1)).await;
    let began = world.truth.now();
    c.faults.remove(cut);
    while world.truth.now() < began + 39 * S {
        tokio::time::sleep(ms(100)).await;
        assert_eq!(terms_of(&world, &c), 1, "a second term while the other may act");
    }
    let tried = super::lease(&world, &bucket(0, 1)).expect("made anew");
    assert!(
        tried.spec.transitions > 0 && !tried.is_held() && tried.released().is_none(),
        "taken, and given back: {tried:?}"
    );
    c.faults.clear();
    all_held(&world, &[&c], 100 * S).await;
    judge(&world).await;
}

/// What has bound under a name is remembered over the deletion of both its Lease and the layout Lease.
#[tokio::test(start_paused = true)]
async fn s4_what_has_bound_is_remembered() {
    let world = World::new(222, 1, timing(60, 40, 10));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let c = world.replica(Character { timing: Some(timing(15, 10, 2)), ..Character::default() });
    tokio::time::sleep(20 * S).await;
    cut_off(&a);
    let cut = world.truth.now();
    remove(&world, &layout()).await;
    remove(&world, &bucket(0, 1)).await;
    all_held(&world, &[&c], 150 * S).await;
    assert!(world.truth.now() - cut >= 59 * S, "{:?}", world.truth.now() - cut);
    judge(&world).await;
}

/// A longer duration of another replica is lowered in the layout Lease when nothing says it any more; a view that is
/// silent proves nothing of the kind.
#[tokio::test(start_paused = true)]
async fn s4_lowered_only_on_what_a_list_shows() {
    let world = World::new(223, 2, timing(15, 10, 2));
    init(&world, 2).await.expect("opened");
    let lowered = Arc::new(AtomicBool::new(false));
    let log = Arc::clone(&lowered);
    world.server.on_commit(move |commit| {
        let after = commit.after.as_deref().filter(|o| o.name() == layout() && commit.client.starts_with('r'));
        let text = after.map(|o| o.value().to_string()).unwrap_or_default();
        log.fetch_or(text.contains("leaseDurationSeconds\\\":15"), Ordering::Relaxed);
    });
    let c = world.replica(Character::default());
    all_held(&world, &[&c], S).await;
    let b = world.replica(Character::default());
    let a = world.replica(Character { timing: Some(timing(60, 40, 10)), ..Character::default() });
    tokio::time::sleep(2 * S).await;
    // It has seen the layout Lease raised, and sees no more: all that it knows to be held says 15 s.
    blind(&b);
    for i in 0..2 {
        b.faults.inject(Match::verbs([Verb::Update, Verb::Get]).name(bucket(i, 2)), Effect::HangBefore);
    }
    c.stop().await;
    world.until("taken for long", S, || a.held() == 2).await;
    lowered.store(false, Ordering::Relaxed);
    tokio::time::sleep(100 * S).await;
    assert!(!lowered.load(Ordering::Relaxed), "lowered under a holder of 60 s");
    b.faults.clear();
    tokio::time::sleep(100 * S).await;
    assert!(!lowered.load(Ordering::Relaxed), "lowered under a holder of 60 s that is seen");
    a.stop().await;
    world.until("lowered when nothing says it any more", 70 * S, || lowered.load(Ordering::Relaxed)).await;
    judge(&world).await;
}

/// Durations that change live: a shorter lease is written before anybody counts by it.
#[tokio::test(start_paused = true)]
async fn s4_durations_change_live() {
    let world = World::new(33, 3, timing(60, 40, 10));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    tokio::time::sleep(30 * S).await;
    for r in [&a, &b] {
        r.configure(&world, timing(5, 4, 1));
    }
    tokio::time::sleep(200 * S).await;
    assert_eq!((held(&[&a, &b]), terms(&world)), (3, 3));
    let (a_held, died) = (a.held(), world.truth.now());
    a.kill();
    all_held(&world, &[&b], 10 * S).await;
    assert!(a_held == 0 || world.truth.now() - died < 6 * S, "the short lease is in force");
    b.configure(&world, timing(60, 40, 10));
    tokio::time::sleep(100 * S).await;
    assert_eq!(b.held(), 3);
    judge(&world).await;
}
