//! Random worlds: one seed is one run, and repeats itself.
//!
//! `SIM_SEED=17 cargo test --test sim seeds` replays one; `SIM_SEEDS=10000` runs that many.

use crate::world::{COMPONENT, Character, NAMESPACE, QUEUE, Replica, World, timing};
use leasehold::dev::apiserver::{Cut, Effect, Match, Outage, Verb};
use std::time::Duration;

fn var(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn seeds() {
    let seeds: Vec<u64> = match var("SIM_SEED") {
        Some(one) => vec![one],
        None => (0..var("SIM_SEEDS").unwrap_or(60)).collect(),
    };
    for seed in seeds {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let run = std::panic::AssertUnwindSafe(|| runtime.block_on(one(seed)));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("replay with SIM_SEED={seed} cargo test --test sim seeds");
            std::panic::resume_unwind(panic);
        }
    }
}

fn character(rng: &mut fastrand::Rng) -> Character {
    Character {
        clock_offset: Duration::from_secs(rng.u64(0..100_000)),
        clock_ppm: rng.i64(-200..200),
        ..Character::default()
    }
}

/// A minute or two of trouble, then a world that is well: every bucket must have a holder in time.
async fn one(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let timings = [timing(15, 10, 2), timing(5, 4, 1), timing(60, 40, 10)];
    let buckets = *rng.choice(&[1, 3, 10]).expect("some");
    let world = World::new(seed, buckets, *rng.choice(&timings).expect("some"));
    world.server.faults("*").inject(Match::any(), Effect::DelayBefore(Duration::from_millis(rng.u64(0..10))));
    world.server.faults("*").inject(Match::any(), Effect::DelayAfter(Duration::from_millis(rng.u64(0..10))));
    let mut fleet: Vec<Replica> = (0..rng.usize(1..4)).map(|_| world.replica(character(&mut rng))).collect();
    for _ in 0..rng.usize(5..25) {
        tokio::time::sleep(Duration::from_millis(rng.u64(10..8_000))).await;
        trouble(&world, &mut fleet, &mut rng).await;
    }
    world.server.faults("*").clear();
    for r in &fleet {
        r.faults.clear();
    }
    while fleet.len() < 2 {
        fleet.push(world.replica(character(&mut rng)));
    }
    // First start, an unseen holder, a grace, a silent watch: each may cost its time once.
    let bound = 3 * world.timing.lease_duration + world.timing.renew_deadline + Duration::from_secs(95);
    world
        .until("every bucket held", bound, || fleet.iter().map(Replica::held).sum::<usize>() == buckets as usize)
        .await;
    for r in fleet {
        r.stop().await;
    }
    world.judge();
}

async fn trouble(world: &World, fleet: &mut Vec<Replica>, rng: &mut fastrand::Rng) {
    let leases = Match::any().resource("leases");
    let short = Duration::from_millis(rng.u64(1..20_000));
    let few = leases.clone().times(rng.u64(1..6));
    let any = rng.usize(0..fleet.len().max(1));
    match rng.u32(0..15) {
        0 | 1 if fleet.len() < 5 => fleet.push(world.replica(character(rng))),
        2 if !fleet.is_empty() => fleet.swap_remove(any).kill(),
        3 if !fleet.is_empty() => {
            let gone = fleet.swap_remove(any);
            gone.tell_to_stop();
            tokio::spawn(gone.stop());
        }
        4 => drop(one_of(world, fleet, any).inject(few, Effect::HangBefore)),
        5 => drop(one_of(world, fleet, any).inject(few, Effect::HangAfter)),
        6 => drop(one_of(world, fleet, any).inject(few, Effect::DropAfter)),
        7 => drop(one_of(world, fleet, any).inject(few, Effect::AnswerAfter(500, None))),
        8 => {
            let write = Match::writes().resource("leases").times(1);
            one_of(world, fleet, any).inject(write, Effect::LateCommit(short));
        }
        9 => drop(one_of(world, fleet, any).inject(Match::verb(Verb::Watch).times(2), Effect::SilentWatch)),
        10 => drop(world.server.cut_watches(&Match::any(), if rng.bool() { Cut::Reset } else { Cut::End })),
        11 => {
            let outage = *rng.choice(&[Outage::Refused, Outage::BlackHole, Outage::Answers(503)]).expect("some");
            let faults = one_of(world, fleet, any);
            let rule = faults.inject(Match::any(), Effect::Outage(outage));
            tokio::time::sleep(short).await;
            faults.remove(rule);
        }
        12 => {
            let bucket = leasehold::bucket::lease_name(
                &format!("{COMPONENT}.{QUEUE}"),
                rng.u32(0..world.buckets),
                world.buckets,
            );
            let client = kube::Client::new(world.server.client("person"), NAMESPACE);
            let api: kube::Api<k8s_openapi::api::coordination::v1::Lease> = kube::Api::namespaced(client, NAMESPACE);
            // A fault for all may hit the person too.
            let params = kube::api::DeleteParams::default();
            let _ = tokio::time::timeout(Duration::from_secs(5), api.delete(&bucket, &params)).await;
        }
        13 => world.server.compact(world.server.revision()),
        _ => drop(one_of(world, fleet, any).inject(few, Effect::DelayAfter(short))),
    }
}

fn one_of(world: &World, fleet: &[Replica], any: usize) -> leasehold::dev::apiserver::Faults {
    fleet.get(any).map_or_else(|| world.server.faults("*"), |r| r.faults.clone())
}
