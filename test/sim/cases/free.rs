//! 5.1: when a bucket is free, and whose silence is waited out for how long.

use super::{S, all_held, bucket, cut_off, held, init, judge, patch, person, remove, said};
use crate::world::{Character, Replica, World, timing};
use serde_json::{Value, json};
use std::time::Duration;

/// What client-go writes when it takes: it keeps the annotations that it does not know.
fn taken_by(go: &str, transitions: u32) -> Value {
    json!({"spec": {"holderIdentity": go, "leaseDurationSeconds": 15, "leaseTransitions": transitions,
        "renewTime": "2026-11-01T00:00:00.000000Z", "acquireTime": "2026-11-01T00:00:00.000000Z"}})
}

/// And when it releases, with its own transitions and times.
fn released_by_go() -> Value {
    json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1,
        "renewTime": "2026-11-01T00:00:05.000000Z", "acquireTime": "2026-11-01T00:00:05.000000Z"}})
}

/// A world of one bucket, held by one of us that dies as client-go takes it; another of us looks on.
async fn taken_from_us(seed: u64) -> (World, Replica) {
    let world = World::new(seed, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    a.kill();
    patch(&world, &bucket(0, 1), taken_by("go-1", 9)).await;
    (world, b)
}

async fn taken_after(world: &World, by: &Replica, at_least: Duration) {
    let took = all_held(world, &[by], at_least + 2 * S).await;
    assert!(took >= at_least - S / 10, "{took:?}, not {at_least:?}");
    judge(world).await;
}

/// S1: a Lease deleted while its holder, cut off, acts on: made anew, empty, at once, and waited for.
#[tokio::test(start_paused = true)]
async fn absent_is_not_free_at_once() {
    let world = World::new(12, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    // Seen by its holder: the term ends, and it waits as anybody.
    remove(&world, &bucket(0, 3)).await;
    tokio::time::sleep(S).await;
    assert_eq!(held(&[&a, &b]), 2);
    assert!(said(&world, "lease-gone"));
    tokio::time::sleep(13 * S).await;
    assert_eq!(held(&[&a, &b]), 2, "taken before anybody who may still act has ended");
    all_held(&world, &[&a, &b], 3 * S).await;
    assert_eq!(a.status.get("lease-gone"), None, "held again: said no more");
    // Not seen by it.
    let holder = if a.held() >= 2 { &a } else { &b };
    let other = if a.held() >= 2 { &b } else { &a };
    cut_off(holder);
    for i in 0..3 {
        remove(&world, &bucket(i, 3)).await;
    }
    all_held(&world, &[other], 20 * S).await;
    judge(&world).await;
}

/// U1: client-go takes a bucket that we released, and releases it: our record stands there still, and says nothing.
#[tokio::test(start_paused = true)]
async fn record_agrees_with_transitions_and_renew_time() {
    let world = World::new(280, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let name = bucket(0, 1);
    patch(&world, &name, taken_by("go-1", 7)).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    patch(&world, &name, released_by_go()).await;
    let kept = person(&world).get(&name).await.expect("there").metadata.annotations.unwrap_or_default();
    assert!(kept.contains_key("leasehold.dev/release"), "{kept:?}");
    taken_after(&world, &b, 25 * S).await;
    let kept = person(&world).get(&name).await.expect("there").metadata.annotations.unwrap_or_default();
    assert!(!kept.contains_key("leasehold.dev/release"), "our take removes it: {kept:?}");
}

/// H17, U11: client-go may act on after its lease, and after its release: a grace is added; none for one of us.
#[tokio::test(start_paused = true)]
async fn grace_for_a_foreign_holder() {
    let world = World::new(31, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let name = bucket(2, 3);
    let foreign = json!({"spec": {"holderIdentity": "go-1_x", "leaseDurationSeconds": 20, "leaseTransitions": 4,
        "renewTime": "2026-01-01T00:00:00.000000Z", "acquireTime": "2026-01-01T00:00:00.000000Z"}});
    patch(&world, &name, foreign).await;
    let a = world.replica(Character::default());
    world.until("the other two held", S, || a.held() == 2).await;
    tokio::time::sleep(29 * S).await;
    assert_eq!(a.held(), 2, "a foreign holder's lease of 20 s and the grace of 10 s");
    all_held(&world, &[&a], 2 * S).await;
    // Released as client-go releases, without our record: waited for as long, with the grace.
    let release = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}, "metadata": {"annotations": {"leasehold.dev/holder": null}}});
    patch(&world, &name, json!({"spec": {"holderIdentity": "go-2_x"}})).await;
    tokio::time::sleep(S).await;
    patch(&world, &name, release).await;
    // 20 s had bound in it before, and the grace of 10 s.
    tokio::time::sleep(29 * S).await;
    assert_eq!(a.held(), 2, "client-go releases before it stops");
    all_held(&world, &[&a], 2 * S).await;
    judge(&world).await;
}

/// u6: client-go releases, and whoever saw that it was client-go is gone.
#[tokio::test(start_paused = true)]
async fn unknown_last_holder_counts_as_foreign() {
    let world = World::new(281, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    patch(&world, &bucket(0, 1), taken_by("go-1", 7)).await;
    patch(&world, &bucket(0, 1), released_by_go()).await;
    let b = world.replica(Character::default());
    taken_after(&world, &b, 25 * S).await;
}

/// The last holder is known to be one of us (a person emptied its Lease): no grace.
#[tokio::test(start_paused = true)]
async fn no_grace_after_one_of_us() {
    let world = World::new(282, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    cut_off(&a);
    patch(&world, &bucket(0, 1), json!({"spec": {"holderIdentity": ""}})).await;
    let took = all_held(&world, &[&b], 16 * S).await;
    assert!(took >= 15 * S, "{took:?}");
    judge(&world).await;
}

/// H5: client-go keeps annotations. Ours vouches for the holder that it names, and no other.
#[tokio::test(start_paused = true)]
async fn an_annotation_counts_only_for_the_holder_it_names() {
    let (world, b) = taken_from_us(283).await;
    let kept = person(&world).get(&bucket(0, 1)).await.expect("there").metadata.annotations.unwrap_or_default();
    assert!(kept["leasehold.dev/holder"].contains("r0_"), "{kept:?}");
    taken_after(&world, &b, 25 * S).await;
}

/// The same for an annotation of a later format: whose it is stands in every version.
#[tokio::test(start_paused = true)]
async fn a_later_format_counts_only_for_the_holder_it_names() {
    let later = |holder: &str| {
        let note = json!({"v": 2, "holder": holder, "news": [1, 2, 3]}).to_string();
        json!({"metadata": {"annotations": {"leasehold.dev/holder": note}}})
    };
    let (world, b) = taken_from_us(284).await;
    patch(&world, &bucket(0, 1), later("r9_x")).await;
    taken_after(&world, &b, 25 * S).await;
    // The one that it names is one of us, of a later version: only who knows that version may judge it.
    let (world, b) = taken_from_us(285).await;
    patch(&world, &bucket(0, 1), later("go-1")).await;
    tokio::time::sleep(300 * S).await;
    assert_eq!(b.held(), 0);
    judge(&world).await;
}

/// A take leaves a killed holder its time, and no more.
#[tokio::test(start_paused = true)]
async fn a_killed_holder_is_followed_at_its_expiry() {
    let world = World::new(5, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(20 * S).await;
    let died = world.truth.now();
    a.kill();
    tokio::time::sleep(12 * S).await;
    assert_eq!(b.held(), 0, "taken before the lease ran out");
    all_held(&world, &[&b], 4 * S).await;
    // The last renewal of each was at most a retry-period before the death.
    let took = world.truth.now() - died;
    assert!(took >= 13 * S && took < 15 * S + super::ms(150), "{took:?}");
    judge(&world).await;
}
