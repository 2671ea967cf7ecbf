//! A tenure from promote to demote: what comes after what, and when.

use super::support::{Author, Dropped, LIMITS, SECOND, World, renewing, settle, soon};
use crate::leader::tenure::Told;
use crate::leader::{Lost, Reason};
use std::future::pending;
use std::sync::Arc;
use tokio::sync::Notify;

pub(super) const REASONS: [Reason; 4] = [Reason::Released, Reason::Lost, Reason::Resharded, Reason::Shutdown];

#[tokio::test(start_paused = true)]
async fn promote_gate_demote_and_only_then_the_end() {
    for reason in REASONS {
        let mut world = World::new(
            Author::new()
                .promoting(|_| async {
                    tokio::time::sleep(2 * SECOND).await;
                    Ok(())
                })
                .demoting(|_| tokio::time::sleep(3 * SECOND)),
        );
        let (tenure, _) = world.begin_promoted().await;
        assert_eq!(tenure.ending(), None);
        tenure.end(reason);
        assert_eq!(tenure.ending(), Some(reason));
        let ended = world.ended().await;
        assert_eq!((ended.reason, ended.clean), (reason, reason != Reason::Lost));
        let demoted = format!("demote {}", reason.as_str());
        let over = format!("event: ended {}", reason.as_str());
        assert_eq!(
            world.log.lines(),
            [
                "event: begun",
                "promote",
                "promote ok",
                "event: promoted",
                "event: guards out 0",
                &demoted,
                "demote returned",
                &over,
            ]
        );
        world.log.assert_at("event: promoted", 2 * SECOND);
        world.log.assert_at(&demoted, 2 * SECOND);
        world.log.assert_at(&over, 5 * SECOND);
        assert!(world.quiet(), "the end is told once");
    }
}

/// H9: a release while a guard is out would let another replica act beside it.
#[tokio::test(start_paused = true)]
async fn s6_no_release_and_no_demote_while_a_guard_is_out() {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    tenure.end(Reason::Released);
    // Past drain-timeout: the guard was cancelled, but whoever has it has not let go of it yet.
    tokio::select! {
        never = renewing(&world.clock, &deadline) => match never {},
        () = tokio::time::sleep(LIMITS.drain_timeout + 5 * SECOND) => {}
    }
    assert!(!guard.is_valid());
    assert!(world.quiet(), "no release may be sent");
    assert_eq!(world.log.lines().last().unwrap(), "event: guards out 1");
    drop(guard);
    assert!(world.ended().await.clean);
    assert_eq!(world.log.lines()[5..], ["demote released", "demote returned", "event: ended released"]);
    world.log.assert_at("demote released", LIMITS.drain_timeout + 5 * SECOND);
}

/// H18: another replica, or this one, would be promoted while demote still stops things.
#[tokio::test(start_paused = true)]
async fn s6_no_release_before_demote_returned() {
    let done = Arc::new(Notify::new());
    let mut world = World::new(Author::new().demoting({
        let done = Arc::clone(&done);
        move |_| {
            let done = Arc::clone(&done);
            async move { done.notified().await }
        }
    }));
    let (tenure, _) = world.begin_promoted().await;
    tenure.end(Reason::Released);
    tokio::time::sleep(5 * SECOND).await;
    assert!(world.log.has("demote released"));
    assert!(world.quiet(), "demote has not returned");
    done.notify_one();
    let Told::Ended(term, ended) = world.next().await else { panic!("not the end") };
    assert!(term.is_same(tenure.term()));
    assert!(ended.clean);
    assert!(world.log.has("demote returned"));
}

#[tokio::test(start_paused = true)]
async fn demote_comes_after_the_last_guard_whatever_the_reason() {
    for reason in REASONS {
        let mut world = World::new(Author::new());
        let (tenure, _) = world.begin_promoted().await;
        let (one, two) = (tenure.term().guard().unwrap(), tenure.term().guard().unwrap());
        let demoted = format!("demote {}", reason.as_str());
        tenure.end(reason);
        settle().await;
        assert!(world.log.has("event: guards out 2"), "{:#?}", world.log);
        drop(one);
        settle().await;
        assert!(!world.log.has(&demoted), "{reason:?}: one is still out");
        drop(two);
        world.ended().await;
        assert!(world.log.has(&demoted));
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_with_nothing_out_takes_no_time() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let began = tokio::time::Instant::now();
    tenure.end(Reason::Shutdown);
    assert!(world.ended().await.clean);
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_tenure_that_is_dropped_is_lost() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let term = tenure.term().clone();
    let running = tokio::spawn({
        let guard = term.guard().unwrap();
        async move { guard.run(pending::<()>()).await }
    });
    settle().await;
    drop(tenure);
    assert!(term.guard().is_none());
    assert_eq!(soon(running).await.unwrap(), Err(Lost));
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Lost, false));
    assert!(world.log.has("demote lost"));
}

#[tokio::test(start_paused = true)]
async fn a_tenure_that_is_dropped_in_a_drain_is_lost_too() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    tenure.end(Reason::Released);
    settle().await;
    assert!(guard.is_valid());
    drop(tenure);
    assert!(!guard.is_valid());
    drop(guard);
    assert!(!world.ended().await.clean);
    assert!(world.log.has("demote lost"));
}

#[tokio::test(start_paused = true)]
async fn the_elector_may_be_gone_and_demote_is_still_called() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let World { log, told, around, clock } = world;
    drop((told, around, clock));
    tenure.end(Reason::Shutdown);
    settle().await;
    assert!(log.has("demote returned"), "{log:#?}");
    assert!(log.has("event: ended shutdown"));
}

#[tokio::test(start_paused = true)]
async fn the_first_reason_stands_and_only_a_loss_overtakes_it() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    tenure.end(Reason::Released);
    tenure.end(Reason::Shutdown);
    assert_eq!(tenure.ending(), Some(Reason::Released));
    assert!(guard.is_valid(), "a second order to drain cancels nothing");
    tenure.end(Reason::Lost);
    assert_eq!(tenure.ending(), Some(Reason::Lost));
    tenure.end(Reason::Released);
    assert_eq!(tenure.ending(), Some(Reason::Lost));
    drop(guard);
    assert_eq!(world.ended().await.reason, Reason::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_loss_while_demote_runs_forbids_the_release() {
    let mut world = World::new(Author::new().demoting(|_| tokio::time::sleep(3 * SECOND)));
    let (tenure, _) = world.begin_promoted().await;
    tenure.end(Reason::Released);
    tokio::time::sleep(SECOND).await;
    tenure.end(Reason::Lost);
    let ended = world.ended().await;
    assert_eq!((ended.reason, ended.clean), (Reason::Lost, false));
    assert!(world.log.has("demote released"), "it was called before the loss");
    assert!(world.log.has("event: ended lost"));
}

/// What an author leaves running beside the guards watches the term, and demote may wait for it.
#[tokio::test(start_paused = true)]
async fn what_watches_the_term_is_told_to_stop_before_demote_also_with_nothing_out() {
    for reason in REASONS {
        let stopped = Dropped::default();
        let mut world = World::new(Author::new().demoting({
            let stopped = stopped.clone();
            move |_| {
                let stopped = stopped.clone();
                async move {
                    settle().await;
                    assert!(stopped.yet(), "demote would wait for ever");
                }
            }
        }));
        let (tenure, _) = world.begin_promoted().await;
        let (term, mark) = (tenure.term().clone(), stopped.mark());
        tokio::spawn(async move {
            term.cancelled().await;
            drop(mark);
        });
        settle().await;
        tenure.end(reason);
        world.ended().await;
        assert!(world.log.has("demote returned"), "{reason:?}: {:#?}", world.log);
    }
}

#[tokio::test(start_paused = true)]
async fn buckets_do_not_wait_for_each_other() {
    let slow = Arc::new(Notify::new());
    let mut world = World::new(Author::new().promoting({
        let slow = Arc::clone(&slow);
        move |term| {
            let slow = Arc::clone(&slow);
            async move {
                if term.bucket().index() == 0 {
                    slow.notified().await;
                }
                Ok(())
            }
        }
    }));
    let layout = super::support::buckets(3);
    let tenures: Vec<_> = layout.buckets().map(|b| world.begin_of(b, LIMITS).0).collect();
    for _ in 0..2 {
        let Told::Promoted(term) = world.next().await else { panic!("not promoted") };
        assert_ne!(term.bucket().index(), 0);
    }
    tenures[1].end(Reason::Released);
    assert_eq!(world.ended().await.reason, Reason::Released);
    assert!(tenures[2].term().is_current());
    slow.notify_one();
    assert!(matches!(world.next().await, Told::Promoted(_)));
}
