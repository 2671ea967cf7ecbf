//! A fleet of both kinds in which something happens to somebody all the time.

use super::{SLACK, assert_one_at_a_time, close, fleet, for_foreign, with_both};
use crate::fleet::{Fleet, Kind, Timing};
use rustix::process::Signal;
use std::time::{Duration, Instant};

with_both!(never_two_of_ours_whatever_go_does);

const T: Timing = Timing::SHORT;
const LENGTH: Duration = Duration::from_secs(40);

/// Ends all replicas of a kind, waits until the other kind acts on everything, and starts them again.
async fn all_of_a_kind(fleet: &mut Fleet, kind: Kind, signal: Signal) {
    let (theirs, others): (Vec<_>, Vec<_>) = fleet.running().into_iter().partition(|&r| fleet.replicas[r].kind == kind);
    for &replica in &theirs {
        fleet.replicas[replica].end(signal).await;
    }
    fleet.until_all_act(&others, for_foreign(T) + SLACK).await;
    for _ in theirs {
        fleet.start(kind, T).await;
    }
}

/// Stops, kills and black holes for all; for Go, which promises nothing of the kind, pauses too, from which it wakes up long
/// after its lease.
#[allow(clippy::disallowed_methods, reason = "how long the test has run")]
async fn never_two_of_ours_whatever_go_does(go: Kind) {
    let Some(mut fleet) = fleet("chaos", 4).await else { return };
    let seed = std::env::var("INTEROP_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    fleet.init(T).await;
    for kind in [Kind::Rust, Kind::Rust] {
        fleet.start(kind, T).await;
    }
    fleet.until_all_act(&[0, 1], SLACK).await;
    for kind in [go, go] {
        fleet.start(kind, T).await;
    }
    let began = Instant::now();
    let mut events = 0;
    while began.elapsed() < LENGTH {
        tokio::time::sleep(Duration::from_millis(random.u64(200..2_500))).await;
        let running = fleet.running();
        let victim = running[random.usize(..running.len())];
        let kind = fleet.replicas[victim].kind;
        events += 1;
        // Else the kind that holds most would hold on to it: a replica of ours that releases is followed by the other one at
        // once, and between two of Go's the wait for a foreign holder never ends.
        if random.u8(..5) == 0 {
            all_of_a_kind(&mut fleet, kind, if random.bool() { Signal::TERM } else { Signal::KILL }).await;
            assert_one_at_a_time(&fleet);
            continue;
        }
        let what = random.u8(..if kind.is_go() { 4 } else { 3 });
        let replica = &fleet.replicas[victim];
        match what {
            0 => replica.end(Signal::TERM).await,
            1 => replica.end(Signal::KILL).await,
            // Not for long enough, or for longer than anything of it may act.
            2 => {
                replica.hole(true);
                tokio::time::sleep(T.lease.mul_f64(random.f64() * 2.0)).await;
                fleet.replicas[victim].hole(false);
            }
            _ => {
                replica.signal(Signal::STOP);
                tokio::time::sleep(T.lease.mul_f64(random.f64() * 2.0)).await;
                fleet.replicas[victim].signal(Signal::CONT);
            }
        }
        if !fleet.replicas[victim].runs() {
            fleet.start(kind, T).await;
        }
        assert_one_at_a_time(&fleet);
    }
    // The world is well again: every bucket finds somebody.
    let running = fleet.running();
    fleet.until_all_act(&running, for_foreign(T) + SLACK).await;
    assert_one_at_a_time(&fleet);
    let acted = fleet.replicas.iter().filter(|r| r.kind == Kind::Rust).map(|r| r.log().terms.len()).sum::<usize>();
    let theirs = fleet.replicas.iter().filter(|r| r.kind == go).map(|r| r.log().terms.len()).sum::<usize>();
    assert!(acted > 0 && theirs > 0, "one kind never acted (seed {seed}): {acted} and {theirs} terms");
    let said = format!(
        "{} beside leasehold, seed {seed}: {} events, {acted} terms of ours, {theirs} of Go's; two acted for at most {:?} (ours), {:?} \
         (one of each), {:?} (Go's)",
        go.name(),
        events,
        fleet.longest_overlap(Kind::Rust, Kind::Rust),
        fleet.longest_overlap(Kind::Rust, go),
        fleet.longest_overlap(go, go),
    );
    // Shown with --nocapture.
    println!("{said}");
    close(fleet).await;
}
