//! S8: two layouts of one queue are never acted on at one time; and a term begins only under a layout that stood in force
//! after its take had been carried out: it is read after the take was answered (6.1).

use super::run::Run;
use super::version::LayoutRef;
use super::{Violation, What, Write};
use std::collections::BTreeMap;
use std::time::Duration;

/// The layout a take was made under, when it was sent, and when it was carried out.
struct Take<'a> {
    layout: &'a LayoutRef,
    sent: Duration,
    landed: Duration,
}

/// By replica, bucket and revision. After a restore revisions repeat.
type Takes<'a> = BTreeMap<(&'a str, &'a str, u64), Vec<Take<'a>>>;

/// The last one of that revision that was sent by then.
fn take<'t, 'a>(
    takes: &'t Takes<'a>,
    replica: &'a str,
    bucket: &'a str,
    revision: u64,
    at: Duration,
) -> Option<&'t Take<'a>> {
    takes.get(&(replica, bucket, revision))?.iter().rev().find(|t| t.sent <= at)
}

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut takes: Takes<'_> = BTreeMap::new();
    for (e, w) in run.writes().filter(|(_, w)| matches!(w.write, Write::Took { .. })) {
        if let Some(vouch) = w.after.as_ref().and_then(|v| v.vouch.as_ref()) {
            let take = Take { layout: &vouch.layout, sent: w.arrived, landed: e.at };
            takes.entry((&e.replica, &w.bucket, w.revision)).or_default().push(take);
        }
    }
    let mut found = mixed(run, &takes);
    found.extend(not_in_force(run, &takes));
    found
}

fn mixed(run: &Run<'_>, takes: &Takes<'_>) -> Vec<Violation> {
    let mut acts: Vec<(Duration, Duration, &LayoutRef, &str)> = run
        .acts()
        .filter(|a| a.at < a.until)
        .filter_map(|a| {
            let take = take(takes, a.replica, a.bucket, a.token?.revision(), a.at)?;
            Some((a.at, a.until, take.layout, a.bucket))
        })
        .collect();
    acts.sort_by_key(|(at, until, ..)| (*at, *until));
    let mut found = Vec::new();
    let mut until: BTreeMap<&LayoutRef, (Duration, &str)> = BTreeMap::new();
    for (at, end, layout, bucket) in acts {
        let other = until.iter().find(|(l, (end, _))| **l != layout && *end > at);
        if let Some((other, (end, old))) = other
            && !run.is_excused(at)
        {
            let text =
                format!("{old} is acted on until {end:?} under {other:?}, {bucket} from {at:?} under {layout:?}");
            found.push(Violation("S8", text));
        }
        let last = until.entry(layout).or_insert((end, bucket));
        if last.0 < end {
            *last = (end, bucket);
        }
    }
    found
}

fn not_in_force(run: &Run<'_>, takes: &Takes<'_>) -> Vec<Violation> {
    // Which layout was in force from when on.
    let mut force: Vec<(Duration, Option<LayoutRef>)> = Vec::new();
    for e in &run.entries {
        let now = match &e.what {
            What::Wrote(w) => {
                let of = |v: &Option<std::sync::Arc<super::Version>>| v.as_ref().and_then(|v| v.layout.clone());
                if of(&w.before).is_none() && of(&w.after).is_none() {
                    continue;
                }
                of(&w.after)
            }
            What::Restored { leases } => leases.iter().find_map(|l| l.layout.clone()),
            _ => continue,
        };
        force.push((e.at, now.filter(|l| l.open).map(|l| l.id)));
    }
    let mut found = Vec::new();
    for term in &run.terms {
        let Some(take) = term.token.and_then(|t| take(takes, term.replica, term.bucket, t.revision(), term.begun))
        else {
            continue;
        };
        // Of what was written in the same instant nobody knows what came first.
        let from = force.iter().rposition(|(at, _)| *at < take.landed).unwrap_or(0);
        let stood =
            force[from..].iter().take_while(|(at, _)| *at <= term.begun).any(|(_, l)| l.as_ref() == Some(take.layout));
        if !stood && !force.is_empty() {
            let text = format!(
                "{}: a term of {} begins at {:?} under {:?}, which was not in force since its take landed at {:?}",
                term.replica, term.bucket, term.begun, take.layout, take.landed
            );
            found.push(Violation("S8", text));
        }
    }
    found
}
