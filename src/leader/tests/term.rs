//! Rules S1 and S2: when a guard is given.

use super::support::{Author, LIMITS, SECOND, World, buckets, settle};
use crate::clock::virtual_time::VirtualClock;
use crate::clock::{Clock, Instant};
use crate::leader::{Deadline, Guard, Lost, Term, TermParts};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn term(clock: &VirtualClock) -> (Term, Arc<Deadline>) {
    let deadline = Deadline::at(clock.now() + LIMITS.renew_deadline);
    let parts = TermParts {
        bucket: buckets(1).bucket(0),
        token: None,
        deadline: Arc::clone(&deadline),
        clock: clock.shared(),
        saved: None,
    };
    (Term::new(parts), deadline)
}

#[tokio::test(start_paused = true)]
async fn s1_no_guard_before_promote_returned() {
    let mut world = World::new(Author::new().promoting(|term| async move {
        tokio::time::sleep(3 * SECOND).await;
        assert!(term.guard().is_none(), "inside of promote");
        assert!(!term.is_current());
        assert_eq!(term.run(async {}).await, Err(Lost));
        Ok(())
    }));
    let (tenure, _) = world.begin();
    assert!(tenure.term().guard().is_none());
    settle().await;
    assert!(tenure.term().guard().is_none());
    world.next().await;
    assert!(world.log.has("promote ok"), "{:#?}", world.log);
    assert!(tenure.term().guard().is_some());
    assert!(tenure.term().is_current());
}

#[tokio::test(start_paused = true)]
async fn s1_no_guard_once_the_term_was_told_to_end() {
    for reason in super::order::REASONS {
        let mut world = World::new(Author::new());
        let (tenure, _) = world.begin_promoted().await;
        assert!(tenure.term().guard().is_some());
        tenure.end(reason);
        // Not after a task has run: from the return of the call.
        assert!(tenure.term().guard().is_none(), "{reason:?}");
        assert!(!tenure.term().is_current());
        world.ended().await;
        assert!(tenure.term().guard().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn s2_no_guard_from_the_deadline_on_though_no_task_ran() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let term = tenure.term();
    let left = term.left();
    world.clock.suspend(left - Duration::from_nanos(1));
    assert!(term.guard().is_some(), "a nanosecond before it");
    world.clock.suspend(Duration::from_nanos(1));
    // No await since: nothing but the reading of the clock can have noticed.
    assert!(term.guard().is_none(), "at the deadline");
    assert!(!term.is_current());
    assert_eq!(term.left(), Duration::ZERO);
    assert_eq!(term.guards_out(), 0, "who was refused is not counted as out");
    assert_eq!(term.run(async {}).await, Err(Lost));
}

#[tokio::test(start_paused = true)]
async fn s2_a_guard_given_is_not_valid_past_the_deadline() {
    let mut world = World::new(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    let guard = tenure.term().guard().unwrap();
    assert!(guard.is_valid());
    world.clock.suspend(LIMITS.renew_deadline);
    assert!(!guard.is_valid());
    deadline.extend(world.clock.now() + SECOND);
    assert!(guard.is_valid());
    tenure.end(crate::leader::Reason::Lost);
    assert!(!guard.is_valid());
}

#[test]
fn s2_a_deadline_only_grows() {
    let at = |n| Instant::from_nanos(n);
    let deadline = Deadline::at(at(10));
    deadline.extend(at(9));
    assert_eq!(deadline.get(), at(10));
    deadline.extend(at(12));
    deadline.extend(at(11));
    assert_eq!(deadline.get(), at(12));
    assert_eq!(Deadline::never().get(), at(u64::MAX));
}

#[tokio::test(start_paused = true)]
async fn one_renewal_moves_the_deadline_of_all_terms_that_share_it() {
    let clock = VirtualClock::new();
    let deadline = Deadline::at(clock.now() + SECOND);
    let layout = buckets(3);
    let terms: Vec<_> = layout
        .buckets()
        .map(|bucket| {
            let deadline = Arc::clone(&deadline);
            Term::new(TermParts { bucket, token: None, deadline, clock: clock.shared(), saved: None })
        })
        .collect();
    deadline.extend(clock.now() + 5 * SECOND);
    for term in &terms {
        assert_eq!(term.left(), 5 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn opened_tells_an_opened_term_from_one_that_ended_first() {
    let clock = VirtualClock::new();
    let (never, _) = term(&clock);
    never.close();
    assert!(!never.opened().await);
    let (was, _) = term(&clock);
    assert!(was.open());
    was.close();
    assert!(was.opened().await, "it did open");
}

#[test]
fn a_guard_can_go_where_the_work_goes() {
    fn owned_and_send<T: Send + Sync + 'static>() {}
    owned_and_send::<Guard>();
    owned_and_send::<Term>();
}

/// What may be done to a term and its clock.
#[derive(Debug, Clone, Copy)]
enum Step {
    Open,
    Close,
    Cancel,
    Extend(u64),
    Pass(u64),
    Take,
    Drop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Open),
        1 => Just(Step::Close),
        1 => Just(Step::Cancel),
        4 => (0..12_000_u64).prop_map(Step::Extend),
        4 => (0..8_000_u64).prop_map(Step::Pass),
        6 => Just(Step::Take),
        4 => Just(Step::Drop),
    ]
}

proptest! {
    /// Whatever is done in whatever order: a guard is given exactly where rules S1 and S2 give one.
    #[test]
    fn s1_s2_a_guard_is_given_exactly_inside_a_current_term(steps in prop::collection::vec(step(), 0..60)) {
        let clock = VirtualClock::new().with_rate(0);
        let (term, deadline) = term(&clock);
        let (mut opened, mut closed, mut now, mut until) = (false, false, 0, 10_000);
        let mut out = Vec::new();
        for step in steps {
            match step {
                Step::Open => {
                    prop_assert_eq!(term.open(), !closed);
                    opened |= !closed;
                }
                Step::Close => {
                    term.close();
                    closed = true;
                }
                Step::Cancel => {
                    term.cancel();
                    closed = true;
                }
                Step::Extend(by) => {
                    deadline.extend(clock.now() + Duration::from_millis(by));
                    until = until.max(now + by);
                }
                Step::Pass(by) => {
                    clock.suspend(Duration::from_millis(by));
                    now += by;
                }
                Step::Take => {
                    let guard = term.guard();
                    prop_assert_eq!(guard.is_some(), opened && !closed && now < until);
                    prop_assert_eq!(term.is_current(), guard.is_some());
                    out.extend(guard);
                }
                Step::Drop => {
                    out.pop();
                }
            }
            prop_assert_eq!(term.guards_out(), out.len() as u64);
        }
    }
}
