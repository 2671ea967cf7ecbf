//! What can be wrong with a set of buckets or with a Lease's name.

use thiserror::Error;

/// Why there is no such [`BucketSet`](super::BucketSet) or [`Hash`](super::Hash).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BucketError {
    /// A number of buckets that the hash cannot have. The text is Knative's (`leaderelection/config.go`), so that
    /// what people search for is found.
    #[error("buckets: value must be between 1 <= {found} <= {max}")]
    Count {
        /// How many buckets were asked for.
        found: u32,
        /// The most that the hash can have: [`KNATIVE_MAX`](super::KNATIVE_MAX) or [`RING_MAX`](super::RING_MAX).
        max: u32,
    },
    /// A bucket without a name. Its name is its Lease's, and a Lease has one.
    #[error("buckets: the name at position {position} is empty: a bucket is named as its Lease is, so give it a name")]
    Unnamed {
        /// Where the empty name stands among the names given, from 0.
        position: usize,
    },
    /// Not the name of a hash.
    #[error("bucket-hash: {found:?} is no hash of ours: set it to \"knative\" or \"ring\"")]
    UnknownHash {
        /// What was given.
        found: String,
    },
}

/// Why a string cannot be the name of a Lease: it must be a DNS subdomain (RFC 1123) of at most 253 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// No name at all.
    #[error(
        "a Lease cannot have an empty name: give the component and the queue a name, or the queue a prefix with \
         `map-lease-prefix.<component>.<queue>`"
    )]
    Empty,
    /// More than [`MAX_BYTES`](Self::MAX_BYTES).
    #[error(
        "the Lease name {name:?} has {} bytes and the API server takes {max}, and it is not cut, since two queues might \
         then share it: choose a shorter prefix with `map-lease-prefix.<component>.<queue>`",
        .name.len(), max = Self::MAX_BYTES
    )]
    TooLong {
        /// The whole name.
        name: String,
    },
    /// A character that a DNS subdomain cannot have.
    #[error(
        "the Lease name {name:?} has {found:?} at byte {at}, and the API server takes only a-z, 0-9, '-' and '.': \
         rename the component or the queue, or choose a prefix with `map-lease-prefix.<component>.<queue>`"
    )]
    Character {
        /// The whole name.
        name: String,
        /// The first character that cannot stand there.
        found: char,
        /// The byte at which it stands, from 0.
        at: usize,
    },
    /// A part between dots that is empty, or begins or ends with '-'.
    #[error(
        "the Lease name {name:?} has the part {part:?} at byte {at}, and each part between dots must begin and end with \
         a-z or 0-9: rename the component or the queue, or choose a prefix with \
         `map-lease-prefix.<component>.<queue>`"
    )]
    Part {
        /// The whole name.
        name: String,
        /// The part.
        part: String,
        /// The byte at which the part begins, from 0.
        at: usize,
    },
}

impl NameError {
    /// The most bytes that the name of a Lease can have.
    pub const MAX_BYTES: usize = 253;
}
