//! A LeaderAware that hangs, or fails, for a while.

use leasehold::bucket::Bucket;
use leasehold::leader::{BoxError, LeaderAware, Reason, Term};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Feeling {
    pub promote_fails: bool,
    pub promote_hangs: bool,
    pub demote_hangs: bool,
}

/// A Notify wakes in the order in which it was asked, so a run repeats itself.
#[derive(Clone, Default)]
pub struct Mood(Arc<(Mutex<Feeling>, Notify)>);

impl Mood {
    pub fn is(&self, feeling: Feeling) {
        *self.0.0.lock().expect("whole") = feeling;
        self.0.1.notify_waiters();
    }

    fn now(&self) -> Feeling {
        *self.0.0.lock().expect("whole")
    }

    async fn while_it(&self, hangs: impl Fn(Feeling) -> bool) {
        while hangs(self.now()) {
            self.0.1.notified().await;
        }
    }
}

impl LeaderAware for Mood {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        if self.now().promote_fails {
            return Err("not in the mood".into());
        }
        tokio::select! {
            biased;
            () = self.while_it(|m| m.promote_hangs) => Ok(()),
            () = term.cancelled() => Err("cancelled".into()),
        }
    }

    async fn demote(&self, _: &Bucket, _: Reason) {
        // Heeds nothing: one that does not return ends the process.
        self.while_it(|m| m.demote_hangs).await;
    }
}
