//! Our own keys: each in the ConfigMap, or in the environment, which wins.

use std::collections::BTreeMap;
use std::time::Duration;

use super::duration::{self, Nanos};
use super::env::Env;
use super::error::{ConfigError, ValueError};
use super::keys;
use super::strategy::{DEFAULT_STRATEGY, StrategyKind, in_this_release};
use crate::bucket::Hash;

/// The values of our own keys; None where nobody says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Own {
    pub(super) strategy: StrategyKind,
    pub(super) hash: Option<Hash>,
    pub(super) rebalance_delay: Duration,
    pub(super) drain_timeout: Duration,
    pub(super) foreign_grace: Option<Duration>,
    pub(super) checkpoint_interval: Option<Duration>,
}

impl Default for Own {
    fn default() -> Self {
        Self {
            strategy: DEFAULT_STRATEGY,
            hash: None,
            rebalance_delay: Duration::from_secs(15),
            drain_timeout: Duration::from_secs(10),
            foreign_grace: None,
            checkpoint_interval: None,
        }
    }
}

impl Own {
    /// Reads and checks them, in the order of [`keys::OWN`].
    pub(super) fn read(data: Option<&BTreeMap<String, String>>, env: &Env) -> Result<Self, ConfigError> {
        let default = Self::default();
        let look = |key| Found::of(key, data, env);
        Ok(Self {
            strategy: match look(keys::STRATEGY) {
                Some(found) => in_this_release(&found.name, found.word(found.value.parse())?)?,
                None => default.strategy,
            },
            hash: hash(data, env)?,
            rebalance_delay: match look(keys::REBALANCE_DELAY) {
                Some(found) => found.duration(REBALANCE_DELAY)?,
                None => default.rebalance_delay,
            },
            drain_timeout: match look(keys::DRAIN_TIMEOUT) {
                Some(found) => found.duration(DRAIN_TIMEOUT)?,
                None => default.drain_timeout,
            },
            foreign_grace: look(keys::FOREIGN_GRACE).map(|found| found.duration(FOREIGN_GRACE)).transpose()?,
            checkpoint_interval: look(keys::CHECKPOINT_INTERVAL)
                .map(|found| found.duration(CHECKPOINT_INTERVAL))
                .transpose()?,
        })
    }

    /// The checks for values that were given in code.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        in_this_release(keys::STRATEGY, self.strategy)?;
        let check = |key: &str, bounds: Bounds, value: Option<Duration>| match value {
            Some(value) => bounds.check(key, value.into()).map(drop),
            None => Ok(()),
        };
        check(keys::REBALANCE_DELAY, REBALANCE_DELAY, Some(self.rebalance_delay))?;
        check(keys::DRAIN_TIMEOUT, DRAIN_TIMEOUT, Some(self.drain_timeout))?;
        check(keys::FOREIGN_GRACE, FOREIGN_GRACE, self.foreign_grace)?;
        check(keys::CHECKPOINT_INTERVAL, CHECKPOINT_INTERVAL, self.checkpoint_interval)
    }
}

/// `bucket-hash`, alone: the bound of `buckets` depends on it.
pub(super) fn hash(data: Option<&BTreeMap<String, String>>, env: &Env) -> Result<Option<Hash>, ConfigError> {
    Found::of(keys::BUCKET_HASH, data, env)
        .map(|found| {
            let unknown = |_| ValueError::Word { found: found.value.to_owned(), known: "knative, ring" };
            found.word(found.value.parse::<Hash>().map_err(unknown))
        })
        .transpose()
}

/// What one of our durations may be.
#[derive(Clone, Copy)]
struct Bounds {
    least: i64,
    most: i64,
}

const DAY: i64 = 86_400_000_000_000;
const TENTH: i64 = 100_000_000;

/// Zero: held buckets move as soon as somebody joins.
const REBALANCE_DELAY: Bounds = Bounds { least: 0, most: DAY };
/// What has not ended after twice this time ends the process (rule S6): not so short that a busy machine trips it.
const DRAIN_TIMEOUT: Bounds = Bounds { least: TENTH, most: DAY };
/// Zero: a word that no client-go runs beside us.
const FOREIGN_GRACE: Bounds = Bounds { least: 0, most: DAY };
/// A write to the API server each time: not so short that checkpoints are all it does.
const CHECKPOINT_INTERVAL: Bounds = Bounds { least: TENTH, most: DAY };

impl Bounds {
    fn check(self, key: &str, found: Nanos) -> Result<Duration, ConfigError> {
        match u64::try_from(found.0) {
            Ok(nanos) if (self.least..=self.most).contains(&found.0) => Ok(Duration::from_nanos(nanos)),
            _ => {
                Err(ConfigError::Range { key: key.to_owned(), found, least: Nanos(self.least), most: Nanos(self.most) })
            }
        }
    }
}

/// A value, and the name of the key or variable that it was found under.
struct Found<'a> {
    name: String,
    value: &'a str,
}

impl<'a> Found<'a> {
    fn of(key: &str, data: Option<&'a BTreeMap<String, String>>, env: &'a Env) -> Option<Self> {
        if let Some((name, value)) = env.own(key) {
            return Some(Self { name, value });
        }
        let value = data?.get(key)?;
        Some(Self { name: key.to_owned(), value })
    }

    fn word<T>(&self, parsed: Result<T, ValueError>) -> Result<T, ConfigError> {
        parsed.map_err(|reason| ConfigError::Parse { key: self.name.clone(), reason })
    }

    fn duration(&self, bounds: Bounds) -> Result<Duration, ConfigError> {
        let nanos = self.word(duration::parse(self.value).map_err(ValueError::Duration))?;
        bounds.check(&self.name, Nanos(nanos))
    }
}
