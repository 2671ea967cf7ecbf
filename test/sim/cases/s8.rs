//! S8: two layouts of one queue. Here: what keeps them apart that is there before a layout can change live.

use super::{
    S, all_held, blind, bucket, cut_off, init, judge, layout, layout_note, make, make_released, ms, patch, remove,
    terms, terms_of,
};
use crate::world::{Character, World, timing};
use leasehold::dev::apiserver::{Effect, Match, Verb};
use serde_json::json;

/// L4, L9: the take of a replica that sees nothing lands after the layout was changed. Answered, it reads the layout.
#[tokio::test(start_paused = true)]
async fn s8_6_1_second_read() {
    let world = World::new(250, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let b = world.replica(Character::default());
    all_held(&world, &[&b], S).await;
    let a = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    blind(&a);
    a.faults.inject(Match::verb(Verb::Get).name(layout()), Effect::DelayBefore(ms(300)));
    b.kill();
    patch(&world, &layout(), json!({"metadata": {"annotations": layout_note(7, 2)}})).await;
    let name = bucket(0, 1);
    let taken = || super::lease(&world, &name).is_some_and(|r| r.spec.holder.starts_with("r1_"));
    world.until("taken, by time", 20 * S, taken).await;
    world.until("given back", S, || super::lease(&world, &name).is_some_and(|r| r.released().is_some())).await;
    tokio::time::sleep(20 * S).await;
    assert_eq!(terms_of(&world, &a), 0, "promoted under a layout that is over");
    judge(&world).await;
}

/// L1: the layout in force is new, and not settled. Somebody still holds a bucket of another one: every replica lists,
/// and none acts before that has run out.
#[tokio::test(start_paused = true)]
async fn s8_6_2_everyone_lists() {
    let world = World::new(251, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let old = world.replica(Character::default());
    all_held(&world, &[&old], S).await;
    tokio::time::sleep(3 * S).await;
    // As by a swap that the old one does not see, and whose swapper is gone.
    blind(&old);
    make_released(&world, 7).await;
    patch(&world, &layout(), json!({"metadata": {"annotations": layout_note(7, 2)}})).await;
    let new: Vec<_> = (0..2).map(|_| world.replica(Character { buckets: Some(7), ..Character::default() })).collect();
    tokio::time::sleep(20 * S).await;
    assert_eq!(old.held(), 3, "it holds on: it has not been told");
    assert!(new.iter().all(|r| terms_of(&world, r) == 0), "acts beside the old layout");
    assert!(new[0].status.get("layout").is_some_and(|t| t.contains("nothing is held under another")));
    cut_off(&old);
    world.until("the new layout worked on", 18 * S, || new.iter().map(|r| r.held()).sum::<usize>() == 7).await;
    judge(&world).await;
}

/// M10: the layout Lease deleted and made anew, under the same generation: another layout all the same.
#[tokio::test(start_paused = true)]
async fn s8_6_layout_is_uid_and_generation() {
    let world = World::new(252, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let old = world.replica(Character::default());
    all_held(&world, &[&old], S).await;
    tokio::time::sleep(3 * S).await;
    blind(&old);
    make_released(&world, 7).await;
    remove(&world, &layout()).await;
    make(&world, &layout(), layout_note(7, 1), json!({})).await;
    let new = world.replica(Character { buckets: Some(7), ..Character::default() });
    tokio::time::sleep(20 * S).await;
    assert_eq!((old.held(), terms_of(&world, &new)), (3, 0));
    cut_off(&old);
    world.until("the new layout worked on", 18 * S, || new.held() == 7).await;
    judge(&world).await;
}

/// The same where the values are the same too: the terms under the old one end, and begin anew under the new one.
#[tokio::test(start_paused = true)]
async fn s8_6_the_same_layout_made_anew() {
    let world = World::new(253, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    // It sees only what came of it.
    let cut = cut_off(&a);
    world.server.cut_watches(&Match::any(), leasehold::dev::apiserver::Cut::Reset);
    remove(&world, &layout()).await;
    make(&world, &layout(), layout_note(3, 1), json!({})).await;
    tokio::time::sleep(ms(1500)).await;
    a.faults.remove(cut);
    world.until("terms under the new one", 20 * S, || terms(&world) == 6 && a.held() == 3).await;
    judge(&world).await;
}

/// Another layout than the one in force: it stands by, ready, saying so.
#[tokio::test(start_paused = true)]
async fn s8_6_5_another_layout_stands_by() {
    let world = World::new(36, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character { buckets: Some(7), ..Character::default() });
    tokio::time::sleep(120 * S).await;
    assert_eq!((a.held(), b.held()), (3, 0));
    assert!(b.status.get("layout").expect("said").starts_with("standing by: in force is strategy standard"));
    judge(&world).await;
}

/// A retired bucket is taken by nobody while the generation in force is not above that of its retiring; then at once.
#[tokio::test(start_paused = true)]
async fn s8_6_4_retired_until_a_generation_above() {
    let world = World::new(254, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let retired = json!({"spec": {"holderIdentity": "retired-1", "leaseDurationSeconds": 2_147_483_647}});
    patch(&world, &bucket(1, 3), retired).await;
    let a = world.replica(Character::default());
    world.until("the others held", S, || a.held() == 2).await;
    tokio::time::sleep(120 * S).await;
    assert_eq!(a.held(), 2);
    patch(&world, &layout(), json!({"metadata": {"annotations": layout_note(3, 2)}})).await;
    all_held(&world, &[&a], 5 * S).await;
    judge(&world).await;
}
