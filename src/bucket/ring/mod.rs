//! The hash ring: the `hashring` crate, laid out once and looked up through an index of its points.
//!
//! # The mapping
//! Stated so that anyone can build it in any language. `points` is 131,072 / `buckets` rounded down, but at least 100
//! and at most 1,024. SipHash is SipHash-2-4 with a key of zeros, which is what `hashring` uses.
//!
//! - A bucket has `points` points. Point `p` of the bucket with ordinal `b` stands at SipHash of eight bytes: `b`, then
//!   `p`, each as 32 bits in little-endian order.
//! - A key stands at SipHash of its bytes in UTF-8.
//! - The key's bucket is that of the first point at or above the key; above the last point, that of the first. Were two
//!   points to stand at one place, the lower ordinal's would count; none do, at any number of buckets.
//!
//! # Why so
//! - *The ordinal, not the name.* A Lease's name says how many buckets there are, so a ring of names would share out
//!   every key anew whenever that number changes, and `key % buckets` would do as well. With ordinals, one bucket more
//!   takes about one key in `buckets + 1`, and no key moves between the others (up to 128 buckets none; beyond, a few,
//!   since then the number of points changes too). And how evenly keys fall does not hang on how a queue is named.
//! - *Explicit bytes.* `Hash` of a type writes what the platform and the release like; this writes one slice of bytes.
//!   SipHash is specified and has implementations in every language. Its key is no secret and need not be: where a key
//!   falls is seen by all.
//! - *The number of points.* With 1,024 the largest of ten shares is about a tenth larger than the smallest, with 100
//!   a third. Beyond 128 buckets the ring is kept to a size that a processor's cache holds, down to 100 a bucket.

mod index;

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hash, Hasher};

use hashring::{DefaultHashBuilder, HashRing};

use index::Index;

/// What answers which bucket has a key.
pub(super) struct Ring(Index);

impl Ring {
    /// The ring of `buckets` buckets: 1 to [`RING_MAX`](super::RING_MAX).
    pub(super) fn new(buckets: u32) -> Self {
        // The ring's order is the index's: ascending, and of equal places the one that was added first.
        let points = hash_ring(buckets).into_iter();
        Self(Index::new(points.map(|point| (place(&point), point.bucket))))
    }

    /// The ordinal of the bucket that has `key`.
    pub(super) fn owner(&self, key: &[u8]) -> usize {
        self.0.owner(place(&Key(key)))
    }
}

/// Where something stands on the ring.
fn place(what: &impl Hash) -> u64 {
    DefaultHashBuilder.hash_one(what)
}

/// The ring as `hashring` has it.
fn hash_ring(buckets: u32) -> HashRing<Point> {
    let points = points(buckets);
    let mut ring = HashRing::new();
    ring.batch_add((0..buckets).flat_map(|bucket| (0..points).map(move |number| Point { bucket, number })).collect());
    ring
}

/// How many points each bucket has.
fn points(buckets: u32) -> u32 {
    (131_072 / buckets).clamp(100, 1_024)
}

/// One of a bucket's points.
#[derive(Debug, Clone, Copy)]
struct Point {
    bucket: u32,
    number: u32,
}

/// Feeds the eight bytes that place the point, in one write.
impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (bucket, number) = (u64::from(self.bucket), u64::from(self.number));
        state.write(&(number << 32 | bucket).to_le_bytes());
    }
}

/// A key, which feeds its bytes and nothing else, in one write.
struct Key<'a>(&'a [u8]);

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.0);
    }
}
