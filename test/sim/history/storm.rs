//! No replica sends requests as fast as they are answered.

use super::run::Run;
use super::{Violation, What};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many requests a replica may send in [`WINDOW`]: ten buckets cost it some fifty in health.
pub const STORM: usize = 600;
const WINDOW: Duration = Duration::from_secs(10);

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut asked: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for e in run.entries.iter().filter(|e| matches!(e.what, What::Asked(_))) {
        asked.entry(&e.replica).or_default().push(e.at);
    }
    let mut found = Vec::new();
    for (replica, at) in asked {
        if let Some(w) = at.windows(STORM).find(|w| w[STORM - 1] - w[0] < WINDOW) {
            let text = format!("{replica}: {STORM} requests from {:?} to {:?}", w[0], w[STORM - 1]);
            found.push(Violation("storm", text));
        }
    }
    found
}
