//! Leave to act on one key inside a current term.

use super::Term;
use crate::bucket::Bucket;
use crate::leader::FencingToken;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// The term ended before the work did. Not an error to log: the next holder does the work again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the term ended; the next holder of the bucket goes on")]
pub struct Lost;

/// Leave to act on one key. Owned, Send; dropping it ends the act.
///
/// # Guarantees
/// - Given only in a current term (rule S1). While it lives, the bucket is not released (rule S6).
/// - [`Guard::run`] ends by the term's deadline as it then stands (rule S7).
///
/// # Caveats
/// Work done under a guard but not through [`Guard::run`] has to watch [`Guard::cancelled`] itself: a guard still out
/// when the Lease is about to expire ends the process.
#[must_use = "dropping the guard ends the act: hold it until the work is done"]
#[derive(Debug)]
pub struct Guard {
    term: Term,
}

impl Guard {
    /// The caller has entered the gate of `term`; the guard leaves it.
    pub(super) fn entered(term: Term) -> Self {
        Self { term }
    }

    /// The term in which it was given.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// The bucket it is for.
    pub fn bucket(&self) -> &Bucket {
        self.term.bucket()
    }

    /// The fencing token of its term.
    pub fn token(&self) -> Option<FencingToken> {
        self.term.token()
    }

    /// Whether acting is still allowed: not cancelled, and before the deadline by a clock read now.
    pub fn is_valid(&self) -> bool {
        !self.term.is_cancelled() && !self.term.past_deadline()
    }

    /// Resolves when the work under this guard has to stop: at drain-timeout, at a loss, or at the deadline.
    pub async fn cancelled(&self) {
        let never: Result<(), Lost> = self.run(std::future::pending()).await;
        debug_assert!(never.is_err());
    }

    /// A second guard of the same term, for work that forks; the drain waits for both.
    pub fn fork(&self) -> Self {
        self.term.gate().enter_again();
        Self { term: self.term.clone() }
    }

    /// Polls `work` while acting is allowed: each poll reads the clock, and a timer wakes at the deadline.
    ///
    /// # Errors
    /// [`Lost`] when the guards of the term were cancelled or its deadline came first; `work` is then dropped at once.
    ///
    /// Cancel-safe where `work` is.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        while_in_force(&self.term, self.term.when_cancelled(), work).await
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.term.gate().leave();
    }
}

/// Polls `work` until `stop` resolves or the deadline of `term`, as it then stands, has come.
pub(super) async fn while_in_force<F: Future>(
    term: &Term,
    stop: impl Future<Output = ()>,
    work: F,
) -> Result<F::Output, Lost> {
    let mut work = pin!(work);
    let mut stop = pin!(stop);
    // tokio's timer stops in suspend and knows nothing of a deadline that moves: it only wakes, at most a second late.
    let mut timer = pin!(tokio::time::sleep(term.left().min(Duration::from_secs(1))));
    poll_fn(|cx| {
        if stop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Lost));
        }
        let left = term.left();
        if left.is_zero() {
            return Poll::Ready(Err(Lost));
        }
        if let Poll::Ready(out) = work.as_mut().poll(cx) {
            return Poll::Ready(Ok(out));
        }
        while timer.as_mut().poll(cx).is_ready() {
            let left = term.left();
            if left.is_zero() {
                return Poll::Ready(Err(Lost));
            }
            timer.as_mut().reset(tokio::time::Instant::now() + left.min(Duration::from_secs(1)));
        }
        Poll::Pending
    })
    .await
}
