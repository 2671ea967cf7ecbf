//! A LeaderAware that hangs, or fails, for a while.

use leasehold::bucket::Bucket;
use leasehold::leader::{BoxError, LeaderAware, Reason, Term};
use tokio::sync::watch;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Feeling {
    pub promote_fails: bool,
    pub promote_hangs: bool,
    pub demote_hangs: bool,
}

#[derive(Clone)]
pub struct Mood(watch::Sender<Feeling>);

impl Default for Mood {
    fn default() -> Self {
        Self(watch::Sender::new(Feeling::default()))
    }
}

impl Mood {
    pub fn is(&self, feeling: Feeling) {
        self.0.send_replace(feeling);
    }
}

impl LeaderAware for Mood {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        if self.0.borrow().promote_fails {
            return Err("not in the mood".into());
        }
        let mut mood = self.0.subscribe();
        tokio::select! {
            biased;
            _ = mood.wait_for(|m| !m.promote_hangs) => Ok(()),
            () = term.cancelled() => Err("cancelled".into()),
        }
    }

    async fn demote(&self, _: &Bucket, _: Reason) {
        // Heeds nothing: one that does not return ends the process.
        let _ = self.0.subscribe().wait_for(|m| !m.demote_hangs).await;
    }
}
