//! How long each bucket was without a holder after trouble, by the kind of the trouble.
//!
//! A hand-over runs to the next term's promote: for term from the return of the old demote; for kill and pause from the
//! record's expiry (the last renewal that the fleet's own watch saw, plus lease-duration); for restart from the start
//! of the new process. Times are signed: a standby that saw the last renewal before this watch did takes a little
//! "before" the expiry.

use super::history::{History, Trouble};
use super::terms::{Term, in_force_until};
use crate::clock::Instant;
use crate::dev::fleet::options::Chaos;
use crate::leader::Reason;

/// The hand-overs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handovers {
    /// How long each took, in nanoseconds, sorted.
    pub nanos: Vec<i64>,
    /// Buckets that nobody was promoted for any more.
    pub unfinished: u64,
}

impl Handovers {
    /// The smallest value that at least `percent` of all values do not exceed (nearest rank); none of none.
    pub fn percentile(&self, percent: u32) -> Option<i64> {
        let rank = (self.nanos.len() * percent as usize).div_ceil(100);
        self.nanos.get(rank.saturating_sub(1)).copied()
    }
}

/// The hand-overs that troubles of `kind` led to.
pub fn handovers(history: &History, kind: Chaos) -> Handovers {
    let all = history.terms.all();
    let by_bucket = history.terms.by_bucket();
    let mut found = Handovers::default();
    for trouble in history.troubles.iter().filter(|t| t.kind == kind) {
        for terms in &by_bucket {
            for (at, &number) in terms.iter().enumerate() {
                let term = &all[number];
                if term.process != trouble.process || !ended_by(history, trouble, term) {
                    continue;
                }
                let next = terms[at + 1..].iter().map(|&next| &all[next]).find_map(|next| next.promoted);
                match (next, began(history, trouble, term)) {
                    (Some(next), Some(from)) => found.nanos.push(signed(from, next)),
                    _ => found.unfinished += 1,
                }
            }
        }
    }
    found.nanos.sort_unstable();
    found
}

/// Whether it was this trouble that ended the term.
fn ended_by(history: &History, trouble: &Trouble, term: &Term) -> bool {
    let told = term.ended.map(|ended| ended.at);
    match trouble.kind {
        Chaos::None => false,
        // Terms begun while the signal was under way end by it too.
        Chaos::Term => told.map_or(in_force_until(history, term), |told| told) >= trouble.at,
        // What had ended before, or had told its end before it died, was not ended by this.
        Chaos::Kill | Chaos::Restart => told.is_none() && term.deadline > trouble.at,
        Chaos::Pause => {
            let survived = trouble.resumed.is_some_and(|resumed| term.deadline > resumed);
            let before = term.deadline <= trouble.at || told.is_some_and(|told| told <= trouble.at);
            term.begun <= trouble.at && !before && !survived
        }
    }
}

/// From when the hand-over counts.
fn began(history: &History, trouble: &Trouble, term: &Term) -> Option<Instant> {
    match (trouble.kind, term.ended) {
        (Chaos::Restart, _) => trouble.successor.and_then(|next| history.process(next)).map(|p| p.started),
        (Chaos::Term, Some(ended)) if ended.reason != Reason::Lost => Some(ended.at),
        _ => Some(expired(history, trouble, term)),
    }
}

/// When the record of the term's holder expired.
fn expired(history: &History, trouble: &Trouble, term: &Term) -> Instant {
    let bucket = history.terms.bucket_name(term.bucket);
    let seen = history.leases.expiry(bucket, history.identity(term.process), term.deadline);
    seen.unwrap_or_else(|| {
        let setup = &history.setup;
        if term.deadline == Instant::from_nanos(u64::MAX) {
            // A strategy without Leases: there is no record, so it counts from the end of the process.
            return history.process(term.process).and_then(|p| p.died).unwrap_or(trouble.at);
        }
        // The watch was away: the deadline tells when the last renewal was sent.
        term.deadline - setup.renew_deadline + setup.lease_duration
    })
}

fn signed(from: Instant, to: Instant) -> i64 {
    let nanos = |a: Instant, b: Instant| i64::try_from(b.since(a).as_nanos()).unwrap_or(i64::MAX);
    if to >= from { nanos(from, to) } else { -nanos(to, from) }
}
