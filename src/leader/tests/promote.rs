//! A promote that fails, hangs or is overtaken by the end of its term.

use super::order::REASONS;
use super::support::{Author, LIMITS, SECOND, World, renewing, settle, soon};
use crate::leader::tenure::Told;
use crate::leader::{Lost, Reason, Term};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

fn no_demote(world: &World) {
    assert!(!world.log.lines().iter().any(|l| l.starts_with("demote")), "{:#?}", world.log);
}

#[tokio::test(start_paused = true)]
async fn a_promote_that_fails_is_told_with_its_causes_and_owes_no_demote() {
    #[derive(Debug, thiserror::Error)]
    #[error("the state could not be read")]
    struct Outer(#[source] std::num::ParseIntError);
    let mut world =
        World::new(Author::new().promoting(|_| async { Err(Outer("x".parse::<u8>().unwrap_err()).into()) }));
    let (tenure, _) = world.begin();
    let Told::PromoteFailed(term) = world.next().await else { panic!("not failed") };
    assert!(term.is_same(tenure.term()));
    assert!(term.guard().is_none());
    // Nobody has to tell it to end.
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Released, true));
    assert_eq!(
        world.log.lines(),
        [
            "event: begun",
            "promote",
            "promote err",
            "event: promote failed: the state could not be read: invalid digit found in string",
            "event: ended released",
        ]
    );
    assert!(tenure.term().guard().is_none());
}

/// Hangs until it is cancelled, then answers.
fn until_cancelled(ok: bool) -> Author {
    Author::new().promoting(move |term: Term| async move {
        term.cancelled().await;
        tokio::time::sleep(SECOND).await;
        if ok { Ok(()) } else { Err(Lost.into()) }
    })
}

#[tokio::test(start_paused = true)]
async fn a_promote_that_hangs_is_given_up_after_its_bound_then_cancelled_and_awaited() {
    let mut world = World::new(until_cancelled(false));
    let (tenure, deadline) = world.begin();
    let clock = world.clock.clone();
    tokio::select! {
        never = renewing(&clock, &deadline) => match never {},
        told = world.next() => assert!(matches!(told, Told::PromoteFailed(_)), "{told:?}"),
    }
    world.log.assert_at("event: promote failed: it took longer than renew-deadline", LIMITS.promote);
    assert!(world.quiet(), "it may not be taken again: promote has not returned");
    assert!(tenure.term().guard().is_none());
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Released, true));
    world.log.assert_at("promote err", LIMITS.promote + SECOND);
    no_demote(&world);
}

/// It took too long, the bucket was given back, and only then it returned Ok: it gets its demote, never a gate, and the
/// end comes by itself.
#[tokio::test(start_paused = true)]
async fn a_promote_that_returns_ok_too_late_is_demoted_without_a_gate() {
    let mut world = World::new(until_cancelled(true));
    let (tenure, _) = world.begin();
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Released, true));
    assert_eq!(
        world.log.lines(),
        [
            "event: begun",
            "promote",
            "event: promote failed: it took longer than renew-deadline",
            "promote ok",
            "demote released",
            "demote returned",
            "event: ended released",
        ]
    );
    assert!(tenure.term().guard().is_none());
    assert!(!tenure.term().opened().await);
}

#[tokio::test(start_paused = true)]
async fn a_loss_after_a_late_promote_was_given_up_is_a_loss() {
    let mut world = World::new(until_cancelled(true));
    let (tenure, _) = world.begin();
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    tenure.end(Reason::Lost);
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Lost, false));
    assert!(world.log.has("demote lost"));
}

#[tokio::test(start_paused = true)]
async fn the_end_cancels_a_promote_and_waits_for_it() {
    for reason in REASONS {
        let mut world = World::new(until_cancelled(false));
        let (tenure, _) = world.begin();
        settle().await;
        tokio::time::sleep(SECOND).await;
        tenure.end(reason);
        let told = world.next().await;
        let Told::Ended(_, ended) = told else { panic!("an end is no failure: {told:?}") };
        assert_eq!((ended.reason, ended.clean), (reason, reason != Reason::Lost));
        world.log.assert_at("promote err", 2 * SECOND);
        no_demote(&world);
        assert!(!world.log.lines().iter().any(|l| l.contains("promote failed")), "{:#?}", world.log);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_cancels_a_promote_that_returns_ok_all_the_same_and_it_is_demoted() {
    for reason in REASONS {
        let mut world = World::new(until_cancelled(true));
        let (tenure, _) = world.begin();
        settle().await;
        tenure.end(reason);
        assert_eq!(world.ended().await.reason, reason);
        let demoted = format!("demote {}", reason.as_str());
        let over = format!("event: ended {}", reason.as_str());
        assert_eq!(world.log.lines(), ["event: begun", "promote", "promote ok", &demoted, "demote returned", &over]);
        assert!(tenure.term().guard().is_none());
    }
}

/// The gate was shut between the return of promote and the look at it.
#[tokio::test(start_paused = true)]
async fn a_promote_that_returns_ok_just_as_the_term_ends_opens_nothing() {
    let go = Arc::new(Notify::new());
    let mut world = World::new(Author::new().promoting({
        let go = Arc::clone(&go);
        move |_| {
            let go = Arc::clone(&go);
            async move {
                go.notified().await;
                Ok(())
            }
        }
    }));
    let (tenure, _) = world.begin();
    settle().await;
    go.notify_one();
    tenure.end(Reason::Released);
    assert!(world.ended().await.clean);
    assert!(!world.log.has("event: promoted"));
    assert_eq!(world.log.lines()[3..], ["demote released", "demote returned", "event: ended released"]);
}

#[tokio::test(start_paused = true)]
async fn a_promote_that_fails_because_its_term_drains_is_no_failure() {
    let mut world = World::new(Author::new().promoting(|term: Term| async move {
        term.draining().await;
        Err("stopping".into())
    }));
    let (tenure, _) = world.begin();
    settle().await;
    tenure.end(Reason::Shutdown);
    let told = world.next().await;
    assert!(matches!(told, Told::Ended(_, e) if e.clean), "{told:?}");
    assert_eq!(world.log.lines(), ["event: begun", "promote", "promote err", "event: ended shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn a_term_that_ends_before_its_promote_is_called_is_never_promoted() {
    for reason in REASONS {
        let mut world = World::new(Author::new());
        let (tenure, _) = world.begin();
        tenure.end(reason);
        let ended = world.ended().await;
        assert_eq!((ended.reason, ended.clean), (reason, reason != Reason::Lost));
        assert_eq!(world.log.lines(), ["event: begun", format!("event: ended {}", reason.as_str()).as_str()]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_promote_is_bounded_by_the_clock_that_runs_on_through_suspend() {
    let mut world = World::new(until_cancelled(false));
    let (_tenure, _) = world.begin();
    settle().await;
    let began = tokio::time::Instant::now();
    world.clock.suspend(LIMITS.promote);
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    assert!(began.elapsed() <= SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_hanging_promote_does_not_keep_another_buckets_from_ending() {
    let layout = super::support::buckets(2);
    let mut world = World::new(Author::new().promoting(|term: Term| async move {
        if term.bucket().index() == 0 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }));
    let (stuck, _) = world.begin_of(layout.bucket(0), LIMITS);
    let (other, _) = world.begin_of(layout.bucket(1), LIMITS);
    assert!(matches!(world.next().await, Told::Promoted(term) if term.is_same(other.term())));
    stuck.end(Reason::Shutdown);
    other.end(Reason::Shutdown);
    let told = world.next().await;
    assert!(matches!(&told, Told::Ended(term, _) if term.is_same(other.term())), "{told:?}");
    let more = tokio::time::timeout(Duration::from_hours(1), world.told.recv()).await;
    assert!(more.is_err(), "what has not returned has not ended: {more:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_in_a_term_that_was_given_back() {
    let mut world = World::new(Author::new().promoting(|term: Term| async move {
        term.checkpoint().store("1")?;
        Err("no".into())
    }));
    let (tenure, _) = world.begin();
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    // The release that may be sent now is the last write of this term.
    assert!(tenure.term().checkpoint().store("2").is_err());
    assert_eq!(soon(tenure.term().checkpoint().flush()).await, Err(crate::leader::CheckpointError::Ended));
    assert_eq!(tenure.term().checkpoint().pending().unwrap().1.position, "1");
}
