//! S1: a key is never acted on by two replicas at one time, and only under a guard of a current term.

use super::Violation;
use super::run::{Act, Run, Term};
use std::collections::BTreeMap;
use std::time::Duration;

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut found = overlaps(run);
    found.extend(outside_of_terms(run));
    found
}

fn overlaps(run: &Run<'_>) -> Vec<Violation> {
    let mut by_key: BTreeMap<&str, Vec<Act<'_>>> = BTreeMap::new();
    for act in run.acts().filter(|a| a.at < a.until) {
        by_key.entry(act.key).or_default().push(act);
    }
    let mut found = Vec::new();
    for (key, mut acts) in by_key {
        acts.sort_by_key(|a| (a.at, a.until));
        // Of each replica, until when it acts on this key.
        let mut until: BTreeMap<&str, Duration> = BTreeMap::new();
        for act in acts {
            let other = until.iter().find(|(r, end)| **r != act.replica && **end > act.at);
            if let Some((r, end)) = other
                && !run.is_excused(act.at)
            {
                found.push(Violation("S1", format!("{key}: {r} until {end:?}, {} from {:?}", act.replica, act.at)));
            }
            let end = until.entry(act.replica).or_default();
            *end = (*end).max(act.until);
        }
    }
    found
}

/// A guard is given after promote has returned Ok, and not after the gate has shut. (How long an act may last is for S2
/// and S7.)
fn outside_of_terms(run: &Run<'_>) -> Vec<Violation> {
    let mut terms: BTreeMap<(&str, &str), Vec<&Term<'_>>> = BTreeMap::new();
    for term in &run.terms {
        terms.entry((term.replica, term.bucket)).or_default().push(term);
    }
    let mut found = Vec::new();
    // An act of no token was not told by whom it was allowed.
    for act in run.acts().filter(|a| a.token.is_some()) {
        let terms = terms.get(&(act.replica, act.bucket)).map_or(&[][..], Vec::as_slice);
        let good = terms.iter().any(|t| {
            t.token == act.token
                && t.promoted.is_some_and(|p| p <= act.given)
                && t.shut.is_none_or(|s| act.given <= s)
                && t.ended.is_none_or(|(e, _)| act.until <= e)
        });
        if !good {
            let Act { replica, bucket, key, at, until, .. } = act;
            let text = format!(
                "{key} of {bucket}: {replica} acts from {at:?} until {until:?}, outside of the term of its guard"
            );
            found.push(Violation("S1", text));
        }
    }
    found
}
