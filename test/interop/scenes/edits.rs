//! A person edits the Leases of a running fleet: client-go takes what looks free at once, and still no two replicas of
//! leasehold act on one bucket.

use super::{SLACK, assert_one_at_a_time, close, fleet, holder, lease, with_both};
use crate::cluster::at;
use crate::fleet::{Fleet, Kind, Timing};
use leasehold::clock::{Boottime, Clock};
use serde_json::{Value, json};

with_both!(leases_of_ours_edited, leases_of_one_that_does_not_see_it_edited, leases_of_go_edited);

const T: Timing = Timing::SHORT;

/// What a person does, to a bucket each. None: the Lease is deleted.
fn edits() -> Vec<(&'static str, Option<Value>)> {
    let spec = |fields: Value| Some(json!({ "spec": fields }));
    vec![
        ("deleted", None),
        ("emptied", spec(json!({ "holderIdentity": "" }))),
        ("without a holder", spec(json!({ "holderIdentity": null }))),
        ("given to somebody who does not run", spec(json!({ "holderIdentity": "nobody_0" }))),
        (
            "without times, and counted from the start",
            spec(json!({ "acquireTime": null, "renewTime": null, "leaseTransitions": 0 })),
        ),
        ("of another duration", spec(json!({ "leaseDurationSeconds": 6 }))),
        (
            "as if it was released a second ago, by hand",
            spec(json!({ "holderIdentity": "", "leaseDurationSeconds": 1 })),
        ),
        ("without annotations", Some(json!({ "metadata": { "annotations": null } }))),
    ]
}

/// All held by one replica of leasehold; another one and one of client-go stand by.
async fn leases_of_ours_edited(go: Kind) {
    let Some(mut fleet) = fleet("edited", edits().len()).await else { return };
    fleet.init(T).await;
    let rust = fleet.start(Kind::Rust, T).await;
    fleet.until_all_act(&[rust], SLACK).await;
    edited(&mut fleet, rust, [Kind::Rust, go], Sees::Yes).await;
    close(fleet).await;
}

/// The same, and the holder's requests hang: it acts to its deadline. client-go takes at once what was deleted or emptied, so
/// for so long one of each kind may act; another replica of leasehold waits.
async fn leases_of_one_that_does_not_see_it_edited(go: Kind) {
    let Some(mut fleet) = fleet("edited-unseen", edits().len()).await else { return };
    fleet.init(T).await;
    let rust = fleet.start(Kind::Rust, T).await;
    fleet.until_all_act(&[rust], SLACK).await;
    edited(&mut fleet, rust, [Kind::Rust, go], Sees::No).await;
    let both = fleet.longest_overlap(Kind::Rust, go);
    assert!(both <= T.renew, "it acted beyond its deadline: {both:?}");
    close(fleet).await;
}

/// All held by a replica of client-go; two of leasehold stand by.
async fn leases_of_go_edited(go: Kind) {
    let Some(mut fleet) = fleet("edited-go", edits().len()).await else { return };
    fleet.init(T).await;
    let gopher = fleet.start(go, T).await;
    fleet.until_all_act(&[gopher], SLACK).await;
    edited(&mut fleet, gopher, [Kind::Rust; 2], Sees::Yes).await;
    close(fleet).await;
}

/// Whether the holder sees what is done to its Leases.
#[derive(PartialEq)]
enum Sees {
    Yes,
    No,
}

async fn edited(fleet: &mut Fleet, all_held_by: usize, beside: [Kind; 2], sees: Sees) {
    for kind in beside {
        fleet.start(kind, T).await;
    }
    // They have seen what there is.
    tokio::time::sleep(T.retry * 2).await;
    fleet.replicas[all_held_by].hole(sees == Sees::No);
    let me = fleet.replicas[all_held_by].identity();
    for (bucket, (what, patch)) in fleet.buckets.iter().zip(edits()) {
        lease(fleet, bucket, &format!("held, to be {what}"), |l| holder(l) == me).await;
        match patch {
            Some(patch) => fleet.cluster.edit(bucket, &patch).await,
            None => fleet.cluster.delete(bucket).await,
        }
    }
    // Whoever acts on a bucket then is the one whom its Lease names and who renews it, also after all have noticed.
    let settled = Boottime.now() + T.retry * 3;
    for (bucket, (what, _)) in fleet.buckets.iter().zip(edits()) {
        let acts = |l: &Value| fleet.replicas.iter().any(|r| holder(l) == r.identity() && r.log().acts_on(bucket));
        let renewed = |l: &Value| at(l, "renewTime").is_some_and(|at| at > settled.as_nanos());
        lease(fleet, bucket, &format!("acted on after it was {what}"), |l| acts(l) && renewed(l)).await;
    }
    assert_one_at_a_time(fleet);
    let go = fleet.replicas.iter().map(|r| r.kind).find(|k| k.is_go()).expect("one of Go's");
    println!("{}: one of each kind acted for at most {:?}", go.name(), fleet.longest_overlap(Kind::Rust, go));
}
