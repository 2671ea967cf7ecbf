//! Buckets and keys: how a queue's key space is cut, and which share a key falls into.
//!
//! A queue is cut into N buckets. A bucket's name is the name of its Lease, a key is a string, usually
//! `namespace/name`, and [`BucketSet::owner`] says which bucket has a key. Everything here is a pure function of its
//! arguments: no clock, no network, no state.
//!
//! | [`Hash`](enum@Hash) | what decides | what a change of N moves | up to |
//! | --- | --- | --- | --- |
//! | [`Hash::Knative`] | the bucket's *name* and the key, as `knative.dev/pkg/hash` has it | nearly every key, since a Lease's name says N | 2,048 |
//! | [`Hash::Ring`] | the bucket's *ordinal* and the key, on a hash ring | about 1 key in N + 1, always to or from the bucket that came or went | 65,536 |
//!
//! # Guarantees
//! - Every key, the empty one too, has exactly one bucket in a set.
//! - The answer is the same on every platform, in every process and in every release: replicas that agree on the
//!   layout agree on every key. Vectors in the tests pin it.
//! - Under [`Hash::Knative`] it is the answer that a Go replica gives, bit for bit.
//! - [`BucketSet::owner`] takes no lock and allocates nothing.
//!
//! # Caveats
//! Neither hash has a secret. Who can choose keys can choose them all for one bucket.

mod error;
mod hash;
mod knative;
mod name;
mod ring;
mod set;

pub use error::{BucketError, NameError};
pub use hash::{Hash, KNATIVE_MAX, RING_MAX};
pub use name::{check_lease_name, key, lease_name, parse_lease_name};
pub use set::{Bucket, BucketSet};

#[cfg(test)]
mod tests;
