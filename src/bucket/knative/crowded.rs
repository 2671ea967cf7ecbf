//! Sets in which names meet at one angle. Every bucket is placed in turn, as Go does it, but from known states, in an
//! order fixed beforehand, into a set of bits on the stack.

use super::fnv::{self, ANGLES, Low};
use super::lanes;

/// Buckets moved forward at a time.
const BLOCK: usize = 32;

/// All buckets in the bytewise order of their names.
pub(super) struct Crowded(Box<[Block]>);

struct Block {
    /// The low states after the names. Those beyond the last bucket are fillers.
    low: [Low; BLOCK],
    /// The whole states after the names, and the buckets' indices in the set.
    buckets: Box<[(u64, u32)]>,
}

impl Crowded {
    /// `states` are those after the names, `by_name` the indices into them in the bytewise order of the names.
    pub(super) fn new(states: &[u64], by_name: &[u32]) -> Self {
        let block = |indices: &[u32]| {
            let buckets: Box<[_]> = indices.iter().map(|&index| (states[index as usize], index)).collect();
            let mut low = [0; BLOCK];
            for (low, &(state, _)) in low.iter_mut().zip(&buckets) {
                *low = fnv::low(state);
            }
            Block { low, buckets }
        };
        Self(by_name.chunks(BLOCK).map(block).collect())
    }

    /// The index of the bucket that has `key`, whose search begins at the angle `start`.
    pub(super) fn owner(&self, start: Low, key: &[u8]) -> usize {
        let mut taken = Taken::default();
        // The distance above, the index below: the least is the nearest.
        let mut least = u32::MAX;
        for Block { low, buckets } in &self.0 {
            let states = lanes::forward(*low, key);
            for (&state, &(name_state, index)) in states.iter().zip(buckets) {
                let angle = if taken.take(state) { state } else { taken.take_elsewhere(name_state, key) };
                least = least.min(u32::from(fnv::distance(start, angle)) << 16 | index);
            }
            // A bucket stands at the start itself: none that comes later is met before it. In a full set this spares
            // the last ones, which go on for ever so long until they find their angle.
            if least >> 16 == 0 {
                break;
            }
        }
        (least & 0xffff) as usize
    }
}

/// The angles at which a bucket stands already.
#[derive(Default)]
struct Taken([u64; ANGLES / 64]);

impl Taken {
    /// Takes the angle of `state`; false if it is taken already.
    fn take(&mut self, state: Low) -> bool {
        let angle = fnv::angle(state);
        let (word, bit) = (&mut self.0[angle / 64], 1 << (angle % 64));
        let free = *word & bit == 0;
        *word |= bit;
        free
    }

    /// Goes on, from the state after a bucket's name and over the key, to the first free angle, and takes it.
    ///
    /// There is a free one, since a set has at most as many buckets as there are angles. That the states on the way do
    /// not go round without meeting it is as certain as in Go: there are 2^64 of them.
    #[cold]
    #[inline(never)]
    fn take_elsewhere(&mut self, name_state: u64, key: &[u8]) -> Low {
        let mut state = fnv::hash(name_state, key);
        loop {
            state = fnv::hash_own_digits(state);
            if self.take(fnv::low(state)) {
                return fnv::low(state);
            }
        }
    }
}
