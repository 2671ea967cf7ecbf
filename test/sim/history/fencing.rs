//! S9: the fencing token of a bucket only grows, also over deletion of its Lease, while the revision does not go back; and
//! it is that of the take: its revision, under the era of the layout Lease.

use super::run::Run;
use super::{Violation, What, Write};
use leasehold::leader::FencingToken;
use std::collections::BTreeMap;

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut last: BTreeMap<&str, FencingToken> = BTreeMap::new();
    let mut found = Vec::new();
    let mut era = 0;
    for e in &run.entries {
        match &e.what {
            // Who has not seen that the revision went back goes on with the era that is written.
            What::Restored { leases } => {
                last.clear();
                era = leases.iter().filter_map(|l| l.layout.as_ref()).map(|l| l.era).max().unwrap_or(0);
            }
            What::Wrote(w) => {
                if let Some(layout) = w.after.as_ref().and_then(|v| v.layout.as_ref()) {
                    era = era.max(layout.era);
                }
            }
            What::Begun { bucket, token: Some(token) } => {
                if let Some(before) = last.get(bucket.as_str()).filter(|b| *b >= token) {
                    found.push(Violation("S9", format!("{bucket}: {token} after {before} at {:?}", e.at)));
                }
                if token.era() > era {
                    found.push(Violation("S9", format!("{bucket}: {token} at {:?}, and the era is {era}", e.at)));
                }
                last.insert(bucket, *token);
            }
            _ => {}
        }
    }
    let mut takes: BTreeMap<(&str, u64), ()> = BTreeMap::new();
    for (_, w) in run.writes().filter(|(_, w)| matches!(w.write, Write::Took { .. })) {
        takes.insert((&w.bucket, w.revision), ());
    }
    for term in run.terms.iter().filter(|_| !takes.is_empty()) {
        let Some(token) = term.token else { continue };
        if !takes.contains_key(&(term.bucket, token.revision())) {
            let text = format!("{}: {token} of {} is no take's revision", term.bucket, term.replica);
            found.push(Violation("S9", text));
        }
    }
    found
}
