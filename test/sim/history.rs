//! What happened in a run, in true time, and the rules it is judged by.

use leasehold::leader::{FencingToken, Reason};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum What {
    /// A guard was given for a key, and dropped.
    Act {
        key: String,
        until: Duration,
    },
    /// A term began.
    Begun {
        bucket: String,
        token: Option<FencingToken>,
    },
    Promoted {
        bucket: String,
    },
    /// It ended; nothing acted later than `acted_until`.
    Ended {
        bucket: String,
        token: Option<FencingToken>,
        reason: Reason,
    },
    /// The replica was killed.
    Died,
    Notice {
        code: &'static str,
        text: String,
    },
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub at: Duration,
    pub replica: String,
    pub what: What,
}

/// Shared by all of a world.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Vec<Entry>>>);

impl History {
    pub fn add(&self, at: Duration, replica: &str, what: What) {
        self.0.lock().expect("whole").push(Entry { at, replica: replica.to_owned(), what });
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.0.lock().expect("whole").clone()
    }

    /// Everything that breaks a rule of the design.
    pub fn violations(&self) -> Vec<Violation> {
        let entries = self.entries();
        let mut found = acts_overlap(&entries);
        found.extend(tokens_fall(&entries));
        found.extend(unpaired(&entries));
        found
    }
}

/// A rule that was broken.
#[derive(Debug, Clone)]
pub struct Violation(pub &'static str, pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}

/// S1: a key is never acted on by two replicas at one time. What a dead replica would have done does not count.
fn acts_overlap(entries: &[Entry]) -> Vec<Violation> {
    let died: BTreeMap<&str, Duration> =
        entries.iter().filter(|e| matches!(e.what, What::Died)).map(|e| (e.replica.as_str(), e.at)).collect();
    let mut acts: BTreeMap<&str, Vec<(Duration, Duration, &str)>> = BTreeMap::new();
    for e in entries {
        if let What::Act { key, until } = &e.what {
            let end = died.get(e.replica.as_str()).map_or(*until, |d| (*until).min(*d));
            if e.at < end {
                acts.entry(key).or_default().push((e.at, end, &e.replica));
            }
        }
    }
    let mut found = Vec::new();
    for (key, mut list) in acts {
        list.sort();
        for pair in list.windows(2) {
            let ((_, end, a), (begin, _, b)) = (pair[0], pair[1]);
            if a != b && begin < end {
                found.push(Violation("S1", format!("{key}: {a} until {end:?}, {b} from {begin:?}")));
            }
        }
    }
    found
}

/// S9: the fencing token of a bucket only grows.
fn tokens_fall(entries: &[Entry]) -> Vec<Violation> {
    let mut last: BTreeMap<&str, FencingToken> = BTreeMap::new();
    let mut found = Vec::new();
    for e in entries {
        if let What::Begun { bucket, token: Some(token) } = &e.what {
            if let Some(before) = last.get(bucket.as_str()).filter(|b| *b >= token) {
                found.push(Violation("S9", format!("{bucket}: {token} after {before} at {:?}", e.at)));
            }
            last.insert(bucket, *token);
        }
    }
    found
}

/// Section 3: terms of one bucket in one replica are paired and do not overlap.
fn unpaired(entries: &[Entry]) -> Vec<Violation> {
    let mut open: BTreeMap<(&str, &str), Option<FencingToken>> = BTreeMap::new();
    let mut found = Vec::new();
    for e in entries {
        match &e.what {
            What::Begun { bucket, token } => {
                if open.insert((&e.replica, bucket), *token).is_some() {
                    found.push(Violation("pairs", format!("{}: a second term of {bucket} at {:?}", e.replica, e.at)));
                }
            }
            What::Ended { bucket, token, .. } => {
                if open.remove(&(e.replica.as_str(), bucket.as_str())) != Some(*token) {
                    found.push(Violation(
                        "pairs",
                        format!("{}: an end of {bucket} without begin at {:?}", e.replica, e.at),
                    ));
                }
            }
            _ => {}
        }
    }
    found
}
