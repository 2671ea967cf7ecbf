//! One leader, the rest stand by: the classic active/standby loop, for programs that write in one place.

use super::{BoxError, LeaderAware, PerBucket, Reason, Term, per_bucket};
use crate::bucket::Bucket;
use std::fmt;
use std::future::Future;

/// See [`lead`].
pub struct Lead<F>(PerBucket<F>);

impl<F> fmt::Debug for Lead<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lead").finish_non_exhaustive()
    }
}

/// Runs `work` in the one replica that holds the queue's only bucket.
///
/// For a queue of one bucket; promotion into a queue of more is refused, since two replicas would then both lead.
/// Otherwise as [`per_bucket`].
pub fn lead<F, Fut>(work: F) -> Lead<F>
where
    F: Fn(Term) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    Lead(per_bucket(work))
}

/// `lead` in a queue of more than one bucket.
#[derive(Debug, thiserror::Error)]
#[error("lead() wants one leader, but the queue has {0} buckets, so {0} replicas could lead: set `buckets: \"1\"`")]
struct ManyBuckets(usize);

impl<F, Fut> LeaderAware for Lead<F>
where
    F: Fn(Term) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        match term.bucket().set().len() {
            1 => LeaderAware::promote(&self.0, term).await,
            n => Err(Box::new(ManyBuckets(n))),
        }
    }

    async fn demote(&self, bucket: &Bucket, reason: Reason) {
        LeaderAware::demote(&self.0, bucket, reason).await;
    }
}
