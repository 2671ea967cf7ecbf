//! The one trait by which adapters and reconcilers learn which buckets are theirs.

use super::Term;
use crate::bucket::Bucket;
use futures::future::BoxFuture;
use std::future::Future;
use std::sync::Arc;

/// An error of an author's own code, carried as it is.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a bucket is no longer held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// Given away in good order.
    Released,
    /// The deadline passed, or somebody else holds it.
    Lost,
    /// The layout in force is another one.
    Resharded,
    /// This process is stopping.
    Shutdown,
}

impl Reason {
    /// The name in metrics, logs and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Resharded => "resharded",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Told when a term of a bucket begins and ends. Implementors write `async fn`.
///
/// # Guarantees
/// - For one bucket: `promote`, then, if it returned Ok, exactly one `demote`; never two of them at a time, never a
///   `demote` for a bucket whose `promote` failed.
/// - The gate opens after `promote` returned Ok; it has closed and drained before `demote` is called, except that a
///   guard which cannot be stopped ends the process.
/// - Neither future is dropped half-way: both are cancelled through the term ([`Term::cancelled`]) and then awaited.
///
/// # Assumptions
/// - `promote` returns within renew-deadline. Later, or with an error, the bucket is released and tried again after a
///   back-off; no other bucket and no renewal waits for it.
/// - `demote` returns within twice drain-timeout; what cannot be stopped ends the process ([`super::fatal`]).
pub trait LeaderAware: Send + Sync + 'static {
    /// This replica now holds `term.bucket()`. What must be ready before the first event is acted on is done here.
    fn promote(&self, term: Term) -> impl Future<Output = Result<(), BoxError>> + Send;
    /// It no longer does. When this returns, nothing acts for the bucket any more.
    fn demote(&self, bucket: &Bucket, reason: Reason) -> impl Future<Output = ()> + Send;
}

/// [`LeaderAware`] as a trait object; implemented for every `LeaderAware`.
pub trait DynLeaderAware: Send + Sync + 'static {
    /// See [`LeaderAware::promote`].
    fn promote(&self, term: Term) -> BoxFuture<'_, Result<(), BoxError>>;
    /// See [`LeaderAware::demote`].
    fn demote<'a>(&'a self, bucket: &'a Bucket, reason: Reason) -> BoxFuture<'a, ()>;
}

impl<L: LeaderAware> DynLeaderAware for L {
    fn promote(&self, term: Term) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(LeaderAware::promote(self, term))
    }
    fn demote<'a>(&'a self, bucket: &'a Bucket, reason: Reason) -> BoxFuture<'a, ()> {
        Box::pin(LeaderAware::demote(self, bucket, reason))
    }
}

/// Several as one: promoted in order, demoted in reverse. Where one refuses, those before it are demoted again.
#[derive(Default, Clone)]
pub struct Chain(Vec<Arc<dyn DynLeaderAware>>);

impl Chain {
    /// Those given, in the order of promotion.
    pub fn new(links: impl IntoIterator<Item = Arc<dyn DynLeaderAware>>) -> Self {
        Self(links.into_iter().collect())
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Chain").field(&self.0.len()).finish()
    }
}

impl LeaderAware for Chain {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        for (at, link) in self.0.iter().enumerate() {
            if let Err(e) = link.promote(term.clone()).await {
                for done in self.0[..at].iter().rev() {
                    done.demote(term.bucket(), Reason::Released).await;
                }
                return Err(e);
            }
        }
        Ok(())
    }
    async fn demote(&self, bucket: &Bucket, reason: Reason) {
        for link in self.0.iter().rev() {
            link.demote(bucket, reason).await;
        }
    }
}
