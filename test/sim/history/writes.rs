//! S3: a create makes a Lease that nobody holds, without a record; a PUT makes none; every write is conditional; one write
//! at a time per Lease; the renewTime of a renewal is later than the one before.

use super::run::{Run, is_replica};
use super::{Entry, Violation, What, Write};
use std::collections::BTreeMap;

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut found: Vec<Violation> =
        run.entries.iter().filter_map(|e| wrong(e)).map(|text| Violation("S3", text)).collect();
    found.extend(two_at_once(run));
    found
}

fn wrong(e: &Entry) -> Option<String> {
    if !is_replica(&e.replica) {
        return None;
    }
    let w = match &e.what {
        What::Sent { wrong } => return Some(format!("{} at {:?}: {wrong}", e.replica, e.at)),
        What::Wrote(w) => w,
        _ => return None,
    };
    match w.write {
        Write::Made { bare: false } => {
            Some(format!("{} made {} held, or with a release record, at {:?}", e.replica, w.bucket, e.at))
        }
        Write::Remade => Some(format!("a PUT of {} made {} anew at {:?}", e.replica, w.bucket, e.at)),
        Write::Renewed { .. } => {
            let (before, after) = (w.before.as_ref()?, w.after.as_ref()?);
            // Microseconds in UTC, as they are written: the later one is the greater text. What a person left there
            // may be anything.
            let odd = before.renewed.len() != after.renewed.len();
            let later = odd || after.renewed > before.renewed;
            (!later).then(|| {
                format!(
                    "{} renewed {} at {:?}: renewTime {} after {}",
                    e.replica, w.bucket, e.at, after.renewed, before.renewed
                )
            })
        }
        _ => None,
    }
}

fn two_at_once(run: &Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    // By replica and Lease, the write that is out; by number, whose it is.
    let mut out: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut of: BTreeMap<u64, (&str, &str)> = BTreeMap::new();
    for e in &run.entries {
        match &e.what {
            What::Asked(asked) if asked.kind.writes() => {
                let Some(lease) = &asked.lease else { continue };
                if out.insert((&e.replica, lease), asked.number).is_some() {
                    found.push(Violation(
                        "S3",
                        format!("{}: a second write of {lease} at {:?}, with one out", e.replica, e.at),
                    ));
                }
                of.insert(asked.number, (&e.replica, lease));
            }
            What::Answered { number, .. } => {
                if let Some(key) = of.remove(number)
                    && out.get(&key) == Some(number)
                {
                    out.remove(&key);
                }
            }
            _ => {}
        }
    }
    found
}
