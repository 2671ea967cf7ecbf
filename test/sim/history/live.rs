//! Liveness: once the world is well every bucket of the layout has a holder within lease-duration and a second, and keeps
//! it; plus the grace where the last holder is not known to be one of us; plus lease-duration where the layout Lease was gone.
//!
//! The world is well from [`What::Calm`] on, and until [`What::Trouble`], from the last thing on that is no work of a living
//! replica: a process that begins or ends, a person's or client-go's write, a write or request from before that lands or
//! ends only now, the end of the work under a layout that is gone, the rest after a promote that failed. Each stretch between two such things is judged by itself.

use super::run::{RATE, Run, is_replica};
use super::version::{Cut, Version};
use super::{Call, Entry, Violation, What};
use leasehold::config::Timing;
use leasehold::leader::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What the design gives beside the durations.
const SLACK: Duration = Duration::from_secs(1);

/// Within how long every replica has noticed a restored etcd: a watch from a revision that is not there yet hangs, thrice.
const NOTICED: Duration = Duration::from_secs(45);

/// A living process.
#[derive(Clone)]
struct Life {
    wants: Cut,
    timing: Timing,
}

/// How things stand at one moment.
#[derive(Clone, Default)]
struct State<'a> {
    leases: BTreeMap<&'a str, Arc<Version>>,
    /// The longest duration that any Lease of this name ever said.
    ever: BTreeMap<&'a str, Duration>,
    living: BTreeMap<&'a str, Life>,
}

/// What the layout Lease means for whoever wants a bucket.
enum Standing {
    InForce(u32),
    /// Gone, or not opened: one lease-duration more.
    Gone,
    /// Nobody who lives wants what is being opened: it is cut anew after three.
    Unwanted,
    /// Nobody who lives wants what is in force.
    Foreign,
}

impl State<'_> {
    fn layout(&self) -> Option<&Arc<Version>> {
        self.leases.iter().find(|(name, _)| !name.contains("-of-")).map(|(_, v)| v)
    }

    fn wanted(&self, cut: &Cut) -> bool {
        self.living.values().any(|l| l.wants == *cut)
    }

    fn standing(&self) -> Standing {
        match self.layout().and_then(|v| v.layout.as_ref()) {
            None => Standing::Gone,
            Some(l) if l.open && self.wanted(&l.cut) => Standing::InForce(l.cut.buckets),
            Some(l) if l.open => Standing::Foreign,
            Some(l) if self.wanted(&l.cut) => Standing::Gone,
            Some(_) => Standing::Unwanted,
        }
    }

    /// Within how long from here on the bucket must have a holder; None: not at all.
    fn bound(&self, bucket: &str) -> Option<Duration> {
        let lives = || self.living.values();
        let own = lives().map(|l| l.timing.lease_duration).max()?;
        let grace = lives().map(|l| l.timing.renew_deadline).max()?;
        let queue = self.layout().and_then(|v| v.layout.as_ref()).map(|l| l.longest).unwrap_or_default();
        let longest = own.max(queue);
        // A first start waits for the longest that stands anywhere in the queue; a release record keeps what has bound.
        let all = self.ever.values().copied().max().unwrap_or_default().max(longest);
        let opening = match self.standing() {
            Standing::InForce(_) => Duration::ZERO,
            Standing::Gone => all,
            Standing::Unwanted => 4 * all,
            Standing::Foreign => return None,
        };
        let ever = self.ever.get(bucket).copied().unwrap_or_default();
        let wait = match self.leases.get(bucket) {
            None => longest.max(ever),
            Some(v) if v.released => Duration::ZERO,
            Some(v) if v.fresh => longest.max(ever),
            // Whoever did not see who held it last adds the grace.
            Some(v) if v.holder.is_empty() => longest.max(ever) + grace,
            Some(v) if v.is_foreign() => longest.max(v.spec_duration) + grace,
            Some(v) => longest.max(v.longest),
        };
        Some((wait + opening).mul_f64(RATE) + SLACK)
    }
}

/// A stretch in which nothing but living replicas did anything.
struct Stretch<'a> {
    from: Duration,
    state: State<'a>,
}

/// Goes through a history and says when the world is well.
#[derive(Default)]
struct Watch<'a> {
    state: State<'a>,
    calm: Option<Duration>,
    stretch: Option<Stretch<'a>>,
    /// Not well before: a promote failed, and is tried again after a rest.
    rests: Duration,
    failures: BTreeMap<(&'a str, &'a str), u32>,
    /// Requests that are out, by their number: whose, and since when.
    out: BTreeMap<u64, (&'a str, Duration)>,
    /// Calls of a LeaderAware that have not returned.
    calls: BTreeMap<(&'a str, &'a str), Duration>,
    stopping: BTreeSet<&'a str>,
}

impl<'a> Watch<'a> {
    /// Takes in what happened; gives the stretch that it ends.
    fn take(&mut self, e: &'a Entry) -> Option<(Stretch<'a>, Duration)> {
        let disturbs = self.follow(e);
        let well = self.calm.is_some()
            && self.stopping.is_empty()
            && self.calm.is_some_and(|calm| self.out.values().all(|(_, since)| *since >= calm));
        if !disturbs && (self.stretch.is_some() == well) {
            return None;
        }
        let ended = self.stretch.take().map(|s| (s, e.at));
        if well {
            self.stretch = Some(Stretch { from: e.at.max(self.rests), state: self.state.clone() });
        }
        ended
    }

    /// Whether it is a disturbance.
    fn follow(&mut self, e: &'a Entry) -> bool {
        let replica = &*e.replica;
        let before = |since: Duration| self.calm.is_some_and(|calm| since < calm);
        match &e.what {
            What::Born { wants, timing } => {
                self.state.living.insert(replica, Life { wants: wants.clone(), timing: *timing });
                true
            }
            What::Configured { timing } => {
                if let Some(life) = self.state.living.get_mut(replica) {
                    life.timing = *timing;
                }
                true
            }
            What::Told => {
                self.stopping.insert(replica);
                self.state.living.remove(replica);
                true
            }
            What::Stopped | What::Died => {
                self.stopping.remove(replica);
                self.state.living.remove(replica);
                self.out.retain(|_, (r, _)| *r != replica);
                true
            }
            What::Wrote(w) => {
                match &w.after {
                    Some(after) => {
                        let ever = self.state.ever.entry(&w.bucket).or_default();
                        *ever = (*ever).max(after.longest);
                        self.state.leases.insert(&w.bucket, Arc::clone(after));
                    }
                    None => drop(self.state.leases.remove(w.bucket.as_str())),
                }
                !is_replica(replica) || before(w.arrived)
            }
            What::Restored { leases } => {
                let names: Vec<&str> = self.state.ever.keys().copied().collect();
                self.state.leases.clear();
                for v in leases {
                    if let Some(name) = names.iter().find(|n| **n == v.name) {
                        self.state.leases.insert(name, Arc::clone(v));
                    }
                }
                self.rests = self.rests.max(e.at + NOTICED);
                true
            }
            What::Asked(asked) => {
                self.out.insert(asked.number, (replica, e.at));
                false
            }
            What::Answered { number, .. } => self.out.remove(number).is_some_and(|(_, since)| before(since)),
            What::Aware { bucket, call: Call::Promote | Call::Demote } => {
                self.calls.insert((replica, bucket), e.at);
                false
            }
            What::Aware { bucket, .. } => self.calls.remove(&(replica, bucket.as_str())).is_some_and(before),
            // Another layout, or none: its guards had up to drain-timeout.
            What::Ended { reason: Reason::Resharded, .. } => true,
            What::Promoted { bucket } => {
                self.failures.remove(&(replica, bucket.as_str()));
                false
            }
            What::PromoteFailed { bucket } => {
                let failures = self.failures.entry((replica, bucket)).or_default();
                let retry = self.state.living.get(replica).map_or(Duration::ZERO, |l| l.timing.retry_period);
                let rest = (retry * 2u32.pow(*failures)).min(Duration::from_mins(5)).mul_f64(1.2 * RATE);
                *failures = (*failures + 1).min(10);
                self.rests = self.rests.max(e.at + rest);
                true
            }
            What::Calm => {
                self.calm = Some(e.at);
                true
            }
            What::Trouble => {
                self.calm = None;
                true
            }
            _ => false,
        }
    }
}

pub fn check(run: &Run<'_>) -> Vec<Violation> {
    let holdings = holdings(run);
    let mut found = Vec::new();
    let mut watch = Watch::default();
    for e in &run.entries {
        let Some((stretch, until)) = watch.take(e) else { continue };
        if until <= stretch.from {
            continue;
        }
        let buckets = match watch.state.standing() {
            Standing::InForce(buckets) => buckets,
            _ => {
                // It must be in force by then, whatever bucket is looked at.
                if let Some(bound) = stretch.state.bound("")
                    && stretch.from + bound < until
                    && !matches!(e.what, What::Wrote(_) | What::Died | What::Told | What::Stopped | What::Born { .. })
                {
                    let text = format!("no layout in force at {until:?}, and the world well since {:?}", stretch.from);
                    found.push(Violation("live", text));
                }
                continue;
            }
        };
        let queue = watch.state.layout().map(|v| v.name.clone()).unwrap_or_default();
        let names = (0..buckets).map(|i| leasehold::bucket::lease_name(&queue, i, buckets));
        for bucket in names {
            let bucket = bucket.as_str();
            let Some(bound) = stretch.state.bound(bucket) else { continue };
            let mut at = stretch.from + bound;
            for (from, to) in holdings.get(bucket).map_or(&[][..], Vec::as_slice) {
                if *from <= at {
                    at = at.max(*to);
                }
            }
            if at < until {
                let text = format!(
                    "{bucket} has no holder at {at:?}; the world was well from {:?} until {until:?}, so it had to have one {bound:?} \
                     later: {:?}",
                    stretch.from,
                    stretch.state.leases.get(bucket)
                );
                found.push(Violation("live", text));
            }
        }
    }
    found
}

/// By bucket: from when until when some replica held it, in order.
fn holdings<'a>(run: &Run<'a>) -> BTreeMap<&'a str, Vec<(Duration, Duration)>> {
    let mut all: BTreeMap<&str, Vec<(Duration, Duration)>> = BTreeMap::new();
    for term in &run.terms {
        let Some(from) = term.promoted else { continue };
        let ends = [term.shut, term.ended.map(|(at, _)| at), run.died.get(term.replica).copied()];
        let to = ends.into_iter().flatten().min().unwrap_or(Duration::MAX);
        all.entry(term.bucket).or_default().push((from, to));
    }
    for list in all.values_mut() {
        list.sort();
    }
    all
}

/// What still keeps the world from being well, for whoever has waited for that in vain.
pub fn pending(entries: &[Entry]) -> String {
    let mut watch = Watch::default();
    let mut last = Vec::new();
    for e in entries {
        if watch.take(e).is_some() {
            last.push(e);
        }
    }
    let last = &last[last.len().saturating_sub(5)..];
    let requests = entries.iter().filter(|e| matches!(&e.what, What::Asked(a) if watch.out.contains_key(&a.number)));
    let requests: Vec<&Entry> = requests.collect();
    let due = watch.stretch.map(|s| (s.from, s.state.living.len()));
    format!(
        "stopping {:?}, due from {due:?}, rests until {:?}, requests out {requests:?}, last disturbed by {last:#?}",
        watch.stopping, watch.rests
    )
}

/// When every bucket must have a holder, if nothing is done to the world any more.
pub fn due(entries: &[Entry], now: Duration) -> Duration {
    let mut watch = Watch::default();
    for e in entries {
        watch.take(e);
    }
    let Some(stretch) = watch.stretch else { return now + SLACK };
    let names = stretch.state.ever.keys().copied().chain([""]);
    let bound = names.filter_map(|b| stretch.state.bound(b)).max().unwrap_or_default();
    stretch.from + bound
}
