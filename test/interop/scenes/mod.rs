//! What replicas of both kinds do to each other, each scene with both versions of client-go.

mod chaos;
mod edits;
mod fields;
mod handover;
mod lost_sight;

use crate::cluster::Cluster;
use crate::fleet::{Fleet, Kind, Timing};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Room for a machine that does something else, too: never for what must not happen, only for what must.
const SLACK: Duration = Duration::from_secs(10);

/// A fleet in a namespace of its own; none where the tests are skipped.
async fn fleet(component: &str, buckets: usize) -> Option<Fleet> {
    let cluster = Cluster::new(&crate::kubeconfig()?).await;
    Some(Fleet::new(&Arc::new(cluster), component, buckets))
}

/// The end of a scene: all that still runs is ended, and the namespace goes.
async fn close(fleet: Fleet) {
    for replica in &fleet.replicas {
        replica.end(rustix::process::Signal::KILL).await;
    }
    fleet.cluster.close().await;
    fleet.forget();
}

/// The Lease `name` as soon as `holds` of it.
async fn lease(fleet: &Fleet, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let limit = Duration::from_secs(60);
    let reading = async {
        loop {
            if let Some(lease) = fleet.cluster.lease(name).await.filter(|l| holds(l)) {
                return lease;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(limit, reading).await.unwrap_or_else(|_| panic!("not within {limit:?}: Lease {name}: {what}"))
}

fn holder(lease: &Value) -> &str {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

/// When the first act on `bucket` of that replica was, after `after`.
fn first_act(fleet: &Fleet, replica: usize, bucket: &str, after: u64) -> u64 {
    let log = fleet.replicas[replica].log();
    log.of(bucket).map(|t| t.from).find(|&from| from >= after).expect("it acts on the bucket")
}

/// `later` is at least `wait` after `earlier`.
#[track_caller]
fn assert_waited(earlier: u64, later: u64, wait: Duration) {
    let waited = Duration::from_nanos(later.saturating_sub(earlier));
    // renewTime is of the wall clock, which may be slewed.
    assert!(waited + Duration::from_millis(20) >= wait, "waited {waited:?}, and {wait:?} was due");
}

/// How long a replica of leasehold waits for a holder of client-go: the lease, and as long as that may act on.
fn for_foreign(timing: Timing) -> Duration {
    timing.lease + timing.renew
}

/// How long a replica of client-go waits for a holder with that lease-duration. client-go notices a renewal by its text, in which renewTime has
/// whole seconds: of two in one second it counts from the first.
fn for_go(lease: Duration) -> Duration {
    lease - Duration::from_secs(1)
}

/// Each scene as a test with either client-go.
macro_rules! with_both {
    ($($scene:ident),+ $(,)?) => {
        mod go20 { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() { super::$scene(crate::fleet::Kind::Go20).await; }
        )+ }
        mod go32 { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() { super::$scene(crate::fleet::Kind::Go32).await; }
        )+ }
    };
}
pub(crate) use with_both;

/// No two replicas of leasehold acted on one bucket at a time.
#[track_caller]
fn assert_one_at_a_time(fleet: &Fleet) {
    let of_ours: Vec<_> =
        fleet.overlaps().into_iter().filter(|(a, b, ..)| (*a, *b) == (Kind::Rust, Kind::Rust)).collect();
    assert!(of_ours.is_empty(), "two replicas of leasehold on one bucket: {of_ours:#?}");
}
