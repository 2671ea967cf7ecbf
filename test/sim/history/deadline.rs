//! S2 and S7: no guard is given, and no work goes on, later than a renewal or take of its bucket that was carried out
//! justifies: its arrival, and the part of the duration it says that renew-deadline is. (What heeds no cancelling has until
//! the Lease runs out, and ends with its process: for that there are S1 and S6.)

use super::run::{Run, TICK, TRUE_RATE};
use super::{Violation, What, Write};
use std::collections::BTreeMap;
use std::time::Duration;

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    for e in &run.entries {
        if let What::Born { timing, .. } | What::Configured { timing } = &e.what {
            let part = timing.renew_deadline.as_secs_f64() / timing.lease_duration.as_secs_f64();
            let most = parts.entry(&e.replica).or_default();
            *most = most.max(part);
        }
    }
    // From when until when each write justifies acting, in the order of their arrival.
    let mut covers: BTreeMap<(&str, &str), Vec<(Duration, Duration)>> = BTreeMap::new();
    for (e, w) in run.writes() {
        let Some(part) = parts.get(&*e.replica) else { continue };
        if let Write::Took { duration } | Write::Renewed { duration } = w.write {
            let until = w.arrived + duration.mul_f64(part * TRUE_RATE) + TICK;
            covers.entry((&e.replica, &w.bucket)).or_default().push((w.arrived, until));
        }
    }
    for all in covers.values_mut() {
        all.sort();
    }
    let mut found = Vec::new();
    for act in run.acts().filter(|a| !a.stubborn && parts.contains_key(a.replica)) {
        let all = covers.get(&(act.replica, act.bucket)).map_or(&[][..], Vec::as_slice);
        // A renewal while a guard is out prolongs it: each is good until then, from its arrival on. None is good for
        // longer than a day, and few are looked at.
        let mut at = act.at;
        let mut next = all.partition_point(|(from, _)| *from <= at);
        if let Some(until) = all[..next].iter().rev().take(16).map(|(_, until)| *until).max() {
            at = at.max(until);
        }
        let started = at > act.at;
        while at < act.until && next < all.len() && all[next].0 <= at {
            at = at.max(all[next].1);
            next += 1;
        }
        if at < act.until {
            let rule = if started { "S7" } else { "S2" };
            let text = format!(
                "{} of {}: {} acts from {:?} until {:?}, and no write covers it after {at:?}",
                act.key, act.bucket, act.replica, act.at, act.until
            );
            found.push(Violation(rule, text));
        }
    }
    found
}
