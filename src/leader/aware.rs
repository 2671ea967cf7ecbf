//! The one trait by which adapters and reconcilers learn which buckets are theirs.

use super::{Lost, Term};
use crate::bucket::Bucket;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::any::Any;
use std::error::Error;
use std::fmt::Write as _;
use std::future::Future;
use std::panic::AssertUnwindSafe;
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
/// - A panic in `promote` is an error of it. A panic in `demote` is logged and counts as its return: every guard is in
///   by then, so nothing acts. Neither ends the election or another bucket's term.
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

/// Several as one: promoted in order, demoted in reverse. Where one refuses or panics, or the term ends before all are
/// promoted, those before it are demoted again. A demote that panics keeps no other from being demoted.
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
            // The one before may have returned only because the term was cancelled: the rest need not begin.
            let result = if term.is_cancelled() { Err(Lost.into()) } else { promote(&**link, term.clone()).await };
            if let Err(e) = result {
                for done in self.0[..at].iter().rev() {
                    demote(&**done, term.bucket(), Reason::Released).await;
                }
                return Err(e);
            }
        }
        Ok(())
    }
    async fn demote(&self, bucket: &Bucket, reason: Reason) {
        for link in self.0.iter().rev() {
            demote(&**link, bucket, reason).await;
        }
    }
}

/// `promote` panicked.
#[derive(Debug, thiserror::Error)]
#[error("promote panicked: {0}")]
struct PromotePanicked(String);

/// Calls `promote`; a panic in it is an error like any other.
pub(super) async fn promote(aware: &dyn DynLeaderAware, term: Term) -> Result<(), BoxError> {
    // The call stands inside: a twin written by hand may panic before it has made its future.
    AssertUnwindSafe(async { aware.promote(term).await })
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(Box::new(PromotePanicked(panic_text(&*panic).to_owned()))))
}

/// Calls `demote`; a panic in it is logged and counts as its return.
pub(super) async fn demote(aware: &dyn DynLeaderAware, bucket: &Bucket, reason: Reason) {
    if let Err(panic) = AssertUnwindSafe(async { aware.demote(bucket, reason).await }).catch_unwind().await {
        tracing::error!(
            %bucket,
            reason = reason.as_str(),
            why = panic_text(&*panic),
            "demote panicked and counts as returned: what it should have stopped may still run, though without a guard it must not act"
        );
    }
}

/// What a panic said, where it said it in words.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("not said in words")
}

/// An error with what caused it, on one line.
pub(super) fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // Many errors repeat their source in their own text.
        if !text.ends_with(&said) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {said}");
        }
        source = cause.source();
    }
    text
}
