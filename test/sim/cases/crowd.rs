//! Many candidates, many buckets: what the API server sees of them.

use super::{S, all_held, held, init, ms};
use crate::world::{Character, Replica, World, timing};
use leasehold::dev::apiserver::{Effect, Match, Outage, Verb};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// By all rules but the one for requests, which is made for ten buckets a replica.
fn judge(world: &World) {
    let found: Vec<_> = world.history.violations().into_iter().filter(|v| v.0 != "storm").collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// When PUTs of Leases arrived.
fn writes(world: &World) -> Arc<Mutex<Vec<Duration>>> {
    let (times, truth) = (Arc::new(Mutex::new(Vec::new())), world.truth);
    let log = Arc::clone(&times);
    world.server.on_commit(move |commit| {
        if commit.verb == Verb::Update {
            log.lock().expect("whole").push(truth.now());
        }
    });
    times
}

/// The largest share of a period's renewals that falls into a tenth of it, anywhere.
fn largest_share(times: &[Duration], period: Duration, a_period: usize) -> f64 {
    let within = |from: usize| times[from..].iter().take_while(|t| **t < times[from] + period / 10).count();
    let most = (0..times.len()).map(within).max().unwrap_or(0);
    most as f64 / a_period as f64
}

/// A hundred for one Lease: one holds it; the others cost nothing while it lives, and a write and a read each when it does
/// not.
#[tokio::test(start_paused = true)]
async fn a_hundred_candidates_for_one_lease() {
    let world = World::new(330, 1, timing(15, 10, 2));
    world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(3)));
    init(&world, 1).await.expect("opened");
    let all: Vec<Replica> = (0..100).map(|_| world.replica(Character::default())).collect();
    let every: Vec<&Replica> = all.iter().collect();
    all_held(&world, &every, 2 * S).await;
    tokio::time::sleep(20 * S).await;
    let before = world.server.counts(None, "leases");
    tokio::time::sleep(100 * S).await;
    let after = world.server.counts(None, "leases");
    let quiet = (after.update - before.update, after.get - before.get, after.list - before.list);
    assert!((48..=54).contains(&quiet.0) && quiet.1 == 0 && quiet.2 == 0, "{quiet:?} in 50 periods of one holder");
    // Its end in good order, and its death.
    let mut all = all;
    for killed in [false, true] {
        let at = all.iter().position(|r| r.held() == 1).expect("one holds it");
        let before = world.server.counts(None, "leases");
        let holder = all.swap_remove(at);
        if killed {
            holder.kill()
        } else {
            holder.stop().await
        }
        let every: Vec<&Replica> = all.iter().collect();
        all_held(&world, &every, 17 * S).await;
        tokio::time::sleep(S).await;
        assert_eq!(held(&every), 1);
        let after = world.server.counts(None, "leases");
        let cost = (after.update - before.update, after.get - before.get);
        assert!(cost.0 <= 100 + 2 + 9 && cost.1 <= 100 + 2, "{cost:?} for one change of holder, killed: {killed}");
    }
    judge(&world);
}

/// Hundreds of renewals of one replica, and of ten, do not line up: nor after an outage, nor after all were taken at once.
#[tokio::test(start_paused = true)]
async fn renewals_do_not_line_up() {
    for (replicas, buckets) in [(1, 200), (5, 200)] {
        let world = World::new(331, buckets, timing(15, 10, 2));
        world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(2)));
        init(&world, buckets).await.expect("opened");
        let all: Vec<Replica> = (0..replicas).map(|_| world.replica(Character::default())).collect();
        let every: Vec<&Replica> = all.iter().collect();
        all_held(&world, &every, 10 * S).await;
        for (what, outage) in
            [("taken at once", 0), ("after an outage that lost nothing", 6), ("after one that did", 14)]
        {
            if outage > 0 {
                let rule = world.server.faults("*").inject(Match::any(), Effect::Outage(Outage::Refused));
                tokio::time::sleep(outage * S).await;
                world.server.faults("*").remove(rule);
                all_held(&world, &every, 10 * S).await;
            }
            // The catching up itself apart.
            tokio::time::sleep(4 * S).await;
            let times = writes(&world);
            tokio::time::sleep(8 * S).await;
            let times = times.lock().expect("whole").clone();
            assert!((770..=880).contains(&times.len()), "{} renewals in four periods", times.len());
            let share = largest_share(&times, 2 * S, 200);
            println!("{replicas} replicas, {what}: {share:.3} of a period's renewals in a tenth of it");
            assert!(share < 0.2, "{replicas} replicas, {what}: {share}");
        }
        judge(&world);
    }
}

/// A take of many buckets at once costs so many writes and so much time, not their square.
#[tokio::test(start_paused = true)]
async fn a_take_of_many_buckets_is_linear() {
    let mut cost = Vec::new();
    for n in [50, 200] {
        let world = World::new(332, n, timing(15, 10, 2));
        init(&world, n).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], 10 * S).await;
        let b = world.replica(Character::default());
        tokio::time::sleep(5 * S).await;
        world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(2)));
        a.kill();
        let before = world.server.counts(Some(&b.name), "leases");
        world.until("the first", 17 * S, || b.held() > 0).await;
        let began = world.truth.now();
        // Each expires when its last renewal says so: within a period of each other.
        let took = all_held(&world, &[&b], 4 * S).await;
        let after = world.server.counts(Some(&b.name), "leases");
        let asked = (after.update - before.update, after.get - before.get, after.list - before.list);
        println!("{n} buckets: {asked:?} requests, {took:?} from the first to the last, at {began:?}");
        // A take and a renewal each at the most; and reads of the layout Lease that many share.
        assert!(asked.0 <= 5 * u64::from(n) / 2 && asked.1 <= u64::from(n) && asked.2 == 0, "{n}: {asked:?}");
        assert!(took <= ms(2300), "{took:?}");
        cost.push(asked.0 + asked.1);
        judge(&world);
    }
    assert!(cost[1] <= 5 * cost[0], "{cost:?}");
}

#[tokio::test(start_paused = true)]
async fn standbys_send_nothing_and_a_holder_one_write_a_period() {
    let world = World::new(6, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(10 * S).await;
    let counts = |r: &Replica| world.server.counts(Some(&r.name), "leases");
    let (before_a, before_b) = (counts(&a), counts(&b));
    tokio::time::sleep(200 * S).await;
    let (after_a, after_b) = (counts(&a), counts(&b));
    assert_eq!(before_b, after_b, "the standby sent something");
    let writes = after_a.update - before_a.update;
    assert!((980..=1050).contains(&writes), "{writes} renewals of 10 buckets in 100 periods");
    assert_eq!(before_a.get, after_a.get);
    assert_eq!(before_a.list, after_a.list);
    super::judge(&world).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_together_share() {
    let world = World::new(3, 10, timing(15, 10, 2));
    world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(2)));
    init(&world, 10).await.expect("opened");
    let all: Vec<Replica> = (0..3).map(|_| world.replica(Character::default())).collect();
    all_held(&world, &all.iter().collect::<Vec<_>>(), S).await;
    for r in &all {
        assert!((1..=6).contains(&r.held()), "{:?}", all.iter().map(Replica::held).collect::<Vec<_>>());
    }
    super::judge(&world).await;
}
