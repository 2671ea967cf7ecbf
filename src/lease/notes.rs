//! The annotations that we write into Leases.
//!
//! # Guarantees
//! - Each says a format version `v`. One that is higher than [`VERSION`] reads as [`Note::Later`]; fields that are not
//!   known are ignored; what is no such annotation at all reads as [`Note::None`], as if it were not there.

use crate::bucket::Hash;
use crate::leader::{FencingToken, Saved};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The format version that this code writes.
pub const VERSION: u32 = 1;

/// No duration found in a Lease binds longer (rule S4 for foreign holders, the same for ours).
pub(super) const LONGEST: Duration = Duration::from_hours(24);

/// Who holds a bucket, repeated beside holderIdentity.
pub const HOLDER: &str = "leasehold.dev/holder";
/// That the last holder released it in good order.
pub const RELEASE: &str = "leasehold.dev/release";
/// That one of us made it, empty.
pub const MADE: &str = "leasehold.dev/made";
/// The layout of a queue, in its layout Lease.
pub const LAYOUT: &str = "leasehold.dev/layout";
/// The position of a bucket's source.
pub const CHECKPOINT: &str = "leasehold.dev/checkpoint";

/// An annotation as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Note<T> {
    /// Not there, or not readable as one of ours.
    #[default]
    None,
    /// Of a later format version. Of what it says only this is read: every version repeats holderIdentity so.
    Later {
        /// Its version.
        v: u64,
        /// The holder that it repeats, where it says one.
        holder: Option<String>,
    },
    /// Ours.
    Known(T),
}

impl<T: DeserializeOwned> Note<T> {
    pub(super) fn read(text: Option<&str>) -> Self {
        #[derive(Deserialize)]
        struct Versioned {
            v: u64,
            #[serde(default)]
            holder: serde_json::Value,
        }
        let Some(text) = text else { return Self::None };
        match serde_json::from_str::<Versioned>(text) {
            Ok(Versioned { v, holder }) if v > u64::from(VERSION) => {
                Self::Later { v, holder: holder.as_str().map(str::to_owned) }
            }
            Ok(_) => serde_json::from_str(text).map_or(Self::None, Self::Known),
            Err(_) => Self::None,
        }
    }
}

impl<T> Note<T> {
    /// The annotation, where it is one that this code knows.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(note) => Some(note),
            Self::None | Self::Later { .. } => None,
        }
    }
}

/// Which layout of a queue: the same values again are another layout (design section 1).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LayoutId {
    /// The uid of the layout Lease.
    pub uid: String,
    /// Grows by one at each change.
    pub generation: u64,
}

/// The member Lease of a holder in balanced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRef {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// Vouches for a holder: it is one of us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HolderNote {
    /// Format version.
    pub v: u32,
    /// Repeats holderIdentity.
    pub holder: String,
    /// The duration that binds, rounded up.
    pub lease_duration_seconds: u32,
    /// The layout under which it was taken.
    pub layout: LayoutId,
    /// In balanced: its membership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberRef>,
}

impl HolderNote {
    /// The duration that binds. At most 24 h: an annotation that a person mistyped must not stop a bucket for years.
    pub fn duration(&self) -> Duration {
        Duration::from_secs(u64::from(self.lease_duration_seconds)).min(LONGEST)
    }
}

/// Says that the bucket was released in good order by the write whose values it repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseNote {
    /// Format version.
    pub v: u32,
    /// leaseTransitions of that write.
    pub lease_transitions: i64,
    /// renewTime of that write.
    pub renew_time: String,
    /// The longest duration that has bound in this Lease.
    pub lease_duration_seconds: u32,
}

/// The stamp of one of us who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeNote {
    /// Format version.
    pub v: u32,
    /// The longest duration that has bound under this name, as far as its maker knew.
    pub lease_duration_seconds: u32,
}

/// How a queue is cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cut {
    /// `standard` or `balanced`.
    pub strategy: String,
    /// How keys map to buckets.
    pub hash: HashName,
    /// How many buckets.
    pub buckets: u32,
    /// What their names begin with.
    pub prefix: String,
}

/// [`Hash`](enum@Hash) as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HashName {
    /// Knative's.
    Knative,
    /// The ring.
    Ring,
}

impl From<Hash> for HashName {
    fn from(hash: Hash) -> Self {
        match hash {
            Hash::Knative => Self::Knative,
            Hash::Ring => Self::Ring,
        }
    }
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hash = match self.hash {
            HashName::Knative => "knative",
            HashName::Ring => "ring",
        };
        write!(f, "strategy {}, bucket-hash {hash}, {} buckets, prefix {}", self.strategy, self.buckets, self.prefix)
    }
}

/// The layout of a queue: what stands in its layout Lease (design section 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutNote {
    /// Format version.
    pub v: u32,
    /// How the queue is cut.
    #[serde(flatten)]
    pub cut: Cut,
    /// Grows by one at each change.
    pub generation: u64,
    /// Nobody takes before it is opened (design 5.1, first start).
    pub open: bool,
    /// The generation whose barrier somebody has passed; a swap drops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<u64>,
    /// How often the cluster's revision was seen to go back (rule S9).
    #[serde(default)]
    pub era: u32,
    /// The longest lease-duration of the queue.
    pub lease_duration_seconds: u32,
    /// The layouts before it, back to the last settled one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Cut>,
}

impl LayoutNote {
    /// The longest lease-duration of the queue. At most 24 h, as everything that is found in a Lease.
    pub fn longest(&self) -> Duration {
        Duration::from_secs(u64::from(self.lease_duration_seconds)).min(LONGEST)
    }

    /// Whether somebody has passed the barrier of the layout in force.
    pub fn is_settled(&self) -> bool {
        self.settled == Some(self.generation)
    }
}

/// The position of a bucket's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckpointNote {
    /// Format version.
    pub(super) v: u32,
    /// The token of the term that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<FencingToken>,
    /// What the author stored.
    pub(super) position: String,
}

impl CheckpointNote {
    pub(super) fn saved(&self) -> Saved {
        Saved { position: self.position.clone(), token: self.token }
    }
}
