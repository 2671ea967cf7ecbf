//! K_LEADER_ELECTION_CONFIG: the JSON of knative.dev/pkg's `leaderelection.ComponentConfig`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::draft::{Draft, check_buckets};
use super::duration::Nanos;
use super::error::most_buckets;
use super::own::Own;
use super::timing::Raw;
use super::{Config, ConfigError, Env, JsonError, Parsed, Warning, json, keys};
use crate::bucket::Hash;

/// The variable's content as Go has it, before any check. Durations are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentConfig {
    /// The component it was written for.
    pub component: String,
    /// The number of buckets.
    pub buckets: u32,
    /// lease-duration.
    pub lease_duration: i64,
    /// renew-deadline.
    pub renew_deadline: i64,
    /// retry-period.
    pub retry_period: i64,
    /// What an identity begins with; empty: it is made up.
    pub identity: String,
    /// From `{component}.{queue}` to what replaces it.
    pub lease_names_prefix_mapping: Option<BTreeMap<String, String>>,
}

impl ComponentConfig {
    /// Decodes JSON as Go's encoding/json does.
    ///
    /// # Errors
    /// [`JsonError`], with Go's text.
    pub fn decode(json: &str) -> Result<Self, JsonError> {
        json::decode(json).map(|decoded| decoded.config)
    }

    /// Encodes it as Go's encoding/json does, byte for byte.
    pub fn encode(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        // Go escapes what HTML or JavaScript could trip over. Outside of strings none of these occurs.
        let mut out = String::with_capacity(json.len());
        for c in json.chars() {
            match c {
                '<' => out.push_str(r"\u003c"),
                '>' => out.push_str(r"\u003e"),
                '&' => out.push_str(r"\u0026"),
                '\u{2028}' => out.push_str(r"\u2028"),
                '\u{2029}' => out.push_str(r"\u2029"),
                c => out.push(c),
            }
        }
        out
    }

    /// What a controller would write for a component that is to run by `config`. Our own keys have no place in it.
    pub fn of(component: &str, config: &Config) -> Self {
        Self {
            component: component.to_owned(),
            buckets: config.buckets,
            lease_duration: Nanos::from(config.timing.lease_duration).0,
            renew_deadline: Nanos::from(config.timing.renew_deadline).0,
            retry_period: Nanos::from(config.timing.retry_period).0,
            identity: config.identity.clone().unwrap_or_default(),
            lease_names_prefix_mapping: Some(config.prefix_map.clone()).filter(|map| !map.is_empty()),
        }
    }
}

pub(super) fn read(component: &str, json: &str, env: &Env) -> Result<Parsed, ConfigError> {
    let inside = |error| ConfigError::InVariable(Box::new(error));
    let json::Decoded { config: found, unknown } = json::decode(json).map_err(|error| inside(error.into()))?;
    if found.buckets == 0 {
        return Err(inside(ConfigError::NoBuckets { most: most_buckets(Some(Hash::Knative)) }));
    }
    check_buckets(found.buckets, Some(Hash::Knative)).map_err(inside)?;
    let timing = Raw {
        lease: Nanos(found.lease_duration),
        renew: Nanos(found.renew_deadline),
        retry: Nanos(found.retry_period),
    };
    timing.check().map_err(|error| inside(error.into()))?;

    let mut warnings: Vec<_> = unknown
        .into_iter()
        .map(|field| Warning::UnknownField { nearest: keys::nearest_field(&field), field })
        .collect();
    if !found.component.is_empty() && found.component != component {
        warnings.push(Warning::OtherComponent { found: found.component, component: component.to_owned() });
    }
    let own = Own::read(None, env)?;
    if own.hash == Some(Hash::Ring) {
        warnings.push(Warning::HashIgnored);
    }
    let config = Draft {
        timing,
        buckets: found.buckets,
        prefix_map: found.lease_names_prefix_mapping.unwrap_or_default(),
        identity: Some(found.identity).filter(|identity| !identity.is_empty()),
        own: Own { hash: Some(Hash::Knative), ..own },
        fixed: true,
    }
    .finish()?;
    Ok(Parsed { config, warnings })
}
