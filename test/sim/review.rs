//! Schedules found by reading the code against the design: each once broke it.

use crate::cases::{S, all_held, bucket, held, init, lost, ms, patch, person, remove};
use crate::foreign::foreign;
use crate::world::{COMPONENT, Character, QUEUE, World, timing};
use leasehold::dev::apiserver::{Cut, Effect, Match, Outage, Verb};
use serde_json::json;

/// A write that is refused again and again is not sent as fast as it is answered, and is taken up again when it works.
#[tokio::test(start_paused = true)]
async fn writes_refused_for_long_are_no_storm() {
    for code in [409, 500, 429, 422] {
        let world = World::new(100, 10, timing(15, 10, 2));
        init(&world, 10).await.expect("opened");
        world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(1)));
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        let rule = a.faults.inject(Match::writes().resource("leases"), Effect::AnswerBefore(code, None));
        tokio::time::sleep(5 * S).await;
        let before = world.server.counts(Some(&a.name), "leases");
        tokio::time::sleep(60 * S).await;
        let after = world.server.counts(Some(&a.name), "leases");
        let (writes, reads) = (after.update - before.update, after.get - before.get);
        // At most one of each a second and bucket, where two a period are health.
        assert!(writes <= 60 * 11 * 2 && reads <= 60 * 11 * 2, "{code}: {writes} writes, {reads} reads in a minute");
        a.faults.remove(rule);
        all_held(&world, &[&a], 4 * S).await;
        world.judge();
    }
}

/// The same for the layout Lease.
#[tokio::test(start_paused = true)]
async fn a_layout_lease_that_cannot_be_written_is_no_storm() {
    for code in [409, 500] {
        let world = World::new(101, 3, timing(15, 10, 2));
        world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(1)));
        let name = format!("{COMPONENT}.{QUEUE}");
        let rule = world.server.faults("r0").inject(Match::writes().name(name), Effect::AnswerBefore(code, None));
        let a = world.replica(Character::default());
        tokio::time::sleep(60 * S).await;
        let counts = world.server.counts(Some(&a.name), "leases");
        assert!(counts.create + counts.update + counts.get < 300, "{code}: {counts:?}");
        a.faults.remove(rule);
        all_held(&world, &[&a], 20 * S).await;
        world.judge();
    }
}

/// Every watch is refused, or ends with 410, while lists work: nobody lists as fast as it is answered.
#[tokio::test(start_paused = true)]
async fn watches_refused_for_long_are_no_storm_of_lists() {
    for code in [500, 410, 504] {
        let world = World::new(102, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(1)));
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        let rule = a.faults.inject(Match::verb(Verb::Watch), Effect::AnswerBefore(code, None));
        a.faults.cut_watches(&Match::any(), Cut::Reset);
        tokio::time::sleep(5 * S).await;
        let before = world.server.counts(Some(&a.name), "leases");
        tokio::time::sleep(60 * S).await;
        let after = world.server.counts(Some(&a.name), "leases");
        assert!(after.list - before.list <= 150, "{code}: {} lists in a minute", after.list - before.list);
        assert_eq!((a.held(), lost(&world)), (3, 0), "what it holds it sees by its own writes");
        a.faults.remove(rule);
        // Once it is well again the view catches up at once.
        tokio::time::sleep(2 * S).await;
        let b = world.replica(Character::default());
        a.stop().await;
        all_held(&world, &[&b], S).await;
        world.judge();
    }
}

/// A restore with the revision raised above what it was (`--bump-revision`): no revision has gone back, but the Leases
/// have. Who goes by what it knew is stuck for ever.
#[tokio::test(start_paused = true)]
async fn a_restore_with_a_raised_revision_is_survived() {
    let world = World::new(103, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    let backup = world.server.snapshot();
    tokio::time::sleep(20 * S).await;
    let down = world.server.faults("*").inject(Match::reads().resource("leases"), Effect::Outage(Outage::Refused));
    let writes =
        world.server.faults("*").inject(Match::verbs([Verb::Update, Verb::Create]), Effect::Outage(Outage::Refused));
    let high = world.server.revision();
    world.server.restore(&backup);
    while world.server.revision() <= high + 100 {
        let n = world.server.revision();
        patch(&world, &bucket(0, 3), json!({"metadata": {"labels": {"n": n.to_string()}}})).await;
    }
    world.server.compact(world.server.revision());
    world.server.faults("*").remove(down);
    world.server.faults("*").remove(writes);
    all_held(&world, &[&a, &b], 60 * S).await;
    tokio::time::sleep(20 * S).await;
    assert_eq!(held(&[&a, &b]), 3);
    world.judge();
}

/// leaseTransitions is an int32: at its end a bucket is taken all the same.
#[tokio::test(start_paused = true)]
async fn a_lease_at_the_end_of_its_transitions_is_taken() {
    let world = World::new(105, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    patch(&world, &bucket(1, 3), json!({"spec": {"holderIdentity": "x", "leaseTransitions": i32::MAX}})).await;
    let a = world.replica(Character::default());
    all_held(&world, &[&a], 40 * S).await;
    world.judge();
}

/// A layout Lease that says an absurd duration stops nobody for years, and no generation ends the process.
#[tokio::test(start_paused = true)]
async fn absurd_numbers_in_the_layout_are_survived() {
    let world = World::new(106, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let retired = json!({"spec": {"holderIdentity": "retired-18446744073709551615"}});
    patch(&world, &bucket(1, 3), retired).await;
    let a = world.replica(Character::default());
    world.until("the others held", S, || a.held() == 2).await;
    remove(&world, &format!("{COMPONENT}.{QUEUE}")).await;
    tokio::time::sleep(40 * S).await;
    assert!(a.is_running());
    a.stop().await;
    world.judge();
}

/// A frozen election (a stopped thread): what it decides late is decided by the time that it then is.
#[tokio::test(start_paused = true)]
async fn a_frozen_elector_gives_no_guard_too_late() {
    let world = World::new(108, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(10 * S).await;
    for _ in 0..5 {
        let (holder, other) = if a.held() == 3 { (&a, &b) } else { (&b, &a) };
        holder.ice.freeze();
        all_held(&world, &[other], 20 * S).await;
        holder.ice.thaw();
        tokio::time::sleep(ms(1700)).await;
    }
    assert_eq!(held(&[&a, &b]), 3);
    world.judge();
}

/// Two replicas whose clocks run a hundredth apart, the holder's slow: still nothing is acted on twice.
#[tokio::test(start_paused = true)]
async fn clocks_a_hundredth_apart_are_safe() {
    for (slow, fast) in [(-5000, 5000), (5000, -5000)] {
        let world = World::new(109, 3, timing(5, 4, 1));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character { clock_ppm: slow, ..Character::default() });
        all_held(&world, &[&a], S).await;
        let b = world.replica(Character { clock_ppm: fast, ..Character::default() });
        tokio::time::sleep(5 * S).await;
        a.faults.inject(Match::any(), Effect::Outage(Outage::BlackHole));
        all_held(&world, &[&b], 8 * S).await;
        tokio::time::sleep(5 * S).await;
        world.judge();
    }
}

/// H5, H17, U1: a client-go program takes a released bucket while our record still stands, and is followed with the grace
/// whether it releases or dies.
#[tokio::test(start_paused = true)]
async fn a_client_go_program_beside_us() {
    for releases in [true, false] {
        let world = World::new(110, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        foreign(&world, 1, 30 * S, releases);
        tokio::time::sleep(S).await;
        let a = world.replica(Character::default());
        tokio::time::sleep(29 * S).await;
        assert_eq!(a.held(), 0, "taken from a living client-go holder");
        let took = all_held(&world, &[&a], 60 * S).await;
        // 15 s and the grace of 10 s after its last write.
        assert!((22 * S..28 * S).contains(&took), "{took:?}");
        let kept = person(&world).get(&bucket(0, 3)).await.expect("there");
        assert!(!kept.metadata.annotations.unwrap_or_default().contains_key("leasehold.dev/release"));
        world.judge();
    }
}

/// A late commit of each kind of write, with the Lease deleted in between: nothing is held that is not there.
#[tokio::test(start_paused = true)]
async fn late_writes_around_a_deletion() {
    for late in [500, 2_500, 4_000, 9_000, 16_000] {
        for verb in [Verb::Update, Verb::Create] {
            let world = World::new(111, 3, timing(15, 10, 2));
            init(&world, 3).await.expect("opened");
            let a = world.replica(Character::default());
            let b = world.replica(Character::default());
            all_held(&world, &[&a, &b], S).await;
            tokio::time::sleep(5 * S).await;
            for r in [&a, &b] {
                r.faults.inject(Match::verb(verb).name(bucket(1, 3)).times(2), Effect::LateCommit(ms(late)));
            }
            tokio::time::sleep(S).await;
            remove(&world, &bucket(1, 3)).await;
            all_held(&world, &[&a, &b], 60 * S).await;
            tokio::time::sleep(20 * S).await;
            all_held(&world, &[&a, &b], 30 * S).await;
            world.judge();
        }
    }
}
