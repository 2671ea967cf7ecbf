//! test/vectors/config.json: the data of the ConfigMap.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::vectors;
use crate::bucket::Hash;
use crate::config::duration::Nanos;
use crate::config::{Config, ConfigError, Env, Warning, map};

type Data = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Row {
    data: Option<Data>,
    config: Option<GoConfig>,
    error: Option<String>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct GoConfig {
    buckets: u32,
    lease_duration: i64,
    renew_deadline: i64,
    retry_period: i64,
    lease_names_prefix_mapping: Option<Data>,
}

fn rows() -> Vec<Row> {
    let rows: Vec<Row> = vectors(include_str!("../../../test/vectors/config.json"));
    assert_eq!(rows.len(), 227);
    rows
}

fn read(data: Option<&Data>) -> Result<Config, String> {
    Config::from_config_map(data, &Env::default()).map(|parsed| parsed.config).map_err(|e| e.to_string())
}

/// Where the bound of `buckets` decides, ours is another: row, and what we answer.
const BOUND: [(usize, Result<u32, &str>); 7] = [
    (128, Err("buckets: value must be between 1 <= 0 <= 65536")),
    (134, Ok(11)),
    (135, Ok(100)),
    (138, Err("buckets: value must be between 1 <= 0 <= 65536")),
    (161, Err("buckets: value must be between 1 <= 4294967295 <= 65536")),
    (171, Ok(11)),
    (198, Err("buckets: value must be between 1 <= 0 <= 65536")),
];

/// What Knative's parser accepts and nothing can run by: row, and our answer. Knative refuses most of these too, but
/// only when an elector is built; then in the words that stand before the colon.
fn refused() -> Vec<(usize, String)> {
    let lease = |lease, renew| {
        format!(
            "leaseDuration must be greater than renewDeadline: lease-duration is {lease}, renew-deadline is {renew}"
        )
    };
    let deadline = |renew, retry| {
        format!(
            "renewDeadline must be greater than retryPeriod*JitterFactor: renew-deadline is {renew}, retry-period is \
             {retry} and the factor is 1.2"
        )
    };
    let retry = |retry| format!("retryPeriod must be greater than zero: retry-period is {retry}");
    let whole =
        |lease| format!("lease-duration must be whole seconds, since a Lease holds no fractions of one: found {lease}");
    vec![
        (8, lease("15s", "40s")),
        (9, lease("0ns", "40s")),
        (10, lease("-5s", "40s")),
        (21, whole("9223372036.854775807s")),
        (23, lease("1ns", "40s")),
        (24, lease("3s", "40s")),
        (25, lease("1µs", "40s")),
        (26, lease("0ns", "40s")),
        (29, deadline("0ns", "10s")),
        (30, deadline("-5s", "10s")),
        (31, lease("60s", "3600s")),
        (32, lease("60s", "5400s")),
        (41, lease("60s", "9223372036.854775807s")),
        (43, deadline("1ns", "10s")),
        (44, deadline("3s", "10s")),
        (45, deadline("1µs", "10s")),
        (46, deadline("0ns", "10s")),
        (49, retry("0ns")),
        (50, retry("-5s")),
        (51, deadline("40s", "3600s")),
        (52, deadline("40s", "5400s")),
        // Go multiplies beyond its range here, gets a negative number, and lets it pass.
        (61, deadline("40s", "9223372036.854775807s")),
        (66, retry("0ns")),
        (68, lease("15s", "40s")),
        (69, lease("0ns", "40s")),
        (77, whole("9223372036.854775807s")),
        (78, lease("1ns", "40s")),
        (79, lease("3s", "40s")),
        (80, lease("0ns", "40s")),
        (83, deadline("0ns", "10s")),
        (84, lease("60s", "3600s")),
        (85, lease("60s", "5400s")),
        (91, lease("60s", "9223372036.854775807s")),
        (92, deadline("1ns", "10s")),
        (93, deadline("3s", "10s")),
        (94, deadline("0ns", "10s")),
        (97, retry("0ns")),
        (98, deadline("40s", "3600s")),
        (99, deadline("40s", "5400s")),
        (105, deadline("40s", "9223372036.854775807s")),
        (108, retry("0ns")),
        (110, lease("2s", "40s")),
        (116, deadline("2s", "10s")),
        (188, lease("1s", "2s")),
        (189, lease("0ns", "0ns")),
        (222, lease("20s", "40s")),
        (226, whole("5415.5s")),
    ]
}

#[test]
fn every_row_is_read_as_knative_reads_it() {
    let none = Data::new();
    for (i, row) in rows().into_iter().enumerate() {
        let found = map::as_knative(row.data.as_ref().unwrap_or(&none), None);
        if let Some((_, ours)) = BOUND.iter().find(|(bound, _)| *bound == i) {
            assert!(row.error.is_some_and(|error| error.ends_with("<= 10")), "row {i}");
            let found = found.map(|data| data.buckets).map_err(|e| e.to_string());
            assert_eq!(found, ours.map_err(ToOwned::to_owned), "row {i}");
            continue;
        }
        match (found, row.config, row.error) {
            (Ok(found), Some(go), None) => {
                assert_eq!(found.buckets, go.buckets, "row {i}");
                assert_eq!(
                    [found.timing.lease, found.timing.renew, found.timing.retry],
                    [go.lease_duration, go.renew_deadline, go.retry_period].map(Nanos),
                    "row {i}"
                );
                assert_eq!(found.prefix_map, go.lease_names_prefix_mapping.unwrap_or_default(), "row {i}");
            }
            (Err(found), None, Some(go)) => assert_eq!(found.to_string(), go, "row {i}"),
            (found, go, error) => panic!("row {i}: {found:?}, but Go: {go:?} {error:?}"),
        }
    }
}

#[test]
fn every_row_is_answered_as_knative_does_or_is_named_here() {
    let mut refused: BTreeMap<usize, String> = refused().into_iter().collect();
    for (i, row) in rows().into_iter().enumerate() {
        let found = read(row.data.as_ref());
        if let Some((_, ours)) = BOUND.iter().find(|(bound, _)| *bound == i) {
            assert_eq!(found.map(|config| config.buckets), ours.map_err(ToOwned::to_owned), "row {i}");
            continue;
        }
        if let Some(ours) = refused.remove(&i) {
            assert!(row.config.is_some(), "row {i} is refused by Knative's parser too: it needs no naming");
            assert_eq!(found, Err(ours), "row {i}");
            continue;
        }
        match (found, row.config, row.error) {
            (Ok(found), Some(go), None) => {
                let nanos = |d: std::time::Duration| i64::try_from(d.as_nanos()).unwrap();
                assert_eq!(nanos(found.timing.lease_duration), go.lease_duration, "row {i}");
                assert_eq!(nanos(found.timing.renew_deadline), go.renew_deadline, "row {i}");
                assert_eq!(nanos(found.timing.retry_period), go.retry_period, "row {i}");
                assert_eq!(found.buckets, go.buckets, "row {i}");
                assert_eq!(found.hash, Hash::Knative, "row {i}");
                assert_eq!(found.prefix_map, go.lease_names_prefix_mapping.unwrap_or_default(), "row {i}");
                assert!(!found.fixed);
            }
            (Err(found), None, Some(go)) => assert_eq!(found, go, "row {i}"),
            (found, go, error) => panic!("row {i}: {found:?}, but Go: {go:?} {error:?}"),
        }
    }
    assert!(refused.is_empty());
}

fn data<const N: usize>(entries: [(&str, &str); N]) -> Data {
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

#[test]
fn the_bound_of_buckets_is_that_of_the_hash() {
    for (hash, buckets, expected) in [
        ("knative", "2048", Ok(Hash::Knative)),
        ("knative", "2049", Err("buckets: value must be between 1 <= 2049 <= 2048")),
        ("knative", "0", Err("buckets: value must be between 1 <= 0 <= 2048")),
        ("ring", "65536", Ok(Hash::Ring)),
        ("ring", "65537", Err("buckets: value must be between 1 <= 65537 <= 65536")),
        ("ring", "1", Ok(Hash::Ring)),
    ] {
        let found = read(Some(&data([("bucket-hash", hash), ("buckets", buckets)]))).map(|config| config.hash);
        assert_eq!(found, expected.map_err(ToOwned::to_owned), "{hash} {buckets}");
    }
}

#[test]
fn the_hash_is_knatives_up_to_ten() {
    for (buckets, hash) in [("1", Hash::Knative), ("10", Hash::Knative), ("11", Hash::Ring), ("65536", Hash::Ring)] {
        assert_eq!(read(Some(&data([("buckets", buckets)]))).unwrap().hash, hash, "{buckets}");
    }
}

#[test]
fn our_own_keys_are_checked_after_knatives() {
    for (entries, expected) in [
        (
            data([("strategy", "Standard")]),
            r#"failed to parse "strategy": "Standard" is none of standard, balanced, statefulset, unopposed"#,
        ),
        (
            data([("strategy", "")]),
            r#"failed to parse "strategy": "" is none of standard, balanced, statefulset, unopposed"#,
        ),
        (
            data([("strategy", "balanced")]),
            r#"strategy: "balanced" is not in this release; it has standard, statefulset, unopposed"#,
        ),
        (data([("bucket-hash", "md5")]), r#"failed to parse "bucket-hash": "md5" is none of knative, ring"#),
        (data([("bucket-hash", "md5"), ("buckets", "70000")]), "buckets: value must be between 1 <= 70000 <= 65536"),
        (data([("drain-timeout", "10")]), r#"failed to parse "drain-timeout": time: missing unit in duration "10""#),
        (data([("drain-timeout", "0")]), "drain-timeout: value must be between 100ms <= 0ns <= 86400s"),
        (data([("rebalance-delay", "-1s")]), "rebalance-delay: value must be between 0ns <= -1s <= 86400s"),
        (data([("foreign-grace", "25h")]), "foreign-grace: value must be between 0ns <= 90000s <= 86400s"),
        (data([("checkpoint-interval", "1ms")]), "checkpoint-interval: value must be between 100ms <= 1ms <= 86400s"),
        (
            data([("strategy", "x"), ("retry-period", "40s")]),
            "renewDeadline must be greater than retryPeriod*JitterFactor: renew-deadline is 40s, retry-period is 40s and \
             the factor is 1.2",
        ),
    ] {
        assert_eq!(read(Some(&entries)).unwrap_err(), expected);
    }
    let good = read(Some(&data([
        ("strategy", "statefulset"),
        ("bucket-hash", "ring"),
        ("rebalance-delay", "0"),
        ("drain-timeout", "100ms"),
        ("foreign-grace", "0s"),
        ("checkpoint-interval", "1m"),
    ])))
    .unwrap();
    let built = Config::builder()
        .timing(secs(60), secs(40), secs(10))
        .strategy(crate::config::StrategyKind::StatefulSet)
        .hash(Hash::Ring)
        .rebalance_delay(secs(0))
        .drain_timeout(secs(1) / 10)
        .foreign_grace(secs(0))
        .checkpoint_interval(secs(60))
        .build();
    assert_eq!(Ok(good), built);
}

fn secs(n: u64) -> std::time::Duration {
    std::time::Duration::from_secs(n)
}

fn warnings<const N: usize>(entries: [(&str, &str); N]) -> Vec<String> {
    let parsed = Config::from_config_map(Some(&data(entries)), &Env::default()).unwrap();
    parsed.warnings.iter().map(Warning::to_string).collect()
}

#[test]
fn what_has_no_effect_is_warned_of() {
    assert_eq!(warnings([("lease-duration", "60s"), ("_example", "x"), ("map-lease-prefix.a.b", "c")]), [""; 0]);
    assert_eq!(warnings([("leaseDuration", "60s"), ("renewDeadline", "40s"), ("retryPeriod", "10s")]), [""; 0]);
    assert_eq!(
        warnings([("bucket", "7"), ("Lease-Duration", "1s"), ("map-lease-prefix.", "x")]),
        [
            r#"unknown key "Lease-Duration" has no effect; the nearest known key is "lease-duration""#,
            r#"unknown key "bucket" has no effect; the nearest known key is "buckets""#,
            r#"unknown key "map-lease-prefix." has no effect; the nearest known key is "map-lease-prefix.<component>.<queue>""#,
        ]
    );
    assert_eq!(
        warnings([("map-lease-prefixes.a", "b")]),
        [
            r#"key "map-lease-prefixes.a" maps the prefix "s.a": the character after "map-lease-prefix" is dropped and should be a dot"#
        ]
    );
    assert_eq!(
        warnings([("retry-period", "2s"), ("retryPeriod", "1s")]),
        [r#"key "retryPeriod" ("1s") has no effect beside "retry-period", which wins; remove it"#]
    );
}

#[test]
fn the_rows_whose_keys_mean_nothing_are_warned_of() {
    // By key, from the vectors: each is accepted in silence by Knative.
    let unknown: std::collections::BTreeSet<String> = rows()
        .iter()
        .filter_map(|row| Config::from_config_map(row.data.as_ref(), &Env::default()).ok())
        .flat_map(|parsed| parsed.warnings)
        .filter_map(|warning| match warning {
            Warning::UnknownKey { key, .. } => Some(key),
            _ => None,
        })
        .collect();
    let expected = [
        "",
        " buckets",
        "BUCKETS",
        "Buckets",
        "Lease-Duration",
        "LeaseDuration",
        "Map-Lease-Prefix.a",
        "bucket",
        "buckets ",
        "component",
        "enabledComponents",
        "foo",
        "identity",
        "lease-duration ",
        "lease_duration",
        "map-lease-prefix",
        "map-lease-prefix.",
        "map-lease-prefixa",
        "resourceLock",
        "xmap-lease-prefix.a",
    ];
    assert_eq!(unknown.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn a_prefix_is_mapped_before_it_is_lower_cased() {
    let mtping = "knative.dev.eventing.pkg.adapter.mtping.Reconciler";
    let key = format!("map-lease-prefix.pingsource-mt-adapter.{mtping}");
    let config = read(Some(&data([(&key, "Ping"), ("map-lease-prefix.c.empty", "")]))).unwrap();
    assert_eq!(config.prefix("pingsource-mt-adapter", mtping), "ping");
    let lower = mtping.to_lowercase();
    assert_eq!(config.prefix("pingsource-mt-adapter", &lower), format!("pingsource-mt-adapter.{lower}"));
    assert_eq!(config.prefix("c", "empty"), "c.empty");
    // Go changes case character by character: no final sigma, and one character for the dotted capital I.
    assert_eq!(config.prefix("İΣ", "QΣ"), "iσ.qσ");
}

#[test]
fn the_builder_makes_the_same_checks() {
    let error = |builder: crate::config::ConfigBuilder| builder.build().unwrap_err();
    assert_eq!(error(Config::builder().buckets(0)), ConfigError::Buckets { found: 0, most: 65_536 });
    assert_eq!(
        error(Config::builder().hash(Hash::Knative).buckets(2_049)),
        ConfigError::Buckets { found: 2_049, most: 2_048 }
    );
    assert!(matches!(error(Config::builder().timing(secs(15), secs(15), secs(2))), ConfigError::Timing(_)));
    assert!(matches!(error(Config::builder().drain_timeout(secs(0))), ConfigError::Range { .. }));
    assert!(matches!(error(Config::builder().rebalance_delay(secs(90_000))), ConfigError::Range { .. }));
    assert!(matches!(
        error(Config::builder().strategy(crate::config::StrategyKind::Balanced)),
        ConfigError::StrategyNotBuilt { .. }
    ));
    let config = Config::builder().identity("me").map_lease_prefix("c.q", "x").build().unwrap();
    assert_eq!((config.identity.as_deref(), config.prefix("c", "q").as_str()), (Some("me"), "x"));
    assert_eq!(Config::builder().identity("").build().unwrap().identity, None);
}
