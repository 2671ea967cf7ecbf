//! What a replica says of itself, and what follows from it: who acted on what, and when.

use serde::Deserialize;
use std::time::Duration;

/// A line of a replica; elector.go has the list.
#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    event: String,
    identity: Option<String>,
    bucket: Option<String>,
    at: u64,
}

/// One stretch of acting on a bucket, from the first to the last act. CLOCK_BOOTTIME in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) bucket: String,
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// It has neither been stopped nor has its process ended.
    pub(crate) open: bool,
}

impl Term {
    /// For how long both acted.
    pub(crate) fn overlap(&self, other: &Self) -> Duration {
        if self.bucket != other.bucket {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.until.min(other.until).saturating_sub(self.from.max(other.from)))
    }
}

/// All that one process has said.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log {
    /// Its identity, once it runs.
    pub(crate) identity: Option<String>,
    /// Its stretches of acting, in the order of their beginnings.
    pub(crate) terms: Vec<Term>,
}

impl Log {
    /// One more line. Others than of JSON are for people.
    pub(crate) fn add(&mut self, text: &str) {
        let Ok(line) = serde_json::from_str::<Line>(text) else { return };
        if line.event == "hello" {
            self.identity = line.identity;
            return;
        }
        let bucket = line.bucket.unwrap_or_default();
        let open = self.terms.iter_mut().rfind(|t| t.open && t.bucket == bucket);
        match (line.event.as_str(), open) {
            // It counts from its first act on.
            ("act", None) => self.terms.push(Term { bucket, from: line.at, until: line.at, open: true }),
            ("act", Some(term)) => term.until = line.at,
            ("stopped", Some(term)) => term.open = false,
            _ => {}
        }
    }

    /// The process has ended.
    pub(crate) fn end(&mut self) {
        for term in &mut self.terms {
            term.open = false;
        }
    }

    /// The stretches of acting on `bucket`.
    pub(crate) fn of<'a>(&'a self, bucket: &'a str) -> impl DoubleEndedIterator<Item = &'a Term> {
        self.terms.iter().filter(move |t| t.bucket == bucket)
    }

    /// Whether it acts on `bucket` now.
    pub(crate) fn acts_on(&self, bucket: &str) -> bool {
        self.of(bucket).any(|t| t.open)
    }

    /// How many buckets it acts on now.
    pub(crate) fn acting(&self) -> usize {
        self.terms.iter().filter(|t| t.open).count()
    }
}

#[test]
fn two_stretches_overlap_where_both_act() {
    let mut logs = [Log::default(), Log::default()];
    let line = |event: &str, bucket: &str, at: u64| format!(r#"{{"event":"{event}","bucket":"{bucket}","at":{at}}}"#);
    for (log, event, bucket, at) in [
        (0, "started", "a", 5),
        (0, "act", "a", 10),
        (0, "act", "b", 11),
        (0, "act", "a", 30),
        (0, "stopped", "a", 39),
        (1, "act", "a", 20),
        (1, "act", "b", 40),
        (1, "act", "a", 50),
        (0, "act", "a", 60),
    ] {
        logs[log].add(&line(event, bucket, at));
    }
    let [one, two] = logs;
    let terms: Vec<_> = one.of("a").map(|t| (t.from, t.until, t.open)).collect();
    assert_eq!(terms, [(10, 30, false), (60, 60, true)]);
    assert_eq!(one.terms[0].overlap(&two.terms[0]), Duration::from_nanos(10));
    assert_eq!(one.terms[1].overlap(&two.terms[1]), Duration::ZERO, "of bucket b, one after the other");
    assert_eq!(one.terms[0].overlap(&two.terms[1]), Duration::ZERO, "of two buckets");
    assert_eq!((one.acting(), one.acts_on("b"), two.acts_on("c")), (2, true, false));
}
