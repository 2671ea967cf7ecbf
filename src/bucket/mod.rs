//! Buckets and keys.

use std::fmt;
use std::str::FromStr;

/// How a key finds its bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Hash {
    /// The mapping of Knative's hash package.
    Knative,
    /// The hash ring.
    Ring,
}

impl FromStr for Hash {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "knative" => Ok(Self::Knative),
            "ring" => Ok(Self::Ring),
            other => Err(other.to_owned()),
        }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Knative => "knative",
            Self::Ring => "ring",
        })
    }
}
