//! The data of the ConfigMap (knative.dev/pkg, leaderelection/config.go and configmap/parse.go).

use std::collections::BTreeMap;

use super::draft::{Draft, check_buckets};
use super::duration::{self, Nanos};
use super::error::ValueError;
use super::own::{self, Own};
use super::timing::{Raw, Timing};
use super::{ConfigError, Env, Parsed, Warning, keys};
use crate::bucket::Hash;

/// What Knative reads.
#[derive(Debug, PartialEq)]
pub(super) struct Data {
    pub(super) timing: Raw,
    pub(super) buckets: u32,
    pub(super) prefix_map: BTreeMap<String, String>,
}

pub(super) fn read(data: Option<&BTreeMap<String, String>>, env: &Env) -> Result<Parsed, ConfigError> {
    let empty = BTreeMap::new();
    let data = data.unwrap_or(&empty);
    // A hash that does not parse is reported in its turn, after all that Knative would report.
    let found = as_knative(data, own::hash(Some(data), env).unwrap_or(None))?;
    found.timing.check()?;
    let config = Draft {
        timing: found.timing,
        buckets: found.buckets,
        prefix_map: found.prefix_map,
        own: Own::read(Some(data), env)?,
        ..Draft::default()
    }
    .finish()?;
    Ok(Parsed { config, warnings: warnings(data) })
}

/// Knative's parser, in its order. Only the upper bound of `buckets` is ours: that of the hash.
pub(super) fn as_knative(data: &BTreeMap<String, String>, hash: Option<Hash>) -> Result<Data, ConfigError> {
    let mut timing = Timing::IN_CONFIG_MAP;
    let [older, current] = [keys::TIMING.map(|(older, _)| older), keys::TIMING.map(|(_, current)| current)];
    for names in [older, current] {
        for (name, into) in names.into_iter().zip([&mut timing.lease, &mut timing.renew, &mut timing.retry]) {
            if let Some(text) = data.get(name) {
                *into = Nanos(duration::parse(text).map_err(|reason| failed(name, reason.into()))?);
            }
        }
    }
    let buckets = match data.get(keys::BUCKETS) {
        Some(text) => number(text).map_err(|reason| failed(keys::BUCKETS, reason))?,
        None => 1,
    };
    check_buckets(buckets, hash)?;
    let prefix_map = data.iter().filter_map(|(key, to)| mapping(key).map(|(_, from)| (from, to.clone()))).collect();
    Ok(Data { timing, buckets, prefix_map })
}

fn failed(key: &str, reason: ValueError) -> ConfigError {
    ConfigError::Parse { key: key.to_owned(), reason }
}

/// Go's `strconv.ParseUint(text, 10, 32)`: ASCII digits and nothing else, zeros before them allowed.
fn number(text: &str) -> Result<u32, ValueError> {
    let wrong = |reason| ValueError::Number { found: text.to_owned(), reason };
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    text.parse().map_err(|_| wrong("value out of range"))
}

/// What a `map-lease-prefix` key maps, with the separator: any one byte, unlooked at, with at least one more behind it.
fn mapping(key: &str) -> Option<(u8, String)> {
    match key.as_bytes().strip_prefix(keys::MAP_LEASE_PREFIX.as_bytes())? {
        [separator, from @ ..] if !from.is_empty() => Some((*separator, String::from_utf8_lossy(from).into_owned())),
        _ => None,
    }
}

fn warnings(data: &BTreeMap<String, String>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for key in data.keys() {
        match mapping(key) {
            Some((b'.', _)) => {}
            Some((_, maps)) => warnings.push(Warning::PrefixWithoutDot { key: key.clone(), maps }),
            None if keys::is_known(key) => {}
            None => warnings.push(Warning::UnknownKey { key: key.clone(), nearest: keys::nearest(key) }),
        }
    }
    for (older, current) in keys::TIMING {
        if let (Some(value), Some(wins)) = (data.get(older), data.get(current))
            && value != wins
        {
            warnings.push(Warning::OlderSpelling { older, value: value.clone(), current });
        }
    }
    warnings
}
