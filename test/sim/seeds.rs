//! Random worlds: one seed is one run, and repeats itself.
//!
//! `SIM_SEED=17 cargo test --test sim seeds` replays one; `SIM_SEEDS=10000` runs that many, from
//! `SIM_FROM` on.

use crate::foreign::foreign;
use crate::world::{COMPONENT, Character, NAMESPACE, QUEUE, Replica, World, timing};
use leasehold::dev::apiserver::{Cut, Effect, Match, Outage, Verb};
use serde_json::json;
use std::time::Duration;

fn var(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn seeds() {
    let seeds: Vec<u64> = match var("SIM_SEED") {
        Some(one) => vec![one],
        None => (var("SIM_FROM").unwrap_or(0)..).take(var("SIM_SEEDS").unwrap_or(60) as usize).collect(),
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
        // Two clocks are unlike by at most a hundredth.
        clock_ppm: rng.i64(-5000..=5000),
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
        r.ice.thaw();
    }
    while fleet.len() < 2 {
        fleet.push(world.replica(character(&mut rng)));
    }
    // First start, an unseen holder, a grace, a silent watch: each may cost its time once.
    let bound = 4 * world.timing.lease_duration + 2 * world.timing.renew_deadline + Duration::from_secs(95);
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
    match rng.u32(0..22) {
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
            // Each kind of write in turn: what makes a Lease is a POST, all others are a PUT.
            let verb = *rng.choice(&[Verb::Create, Verb::Update, Verb::Update]).expect("some");
            let write = Match::verb(verb).resource("leases").times(rng.u64(1..3));
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
            delete(world, &some_bucket(world, rng)).await;
        }
        13 => world.server.compact(world.server.revision()),
        14 => delete(world, &format!("{COMPONENT}.{QUEUE}")).await,
        // A deletion that nobody sees: what the views show is over.
        15 => {
            let silent = one_of(world, fleet, any).inject(Match::verb(Verb::Watch), Effect::SilentWatch);
            delete(world, &some_bucket(world, rng)).await;
            tokio::time::sleep(short).await;
            one_of(world, fleet, any).remove(silent);
        }
        16 => edit(world, rng).await,
        17 if !fleet.is_empty() => {
            let ice = fleet[any].ice.clone();
            ice.freeze();
            tokio::spawn(async move {
                tokio::time::sleep(short).await;
                ice.thaw();
            });
        }
        18 => foreign(world, rng.usize(..), 2 * short, rng.bool()),
        19 if !fleet.is_empty() => {
            let timings = [timing(15, 10, 2), timing(5, 4, 1), timing(30, 20, 5)];
            fleet[any].configure(world, *rng.choice(&timings).expect("some"));
        }
        20 => drop(one_of(world, fleet, any).inject(Match::verb(Verb::Watch), Effect::LagWatch(short / 4))),
        _ => drop(one_of(world, fleet, any).inject(few, Effect::DelayAfter(short))),
    }
}

fn some_bucket(world: &World, rng: &mut fastrand::Rng) -> String {
    leasehold::bucket::lease_name(&format!("{COMPONENT}.{QUEUE}"), rng.u32(0..world.buckets), world.buckets)
}

fn person(world: &World) -> kube::Api<k8s_openapi::api::coordination::v1::Lease> {
    kube::Api::namespaced(kube::Client::new(world.server.client("person"), NAMESPACE), NAMESPACE)
}

async fn delete(world: &World, name: &str) {
    let (api, params) = (person(world), kube::api::DeleteParams::default());
    // A fault for all may hit the person too.
    let _ = tokio::time::timeout(Duration::from_secs(5), api.delete(name, &params)).await;
}

/// What people do to Leases with kubectl.
async fn edit(world: &World, rng: &mut fastrand::Rng) {
    let edits = [
        json!({"spec": {"holderIdentity": ""}}),
        json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 10}}),
        json!({"spec": null}),
        json!({"spec": {"renewTime": null}}),
        json!({"metadata": {"annotations": {"leasehold.dev/holder": null}}}),
        json!({"metadata": {"annotations": {"leasehold.dev/release": null, "leasehold.dev/made": null}}}),
        json!({"metadata": {"labels": {"n": rng.u32(..).to_string()}}}),
    ];
    let patch = kube::api::Patch::Merge(rng.choice(&edits).expect("some").clone());
    let (api, name, params) = (person(world), some_bucket(world, rng), kube::api::PatchParams::default());
    let _ = tokio::time::timeout(Duration::from_secs(5), api.patch(&name, &params, &patch)).await;
}

fn one_of(world: &World, fleet: &[Replica], any: usize) -> leasehold::dev::apiserver::Faults {
    fleet.get(any).map_or_else(|| world.server.faults("*"), |r| r.faults.clone())
}
