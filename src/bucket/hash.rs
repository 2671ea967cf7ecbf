//! Which hash cuts the key space, and how many buckets it can have.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::BucketError;

/// The most buckets under [`Hash::Knative`]: each has a place of its own among 2,048 (`universe` in
/// `knative.dev/pkg/hash`).
pub const KNATIVE_MAX: u32 = 2_048;

/// The most buckets under [`Hash::Ring`].
pub const RING_MAX: u32 = 65_536;

/// How a key finds its bucket: the configuration key `bucket-hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hash {
    /// The mapping of `knative.dev/pkg/hash`, for Leases that Go replicas may share. 1 to [`KNATIVE_MAX`] buckets.
    Knative,
    /// A hash ring, for more buckets and for layouts that grow. 1 to [`RING_MAX`] buckets.
    Ring,
}

impl Hash {
    /// The most buckets that this hash can have.
    pub const fn max_buckets(self) -> u32 {
        match self {
            Self::Knative => KNATIVE_MAX,
            Self::Ring => RING_MAX,
        }
    }

    /// The word for it in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Knative => "knative",
            Self::Ring => "ring",
        }
    }

    /// Whether this hash can have so many buckets.
    ///
    /// # Errors
    /// [`BucketError::Count`], in Knative's words, for none and for more than [`max_buckets`](Self::max_buckets).
    pub const fn check_buckets(self, buckets: u32) -> Result<(), BucketError> {
        let max = self.max_buckets();
        if buckets == 0 || buckets > max { Err(BucketError::Count { found: buckets, max }) } else { Ok(()) }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Hash {
    type Err = BucketError;

    /// Reads the word exactly as [`as_str`](Hash::as_str) writes it; blanks and capitals are not forgiven, as Knative
    /// forgives them in no value.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        [Self::Knative, Self::Ring]
            .into_iter()
            .find(|hash| hash.as_str() == s)
            .ok_or_else(|| BucketError::UnknownHash { found: s.to_owned() })
    }
}
