//! From one kind to the other: after a clean stop, after a kill, and never from a holder that lives.

use super::{SLACK, assert_waited, close, first_act, fleet, for_foreign, for_go, holder, lease, with_both};
use crate::cluster::at;
use crate::fleet::{Fleet, Kind, Timing};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

with_both!(
    first_start_beside_go_and_there_and_back,
    killed_go_is_followed_by_rust,
    killed_rust_is_followed_by_go,
    an_annotation_that_go_kept_frees_nothing,
    whose_duration_binds,
);

const T: Timing = Timing::SHORT;

/// Waits until every bucket has been renewed by `me` for `long`, and says what the Leases then say.
async fn renewed_for(fleet: &Fleet, me: &str, long: Duration) -> Vec<Value> {
    let mut leases = Vec::new();
    let from = leasehold::clock::Clock::now(&leasehold::clock::Boottime).as_nanos();
    for bucket in &fleet.buckets {
        let lasting = |l: &Value| {
            let renewed = at(l, "renewTime").expect("a time");
            holder(l) == me && Duration::from_nanos(renewed.saturating_sub(from)) > long
        };
        leases.push(lease(fleet, bucket, "renewed for long", lasting).await);
    }
    leases
}

/// No `leasehold init`: a Go replica holds all, as in an upgrade.
async fn first_start_beside_go_and_there_and_back(go: Kind) {
    let Some(mut fleet) = fleet("upgrade", 2).await else { return };
    let gopher = fleet.start(go, T).await;
    fleet.until_all_act(&[gopher], SLACK).await;
    let rust = fleet.start(Kind::Rust, T).await;
    // Go's holding hinders the opening no longer than nothing would: one lease-duration.
    let open = |l: &Value| {
        l["metadata"]["annotations"]["leasehold.dev/layout"].as_str().is_some_and(|n| n.contains(r#""open":true"#))
    };
    lease(&fleet, "upgrade.adapter", "opened beside a Go replica", open).await;

    // It respects a holder that renews, for as long as that does.
    renewed_for(&fleet, &fleet.replicas[gopher].identity(), for_foreign(T) + T.retry * 2).await;
    assert!(fleet.replicas[rust].log().terms.is_empty(), "it acted while a Go replica held everything");

    // client-go says "released" before it has stopped: the bucket is waited for as if its holder had died.
    followed(&fleet, gopher, Signal::TERM, rust, for_foreign(T)).await;

    // Go respects a holder that renews, too.
    let gopher = fleet.start(go, T).await;
    renewed_for(&fleet, &fleet.replicas[rust].identity(), T.lease * 2).await;
    assert!(fleet.replicas[gopher].log().terms.is_empty(), "client-go took what was renewed");

    // And takes what was released with its next try.
    fleet.replicas[rust].end(Signal::TERM).await;
    fleet.until_all_act(&[gopher], SLACK).await;
    assert_eq!(fleet.longest_overlap(Kind::Rust, go), Duration::ZERO);
    close(fleet).await;
}

async fn killed_go_is_followed_by_rust(go: Kind) {
    let Some(mut fleet) = fleet("killed-go", 2).await else { return };
    fleet.init(T).await;
    let gopher = fleet.start(go, T).await;
    fleet.until_all_act(&[gopher], SLACK).await;
    let rust = fleet.start(Kind::Rust, T).await;
    renewed_for(&fleet, &fleet.replicas[gopher].identity(), T.retry * 2).await;
    followed(&fleet, gopher, Signal::KILL, rust, for_foreign(T)).await;
    close(fleet).await;
}

async fn killed_rust_is_followed_by_go(go: Kind) {
    let Some(mut fleet) = fleet("killed-rust", 2).await else { return };
    fleet.init(T).await;
    let rust = fleet.start(Kind::Rust, T).await;
    fleet.until_all_act(&[rust], SLACK).await;
    let gopher = fleet.start(go, T).await;
    renewed_for(&fleet, &fleet.replicas[rust].identity(), T.retry * 2).await;
    followed(&fleet, rust, Signal::KILL, gopher, for_go(T.lease)).await;
    close(fleet).await;
}

/// Ends `holder_of_all`; `next` takes everything, after `wait` since its last write and not long after.
///
/// Its last write after SIGTERM is the release, or not: client-go's fails where the signal falls into a renewal.
async fn followed(fleet: &Fleet, holder_of_all: usize, signal: Signal, next: usize, wait: Duration) {
    fleet.replicas[holder_of_all].end(signal).await;
    let mut written = Vec::new();
    for bucket in &fleet.buckets {
        written.push(last_write(fleet, bucket).await);
    }
    fleet.until_all_act(&[next], wait + SLACK).await;
    for (bucket, written) in fleet.buckets.iter().zip(written) {
        assert_waited(written, first_act(fleet, next, bucket, written), wait);
    }
    assert!(fleet.overlaps().is_empty());
}

/// When its holder wrote `bucket` last.
async fn last_write(fleet: &Fleet, bucket: &str) -> u64 {
    at(&fleet.cluster.lease(bucket).await.expect("it stands"), "renewTime").expect("a time")
}

/// client-go keeps annotations that it does not know: a bucket that it holds, or has given up, carries the words of the
/// replica of leasehold before it.
async fn an_annotation_that_go_kept_frees_nothing(go: Kind) {
    let Some(mut fleet) = fleet("kept", 1).await else { return };
    fleet.init(T).await;
    let bucket = fleet.buckets[0].clone();
    let first = fleet.start(Kind::Rust, T).await;
    fleet.until_all_act(&[first], SLACK).await;
    fleet.replicas[first].end(Signal::TERM).await;
    let note = |l: &Value, what: &str| l["metadata"]["annotations"][format!("leasehold.dev/{what}")].clone();
    let released = lease(&fleet, &bucket, "released", |l| holder(l).is_empty()).await;
    assert!(note(&released, "release").is_string());

    // A release record under a holder of Go's.
    let gopher = fleet.start(go, T).await;
    fleet.until_all_act(&[gopher], SLACK).await;
    let second = fleet.start(Kind::Rust, T).await;
    let held = renewed_for(&fleet, &fleet.replicas[gopher].identity(), for_foreign(T)).await;
    assert_eq!(note(&held[0], "release"), note(&released, "release"), "client-go keeps it");
    assert!(fleet.replicas[second].log().terms.is_empty(), "it took what a Go replica holds");

    // And in a Lease that Go has given up.
    followed(&fleet, gopher, Signal::TERM, second, for_foreign(T)).await;

    // A holder's annotation, of a replica that was killed, under a holder of Go's: it makes that none of ours.
    let gopher = fleet.start(go, T).await;
    fleet.replicas[second].end(Signal::KILL).await;
    fleet.until_all_act(&[gopher], T.lease + SLACK).await;
    let third = fleet.start(Kind::Rust, T).await;
    let held = renewed_for(&fleet, &fleet.replicas[gopher].identity(), T.retry * 2).await;
    assert!(note(&held[0], "holder").as_str().is_some_and(|n| n.contains(&fleet.replicas[second].identity())));
    followed(&fleet, gopher, Signal::KILL, third, for_foreign(T)).await;
    close(fleet).await;
}

/// The old client-go waits for its own lease-duration, the new one for the record's. So with an old one beside us, ours must
/// not be longer. A replica of leasehold waits for the longer of both, whoever holds.
async fn whose_duration_binds(go: Kind) {
    const LONG: Timing = Timing::of(14_000, 3_000, 500);
    let Some(mut ours) = fleet("durations", 1).await else { return };
    let mut theirs = Fleet::new(&ours.cluster, "durations-go", 1);
    tokio::join!(
        async {
            let [holder, next] = killed(&mut ours, Kind::Rust, LONG, go).await;
            let written = last_write(&ours, &ours.buckets[0]).await;
            ours.until_all_act(&[next], LONG.lease + SLACK).await;
            let acts = first_act(&ours, next, &ours.buckets[0], written);
            let waited = Duration::from_nanos(acts - written);
            println!(
                "{} follows a lease-duration of {:?} with one of {:?} after {waited:?}",
                go.name(),
                LONG.lease,
                T.lease
            );
            if go == Kind::Go20 {
                assert_waited(written, acts, for_go(T.lease));
                assert!(waited < LONG.lease, "{waited:?}: client-go 0.20 has learned to honour the record");
            } else {
                assert_waited(written, acts, for_go(LONG.lease));
            }
            assert!(!ours.replicas[holder].runs());
        },
        async {
            let [_, next] = killed(&mut theirs, go, LONG, Kind::Rust).await;
            let written = last_write(&theirs, &theirs.buckets[0]).await;
            theirs.until_all_act(&[next], LONG.lease + T.renew + SLACK).await;
            assert_waited(written, first_act(&theirs, next, &theirs.buckets[0], written), LONG.lease + T.renew);
        }
    );
    close(theirs).await;
    close(ours).await;
}

/// One of `kind` held the bucket, with that timing, and has been killed; a `standby` of the usual timing saw it.
async fn killed(fleet: &mut Fleet, kind: Kind, timing: Timing, standby: Kind) -> [usize; 2] {
    fleet.init(T).await;
    let holder = fleet.start(kind, timing).await;
    fleet.until_all_act(&[holder], SLACK).await;
    let next = fleet.start(standby, T).await;
    renewed_for(fleet, &fleet.replicas[holder].identity(), T.retry * 4).await;
    assert!(fleet.replicas[next].log().terms.is_empty(), "it took what was renewed");
    fleet.replicas[holder].end(Signal::KILL).await;
    [holder, next]
}
