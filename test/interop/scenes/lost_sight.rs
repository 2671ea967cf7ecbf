//! A holder whose requests hang: how long it acts on, beside a replica of the other kind that takes its buckets.

use super::{SLACK, close, fleet, for_foreign, with_both};
use crate::fleet::{Kind, Timing};
use std::time::Duration;

with_both!(go_in_a_black_hole_beside_rust, rust_in_a_black_hole_beside_go, work_that_is_slow_to_end);

const T: Timing = Timing::SHORT;

/// client-go acts for up to retry-period + 2 renew-deadlines after its last renewal: longer than its lease. The grace covers
/// it. (Not where 0.20 is cut off within a renewal: `hack/compare pairs` measures that.)
async fn go_in_a_black_hole_beside_rust(go: Kind) {
    let Some(mut fleet) = fleet("holed-go", 1).await else { return };
    fleet.init(T).await;
    let gopher = fleet.start(go, T).await;
    fleet.until_all_act(&[gopher], SLACK).await;
    let rust = fleet.start(Kind::Rust, T).await;
    holed(&mut fleet, gopher, rust, for_foreign(T)).await;
    assert_eq!(fleet.longest_overlap(Kind::Rust, go), Duration::ZERO);
    close(fleet).await;
}

/// We stop at our deadline, before the lease ends.
async fn rust_in_a_black_hole_beside_go(go: Kind) {
    let Some(mut fleet) = fleet("holed-rust", 2).await else { return };
    fleet.init(T).await;
    let rust = fleet.start(Kind::Rust, T).await;
    fleet.until_all_act(&[rust], SLACK).await;
    let gopher = fleet.start(go, T).await;
    holed(&mut fleet, rust, gopher, T.lease).await;
    assert_eq!(fleet.longest_overlap(Kind::Rust, go), Duration::ZERO);
    close(fleet).await;
}

async fn holed(fleet: &mut crate::fleet::Fleet, holder: usize, next: usize, wait: Duration) {
    // The next has seen what there is, before anything happens to the holder.
    let before = fleet.replicas[holder].identity();
    let renewals = |l: &serde_json::Value| l["spec"]["renewTime"].clone();
    fleet.until_quiet(T).await;
    fleet.until_quiet(T).await;
    fleet.replicas[holder].hole_at_send(1);
    fleet.until_all_act(&[next], wait + SLACK).await;
    fleet
        .until("the one in the hole has stopped", T.retry + T.renew * 2 + SLACK, |f| {
            f.replicas[holder].log().acting() == 0
        })
        .await;
    // What it sees after the hole is a bucket that another holds.
    fleet.replicas[holder].hole(false);
    let now = super::lease(fleet, &fleet.buckets[0], "held by the next", |l| super::holder(l) != before).await;
    super::lease(fleet, &fleet.buckets[0], "renewed", |l| renewals(l) != renewals(&now)).await;
    assert_eq!(fleet.replicas[holder].log().acting(), 0, "it acts again, on what the other holds");
}

/// client-go releases first and stops then; a replica of leasehold that follows waits all the same. Ours stops first.
async fn work_that_is_slow_to_end(go: Kind) {
    let Some(mut fleet) = fleet("slow", 2).await else { return };
    let slow = T.lingering(Duration::from_secs(1));
    fleet.init(slow).await;
    let rust = fleet.start(Kind::Rust, slow).await;
    fleet.until_all_act(&[rust], SLACK).await;
    let gopher = fleet.start(go, slow).await;
    fleet.replicas[rust].end(rustix::process::Signal::TERM).await;
    fleet.until_all_act(&[gopher], SLACK).await;
    let rust = fleet.start(Kind::Rust, slow).await;
    fleet.replicas[gopher].end(rustix::process::Signal::TERM).await;
    fleet.until_all_act(&[rust], for_foreign(T) + SLACK).await;
    assert_eq!(fleet.longest_overlap(Kind::Rust, go), Duration::ZERO);
    close(fleet).await;
}
