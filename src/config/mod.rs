//! Configuration: config-leader-election as Knative has it, our own keys beside it, and what Knative leaves out.
//!
//! Where it comes from, the first that is there wins:
//! 1. K_LEADER_ELECTION_CONFIG, not empty: JSON as Knative's controllers write it ([`Config::from_json`]). It is
//!    fixed for the life of the process. A field that is missing is zero, and zero is refused.
//! 2. The ConfigMap `config-leader-election` (or CONFIG_LEADERELECTION_NAME) in SYSTEM_NAMESPACE
//!    ([`Config::from_config_map`]). It is watched ([`watch`]). A key that is missing: 60 s, 40 s, 10 s, 1 bucket.
//! 3. Neither: 15 s, 10 s, 2 s, 1 bucket ([`Config::default_without_config_map`]).
//!
//! Our own keys (`strategy`, `bucket-hash`, `rebalance-delay`, `drain-timeout`, `foreign-grace`,
//! `checkpoint-interval`) can each be overridden by `LEASEHOLD_<KEY>`, in all three cases.
//! [`Config::builder`] is the same configuration in code, under the same checks.
//!
//! # Guarantees
//! - Knative's keys, older spellings, order of parsing, quirks and error texts are kept; test/vectors/config.json,
//!   env-lec.json, durations.json and checksum.json hold what Knative's own code answered.
//! - What is refused is refused whole. No input panics.
//! - A [`Config`] from here meets client-go's conditions on the three durations and ours ([`Timing`]).
//!
//! # Where it differs from Knative on purpose
//! - The three durations are checked together when they are parsed, not when an elector is built.
//! - `buckets` may go up to 2,048 (hash knative) or 65,536 (hash ring), not 10.
//! - K_LEADER_ELECTION_CONFIG that is no JSON, or asks for no buckets, is an error; Knative logs the one and takes
//!   its defaults, and with the other leads nothing, silently.
//! - Keys without effect give a [`Warning`].

mod builder;
mod change;
mod component;
mod draft;
pub mod duration;
mod env;
mod error;
pub mod example;
mod json;
mod keys;
mod map;
mod own;
mod quote;
mod strategy;
mod timing;
mod warning;
pub mod watch;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub use builder::ConfigBuilder;
pub use change::{Change, Refusal};
pub use component::ComponentConfig;
pub use env::Env;
pub use error::{ConfigError, ValueError};
pub use json::JsonError;
pub use strategy::StrategyKind;
pub use timing::{Timing, TimingError};
pub use warning::Warning;
pub use watch::{ConfigSource, ConfigWatch};

use crate::bucket::Hash;

/// What a replica runs by.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// How long terms last and how often they are renewed.
    pub timing: Timing,
    /// The number of buckets of each queue.
    pub buckets: u32,
    /// How a key finds its bucket: as configured, else knative for up to 10 buckets and ring above.
    pub hash: Hash,
    /// Who decides which replica holds what.
    pub strategy: StrategyKind,
    /// `map-lease-prefix`: from `{component}.{queue}`, in its own spelling, to what replaces it.
    pub prefix_map: BTreeMap<String, String>,
    /// What stands before `_<uuid>` in this replica's identity; None: POD_NAME or the host's name.
    pub identity: Option<String>,
    /// How long a join is waited for before held buckets move (balanced).
    pub rebalance_delay: Duration,
    /// How long a term that ends in good order waits for its guards before they are cancelled.
    pub drain_timeout: Duration,
    /// What is added to the duration of a holder that is not one of us; None: renew-deadline.
    pub foreign_grace: Option<Duration>,
    /// How often a changed checkpoint is written at most (balanced); None: retry-period.
    pub checkpoint_interval: Option<Duration>,
    /// Whether it came from K_LEADER_ELECTION_CONFIG, and so holds for the life of the process.
    pub fixed: bool,
}

/// A configuration that was read, and what its author should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The configuration.
    pub config: Config,
    /// What in it has no effect.
    pub warnings: Vec<Warning>,
}

impl Config {
    /// Reads the `data` of a ConfigMap; None and an empty map both give the defaults (60 s, 40 s, 10 s, 1 bucket).
    ///
    /// Values are not trimmed. The order of parsing is Knative's: the older spellings of the three durations, the
    /// three durations, `buckets`, the prefixes; then the three together; then our own keys.
    ///
    /// # Errors
    /// The first thing that is wrong, in Knative's words where it has some. The name of the ConfigMap is for the
    /// caller to add.
    pub fn from_config_map(data: Option<&BTreeMap<String, String>>, env: &Env) -> Result<Parsed, ConfigError> {
        map::read(data, env)
    }

    /// Reads K_LEADER_ELECTION_CONFIG, as Go decodes it: field names in upper or lower case, unknown fields ignored,
    /// missing ones zero, durations in whole nanoseconds. The hash is always knative, since the replicas written in
    /// Go that are given the same variable know no other.
    ///
    /// `component` is the component that reads it; the one that the JSON names is not used.
    ///
    /// # Errors
    /// [`ConfigError::InVariable`] with what is wrong; for one of our own keys, the variable that is wrong.
    pub fn from_json(component: &str, json: &str, env: &Env) -> Result<Parsed, ConfigError> {
        component::read(component, json, env)
    }

    /// What holds where there is no ConfigMap: 15 s, 10 s, 2 s, 1 bucket, as in Knative's adapters.
    ///
    /// # Errors
    /// A variable `LEASEHOLD_<KEY>` is wrong.
    pub fn default_without_config_map(env: &Env) -> Result<Parsed, ConfigError> {
        let config = draft::Draft { own: own::Own::read(None, env)?, ..draft::Draft::default() }.finish()?;
        Ok(Parsed { config, warnings: Vec::new() })
    }

    /// The same configuration in code, under the same checks.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// What the names of a queue's bucket Leases begin with: `{component}.{queue}`, or what `map-lease-prefix` puts in
    /// its place, in lower case.
    ///
    /// As in Knative the mapping's key is compared before lower-casing, a mapping to nothing is none, and case is
    /// changed character by character.
    pub fn prefix(&self, component: &str, queue: &str) -> String {
        let own = format!("{component}.{queue}");
        let prefix = self.prefix_map.get(&own).filter(|to| !to.is_empty()).unwrap_or(&own);
        // The first character of the full mapping is Unicode's simple one, which is Go's.
        prefix.chars().filter_map(|c| c.to_lowercase().next()).collect()
    }

    /// What is added to the duration of a holder that is not one of us.
    pub fn effective_foreign_grace(&self) -> Duration {
        self.foreign_grace.unwrap_or(self.timing.renew_deadline)
    }

    /// How often a changed checkpoint is written at most.
    pub fn effective_checkpoint_interval(&self) -> Duration {
        self.checkpoint_interval.unwrap_or(self.timing.retry_period)
    }
}
