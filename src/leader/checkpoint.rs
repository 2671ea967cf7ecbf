//! The position of a bucket's source, kept in its Lease.
//!
//! # Guarantees
//! - A position is written only in the name of the term that stored it: with that term's token, under the holder's
//!   uid and resourceVersion. A replica that lost the bucket cannot move it.
//! - The last position stored before `demote` returned is part of the release itself.
//!
//! # Caveats
//! Opaque to the runtime. It covers only what has been answered: store a position after the events before it were.

use super::FencingToken;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The largest position in bytes: a Lease is small, and every replica watches it.
pub const MAX_CHECKPOINT: usize = 16 * 1024;

/// A position that was found in a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// What the author stored.
    pub position: String,
    /// The token of the term that wrote it. One older than the last holder's term means that the last holder (a
    /// client-go program) wrote none.
    pub token: Option<FencingToken>,
}

/// A position that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Too large; nothing was sent.
    #[error(
        "a checkpoint of {0} bytes is above the {MAX_CHECKPOINT} that a Lease carries: store less, or keep the state elsewhere and its address here"
    )]
    TooLarge(usize),
    /// The term is over; the next holder has the bucket.
    #[error("the term ended, so its checkpoint can't be moved any more; the next holder goes on from the last one")]
    Ended,
}

#[derive(Debug, Default)]
struct State {
    /// Given by the author, with a number that grows with each store.
    stored: Option<(u64, Arc<str>)>,
    /// The number of the last one that a Lease is known to hold.
    written: u64,
    /// A flush waits, or it is the first: the elector writes without waiting for its next renewal.
    urgent: bool,
    ended: bool,
}

/// The checkpoint of one term. See the module.
#[derive(Debug)]
pub struct Checkpoint {
    token: Option<FencingToken>,
    saved: Option<Saved>,
    state: Mutex<State>,
    /// Wakes whoever flushes: something was written, or the term ended.
    written: Notify,
    /// Wakes the elector: something is urgent.
    wanted: Notify,
}

impl Checkpoint {
    pub(super) fn new(token: Option<FencingToken>, saved: Option<Saved>) -> Arc<Self> {
        Arc::new(Self { token, saved, state: Mutex::default(), written: Notify::new(), wanted: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held; a poisoned lock still guards a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position to go on from: the one stored last in this term, else the one the last holder left.
    pub fn load(&self) -> Option<String> {
        let here = self.state().stored.as_ref().map(|(_, p)| p.to_string());
        here.or_else(|| self.saved.as_ref().map(|s| s.position.clone()))
    }

    /// What the last holder left, with the token of the term that wrote it.
    pub fn saved(&self) -> Option<&Saved> {
        self.saved.as_ref()
    }

    /// Everything up to `position` has been answered. Returns at once: it is written with a later renewal (the first of
    /// a bucket that had none, at once), and with the release.
    ///
    /// # Errors
    /// [`CheckpointError::TooLarge`] above [`MAX_CHECKPOINT`]; [`CheckpointError::Ended`] when the term is over.
    pub fn store(&self, position: &str) -> Result<(), CheckpointError> {
        if position.len() > MAX_CHECKPOINT {
            return Err(CheckpointError::TooLarge(position.len()));
        }
        let mut state = self.state();
        if state.ended {
            return Err(CheckpointError::Ended);
        }
        let number = match &state.stored {
            Some((_, same)) if **same == *position => return Ok(()),
            Some((n, _)) => n + 1,
            None => 1,
        };
        state.stored = Some((number, position.into()));
        // Until a bucket has its first, a crash loses its place altogether.
        if self.saved.is_none() && state.written == 0 {
            state.urgent = true;
            self.wanted.notify_one();
        }
        Ok(())
    }

    /// Returns when what was stored last before this call, or something newer, stands in the Lease. Cancel-safe: it is
    /// written all the same.
    ///
    /// # Errors
    /// [`CheckpointError::Ended`] when the term was lost or ended first; whether it stands there is then unknown.
    pub async fn flush(&self) -> Result<(), CheckpointError> {
        // Fixed here: whoever stores faster than a Lease is written would else wait for ever.
        let Some(number) = self.state().stored.as_ref().map(|(n, _)| *n) else { return Ok(()) };
        loop {
            let notified = self.written.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let mut state = self.state();
                if state.written >= number {
                    return Ok(());
                }
                if state.ended {
                    return Err(CheckpointError::Ended);
                }
                if !state.urgent {
                    state.urgent = true;
                    self.wanted.notify_one();
                }
            }
            notified.await;
        }
    }

    /// For an elector: what a write sent now should carry, with the number to give to [`Checkpoint::mark_written`].
    /// None: nothing newer than what the Lease holds.
    pub fn pending(&self) -> Option<(u64, Saved)> {
        let state = self.state();
        let (n, position) = state.stored.as_ref()?;
        (*n > state.written).then(|| (*n, Saved { position: position.to_string(), token: self.token }))
    }

    /// For an elector: the write that carried position `number` is known to have succeeded.
    pub fn mark_written(&self, number: u64) {
        let mut state = self.state();
        state.written = state.written.max(number);
        state.urgent = false;
        drop(state);
        self.written.notify_waiters();
    }

    /// For an elector: resolves when a position should be written without waiting for the next renewal.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// For an elector: whether a position should be written without waiting for the next renewal.
    pub fn is_urgent(&self) -> bool {
        self.state().urgent
    }

    /// The term was lost, or nothing acts in it any more: nothing more is taken. What was stored stays for the release.
    pub(super) fn end(&self) {
        self.state().ended = true;
        self.written.notify_waiters();
    }
}
