//! Up to which scheduled time every tick of a bucket has been answered: what its checkpoint says.
//!
//! # Guarantees
//! - [`Position::answered_before`] never passes a tick that is still out, in whatever order they are answered.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A checkpoint as it is written: every tick scheduled before this instant has been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Text {
    answered_before: Timestamp,
}

/// Reads a checkpoint.
///
/// # Errors
/// It is none of this adapter's.
pub(super) fn parse(text: &str) -> Result<Timestamp, serde_json::Error> {
    serde_json::from_str::<Text>(text).map(|t| t.answered_before)
}

/// Writes a checkpoint.
pub(super) fn format(answered_before: Timestamp) -> String {
    // A struct of one timestamp: it can't fail.
    serde_json::to_string(&Text { answered_before }).unwrap_or_default()
}

/// Ticks that are out, and the time before which all were begun.
#[derive(Debug)]
pub(super) struct Position {
    begun_before: Timestamp,
    out: BTreeMap<Timestamp, usize>,
}

impl Position {
    /// Every tick before `from` has been answered.
    pub(super) fn new(from: Timestamp) -> Self {
        Self { begun_before: from, out: BTreeMap::new() }
    }

    /// Every tick before `at` has been begun. Never goes back.
    pub(super) fn begun(&mut self, at: Timestamp) {
        self.begun_before = self.begun_before.max(at);
    }

    /// The tick of some source at `at` is out.
    pub(super) fn sent(&mut self, at: Timestamp) {
        *self.out.entry(at).or_default() += 1;
    }

    /// It was answered.
    pub(super) fn answered(&mut self, at: Timestamp) {
        if let Some(n) = self.out.get_mut(&at) {
            *n -= 1;
            if *n == 0 {
                self.out.remove(&at);
            }
        }
    }

    /// Every tick scheduled before this has been answered.
    pub(super) fn answered_before(&self) -> Timestamp {
        self.out.keys().next().map_or(self.begun_before, |first| self.begun_before.min(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_second(s).expect("in range")
    }

    #[test]
    fn round_trip_and_garbage() {
        assert_eq!(parse(&format(at(5))).expect("ours"), at(5));
        assert!(parse("5").is_err());
        assert!(parse("{}").is_err());
    }

    proptest! {
        #[test]
        fn never_passes_what_is_out(order in Just((0i64..20).collect::<Vec<_>>()).prop_shuffle()) {
            let mut p = Position::new(at(0));
            for t in 0..20 {
                p.sent(at(t));
            }
            p.begun(at(20));
            let mut left: std::collections::BTreeSet<i64> = (0..20).collect();
            for t in order {
                p.answered(at(t));
                left.remove(&t);
                let expected = left.first().copied().unwrap_or(20);
                prop_assert_eq!(p.answered_before(), at(expected));
            }
        }
    }
}
