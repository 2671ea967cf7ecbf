//! Everything that was read, from wherever, before it is a [`Config`]: the one way there.

use std::collections::BTreeMap;

use super::error::most_buckets;
use super::own::Own;
use super::timing::{Raw, Timing};
use super::{Config, ConfigError};
use crate::bucket::Hash;

/// Up to so many buckets the hash is Knative's, where nobody says.
const KNATIVE_UP_TO: u32 = 10;

pub(super) struct Draft {
    pub(super) timing: Raw,
    pub(super) buckets: u32,
    pub(super) prefix_map: BTreeMap<String, String>,
    pub(super) identity: Option<String>,
    pub(super) own: Own,
    pub(super) fixed: bool,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            timing: Timing::WITHOUT_CONFIG_MAP,
            buckets: 1,
            prefix_map: BTreeMap::new(),
            identity: None,
            own: Own::default(),
            fixed: false,
        }
    }
}

impl Draft {
    pub(super) fn finish(self) -> Result<Config, ConfigError> {
        check_buckets(self.buckets, self.own.hash)?;
        let timing = self.timing.check()?;
        self.own.check()?;
        let default_hash = if self.buckets <= KNATIVE_UP_TO { Hash::Knative } else { Hash::Ring };
        Ok(Config {
            timing,
            buckets: self.buckets,
            hash: self.own.hash.unwrap_or(default_hash),
            strategy: self.own.strategy,
            prefix_map: self.prefix_map,
            identity: self.identity,
            rebalance_delay: self.own.rebalance_delay,
            drain_timeout: self.own.drain_timeout,
            foreign_grace: self.own.foreign_grace,
            checkpoint_interval: self.own.checkpoint_interval,
            fixed: self.fixed,
        })
    }
}

/// The bound of the hash that was asked for; where none was, that of the hash which more than 10 buckets get.
pub(super) fn check_buckets(found: u32, hash: Option<Hash>) -> Result<(), ConfigError> {
    let most = most_buckets(hash);
    if (1..=most).contains(&found) { Ok(()) } else { Err(ConfigError::Buckets { found, most }) }
}
