//! The report of a run as JSON, and the verdict.

use super::handover::{Handovers, handovers};
use super::history::{History, ProcessId};
use super::terms::{Senders, overlaps};
use super::ticks::{Counts, Tick, count};
use crate::dev::fleet::cluster::Requests;
use crate::dev::fleet::options::{Chaos, Options, strategy_name};
use serde::Serialize;
use std::collections::BTreeMap;

/// How many overlaps are named.
const NAMED: usize = 5;

/// What `--report` writes. Fields beyond those of the issue may be added, none are taken away.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `--replicas`.
    pub replicas: u32,
    /// `--buckets`.
    pub buckets: u32,
    /// `--strategy`.
    pub strategy: &'static str,
    /// How long ticks were expected: `--for`, or less where the run was interrupted.
    pub seconds: f64,
    /// What the sink got.
    pub events: Events,
    /// Pairs of terms of one bucket that were in force at one instant.
    pub overlaps: u64,
    /// How long buckets were without a holder, by the kind of trouble.
    pub handovers: ByKind,
    /// How many buckets each replica held just before the fleet was stopped.
    pub held: BTreeMap<String, u64>,
    /// Lease requests by verb from before the first replica started until after the last had ended; null where the
    /// server does not say.
    pub lease_requests: Option<Requests>,
    /// The same, while ticks were expected.
    pub lease_requests_in_window: Option<Requests>,
    /// `--chaos`.
    pub chaos: &'static str,
    /// How many troubles there were.
    pub troubles: u64,
    /// `--seed`, or the one that was made up.
    pub seed: u64,
    /// How often a replica ended although nobody had asked it to.
    pub unasked_exits: u64,
    /// Whether the run was cut short by a signal.
    pub interrupted: bool,
    /// `passed` or `failed`.
    pub verdict: &'static str,
    /// Which conditions failed.
    pub failures: Vec<String>,
    /// What a person should know besides.
    pub notes: Vec<String>,
}

/// What the sink got.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Events {
    /// Ticks scheduled from 1 s after every bucket was first held until `--for` is over.
    pub expected: u64,
    /// Events for them, each delivery counted.
    pub received: u64,
    /// (source, scheduled second) without an event.
    pub missed: u64,
    /// (source, scheduled second) with events of different ids, or sent under two terms that overlap.
    pub doubled: u64,
    /// Deliveries of an id that had been delivered.
    pub redelivered: u64,
    /// Events that arrived more than lease-duration - renew-deadline after the term they name had ended.
    pub late: u64,
    /// Ticks of the fleet's own sources outside the window, while starting and stopping.
    pub outside: u64,
    /// Events that are no tick of the fleet's own sources.
    pub other: u64,
    /// Events under a term that no replica told of.
    pub untold: u64,
}

/// Hand-overs by the kind of the trouble.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ByKind {
    /// SIGTERM.
    pub term: Times,
    /// SIGKILL.
    pub kill: Times,
    /// SIGSTOP for three lease-durations.
    pub pause: Times,
    /// SIGKILL, and the same Pod again at once.
    pub restart: Times,
}

/// Count and percentiles, in milliseconds; null where there were none.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Times {
    /// How many were finished.
    pub count: u64,
    /// The median, by nearest rank.
    pub p50_ms: Option<f64>,
    /// The 99th percentile, by nearest rank.
    pub p99_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
    /// How many had no next holder when the run ended.
    pub unfinished: u64,
}

impl From<Handovers> for Times {
    fn from(h: Handovers) -> Self {
        // Microseconds are enough, and keep the JSON readable.
        let ms = |percent| h.percentile(percent).map(|nanos| (nanos as f64 / 1e3).round() / 1e3);
        Self { count: h.nanos.len() as u64, p50_ms: ms(50), p99_ms: ms(99), max_ms: ms(100), unfinished: h.unfinished }
    }
}

/// What the history of a run does not say.
#[derive(Debug, Clone, Default)]
pub struct Circumstances {
    /// Buckets per living process just before the fleet was stopped.
    pub held: BTreeMap<ProcessId, u64>,
    /// Lease requests of the whole run.
    pub requests: Option<Requests>,
    /// Lease requests while ticks were expected.
    pub requests_in_window: Option<Requests>,
    /// Ends that nobody had asked for.
    pub unasked_exits: u64,
    /// Cut short by a signal.
    pub interrupted: bool,
    /// How long ticks were expected.
    pub seconds: f64,
    /// What a person should know besides.
    pub notes: Vec<String>,
}

/// Judges a finished run.
pub fn judge(options: &Options, history: &History, around: Circumstances) -> Report {
    let overlaps = overlaps(history);
    let senders = Senders::new(history, &overlaps);
    let counts = count(history, &senders);
    let times = |kind| Times::from(handovers(history, kind));
    let mut failures = failures(options.chaos, &counts, overlaps.len());
    let mut notes = around.notes;
    notes.extend(overlaps.iter().take(NAMED).map(|o| {
        let (a, b) = (&history.terms.all()[o.first], &history.terms.all()[o.second]);
        let token = |t: Option<crate::leader::FencingToken>| t.map_or_else(|| "none".to_owned(), |t| t.to_string());
        format!(
            "overlap of {:?} in {}: {} (token {}) and {} (token {})",
            o.until.since(o.from),
            history.terms.bucket_name(a.bucket),
            history.identity(a.process),
            token(a.token),
            history.identity(b.process),
            token(b.token),
        )
    }));
    notes.extend(named("missed", counts.missed, &counts.missed_ticks));
    notes.extend(named("doubled", counts.doubled, &counts.doubled_ticks));
    if history.terms.strays() > 0 {
        notes.push(format!(
            "{} report lines spoke of terms whose beginning was never told; they are not judged",
            history.terms.strays()
        ));
    }
    failures.retain(|f| !f.is_empty());
    Report {
        replicas: options.replicas,
        buckets: options.buckets,
        strategy: strategy_name(options.strategy),
        seconds: around.seconds,
        events: Events {
            expected: counts.expected,
            received: counts.received,
            missed: counts.missed,
            doubled: counts.doubled,
            redelivered: counts.redelivered,
            late: counts.late,
            outside: counts.outside,
            other: counts.other,
            untold: counts.untold,
        },
        overlaps: overlaps.len() as u64,
        handovers: ByKind {
            term: times(Chaos::Term),
            kill: times(Chaos::Kill),
            pause: times(Chaos::Pause),
            restart: times(Chaos::Restart),
        },
        held: held(history, &around.held),
        lease_requests: around.requests,
        lease_requests_in_window: around.requests_in_window,
        chaos: options.chaos.as_str(),
        troubles: history.troubles.len() as u64,
        seed: options.seed,
        unasked_exits: around.unasked_exits,
        interrupted: around.interrupted,
        verdict: if failures.is_empty() { "passed" } else { "failed" },
        failures,
        notes,
    }
}

impl Report {
    /// Whether every condition held.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Which conditions failed, each as a sentence.
fn failures(chaos: Chaos, counts: &Counts, overlaps: usize) -> Vec<String> {
    let mut failures = Vec::new();
    let mut unless_zero = |count: u64, what: &str| {
        if count > 0 {
            failures.push(format!("{count} {what}"));
        }
    };
    unless_zero(overlaps as u64, "overlaps: two terms of one bucket were in force at one instant");
    unless_zero(counts.missed, "missed: a scheduled tick had no event");
    unless_zero(counts.doubled, "doubled: a tick had events of different ids, or under two terms that overlap");
    unless_zero(counts.late, "late: an event left its sender long after the term it names had ended");
    // After a crash a tick since the last checkpoint may come again: at least once. In good order it may not.
    if matches!(chaos, Chaos::None | Chaos::Term) {
        unless_zero(counts.redelivered, "redelivered: an id came again although every hand-over was in good order");
    }
    failures
}

fn held(history: &History, held: &BTreeMap<ProcessId, u64>) -> BTreeMap<String, u64> {
    held.iter().map(|(&process, &buckets)| (history.identity(process).to_owned(), buckets)).collect()
}

fn named(what: &str, count: u64, some: &[Tick]) -> Option<String> {
    let ticks: Vec<String> = some
        .iter()
        .map(|tick| {
            let at =
                jiff::Timestamp::from_second(tick.second).map_or_else(|_| tick.second.to_string(), |t| t.to_string());
            format!("source {} at {at}", tick.source)
        })
        .collect();
    let more = count.saturating_sub(some.len() as u64);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (count > 0).then(|| format!("{what}: {}{rest}", ticks.join(", ")))
}
