//! Rule S7: what is sent out under a guard ends by the deadline as it then stands, by a clock read at each poll.

use super::support::{Author, Dropped, LIMITS, SECOND, World, renewing, settle, soon};
use crate::clock::Clock;
use crate::leader::{Lost, Reason};
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant as Timer;

#[tokio::test(start_paused = true)]
async fn run_hands_over_what_the_work_made() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let made = guard
        .run(async {
            tokio::time::sleep(SECOND).await;
            42
        })
        .await;
    assert_eq!(made, Ok(42));
    assert_eq!(tenure.term().guards_out(), 1, "the guard outlives the run");
    drop(guard);
    assert_eq!(tenure.term().guards_out(), 0);
}

#[tokio::test(start_paused = true)]
async fn s7_work_is_dropped_at_the_deadline_though_nobody_ended_the_term() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let (began, dropped) = (Timer::now(), Dropped::default());
    let mark = dropped.mark();
    let work = async move {
        let _mark = mark;
        pending::<()>().await;
    };
    assert_eq!(soon(guard.run(work)).await, Err(Lost));
    assert!(dropped.yet(), "dropped, not left to go on");
    let took = began.elapsed();
    assert!(took >= LIMITS.renew_deadline && took < LIMITS.renew_deadline + SECOND / 50, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn s7_the_deadline_that_counts_is_the_one_that_stands_then() {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let began = Timer::now();
    let renew = async {
        // Three renewals, the last sent at 24 s.
        for _ in 0..3 {
            tokio::time::sleep(8 * SECOND).await;
            deadline.extend(world.clock.now() + LIMITS.renew_deadline);
        }
    };
    let ((), result) = tokio::join!(renew, guard.run(pending::<()>()));
    assert_eq!(result, Err(Lost));
    let took = began.elapsed();
    assert!(took >= 34 * SECOND && took < 34 * SECOND + SECOND / 50, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn s7_work_that_is_renewed_goes_on_for_as_long_as_it_takes() {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    tokio::select! {
        never = renewing(&world.clock, &deadline) => match never {},
        done = guard.run(tokio::time::sleep(3000 * SECOND)) => assert_eq!(done, Ok(())),
    }
}

/// The machine slept past the deadline. The answer that was under way arrives first, before any timer: it must not be
/// polled, since whatever it does next would be an act.
#[tokio::test(start_paused = true)]
async fn s7_after_a_suspend_the_first_poll_reads_the_clock() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let answer = Arc::new(Notify::new());
    let acted = Arc::new(AtomicUsize::new(0));
    let running = tokio::spawn({
        let (answer, acted) = (Arc::clone(&answer), Arc::clone(&acted));
        let guard = tenure.term().guard().unwrap();
        async move {
            guard
                .run(async {
                    answer.notified().await;
                    acted.fetch_add(1, Ordering::SeqCst);
                })
                .await
        }
    });
    settle().await;
    world.clock.suspend(LIMITS.renew_deadline);
    answer.notify_one();
    settle().await;
    assert!(running.is_finished(), "no timer has run since, and none was needed");
    assert_eq!(running.await.unwrap(), Err(Lost));
    assert_eq!(acted.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn s7_after_a_suspend_nothing_is_left_running_a_second_later() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let running = tokio::spawn({
        let guard = tenure.term().guard().unwrap();
        async move { guard.run(pending::<()>()).await }
    });
    settle().await;
    world.clock.suspend(3600 * SECOND);
    let woken = Timer::now();
    assert_eq!(soon(running).await.unwrap(), Err(Lost));
    assert!(woken.elapsed() <= SECOND, "{:?} of running time", woken.elapsed());
}

#[tokio::test(start_paused = true)]
async fn s7_a_clock_that_runs_fast_is_believed() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    world.clock.set_rate(1_250_000);
    let guard = tenure.term().guard().unwrap();
    let at = tenure.term().deadline();
    assert_eq!(soon(guard.run(pending::<()>())).await, Err(Lost));
    let late = world.clock.now().since(at);
    assert!(late <= SECOND / 2, "late by {late:?}");
}

#[tokio::test(start_paused = true)]
async fn work_is_not_polled_at_all_where_acting_is_over() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let polled = AtomicUsize::new(0);
    let work = || {
        poll_fn(|_| {
            polled.fetch_add(1, Ordering::SeqCst);
            Poll::Ready(())
        })
    };
    world.clock.suspend(LIMITS.renew_deadline);
    assert_eq!(guard.run(work()).await, Err(Lost));
    tenure.end(Reason::Lost);
    assert_eq!(guard.run(work()).await, Err(Lost));
    assert_eq!(tenure.term().run(work()).await, Err(Lost));
    assert_eq!(polled.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_loss_stops_the_work_at_once() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let began = Timer::now();
    let running = tokio::spawn({
        let guard = tenure.term().guard().unwrap();
        async move { guard.run(pending::<()>()).await }
    });
    settle().await;
    tenure.end(Reason::Lost);
    assert_eq!(soon(running).await.unwrap(), Err(Lost));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(world.ended().await.reason, Reason::Lost);
}

#[tokio::test(start_paused = true)]
async fn cancelled_resolves_at_a_loss_and_at_the_deadline() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let began = Timer::now();
    soon(guard.cancelled()).await;
    assert!(began.elapsed() >= LIMITS.renew_deadline);

    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let (told, hears) = oneshot::channel();
    tokio::spawn(async move {
        guard.cancelled().await;
        let _ = told.send(guard);
    });
    settle().await;
    tenure.end(Reason::Lost);
    settle().await;
    assert!(soon(hears).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn term_run_counts_as_a_guard_and_hands_over_what_the_work_made() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let term = tenure.term().clone();
    let running = tokio::spawn(async move {
        term.run(async {
            tokio::time::sleep(SECOND).await;
            "page"
        })
        .await
    });
    settle().await;
    assert_eq!(tenure.term().guards_out(), 1);
    assert_eq!(soon(running).await.unwrap(), Ok("page"));
    assert_eq!(tenure.term().guards_out(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_work_is_gone_before_its_guard_is() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let term = tenure.term().clone();
    let out = Arc::new(AtomicUsize::new(usize::MAX));
    struct AtDrop(crate::leader::Term, Arc<AtomicUsize>);
    impl Drop for AtDrop {
        fn drop(&mut self) {
            self.1.store(usize::try_from(self.0.guards_out()).unwrap(), Ordering::SeqCst);
        }
    }
    let inside = AtDrop(term.clone(), Arc::clone(&out));
    let mut running = Box::pin(async move {
        term.run(async move {
            let _inside = inside;
            pending::<()>().await;
        })
        .await
    });
    assert!(futures::poll!(&mut running).is_pending());
    drop(running);
    assert_eq!(out.load(Ordering::SeqCst), 1, "the drain waits until the work is dropped");
    assert_eq!(tenure.term().guards_out(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_waited_for_too() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    let fork = guard.fork();
    assert_eq!(tenure.term().guards_out(), 2);
    tenure.end(Reason::Released);
    let late = guard.fork();
    drop(guard);
    drop(fork);
    settle().await;
    assert!(!world.log.has("demote released"));
    assert_eq!(late.bucket(), tenure.term().bucket());
    assert_eq!(late.token(), tenure.term().token());
    drop(late);
    assert!(world.ended().await.clean);
}
