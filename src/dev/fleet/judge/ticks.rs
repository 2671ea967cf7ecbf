//! Every event that reached the sink, by source and scheduled second: 24 bytes for the first of each.
//!
//! Memory grows with sources x seconds: about 3.5 MB per hour for 40 sources.

use super::history::History;
use super::terms::{Senders, TermKey};
use crate::clock::Instant;
use std::time::Duration;

/// Ticks from this long before the run are still told apart (a catch-up); older ones are only counted.
const BEFORE: i64 = 600;
/// Ticks from this long after the moment of their arrival are told apart; later ones are only counted.
const AHEAD: i64 = 600;
/// How many misses and the like are named in the report.
const NAMED: usize = 5;

/// The scheduled seconds in which a tick of every source is expected, as Unix seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first second.
    pub first: i64,
    /// The one after the last.
    pub end: i64,
}

impl Window {
    /// The seconds that begin at or after `from` and before `until`, both in nanoseconds since 1970.
    pub fn between(from: i128, until: i128) -> Self {
        let up = |nanos: i128| i64::try_from(-(-nanos).div_euclid(1_000_000_000)).unwrap_or(i64::MAX);
        Self { first: up(from), end: up(until).max(up(from)) }
    }

    /// How many seconds.
    pub fn seconds(self) -> u64 {
        u64::try_from(self.end - self.first).unwrap_or(0)
    }

    fn has(self, second: i64) -> bool {
        (self.first..self.end).contains(&second)
    }
}

/// An event as the sink saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// A hash of its id.
    pub id: u64,
    /// When its head had been read.
    pub at: Instant,
    /// The bucket and token it says it was sent under.
    pub key: Option<TermKey>,
}

/// Arrivals of one (source, second) beyond the first.
#[derive(Debug, Clone, Copy)]
struct Again {
    source: u32,
    second: i64,
    arrival: Arrival,
}

/// All events of a run.
#[derive(Debug)]
pub struct Ticks {
    began: Instant,
    began_wall: i64,
    /// Per source, by seconds since `began_wall - BEFORE`.
    first: Vec<Vec<Option<Compact>>>,
    again: Vec<Again>,
    /// Events that are no tick of a known source, but name a term.
    others: Vec<(Instant, TermKey)>,
    other: u64,
    window: Option<Window>,
    /// How many (source, second) of the window have an event.
    filled: u64,
    total: u64,
}

/// [`Arrival`] in 24 bytes; the time doubles as the niche.
#[derive(Debug, Clone, Copy)]
struct Compact {
    at: std::num::NonZeroU64,
    id: u64,
    key: Option<TermKey>,
}

impl From<Arrival> for Compact {
    fn from(a: Arrival) -> Self {
        let at = std::num::NonZeroU64::new(a.at.as_nanos()).unwrap_or(std::num::NonZeroU64::MIN);
        Self { at, id: a.id, key: a.key }
    }
}

impl From<Compact> for Arrival {
    fn from(c: Compact) -> Self {
        Self { id: c.id, at: Instant::from_nanos(c.at.get()), key: c.key }
    }
}

impl Ticks {
    /// Of `sources` sources, in a run that began at `began`, which the wall clock called `began_wall`.
    pub fn new(sources: u32, began: Instant, began_wall: i64) -> Self {
        Self {
            began,
            began_wall,
            first: vec![Vec::new(); sources as usize],
            again: Vec::new(),
            others: Vec::new(),
            other: 0,
            window: None,
            filled: 0,
            total: 0,
        }
    }

    /// Where ticks are expected, as soon as it is known, and again where it is cut short.
    pub fn expect(&mut self, window: Window) {
        self.window = Some(window);
        let filled = |at: usize| window.has(self.second(at));
        self.filled = self
            .first
            .iter()
            .map(|ticks| ticks.iter().enumerate().filter(|(at, tick)| tick.is_some() && filled(*at)).count() as u64)
            .sum();
    }

    /// Where ticks are expected.
    pub fn window(&self) -> Option<Window> {
        self.window
    }

    fn second(&self, at: usize) -> i64 {
        self.began_wall - BEFORE + i64::try_from(at).unwrap_or(i64::MAX / 2)
    }

    fn index(&self, second: i64, arrived: Instant) -> Option<usize> {
        let now = self.began_wall + i64::try_from(arrived.since(self.began).as_secs()).ok()?;
        let at = usize::try_from(second.checked_sub(self.began_wall - BEFORE)?).ok()?;
        (second <= now + AHEAD).then_some(at)
    }

    /// An event of source number `source`, scheduled at `second`.
    pub fn arrived(&mut self, source: u32, second: i64, arrival: Arrival) {
        let at = self.index(second, arrival.at);
        let (Some(at), Some(ticks)) = (at, self.first.get_mut(source as usize)) else {
            self.other(arrival.at, arrival.key);
            return;
        };
        self.total += 1;
        if ticks.len() <= at {
            ticks.resize(at + 1, None);
        }
        if ticks[at].is_some() {
            self.again.push(Again { source, second, arrival });
            return;
        }
        ticks[at] = Some(arrival.into());
        self.filled += u64::from(self.window.is_some_and(|w| w.has(second)));
    }

    /// An event that is no tick of a known source.
    pub fn other(&mut self, at: Instant, key: Option<TermKey>) {
        self.other += 1;
        self.others.extend(key.map(|key| (at, key)));
    }

    /// How many events arrived, of whatever kind.
    pub fn total(&self) -> u64 {
        self.total + self.other
    }

    /// How many ticks are expected in the whole window.
    pub fn expected(&self) -> u64 {
        self.window.map_or(0, |w| w.seconds() * self.first.len() as u64)
    }

    /// How many of those have no event yet.
    pub fn outstanding(&self) -> u64 {
        self.expected().saturating_sub(self.filled)
    }
}

/// One (source, second).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick {
    /// The number of the source.
    pub source: u32,
    /// The scheduled Unix second.
    pub second: i64,
}

/// What the events show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ticks of the window.
    pub expected: u64,
    /// Events for them, each delivery counted.
    pub received: u64,
    /// Ticks of the window without an event.
    pub missed: u64,
    /// Ticks with events of different ids, or sent under two terms that overlap; wherever they are scheduled.
    pub doubled: u64,
    /// Deliveries of an id that had been delivered; wherever they are scheduled.
    pub redelivered: u64,
    /// Events that arrived longer than lease-duration - renew-deadline after the term they name had ended.
    pub late: u64,
    /// Ticks of known sources outside the window: while starting and while stopping.
    pub outside: u64,
    /// Events that are no tick of a known source.
    pub other: u64,
    /// Events under a term that no replica told of.
    pub untold: u64,
    /// Some of the ticks that were missed.
    pub missed_ticks: Vec<Tick>,
    /// Some of those that were doubled.
    pub doubled_ticks: Vec<Tick>,
}

/// Judges the events of a finished history.
pub fn count(history: &History, senders: &Senders) -> Counts {
    let ticks = &history.ticks;
    let mut counts = Counts { expected: ticks.expected(), other: ticks.other, ..Counts::default() };
    missed(ticks, &mut counts);
    let in_window = |second| ticks.window.is_some_and(|w| w.has(second));
    counts.received = ticks.filled + ticks.again.iter().filter(|a| in_window(a.second)).count() as u64;
    counts.outside = ticks.total - counts.received;
    repeated(ticks, senders, &mut counts);
    reused_ids(ticks, &mut counts);

    let slack = history.setup.lease_duration.saturating_sub(history.setup.renew_deadline);
    let firsts = ticks.first.iter().flatten().flatten().map(|&c| Arrival::from(c)).map(|a| (a.at, a.key));
    let agains = ticks.again.iter().map(|a| (a.arrival.at, a.arrival.key));
    let others = ticks.others.iter().map(|&(at, key)| (at, Some(key)));
    for (at, key) in firsts.chain(agains).chain(others) {
        late(senders, slack, at, key, &mut counts);
    }
    counts
}

fn missed(ticks: &Ticks, counts: &mut Counts) {
    let Some(window) = ticks.window else { return };
    for (source, seconds) in (0_u32..).zip(&ticks.first) {
        for second in window.first..window.end {
            let at = usize::try_from(second - (ticks.began_wall - BEFORE)).ok();
            if at.and_then(|at| seconds.get(at)).is_none_or(Option::is_none) {
                counts.missed += 1;
                if counts.missed_ticks.len() < NAMED {
                    counts.missed_ticks.push(Tick { source, second });
                }
            }
        }
    }
}

/// Ticks that arrived more than once.
fn repeated(ticks: &Ticks, senders: &Senders, counts: &mut Counts) {
    let mut again = ticks.again.clone();
    // Stable: the order of arrival stays.
    again.sort_by_key(|a| (a.source, a.second));
    for group in again.chunk_by(|a, b| (a.source, a.second) == (b.source, b.second)) {
        let Again { source, second, .. } = group[0];
        let at = usize::try_from(second - (ticks.began_wall - BEFORE)).unwrap_or(usize::MAX);
        let first = ticks.first[source as usize].get(at).copied().flatten().map(Arrival::from);
        let all: Vec<Arrival> = first.into_iter().chain(group.iter().map(|a| a.arrival)).collect();
        let mut doubled = false;
        for (n, one) in all.iter().enumerate() {
            let before = &all[..n];
            counts.redelivered += u64::from(before.iter().any(|b| b.id == one.id));
            doubled |= before
                .iter()
                .any(|b| b.id != one.id || matches!((b.key, one.key), (Some(x), Some(y)) if senders.overlap(x, y)));
        }
        counts.doubled += u64::from(doubled);
        if doubled && counts.doubled_ticks.len() < NAMED {
            counts.doubled_ticks.push(Tick { source, second });
        }
    }
}

/// An id that comes back for another second of its source is the same id again too: a receiver would drop it.
fn reused_ids(ticks: &Ticks, counts: &mut Counts) {
    for seconds in &ticks.first {
        let mut ids: Vec<u64> = seconds.iter().flatten().map(|tick| tick.id).collect();
        ids.sort_unstable();
        counts.redelivered += ids.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    }
}

fn late(senders: &Senders, slack: Duration, at: Instant, key: Option<TermKey>, counts: &mut Counts) {
    let Some(key) = key else { return };
    match senders.in_force_until(key) {
        None => counts.untold += 1,
        Some(until) => counts.late += u64::from(at > until + slack),
    }
}
