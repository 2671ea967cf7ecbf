//! S5: what a write of unknown outcome is worth.

use super::authors::Reluctant;
use super::{S, all_held, blind, bucket, init, judge, lost, ms, patch, terms, terms_of};
use crate::world::{Character, World, timing};
use leasehold::dev::apiserver::{Effect, Match, Verb};
use serde_json::json;

/// A renewal whose answer is lost counts from its own send, and loses no term. (B8, two that write the same:
/// `s5_count_from_the_first_send` beside the elector's core.)
#[tokio::test(start_paused = true)]
async fn s5_what_is_found_counts_from_its_own_send() {
    let world = World::new(11, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    a.faults.inject(Match::verb(Verb::Update).resource("leases").every(2), Effect::HangAfter);
    tokio::time::sleep(120 * S).await;
    assert_eq!(lost(&world), 0);
    // A server that answers 500 after it has written is the same.
    a.faults.clear();
    a.faults.inject(Match::verb(Verb::Update).resource("leases").every(3), Effect::AnswerAfter(500, None));
    tokio::time::sleep(120 * S).await;
    assert_eq!((lost(&world), terms(&world)), (0, 3));
    // The last of each lands, and is found by reading a time-out later.
    a.faults.clear();
    blind(&a);
    for i in 0..3 {
        let of = Match::verb(Verb::Update).name(bucket(i, 3));
        let last = a.faults.inject(of.clone().times(1), Effect::HangAfter);
        world.until("the last one under way", 3 * S, || a.faults.fired(last) == 1).await;
        a.faults.inject(of, Effect::HangBefore);
    }
    all_held(&world, &[&b], 20 * S).await;
    judge(&world).await;
}

/// B9: a person gives the bucket to somebody while the holder sees nothing. Its renewal is refused with 409, and it must
/// judge what it reads instead of renewing that.
#[tokio::test(start_paused = true)]
async fn s5_read_and_judge_a_409() {
    let world = World::new(230, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(3 * S).await;
    blind(&a);
    patch(&world, &bucket(0, 1), json!({"spec": {"holderIdentity": "somebody"}})).await;
    let given = world.truth.now();
    world.until("the term ended", 3 * S, || a.held() == 0).await;
    tokio::time::sleep(24 * S - (world.truth.now() - given)).await;
    let stands = super::lease(&world, &bucket(0, 1)).expect("there");
    assert_eq!(stands.spec.holder, "somebody", "written over, or taken before 15 s and the grace of 10 s");
    all_held(&world, &[&a, &b], 8 * S).await;
    judge(&world).await;
}

/// H13: something below retries a write that had landed, so the answer is 409: to a renewal, a take, a create.
#[tokio::test(start_paused = true)]
async fn s5_a_409_may_hide_a_success() {
    let world = World::new(231, 3, timing(15, 10, 2));
    for (verb, every) in [(Verb::Create, 1), (Verb::Update, 2)] {
        world.server.faults("r0").inject(Match::verb(verb).every(every), Effect::AnswerAfter(409, None));
    }
    let a = world.replica(Character::default());
    all_held(&world, &[&a], 18 * S).await;
    tokio::time::sleep(120 * S).await;
    assert_eq!((a.held(), lost(&world)), (3, 0));
    judge(&world).await;
}

/// W9, P1, V5: a release times out; its bucket, read, is still ours; the release lands.
#[tokio::test(start_paused = true)]
async fn s5_adoption_is_a_write() {
    let world = World::new(232, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character { aware: Some(Reluctant::new(1)), ..Character::default() });
    a.faults.inject(Match::verb(Verb::Update).name(bucket(0, 1)).nth(2), Effect::LateCommit(ms(2750)));
    world.until("taken", S, || terms(&world) == 1).await;
    // What it is not shown it can't be warned by.
    blind(&a);
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], 30 * S).await;
    tokio::time::sleep(20 * S).await;
    all_held(&world, &[&a, &b], S).await;
    judge(&world).await;
}

/// V1, F1: a take times out and lands later. Nobody else may have it, so it is adopted, by a write, and acted on.
#[tokio::test(start_paused = true)]
async fn s5_adoption_at_all() {
    for effect in [Effect::HangAfter, Effect::LateCommit(6 * S)] {
        let world = World::new(9, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        a.faults.inject(Match::verb(Verb::Update).name(bucket(1, 3)).times(1), effect);
        all_held(&world, &[&a], 4 * S).await;
        tokio::time::sleep(20 * S).await;
        assert_eq!((a.held(), lost(&world)), (3, 0));
        judge(&world).await;
    }
}

/// Two processes of one identity (a copied environment): one finds its name in what it did not write, and steps back.
#[tokio::test(start_paused = true)]
async fn s5_a_spec_it_did_not_write_is_not_its_own() {
    let world = World::new(233, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let twin = || Character { identity: Some("r0_twin".to_owned()), ..Character::default() };
    let a = world.replica(twin());
    all_held(&world, &[&a], S).await;
    let b = world.replica(twin());
    tokio::time::sleep(60 * S).await;
    assert_eq!((a.held(), b.held(), terms_of(&world, &b)), (3, 0, 0));
    assert!(b.status.get("stepped-back").is_some_and(|t| t.contains("one identity")), "{:?}", b.status.all());
    // Its twin's death is followed as anybody's.
    a.kill();
    all_held(&world, &[&b], 20 * S).await;
    assert_eq!(b.status.get("stepped-back"), None, "over");
    judge(&world).await;
}

/// A take is answered, and the layout Lease can't be read: what nobody can act on is given back, to whoever can.
#[tokio::test(start_paused = true)]
async fn s5_what_cannot_be_judged_is_given_back() {
    let world = World::new(234, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    world.server.faults("r0").inject(Match::verb(Verb::Get).name(super::layout()), Effect::HangBefore);
    let a = world.replica(Character::default());
    world.until("taken by it", S, || super::lease(&world, &bucket(0, 3)).is_some_and(|r| r.is_held())).await;
    let b = world.replica(Character::default());
    // Given back at the deadline; nobody knows then whether it was free, so it is waited for.
    all_held(&world, &[&b], 26 * S).await;
    tokio::time::sleep(60 * S).await;
    assert_eq!((a.held(), b.held(), terms(&world)), (0, 3, 3));
    assert_eq!(a.status.get("unjudged"), None, "another holds it: said no more");
    // Alone it goes on trying, seldom, and acts as soon as it can.
    b.kill();
    tokio::time::sleep(30 * S).await;
    assert!(a.status.get("unjudged").is_some_and(|t| t.contains("layout Lease")), "{:?}", a.status.all());
    let before = world.server.counts(Some(&a.name), "leases").update;
    tokio::time::sleep(60 * S).await;
    let writes = world.server.counts(Some(&a.name), "leases").update - before;
    assert!(writes <= 3 * 2 * 4, "{writes} takes and releases in a minute");
    a.faults.clear();
    all_held(&world, &[&a], 30 * S).await;
    judge(&world).await;
}
