//! The verdict, for people.

use super::judge::{Report, Times};
use std::fmt::Write as _;

/// A report in a few lines; the last says whether the run passed.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    let e = &report.events;
    let _ = writeln!(
        text,
        "events     {} expected, {} received, {} missed, {} doubled, {} redelivered, {} late",
        e.expected, e.received, e.missed, e.doubled, e.redelivered, e.late
    );
    let _ = writeln!(text, "overlaps   {}", report.overlaps);
    let h = &report.handovers;
    for (kind, times) in [("term", h.term), ("kill", h.kill), ("pause", h.pause), ("restart", h.restart)] {
        if times.count + times.unfinished > 0 {
            let _ = writeln!(text, "hand-over  {kind}: {}", of_times(&times));
        }
    }
    let held: Vec<String> = report.held.iter().map(|(who, count)| format!("{who} {count}")).collect();
    let _ = writeln!(text, "held       {}", if held.is_empty() { "-".to_owned() } else { held.join(", ") });
    match report.lease_requests {
        Some(r) => {
            let _ = writeln!(
                text,
                "requests   {} get, {} list, {} watch, {} create, {} update, {} delete",
                r.get, r.list, r.watch, r.create, r.update, r.delete
            );
        }
        None => text.push_str("requests   not known\n"),
    }
    for note in &report.notes {
        let _ = writeln!(text, "note       {note}");
    }
    let verdict = if report.passed() { "PASSED".to_owned() } else { format!("FAILED: {}", report.failures.join("; ")) };
    let interrupted = if report.interrupted { ", interrupted" } else { "" };
    let _ = writeln!(
        text,
        "{verdict} ({:.1} s{interrupted}, chaos {}, {} troubles, seed {})",
        report.seconds, report.chaos, report.troubles, report.seed
    );
    text
}

fn of_times(times: &Times) -> String {
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.1} ms"));
    let open = if times.unfinished > 0 { format!(", {} unfinished", times.unfinished) } else { String::new() };
    format!("{} times, p50 {}, p99 {}, max {}{open}", times.count, ms(times.p50_ms), ms(times.p99_ms), ms(times.max_ms))
}
