//! FNV-1a of 64 bits, and its low bits alone.

/// The low 16 bits of a state of FNV-1a. Only 11 of them decide; those above are as in the whole state, and unused.
pub(super) type Low = u16;

/// How many angles there are: `universe` in `knative.dev/pkg/hash`.
pub(super) const UNIVERSE: u16 = 2_048;
/// The same as a length.
pub(super) const ANGLES: usize = UNIVERSE as usize;

/// The state of FNV-1a before the first byte.
pub(super) const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The low 16 bits of FNV's prime. The upper part is a shift by 40, which the low bits never see.
pub(super) const LOW_PRIME: Low = 0x01b3;
/// The number that undoes a multiplication by [`LOW_PRIME`] modulo 2^16.
pub(super) const LOW_INVERSE: Low = inverse(LOW_PRIME);

/// From each low state, the angle after the bytes of `start-angle-salt`.
static SALTED: [Low; ANGLES] = salted_angles(b"start-angle-salt");

/// The state after `bytes`, from `state` on.
pub(super) const fn hash(mut state: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        state = (state ^ bytes[i] as u64).wrapping_mul(PRIME);
        i += 1;
    }
    state
}

/// The state after the digits of `state` itself, as Go's `strconv.AppendUint(.., 16)` writes them: lower case, no
/// zeros before.
pub(super) fn hash_own_digits(state: u64) -> u64 {
    let digits = (64 - state.leading_zeros()).div_ceil(4).max(1);
    (0..digits).rev().fold(state, |after, digit| {
        let nibble = ((state >> (4 * digit)) & 0xf) as usize;
        hash(after, &b"0123456789abcdef"[nibble..=nibble])
    })
}

/// The low bits of a state.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
pub(super) const fn low(state: u64) -> Low {
    state as Low
}

/// The angle of a state, as an index: below [`ANGLES`].
pub(super) const fn angle(state: Low) -> usize {
    (state % UNIVERSE) as usize
}

/// How far up from the angle `from` that of `state` is: below [`UNIVERSE`].
pub(super) const fn distance(from: Low, state: Low) -> Low {
    state.wrapping_sub(from) % UNIVERSE
}

/// The angle at which the search for a key begins, given the low state after the key.
pub(super) fn salted(state: Low) -> Low {
    SALTED[angle(state)]
}

const fn salted_angles(salt: &[u8]) -> [Low; ANGLES] {
    let mut angles = [0; ANGLES];
    let mut state = 0;
    while state < UNIVERSE {
        angles[state as usize] = low(hash(state as u64, salt)) % UNIVERSE;
        state += 1;
    }
    angles
}

/// Newton's iteration: each round doubles the low bits that are right, and an odd number is its own inverse in three.
const fn inverse(odd: Low) -> Low {
    let mut inverse = odd;
    let mut right = 3;
    while right < Low::BITS {
        inverse = inverse.wrapping_mul(2_u16.wrapping_sub(odd.wrapping_mul(inverse)));
        right *= 2;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(hash(BASIS, b""), BASIS);
        assert_eq!(hash(BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(BASIS, b"default/astart-angle-salt"), 0x4984_0f44_8dc5_36eb);
        assert_eq!(hash(hash(BASIS, b"adapter.q.00-of-03"), b"default/a"), 0xf7b7_f1a7_3889_1692);
    }

    #[test]
    fn digits_are_written_as_go_writes_them() {
        for state in [0, 1, 0xf, 0x10, 0xabc, 0x0791_673b_3745_7e88, u64::MAX] {
            assert_eq!(hash_own_digits(state), hash(state, format!("{state:x}").as_bytes()), "{state:x}");
        }
    }

    #[test]
    fn a_multiplication_is_undone() {
        assert_eq!(LOW_PRIME.wrapping_mul(LOW_INVERSE), 1);
    }

    #[test]
    fn the_salt_s_table_is_the_salt() {
        for key in ["", "a", "default/a", "ns/日本語"] {
            let salted_key = low(hash(hash(BASIS, key.as_bytes()), b"start-angle-salt"));
            assert_eq!(salted(low(hash(BASIS, key.as_bytes()))), salted_key % UNIVERSE, "{key}");
        }
    }
}
