//! What wins over what.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bucket::Hash;
use crate::config::{Config, Env, StrategyKind, Timing};

#[test]
fn without_a_config_map_the_defaults_are_the_adapters() {
    let config = Config::default_without_config_map(&Env::default()).unwrap().config;
    assert_eq!(config.timing, Timing::default());
    assert_eq!((config.buckets, config.hash, config.strategy), (1, Hash::Knative, StrategyKind::Standard));
    assert_eq!((config.rebalance_delay, config.drain_timeout), (Duration::from_secs(15), Duration::from_secs(10)));
    assert_eq!((config.foreign_grace, config.checkpoint_interval), (None, None));
    assert_eq!(config.effective_foreign_grace(), config.timing.renew_deadline);
    assert_eq!(config.effective_checkpoint_interval(), config.timing.retry_period);
    assert!(!config.fixed && config.identity.is_none() && config.prefix_map.is_empty());
    assert_eq!(Config::builder().build(), Ok(config));
}

#[test]
fn a_variable_wins_over_its_key_even_where_that_is_wrong() {
    let keys = [
        ("strategy", "nonsense"),
        ("bucket-hash", "nonsense"),
        ("rebalance-delay", "nonsense"),
        ("drain-timeout", "nonsense"),
        ("foreign-grace", "nonsense"),
        ("checkpoint-interval", "nonsense"),
        ("buckets", "20"),
    ];
    let data: BTreeMap<_, _> = keys.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let env = Env::from_iter([
        ("LEASEHOLD_STRATEGY", "unopposed"),
        ("LEASEHOLD_BUCKET_HASH", "knative"),
        ("LEASEHOLD_REBALANCE_DELAY", "1s"),
        ("LEASEHOLD_DRAIN_TIMEOUT", "2s"),
        ("LEASEHOLD_FOREIGN_GRACE", "3s"),
        ("LEASEHOLD_CHECKPOINT_INTERVAL", "4s"),
    ]);
    let config = Config::from_config_map(Some(&data), &env).unwrap().config;
    assert_eq!((config.buckets, config.hash, config.strategy), (20, Hash::Knative, StrategyKind::Unopposed));
    assert_eq!((config.rebalance_delay, config.drain_timeout), (Duration::from_secs(1), Duration::from_secs(2)));
    assert_eq!(config.foreign_grace, Some(Duration::from_secs(3)));
    assert_eq!(config.checkpoint_interval, Some(Duration::from_secs(4)));
    assert!(Config::from_config_map(Some(&data), &Env::default()).is_err());
}

#[test]
fn a_wrong_variable_is_named() {
    for (name, value, expected) in [
        (
            "LEASEHOLD_DRAIN_TIMEOUT",
            "10",
            r#"failed to parse "LEASEHOLD_DRAIN_TIMEOUT": time: missing unit in duration "10""#,
        ),
        ("LEASEHOLD_DRAIN_TIMEOUT", "1ms", "LEASEHOLD_DRAIN_TIMEOUT: value must be between 100ms <= 1ms <= 86400s"),
        (
            "LEASEHOLD_STRATEGY",
            "balanced",
            r#"LEASEHOLD_STRATEGY: "balanced" is not in this release; it has standard, statefulset, unopposed"#,
        ),
    ] {
        let env = Env::from_iter([(name, value)]);
        assert_eq!(Config::default_without_config_map(&env).unwrap_err().to_string(), expected);
        assert_eq!(Config::from_config_map(None, &env).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_config_map_without_keys_has_the_packages_defaults() {
    let config = Config::from_config_map(None, &Env::default()).unwrap().config;
    assert_eq!(config.timing.lease_duration, Duration::from_mins(1));
    assert_eq!(config.timing.renew_deadline, Duration::from_secs(40));
    assert_eq!(config.timing.retry_period, Duration::from_secs(10));
    assert_eq!(Config::from_config_map(Some(&BTreeMap::new()), &Env::default()).unwrap().config, config);
}
