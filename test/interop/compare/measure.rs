//! The measurements, each on a fleet that it leaves as it found it: everybody runs, every bucket is acted on.

use super::{BUCKETS, Plan, REPLICAS, fleet_of};
use crate::cluster::{Cluster, at};
use crate::fleet::{Fleet, Kind, Timing};
use crate::log::Term;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Requests by verb, as the server counts them.
pub(crate) type Requests = BTreeMap<String, u64>;

/// What was measured of one kind. Times in seconds; one per bucket that changed hands.
pub(crate) struct Measured {
    pub(crate) kind: Kind,
    /// Of a minute.
    pub(crate) requests: Option<Requests>,
    /// From the last act of the old holder to the first of the next; negative where both acted.
    pub(crate) handover: Vec<f64>,
    /// From the expiry of the killed holder's Lease to the first act of the next.
    pub(crate) takeover: Vec<f64>,
    pub(crate) hole: Hole,
    /// For how long two acted where work takes [`SLOW`] to end.
    pub(crate) slow: Duration,
}

/// After a holder's requests began to hang.
#[derive(Default, Clone, Copy)]
pub(crate) struct Hole {
    /// For how long two acted on a bucket, at most.
    pub(crate) overlap: Duration,
    /// From its last renewal to its last act, at most.
    pub(crate) acted: Duration,
    /// From its last renewal to the first act of the next, at least.
    pub(crate) next: Duration,
}

/// When the requests of a holder begin to hang.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cut {
    /// Whatever is under way.
    Now,
    /// With its next renewal.
    Next,
    /// Between the answer to the GET and the PUT of a renewal of client-go 0.20.
    AtPut,
}

/// A holder in a black hole, and who takes its buckets.
pub(crate) struct Pair {
    pub(crate) holder: Kind,
    pub(crate) cut: Cut,
    pub(crate) next: Kind,
    pub(crate) overlap: Duration,
    pub(crate) hole: Hole,
}

/// How long work takes to end in the measurement of that.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// The value below or at which `q` of all are, in seconds.
pub(crate) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
    let rank = ((sorted.len() as f64 * q).ceil() as usize).clamp(1, sorted.len());
    sorted[rank - 1]
}

/// What is read: a holder and a standby of ours send none of these.
pub(crate) fn reads(requests: &Requests) -> u64 {
    ["GET", "LIST"].iter().filter_map(|v| requests.get(*v)).sum()
}

/// Long enough for one that says hello to have seen the Leases.
const SETTLED: Duration = Duration::from_secs(1);

/// As long, and then anywhere between two looks of a standby of client-go: each begins to look when it starts, and what
/// happens a fixed time after a start always meets it at one point of its round.
async fn settle(timing: Timing) {
    tokio::time::sleep(SETTLED + timing.retry.mul_f64(fastrand::f64() * 2.2)).await;
}

/// Three replicas that share ten buckets and have settled.
pub(crate) async fn steady_fleet(cluster: &Arc<Cluster>, kind: Kind, plan: &Plan) -> Fleet {
    let name = format!("steady-{kind:?}").to_lowercase();
    let fleet = fleet_of(cluster, &name, plan.timing, BUCKETS, &[kind; REPLICAS]).await;
    tokio::time::sleep(SETTLED + plan.timing.retry).await;
    fleet
}

/// Requests for Leases of a quiet minute.
pub(crate) async fn requests(fleet: &Fleet, plan: &Plan) -> Requests {
    let before = fleet.cluster.requests().await;
    tokio::time::sleep(plan.window).await;
    let after = fleet.cluster.requests().await;
    let minute = |n: u64| n * 60 / plan.window.as_secs();
    after.into_iter().map(|(verb, n)| (verb.clone(), minute(n - before.get(&verb).unwrap_or(&0)))).collect()
}

/// All but the requests.
pub(crate) async fn troubles(fleet: &mut Fleet, kind: Kind, plan: &Plan) -> Measured {
    let mut handover = Vec::new();
    while handover.len() < plan.handovers {
        let old = given_up(fleet, plan.timing, Signal::TERM).await;
        handover.extend(old.iter().map(|(last, first)| seconds(last.until, first.from)));
    }
    let mut takeover = Vec::new();
    for _ in 0..plan.rounds {
        takeover.extend(killed(fleet, plan.timing).await);
    }
    let mut hole = Hole::default();
    for round in 0..plan.rounds {
        let victim = fleet.busiest();
        let one = holed(fleet, victim, plan.timing, Cut::Now).await;
        hole = Hole {
            overlap: hole.overlap.max(one.overlap),
            acted: hole.acted.max(one.acted),
            next: if round == 0 { one.next } else { hole.next.min(one.next) },
        };
        fleet.replicas[victim].end(Signal::KILL).await;
        fleet.start(kind, plan.timing).await;
        settle(plan.timing).await;
    }
    for replica in &fleet.replicas {
        replica.end(Signal::KILL).await;
    }
    let name = format!("slow-{kind:?}").to_lowercase();
    let timing = plan.timing.lingering(SLOW);
    let mut slow = fleet_of(&fleet.cluster, &name, timing, BUCKETS, &[kind; 2]).await;
    settle(timing).await;
    for _ in 0..plan.rounds {
        given_up(&mut slow, timing, Signal::TERM).await;
    }
    for replica in &slow.replicas {
        replica.end(Signal::KILL).await;
    }
    Measured { kind, requests: None, handover, takeover, hole, slow: slow.longest_overlap(kind, kind) }
}

/// From `from` to `to`, in seconds.
fn seconds(from: u64, to: u64) -> f64 {
    if to >= from { (to - from) as f64 / 1e9 } else { (from - to) as f64 / -1e9 }
}

/// Ends the busiest by `signal` and starts another; each of its buckets' last stretch, and the next.
async fn given_up(fleet: &mut Fleet, timing: Timing, signal: Signal) -> Vec<(Term, Term)> {
    let victim = fleet.busiest();
    let (kind, held) = (fleet.replicas[victim].kind, open(fleet, victim));
    fleet.replicas[victim].end(signal).await;
    others_act(fleet, victim, &held, timing).await;
    let found = held.iter().map(|t| (last(fleet, victim, t), next(fleet, victim, t))).collect();
    fleet.start(kind, timing).await;
    settle(timing).await;
    found
}

/// Kills the busiest: of each of its buckets, how long after the expiry the next acts.
async fn killed(fleet: &mut Fleet, timing: Timing) -> Vec<f64> {
    let victim = fleet.busiest();
    let (kind, held) = (fleet.replicas[victim].kind, open(fleet, victim));
    fleet.replicas[victim].end(Signal::KILL).await;
    let renewed = renewed(fleet, &held).await;
    others_act(fleet, victim, &held, timing).await;
    let lease = u64::try_from(timing.lease.as_nanos()).expect("a duration");
    let found =
        held.iter().zip(renewed).map(|(t, renewed)| seconds(renewed + lease, next(fleet, victim, t).from)).collect();
    fleet.start(kind, timing).await;
    settle(timing).await;
    found
}

/// The requests of `victim` hang from now on.
async fn holed(fleet: &Fleet, victim: usize, timing: Timing, cut: Cut) -> Hole {
    let held = open(fleet, victim);
    let replica = &fleet.replicas[victim];
    match cut {
        Cut::Now => replica.hole(true),
        Cut::Next => replica.hole_at_send(1),
        Cut::AtPut => replica.hole_at_send(2),
    }
    fleet.until("nothing comes through", timing.retry * 3, |_| replica.is_holed()).await;
    let renewed = renewed(fleet, &held).await;
    others_act(fleet, victim, &held, timing).await;
    // client-go's release has no end of its own before 0.31: until its connection is found dead.
    let limit = timing.retry + timing.renew * 2 + Duration::from_secs(60);
    fleet.until("the one in the hole has stopped", limit, |f| f.replicas[victim].log().acting() == 0).await;
    let mut hole = Hole { next: Duration::MAX, ..Hole::default() };
    for (term, renewed) in held.iter().zip(renewed) {
        let (last, next) = (last(fleet, victim, term), next(fleet, victim, term));
        let since = |at: u64| Duration::from_nanos(at.saturating_sub(renewed));
        hole.overlap = hole.overlap.max(last.overlap(&next));
        hole.acted = hole.acted.max(since(last.until));
        hole.next = hole.next.min(since(next.from));
    }
    hole
}

/// What `replica` acts on now.
fn open(fleet: &Fleet, replica: usize) -> Vec<Term> {
    let log = fleet.replicas[replica].log();
    log.terms.iter().filter(|t| t.open).cloned().collect()
}

/// When each was last renewed, as its Lease says.
async fn renewed(fleet: &Fleet, held: &[Term]) -> Vec<u64> {
    let mut times = Vec::new();
    for term in held {
        let lease = fleet.cluster.lease(&term.bucket).await.expect("it stands");
        times.push(at(&lease, "renewTime").expect("a time"));
    }
    times
}

async fn others_act(fleet: &Fleet, victim: usize, held: &[Term], timing: Timing) {
    // client-go's next look may be a jittered retry-period after the lease, of which nobody else has begun one yet.
    let limit = timing.lease + timing.renew + timing.retry * 3 + Duration::from_secs(20);
    fleet
        .until("others act on all it held", limit, |f| {
            held.iter().all(|t| (0..f.replicas.len()).any(|r| r != victim && f.replicas[r].log().acts_on(&t.bucket)))
        })
        .await;
}

/// That stretch of `replica`, as it ended.
fn last(fleet: &Fleet, replica: usize, term: &Term) -> Term {
    let log = fleet.replicas[replica].log();
    log.of(&term.bucket).find(|t| t.from == term.from).expect("it was there").clone()
}

/// The first stretch of another that began after that one of `replica` did.
fn next(fleet: &Fleet, replica: usize, term: &Term) -> Term {
    let others = (0..fleet.replicas.len()).filter(|&r| r != replica);
    others
        .filter_map(|r| fleet.replicas[r].log().of(&term.bucket).find(|t| t.from > term.from).cloned())
        .min_by_key(|t| t.from)
        .expect("somebody acts on it")
}

/// Either kind in a black hole, the other beside it.
pub(crate) async fn pairs(cluster: &Arc<Cluster>, timing: Timing) -> Vec<Pair> {
    let one = |holder: Kind, cut: Cut, next: Kind| async move {
        let name = format!("pair-{holder:?}-{cut:?}-{next:?}").to_lowercase();
        // One bucket: its holder's next send is of its next renewal.
        let fleet = fleet_of(cluster, &name, timing, 1, &[holder, next]).await;
        tokio::time::sleep(SETTLED).await;
        fleet.until_quiet(timing).await;
        let hole = holed(&fleet, 0, timing, cut).await;
        let overlap = fleet.longest_overlap(holder, next);
        for replica in &fleet.replicas {
            replica.end(Signal::KILL).await;
        }
        Pair { holder, cut, next, overlap, hole }
    };
    let (a, b, c, d, e) = tokio::join!(
        one(Kind::Go20, Cut::Next, Kind::Rust),
        one(Kind::Go20, Cut::AtPut, Kind::Rust),
        one(Kind::Go32, Cut::Next, Kind::Rust),
        one(Kind::Rust, Cut::Next, Kind::Go20),
        one(Kind::Rust, Cut::Next, Kind::Go32)
    );
    vec![a, b, c, d, e]
}
