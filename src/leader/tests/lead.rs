use super::support::{Author, LIMITS, World, buckets, settle};
use crate::bucket::BucketSet;
use crate::leader::tenure::Told;
use crate::leader::{Reason, Term, lead};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn leading() -> (World, Arc<AtomicUsize>) {
    let leads = Arc::new(AtomicUsize::new(0));
    let mut world = World::new(Author::new());
    let counter = Arc::clone(&leads);
    world.around.aware = Arc::new(lead(move |term: Term| {
        let counter = Arc::clone(&counter);
        async move {
            counter.fetch_add(1, Ordering::SeqCst);
            term.cancelled().await;
            Ok(())
        }
    }));
    (world, leads)
}

#[tokio::test(start_paused = true)]
async fn leads_while_the_only_bucket_is_held() {
    for only in [buckets(1), BucketSet::universal()] {
        let (mut world, leads) = leading();
        for round in 1..=2 {
            let (tenure, _) = world.begin_of(only.bucket(0), LIMITS);
            assert!(matches!(world.next().await, Told::Promoted(_)));
            settle().await;
            assert_eq!(leads.load(Ordering::SeqCst), round);
            tenure.end(Reason::Released);
            assert!(world.ended().await.clean);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refuses_a_queue_of_more_and_says_what_to_do() {
    let (mut world, leads) = leading();
    let (_tenure, _) = world.begin_of(buckets(3).bucket(1), LIMITS);
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    world.ended().await;
    settle().await;
    assert_eq!(leads.load(Ordering::SeqCst), 0);
    let lines = world.log.lines();
    let why = lines.iter().find(|l| l.contains("promote failed")).unwrap();
    assert!(why.contains("3 buckets") && why.contains("buckets: \"1\""), "{why}");
}
