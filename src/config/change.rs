//! What a live edit changes, and what it may not.

use std::collections::BTreeMap;
use std::fmt;

use super::{Config, keys};

/// What comes of an edit, measured against the configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It says what is in force already.
    Unchanged,
    /// All that it changes takes effect.
    Applied {
        /// What is to be in force now.
        config: Config,
        /// The keys that changed.
        keys: Vec<&'static str>,
    },
    /// Nothing that it changes takes effect.
    Refused(Refusal),
    /// Part of it takes effect. A refused layout does not hold up the durations: they may be what is urgent.
    Partly {
        /// What is to be in force now: the new durations on the old layout.
        config: Config,
        /// The keys that changed.
        keys: Vec<&'static str>,
        /// What does not take effect.
        refused: Refusal,
    },
}

/// Changes that this release cannot make while replicas run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    changes: Vec<(&'static str, String, String)>,
}

impl Refusal {
    /// The keys that stay as they are.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.changes.iter().map(|&(key, ..)| key)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, in_force, asked)) in self.changes.iter().enumerate() {
            write!(f, "{}{key} stays {in_force} and does not become {asked}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(
            ": the layout cannot change while replicas run; set it back, or stop every replica, delete the queue's Leases \
             and start anew",
        )
    }
}

impl Config {
    /// What comes of `asked` where `self` is in force, for one component.
    ///
    /// Durations take effect. The layout (strategy, hash, number of buckets, and the prefixes of this component's
    /// queues) does not; prefixes of other components are not looked at.
    pub fn change(&self, asked: &Self, component: &str) -> Change {
        let durations = Self {
            strategy: self.strategy,
            hash: self.hash,
            buckets: self.buckets,
            prefix_map: self.prefix_map.clone(),
            identity: self.identity.clone(),
            fixed: self.fixed,
            ..asked.clone()
        };
        let keys = self.durations_unlike(&durations);
        let refused = layout_change(self, asked, component);
        match (keys.is_empty(), refused) {
            (true, None) => Change::Unchanged,
            (true, Some(refused)) => Change::Refused(refused),
            (false, None) => Change::Applied { config: durations, keys },
            (false, Some(refused)) => Change::Partly { config: durations, keys, refused },
        }
    }

    fn durations_unlike(&self, other: &Self) -> Vec<&'static str> {
        [
            (keys::LEASE_DURATION, self.timing.lease_duration != other.timing.lease_duration),
            (keys::RENEW_DEADLINE, self.timing.renew_deadline != other.timing.renew_deadline),
            (keys::RETRY_PERIOD, self.timing.retry_period != other.timing.retry_period),
            (keys::REBALANCE_DELAY, self.rebalance_delay != other.rebalance_delay),
            (keys::DRAIN_TIMEOUT, self.drain_timeout != other.drain_timeout),
            (keys::FOREIGN_GRACE, self.foreign_grace != other.foreign_grace),
            (keys::CHECKPOINT_INTERVAL, self.checkpoint_interval != other.checkpoint_interval),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }
}

/// What of the layout an edit would change. The only place that decides it.
fn layout_change(in_force: &Config, asked: &Config, component: &str) -> Option<Refusal> {
    let mut changes = Vec::new();
    let mut compare = |key, old: String, new: String| {
        if old != new {
            changes.push((key, old, new));
        }
    };
    compare(keys::STRATEGY, in_force.strategy.to_string(), asked.strategy.to_string());
    compare(keys::BUCKETS, in_force.buckets.to_string(), asked.buckets.to_string());
    compare(keys::BUCKET_HASH, in_force.hash.to_string(), asked.hash.to_string());
    compare(keys::MAP_LEASE_PREFIX, prefixes(in_force, component), prefixes(asked, component));
    if changes.is_empty() { None } else { Some(Refusal { changes }) }
}

/// The mappings that can concern a component's queues, for comparing and for showing.
fn prefixes(config: &Config, component: &str) -> String {
    let ours: BTreeMap<_, _> = config
        .prefix_map
        .iter()
        .filter(|(from, to)| !to.is_empty() && from.strip_prefix(component).is_some_and(|queue| queue.starts_with('.')))
        .collect();
    format!("{ours:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Hash;
    use crate::config::{ConfigBuilder, StrategyKind};
    use std::time::Duration;

    fn base() -> ConfigBuilder {
        Config::builder().buckets(10)
    }

    #[test]
    fn durations_take_effect() {
        let in_force = base().build().unwrap();
        assert_eq!(in_force.change(&in_force, "c"), Change::Unchanged);
        let second = Duration::from_secs(1);
        for (asked, expected) in [
            (
                base().timing(60 * second, 40 * second, 10 * second),
                &["lease-duration", "renew-deadline", "retry-period"][..],
            ),
            (base().timing(15 * second, 10 * second, second), &["retry-period"]),
            (base().rebalance_delay(second), &["rebalance-delay"]),
            (base().drain_timeout(second), &["drain-timeout"]),
            (base().foreign_grace(second), &["foreign-grace"]),
            (base().checkpoint_interval(second), &["checkpoint-interval"]),
        ] {
            let asked = asked.build().unwrap();
            match in_force.change(&asked, "c") {
                Change::Applied { config, keys } => {
                    assert_eq!(keys, expected);
                    assert_eq!(config, asked);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_layout_stays() {
        let in_force = base().map_lease_prefix("c.q", "x").build().unwrap();
        let with = |builder: ConfigBuilder| builder.map_lease_prefix("c.q", "x").build().unwrap();
        for (asked, keys) in [
            (with(base().buckets(9)), &["buckets"][..]),
            (with(base().buckets(11)), &["buckets", "bucket-hash"]),
            (with(base().hash(Hash::Ring)), &["bucket-hash"]),
            (with(base().strategy(StrategyKind::Unopposed)), &["strategy"]),
            (base().map_lease_prefix("c.q", "y").build().unwrap(), &["map-lease-prefix"]),
            (base().build().unwrap(), &["map-lease-prefix"]),
        ] {
            match in_force.change(&asked, "c") {
                Change::Refused(refusal) => assert_eq!(refusal.keys().collect::<Vec<_>>(), keys),
                other => panic!("{other:?}"),
            }
        }
        let Change::Refused(refusal) = in_force.change(&with(base().buckets(11)), "c") else { panic!() };
        assert_eq!(
            refusal.to_string(),
            "buckets stays 10 and does not become 11, bucket-hash stays knative and does not become ring: the layout \
             cannot change while replicas run; set it back, or stop every replica, delete the queue's Leases and start anew"
        );
    }

    #[test]
    fn prefixes_of_others_are_not_looked_at() {
        let in_force = base().map_lease_prefix("c.q", "x").build().unwrap();
        let asked = base().map_lease_prefix("c.q", "x").map_lease_prefix("cc.q", "y").map_lease_prefix("c.z", "");
        assert_eq!(in_force.change(&asked.build().unwrap(), "c"), Change::Unchanged);
    }

    #[test]
    fn a_refused_layout_does_not_hold_up_durations() {
        let in_force = base().build().unwrap();
        let asked = base().buckets(20).drain_timeout(Duration::from_secs(3)).build().unwrap();
        match in_force.change(&asked, "c") {
            Change::Partly { config, keys, refused } => {
                assert_eq!(config, base().drain_timeout(Duration::from_secs(3)).build().unwrap());
                assert_eq!(keys, ["drain-timeout"]);
                assert_eq!(refused.keys().collect::<Vec<_>>(), ["buckets", "bucket-hash"]);
            }
            other => panic!("{other:?}"),
        }
    }
}
