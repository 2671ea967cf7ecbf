//! No input panics, and what is accepted keeps the rules.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use crate::config::{ComponentConfig, Config, Env};

const KEYS: [&str; 13] = [
    "lease-duration",
    "renew-deadline",
    "retry-period",
    "leaseDuration",
    "buckets",
    "map-lease-prefix",
    "map-lease-prefix.c.q",
    "strategy",
    "bucket-hash",
    "rebalance-delay",
    "drain-timeout",
    "foreign-grace",
    "checkpoint-interval",
];

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(&KEYS[..]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => any::<String>().prop_map(|rest| format!("map-lease-prefix{rest}")),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-+]?[0-9]{1,4}(\\.[0-9])?(ms|s|m|h|)",
        "[0-9]{1,11}",
        "standard|balanced|statefulset|unopposed|knative|ring",
        any::<String>(),
    ]
}

fn keeps_the_rules(config: &Config) -> Result<(), TestCaseError> {
    let timing = config.timing;
    prop_assert!((1..=65_536).contains(&config.buckets));
    prop_assert!(config.hash == crate::bucket::Hash::Ring || config.buckets <= 2_048);
    prop_assert!(timing.attempt_timeout() >= Duration::from_millis(200));
    prop_assert!(timing.renew_deadline * 5 <= timing.lease_duration * 4);
    prop_assert!(config.drain_timeout >= Duration::from_millis(100));
    Ok(())
}

/// JSON that is nearly right.
fn json() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "Component|Buckets|LeaseDuration|RenewDeadline|RetryPeriod|Identity|LeaseNamesPrefixMapping|buckets|x",
        any::<String>(),
    ];
    let value = prop_oneof![
        "-?[0-9]{1,12}(\\.[0-9]{1,2})?(e[0-9])?",
        "\"(\\\\u[0-9a-f]{4}|\\\\.|[a-z])*\"",
        "null|true|\\[\\]|\\{\"a\":\"b\"\\}|\\[1,\\{\"a\":null\\}\\]",
        any::<String>(),
    ];
    prop::collection::vec((name, value), 0..5).prop_map(|fields| {
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}

proptest! {
    #[test]
    fn no_config_map_panics(data in prop::collection::btree_map(key(), value(), 0..8),
                            variables in prop::collection::btree_map(key(), value(), 0..3)) {
        let env = variables.iter().map(|(key, value)| (crate::config::keys::variable(key), value.clone())).collect();
        if let Ok(parsed) = Config::from_config_map(Some(&data), &env) {
            keeps_the_rules(&parsed.config)?;
            for warning in &parsed.warnings {
                prop_assert!(!warning.to_string().is_empty());
            }
            // Neither does what becomes of it as an edit, or as a name.
            let _ = parsed.config.prefix("c", "q");
            let in_force = Config::from_config_map(None, &Env::default()).unwrap().config;
            let _ = in_force.change(&parsed.config, "c");
        }
    }

    #[test]
    fn no_json_panics(json in prop_oneof![json(), any::<String>()]) {
        match ComponentConfig::decode(&json) {
            // What we take for JSON is JSON, apart from lone surrogates.
            Ok(_) if !json.contains("\\u") => {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
            }
            Ok(_) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        if let Ok(parsed) = Config::from_json("c", &json, &Env::default()) {
            keeps_the_rules(&parsed.config)?;
        }
    }

    #[test]
    fn what_json_is_we_take_for_json(buckets in any::<u32>(), lease in any::<i64>(), identity in any::<String>(),
                                     map in prop::option::of(prop::collection::btree_map(any::<String>(), any::<String>(), 0..4))) {
        let config = ComponentConfig {
            component: "c".into(), buckets, lease_duration: lease, renew_deadline: 0, retry_period: -1, identity,
            lease_names_prefix_mapping: map as Option<BTreeMap<_, _>>,
        };
        prop_assert_eq!(ComponentConfig::decode(&config.encode()), Ok(config));
    }
}
