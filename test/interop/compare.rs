//! Three replicas on ten buckets, ours beside client-go's elector on the same work, measured in one run: `hack/compare`.
//!
//! What is measured: from the last act of one holder to the first of the next after SIGTERM; the first act of the next after
//! the expiry of a killed holder's Lease; the requests of a quiet minute; for how long two act on one bucket after a holder's
//! requests begin to hang, and where work takes a second to end. And of one of each kind: for how long a holder of either
//! acts on whose requests begin to hang, and whether the other one waits for it.

mod measure;
mod table;

use crate::cluster::Cluster;
use crate::fleet::{Fleet, Kind, Timing};
use measure::{Cut, Measured};
use std::sync::Arc;
use std::time::Duration;

/// What is run.
pub(crate) struct Plan {
    timing: Timing,
    kinds: &'static [Kind],
    /// How long requests are counted.
    window: Duration,
    /// At least so many buckets change hands after SIGTERM.
    handovers: usize,
    /// How many holders are killed; how many get into a black hole; how many are slow to end.
    rounds: usize,
}

const BUCKETS: usize = 10;
const REPLICAS: usize = 3;

impl Plan {
    const FULL: Self = Self {
        timing: Timing::USUAL,
        kinds: &[Kind::Rust, Kind::Go20, Kind::Go32],
        window: Duration::from_secs(60),
        handovers: 100,
        rounds: 3,
    };
    const SHORT: Self = Self {
        // client-go does not tell two renewals in one second apart.
        timing: Timing::of(4_000, 3_000, 1_000),
        kinds: &[Kind::Rust, Kind::Go32],
        window: Duration::from_secs(6),
        handovers: 8,
        rounds: 1,
    };
}

/// Each kind by itself, one after the other: `hack/compare kinds`, and with INTEROP_PLAN `short`, `hack/compare --short`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes long: hack/compare runs it"]
async fn kinds() {
    let kubeconfig = crate::kubeconfig().expect("what is missing is said above");
    let full = std::env::var("INTEROP_PLAN").is_ok_and(|p| p == "full");
    let plan = if full { Plan::FULL } else { Plan::SHORT };
    let cluster = Arc::new(Cluster::new(&kubeconfig).await);

    let mut all: Vec<Measured> = Vec::new();
    if full {
        for &kind in plan.kinds {
            let mut fleet = measure::steady_fleet(&cluster, kind, &plan).await;
            let requests = measure::requests(&fleet, &plan).await;
            all.push(Measured { requests: Some(requests), ..measure::troubles(&mut fleet, kind, &plan).await });
        }
    } else {
        // The count of requests is the server's, of everybody's: ours is taken while nobody else is there.
        let mut ours = measure::steady_fleet(&cluster, Kind::Rust, &plan).await;
        let requests = measure::requests(&ours, &plan).await;
        let theirs = async {
            let mut fleet = measure::steady_fleet(&cluster, Kind::Go32, &plan).await;
            measure::troubles(&mut fleet, Kind::Go32, &plan).await
        };
        let (ours, theirs) = tokio::join!(measure::troubles(&mut ours, Kind::Rust, &plan), theirs);
        all.extend([Measured { requests: Some(requests), ..ours }, theirs]);
    }
    cluster.close().await;
    written(&table::of_kinds(&plan, &all));

    let ours = &all[0];
    assert_eq!(ours.kind, Kind::Rust);
    let requests = ours.requests.as_ref().expect("counted");
    assert_eq!(measure::reads(requests), 0, "a standby read something: {requests:?}");
    assert_eq!((ours.hole.overlap, ours.slow), (Duration::ZERO, Duration::ZERO), "two of ours acted");
    // In the short form others use the machine, too.
    let (handover, takeover) = if full { (0.1, 0.1) } else { (1.0, 1.0) };
    let (p99, late) = (measure::quantile(&ours.handover, 0.99), measure::quantile(&ours.takeover, 1.0));
    assert!(p99 < handover, "hand-over: {p99:.3} s");
    assert!(late < takeover, "takeover: {late:.3} s after the expiry");
}

/// One of either kind, and a holder whose requests hang: `hack/compare pairs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a minute and a half long: hack/compare runs it"]
async fn pairs() {
    let kubeconfig = crate::kubeconfig().expect("what is missing is said above");
    let cluster = Arc::new(Cluster::new(&kubeconfig).await);
    let pairs = measure::pairs(&cluster, Timing::USUAL).await;
    cluster.close().await;
    written(&table::of_pairs(&pairs));
    // What has no end of its own no grace covers: that row is for the reader.
    for pair in pairs.iter().filter(|p| p.cut == Cut::Next) {
        assert_eq!(pair.overlap, Duration::ZERO, "{} before {}", pair.holder.name(), pair.next.name());
    }
}

/// To the file that INTEROP_TABLE names, and for whoever looks on.
fn written(table: &str) {
    println!("{table}");
    if let Some(path) = std::env::var_os("INTEROP_TABLE") {
        std::fs::write(path, table).expect("the table can be written");
    }
}

/// A fleet of its own for one measurement.
async fn fleet_of(cluster: &Arc<Cluster>, name: &str, timing: Timing, buckets: usize, kinds: &[Kind]) -> Fleet {
    let mut fleet = Fleet::new(cluster, name, buckets);
    if kinds.contains(&Kind::Rust) {
        fleet.init(timing).await;
    }
    for (i, &kind) in kinds.iter().enumerate() {
        fleet.start(kind, timing).await;
        if i == 0 {
            // The first holds all: which kind is the holder is not left to chance.
            fleet.until_all_act(&[0], timing.lease + Duration::from_secs(20)).await;
        }
    }
    fleet
}
