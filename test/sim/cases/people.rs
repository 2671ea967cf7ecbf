//! What people do to Leases with kubectl.

use super::{S, all_held, bucket, held, init, judge, lost, ms, patch, remove};
use crate::world::{Character, World, timing};
use serde_json::json;

/// A Lease deleted by a person does not cost the bucket its place: whoever makes it anew puts the last checkpoint back.
#[tokio::test(start_paused = true)]
async fn a_deleted_lease_keeps_its_checkpoint() {
    let world = World::new(70, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let term = a.leadership.terms().remove(0);
    term.checkpoint().store("page 7").expect("kept");
    term.checkpoint().flush().await.expect("written");
    let b = world.replica(Character::default());
    tokio::time::sleep(S).await;
    a.kill();
    remove(&world, &bucket(0, 1)).await;
    all_held(&world, &[&b], 20 * S).await;
    assert_eq!(b.leadership.terms()[0].checkpoint().load().as_deref(), Some("page 7"));
    judge(&world).await;
}

/// A holder blanked, or renamed, by a person; a Lease without spec; our annotation gone.
#[tokio::test(start_paused = true)]
async fn what_a_person_does_to_a_lease_is_survived() {
    let edits = [
        json!({"spec": {"holderIdentity": ""}}),
        json!({"spec": {"holderIdentity": null}}),
        json!({"spec": null}),
        json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 20}}),
        json!({"spec": {"renewTime": null, "acquireTime": null}}),
        json!({"spec": {"leaseDurationSeconds": 2_147_483_647}}),
        json!({"metadata": {"annotations": {"leasehold.dev/holder": null}}}),
        json!({"metadata": {"annotations": {"leasehold.dev/holder": "{\"v\":1"}}}),
    ];
    for (i, edit) in edits.into_iter().enumerate() {
        let world = World::new(13 + i as u64, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        let b = world.replica(Character::default());
        all_held(&world, &[&a, &b], S).await;
        tokio::time::sleep(5 * S).await;
        patch(&world, &bucket(1, 3), edit.clone()).await;
        tokio::time::sleep(ms(200)).await;
        assert_eq!(lost(&world), 1, "{edit}: the term of bucket 1 went on");
        if edit.get("metadata").is_none() {
            // Where only our annotation went, the holder adopts what it still holds by a write, for a new term (S5).
            assert_eq!(held(&[&a, &b]), 2, "{edit}");
        }
        // At the latest: a foreign holder of 20 s, with the grace of 10 s.
        all_held(&world, &[&a, &b], 32 * S).await;
        for r in [&a, &b] {
            let page = r.status.all();
            assert_eq!(page.keys().collect::<Vec<_>>(), ["layout"], "{edit}: what is over is said no more: {page:?}");
        }
        judge(&world).await;
    }
}

/// What happens a second time is said a second time, and no longer than it lasts.
#[tokio::test(start_paused = true)]
async fn what_happens_again_is_said_again() {
    let world = World::new(47, 2, timing(15, 10, 2));
    init(&world, 2).await.expect("opened");
    let a = world.replica(Character::default());
    let mut said = Vec::new();
    for _ in 0..2 {
        all_held(&world, &[&a], 60 * S).await;
        assert_eq!(a.status.get("lost"), None);
        for i in 0..2 {
            patch(&world, &bucket(i, 2), json!({"spec": {"holderIdentity": ""}})).await;
            tokio::time::sleep(ms(1500)).await;
        }
        assert_eq!(a.held(), 0);
        said.push(a.status.get("lost").expect("said"));
        world.until("one of two held again", 20 * S, || a.held() == 1).await;
        assert!(a.status.get("lost").is_some(), "the other is not");
    }
    assert!(said[0].contains("at ") && said[0] != said[1], "{said:?}");
    judge(&world).await;
}
