//! Listeners that join while terms are under way: `Context::per_bucket` is called by an adapter that has started.
//!
//! # Guarantees
//! - Who joins is promoted for each term that stands, and from then on like all others: what is promoted is demoted,
//!   once, before the term counts as ended.
//! - A join that is still being carried out is waited for by the demote of its bucket.

use crate::bucket::Bucket;
use crate::leader::{BoxError, DynLeaderAware, LeaderAware, Reason, Term};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;

type Aware = Arc<dyn DynLeaderAware>;

#[derive(Default)]
struct State {
    members: Vec<Aware>,
    /// The terms that stand, with those who joined after their promote began.
    terms: HashMap<Bucket, Standing>,
}

struct Standing {
    term: Term,
    /// Each gives back the one that joined, if it was promoted.
    joins: Vec<JoinHandle<Option<Aware>>>,
    /// Who was there when the promote began.
    first: Vec<Aware>,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Late(Arc<Mutex<State>>);

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("members", &self.state().members.len()).finish_non_exhaustive()
    }
}

impl Late {
    fn state(&self) -> MutexGuard<'_, State> {
        // Never held over an await; nothing panics while it is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more listener. A promote of it that fails is logged; the term goes on without it.
    pub(super) fn join(&self, aware: Aware) {
        let mut state = self.state();
        for standing in state.terms.values_mut() {
            let (aware, term) = (Arc::clone(&aware), standing.term.clone());
            standing.joins.push(tokio::spawn(async move {
                match aware.promote(term.clone()).await {
                    Ok(()) => Some(aware),
                    Err(error) => {
                        tracing::error!(bucket = %term.bucket(), %error, "a promote failed");
                        None
                    }
                }
            }));
        }
        state.members.push(aware);
    }

    /// Lets go of the listeners, which may hold on to whoever holds this.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        let gone = std::mem::take(&mut *state);
        drop(state);
        drop(gone);
    }

    /// The term is over: waits for the joins under way, then demotes all in reverse order.
    async fn leave(&self, bucket: &Bucket, promoted: Option<usize>, reason: Reason) {
        let standing = self.state().terms.remove(bucket);
        let Some(Standing { joins, first, .. }) = standing else { return };
        let mut all = first;
        all.truncate(promoted.unwrap_or(all.len()));
        for join in joins {
            // One that panicked was not promoted.
            all.extend(join.await.ok().flatten());
        }
        for aware in all.iter().rev() {
            aware.demote(bucket, reason).await;
        }
    }
}

impl LeaderAware for Late {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        let first = {
            let mut state = self.state();
            let first = state.members.clone();
            let standing = Standing { term: term.clone(), joins: Vec::new(), first: first.clone() };
            state.terms.insert(term.bucket().clone(), standing);
            first
        };
        for (at, aware) in first.iter().enumerate() {
            if let Err(error) = aware.promote(term.clone()).await {
                self.leave(term.bucket(), Some(at), Reason::Released).await;
                return Err(error);
            }
        }
        Ok(())
    }

    async fn demote(&self, bucket: &Bucket, reason: Reason) {
        self.leave(bucket, None, reason).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::BucketSet;
    use crate::clock::Boottime;
    use crate::leader::{Deadline, TermParts};
    use tokio::sync::Semaphore;

    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Told {
        fn all(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    struct One {
        name: &'static str,
        told: Arc<Told>,
        /// A promote takes a permit.
        may: Semaphore,
        fails: bool,
    }

    impl LeaderAware for One {
        async fn promote(&self, term: Term) -> Result<(), BoxError> {
            self.may.acquire().await.unwrap().forget();
            self.told.0.lock().unwrap().push(format!("{} +{}", self.name, term.bucket()));
            if self.fails { Err("no".into()) } else { Ok(()) }
        }
        async fn demote(&self, bucket: &Bucket, _: Reason) {
            self.told.0.lock().unwrap().push(format!("{} -{bucket}", self.name));
        }
    }

    fn one(name: &'static str, told: &Arc<Told>, permits: usize, fails: bool) -> Arc<One> {
        Arc::new(One { name, told: told.clone(), may: Semaphore::new(permits), fails })
    }

    fn term(bucket: Bucket) -> Term {
        let (deadline, clock) = (Deadline::never(), Arc::new(Boottime));
        Term::new(TermParts { bucket, token: None, deadline, clock, saved: None })
    }

    #[tokio::test]
    async fn who_joins_late_is_promoted_for_what_stands_and_demoted_with_it() {
        let (told, late) = (Arc::new(Told::default()), Late::default());
        let set = BucketSet::new(crate::bucket::Hash::Knative, ["a", "b"]).unwrap();
        late.join(one("first", &told, 9, false));
        LeaderAware::promote(&late, term(set.bucket(0))).await.unwrap();
        let slow = one("slow", &told, 0, false);
        late.join(slow.clone());
        let demote = tokio::spawn({
            let (late, bucket) = (late.clone(), set.bucket(0));
            async move { LeaderAware::demote(&late, &bucket, Reason::Released).await }
        });
        // The demote waits for the join that it overtook.
        tokio::task::yield_now().await;
        assert!(!demote.is_finished());
        slow.may.add_permits(2);
        demote.await.unwrap();
        assert_eq!(told.all(), ["first +a", "slow +a", "slow -a", "first -a"]);
        LeaderAware::promote(&late, term(set.bucket(1))).await.unwrap();
        assert_eq!(told.all()[4..], ["first +b", "slow +b"]);
    }

    #[tokio::test]
    async fn who_was_not_promoted_is_not_demoted() {
        let (told, late) = (Arc::new(Told::default()), Late::default());
        let bucket = BucketSet::universal().bucket(0);
        late.join(one("good", &told, 9, false));
        late.join(one("bad", &told, 9, true));
        assert!(LeaderAware::promote(&late, term(bucket.clone())).await.is_err());
        assert_eq!(told.all(), ["good +", "bad +", "good -"]);
        LeaderAware::demote(&late, &bucket, Reason::Released).await;
        assert_eq!(told.all().len(), 3);
    }

    #[tokio::test]
    async fn a_late_promote_that_fails_leaves_the_others_alone() {
        let (told, late) = (Arc::new(Told::default()), Late::default());
        let bucket = BucketSet::universal().bucket(0);
        late.join(one("good", &told, 9, false));
        LeaderAware::promote(&late, term(bucket.clone())).await.unwrap();
        late.join(one("bad", &told, 9, true));
        LeaderAware::demote(&late, &bucket, Reason::Released).await;
        assert_eq!(told.all(), ["good +", "bad +", "good -"]);
    }
}
