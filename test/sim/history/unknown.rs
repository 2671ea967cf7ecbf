//! S5: after a write whose outcome is not known the Lease is read before it is written again; and a term begins only with
//! the answer to a write, never by reading.
//!
//! (A watched event would do as well as a read; the election reads, and that is asked of it.)

use super::run::{Run, is_replica};
use super::{Asked, Kind, Violation, What, Write};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut found = blind(run);
    found.extend(unanswered(run));
    found
}

fn is_unknown(code: Option<u16>) -> bool {
    code.is_none_or(|c| c == 409 || c >= 500)
}

fn blind(run: &Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut out: BTreeMap<u64, (&str, &Asked, Duration)> = BTreeMap::new();
    // Since when a replica does not know what became of its write of a Lease.
    let mut unsure: BTreeMap<(&str, &str), Duration> = BTreeMap::new();
    for e in &run.entries {
        match &e.what {
            What::Asked(asked) => {
                if let (true, Some(lease)) = (asked.kind.writes(), &asked.lease)
                    && let Some(since) = unsure.get(&(&*e.replica, &**lease))
                {
                    let text = format!(
                        "{} writes {lease} at {:?}: unread since a write of unknown outcome ended at {since:?}",
                        e.replica, e.at
                    );
                    found.push(Violation("S5", text));
                }
                out.insert(asked.number, (&e.replica, asked, e.at));
            }
            What::Answered { number, code } => {
                let Some((replica, asked, sent)) = out.remove(number) else { continue };
                match (asked.kind, &asked.lease) {
                    (kind, Some(lease)) if kind.writes() && is_unknown(*code) => {
                        unsure.insert((replica, lease), e.at);
                    }
                    (Kind::Get, Some(lease)) if matches!(code, Some(200 | 404)) => {
                        if unsure.get(&(replica, &**lease)).is_some_and(|since| *since <= sent) {
                            unsure.remove(&(replica, &**lease));
                        }
                    }
                    (Kind::List, _) if *code == Some(200) => {
                        unsure.retain(|(r, _), since| *r != replica || *since > sent);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    found
}

/// Each term's token is the revision of a take by that replica, answered before the term began.
fn unanswered(run: &Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut out: BTreeMap<u64, (&str, &str)> = BTreeMap::new();
    // By replica and Lease: the revisions of its takes, and those that stood when it got a good answer.
    let mut taken: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut answered: BTreeSet<(&str, &str, u64)> = BTreeSet::new();
    for e in &run.entries {
        match &e.what {
            What::Asked(Asked { number, kind: Kind::Put { .. }, lease: Some(lease) }) => {
                out.insert(*number, (&e.replica, lease));
            }
            What::Wrote(w) if matches!(w.write, Write::Took { .. }) => {
                taken.insert((&e.replica, &w.bucket), w.revision);
            }
            What::Answered { number, code } => {
                if let Some((replica, lease)) = out.remove(number)
                    && *code == Some(200)
                    && let Some(revision) = taken.get(&(replica, lease))
                {
                    answered.insert((replica, lease, *revision));
                }
            }
            What::Begun { bucket, token: Some(token) } if is_replica(&e.replica) => {
                if !answered.contains(&(&*e.replica, bucket.as_str(), token.revision())) {
                    let text = format!(
                        "{}: a term of {bucket} begins at {:?} with {token}, no take that was answered",
                        e.replica, e.at
                    );
                    found.push(Violation("S5", text));
                }
            }
            _ => {}
        }
    }
    found
}
