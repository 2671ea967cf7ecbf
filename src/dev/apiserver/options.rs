//! How a server behaves.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Boottime, SharedClock};

/// Options of a [`Server`](super::Server). Start from [`Options::default`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Where timestamps in metadata come from. Delays run on tokio's timers, not on this.
    pub clock: SharedClock,
    /// Seeds uids, generated names and rules that fire with a probability. The same seed and the same requests give
    /// the same server. By default random.
    pub seed: u64,
    /// The revision that the server starts from.
    pub first_revision: u64,
    /// How often a watch that asked for bookmarks gets one. A real server sends one about every minute.
    pub bookmark_every: Duration,
    /// How many changes the history keeps before the oldest are compacted.
    pub history: usize,
    /// How many bytes of objects (as JSON) the history keeps before the oldest are compacted.
    pub history_bytes: usize,
    /// How often the history is compacted, to where it stood one such period earlier. A real API server does so to
    /// etcd every five minutes.
    pub compact_every: Duration,
    /// The longest request body, in bytes. A real server takes 3 MiB.
    pub max_body: usize,
    /// How many requests the audit log keeps.
    pub audit: usize,
    /// The Kubernetes version that `/version` names, as in `v1.32.0`.
    pub version: String,
    /// Whether `metadata.managedFields` is kept. Server-side apply needs it; a simulation that writes much and applies
    /// nothing saves the time.
    pub managed_fields: bool,
    /// The longest a watch lasts that names no timeout of its own; the shortest is half of it.
    pub watch_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(Boottime),
            seed: fastrand::u64(..),
            first_revision: 1,
            bookmark_every: Duration::from_mins(1),
            history: 20_000,
            history_bytes: 128 * 1024 * 1024,
            compact_every: Duration::from_mins(5),
            max_body: 3 * 1024 * 1024,
            audit: 4096,
            version: "v1.32.0".to_owned(),
            managed_fields: true,
            watch_timeout: Duration::from_hours(1),
        }
    }
}

impl Options {
    /// Options for a simulation: a clock of its own and a seed.
    pub fn seeded(clock: SharedClock, seed: u64) -> Self {
        Self { clock, seed, ..Self::default() }
    }
}
