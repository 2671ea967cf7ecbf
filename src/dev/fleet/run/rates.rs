//! How many events come in a second.

use crate::clock::Instant;
use std::collections::HashMap;
use std::time::Duration;

/// Events per second, by bucket, since the last look.
#[derive(Debug, Default)]
pub(super) struct Rates {
    counts: HashMap<String, u64>,
    all: u64,
    looked: Option<Instant>,
    pub(super) last: HashMap<String, f64>,
    pub(super) last_all: f64,
}

impl Rates {
    pub(super) fn event(&mut self, bucket: Option<&str>) {
        self.all += 1;
        if let Some(bucket) = bucket {
            match self.counts.get_mut(bucket) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(bucket.to_owned(), 1)),
            }
        }
    }

    /// Ticks come once a second, so anything shorter than two would flicker.
    pub(super) fn look(&mut self, now: Instant) {
        let took = self.looked.map_or(Duration::MAX, |at| now.since(at));
        if took < Duration::from_secs(2) {
            return;
        }
        let seconds = if self.looked.is_some() { took.as_secs_f64() } else { f64::INFINITY };
        self.last = self.counts.drain().map(|(bucket, count)| (bucket, count as f64 / seconds)).collect();
        self.last_all = std::mem::take(&mut self.all) as f64 / seconds;
        self.looked = Some(now);
    }
}
