//! What the observer is told: in order, and true.

use super::support::{Author, LIMITS, SECOND, World, buckets, renewing, settle};
use crate::clock::virtual_time::VirtualClock;
use crate::clock::{Clock, Instant, SharedClock};
use crate::leader::observe::{Event, SharedObserver};
use crate::leader::tenure::{Tenure, Told};
use crate::leader::{FencingToken, Reason, Term};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    fn listen(&self) -> SharedObserver {
        let events = Arc::clone(&self.0);
        Arc::new(move |event: &Event| events.lock().unwrap().push(event.clone()))
    }

    fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// The reason, acted_until and at of the only TermEnded.
    fn end(&self) -> (Reason, Instant, Instant) {
        let ends: Vec<_> = self
            .all()
            .into_iter()
            .filter_map(|e| match e {
                Event::TermEnded { reason, acted_until, at, .. } => Some((reason, acted_until, at)),
                _ => None,
            })
            .collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends[0]
    }
}

fn listened(author: Author) -> (World, Events, Instant) {
    let mut world = World::new(author);
    let events = Events::default();
    world.around.observer = events.listen();
    let began = world.clock.now();
    (world, events, began)
}

#[tokio::test(start_paused = true)]
async fn a_term_from_its_beginning_to_its_end() {
    let author = Author::new()
        .promoting(|_| async {
            tokio::time::sleep(SECOND).await;
            Ok(())
        })
        .demoting(|_| tokio::time::sleep(4 * SECOND));
    let (mut world, events, t0) = listened(author);
    let (tenure, deadline) = world.begin();
    let first = tenure.term().deadline();
    assert!(matches!(world.next().await, Told::Promoted(_)));
    let promoted = world.clock.now();
    let guard = tenure.term().guard().unwrap();
    tokio::time::sleep(SECOND).await;
    tenure.end(Reason::Resharded);
    let shut = world.clock.now();
    deadline.extend(world.clock.now() + LIMITS.renew_deadline);
    tokio::time::sleep(3 * SECOND).await;
    drop(guard);
    let last = world.clock.now();
    world.ended().await;
    let over = world.clock.now();

    let token = Some(FencingToken::new(0, 7));
    let all = events.all();
    let [
        Event::TermBegun { token: a, at: begun, deadline, .. },
        Event::Promoted { token: b, at: open, .. },
        Event::GuardsOut { token: c, guards: 1, at: closed, .. },
        Event::TermEnded { token: d, reason: Reason::Resharded, acted_until, at: ended, .. },
    ] = &all[..]
    else {
        panic!("{all:#?}");
    };
    assert!([a, b, c, d].into_iter().all(|t| *t == token));
    assert_eq!((*begun, *deadline), (t0, first));
    assert_eq!(*open, promoted);
    assert_eq!(*closed, shut);
    assert_eq!(*acted_until, last, "the last guard's drop, not the end of demote");
    assert_eq!(*ended, over);
    assert_eq!(over.since(last), 4 * SECOND);
}

/// A process that was stopped learns of its loss late. Its guards ended at the deadline, by the clock.
#[tokio::test(start_paused = true)]
async fn nothing_acted_after_the_deadline_however_late_the_loss_was_noticed() {
    let (mut world, events, _) = listened(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let term = tenure.term().clone();
    let running = tokio::spawn(async move { term.run(std::future::pending::<()>()).await });
    settle().await;
    world.clock.suspend(45 * SECOND);
    tenure.end(Reason::Lost);
    world.ended().await;
    assert!(running.await.unwrap().is_err());
    let (reason, acted_until, at) = events.end();
    assert_eq!((reason, acted_until), (Reason::Lost, tenure.term().deadline()));
    assert!(at.since(acted_until) >= 35 * SECOND);
}

/// The deadline that bounds a lost term is the one it had: it may be shared with terms that are renewed on.
#[tokio::test(start_paused = true)]
async fn renewals_after_a_loss_do_not_lengthen_what_was_lost() {
    let (mut world, events, _) = listened(Author::new());
    let (tenure, deadline) = world.begin_promoted().await;
    let stood = tenure.term().deadline();
    let guard = tenure.term().guard().unwrap();
    tenure.end(Reason::Lost);
    settle().await;
    let clock = world.clock.clone();
    tokio::select! {
        never = renewing(&clock, &deadline) => match never {},
        () = tokio::time::sleep(12 * SECOND) => {}
    }
    drop(guard);
    world.ended().await;
    assert_eq!(events.end().1, stood);
}

/// Else a judge would see this term overlap the next holder's, which began when the bucket was given back.
#[tokio::test(start_paused = true)]
async fn a_term_that_was_never_opened_acted_no_longer_than_until_it_was_given_up() {
    for ok in [false, true] {
        let (mut world, events, t0) = listened(Author::new().promoting(move |term: Term| async move {
            term.cancelled().await;
            tokio::time::sleep(60 * SECOND).await;
            if ok { Ok(()) } else { Err("late".into()) }
        }));
        let (_tenure, deadline) = world.begin();
        deadline.extend(world.clock.now() + 3600 * SECOND);
        assert!(matches!(world.next().await, Told::PromoteFailed(_)));
        let given_up = world.clock.now();
        world.ended().await;
        let (_, acted_until, at) = events.end();
        assert_eq!(acted_until, given_up);
        assert!(given_up.since(t0) >= LIMITS.promote);
        assert!(at.since(acted_until) >= 60 * SECOND);
        let all = events.all();
        assert!(!all.iter().any(|e| matches!(e, Event::GuardsOut { .. } | Event::Promoted { .. })), "{all:#?}");
    }
}

/// On another thread the first guard may be taken as soon as the gate is open, and act: a time read after that would be
/// too late to judge by.
#[tokio::test(start_paused = true)]
async fn promoted_says_a_time_at_which_the_gate_was_still_shut() {
    /// Notes at each look at the clock whether the gate was open. Time passes between any two looks.
    #[derive(Debug)]
    struct Noting {
        clock: VirtualClock,
        term: Term,
        shut_at: Mutex<Vec<Instant>>,
    }
    impl Clock for Noting {
        fn now(&self) -> Instant {
            self.clock.suspend(Duration::from_nanos(1));
            let now = self.clock.now();
            if !self.term.gate().is_open() {
                self.shut_at.lock().unwrap().push(now);
            }
            now
        }
        fn wall(&self) -> jiff::Timestamp {
            self.clock.wall()
        }
    }
    let (mut world, events, _) = listened(Author::new());
    let (term, _) = world.term_of(buckets(1).bucket(0), None);
    let noting = Arc::new(Noting { clock: world.clock.clone(), term: term.clone(), shut_at: Mutex::default() });
    world.around.clock = Arc::clone(&noting) as SharedClock;
    let _tenure = Tenure::begin(term, LIMITS, world.around.clone());
    assert!(matches!(world.next().await, Told::Promoted(_)));
    let at = events.all().into_iter().find_map(|e| match e {
        Event::Promoted { at, .. } => Some(at),
        _ => None,
    });
    assert!(noting.shut_at.lock().unwrap().contains(&at.unwrap()));
}
