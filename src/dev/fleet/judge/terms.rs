//! The terms that replicas told of, and which pairs of them were in force at one instant.

use super::history::{History, ProcessId};
use crate::clock::Instant;
use crate::leader::{FencingToken, Reason};
use std::collections::{HashMap, HashSet};

/// A (bucket, token) that a term was told under, or that an event was sent under. Either may be heard of first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermKey(u32);

/// The end of a term as its replica told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub reason: Reason,
    /// Until when anything acted at the latest.
    pub acted_until: Instant,
    /// When its demote had returned.
    pub at: Instant,
}

/// One term.
#[derive(Debug, Clone)]
pub struct Term {
    /// Who held the bucket.
    pub process: ProcessId,
    /// The bucket, as a number into [`Terms::bucket_name`].
    pub bucket: u32,
    /// The fencing token; none in strategies without Leases.
    pub token: Option<FencingToken>,
    /// Begun: from here on it is in force.
    pub begun: Instant,
    /// Promoted: from here on it acts.
    pub promoted: Option<Instant>,
    /// The last deadline that was told.
    pub deadline: Instant,
    /// Its end, if it was told.
    pub ended: Option<Ended>,
}

/// All terms of a run.
#[derive(Debug, Default)]
pub struct Terms {
    all: Vec<Term>,
    /// The newest term under this name: lines after the first only name it.
    newest: HashMap<(ProcessId, u32, Option<FencingToken>), usize>,
    buckets: Vec<String>,
    bucket_numbers: HashMap<String, u32>,
    keys: HashMap<(u32, FencingToken), TermKey>,
    /// Lines about a term whose beginning was never told.
    strays: u64,
}

impl Terms {
    fn number(&mut self, bucket: &str) -> u32 {
        if let Some(&number) = self.bucket_numbers.get(bucket) {
            return number;
        }
        let number = u32::try_from(self.buckets.len()).unwrap_or(u32::MAX);
        self.buckets.push(bucket.to_owned());
        self.bucket_numbers.insert(bucket.to_owned(), number);
        number
    }

    fn find(&mut self, process: ProcessId, bucket: &str, token: Option<FencingToken>) -> Option<&mut Term> {
        let at = self.bucket_numbers.get(bucket).and_then(|&b| self.newest.get(&(process, b, token)));
        if at.is_none() {
            self.strays += 1;
        }
        at.copied().and_then(|at| self.all.get_mut(at))
    }

    /// A term began.
    pub fn begun(
        &mut self,
        process: ProcessId,
        bucket: &str,
        token: Option<FencingToken>,
        at: Instant,
        deadline: Instant,
    ) {
        let bucket = self.number(bucket);
        self.newest.insert((process, bucket, token), self.all.len());
        self.all.push(Term { process, bucket, token, begun: at, promoted: None, deadline, ended: None });
    }

    /// Its gate opened.
    pub fn promoted(&mut self, process: ProcessId, bucket: &str, token: Option<FencingToken>, at: Instant) {
        if let Some(term) = self.find(process, bucket, token) {
            term.promoted.get_or_insert(at);
        }
    }

    /// Its deadline moved; one that goes back does not count.
    pub fn moved(&mut self, process: ProcessId, bucket: &str, token: Option<FencingToken>, deadline: Instant) {
        if let Some(term) = self.find(process, bucket, token) {
            term.deadline = term.deadline.max(deadline);
        }
    }

    /// It ended.
    pub fn ended(&mut self, process: ProcessId, bucket: &str, token: Option<FencingToken>, end: Ended) {
        if let Some(term) = self.find(process, bucket, token) {
            term.ended.get_or_insert(end);
        }
    }

    /// The key under which events of this bucket and token are kept.
    pub fn key(&mut self, bucket: &str, token: FencingToken) -> TermKey {
        let bucket = self.number(bucket);
        let next = TermKey(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
        *self.keys.entry((bucket, token)).or_insert(next)
    }

    /// Every term, in the order in which they were heard of.
    pub fn all(&self) -> &[Term] {
        &self.all
    }

    /// The name of a bucket by its number.
    pub fn bucket_name(&self, number: u32) -> &str {
        self.buckets.get(number as usize).map_or("?", String::as_str)
    }

    /// How many lines spoke of a term whose beginning was never told.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// The key of a term's events, if any event was sent under it.
    fn key_of(&self, term: &Term) -> Option<TermKey> {
        term.token.and_then(|token| self.keys.get(&(term.bucket, token)).copied())
    }

    /// How many keys there are.
    fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The terms of each bucket, by when they began.
    pub fn by_bucket(&self) -> Vec<Vec<usize>> {
        let mut by_bucket = vec![Vec::new(); self.buckets.len()];
        for (at, term) in self.all.iter().enumerate() {
            by_bucket[term.bucket as usize].push(at);
        }
        for terms in &mut by_bucket {
            terms.sort_by_key(|&at| self.all[at].begun);
        }
        by_bucket
    }
}

/// Until when a term was in force: what was told of its end, its last deadline, or the death of its process, whichever
/// came first.
pub fn in_force_until(history: &History, term: &Term) -> Instant {
    let told = term.ended.map_or(term.deadline, |ended| ended.acted_until.min(term.deadline));
    let died = history.process(term.process).and_then(|process| process.died);
    died.map_or(told, |died| told.min(died))
}

/// Two terms of one bucket that were in force at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The one that began first, as a number into [`Terms::all`].
    pub first: usize,
    /// The other.
    pub second: usize,
    /// Both were in force from here ..
    pub from: Instant,
    /// .. to here.
    pub until: Instant,
}

/// Every pair of terms of one bucket that were in force at one instant.
pub fn overlaps(history: &History) -> Vec<Overlap> {
    let all = history.terms.all();
    let mut found = Vec::new();
    for terms in history.terms.by_bucket() {
        // In force and begun before the one looked at.
        let mut before: Vec<(Instant, usize)> = Vec::new();
        for second in terms {
            let (from, until) = (all[second].begun, in_force_until(history, &all[second]));
            if from >= until {
                continue;
            }
            before.retain(|&(end, _)| end > from);
            found.extend(before.iter().map(|&(end, first)| Overlap { first, second, from, until: end.min(until) }));
            before.push((until, second));
        }
    }
    found
}

/// What events are judged by: when each key's term ended, and which keys' terms overlapped.
#[derive(Debug)]
pub struct Senders {
    until: Vec<Option<Instant>>,
    together: HashSet<(TermKey, TermKey)>,
}

impl Senders {
    /// Of a finished history.
    pub fn new(history: &History, overlaps: &[Overlap]) -> Self {
        let terms = &history.terms;
        let mut until = vec![None; terms.keys()];
        for term in terms.all() {
            if let Some(key) = terms.key_of(term) {
                let slot: &mut Option<Instant> = &mut until[key.0 as usize];
                // Two terms of one token: a fault that counts as an overlap; their events have until the later end.
                *slot = (*slot).max(Some(in_force_until(history, term)));
            }
        }
        let key = |at: usize| terms.key_of(&terms.all()[at]);
        let together = overlaps
            .iter()
            .filter_map(|o| Some((key(o.first)?, key(o.second)?)))
            .flat_map(|(a, b)| [(a, b), (b, a)])
            .collect();
        Self { until, together }
    }

    /// Until when the term of this key was in force; none where no replica told of it.
    pub fn in_force_until(&self, key: TermKey) -> Option<Instant> {
        self.until.get(key.0 as usize).copied().flatten()
    }

    /// Whether the terms of both were in force at one instant.
    pub fn overlap(&self, a: TermKey, b: TermKey) -> bool {
        self.together.contains(&(a, b))
    }
}
