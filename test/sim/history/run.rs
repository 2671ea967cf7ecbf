//! A history put in order once, for all rules: who lived when, which terms there were, who held what when.

use super::{Call, Entry, What, Wrote};
use leasehold::leader::{FencingToken, Reason};
use std::collections::BTreeMap;
use std::time::Duration;

/// Two clocks run at rates that differ by at most a hundredth (`seeds` draws them so).
pub const RATE: f64 = 1.01;
/// And one from true time by half of that.
pub const TRUE_RATE: f64 = 1.005;
/// What a timer may be late.
pub const TICK: Duration = Duration::from_millis(2);

pub struct Run<'a> {
    /// All that counts: what a dead replica would have done is left out.
    pub entries: Vec<&'a Entry>,
    pub died: BTreeMap<&'a str, Duration>,
    pub terms: Vec<Term<'a>>,
    /// When etcd was restored, and until when two replicas may act because of it: a promise that is not made.
    pub restored: Vec<(Duration, Duration)>,
}

/// A term, as it was.
#[derive(Debug, Clone)]
pub struct Term<'a> {
    pub replica: &'a str,
    pub bucket: &'a str,
    pub token: Option<FencingToken>,
    pub begun: Duration,
    pub promoted: Option<Duration>,
    pub shut: Option<Duration>,
    /// Its demote was called: no guard was out any more.
    pub drained: Option<Duration>,
    pub ended: Option<(Duration, Reason)>,
}

pub struct Act<'a> {
    pub replica: &'a str,
    pub bucket: &'a str,
    pub key: &'a str,
    pub token: Option<FencingToken>,
    pub given: Duration,
    pub at: Duration,
    pub until: Duration,
    pub stubborn: bool,
}

impl<'a> Run<'a> {
    pub fn of(all: &'a [Entry]) -> Self {
        let died: BTreeMap<&str, Duration> =
            all.iter().filter(|e| matches!(e.what, What::Died)).map(|e| (&*e.replica, e.at)).collect();
        let counts = |e: &&Entry| {
            let dead = died.get(&*e.replica).is_some_and(|d| *d < e.at);
            !dead || matches!(e.what, What::Wrote(_))
        };
        let entries: Vec<&Entry> = all.iter().filter(counts).collect();
        let mut longest = Duration::ZERO;
        let mut restored = Vec::new();
        for e in &entries {
            match &e.what {
                What::Born { timing, .. } | What::Configured { timing } => longest = longest.max(timing.renew_deadline),
                What::Restored { .. } => restored.push((e.at, e.at + longest.mul_f64(RATE) + TICK)),
                _ => {}
            }
        }
        let terms = terms(&entries);
        Self { entries, died, terms, restored }
    }

    pub fn acts(&self) -> impl Iterator<Item = Act<'a>> {
        self.entries.iter().filter_map(|e| {
            let What::Act { bucket, key, token, given, until, stubborn } = &e.what else { return None };
            let until = self.died.get(&*e.replica).map_or(*until, |d| (*until).min(*d));
            let (token, given, stubborn) = (*token, *given, *stubborn);
            Some(Act { replica: &e.replica, bucket, key, token, given, at: e.at, until, stubborn })
        })
    }

    pub fn writes(&self) -> impl Iterator<Item = (&'a Entry, &'a Wrote)> {
        self.entries.iter().filter_map(|e| if let What::Wrote(w) = &e.what { Some((*e, w)) } else { None })
    }

    /// Whether a restored etcd excuses what was done then.
    pub fn is_excused(&self, at: Duration) -> bool {
        self.restored.iter().any(|(from, to)| *from <= at && at <= *to)
    }
}

/// Persons, `leasehold init` and client-go have rules of their own.
pub fn is_replica(client: &str) -> bool {
    client.strip_prefix('r').is_some_and(|n| n.parse::<u32>().is_ok())
}

fn terms<'a>(entries: &[&'a Entry]) -> Vec<Term<'a>> {
    let mut terms: Vec<Term<'a>> = Vec::new();
    let mut last: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for e in entries {
        let of = |bucket: &'a String| last.get(&(&*e.replica, bucket.as_str())).copied();
        match &e.what {
            What::Begun { bucket, token } => {
                last.insert((&e.replica, bucket), terms.len());
                let (replica, begun) = (&*e.replica, e.at);
                terms.push(Term {
                    replica,
                    bucket,
                    token: *token,
                    begun,
                    promoted: None,
                    shut: None,
                    drained: None,
                    ended: None,
                });
            }
            What::Promoted { bucket } => {
                if let Some(at) = of(bucket) {
                    terms[at].promoted.get_or_insert(e.at);
                }
            }
            What::Shut { bucket } => {
                if let Some(at) = of(bucket) {
                    terms[at].shut.get_or_insert(e.at);
                }
            }
            What::Aware { bucket, call: Call::Demote } => {
                if let Some(at) = of(bucket) {
                    terms[at].drained.get_or_insert(e.at);
                }
            }
            What::Ended { bucket, reason, .. } => {
                if let Some(at) = of(bucket) {
                    terms[at].ended.get_or_insert((e.at, *reason));
                }
            }
            _ => {}
        }
    }
    terms
}
