//! A fleet of both kinds in which something happens to somebody all the time.

use super::{SLACK, assert_one_at_a_time, close, fleet, for_foreign, with_both};
use crate::fleet::{Fleet, Kind, Timing};
use rustix::process::Signal;
use std::time::{Duration, Instant};

with_both!(never_two_of_ours_whatever_go_does);

const T: Timing = Timing::SHORT;
const LENGTH: Duration = Duration::from_secs(25);

/// What ends by itself: a way to the API server that is a black hole, or a process that is stopped.
struct Trouble {
    replica: usize,
    until: Instant,
    paused: bool,
}

impl Trouble {
    fn end(&self, fleet: &Fleet) {
        let replica = &fleet.replicas[self.replica];
        if self.paused { replica.signal(Signal::CONT) } else { replica.hole(false) }
    }
}

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
/// after its lease. At most two are in trouble at a time.
#[allow(clippy::disallowed_methods, reason = "how long the test has run")]
async fn never_two_of_ours_whatever_go_does(go: Kind) {
    let Some(mut fleet) = fleet("chaos", 4).await else { return };
    let seed = std::env::var("INTEROP_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("{}: INTEROP_SEED={seed}", go.name());
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
    let (mut events, mut troubles, mut kind_ends) = (0, Vec::<Trouble>::new(), [Kind::Rust, go].into_iter());
    while began.elapsed() < LENGTH {
        tokio::time::sleep(Duration::from_millis(random.u64(100..1_000))).await;
        let over = |t: &Trouble| t.until <= Instant::now() || !fleet.replicas[t.replica].runs();
        let (ended, standing): (Vec<_>, Vec<_>) = troubles.into_iter().partition(over);
        ended.iter().for_each(|t| t.end(&fleet));
        troubles = standing;
        assert_one_at_a_time(&fleet);
        events += 1;
        // Else the kind that holds most would hold on to it: a replica of ours that releases is followed by the other one at
        // once, and between two of Go's the wait for a foreign holder never ends.
        if events % 8 == 0
            && let Some(kind) = kind_ends.next()
        {
            troubles.drain(..).for_each(|t| t.end(&fleet));
            all_of_a_kind(&mut fleet, kind, if random.bool() { Signal::TERM } else { Signal::KILL }).await;
            continue;
        }
        let well: Vec<_> = fleet.running().into_iter().filter(|r| troubles.iter().all(|t| t.replica != *r)).collect();
        if well.len() <= 2 {
            continue;
        }
        let victim = well[random.usize(..well.len())];
        let kind = fleet.replicas[victim].kind;
        let replica = &fleet.replicas[victim];
        match random.u8(..if kind.is_go() { 4 } else { 3 }) {
            0 => replica.end(Signal::TERM).await,
            1 => replica.end(Signal::KILL).await,
            what => {
                let paused = what == 3;
                if paused {
                    replica.signal(Signal::STOP)
                } else {
                    replica.hole(true)
                }
                // Not for long enough, or for longer than anything of it may act.
                let until = Instant::now() + T.lease.mul_f64(random.f64() * 2.0);
                troubles.push(Trouble { replica: victim, until, paused });
            }
        }
        if !fleet.replicas[victim].runs() {
            fleet.start(kind, T).await;
        }
    }
    // The world is well again: every bucket finds somebody.
    troubles.drain(..).for_each(|t| t.end(&fleet));
    let running = fleet.running();
    fleet.until_all_act(&running, for_foreign(T) + SLACK).await;
    assert_one_at_a_time(&fleet);
    let terms = |kind| fleet.replicas.iter().filter(|r| r.kind == kind).map(|r| r.log().terms.len()).sum::<usize>();
    let (ours, theirs) = (terms(Kind::Rust), terms(go));
    assert!(ours > 0 && theirs > 0, "one kind never acted: {ours} and {theirs} terms");
    let longest = |a, b| fleet.longest_overlap(a, b);
    // Shown with --nocapture.
    println!(
        "{}: {events} events, {ours} terms of ours, {theirs} of Go's; two acted for at most {:?} (one of each kind), {:?} (Go's)",
        go.name(),
        longest(Kind::Rust, go),
        longest(go, go),
    );
    close(fleet).await;
}
