//! The gate of one term: who may go in, and how many are inside. One atomic word; no lock, no allocation.

use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

const CLOSED: u64 = 1 << 63;
/// Set with the first close: a gate never opens twice.
const FINAL: u64 = 1 << 62;
const COUNT: u64 = (1 << 62) - 1;

/// Opens once, closes once, counts who is inside.
#[derive(Debug)]
pub(super) struct Gate {
    word: AtomicU64,
    drained: Notify,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { word: AtomicU64::new(CLOSED), drained: Notify::new() }
    }

    /// Opens, unless it was closed before: then it stays so, and the answer is false.
    pub(super) fn open(&self) -> bool {
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |w| (w & FINAL == 0).then_some(w & !CLOSED)).is_ok()
    }

    /// Closes for good. Those inside stay counted.
    pub(super) fn close(&self) {
        let before = self.word.fetch_or(CLOSED | FINAL, Ordering::AcqRel);
        if before & COUNT == 0 {
            // Nobody is left who would wake those that wait in `drained`.
            self.drained.notify_waiters();
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.word.load(Ordering::Acquire) & CLOSED == 0
    }

    /// How many are inside.
    pub(super) fn inside(&self) -> u64 {
        self.word.load(Ordering::Acquire) & COUNT
    }

    /// True: counted, and [`Gate::leave`] is owed.
    ///
    /// The count is raised before the flag is looked at, and the closer raises the flag before it looks at the count:
    /// so either the one that enters sees the gate closed, or the closer sees the one that entered.
    pub(super) fn enter(&self) -> bool {
        if self.word.load(Ordering::Relaxed) & CLOSED != 0 {
            return false;
        }
        if self.word.fetch_add(1, Ordering::AcqRel) & CLOSED != 0 {
            self.leave();
            return false;
        }
        true
    }

    /// One more while already inside: the gate's being closed does not matter, the drain waits for this one too.
    pub(super) fn enter_again(&self) {
        self.word.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn leave(&self) {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        if before & CLOSED != 0 && before & COUNT == 1 {
            self.drained.notify_waiters();
        }
    }

    /// Returns when nobody is inside a closed gate. Cancel-safe.
    pub(super) async fn drained(&self) {
        loop {
            let notified = self.drained.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            // One load for both: between two, somebody could go in and the gate close behind them.
            let word = self.word.load(Ordering::Acquire);
            if word & CLOSED != 0 && word & COUNT == 0 {
                return;
            }
            notified.await;
        }
    }
}
