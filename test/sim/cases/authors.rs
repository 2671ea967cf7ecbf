//! What authors' own code does: promotes that fail or never return, demotes that take their time or never return.

use super::{S, all_held, bucket, init, judge, lost, ms, terms_of};
use crate::world::{Character, World, timing};
use leasehold::bucket::Bucket;
use leasehold::leader::fatal::Fatal;
use leasehold::leader::{BoxError, LeaderAware, Reason, Term};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Refuses to be promoted so many times, or never answers; and takes its time to be demoted.
pub struct Reluctant {
    refuses: AtomicU64,
    hangs: Option<u32>,
    demote: Duration,
}

impl Reluctant {
    /// Refuses the first promotes.
    pub fn new(refuses: u64) -> Arc<Self> {
        Arc::new(Self { refuses: AtomicU64::new(refuses), hangs: None, demote: Duration::ZERO })
    }

    /// Demote takes so long.
    pub fn slow(demote: Duration) -> Arc<Self> {
        Arc::new(Self { refuses: AtomicU64::new(0), hangs: None, demote })
    }

    /// Promote of this bucket never returns, whatever it is told.
    fn hanging(bucket: u32) -> Arc<Self> {
        Arc::new(Self { refuses: AtomicU64::new(0), hangs: Some(bucket), demote: Duration::ZERO })
    }
}

impl LeaderAware for Reluctant {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        if self.hangs.is_some_and(|b| term.bucket().index() == b as usize) {
            std::future::pending::<()>().await;
        }
        let refused = self.refuses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
        if refused {
            tokio::time::sleep(ms(300)).await;
            return Err("not yet".into());
        }
        Ok(())
    }

    async fn demote(&self, _: &Bucket, _: Reason) {
        tokio::time::sleep(self.demote).await;
    }
}

/// It costs that bucket its place at this replica, no other bucket, and no renewal.
#[tokio::test(start_paused = true)]
async fn a_promote_that_never_returns() {
    let world = World::new(300, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character { aware: Some(Reluctant::hanging(1)), ..Character::default() });
    world.until("the others held", S, || a.held() == 2).await;
    let b = world.replica(Character::default());
    // Bound: renew-deadline; then it is released, and whoever can takes it.
    all_held(&world, &[&a, &b], 11 * S).await;
    tokio::time::sleep(120 * S).await;
    assert_eq!((a.held(), b.held(), lost(&world)), (2, 1, 0));
    assert_eq!(terms_of(&world, &a), 3, "not taken again before that promote has returned");
    judge(&world).await;
}

/// Refused again and again it is tried ever less often, and by others meanwhile.
#[tokio::test(start_paused = true)]
async fn a_promote_that_fails_backs_off() {
    let world = World::new(301, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character { aware: Some(Reluctant::new(u64::MAX)), ..Character::default() });
    tokio::time::sleep(600 * S).await;
    let tries = terms_of(&world, &a);
    assert!((6..=12).contains(&tries), "{tries} tries in ten minutes");
    let b = world.replica(Character::default());
    all_held(&world, &[&b], S).await;
    tokio::time::sleep(60 * S).await;
    assert_eq!(terms_of(&world, &b), 1);
    judge(&world).await;
}

/// A demote that never returns: nothing is released, and the process is ended, so that the bucket gets a holder again.
#[tokio::test(start_paused = true)]
async fn a_demote_that_never_returns_ends_the_process() {
    let world = World::new(302, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character { aware: Some(Reluctant::slow(Duration::MAX)), ..Character::default() });
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    a.tell_to_stop();
    let told = world.truth.now();
    let fatals = Arc::clone(&world.fatals);
    world.until("the process is ended", 25 * S, || !fatals.lock().expect("whole").is_empty()).await;
    // Twice drain-timeout after it was called.
    assert!((20 * S..20 * S + ms(100)).contains(&(world.truth.now() - told)), "{:?}", world.truth.now() - told);
    assert!(matches!(fatals.lock().expect("whole")[0], Fatal::DemoteHangs { .. }));
    assert_eq!((a.held(), b.held()), (0, 0), "released before demote had returned");
    assert!(super::lease(&world, &bucket(0, 3)).is_some_and(|r| r.is_held()));
    a.kill();
    all_held(&world, &[&b], 16 * S).await;
    fatals.lock().expect("whole").clear();
    judge(&world).await;
}
