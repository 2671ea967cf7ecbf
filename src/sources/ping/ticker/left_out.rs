//! Says that ticks were left out: at once, and then what came together since, so that an outage is a few lines.

use crate::bucket::Bucket;
use crate::clock::Instant;
use jiff::Timestamp;
use std::time::Duration;

/// The least time between two lines of one bucket.
const BETWEEN: Duration = Duration::from_secs(10);

/// What has not been said yet.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    sources: u64,
    first: Option<Timestamp>,
    said: Option<Instant>,
}

impl LeftOut {
    /// A source's ticks from `at` on, up to what is caught up, are left out.
    pub(super) fn add(&mut self, at: Timestamp) {
        self.sources += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
    }

    /// Says it, if it is time to.
    pub(super) fn say(&mut self, bucket: &Bucket, oldest: Timestamp, now: Instant) {
        let Some(first) = self.first else { return };
        if self.said.is_some_and(|said| now < said + BETWEEN) {
            return;
        }
        let gaps = self.sources;
        tracing::warn!(%bucket, gaps, from = %first, to = %oldest, "ticks older than is caught up are left out");
        *self = Self { said: Some(now), ..Self::default() };
    }
}
