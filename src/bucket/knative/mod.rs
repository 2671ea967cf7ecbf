//! The mapping of `knative.dev/pkg/hash`, bit for bit, and fast.
//!
//! # The mapping
//! FNV-1a of 64 bits, modulo 2,048, is an *angle*. A bucket stands at the angle of its name followed by the key, with
//! nothing between; the search begins at the angle of the key followed by `start-angle-salt`; the owner is the first
//! bucket met from there on, upwards and round. Where two buckets would stand at one angle, the one whose name is
//! greater goes on: the hash in hexadecimal is appended to its bytes, and so again until it finds a free angle.
//! (A second salt, for the step to further buckets, plays no part in finding one owner.)
//!
//! # Why it can be fast
//! - FNV goes byte by byte, so the state after a bucket's name is computed once. A lookup feeds the key only.
//! - An angle is the low 11 bits of the state, and the low bits of the next state depend on the low bits of this one
//!   alone: `(s ^ byte) * 435` modulo 2,048. Sixteen bits a bucket are enough, and many go through one instruction.
//! - A byte maps the 2,048 low states one to one onto themselves. So two names stand at one angle either for every key
//!   or for none; which is known beforehand. And a byte's step can be undone: instead of asking of each bucket where
//!   it stands, one can ask of each angle, from the start on, which state leads to it, and whether that is a bucket's.
//!   With many buckets the answer is near, so the time does not grow with their number.
//! - The salt's bytes are always the same: a table says where they lead from each of the 2,048 states.
//!
//! # The ways
//! [`Way::Few`], [`Way::Some`] and [`Way::More`] move all buckets forward at once, [`Way::Many`] goes backwards from the
//! angles. A set with names that meet at one angle goes [`Way::Crowded`], which places one bucket after the other as Go
//! does. Names of Leases do not meet up to about a hundred buckets; of a thousand about every fifth does.

mod crowded;
mod fnv;
mod lanes;

#[cfg(test)]
mod choose;
#[cfg(test)]
mod tests;

use crowded::Crowded;
use fnv::{ANGLES, Low};

/// What answers which bucket has a key; made for sets of 2 to 2,048 distinct names.
pub(super) struct Knative(Way);

/// No bucket.
const NONE: u16 = u16::MAX;

enum Way {
    /// Up to 15 buckets: 16 lanes, the last of which is the key's own, from which the start comes.
    Few([Low; 16]),
    /// Up to 31, likewise.
    Some([Low; 32]),
    /// Up to 63, likewise.
    More([Low; 64]),
    /// Whose state this is, if a bucket's: for each of the 2,048.
    Many(Box<[u16; ANGLES]>),
    /// Names that meet.
    Crowded(Crowded),
}

impl Knative {
    /// `by_name` has the indices into `names` in the bytewise order of the names, which is that of Go's placing.
    pub(super) fn new(names: &[Box<str>], by_name: &[u32]) -> Self {
        let states: Vec<u64> = names.iter().map(|name| fnv::hash(fnv::BASIS, name.as_bytes())).collect();
        let mut bucket_of = Box::new([NONE; ANGLES]);
        for (index, &state) in (0..).zip(&states) {
            let slot = &mut bucket_of[fnv::angle(fnv::low(state))];
            if *slot != NONE {
                return Self(Way::Crowded(Crowded::new(&states, by_name)));
            }
            *slot = index;
        }
        Self(match names.len() {
            ..16 => Way::Few(fill(&states)),
            16..32 => Way::Some(fill(&states)),
            32..64 => Way::More(fill(&states)),
            _ => Way::Many(bucket_of),
        })
    }

    /// The index of the bucket that has `key`.
    pub(super) fn owner(&self, key: &[u8]) -> usize {
        match &self.0 {
            Way::Few(lanes) => nearest::<16, 16>(lanes::forward(*lanes, key)),
            Way::Some(lanes) => nearest::<32, 32>(lanes::forward(*lanes, key)),
            Way::More(lanes) => nearest::<64, 32>(lanes::forward(*lanes, key)),
            Way::Many(bucket_of) => first_from(bucket_of, start(key), key),
            Way::Crowded(crowded) => crowded.owner(start(key), key),
        }
    }
}

/// A lane for each bucket, and the key's own in the last. The lanes between repeat the first bucket and come after it,
/// so they are never the first at their distance.
fn fill<const N: usize>(states: &[u64]) -> [Low; N] {
    let mut lanes = [fnv::low(states[0]); N];
    for (lane, &state) in lanes.iter_mut().zip(states) {
        *lane = fnv::low(state);
    }
    lanes[N - 1] = fnv::low(fnv::BASIS);
    lanes
}

/// The angle from which the search for the key's owner begins.
fn start(key: &[u8]) -> Low {
    let [state] = lanes::forward([fnv::low(fnv::BASIS)], key);
    fnv::salted(state)
}

/// The lane that is met first, going up from the start that the last lane gives. Looks at `PART` lanes at a time.
fn nearest<const N: usize, const PART: usize>(mut lanes: [Low; N]) -> usize {
    // A distance has 11 bits, which leaves 5 for a lane in its part: with the distance above, the least is the least
    // distance and the first lane that has it.
    const { assert!(PART.is_power_of_two() && PART <= 32 && N.is_multiple_of(PART)) };
    let start = fnv::salted(lanes[N - 1]);
    // The last lane is no bucket: it goes on as one more filler.
    lanes[N - 1] = lanes[0];
    let mut nearest = (Low::MAX, 0);
    for (number, part) in lanes.as_chunks::<PART>().0.iter().enumerate() {
        let mut least = Low::MAX;
        for (lane, &state) in (0..).zip(part) {
            least = least.min(fnv::distance(start, state) << PART.ilog2() | lane);
        }
        let (distance, lane) = (least >> PART.ilog2(), usize::from(least) % PART);
        nearest = nearest.min((distance, number * PART + lane));
    }
    nearest.1
}

/// The bucket at the first angle from `start` on that leads back to a bucket's state.
fn first_from(bucket_of: &[u16; ANGLES], start: Low, key: &[u8]) -> usize {
    // How many angles are undone at a time. With 64 buckets an owner is about so far away.
    const BLOCK: u16 = 32;
    for block in 0..(fnv::UNIVERSE / BLOCK) {
        let angles: [Low; BLOCK as usize] = lanes::counting_from(start.wrapping_add(block * BLOCK));
        for state in lanes::backward(angles, key) {
            let bucket = bucket_of[fnv::angle(state)];
            if bucket != NONE {
                return usize::from(bucket);
            }
        }
    }
    // Not reached: the blocks are every angle, each state is led to by one, and there are buckets.
    0
}
