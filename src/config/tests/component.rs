//! test/vectors/env-lec.json: K_LEADER_ELECTION_CONFIG.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::vectors;
use crate::bucket::Hash;
use crate::config::{ComponentConfig, Config, Env, JsonError, StrategyKind, Timing, Warning};

const COMPONENT: &str = "vec-component";

#[derive(Deserialize)]
struct Row {
    r#in: Option<String>,
    config: Option<GoConfig>,
    config_in: Option<GoConfig>,
    /// Only the rows that are about encoding have it.
    json_out: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct GoConfig {
    component: String,
    buckets: u32,
    lease_duration: i64,
    renew_deadline: i64,
    retry_period: i64,
    identity: String,
    lease_names_prefix_mapping: Option<BTreeMap<String, String>>,
}

impl From<GoConfig> for ComponentConfig {
    fn from(go: GoConfig) -> Self {
        Self {
            component: go.component,
            buckets: go.buckets,
            lease_duration: go.lease_duration,
            renew_deadline: go.renew_deadline,
            retry_period: go.retry_period,
            identity: go.identity,
            lease_names_prefix_mapping: go.lease_names_prefix_mapping,
        }
    }
}

fn rows() -> Vec<Row> {
    let rows: Vec<Row> = vectors(include_str!("../../../test/vectors/env-lec.json"));
    assert_eq!(rows.len(), 125);
    rows
}

#[test]
fn every_row_is_decoded_as_go_does() {
    let mut decoded = 0;
    for (i, row) in rows().into_iter().enumerate() {
        let Some(json) = row.r#in else { continue };
        decoded += 1;
        let go = ComponentConfig::from(row.config.unwrap());
        if json.is_empty() {
            // Row 0: not set and empty are the same, and give the defaults.
            let env = Env::from_iter([("K_LEADER_ELECTION_CONFIG", "")]);
            assert_eq!(env.fixed_config(), None);
            let ours = Config::default_without_config_map(&env).unwrap().config;
            assert_eq!(ComponentConfig::of(COMPONENT, &ours), go);
            continue;
        }
        match (ComponentConfig::decode(&json), row.error) {
            // Knative puts in the component that it runs as.
            (Ok(found), None) => assert_eq!(ComponentConfig { component: COMPONENT.into(), ..found }, go, "row {i}"),
            (Err(found), Some(error)) => assert_eq!(found.to_string(), error, "row {i}"),
            (found, error) => panic!("row {i}: {found:?}, but Go: {error:?} {go:?}"),
        }
    }
    assert_eq!(decoded, 116);
}

#[test]
fn every_row_is_encoded_as_go_does() {
    let mut encoded = 0;
    for (i, row) in rows().into_iter().enumerate() {
        let Some(go) = row.json_out else { continue };
        encoded += 1;
        assert_eq!(row.error, None);
        // Go's nil is the empty variable.
        let json = row.config_in.map(|config| ComponentConfig::from(config).encode()).unwrap_or_default();
        assert_eq!(json, go, "row {i}");
    }
    assert_eq!(encoded, 9);
}

/// The rows that a replica can run by. Of the other rows that Go accepts, those that ask for buckets have no
/// durations, and the rest asks for none; both lead nothing in Knative, without a word.
const GOOD: [usize; 2] = [24, 25];
/// Buckets above the bound of the hash, which Knative does not check here.
const BEYOND: usize = 29;

#[test]
fn every_row_is_answered_as_go_does_or_is_named_here() {
    const NO_BUCKETS: &str =
        "K_LEADER_ELECTION_CONFIG: buckets: value must be between 1 <= 0 <= 2048: Buckets is missing";
    for (i, row) in rows().into_iter().enumerate() {
        let Some(json) = row.r#in.filter(|json| !json.is_empty()) else { continue };
        let found = Config::from_json(COMPONENT, &json, &Env::default());
        let go = row.config.unwrap();
        if let Some(error) = row.error {
            // Knative logs it and takes its defaults.
            assert_eq!(found.unwrap_err().to_string(), format!("K_LEADER_ELECTION_CONFIG: {error}"), "row {i}");
        } else if GOOD.contains(&i) {
            let parsed = found.unwrap();
            let mut expected =
                Config::builder().buckets(go.buckets).hash(Hash::Knative).map_lease_prefix("a.b", "c").build().unwrap();
            expected.fixed = true;
            assert_eq!(parsed.config, expected, "row {i}");
            let other = Warning::OtherComponent { found: "pingsource-mt-adapter".into(), component: COMPONENT.into() };
            assert_eq!(parsed.warnings, [other]);
        } else if i == BEYOND {
            assert_eq!(
                found.unwrap_err().to_string(),
                "K_LEADER_ELECTION_CONFIG: buckets: value must be between 1 <= 4294967295 <= 2048"
            );
        } else if go.buckets == 0 {
            let error = found.unwrap_err().to_string();
            assert!(error.starts_with(NO_BUCKETS), "row {i}: {error}");
        } else {
            assert_eq!(
                found.unwrap_err().to_string(),
                "K_LEADER_ELECTION_CONFIG: leaseDuration must be greater than renewDeadline: lease-duration is 0ns, \
                 renew-deadline is 0ns",
                "row {i}"
            );
        }
    }
}

fn json(buckets: u32, more: &str) -> String {
    format!(
        r#"{{"Buckets":{buckets},"LeaseDuration":15000000000,"RenewDeadline":10000000000,"RetryPeriod":2000000000{more}}}"#
    )
}

#[test]
fn the_hash_is_knatives_whatever_the_number_and_the_environment() {
    let env = Env::from_iter([("LEASEHOLD_BUCKET_HASH", "ring"), ("LEASEHOLD_STRATEGY", "unopposed")]);
    let parsed = Config::from_json("c", &json(2_048, ""), &env).unwrap();
    assert_eq!((parsed.config.hash, parsed.config.buckets), (Hash::Knative, 2_048));
    assert_eq!(parsed.config.strategy, StrategyKind::Unopposed);
    assert_eq!(parsed.warnings, [Warning::HashIgnored]);
    assert!(Config::from_json("c", &json(2_049, ""), &env).is_err());
    let wrong = Env::from_iter([("LEASEHOLD_BUCKET_HASH", "md5")]);
    assert_eq!(
        Config::from_json("c", &json(1, ""), &wrong).unwrap_err().to_string(),
        r#"failed to parse "LEASEHOLD_BUCKET_HASH": "md5" is none of knative, ring"#
    );
}

#[test]
fn an_identity_is_a_prefix_and_an_empty_one_is_made_up() {
    let identity = |more: &str| Config::from_json("c", &json(1, more), &Env::default()).unwrap().config.identity;
    assert_eq!(identity(r#","Identity":"me""#), Some("me".into()));
    assert_eq!(identity(r#","Identity":"""#), None);
    assert_eq!(identity(""), None);
}

#[test]
fn fields_without_effect_are_warned_of() {
    let parsed = Config::from_json("c", &json(1, r#","Component":"c","Bucket":3,"LeaseName":null"#), &Env::default());
    let warnings: Vec<_> = parsed.unwrap().warnings.iter().map(Warning::to_string).collect();
    assert_eq!(
        warnings,
        [
            r#"K_LEADER_ELECTION_CONFIG: unknown field "Bucket" has no effect; the nearest known field is "Buckets""#,
            r#"K_LEADER_ELECTION_CONFIG: unknown field "LeaseName" has no effect; the nearest known field is "Component""#,
        ]
        .map(|warning| warning.replace("is \"Component\"", &format!("is {:?}", nearest_to_lease_name())))
    );
}

/// Several fields are equally far from it; which of them is named does not matter.
fn nearest_to_lease_name() -> &'static str {
    crate::config::keys::nearest_field("LeaseName")
}

#[test]
fn what_is_encoded_decodes_to_the_same() {
    let mut config = Config::builder().buckets(7).identity("<é>").map_lease_prefix("a.b", "c").build().unwrap();
    config.fixed = true;
    let json = ComponentConfig::of("c", &config).encode();
    assert_eq!(Config::from_json("c", &json, &Env::default()).unwrap().config, config);
    assert_eq!(config.timing, Timing::default());
}

#[test]
fn depth_costs_no_stack_and_has_a_bound() {
    let nested = |depth: usize| format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(ComponentConfig::decode(&nested(9_999)), Ok(ComponentConfig::default()));
    assert_eq!(ComponentConfig::decode(&nested(10_000)), Err(JsonError::TooDeep));
    assert_eq!(ComponentConfig::decode(&"[".repeat(1_000_000)), Err(JsonError::TooDeep));
}

#[test]
fn errors_that_no_row_has_are_gos_too() {
    // From Go's scanner: each place where a character can be wrong.
    for (json, expected) in [
        (r#"{"a" 1}"#, "invalid character '1' after object key"),
        (r#"{"a":[1 2]}"#, "invalid character '2' after array element"),
        (r#"{"a":[1,]}"#, "invalid character ']' looking for beginning of value"),
        (r#"{"a":-}"#, "invalid character '}' in numeric literal"),
        (r#"{"a":1.}"#, "invalid character '}' in numeric literal"),
        (r#"{"a":1e+}"#, "invalid character '}' in numeric literal"),
        (r#"{"a":nulL}"#, "invalid character 'L' in literal null (expecting 'l')"),
        (r#"{"a":tru"#, "unexpected end of JSON input"),
        (r#"{"a":1."#, "unexpected end of JSON input"),
        (r#"{"a":"\u12"#, "unexpected end of JSON input"),
        (r#"{"a":"\u12G4"}"#, r"invalid escape sequence `\u12G` in string"),
        (r#"{"a":"\"#, "unexpected end of JSON input"),
        (r#"{"a":1]"#, "invalid character ']' after object key:value pair"),
    ] {
        assert_eq!(ComponentConfig::decode(json).unwrap_err().to_string(), expected, "{json}");
    }
}
