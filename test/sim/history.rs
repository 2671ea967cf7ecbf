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
        bucket: String,
        key: String,
        until: Duration,
    },
    /// The replica counts renew-deadline as so much of lease-duration, by a clock that is off by at most a hundredth.
    Counts {
        part: f64,
    },
    /// A write of a bucket was carried out.
    Wrote {
        bucket: String,
        /// When the request reached the server.
        arrived: Duration,
        write: Write,
    },
    /// A request that must not be sent.
    Sent {
        wrong: String,
    },
    /// A request of any kind reached the server.
    Asked,
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
    /// Something a person should know: its code, a colon, the sentence.
    Notice(String),
}

/// What a write did, as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A Lease was made: empty and without a release record, or not.
    Made {
        bare: bool,
    },
    /// A PUT made a Lease anew.
    Remade,
    /// It names the writer, with another acquireTime than before.
    Took {
        duration: Duration,
    },
    /// It names the writer, as before.
    Renewed {
        duration: Duration,
    },
    /// It named the writer, and names nobody.
    Released,
    Other,
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
        found.extend(acts_uncovered(&entries));
        found.extend(wrong_writes(&entries));
        found.extend(renewed_without_term(&entries));
        found.extend(released_under_a_guard(&entries));
        found.extend(storms(&entries));
        found
    }
}

/// When a dead replica died: what it would have done after that does not count.
fn deaths(entries: &[Entry]) -> BTreeMap<&str, Duration> {
    entries.iter().filter(|e| matches!(e.what, What::Died)).map(|e| (e.replica.as_str(), e.at)).collect()
}

/// S2: no guard later than the arrival of a renewal or take of its bucket that was carried out, and the part of its
/// duration that renew-deadline is. (A request arrives no sooner than it is sent, and here at once.)
fn acts_uncovered(entries: &[Entry]) -> Vec<Violation> {
    let died = deaths(entries);
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    let mut covers: BTreeMap<(&str, &str), Vec<(Duration, Duration)>> = BTreeMap::new();
    for e in entries {
        match &e.what {
            What::Counts { part } => {
                let most = parts.entry(&e.replica).or_default();
                *most = most.max(*part);
            }
            What::Wrote { bucket, arrived, write: Write::Took { duration } | Write::Renewed { duration } } => {
                covers.entry((&e.replica, bucket)).or_default().push((*arrived, *duration));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for e in entries {
        let What::Act { bucket, key, until } = &e.what else { continue };
        let Some(part) = parts.get(e.replica.as_str()) else { continue };
        let until = died.get(e.replica.as_str()).map_or(*until, |d| (*until).min(*d));
        let all = covers.get(&(e.replica.as_str(), bucket.as_str())).map_or(&[][..], Vec::as_slice);
        // A renewal while a guard is out prolongs it: each is good until then, from its arrival on.
        let good = |(arrived, duration): &(Duration, Duration)| {
            (*arrived, *arrived + duration.mul_f64(part * 1.01) + Duration::from_millis(2))
        };
        let mut at = e.at;
        while at < until {
            match all.iter().map(good).filter(|(from, to)| *from <= at && at < *to).map(|(_, to)| to).max() {
                Some(to) => at = to,
                None => break,
            }
        }
        if at < until {
            found.push(Violation(
                "S2",
                format!(
                    "{key} of {bucket}: {} acts from {:?} until {until:?}, and no write covers it",
                    e.replica, e.at
                ),
            ));
        }
    }
    found
}

/// S3: a create makes a Lease that nobody holds, without a record; a PUT makes none; every write is conditional.
fn wrong_writes(entries: &[Entry]) -> Vec<Violation> {
    let wrong = |e: &Entry| match &e.what {
        What::Wrote { bucket, write: Write::Made { bare: false }, .. } => {
            Some(format!("{} made {bucket} held, or with a release record, at {:?}", e.replica, e.at))
        }
        What::Wrote { bucket, write: Write::Remade, .. } => {
            Some(format!("a PUT of {} made {bucket} anew at {:?}", e.replica, e.at))
        }
        What::Sent { wrong } => Some(format!("{} at {:?}: {wrong}", e.replica, e.at)),
        _ => None,
    };
    entries.iter().filter_map(wrong).map(|text| Violation("S3", text)).collect()
}

/// S5, S6: after a term was lost, and before it is taken, nothing is renewed.
fn renewed_without_term(entries: &[Entry]) -> Vec<Violation> {
    let mut terms: BTreeMap<(&str, &str), Vec<(Duration, Duration)>> = BTreeMap::new();
    for e in entries {
        match &e.what {
            What::Begun { bucket, .. } => terms.entry((&e.replica, bucket)).or_default().push((e.at, Duration::MAX)),
            What::Ended { bucket, .. } => {
                if let Some(last) = terms.get_mut(&(e.replica.as_str(), bucket.as_str())).and_then(|t| t.last_mut()) {
                    last.1 = e.at;
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for e in entries {
        let What::Wrote { bucket, arrived, write: Write::Renewed { .. } } = &e.what else { continue };
        let terms = terms.get(&(e.replica.as_str(), bucket.as_str())).map_or(&[][..], Vec::as_slice);
        if !terms.iter().any(|(begun, ended)| begun <= arrived && arrived <= ended) {
            found.push(Violation("S6", format!("{} renewed {bucket} at {arrived:?} outside of a term", e.replica)));
        }
    }
    found
}

/// S6: nothing is released while a guard is out.
fn released_under_a_guard(entries: &[Entry]) -> Vec<Violation> {
    let died = deaths(entries);
    let mut found = Vec::new();
    for e in entries {
        let What::Wrote { bucket, arrived, write: Write::Released } = &e.what else { continue };
        let out = entries.iter().find(|a| {
            matches!(&a.what, What::Act { bucket: b, until, .. } if b == bucket && a.replica == e.replica
                && a.at < *arrived && *arrived < died.get(a.replica.as_str()).map_or(*until, |d| (*until).min(*d)))
        });
        if let Some(act) = out {
            found.push(Violation(
                "S6",
                format!("{} released {bucket} at {arrived:?} with a guard out since {:?}", e.replica, act.at),
            ));
        }
    }
    found
}

/// How many requests a replica may send in [`WINDOW`]: ten buckets cost it some fifty in health.
const STORM: usize = 600;
const WINDOW: Duration = Duration::from_secs(10);

/// No replica sends requests as fast as they are answered.
fn storms(entries: &[Entry]) -> Vec<Violation> {
    let mut asked: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for e in entries.iter().filter(|e| matches!(e.what, What::Asked)) {
        asked.entry(&e.replica).or_default().push(e.at);
    }
    let mut found = Vec::new();
    for (replica, at) in asked {
        if let Some(w) = at.windows(STORM).find(|w| w[STORM - 1] - w[0] < WINDOW) {
            found
                .push(Violation("storm", format!("{replica}: {STORM} requests from {:?} to {:?}", w[0], w[STORM - 1])));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn history(all: &[(u64, &str, What)]) -> Vec<&'static str> {
        let history = History::default();
        for (at, replica, what) in all {
            history.add(*at as u32 * S, replica, what.clone());
        }
        history.violations().iter().map(|v| v.0).collect()
    }

    fn act(until: u64) -> What {
        What::Act { bucket: "b".into(), key: "k".into(), until: until as u32 * S }
    }

    fn wrote(arrived: u64, write: Write) -> What {
        What::Wrote { bucket: "b".into(), arrived: arrived as u32 * S, write }
    }

    fn token(revision: u64) -> Option<FencingToken> {
        Some(FencingToken::new(0, revision))
    }

    fn begun(revision: u64) -> What {
        What::Begun { bucket: "b".into(), token: token(revision) }
    }

    fn ended(revision: u64) -> What {
        What::Ended { bucket: "b".into(), token: token(revision), reason: Reason::Lost }
    }

    const LEASE: Write = Write::Took { duration: Duration::from_secs(15) };
    const RENEWED: Write = Write::Renewed { duration: Duration::from_secs(15) };

    #[test]
    fn a_good_history_passes() {
        let counts = What::Counts { part: 10.0 / 15.0 };
        let good = [
            (0, "a", counts),
            (1, "a", wrote(1, LEASE)),
            (1, "a", begun(5)),
            (2, "a", act(4)),
            (3, "a", wrote(3, RENEWED)),
            (5, "a", wrote(5, RENEWED)),
            (6, "a", act(14)),
            (14, "a", ended(5)),
            (14, "a", wrote(14, Write::Released)),
            (15, "b", act(16)),
        ];
        assert!(history(&good).is_empty(), "{:?}", history(&good));
    }

    /// Each rule catches a history that breaks it, and no other does.
    #[test]
    fn bad_histories_are_caught() {
        let counts = || (0, "a", What::Counts { part: 10.0 / 15.0 });
        let overlap = [(1, "a", act(3)), (2, "b", act(4))];
        assert_eq!(history(&overlap), ["S1"]);
        let dead = [(1, "a", act(3)), (1, "a", What::Died), (2, "b", act(4))];
        assert!(history(&dead).is_empty());
        let late = [counts(), (1, "a", wrote(1, LEASE)), (2, "a", act(12))];
        assert_eq!(history(&late), ["S2"]);
        let renewed_by_another = [counts(), (1, "b", wrote(1, LEASE)), (2, "a", act(3))];
        assert_eq!(history(&renewed_by_another), ["S2"]);
        assert_eq!(history(&[(1, "a", wrote(1, Write::Made { bare: false }))]), ["S3"]);
        assert_eq!(history(&[(1, "a", wrote(1, Write::Remade))]), ["S3"]);
        assert_eq!(history(&[(1, "a", What::Sent { wrong: "a PUT without uid".into() })]), ["S3"]);
        let after_loss = [(1, "a", begun(5)), (2, "a", ended(5)), (3, "a", wrote(3, RENEWED))];
        assert_eq!(history(&after_loss), ["S6"]);
        let under_a_guard = [(1, "a", act(5)), (3, "a", wrote(3, Write::Released))];
        assert_eq!(history(&under_a_guard), ["S6"]);
        let falls = [(1, "a", begun(5)), (2, "a", ended(5)), (3, "b", begun(4))];
        assert_eq!(history(&falls), ["S9"]);
        let twice = [(1, "a", begun(5)), (2, "a", begun(6))];
        assert_eq!(history(&twice), ["pairs"]);
        let storm: Vec<_> = (0..=STORM).map(|_| (1, "a", What::Asked)).collect();
        assert_eq!(history(&storm), ["storm"]);
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
    let died = deaths(entries);
    let mut acts: BTreeMap<&str, Vec<(Duration, Duration, &str)>> = BTreeMap::new();
    for e in entries {
        if let What::Act { key, until, .. } = &e.what {
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
