//! Where a bucket stands: what its checkpoint says about which ticks have been answered.
//!
//! # Guarantees
//! - What is written never passes a tick that was due and has not been answered, in whatever order answers come.
//! - A source whose sink is slow does not hold the others back: it is named as being behind, with its own time.
//! - What is written stays far below what a Lease carries: where many sources are behind, the whole bucket is.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A source's key, `namespace/name`.
pub(super) type Key = Arc<str>;

/// How many sources a checkpoint names as being behind. Keys have at most 317 bytes ([`has_room_for`]), so they
/// come to less than 12 KiB.
const MOST_BEHIND: usize = 32;

/// The longest key: a namespace of 63 bytes, a slash, a name of 253.
const LONGEST_KEY: usize = 63 + 1 + 253;

/// Whether a checkpoint has room for a key. Every key of the API is such a one; in a file anything may stand.
pub(super) fn has_room_for(key: &str) -> bool {
    // None that JSON writes with more than one byte.
    let plain = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
    key.len() <= LONGEST_KEY && key.bytes().all(plain)
}

/// A place in the order in which ticks are fired: by time, those of one time by key. It stands before its own tick.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) at: Timestamp,
    pub(super) key: Key,
}

impl Mark {
    /// Before every tick at `at`.
    pub(super) fn before(at: Timestamp) -> Self {
        Self { at, key: Key::default() }
    }

    /// From where on a source is not passed by this mark.
    fn place(&self, key: &str) -> Timestamp {
        if *key < *self.key { just_after(self.at) } else { self.at }
    }
}

/// A checkpoint: every tick before `mark` has been answered, but for the sources that are behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Saved {
    mark: Mark,
    behind: BTreeMap<Key, Timestamp>,
}

/// A checkpoint as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Text {
    /// Every tick scheduled before this has been answered.
    answered_before: Timestamp,
    /// Of those scheduled at that very time: the ones of keys before this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    key: String,
    /// But of these sources only those before the time given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    behind: BTreeMap<String, Timestamp>,
}

impl Saved {
    /// Every tick before `at` has been answered.
    pub(super) fn before(at: Timestamp) -> Self {
        Self { mark: Mark::before(at), behind: BTreeMap::new() }
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// It is none of this adapter's.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let Text { answered_before: at, key, behind } = serde_json::from_str(text)?;
        let behind = behind.into_iter().map(|(key, at)| (key.into(), at)).collect();
        Ok(Self { mark: Mark { at, key: key.into() }, behind })
    }

    /// As it is written.
    pub(super) fn text(&self) -> String {
        let behind = self.behind.iter().map(|(key, at)| (key.to_string(), *at)).collect();
        let text = Text { answered_before: self.mark.at, key: self.mark.key.to_string(), behind };
        // Times and texts: it can't fail.
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// The time before which every tick of the sources that are not behind has been answered.
    pub(super) fn at(&self) -> Timestamp {
        self.mark.at
    }

    /// The same, with what is older than `oldest` given up.
    pub(super) fn not_before(mut self, oldest: Timestamp) -> Self {
        self.behind.values_mut().for_each(|at| *at = (*at).max(oldest));
        self.mark = self.mark.max(Mark::before(oldest));
        self
    }
}

/// What has been begun in a term, and what of it is not answered.
#[derive(Debug)]
pub(super) struct Position {
    /// Every tick before this has been begun, or stands in `open`.
    begun: Mark,
    /// Ticks that have been begun, or have to be, and are not answered.
    open: BTreeMap<Key, BTreeSet<Timestamp>>,
    /// What the checkpoint at the start said of sources that have not been asked for since.
    behind: BTreeMap<Key, Timestamp>,
}

impl Position {
    /// Goes on from a checkpoint.
    pub(super) fn new(from: Saved) -> Self {
        Self { begun: from.mark, open: BTreeMap::new(), behind: from.behind }
    }

    /// From where on the ticks of a source are to be begun that has just become known.
    pub(super) fn place(&mut self, key: &str) -> Timestamp {
        self.behind.remove(key).unwrap_or_else(|| self.begun.place(key))
    }

    /// No source is waited for any longer that the checkpoint named and that has not been asked for since.
    pub(super) fn all_known(&mut self) {
        self.behind.clear();
    }

    /// The mark before which every tick has been begun, or is open.
    pub(super) fn begun(&self) -> &Mark {
        &self.begun
    }

    /// Every tick before `mark` has been begun, or is open. Never goes back.
    pub(super) fn begun_before(&mut self, mark: Mark) {
        if mark > self.begun {
            self.begun = mark;
        }
    }

    /// The clock was wrong: ticks count from `at`, though later ones have been begun.
    pub(super) fn restart(&mut self, at: Timestamp) {
        self.begun = Mark::before(at);
    }

    /// The tick of a source at `at` is out, or must be soon: nothing that is written passes it.
    pub(super) fn open(&mut self, key: &Key, at: Timestamp) {
        self.open.entry(Arc::clone(key)).or_default().insert(at);
    }

    /// It was answered, or need not be any more.
    pub(super) fn close(&mut self, key: &Key, at: Timestamp) {
        if let Some(open) = self.open.get_mut(key) {
            open.remove(&at);
            if open.is_empty() {
                self.open.remove(key);
            }
        }
    }

    /// How many ticks of a source before `at` are open.
    pub(super) fn opened_before(&self, key: &str, at: Timestamp) -> usize {
        self.open.get(key).map_or(0, |open| open.range(..at).count())
    }

    /// What may be written now.
    pub(super) fn saved(&self) -> Saved {
        let first = |(key, open): (&Key, &BTreeSet<Timestamp>)| open.first().map(|at| (Arc::clone(key), *at));
        let behind = || self.open.iter().filter_map(first).chain(self.behind.iter().map(|(k, t)| (Arc::clone(k), *t)));
        if self.open.len() + self.behind.len() <= MOST_BEHIND {
            return Saved { mark: self.begun.clone(), behind: behind().collect() };
        }
        let least = behind().map(|(key, at)| Mark { at, key }).min();
        let mark = least.map_or_else(|| self.begun.clone(), |least| least.min(self.begun.clone()));
        Saved { mark, behind: BTreeMap::new() }
    }
}

pub(super) fn back(t: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|d| t.checked_sub(d).ok()).unwrap_or(Timestamp::MIN)
}

pub(super) fn forth(t: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|d| t.checked_add(d).ok()).unwrap_or(Timestamp::MAX)
}

/// The last instant before `t`: a search after it finds `t` itself.
pub(super) fn just_before(t: Timestamp) -> Timestamp {
    back(t, Duration::from_nanos(1))
}

pub(super) fn just_after(t: Timestamp) -> Timestamp {
    forth(t, Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leader::MAX_CHECKPOINT;
    use proptest::prelude::*;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_second(s).expect("in range")
    }

    fn position(s: i64) -> Position {
        Position::new(Saved::before(at(s)))
    }

    #[test]
    fn what_is_written_can_be_read() {
        let plain = Saved::before(at(5));
        assert_eq!(plain.text(), r#"{"answeredBefore":"1970-01-01T00:00:05Z"}"#);
        assert_eq!(Saved::parse(&plain.text()).unwrap(), plain);
        let mut whole = position(5);
        whole.begun_before(Mark { at: at(7), key: "n/m".into() });
        whole.open(&"n/a".into(), at(6));
        assert_eq!(Saved::parse(&whole.saved().text()).unwrap(), whole.saved());
        for bad in ["", "5", "{}", "[]", r#"{"answeredBefore":"yesterday"}"#, "\u{0}"] {
            assert!(Saved::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_mark_passes_the_keys_before_it_only() {
        let mut p = position(0);
        p.begun_before(Mark { at: at(7), key: "n/m".into() });
        assert_eq!(p.place("n/a"), just_after(at(7)));
        assert_eq!(p.place("n/m"), at(7));
        assert_eq!(p.place("n/z"), at(7));
    }

    #[test]
    fn who_is_behind_is_named_and_the_others_go_on() {
        let (slow, mut p) = (Key::from("n/slow"), position(0));
        p.open(&slow, at(1));
        p.begun_before(Mark::before(at(9)));
        let mut next = Position::new(p.saved());
        assert_eq!((next.place("n/fast"), next.place("n/slow")), (at(9), at(1)));
        // Until it has been asked for it stays named, over as many terms as that takes.
        let next = Position::new(p.saved());
        assert_eq!(next.saved(), p.saved());
        p.close(&slow, at(1));
        assert_eq!(p.saved(), Saved::before(at(9)));
    }

    #[test]
    fn what_is_too_old_is_given_up() {
        let mut p = position(0);
        p.open(&"n/a".into(), at(1));
        p.open(&"n/b".into(), at(8));
        p.begun_before(Mark { at: at(4), key: "n/x".into() });
        let mut p = Position::new(p.saved().not_before(at(5)));
        assert_eq!((p.place("n/a"), p.place("n/b"), p.place("n/c")), (at(5), at(8), at(5)));
    }

    #[test]
    fn a_checkpoint_is_small_however_many_are_behind() {
        let mut p = position(0);
        p.begun_before(Mark::before(at(1000)));
        for i in 0..2000_i64 {
            p.open(&format!("{i:x<63}/{:x<253}", "").into(), at(500 + i % 7));
            let saved = p.saved();
            let text = saved.text();
            assert!(text.len() < MAX_CHECKPOINT, "{} bytes with {i} behind", text.len());
            assert_eq!(Saved::parse(&text).unwrap(), saved);
        }
        assert_eq!(p.saved().at(), at(500));
    }

    proptest! {
        /// Sources fire at times in order and are answered in any: whatever is written, the next holder begins each
        /// source at or before its first tick without an answer, and no source behind one that was answered in full.
        #[test]
        fn nothing_unanswered_is_passed(
            sources in 1_usize..80,
            fired in 1_i64..6,
            answers in prop::collection::vec((0_usize..80, 0_i64..6), 0..300),
        ) {
            let keys: Vec<Key> = (0..sources).map(|i| format!("n/{i:02}").into()).collect();
            let mut p = position(0);
            let mut left: BTreeSet<(Key, i64)> = BTreeSet::new();
            for t in 0..fired {
                for key in &keys {
                    p.open(key, at(t));
                    left.insert((Arc::clone(key), t));
                }
            }
            p.begun_before(Mark::before(at(fired)));
            for (i, t) in answers {
                let key = &keys[i % sources];
                p.close(key, at(t));
                left.remove(&(Arc::clone(key), t));
                let mut next = Position::new(Saved::parse(&p.saved().text()).expect("ours"));
                for key in &keys {
                    let first = left.iter().find(|(k, _)| k == key).map_or(fired, |(_, t)| *t);
                    let place = next.place(key);
                    prop_assert!(place <= at(first), "{key} at {place}, not before {first}");
                    if p.open.len() <= MOST_BEHIND {
                        prop_assert_eq!(place, at(first));
                    }
                }
            }
        }
    }
}
