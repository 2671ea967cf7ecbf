//! Many low states at once.
//!
//! Plain arrays and loops of a fixed length, which the compiler turns into vector instructions of whatever machine it
//! builds for. Each function is kept out of line on purpose: seen together with the table lookups that follow it, the
//! compiler keeps the lanes apart instead, at five times the cost.

use super::fnv::{LOW_INVERSE, LOW_PRIME, Low};

/// Each state after the bytes of `key`.
#[inline(never)]
pub(super) fn forward<const N: usize>(mut states: [Low; N], key: &[u8]) -> [Low; N] {
    for &byte in key {
        for state in &mut states {
            *state = (*state ^ Low::from(byte)).wrapping_mul(LOW_PRIME);
        }
    }
    states
}

/// The states from which the bytes of `key` lead to these.
#[inline(never)]
pub(super) fn backward<const N: usize>(mut states: [Low; N], key: &[u8]) -> [Low; N] {
    for &byte in key.iter().rev() {
        for state in &mut states {
            *state = state.wrapping_mul(LOW_INVERSE) ^ Low::from(byte);
        }
    }
    states
}

/// `first` and the states after it.
pub(super) fn counting_from<const N: usize>(first: Low) -> [Low; N] {
    let mut states = [first; N];
    for (i, state) in (0..).zip(&mut states) {
        *state = state.wrapping_add(i);
    }
    states
}
