use super::support::{Author, Dropped, LIMITS, SECOND, World, buckets, renewing, settle, soon};
use crate::leader::tenure::{Tenure, Told};
use crate::leader::{BoxError, Deadline, Reason, Term, per_bucket};
use std::future::{Future, pending};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant as Timer;

fn working<F, Fut>(work: F) -> World
where
    F: Fn(Term) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let mut world = World::new(Author::new());
    world.around.aware = Arc::new(per_bucket(work));
    world
}

/// A term that lasts as long as the test.
async fn long(world: &mut World) -> (Tenure, Arc<Deadline>) {
    let (tenure, deadline) = world.begin_promoted().await;
    deadline.extend(Deadline::never().get());
    (tenure, deadline)
}

/// When the work was started.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<Timer>>>);

impl Starts {
    fn note(&self) -> usize {
        let mut starts = self.0.lock().unwrap();
        starts.push(Timer::now());
        starts.len()
    }
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
    fn gaps(&self) -> Vec<Duration> {
        self.0.lock().unwrap().windows(2).map(|w| w[1] - w[0]).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn started_at_promote_with_the_gate_open_and_once_per_term() {
    let starts = Starts::default();
    let mut world = working({
        let starts = starts.clone();
        move |term| {
            let starts = starts.clone();
            async move {
                assert!(term.guard().is_some(), "the first guard must not find the gate shut");
                starts.note();
                Ok(())
            }
        }
    });
    let (tenure, _) = long(&mut world).await;
    settle().await;
    assert_eq!(starts.count(), 1);
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(starts.count(), 1, "work that ended Ok is done for this term");
    tenure.end(Reason::Released);
    assert!(world.ended().await.clean);
    let _again = world.begin_promoted().await;
    settle().await;
    assert_eq!(starts.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_task_for_each_bucket() {
    let running = Arc::new(AtomicUsize::new(0));
    let mut world = working({
        let running = Arc::clone(&running);
        move |term| {
            let running = Arc::clone(&running);
            async move {
                running.fetch_or(1 << term.bucket().index(), Ordering::SeqCst);
                let index = term.bucket().index();
                let ended = term.run(pending::<()>()).await;
                running.fetch_and(!(1 << index), Ordering::SeqCst);
                Ok(ended?)
            }
        }
    });
    let layout = buckets(3);
    let tenures: Vec<_> = layout.buckets().map(|b| world.begin_of(b, LIMITS).0).collect();
    for _ in &tenures {
        assert!(matches!(world.next().await, Told::Promoted(_)));
    }
    settle().await;
    assert_eq!(running.load(Ordering::SeqCst), 0b111);
    tenures[1].end(Reason::Released);
    world.ended().await;
    assert_eq!(running.load(Ordering::SeqCst), 0b101);
}

async fn restarts(fail: impl Fn() -> Result<(), BoxError> + Send + Sync + 'static) -> Vec<Duration> {
    let starts = Starts::default();
    let mut world = working({
        let (starts, fail) = (starts.clone(), Arc::new(fail));
        move |_| {
            let (starts, fail) = (starts.clone(), Arc::clone(&fail));
            async move {
                starts.note();
                fail()
            }
        }
    });
    let (tenure, _) = long(&mut world).await;
    soon(async {
        while starts.count() < 14 {
            tokio::time::sleep(SECOND / 10).await;
        }
    })
    .await;
    tenure.end(Reason::Released);
    assert!(world.ended().await.clean);
    starts.gaps()
}

fn assert_backed_off(gaps: &[Duration]) {
    let mut least = Duration::from_millis(100);
    for gap in gaps {
        assert!(*gap >= least && *gap <= least * 2 + SECOND / 50, "{gap:?} is not {least:?} to twice that: {gaps:?}");
        least = (least * 2).min(30 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_is_started_again_with_a_back_off() {
    assert_backed_off(&restarts(|| Err("no".into())).await);
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_is_started_again_with_a_back_off() {
    assert_backed_off(&restarts(|| panic!("no")).await);
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_before_it_is_a_future_is_started_again() {
    let starts = Starts::default();
    let mut world = working({
        let starts = starts.clone();
        move |_| {
            assert!(starts.note() > 3, "not yet");
            async { Ok(()) }
        }
    });
    let _held = long(&mut world).await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(starts.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn work_that_was_up_for_a_minute_is_started_again_soon() {
    let starts = Starts::default();
    let mut world = working({
        let starts = starts.clone();
        move |_| {
            let starts = starts.clone();
            async move {
                if starts.note() == 9 {
                    tokio::time::sleep(60 * SECOND).await;
                }
                Err("again".into())
            }
        }
    });
    let _held = long(&mut world).await;
    soon(async {
        while starts.count() < 10 {
            tokio::time::sleep(SECOND / 10).await;
        }
    })
    .await;
    let gaps = starts.gaps();
    assert!(gaps[7] >= 12 * SECOND, "{gaps:?}");
    let pause = gaps[8] - 60 * SECOND;
    assert!(pause >= SECOND / 10 && pause <= SECOND / 4, "{pause:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_in_a_term_that_is_over_is_not_started_again() {
    for reason in [Reason::Released, Reason::Lost] {
        let starts = Starts::default();
        let mut world = working({
            let starts = starts.clone();
            move |term| {
                let starts = starts.clone();
                async move {
                    starts.note();
                    Ok(term.run(pending::<()>()).await?)
                }
            }
        });
        let (tenure, _) = long(&mut world).await;
        settle().await;
        tenure.end(reason);
        world.ended().await;
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(starts.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_back_off_does_not_hold_up_the_end() {
    let starts = Starts::default();
    let mut world = working({
        let starts = starts.clone();
        move |_| {
            starts.note();
            async { Err("no".into()) }
        }
    });
    let (tenure, _) = long(&mut world).await;
    soon(async {
        while starts.count() < 10 {
            tokio::time::sleep(SECOND).await;
        }
    })
    .await;
    let began = Timer::now();
    tenure.end(Reason::Released);
    world.ended().await;
    assert!(began.elapsed().is_zero(), "{:?}", began.elapsed());
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(starts.count(), 10);
}

#[tokio::test(start_paused = true)]
async fn cancelled_and_awaited_at_demote_and_nothing_is_left_behind() {
    let gone = Dropped::default();
    let mut world = working({
        let gone = gone.clone();
        move |_| {
            let mark = gone.mark();
            async move {
                let _mark = mark;
                // Watches nothing: only the demote can end it.
                pending::<Result<(), BoxError>>().await
            }
        }
    });
    let (tenure, _) = long(&mut world).await;
    settle().await;
    assert!(!gone.yet());
    tenure.end(Reason::Shutdown);
    assert!(world.ended().await.clean);
    assert!(gone.yet(), "dropped before demote returned");
}

/// Sending goes on under its guard to drain-timeout; the task is cancelled only after that.
#[tokio::test(start_paused = true)]
async fn a_guard_in_the_task_is_given_drain_timeout() {
    let sent = Arc::new(AtomicUsize::new(0));
    let mut world = working({
        let sent = Arc::clone(&sent);
        move |term| {
            let sent = Arc::clone(&sent);
            async move {
                let guard = term.guard().ok_or("the gate is shut")?;
                guard.run(tokio::time::sleep(8 * SECOND)).await?;
                sent.fetch_add(1, Ordering::SeqCst);
                drop(guard);
                pending::<Result<(), BoxError>>().await
            }
        }
    });
    let (tenure, deadline) = world.begin_promoted().await;
    settle().await;
    tenure.end(Reason::Released);
    let clock = world.clock.clone();
    tokio::select! {
        never = renewing(&clock, &deadline) => match never {},
        ended = world.ended() => assert!(ended.clean),
    }
    assert_eq!(sent.load(Ordering::SeqCst), 1);
    world.log.assert_at("event: ended released", 8 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_term_that_ends_before_its_gate_opens_runs_nothing() {
    let starts = Starts::default();
    let aware = per_bucket({
        let starts = starts.clone();
        move |_| {
            starts.note();
            async { Ok(()) }
        }
    });
    let world = World::new(Author::new());
    let (term, _) = world.term_of(buckets(1).bucket(0), None);
    crate::leader::LeaderAware::promote(&aware, term.clone()).await.unwrap();
    settle().await;
    assert_eq!(starts.count(), 0, "the gate is shut");
    term.close();
    settle().await;
    crate::leader::LeaderAware::demote(&aware, term.bucket(), Reason::Released).await;
    assert_eq!(starts.count(), 0);
}
