//! What is not wrong enough to refuse, but is hardly what was meant.

use std::fmt;

/// Something in a configuration that has no effect, or not the one it seems to have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A key of the ConfigMap that means nothing.
    UnknownKey {
        /// The key.
        key: String,
        /// The known key that is the fewest edits away.
        nearest: &'static str,
    },
    /// A field of K_LEADER_ELECTION_CONFIG that means nothing.
    UnknownField {
        /// The field.
        field: String,
        /// The known field that is the fewest edits away.
        nearest: &'static str,
    },
    /// `map-lease-prefix` is followed by something else than a dot, which Knative drops without a look.
    PrefixWithoutDot {
        /// The key.
        key: String,
        /// The prefix that it maps all the same.
        maps: String,
    },
    /// An older spelling stands beside the current one, which wins.
    OlderSpelling {
        /// The older key.
        older: &'static str,
        /// Its value, which is not used.
        value: String,
        /// The current key.
        current: &'static str,
    },
    /// K_LEADER_ELECTION_CONFIG was written for another component; as in Knative, that is not used.
    OtherComponent {
        /// The component it names.
        found: String,
        /// The component that reads it.
        component: String,
    },
    /// LEASEHOLD_BUCKET_HASH beside K_LEADER_ELECTION_CONFIG, where the hash is always knative.
    HashIgnored,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key, nearest } => {
                write!(f, "unknown key {key:?} has no effect; the nearest known key is {nearest:?}")
            }
            Self::UnknownField { field, nearest } => write!(
                f,
                "K_LEADER_ELECTION_CONFIG: unknown field {field:?} has no effect; the nearest known field is {nearest:?}"
            ),
            Self::PrefixWithoutDot { key, maps } => write!(
                f,
                "key {key:?} maps the prefix {maps:?}: the character after \"map-lease-prefix\" is dropped and should be a \
                 dot"
            ),
            Self::OlderSpelling { older, value, current } => {
                write!(f, "key {older:?} ({value:?}) has no effect beside {current:?}, which wins; remove it")
            }
            Self::OtherComponent { found, component } => write!(
                f,
                "K_LEADER_ELECTION_CONFIG was written for the component {found:?}; {component:?} uses the rest of it"
            ),
            Self::HashIgnored => f.write_str(
                "LEASEHOLD_BUCKET_HASH has no effect beside K_LEADER_ELECTION_CONFIG, where the hash is always knative",
            ),
        }
    }
}
