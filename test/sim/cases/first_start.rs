//! 5.1: nobody knows whether something runs that cannot be seen.

use super::{
    S, all_held, blind, bucket, cut_off, held, init, judge, layout, lost, make_released, ms, remove, terms_of,
};
use crate::world::{Character, World, timing};
use leasehold::dev::apiserver::{Effect, Match, Verb};
use leasehold::lease::init::{Done, InitError};

/// F1: a holder that is cut off acts on; all its Leases are deleted; a fresh replica of another layout finds buckets
/// that are free. Only the wait of a first start keeps it from acting at once.
#[tokio::test(start_paused = true)]
async fn first_start_waits() {
    let world = World::new(270, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    tokio::time::sleep(5 * S).await;
    cut_off(&a);
    make_released(&world, 7).await;
    for i in 0..3 {
        remove(&world, &bucket(i, 3)).await;
    }
    remove(&world, &layout()).await;
    let began = world.truth.now();
    let b = world.replica(Character { buckets: Some(7), ..Character::default() });
    world.until("opened", 17 * S, || b.held() == 7).await;
    assert!(world.truth.now() - began >= 15 * S);
    judge(&world).await;
}

/// f5: the layout Lease is deleted under a holder that is not told, and later its bucket, as it is cut off. The wait
/// begins with that.
#[tokio::test(start_paused = true)]
async fn first_start_nothing_held_or_vanished() {
    let world = World::new(271, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    tokio::time::sleep(5 * S).await;
    blind(&a);
    make_released(&world, 7).await;
    remove(&world, &layout()).await;
    let b = world.replica(Character { buckets: Some(7), ..Character::default() });
    tokio::time::sleep(40 * S).await;
    assert_eq!((a.held(), b.held()), (1, 0), "opened beside a holder");
    // Until now it was held; from now on it has vanished.
    cut_off(&a);
    remove(&world, &bucket(0, 1)).await;
    let vanished = world.truth.now();
    world.until("opened", 17 * S, || b.held() == 7).await;
    assert!(world.truth.now() - vanished >= 15 * S);
    judge(&world).await;
}

/// D2: the POST of a layout Lease is under way for long, and answered when others have opened the queue, act on it, and
/// the layout Lease is deleted again; whoever sent it is shown nothing. The wait begins with a list sent after that.
#[tokio::test(start_paused = true)]
async fn opening_waits_on_a_list_made_after_the_uid_is_known() {
    let world = World::new(272, 1, timing(15, 10, 2));
    make_released(&world, 7).await;
    let post = Match::verb(Verb::Create).name_where(|n| n == layout()).times(1);
    world.server.faults("r0").inject(post, Effect::LateCommit(ms(2500)));
    world.server.faults("r0").inject(Match::verb(Verb::Watch), Effect::SilentWatch);
    let b = world.replica(Character { buckets: Some(7), ..Character::default() });
    tokio::time::sleep(ms(500)).await;
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    blind(&a);
    tokio::time::sleep(ms(1500)).await;
    remove(&world, &layout()).await;
    world.until("made by the one that sees nothing", S, || super::lease(&world, &layout()).is_some()).await;
    // Its wait has begun; the holder is there for most of it.
    tokio::time::sleep(12 * S).await;
    assert_eq!((a.held(), b.held()), (1, 0));
    cut_off(&a);
    remove(&world, &bucket(0, 1)).await;
    world.until("opened", 60 * S, || b.held() == 7).await;
    judge(&world).await;
}

/// A holder that the view shows as silent need not be: the view may be. Opened only after another list, in which it has
/// neither renewed nor vanished.
#[tokio::test(start_paused = true)]
async fn opening_is_confirmed_by_a_list() {
    let world = World::new(273, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    tokio::time::sleep(5 * S).await;
    blind(&a);
    make_released(&world, 7).await;
    remove(&world, &layout()).await;
    let b = world.replica(Character { buckets: Some(7), ..Character::default() });
    tokio::time::sleep(4 * S).await;
    // It has listed, and knows a holder; it is shown nothing more.
    b.faults.inject(Match::verb(Verb::Watch), Effect::SilentWatch);
    tokio::time::sleep(9 * S).await;
    assert_eq!((a.held(), b.held()), (1, 0));
    cut_off(&a);
    remove(&world, &bucket(0, 1)).await;
    let vanished = world.truth.now();
    world.until("opened", 60 * S, || b.held() == 7).await;
    assert!(world.truth.now() - vanished >= 10 * S);
    judge(&world).await;
}

/// A lease-duration, said; and paid once per queue.
#[tokio::test(start_paused = true)]
async fn first_start_waits_a_lease_duration_and_says_so() {
    let world = World::new(1, 10, timing(15, 10, 2));
    let a = world.replica(Character::default());
    tokio::time::sleep(14 * S).await;
    assert_eq!(a.held(), 0, "taken before the wait was over");
    let said = a.status.get("layout").expect("said");
    assert!(said.contains("first start") && said.contains("before 2"), "{said}");
    let waited = all_held(&world, &[&a], 3 * S).await;
    assert!(waited < 2 * S, "{waited:?}");
    a.stop().await;
    let b = world.replica(Character::default());
    let waited = all_held(&world, &[&b], S).await;
    assert!(waited < ms(200), "{waited:?}");
    judge(&world).await;
}

/// H15: the layout Lease deleted while all is held: terms end in good order, and the queue opens anew.
#[tokio::test(start_paused = true)]
async fn a_deleted_layout_lease_is_a_first_start() {
    let world = World::new(35, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    tokio::time::sleep(5 * S).await;
    remove(&world, &layout()).await;
    world.until("all released", S, || held(&[&a, &b]) == 0).await;
    tokio::time::sleep(14 * S).await;
    assert_eq!(held(&[&a, &b]), 0);
    all_held(&world, &[&a, &b], 5 * S).await;
    assert_eq!(lost(&world), 0);
    judge(&world).await;
}

#[tokio::test(start_paused = true)]
async fn init_skips_the_wait_and_changes_nothing_twice() {
    let world = World::new(2, 10, timing(15, 10, 2));
    assert_eq!(init(&world, 10).await.expect("opened"), Done::Opened { written: 10 });
    assert_eq!(init(&world, 10).await.expect("in force"), Done::AlreadyInForce);
    assert!(matches!(init(&world, 3).await, Err(InitError::Other { .. })));
    let a = world.replica(Character::default());
    let waited = all_held(&world, &[&a], S).await;
    assert!(waited < ms(200), "{waited:?}");
    remove(&world, &layout()).await;
    assert!(matches!(init(&world, 10).await, Err(InitError::Held(_))));
    assert_eq!(terms_of(&world, &a), 10);
    judge(&world).await;
}
