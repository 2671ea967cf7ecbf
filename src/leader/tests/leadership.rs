use super::support::{Author, LIMITS, Log, SECOND, World, buckets, key_of, settle};
use crate::bucket::{Bucket, BucketSet};
use crate::clock::virtual_time::VirtualClock;
use crate::leader::tenure::{Tenure, Told};
use crate::leader::{Chain, DynLeaderAware, LeaderAware, Leadership, Reason, Term};
use std::sync::{Arc, Barrier};

fn world() -> (World, Leadership) {
    let leadership = Leadership::new();
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    (World::with(Arc::new(leadership.clone()), clock, log), leadership)
}

async fn hold(world: &mut World, buckets: impl IntoIterator<Item = Bucket>) -> Vec<Tenure> {
    let tenures: Vec<_> = buckets.into_iter().map(|b| world.begin_of(b, LIMITS).0).collect();
    for _ in &tenures {
        assert!(matches!(world.next().await, Told::Promoted(_)));
    }
    tenures
}

async fn end(world: &mut World, tenures: Vec<Tenure>, reason: Reason) {
    for tenure in &tenures {
        tenure.end(reason);
    }
    for _ in &tenures {
        world.ended().await;
    }
}

fn keys(set: &Arc<BucketSet>) -> Vec<String> {
    set.buckets().map(|b| key_of(&b)).collect()
}

#[tokio::test(start_paused = true)]
async fn holds_nothing_before_it_is_promoted() {
    let leadership = Leadership::new();
    assert!(leadership.guard("ns/name").is_none());
    assert!(leadership.term("ns/name").is_none());
    assert!(leadership.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_gets_a_guard_of_the_term_of_its_bucket_or_none() {
    let (mut world, leadership) = world();
    let layout = buckets(4);
    let tenures = hold(&mut world, [layout.bucket(3), layout.bucket(1)]).await;
    for (i, key) in keys(&layout).iter().enumerate() {
        let guard = leadership.guard(key);
        assert_eq!(guard.is_some(), i == 1 || i == 3, "bucket {i}");
        if let Some(guard) = guard {
            assert_eq!(guard.bucket(), &layout.bucket(i));
            assert!(guard.term().is_same(&leadership.term(key).unwrap()));
        }
    }
    assert_eq!(leadership.held(), [layout.bucket(1), layout.bucket(3)], "in the order of the layout");
    end(&mut world, tenures, Reason::Released).await;
    assert!(leadership.held().is_empty());
    assert!(keys(&layout).iter().all(|k| leadership.guard(k).is_none() && leadership.term(k).is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_term_past_its_deadline_is_known_but_not_held() {
    let (mut world, leadership) = world();
    let layout = buckets(1);
    let _tenures = hold(&mut world, layout.buckets()).await;
    world.clock.suspend(LIMITS.renew_deadline);
    assert!(leadership.guard("k").is_none());
    assert!(leadership.held().is_empty());
    assert_eq!(leadership.terms().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_guard_by_key_is_waited_for() {
    let (mut world, leadership) = world();
    let layout = buckets(2);
    let tenures = hold(&mut world, layout.buckets()).await;
    let key = key_of(&layout.bucket(0));
    let guard = leadership.guard(&key).unwrap();
    for tenure in &tenures {
        tenure.end(Reason::Released);
    }
    assert!(leadership.guard(&key).is_none(), "shut at once");
    let Told::Ended(term, _) = world.next().await else { panic!("not ended") };
    assert_eq!(term.bucket().index(), 1);
    settle().await;
    assert!(world.quiet(), "one is out");
    drop(guard);
    world.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_bucket_taken_again_is_another_term() {
    let (mut world, leadership) = world();
    let layout = buckets(2);
    let first = hold(&mut world, [layout.bucket(0)]).await;
    let key = key_of(&layout.bucket(0));
    let old = leadership.term(&key).unwrap();
    end(&mut world, first, Reason::Lost).await;
    let _second = hold(&mut world, [layout.bucket(0)]).await;
    assert!(!leadership.term(&key).unwrap().is_same(&old));
    assert!(leadership.guard(&key).is_some());
    assert!(old.guard().is_none(), "a term that is over never comes back");
}

#[tokio::test(start_paused = true)]
async fn two_layouts_one_after_the_other() {
    let (mut world, leadership) = world();
    for n in [4, 7, 2, 4] {
        let layout = buckets(n);
        let tenures = hold(&mut world, layout.buckets()).await;
        assert_eq!(leadership.held(), layout.buckets().collect::<Vec<_>>());
        for (i, key) in keys(&layout).iter().enumerate() {
            assert_eq!(leadership.guard(key).unwrap().bucket(), &layout.bucket(i));
        }
        end(&mut world, tenures, Reason::Resharded).await;
        assert!(leadership.held().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_layout_again_is_another_one_and_begins_empty() {
    let (mut world, leadership) = world();
    let (old, new) = (buckets(2), buckets(2));
    assert_eq!(old.bucket(0), new.bucket(0), "equal, but not the same");
    let tenures = hold(&mut world, old.buckets()).await;
    end(&mut world, tenures, Reason::Resharded).await;
    let _tenures = hold(&mut world, [new.bucket(1)]).await;
    assert!(leadership.guard(&key_of(&new.bucket(0))).is_none());
    assert!(leadership.guard(&key_of(&new.bucket(1))).is_some());
}

/// Many promotes find the old layout at one time. Each lays out a new table, and only one of those may stand: a term that
/// was put into another would be lost.
#[test]
fn promotes_into_a_new_layout_at_one_time_lose_none() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let _in_it = runtime.enter();
    let leadership = Leadership::new();
    let world = World::new(Author::new());
    for round in 0..300 {
        let layout = buckets(6 + round % 2);
        let start = Barrier::new(layout.len());
        std::thread::scope(|scope| {
            for bucket in layout.buckets() {
                let (term, _) = world.term_of(bucket, None);
                let (leadership, start) = (&leadership, &start);
                scope.spawn(move || {
                    assert!(term.open());
                    start.wait();
                    futures::FutureExt::now_or_never(LeaderAware::promote(leadership, term)).unwrap().unwrap();
                });
            }
        });
        assert_eq!(leadership.terms().len(), layout.len(), "round {round}");
        for (bucket, key) in layout.buckets().zip(keys(&layout)) {
            assert_eq!(leadership.term(&key).unwrap().bucket(), &bucket);
        }
    }
}

/// A promote of a layout that is over comes back late, long after its term was given up. Laying its table out again would
/// hide every term of the layout in force.
#[tokio::test(start_paused = true)]
async fn a_late_promote_of_an_old_layout_hides_no_new_term() {
    let leadership = Leadership::new();
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    let (old, new) = (buckets(2), buckets(3));
    let late = Author::named("slow", &log).promoting(|term: Term| async move {
        if term.bucket().set().len() == 2 {
            tokio::time::sleep(60 * SECOND).await;
        }
        Ok(())
    });
    // As an author would write it: something slow first, then the gate.
    struct Mine(Author, Leadership);
    impl LeaderAware for Mine {
        async fn promote(&self, term: Term) -> Result<(), crate::leader::BoxError> {
            LeaderAware::promote(&self.0, term.clone()).await?;
            LeaderAware::promote(&self.1, term).await
        }
        async fn demote(&self, bucket: &Bucket, reason: Reason) {
            LeaderAware::demote(&self.1, bucket, reason).await;
            LeaderAware::demote(&self.0, bucket, reason).await;
        }
    }
    let mut world = World::with(Arc::new(Mine(late, leadership.clone())), clock, log);
    let (_stuck, _) = world.begin_of(old.bucket(0), LIMITS);
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    let (_held, _) = {
        let held = world.begin_of(new.bucket(2), LIMITS);
        held.1.extend(crate::clock::Clock::now(&world.clock) + 3600 * SECOND);
        held
    };
    assert!(matches!(world.next().await, Told::Promoted(_)));
    let key = key_of(&new.bucket(2));
    assert!(leadership.guard(&key).is_some());
    world.ended().await;
    assert!(leadership.guard(&key).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_demote_of_an_old_layout_empties_no_new_slot() {
    let (mut world, leadership) = world();
    let (old, new) = (buckets(2), buckets(3));
    let _tenures = hold(&mut world, new.buckets()).await;
    LeaderAware::demote(&leadership, &old.bucket(1), Reason::Resharded).await;
    assert_eq!(leadership.held().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_later_in_a_chain_takes_the_term_out_again() {
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    let leadership = Leadership::new();
    let refuses = Author::named("b", &log).promoting(|_| async { Err("no".into()) });
    let chain = Chain::new([Arc::new(leadership.clone()) as Arc<dyn DynLeaderAware>, Arc::new(refuses)]);
    let mut world = World::with(Arc::new(chain), clock, log);
    let (tenure, _) = world.begin();
    world.ended().await;
    assert!(leadership.terms().is_empty());
    drop(tenure);
}
