//! The drain: who stops when.

use super::support::{Author, LIMITS, SECOND, World, renewing, settle, soon};
use crate::leader::tenure::Limits;
use crate::leader::{Lost, Reason, Term};
use std::future::pending;
use std::time::Duration;
use tokio::time::Instant as Timer;

/// Runs until the tenure has ended, renewed as an elector would.
async fn ended_while_renewing(world: &mut World, deadline: &crate::leader::Deadline) -> crate::leader::tenure::Ended {
    let clock = world.clock.clone();
    tokio::select! {
        never = renewing(&clock, deadline) => match never {},
        ended = world.ended() => ended,
    }
}

async fn under_a_guard(term: Term) -> (Result<(), Lost>, Timer) {
    let guard = term.guard().expect("the term is current");
    let result = guard.run(pending()).await;
    (result, Timer::now())
}

async fn under_the_term(term: Term) -> (Result<(), Lost>, Timer) {
    let result = term.run(pending()).await;
    (result, Timer::now())
}

#[tokio::test(start_paused = true)]
async fn s6_waiting_for_input_ends_with_the_drain_and_sending_goes_on_to_drain_timeout() {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    let sends = tokio::spawn(under_a_guard(tenure.term().clone()));
    let waits = tokio::spawn(under_the_term(tenure.term().clone()));
    settle().await;
    let began = Timer::now();
    tenure.end(Reason::Released);
    let ended = ended_while_renewing(&mut world, &deadline).await;
    assert!(ended.clean);
    let (waited, at) = waits.await.unwrap();
    assert_eq!((waited, at - began), (Err(Lost), Duration::ZERO));
    let (sent, at) = sends.await.unwrap();
    assert_eq!(sent, Err(Lost));
    let took = at - began;
    assert!(took >= LIMITS.drain_timeout && took <= LIMITS.drain_timeout + SECOND / 50, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn s6_work_that_ends_before_drain_timeout_is_not_cut_short() {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let sends = tokio::spawn(async move { guard.run(tokio::time::sleep(9 * SECOND)).await });
    settle().await;
    tenure.end(Reason::Shutdown);
    let ended = ended_while_renewing(&mut world, &deadline).await;
    assert!(ended.clean);
    assert_eq!(sends.await.unwrap(), Ok(()));
    world.log.assert_at("demote shutdown", 9 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn s6_what_is_out_is_cancelled_at_drain_timeout() {
    let mut world = World::new(Author::new());
    let limits = Limits { drain_timeout: 3 * SECOND, ..LIMITS };
    let (tenure, _) = world.begin_of(super::support::buckets(1).bucket(0), limits);
    world.next().await;
    let guard = tenure.term().guard().unwrap();
    let began = Timer::now();
    tenure.end(Reason::Released);
    soon(guard.cancelled()).await;
    let took = began.elapsed();
    assert!(took >= 3 * SECOND && took <= 3 * SECOND + SECOND / 50, "{took:?}");
    drop(guard);
    assert!(world.ended().await.clean);
}

#[tokio::test(start_paused = true)]
async fn drain_timeout_is_the_one_that_holds_when_the_drain_begins() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    tenure.limit(Limits { drain_timeout: 2 * SECOND, ..LIMITS });
    let sends = tokio::spawn(under_a_guard(tenure.term().clone()));
    settle().await;
    tenure.end(Reason::Released);
    world.ended().await;
    world.log.assert_at("demote released", 2 * SECOND);
    assert_eq!(sends.await.unwrap().0, Err(Lost));
}

#[tokio::test(start_paused = true)]
async fn s6_a_loss_overtakes_a_drain() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let sends = tokio::spawn(under_a_guard(tenure.term().clone()));
    settle().await;
    tenure.end(Reason::Released);
    tokio::time::sleep(2 * SECOND).await;
    assert!(!sends.is_finished());
    tenure.end(Reason::Lost);
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Lost, false), "nothing is released");
    assert_eq!(sends.await.unwrap().0, Err(Lost));
    world.log.assert_at("demote lost", 2 * SECOND);
    world.log.assert_at("event: ended lost", 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn s6_a_lost_term_does_not_wait_for_drain_timeout() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let sends = tokio::spawn(under_a_guard(tenure.term().clone()));
    settle().await;
    tenure.end(Reason::Lost);
    assert!(!world.ended().await.clean);
    assert_eq!(sends.await.unwrap().0, Err(Lost));
    world.log.assert_at("demote lost", Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_suspend_in_a_drain_counts_towards_drain_timeout() {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    deadline.extend(crate::clock::Clock::now(&world.clock) + 3600 * SECOND);
    let sends = tokio::spawn(under_a_guard(tenure.term().clone()));
    settle().await;
    let began = Timer::now();
    tenure.end(Reason::Released);
    settle().await;
    world.clock.suspend(60 * SECOND);
    world.ended().await;
    assert_eq!(sends.await.unwrap().0, Err(Lost));
    assert!(began.elapsed() <= SECOND, "{:?}", began.elapsed());
}
