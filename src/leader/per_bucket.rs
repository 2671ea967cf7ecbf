//! A task for each bucket held: started at promote, cancelled and awaited at demote.

use super::aware::{in_full, panic_text};
use super::{BoxError, LeaderAware, Reason, Term};
use crate::bucket::Bucket;
use backon::BackoffBuilder;
use futures::FutureExt;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// See [`per_bucket`].
pub struct PerBucket<F> {
    work: Arc<F>,
    tasks: Mutex<HashMap<Bucket, JoinHandle<()>>>,
}

impl<F> fmt::Debug for PerBucket<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerBucket").finish_non_exhaustive()
    }
}

/// Runs `work` once per term, in a task of its own.
///
/// # Guarantees
/// - Started at promote; when the term drains, calls of [`Term::run`] in it end; at demote it is cancelled at its next
///   await and awaited.
/// - Work that ends Ok is done for this term. Work that fails or panics is logged and started again, after 100 ms
///   and then twice as long each time up to 30 s (up to twice that with jitter), while the term stands. Work that ran
///   for a minute before it failed counts as failing for the first time.
pub fn per_bucket<F, Fut>(work: F) -> PerBucket<F>
where
    F: Fn(Term) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    PerBucket { work: Arc::new(work), tasks: Mutex::default() }
}

impl<F> PerBucket<F> {
    fn tasks(&self) -> std::sync::MutexGuard<'_, HashMap<Bucket, JoinHandle<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work that ran this long was up: its next failure is not the next of a row.
const UP: Duration = Duration::from_mins(1);

/// Runs the work again and again until it ends Ok or the term does.
async fn keep_running<F, Fut>(work: Arc<F>, term: Term)
where
    F: Fn(Term) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let pauses = backon::ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(30))
        .with_jitter()
        .without_max_times();
    let mut backoff = pauses.build();
    while term.is_current() {
        let began = tokio::time::Instant::now();
        // Caught here, not by a task of its own: aborting this one must leave nothing behind. The call stands inside,
        // since a closure may panic before it has made its future.
        let run = AssertUnwindSafe(async { work(term.clone()).await }).catch_unwind().await;
        let why = match run {
            Ok(Ok(())) => return,
            Ok(Err(e)) => in_full(&*e),
            Err(panic) => format!("it panicked: {}", panic_text(&*panic)),
        };
        if began.elapsed() >= UP {
            backoff = pauses.build();
        }
        if !term.is_current() {
            return;
        }
        let pause = backoff.next().unwrap_or(Duration::from_secs(30));
        tracing::error!(bucket = %term.bucket(), %why, ?pause, "the bucket's task failed; it is started again after the pause");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = term.draining() => return,
        }
    }
}

impl<F, Fut> LeaderAware for PerBucket<F>
where
    F: Fn(Term) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        let bucket = term.bucket().clone();
        let work = Arc::clone(&self.work);
        let task = tokio::spawn(async move {
            // The gate opens after promote returns: the author's first guard must not find it shut.
            if term.opened().await {
                keep_running(work, term).await;
            }
        });
        self.tasks().insert(bucket, task);
        Ok(())
    }

    async fn demote(&self, bucket: &Bucket, _: Reason) {
        let task = self.tasks().remove(bucket);
        if let Some(task) = task {
            task.abort();
            // Ends at its next await; what was inside has been dropped when this returns.
            drop(task.await);
        }
    }
}
