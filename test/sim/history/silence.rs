//! S4 and 5.1: what was not released is taken only after the taker can have seen its uid and spec unchanged for the longest
//! duration that binds, and the grace where the last holder is not known to be one of us.
//!
//! Judged from the commits in true time: nobody can have seen a version before it was written. What a taker cannot know
//! (durations in versions that are gone) is not asked of it.

use super::run::{RATE, Run, TICK, is_replica};
use super::version::Version;
use super::{Entry, Violation, What, Write, Wrote};
use leasehold::config::Timing;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A Lease in the course of a run.
#[derive(Default)]
struct Course {
    /// This uid and spec were written then.
    since: Duration,
    /// They came by a restore: somebody may have seen them long before.
    restored: bool,
    /// The last who held it under this uid was one of us.
    ours: bool,
}

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut courses: BTreeMap<&str, Course> = BTreeMap::new();
    let mut takes: BTreeMap<(&str, &str), Take<'_>> = BTreeMap::new();
    // Who has not noticed that etcd was restored: revisions repeat, and what it decides on one may land on another.
    let mut blind: BTreeSet<&str> = BTreeSet::new();
    let mut graces: BTreeMap<&str, Duration> = BTreeMap::new();
    // The longest duration that the layout Lease said, and since when.
    let mut layout: Vec<(Duration, Duration)> = vec![(Duration::ZERO, Duration::ZERO)];
    for e in &run.entries {
        match &e.what {
            What::Born { timing: Timing { renew_deadline, .. }, .. }
            | What::Configured { timing: Timing { renew_deadline, .. } } => {
                let least = graces.entry(&e.replica).or_insert(*renew_deadline);
                *least = (*least).min(*renew_deadline);
            }
            What::Restored { leases } => {
                blind.extend(graces.keys());
                for lease in leases {
                    let ours = lease.vouch.is_some();
                    let name = run.writes().find(|(_, w)| w.bucket == lease.name).map(|(_, w)| w.bucket.as_str());
                    if let Some(name) = name {
                        courses.insert(name, Course { since: e.at, restored: true, ours });
                    }
                }
            }
            What::Notice(text) if text.starts_with("revision-went-back") => drop(blind.remove(&*e.replica)),
            What::Wrote(w) => {
                if let Some(said) = w.after.as_ref().and_then(|v| v.layout.as_ref()) {
                    layout.push((e.at, said.longest));
                } else if let (Write::Took { duration }, Some(before)) = (&w.write, &w.before)
                    && is_replica(&e.replica)
                {
                    let course = courses.entry(&w.bucket).or_default();
                    let grace = graces.get(&*e.replica).copied().unwrap_or_default();
                    let take = Take {
                        e,
                        w,
                        before,
                        since: course.since,
                        lenient: course.restored || blind.contains(&*e.replica),
                        ours: course.ours,
                        grace,
                    };
                    found.extend(take.early(*duration));
                    takes.insert((&e.replica, &w.bucket), take);
                }
                follow(courses.entry(&w.bucket).or_default(), e.at, w);
            }
            // What the layout Lease says binds whoever acts: it is read from quorum before a term begins.
            What::Begun { bucket, .. } => {
                let Some(take) = takes.remove(&(&*e.replica, bucket.as_str())) else { continue };
                let from = layout.iter().rposition(|(at, _)| *at < take.w.arrived).unwrap_or(0);
                found.extend(take.early(layout[from..].iter().map(|(_, d)| *d).min().unwrap_or_default()));
            }
            _ => {}
        }
    }
    found
}

fn follow(course: &mut Course, at: Duration, w: &Wrote) {
    let Some(after) = &w.after else {
        *course = Course { since: at, ..Course::default() };
        return;
    };
    if !w.before.as_ref().is_some_and(|b| b.stands_as(after)) {
        course.since = at;
        course.restored = false;
    }
    if w.before.as_ref().is_none_or(|b| b.uid != after.uid) {
        course.ours = after.fresh;
    }
    if !after.holder.is_empty() {
        course.ours = after.vouch.is_some();
    }
}

/// A take, and what it was made of.
struct Take<'a> {
    e: &'a Entry,
    w: &'a Wrote,
    before: &'a Version,
    since: Duration,
    lenient: bool,
    ours: bool,
    grace: Duration,
}

impl Take<'_> {
    /// Whether it came too early, where `longest` binds besides what stood in the Lease.
    fn early(&self, longest: Duration) -> Option<Violation> {
        let Self { e, w, before, .. } = *self;
        let own = before.holder.starts_with(&format!("{}_", e.replica));
        // What it finds itself to hold it may write anew (S5); what was released it may take.
        if own || before.released || self.lenient || before.holder.starts_with("retired-") {
            return None;
        }
        // Known to be ours by who saw it, or by our stamp and leaseTransitions of 0 (5.1): whoever writes another holder
        // raises that, but a person with an editor.
        let ours = before.vouch.is_some() || before.fresh || before.holder.is_empty() && self.ours;
        let grace = if ours { Duration::ZERO } else { self.grace };
        let wait = grace
            + match &before.vouch {
                Some(vouch) => longest.max(vouch.duration),
                None if before.holder.is_empty() => longest.max(before.longest),
                None => longest.max(before.spec_duration),
            };
        let seen = w.arrived.saturating_sub(self.since);
        (seen.mul_f64(RATE) + TICK < wait).then(|| {
            let text = format!(
                "{} took {before:?} at {:?}, sent at {:?}: it had stood so for {seen:?}, and {wait:?} bind",
                e.replica, e.at, w.arrived
            );
            Violation("S4", text)
        })
    }
}
