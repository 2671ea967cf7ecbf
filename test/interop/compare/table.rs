//! The measurements as tables in Markdown.

use super::measure::{Cut, Measured, Pair, SLOW, quantile, reads};
use super::{BUCKETS, Plan, REPLICAS};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

/// Seconds with as many digits as say something.
fn seconds(s: f64) -> String {
    if s.abs() < 1.0 { format!("{:.0} ms", s * 1e3) } else { format!("{s:.1} s") }
}

fn duration(d: Duration) -> String {
    if d.is_zero() { "0".to_owned() } else { seconds(d.as_secs_f64()) }
}

/// What was measured of each kind by itself.
pub(super) fn of_kinds(plan: &Plan, all: &[Measured]) -> String {
    let t = plan.timing;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{REPLICAS} replicas, {BUCKETS} buckets; lease-duration {:?}, renew-deadline {:?}, retry-period {:?}.\n",
        t.lease, t.renew, t.retry
    );
    let names: Vec<_> = all.iter().map(|m| m.kind.name()).collect();
    let _ = writeln!(text, "| | {} |\n| --- |{}", names.join(" | "), " --- |".repeat(all.len()));
    let mut row = |what: &str, of: &dyn Fn(&Measured) -> String| {
        let cells: Vec<_> = all.iter().map(of).collect();
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    };
    row("hand-over after SIGTERM: median", &|m| seconds(quantile(&m.handover, 0.5)));
    row("p99", &|m| seconds(quantile(&m.handover, 0.99)));
    row("of so many", &|m| m.handover.len().to_string());
    row("takeover after SIGKILL, from the expiry: median", &|m| seconds(quantile(&m.takeover, 0.5)));
    row("at most", &|m| seconds(quantile(&m.takeover, 1.0)));
    row("of so many", &|m| m.takeover.len().to_string());
    let counted: Vec<_> = all.iter().filter_map(|m| m.requests.as_ref()).collect();
    let verbs: BTreeSet<_> = counted.iter().flat_map(|r| r.iter().filter(|(_, n)| **n > 0).map(|(v, _)| v)).collect();
    for verb in verbs {
        row(&format!("requests per minute: {verb}"), &|m| {
            m.requests.as_ref().map_or("not counted".into(), |r| r.get(verb).copied().unwrap_or(0).to_string())
        });
    }
    row("requests per minute that read (GET, LIST)", &|m| {
        m.requests.as_ref().map_or("not counted".into(), |r| reads(r).to_string())
    });
    row("holder in a black hole: acts on after its last renewal for", &|m| duration(m.hole.acted));
    row("the next acts, after that renewal", &|m| duration(m.hole.next));
    row("**two act for, at most**", &|m| duration(m.hole.overlap));
    row(&format!("work takes {SLOW:?} to end after SIGTERM: **two act for, at most**"), &|m| duration(m.slow));
    text
}

/// What was measured of one of each kind.
pub(super) fn of_pairs(pairs: &[Pair]) -> String {
    let mut text = "| holder in a black hole | the next | the holder acts on after its last renewal for | the next acts, after that \
                    renewal | two act for |\n| --- | --- | --- | --- | --- |\n"
        .to_owned();
    for p in pairs {
        let (acted, next) = (duration(p.hole.acted), duration(p.hole.next));
        let _ = writeln!(
            text,
            "| {}{} | {} | {acted} | {next} | {} |",
            p.holder.name(),
            if p.cut == Cut::AtPut { ", before the PUT of a renewal" } else { "" },
            p.next.name(),
            duration(p.overlap)
        );
    }
    text
}
