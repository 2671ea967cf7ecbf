//! The fencing token: a number that only grows per bucket, so that a sink can refuse a stale sender (rule S9).

use std::fmt;
use std::str::FromStr;

/// Six digits of era, then the twenty digits of the resourceVersion of the take.
///
/// Comparable as a value and as the string it displays as. It only grows for one bucket, also over deletion of its
/// Lease, while the cluster's revision does not go back; the era is raised by whoever sees it go back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FencingToken {
    era: u32,
    revision: u64,
}

impl FencingToken {
    /// The largest era that six digits hold.
    pub const MAX_ERA: u32 = 999_999;

    /// The token of a take at `revision` in `era`; an era above [`Self::MAX_ERA`] counts as that.
    pub fn new(era: u32, revision: u64) -> Self {
        Self { era: era.min(Self::MAX_ERA), revision }
    }

    /// How often the cluster's revision was seen to go back.
    pub fn era(self) -> u32 {
        self.era
    }

    /// The resourceVersion of the take.
    pub fn revision(self) -> u64 {
        self.revision
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}{:020}", self.era, self.revision)
    }
}

/// A text that is no fencing token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fencing token: expected 26 digits, six of era and twenty of resourceVersion")]
pub struct TokenError(String);

impl FromStr for FencingToken {
    type Err = TokenError;
    fn from_str(s: &str) -> Result<Self, TokenError> {
        let bad = || TokenError(s.chars().take(64).collect());
        if s.len() != 26 || !s.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let (era, revision) = s.split_at(6);
        Ok(Self { era: era.parse().map_err(|_| bad())?, revision: revision.parse().map_err(|_| bad())? })
    }
}

impl serde::Serialize for FencingToken {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for FencingToken {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}
