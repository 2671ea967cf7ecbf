//! What users of leader election report most: hanging requests, outages, rights taken away.

use super::{S, all_held, bucket, cut_off, held, init, judge, lost, ms, terms};
use crate::world::{Character, World, timing};
use leasehold::dev::apiserver::{Cut, Effect, Match, Outage, Verb};

/// Every tenth call of a replica stalls for 15 s, longer than its deadline: no term is lost.
#[tokio::test(start_paused = true)]
async fn a_tenth_of_calls_that_hang_loses_no_term() {
    for (stalls, effect) in [(Match::any(), Effect::DelayBefore(15 * S)), (Match::writes(), Effect::DelayAfter(15 * S))]
    {
        let world = World::new(8, 10, timing(15, 10, 2));
        init(&world, 10).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        let b = world.replica(Character::default());
        let rule = a.faults.inject(stalls.resource("leases").every(10), effect);
        tokio::time::sleep(600 * S).await;
        assert!(a.faults.fired(rule) > 200);
        assert_eq!((lost(&world), a.held(), b.held(), terms(&world)), (0, 10, 0, 10));
        judge(&world).await;
    }
}

/// The API server goes away for any time, in any way, and comes back: every bucket is held again within a retry-period and
/// its jitter.
#[tokio::test(start_paused = true)]
async fn the_api_away_for_any_time() {
    let mut longest = ms(0);
    for how in [Outage::Refused, Outage::Answers(503), Outage::Answers(429), Outage::BlackHole] {
        for length in [1, 5, 9, 12, 16, 45, 240] {
            if length == 240 && how != Outage::Refused {
                continue;
            }
            let world = World::new(7 + length, 10, timing(15, 10, 2));
            init(&world, 10).await.expect("opened");
            let a = world.replica(Character::default());
            let b = world.replica(Character::default());
            all_held(&world, &[&a, &b], S).await;
            tokio::time::sleep(10 * S).await;
            let rule = world.server.faults("*").inject(Match::any(), Effect::Outage(how));
            tokio::time::sleep(ms(length * 1000)).await;
            if length > 10 {
                assert_eq!(held(&[&a, &b]), 0, "{how:?} {length} s: held past the deadline");
            }
            world.server.faults("*").remove(rule);
            let took = all_held(&world, &[&a, &b], 20 * S).await;
            // A request that hangs is given up after 2.67 s; what fails is tried again within half a retry-period.
            let bound = if how == Outage::BlackHole { ms(3200) } else { ms(2200) };
            assert!(took <= bound, "{how:?} {length} s: {took:?}");
            longest = longest.max(took);
            judge(&world).await;
        }
    }
    println!("held again after {longest:?} at the latest");
}

/// Only the writes are forbidden: said, terms end at their deadline, the server is spared, and it goes on when they are
/// allowed again.
#[tokio::test(start_paused = true)]
async fn update_forbidden_but_get_allowed() {
    let world = World::new(310, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    tokio::time::sleep(5 * S).await;
    world.server.deny(&a.name, Some(Verb::Update), "leases");
    let denied = world.truth.now();
    world.until("said", 3 * S, || a.status.get("forbidden").is_some()).await;
    world.until("every term over", 11 * S, || a.held() == 0).await;
    assert!(world.truth.now() - denied >= 8 * S, "ended before their deadline");
    let before = world.server.counts(Some(&a.name), "leases");
    tokio::time::sleep(60 * S).await;
    let after = world.server.counts(Some(&a.name), "leases");
    let asked = (after.update - before.update, after.get - before.get);
    assert!(asked.0 <= 3 * 45 && asked.1 <= 3 * 45, "{asked:?} in a minute");
    assert!(a.status.get("forbidden").is_some_and(|t| t.contains("forbids to update Leases")), "{:?}", a.status.all());
    // One that may write follows at once: nobody else's lease has to run out twice.
    let b = world.replica(Character::default());
    all_held(&world, &[&b], 16 * S).await;
    world.server.allow(&a.name, Some(Verb::Update), "leases");
    b.stop().await;
    all_held(&world, &[&a], 3 * S).await;
    assert_eq!(a.status.get("forbidden"), None);
    judge(&world).await;
}

/// 403 on each verb in turn: survived, recovered from when given back.
#[tokio::test(start_paused = true)]
async fn a_verb_taken_away_is_recovered_from() {
    for verb in [Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Update] {
        let world = World::new(38, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let name = "r0";
        world.server.deny(name, Some(verb), "leases");
        let a = world.replica(Character::default());
        tokio::time::sleep(30 * S).await;
        world.server.allow(name, Some(verb), "leases");
        all_held(&world, &[&a], 12 * S).await;
        judge(&world).await;
    }
}

/// Two processes with one POD_NAME (a hostname that two share): identities differ all the same, and each keeps to its own.
#[tokio::test(start_paused = true)]
async fn two_processes_with_one_pod_name() {
    let world = World::new(311, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let twin = |uuid: &str| Character { identity: Some(format!("r_pod-0_{uuid}")), ..Character::default() };
    let a = world.replica(twin("5f3c"));
    let b = world.replica(twin("a90b"));
    all_held(&world, &[&a, &b], S).await;
    assert!(a.held() > 0 && b.held() > 0, "{} and {}", a.held(), b.held());
    tokio::time::sleep(60 * S).await;
    assert_eq!((held(&[&a, &b]), terms(&world)), (10, 10));
    let had = b.held();
    cut_off(&a);
    all_held(&world, &[&b], 16 * S).await;
    assert!(had < 10);
    judge(&world).await;
}

/// A SYSTEM_NAMESPACE that is not there: every POST is answered with 404. Said, and not asked for again and again.
#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_said_and_the_server_spared() {
    let world = World::new(45, 3, timing(15, 10, 2));
    let a = world.replica(Character::default());
    let rule = a.faults.inject(Match::verb(Verb::Create), Effect::AnswerBefore(404, None));
    tokio::time::sleep(60 * S).await;
    assert!(a.status.get("no-namespace").is_some_and(|t| t.contains("SYSTEM_NAMESPACE")), "{:?}", a.status.all());
    let counts = world.server.counts(Some(&a.name), "leases");
    assert!(counts.create < 90 && counts.get < 90, "{counts:?} in a minute");
    a.faults.remove(rule);
    all_held(&world, &[&a], 20 * S).await;
    assert_eq!(a.status.get("no-namespace"), None);
    judge(&world).await;
}

/// Writes that fail while reads succeed (a webhook that is down): the pause grows all the same.
#[tokio::test(start_paused = true)]
async fn writes_that_fail_for_long_come_seldom() {
    for code in [409, 500, 503] {
        let world = World::new(46, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        let rule = a.faults.inject(Match::verb(Verb::Update), Effect::AnswerBefore(code, None));
        let before = world.server.counts(Some(&a.name), "leases");
        tokio::time::sleep(60 * S).await;
        let after = world.server.counts(Some(&a.name), "leases");
        let writes = after.update - before.update;
        assert!(writes < 3 * 100, "{writes} writes of 3 buckets in a minute that answers {code}");
        a.faults.remove(rule);
        all_held(&world, &[&a], 20 * S).await;
        judge(&world).await;
    }
}

/// Watches that are cut all the time cost nothing that is held.
#[tokio::test(start_paused = true)]
async fn watches_cut_all_the_time() {
    let world = World::new(312, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    for i in 0..200 {
        let how = [Cut::End, Cut::Reset, Cut::Gone][i % 3];
        world.server.cut_watches(&Match::any(), how);
        tokio::time::sleep(ms(700)).await;
    }
    assert_eq!((lost(&world), terms(&world)), (0, 3));
    let name = bucket(0, 3);
    super::remove(&world, &name).await;
    world.until("seen", S, || held(&[&a, &b]) == 2).await;
    judge(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_second_elector_of_one_queue_is_refused() {
    use crate::world::{COMPONENT, NAMESPACE};
    use leasehold::clock::{Boottime, SharedClock};
    use leasehold::elector::{BuildError, Queue, Status, Strategy, standard::Standard};
    use leasehold::lease::Connector;
    use std::sync::Arc;
    let world = World::new(41, 3, timing(15, 10, 2));
    let clock: SharedClock = Arc::new(Boottime);
    let client = kube::Client::new(world.server.client("x"), NAMESPACE);
    let observer: Arc<dyn leasehold::leader::observe::Observer> = Arc::new(|_: &_| {});
    let manager = leasehold::lease::Manager::new(Connector::client(client), NAMESPACE, clock.clone());
    let standard = Standard::new(manager.expect("a client"));
    let queue = |name: &str| Queue {
        component: COMPONENT.into(),
        name: name.into(),
        identity: "x_1".into(),
        config: tokio::sync::watch::channel(Arc::new(world.config(&Character::default()))).1,
        clock: clock.clone(),
        observer: observer.clone(),
        on_fatal: leasehold::leader::fatal::exits(),
        status: Status::default(),
    };
    let first = standard.build(queue("q")).expect("the first");
    assert!(matches!(standard.build(queue("q")), Err(BuildError::Twice { .. })));
    assert!(standard.build(queue("other")).is_ok());
    drop(first);
    assert!(standard.build(queue("q")).is_ok(), "free again");
    let long = "q".repeat(300);
    let error = standard.build(queue(&long)).err().expect("too long").to_string();
    assert!(error.contains("253"), "{error}");
}
