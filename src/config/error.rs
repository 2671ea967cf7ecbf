//! What can be wrong with a configuration. Where Knative has a text for it, the text is Knative's.

use super::duration::{DurationError, Nanos};
use super::json::JsonError;
use super::quote;
use super::timing::TimingError;
use crate::bucket::Hash;

/// Why a configuration is refused. Nothing of a refused configuration is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is not what its key takes.
    #[error("failed to parse \"{key}\": {reason}")]
    Parse {
        /// The key, or the environment variable that stands for it.
        key: String,
        /// What is wrong with the value.
        reason: ValueError,
    },
    /// The number of buckets is out of bounds. The bound is the hash's: 2,048 for knative, 65,536 for ring.
    #[error("buckets: value must be between 1 <= {found} <= {most}")]
    Buckets {
        /// What was asked for.
        found: u32,
        /// The most that the hash can take.
        most: u32,
    },
    /// K_LEADER_ELECTION_CONFIG asks for no buckets, with which a replica would never act on anything.
    #[error(
        "buckets: value must be between 1 <= 0 <= {most}: Buckets is missing, null or 0, and a replica of 0 buckets acts \
         on nothing; write for example {{\"Buckets\":1,\"LeaseDuration\":15000000000,\"RenewDeadline\":10000000000,\
         \"RetryPeriod\":2000000000}}, or leave the variable empty"
    )]
    NoBuckets {
        /// The most that the hash can take.
        most: u32,
    },
    /// One of our own durations is out of bounds.
    #[error("{key}: value must be between {least} <= {found} <= {most}")]
    Range {
        /// The key, or the environment variable that stands for it.
        key: String,
        /// What was asked for.
        found: Nanos,
        /// The least it may be.
        least: Nanos,
        /// The most it may be.
        most: Nanos,
    },
    /// The three durations are not right together.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The strategy is known, but not in this release.
    #[error("{key}: \"{asked}\" is not in this release; it has {known}")]
    StrategyNotBuilt {
        /// The key, or the environment variable that stands for it.
        key: String,
        /// The strategy that was asked for.
        asked: super::StrategyKind,
        /// Those that exist.
        known: &'static str,
    },
    /// K_LEADER_ELECTION_CONFIG is not JSON, or a field is of another type.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The error is in K_LEADER_ELECTION_CONFIG.
    #[error("K_LEADER_ELECTION_CONFIG: {0}")]
    InVariable(Box<ConfigError>),
    /// SYSTEM_NAMESPACE says nothing.
    #[error(
        "the environment variable SYSTEM_NAMESPACE is {found}: it names the namespace of the Leases and of the ConfigMap; \
         set it in the container's env, usually from fieldRef metadata.namespace"
    )]
    NoNamespace {
        /// "not set" or "empty".
        found: &'static str,
    },
}

/// What is wrong with one value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Not a duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// Not a whole number in decimal digits; Go's text.
    #[error("strconv.ParseUint: parsing {}: {reason}", quote::string(.found))]
    Number {
        /// What was found.
        found: String,
        /// Go's reason.
        reason: &'static str,
    },
    /// None of the words that the key takes.
    #[error("{} is none of {known}", quote::string(.found))]
    Word {
        /// What was found.
        found: String,
        /// The words that it takes.
        known: &'static str,
    },
}

/// Most buckets of the knative hash: the size of its universe.
const KNATIVE_MOST: u32 = 2_048;
/// Most buckets of the ring.
const RING_MOST: u32 = 65_536;

/// The most buckets that a hash can take; the ring's where none is asked for, since more than 10 buckets get the ring.
pub(super) const fn most_buckets(hash: Option<Hash>) -> u32 {
    match hash {
        Some(Hash::Knative) => KNATIVE_MOST,
        Some(Hash::Ring) | None => RING_MOST,
    }
}
