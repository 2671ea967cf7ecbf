//! S3: what a write carries, what it makes, and what of it counts.

use super::{S, all_held, bucket, cut_off, held, init, judge, lost, ms, remove, terms};
use crate::world::{Character, NAMESPACE, World, timing};
use leasehold::dev::apiserver::{Effect, Match, Verb};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// C5: a renewal lands after its Lease was deleted. Without a uid it would make the Lease anew, held.
#[tokio::test(start_paused = true)]
async fn s3_uid_in_every_put() {
    let world = World::new(210, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(3 * S).await;
    let late = a.faults.inject(Match::verb(Verb::Update).name(bucket(0, 1)).times(1), Effect::LateCommit(2 * S));
    world.until("a renewal under way", 3 * S, || a.faults.fired(late) == 1).await;
    // Nobody makes it anew before that.
    let nobody = world.server.faults("*").inject(Match::verb(Verb::Create), Effect::HangBefore);
    remove(&world, &bucket(0, 1)).await;
    tokio::time::sleep(3 * S).await;
    assert!(super::lease(&world, &bucket(0, 1)).is_none(), "a PUT made a Lease");
    world.server.faults("*").remove(nobody);
    all_held(&world, &[&a, &b], 30 * S).await;
    judge(&world).await;
}

/// W1: a POST knows nothing of what was there before. Late, or upon a deletion, it lands on what somebody acts on.
#[tokio::test(start_paused = true)]
async fn s3_a_post_only_makes_an_empty_lease() {
    let world = World::new(211, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    cut_off(&a);
    remove(&world, &bucket(0, 1)).await;
    world.until("made anew", S, || super::lease(&world, &bucket(0, 1)).is_some()).await;
    let made = super::lease(&world, &bucket(0, 1)).expect("made");
    assert!(!made.is_held() && made.released().is_none(), "{made:?}");
    all_held(&world, &[&b], 20 * S).await;
    judge(&world).await;
}

/// R1: two POSTs are out; the first lands and is acted on, the Lease is deleted, the second lands.
#[tokio::test(start_paused = true)]
async fn s3_a_late_post_finds_nobody_out() {
    let world = World::new(212, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    // The POST of one is under way for long; the other's makes the Lease, and one of both takes it.
    b.faults.inject(Match::verb(Verb::Create).times(1), Effect::LateCommit(40 * S));
    remove(&world, &bucket(0, 1)).await;
    let began = world.truth.now();
    all_held(&world, &[&a, &b], 20 * S).await;
    tokio::time::sleep(began + 39 * S - world.truth.now()).await;
    remove(&world, &bucket(0, 1)).await;
    all_held(&world, &[&a, &b], 30 * S).await;
    judge(&world).await;
}

/// W8, Q4: the wall clock is set back again and again: each renewal is later than the one before, for those who see only
/// some of them.
#[tokio::test(start_paused = true)]
async fn s3_renew_time_only_grows() {
    let world = World::new(213, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let times: Arc<Mutex<BTreeMap<String, Vec<String>>>> = Arc::default();
    let log = Arc::clone(&times);
    world.server.on_commit(move |commit| {
        let Some(after) = commit.after.as_deref().filter(|_| commit.verb == Verb::Update) else { return };
        let Some(at) = after.value().pointer("/spec/renewTime").and_then(Value::as_str) else { return };
        log.lock().expect("whole").entry(after.name().to_owned()).or_default().push(at.to_owned());
    });
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    for hours in [0, -1, -2, 1, -3, 0] {
        a.clock.set_wall_off(jiff::SignedDuration::from_hours(hours));
        tokio::time::sleep(20 * S).await;
    }
    assert_eq!((held(&[&a, &b]), terms(&world), lost(&world)), (3, 3, 0));
    let times = times.lock().expect("whole").clone();
    for (name, times) in times {
        assert!(times.len() > 50, "{name}: {}", times.len());
        for pair in times.windows(2) {
            assert!(pair[0] < pair[1], "{name}: {pair:?}");
        }
    }
    judge(&world).await;
}

/// B10: an admission webhook undoes what a renewal changes: 200, and nothing was written. Others see silence, so the
/// holder must not count it.
#[tokio::test(start_paused = true)]
async fn s3_renewal_changes_the_resource_version() {
    let world = World::new(214, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let (undone, server) = (Arc::new(AtomicBool::new(false)), world.server.clone());
    let undoes = Arc::clone(&undone);
    let meddle: crate::proxy::Meddle = Arc::new(move |parts, body| {
        if undoes.load(Ordering::Relaxed) && parts.method == "PUT" {
            let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if let Some(stands) = server.object("coordination.k8s.io", "leases", NAMESPACE, &name) {
                *body = stands.value().clone();
            }
        }
    });
    let a = world.replica(Character { meddle: Some(meddle), ..Character::default() });
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    undone.store(true, Ordering::Relaxed);
    all_held(&world, &[&b], 20 * S).await;
    tokio::time::sleep(3 * S).await;
    assert_eq!(a.held(), 0, "it acts on what it does not renew");
    judge(&world).await;
}

/// V13: checkpoints, renewals and releases of one Lease do not race each other into conflicts.
#[tokio::test(start_paused = true)]
async fn s3_one_write_at_a_time_per_lease() {
    let world = World::new(215, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let spans = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&spans);
    world.server.on_request(move |r| {
        if r.verb == Verb::Update && r.resource == "leases" {
            let name = r.name.clone().unwrap_or_default();
            log.lock().expect("whole").push((r.client.to_string(), name, r.arrived, r.done, r.code));
        }
    });
    let a = world.replica(Character::default());
    a.faults.inject(Match::any().resource("leases"), Effect::DelayBefore(ms(300)));
    all_held(&world, &[&a], 20 * S).await;
    for i in 0..30 {
        for term in a.leadership.terms() {
            term.checkpoint().store(&format!("page {i}")).expect("kept");
            tokio::spawn(async move { term.checkpoint().flush().await });
        }
        tokio::time::sleep(ms(170)).await;
    }
    a.stop().await;
    let mut spans = spans.lock().expect("whole").clone();
    spans.sort();
    assert!(spans.len() > 30, "{}", spans.len());
    for pair in spans.windows(2) {
        let ((a, name, _, done, code), (b, other, arrived, ..)) = (&pair[0], &pair[1]);
        assert!((a, name) != (b, other) || done <= arrived, "two at a time: {pair:?}");
        assert_eq!(*code, Some(200), "a conflict of its own making: {pair:?}");
    }
    judge(&world).await;
}

/// A late commit of each kind of write, with the Lease deleted in between: nothing is held that is not there.
#[tokio::test(start_paused = true)]
async fn s3_late_writes_around_a_deletion() {
    for late in [500, 2_500, 4_000, 9_000, 16_000] {
        for verb in [Verb::Update, Verb::Create] {
            let world = World::new(111, 3, timing(15, 10, 2));
            init(&world, 3).await.expect("opened");
            let a = world.replica(Character::default());
            let b = world.replica(Character::default());
            all_held(&world, &[&a, &b], S).await;
            tokio::time::sleep(5 * S).await;
            for r in [&a, &b] {
                r.faults.inject(Match::verb(verb).name(bucket(1, 3)).times(2), Effect::LateCommit(ms(late)));
            }
            tokio::time::sleep(S).await;
            remove(&world, &bucket(1, 3)).await;
            all_held(&world, &[&a, &b], 60 * S).await;
            tokio::time::sleep(20 * S).await;
            all_held(&world, &[&a, &b], 30 * S).await;
            judge(&world).await;
        }
    }
}
