//! S6 and section 3: a term given up in good order ends in that order, a lost one writes nothing; promote and demote are
//! paired, and one at a time per bucket.

use super::run::{Act, Run, Term};
use super::{Asked, Call, Kind, Violation, What, Write};
use leasehold::leader::{FencingToken, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut found = unpaired(run);
    found.extend(calls(run));
    found.extend(renewed_without_term(run));
    found.extend(releases(run));
    found
}

/// Terms of one bucket in one replica are paired and do not overlap.
fn unpaired(run: &Run<'_>) -> Vec<Violation> {
    let mut open: BTreeMap<(&str, &str), Option<FencingToken>> = BTreeMap::new();
    let mut found = Vec::new();
    for e in &run.entries {
        match &e.what {
            What::Begun { bucket, token } => {
                if open.insert((&e.replica, bucket), *token).is_some() {
                    found.push(Violation("pairs", format!("{}: a second term of {bucket} at {:?}", e.replica, e.at)));
                }
            }
            What::Ended { bucket, token, .. } => {
                if open.remove(&(&*e.replica, bucket.as_str())) != Some(*token) {
                    let text = format!("{}: an end of {bucket} without begin at {:?}", e.replica, e.at);
                    found.push(Violation("pairs", text));
                }
            }
            _ => {}
        }
    }
    found
}

/// What a LeaderAware is told: promote, then (if that was Ok) one demote, each after the one before has returned.
fn calls(run: &Run<'_>) -> Vec<Violation> {
    let mut last: BTreeMap<(&str, &str), Call> = BTreeMap::new();
    let mut found = Vec::new();
    for e in &run.entries {
        let What::Aware { bucket, call } = &e.what else { continue };
        let before = last.insert((&e.replica, bucket), *call);
        let good = match call {
            Call::Promote => matches!(before, None | Some(Call::DemoteDone | Call::PromoteDone(false))),
            Call::PromoteDone(_) => before == Some(Call::Promote),
            Call::Demote => before == Some(Call::PromoteDone(true)),
            Call::DemoteDone => before == Some(Call::Demote),
        };
        if !good {
            found.push(Violation("S6", format!("{}: {call:?} of {bucket} at {:?} after {before:?}", e.replica, e.at)));
        }
    }
    found
}

fn by_bucket<'a, 'r>(run: &'r Run<'a>) -> BTreeMap<(&'a str, &'a str), Vec<&'r Term<'a>>> {
    let mut terms: BTreeMap<(&str, &str), Vec<&Term<'_>>> = BTreeMap::new();
    for term in &run.terms {
        terms.entry((term.replica, term.bucket)).or_default().push(term);
    }
    terms
}

/// After a term was lost, and before the bucket is taken again, nothing is renewed.
fn renewed_without_term(run: &Run<'_>) -> Vec<Violation> {
    let terms = by_bucket(run);
    let woke: BTreeSet<(&str, Duration)> =
        run.entries.iter().filter(|e| matches!(e.what, What::Woke)).map(|e| (&*e.replica, e.at)).collect();
    let mut found = Vec::new();
    for (e, w) in run.writes().filter(|(_, w)| matches!(w.write, Write::Renewed { .. })) {
        // It was decided before it froze.
        if woke.contains(&(&*e.replica, w.arrived)) {
            continue;
        }
        let terms = terms.get(&(&*e.replica, w.bucket.as_str())).map_or(&[][..], Vec::as_slice);
        let good = terms.iter().any(|t| {
            let over = match t.ended {
                // A lost one is over at once: its guards are cancelled, and demote is called.
                Some((ended, Reason::Lost)) => t.drained.unwrap_or(ended),
                Some((ended, _)) => ended,
                None => Duration::MAX,
            };
            t.begun <= w.arrived && w.arrived <= over
        });
        if !good {
            let text = format!("{} renewed {} at {:?} outside of a term", e.replica, w.bucket, w.arrived);
            found.push(Violation("S6", text));
        }
    }
    found
}

/// Nothing is released while a guard is out, nor before demote has returned; and once a release has been sent nothing is
/// done in its term any more, whatever the answer.
fn releases(run: &Run<'_>) -> Vec<Violation> {
    let mut acts: BTreeMap<(&str, &str), Vec<Act<'_>>> = BTreeMap::new();
    for act in run.acts() {
        acts.entry((act.replica, act.bucket)).or_default().push(act);
    }
    let terms = by_bucket(run);
    let mut found = Vec::new();
    for e in &run.entries {
        let (lease, at) = match &e.what {
            What::Asked(Asked { kind: Kind::Put { releases: true }, lease: Some(lease), .. }) => (&**lease, e.at),
            What::Wrote(w) if w.write == Write::Released => (w.bucket.as_str(), w.arrived),
            _ => continue,
        };
        let key = (&*e.replica, lease);
        let all = acts.get(&key).map_or(&[][..], Vec::as_slice);
        if let Some(act) = all.iter().find(|a| a.at < at && at < a.until) {
            let text = format!("{} released {lease} at {at:?} with a guard out since {:?}", e.replica, act.at);
            found.push(Violation("S6", text));
        }
        // The term that it ends: the last one begun before it. (With no latency the next may begin in the same instant.)
        let terms = terms.get(&key).map_or(&[][..], Vec::as_slice);
        let Some(term) = terms.iter().rev().find(|t| t.begun < at) else { continue };
        if let Some(act) = all.iter().find(|a| a.token.is_some() && a.token == term.token && a.at > at) {
            let text =
                format!("{} acts on {lease} at {:?}, in a term whose release was sent at {at:?}", e.replica, act.at);
            found.push(Violation("S6", text));
        }
    }
    found.extend(released_before_demote(run));
    found
}

fn released_before_demote(run: &Run<'_>) -> Vec<Violation> {
    let mut last: BTreeMap<(&str, &str), Call> = BTreeMap::new();
    let mut found = Vec::new();
    for e in &run.entries {
        match &e.what {
            What::Aware { bucket, call } => {
                last.insert((&e.replica, bucket), *call);
            }
            What::Asked(Asked { kind: Kind::Put { releases: true }, lease: Some(lease), .. }) => {
                let before = last.get(&(&*e.replica, &**lease));
                // A promote that hangs is released while it hangs: no guard was ever given.
                if matches!(before, Some(Call::PromoteDone(true) | Call::Demote)) {
                    let text = format!("{} released {lease} at {:?} after {before:?}", e.replica, e.at);
                    found.push(Violation("S6", text));
                }
            }
            _ => {}
        }
    }
    found
}
