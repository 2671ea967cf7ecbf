//! A configuration in code.

use std::time::Duration;

use super::draft::Draft;
use super::timing::{Raw, Timing};
use super::{Config, ConfigError, StrategyKind};
use crate::bucket::Hash;

/// Builds a [`Config`]; what is not said is as without a ConfigMap (15 s, 10 s, 2 s, 1 bucket).
///
/// ```
/// use std::time::Duration;
/// use leasehold::config::Config;
///
/// let config = Config::builder()
///     .timing(Duration::from_secs(5), Duration::from_secs(4), Duration::from_secs(1))
///     .buckets(10)
///     .build()?;
/// assert_eq!(config.timing.lease_seconds(), 5);
/// # Ok::<_, leasehold::config::ConfigError>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct ConfigBuilder(Draft);

impl ConfigBuilder {
    /// lease-duration, renew-deadline and retry-period, which are checked together.
    pub fn timing(mut self, lease_duration: Duration, renew_deadline: Duration, retry_period: Duration) -> Self {
        self.0.timing = Raw { lease: lease_duration.into(), renew: renew_deadline.into(), retry: retry_period.into() };
        self
    }

    /// The number of buckets of each queue: 1 to 2,048 with the knative hash, 1 to 65,536 with the ring.
    pub fn buckets(mut self, buckets: u32) -> Self {
        self.0.buckets = buckets;
        self
    }

    /// How a key finds its bucket; otherwise knative for up to 10 buckets and ring above.
    pub fn hash(mut self, hash: Hash) -> Self {
        self.0.own.hash = Some(hash);
        self
    }

    /// Who decides which replica holds what.
    pub fn strategy(mut self, strategy: StrategyKind) -> Self {
        self.0.own.strategy = strategy;
        self
    }

    /// Puts `to` in the place of the prefix `from`, which is `{component}.{queue}`, in Lease names.
    pub fn map_lease_prefix(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.0.prefix_map.insert(from.into(), to.into());
        self
    }

    /// What stands before `_<uuid>` in this replica's identity; empty: POD_NAME or the host's name.
    pub fn identity(mut self, prefix: impl Into<String>) -> Self {
        self.0.identity = Some(prefix.into()).filter(|prefix| !prefix.is_empty());
        self
    }

    /// How long a join is waited for before held buckets move: 0 to 24 h, otherwise 15 s.
    pub fn rebalance_delay(mut self, delay: Duration) -> Self {
        self.0.own.rebalance_delay = delay;
        self
    }

    /// How long a term that ends in good order waits for its guards: 100 ms to 24 h, otherwise 10 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.0.own.drain_timeout = timeout;
        self
    }

    /// What is added to the duration of a holder that is not one of us: 0 to 24 h, otherwise renew-deadline.
    pub fn foreign_grace(mut self, grace: Duration) -> Self {
        self.0.own.foreign_grace = Some(grace);
        self
    }

    /// How often a changed checkpoint is written at most: 100 ms to 24 h, otherwise retry-period.
    pub fn checkpoint_interval(mut self, interval: Duration) -> Self {
        self.0.own.checkpoint_interval = Some(interval);
        self
    }

    /// The configuration.
    ///
    /// # Errors
    /// The first thing that is wrong, as [`Config::from_config_map`] says it.
    pub fn build(self) -> Result<Config, ConfigError> {
        self.0.finish()
    }
}

impl std::fmt::Debug for ConfigBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigBuilder")
            .field("timing", &self.0.timing)
            .field("buckets", &self.0.buckets)
            .finish_non_exhaustive()
    }
}

impl From<Timing> for ConfigBuilder {
    fn from(timing: Timing) -> Self {
        Self::default().timing(timing.lease_duration, timing.renew_deadline, timing.retry_period)
    }
}
