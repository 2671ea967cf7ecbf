//! Rule S6, last sentence: what cannot be stopped ends the process.

use super::support::{Author, LIMITS, SECOND, World, buckets, renewing, settle};
use crate::clock::Clock;
use crate::leader::fatal::Fatal;
use crate::leader::tenure::Limits;
use crate::leader::{Guard, Reason};
use std::future::pending;
use std::time::Duration;

const OUT: &str = "fatal: guard out";
const HANGS: &str = "fatal: guard hangs";
const DEMOTE: &str = "fatal: demote hangs";

const MS: Duration = Duration::from_millis(1);

fn unharmed(world: &World) -> bool {
    !world.log.lines().iter().any(|l| l.starts_with("fatal"))
}

/// A tenure with a guard out that nobody lets go of, as in blocking code.
async fn stuck(
    limits: Limits,
) -> (World, crate::leader::tenure::Tenure, std::sync::Arc<crate::leader::Deadline>, Guard) {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_of(buckets(1).bucket(0), limits);
    world.next().await;
    let guard = tenure.term().guard().unwrap();
    (world, tenure, deadline, guard)
}

/// H18.
#[tokio::test(start_paused = true)]
async fn s6_a_guard_out_at_nine_tenths_of_lease_duration_after_a_loss_is_fatal() {
    let (mut world, tenure, _, guard) = stuck(LIMITS).await;
    // The elector notices the deadline when it comes.
    tokio::time::sleep(LIMITS.renew_deadline).await;
    tenure.end(Reason::Lost);
    tokio::time::sleep(Duration::from_millis(3_400)).await;
    assert!(unharmed(&world), "not before 13.5 s");
    tokio::time::sleep(SECOND / 2).await;
    world.log.assert_at(OUT, Duration::from_millis(13_500));
    // The hook returned, which only one of a test does. Still nothing is released or demoted while it is out.
    assert!(world.quiet());
    assert!(!world.log.has("demote lost"));
    drop(guard);
    world.ended().await;
    assert!(world.log.has("demote returned"));
}

/// An election that is stuck (a runtime whose thread is blocked) notices no deadline; the tenure does.
#[tokio::test(start_paused = true)]
async fn s6_a_guard_out_at_a_deadline_that_nobody_notices_is_fatal_all_the_same() {
    let (mut world, tenure, _, guard) = stuck(LIMITS).await;
    tokio::time::sleep(Duration::from_millis(13_400)).await;
    assert!(unharmed(&world), "not before 13.5 s");
    tokio::time::sleep(SECOND / 2).await;
    world.log.assert_at(OUT, Duration::from_millis(13_500));
    assert_eq!(tenure.ending(), Some(Reason::Lost));
    drop(guard);
    assert!(!world.ended().await.clean);
}

#[tokio::test(start_paused = true)]
async fn what_is_fatal_says_how_many_and_for_how_long() {
    let mut world = World::new(Author::new());
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = std::sync::Arc::clone(&seen);
    world.around.on_fatal = std::sync::Arc::new(move |why| hook.lock().unwrap().push(why));
    let (tenure, _) = world.begin_promoted().await;
    let guards = [tenure.term().guard().unwrap(), tenure.term().guard().unwrap()];
    tenure.end(Reason::Lost);
    tokio::time::sleep(20 * SECOND).await;
    let seen = seen.lock().unwrap();
    let [Fatal::GuardOut { bucket, guards: 2, silent }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(bucket, tenure.term().bucket());
    assert!(*silent >= Duration::from_millis(13_500) && *silent < 14 * SECOND, "{silent:?}");
    let text = seen[0].to_string();
    assert!(text.contains("2 guard(s)") && text.contains("Guard::run"), "{text}");
    drop(guards);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_ends_in_time_is_not_fatal() {
    let (mut world, tenure, _, guard) = stuck(LIMITS).await;
    tokio::time::sleep(LIMITS.renew_deadline).await;
    tenure.end(Reason::Lost);
    tokio::time::sleep(Duration::from_millis(3_400)).await;
    drop(guard);
    assert!(!world.ended().await.clean);
    tokio::time::sleep(60 * SECOND).await;
    assert!(unharmed(&world), "{:#?}", world.log);
}

/// The process was stopped past all of it and goes on. Its guards get a moment of running time to end in.
#[tokio::test(start_paused = true)]
async fn s6_after_a_pause_a_guard_gets_a_twentieth_of_lease_duration_to_end() {
    let (world, tenure, _, guard) = stuck(LIMITS).await;
    world.clock.suspend(45 * SECOND);
    tenure.end(Reason::Lost);
    tokio::time::sleep((LIMITS.lease_duration / 20).saturating_sub(10 * MS)).await;
    assert!(unharmed(&world), "its share of running time is not over");
    tokio::time::sleep(50 * MS).await;
    assert!(world.log.has(OUT));
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn s6_that_moment_is_at_most_a_second() {
    let limits = Limits { lease_duration: 60 * SECOND, ..LIMITS };
    let (world, tenure, _, guard) = stuck(limits).await;
    world.clock.suspend(600 * SECOND);
    tenure.end(Reason::Lost);
    tokio::time::sleep(SECOND - 10 * MS).await;
    assert!(unharmed(&world));
    tokio::time::sleep(50 * MS).await;
    assert!(world.log.has(OUT));
    drop(guard);
}

/// Stopped once more while it waits: timers run on meanwhile, so one sleep would be over on waking, and nothing would
/// have been given.
#[tokio::test(start_paused = true)]
async fn s6_a_stop_uses_up_no_more_than_a_slice_of_that_moment() {
    let (world, tenure, _, guard) = stuck(LIMITS).await;
    world.clock.suspend(45 * SECOND);
    tenure.end(Reason::Lost);
    settle().await;
    tokio::time::advance(60 * SECOND).await;
    settle().await;
    assert!(unharmed(&world), "woken, but not one slice later");
    tokio::time::sleep(LIMITS.lease_duration / 20 * 8 / 10).await;
    assert!(unharmed(&world), "eight slices later");
    tokio::time::sleep(LIMITS.lease_duration / 20 * 2 / 10).await;
    assert!(world.log.has(OUT));
    drop(guard);
}

/// A drain that is renewed: the Lease does not expire, so it is drain-timeout that counts.
#[tokio::test(start_paused = true)]
async fn s6_a_guard_that_hangs_twice_drain_timeout_after_its_cancelling_is_fatal() {
    let (mut world, tenure, deadline, guard) = stuck(LIMITS).await;
    tenure.end(Reason::Released);
    let clock = world.clock.clone();
    tokio::select! {
        never = renewing(&clock, &deadline) => match never {},
        () = async {
            tokio::time::sleep(LIMITS.drain_timeout * 3 - 50 * MS).await;
            assert!(unharmed(&world));
            tokio::time::sleep(100 * MS).await;
            world.log.assert_at(HANGS, LIMITS.drain_timeout * 3);
        } => {}
    }
    assert!(world.quiet());
    drop(guard);
    assert!(world.ended().await.clean);
}

/// In a drain whose renewals stop, the Lease expires first.
#[tokio::test(start_paused = true)]
async fn s6_a_guard_out_when_a_drain_is_no_longer_renewed_is_fatal_before_the_lease_expires() {
    let limits = Limits { drain_timeout: 3 * SECOND, ..LIMITS };
    let (world, tenure, deadline, guard) = stuck(limits).await;
    tokio::time::sleep(2 * SECOND).await;
    tenure.end(Reason::Released);
    deadline.extend(world.clock.now() + limits.renew_deadline);
    // Cancelled at 5 s; would hang at 11 s; the renewal of 2 s counts until 15.5 s.
    tokio::time::sleep(10 * SECOND).await;
    world.log.assert_at(HANGS, 11 * SECOND);
    drop(guard);

    let limits = Limits { drain_timeout: 8 * SECOND, ..LIMITS };
    let (world, tenure, _, guard) = stuck(limits).await;
    tenure.end(Reason::Released);
    tokio::time::sleep(LIMITS.renew_deadline).await;
    tenure.end(Reason::Lost);
    tokio::time::sleep(5 * SECOND).await;
    world.log.assert_at(OUT, Duration::from_millis(13_500));
    drop(guard);
}

/// In balanced one deadline is shared by all terms of a membership. A bucket that somebody else was seen to hold is lost,
/// though the membership is renewed for the others: its last renewal is the one before the loss.
#[tokio::test(start_paused = true)]
async fn s6_renewals_after_a_loss_do_not_count_for_what_was_lost() {
    let (mut world, tenure, deadline, guard) = stuck(LIMITS).await;
    tenure.end(Reason::Lost);
    let clock = world.clock.clone();
    tokio::select! {
        never = renewing(&clock, &deadline) => match never {},
        () = tokio::time::sleep(15 * SECOND) => {}
    }
    world.log.assert_at(OUT, Duration::from_millis(13_500));
    drop(guard);
    world.ended().await;
}

#[tokio::test(start_paused = true)]
async fn s6_a_demote_that_hangs_twice_drain_timeout_is_fatal() {
    for reason in [Reason::Released, Reason::Lost] {
        let mut world = World::new(Author::new().demoting(|_| pending()));
        let (tenure, deadline) = world.begin_promoted().await;
        tokio::time::sleep(SECOND).await;
        tenure.end(reason);
        let clock = world.clock.clone();
        tokio::select! {
            never = renewing(&clock, &deadline) => match never {},
            () = async {
                tokio::time::sleep(LIMITS.drain_timeout * 2 - 50 * MS).await;
                assert!(unharmed(&world));
                tokio::time::sleep(100 * MS).await;
            } => {}
        }
        world.log.assert_at(DEMOTE, LIMITS.drain_timeout * 2 + SECOND);
        assert!(world.quiet(), "nothing is released");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_demote_within_its_bound_is_not_fatal() {
    let mut world = World::new(Author::new().demoting(|_| tokio::time::sleep(LIMITS.drain_timeout * 2 - SECOND)));
    let (tenure, _) = world.begin_promoted().await;
    tenure.end(Reason::Released);
    assert!(world.ended().await.clean);
    assert!(unharmed(&world));
}

#[tokio::test(start_paused = true)]
async fn a_strategy_without_leases_may_give_durations_without_end() {
    let limits = Limits {
        promote: Duration::MAX,
        drain_timeout: Duration::MAX,
        lease_duration: Duration::MAX,
        renew_deadline: Duration::MAX,
    };
    let (mut world, tenure, deadline, guard) = stuck(limits).await;
    deadline.extend(crate::leader::Deadline::never().get());
    tenure.end(Reason::Shutdown);
    tokio::time::sleep(1000 * SECOND).await;
    assert!(unharmed(&world));
    drop(guard);
    assert!(world.ended().await.clean);
}
