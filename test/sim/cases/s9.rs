//! S9: the token grows, also over a restored etcd.

use super::{S, all_held, bucket, init, judge, layout, ms, remove};
use crate::world::{Character, World, timing};
use leasehold::dev::apiserver::{Cut, Effect, Match, Verb};

/// H19: terms end, the era is raised, tokens go on growing; and the page says so no longer than it lasts.
#[tokio::test(start_paused = true)]
async fn s9_a_restored_etcd_raises_the_era() {
    let world = World::new(34, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(20 * S).await;
    let backup = world.server.snapshot();
    tokio::time::sleep(60 * S).await;
    let before = a.leadership.terms()[0].token().expect("a token");
    world.server.restore(&backup);
    let terms = || a.leadership.terms().into_iter().chain(b.leadership.terms());
    world
        .until("terms of a later era", 60 * S, || {
            terms().count() == 3 && terms().all(|t| t.token().is_some_and(|t| t.era() > before.era()))
        })
        .await;
    assert!(terms().all(|t| t.token().expect("a token") > before));
    world.until("said no more", S, || a.status.get("revision-went-back").is_none()).await;
    assert_eq!(b.status.get("revision-went-back"), None);
    judge(&world).await;
}

/// An answer is in flight over the restore: it says nothing of the cluster as it is, and the era is raised once.
#[tokio::test(start_paused = true)]
async fn s9_an_answer_in_flight_over_a_restore() {
    for verb in [Verb::Update, Verb::Get, Verb::List] {
        let world = World::new(260, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        tokio::time::sleep(20 * S).await;
        let backup = world.server.snapshot();
        tokio::time::sleep(60 * S).await;
        // Carried out before, answered after: of what is gone. The other buckets' requests tell of the restore meanwhile.
        let one = if verb == Verb::List { Match::verb(verb) } else { Match::verb(verb).name(bucket(0, 3)) };
        let slow = a.faults.inject(one.times(1), Effect::DelayAfter(ms(2500)));
        if verb == Verb::Get {
            a.faults.inject(Match::verb(Verb::Update).name(bucket(0, 3)).times(1), Effect::DropBefore);
        } else if verb == Verb::List {
            a.faults.cut_watches(&Match::any(), Cut::Gone);
        }
        world.until("a request under way", 5 * S, || a.faults.fired(slow) == 1).await;
        world.server.restore(&backup);
        world
            .until("terms of the next era", 60 * S, || {
                a.held() == 3 && a.leadership.terms().iter().all(|t| t.token().is_some_and(|t| t.era() >= 1))
            })
            .await;
        tokio::time::sleep(60 * S).await;
        assert!(a.leadership.terms().iter().all(|t| t.token().expect("a token").era() == 1), "{verb}: raised again");
        assert_eq!(a.held(), 3);
        judge(&world).await;
    }
}

/// A token grows over the deletion of its Lease, and of all of them.
#[tokio::test(start_paused = true)]
async fn s9_a_token_grows_over_a_deletion() {
    let world = World::new(261, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    for all in [false, true] {
        all_held(&world, &[&a], 40 * S).await;
        let before = a.leadership.terms()[0].token().expect("a token");
        remove(&world, &bucket(0, 1)).await;
        if all {
            remove(&world, &layout()).await;
        }
        world.until("lost", S, || a.held() == 0).await;
        all_held(&world, &[&a], 40 * S).await;
        assert!(a.leadership.terms()[0].token().expect("a token") > before);
    }
    judge(&world).await;
}
