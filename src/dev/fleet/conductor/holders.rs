//! Who holds which bucket at this moment, by what replicas have told so far. For the screen and for the course of a
//! run; the judge has the whole history.

use crate::clock::Instant;
use crate::dev::fleet::judge::ProcessId;
use crate::leader::FencingToken;
use std::collections::BTreeMap;

/// A term that has not ended, as far as was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// By whom.
    pub process: ProcessId,
    /// Under which token.
    pub token: Option<FencingToken>,
    /// Since when.
    pub begun: Instant,
    /// Whether its gate is open.
    pub promoted: bool,
    /// The last deadline that was told.
    pub deadline: Instant,
}

/// The terms of every bucket that was ever held.
#[derive(Debug, Default)]
pub struct Holders {
    buckets: BTreeMap<String, Vec<Holding>>,
}

impl Holders {
    /// A term began.
    pub fn begun(&mut self, bucket: &str, holding: Holding) {
        self.buckets.entry(bucket.to_owned()).or_default().push(holding);
    }

    fn find(&mut self, bucket: &str, process: ProcessId, token: Option<FencingToken>) -> Option<&mut Holding> {
        let holdings = self.buckets.get_mut(bucket)?;
        holdings.iter_mut().rev().find(|h| h.process == process && h.token == token)
    }

    /// A term was promoted.
    pub fn promoted(&mut self, bucket: &str, process: ProcessId, token: Option<FencingToken>) {
        if let Some(holding) = self.find(bucket, process, token) {
            holding.promoted = true;
        }
    }

    /// A deadline moved.
    pub fn moved(&mut self, bucket: &str, process: ProcessId, token: Option<FencingToken>, deadline: Instant) {
        if let Some(holding) = self.find(bucket, process, token) {
            holding.deadline = holding.deadline.max(deadline);
        }
    }

    /// A term gives no guards any more: its gate has shut, or it has ended.
    pub fn shut(&mut self, bucket: &str, process: ProcessId, token: Option<FencingToken>) {
        if let Some(holding) = self.find(bucket, process, token) {
            holding.promoted = false;
        }
    }

    /// A term ended.
    pub fn ended(&mut self, bucket: &str, process: ProcessId, token: Option<FencingToken>) {
        if let Some(holdings) = self.buckets.get_mut(bucket) {
            holdings.retain(|h| h.process != process || h.token != token);
        }
    }

    /// A process died, and its terms with it.
    pub fn died(&mut self, process: ProcessId) {
        for holdings in self.buckets.values_mut() {
            holdings.retain(|h| h.process != process);
        }
    }

    /// Each bucket and who acts for it at `now`.
    pub fn at(&self, now: Instant) -> impl Iterator<Item = (&str, Option<Holding>)> {
        self.buckets.iter().map(move |(bucket, holdings)| {
            let acts = |h: &&Holding| h.promoted && h.deadline > now;
            (bucket.as_str(), holdings.iter().filter(acts).max_by_key(|h| h.begun).copied())
        })
    }

    /// Whether at least `count` buckets are known, and somebody acts for each.
    pub fn all_held(&self, count: usize, now: Instant) -> bool {
        self.buckets.len() >= count && self.at(now).all(|(_, holder)| holder.is_some())
    }

    /// How many buckets somebody acts for.
    pub fn held(&self, now: Instant) -> usize {
        self.at(now).filter(|(_, holder)| holder.is_some()).count()
    }

    /// How many of them a process acts for.
    pub fn held_by(&self, process: ProcessId, now: Instant) -> usize {
        self.at(now).filter(|(_, holder)| holder.is_some_and(|h| h.process == process)).count()
    }

    /// Whether a process has a term whose deadline has passed and whose end it has not told yet.
    pub fn owes_an_end(&self, process: ProcessId, now: Instant) -> bool {
        self.buckets.values().flatten().any(|h| h.process == process && h.deadline <= now)
    }
}
