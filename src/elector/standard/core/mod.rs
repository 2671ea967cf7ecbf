//! What a replica decides in the standard strategy: from what was seen, answered and told, and a time, to what is to be
//! done. No clock is read here, nothing is sent: a simulation and a test run the same code.
//!
//! The rules it keeps are named where they are kept (S1.. and sections are those of the design).

mod answer;
mod judge;
mod refused;
mod see;
mod slots;
#[cfg(test)]
mod tests;
mod upkeep;

use crate::bucket::BucketSet;
use crate::clock::{Instant, SharedClock};
use crate::elector::known::{Known, Waits};
use crate::elector::standard::layout::Layout;
use crate::elector::standard::slot::{Phase, Slot};
use crate::leader::observe::Event;
use crate::leader::tenure::{Ended, Limits};
use crate::leader::{Reason, Term};
use crate::lease::{Cut, Draft, Failure, Record};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A time: the clock that decides, and the one that people read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) at: Instant,
    pub(super) wall: Timestamp,
}

/// What of the configuration is needed here; it changes live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) lease_duration: Duration,
    pub(super) renew_deadline: Duration,
    pub(super) retry_period: Duration,
    pub(super) foreign_grace: Duration,
    pub(super) drain_timeout: Duration,
}

impl Settings {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            promote: self.renew_deadline,
            drain_timeout: self.drain_timeout,
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
        }
    }
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Bucket(usize),
    Layout,
    /// The layout Lease, read for what was taken: of these reads several may be out, so that no take waits for the read
    /// of another.
    Judge,
    /// A list of all of the queue.
    Queue,
}

/// A request to be sent.
#[derive(Debug)]
pub(super) enum Request {
    Get,
    List,
    Create(Draft),
    Replace(Draft),
}

/// What a request brought.
#[derive(Debug)]
pub(super) enum Reply {
    Record(Box<Record>),
    Missing,
    List(u64, Vec<Record>),
}

/// An answer to [`Action::Ask`].
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) ask: Ask,
    pub(super) result: Result<Reply, Failure>,
}

/// A request as it was asked for.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) target: Target,
    /// Counts up: what was sent after what.
    number: u64,
    /// Answers of a former epoch say nothing: the cluster's revision went back in between.
    epoch: u64,
    /// What was known when it was sent: the revision of the object (for a list, of the layout Lease).
    revision: u64,
    writes: bool,
    creates: bool,
}

/// To be done, in order.
#[derive(Debug)]
pub(super) enum Action {
    Ask(Ask, Request),
    /// A term begins: promote.
    Begin(usize, Term, Limits),
    /// A renewal under other durations has counted.
    Limit(usize, Limits),
    /// It ends, for this reason; a loss overtakes.
    End(usize, Reason),
    Observe(Event),
    /// A topic of the readiness page; None: nothing more to say.
    Say(&'static str, Option<String>),
    /// The view misses something, or the cluster's revision went back: only a list tells.
    Relist,
}

/// The topic under which a restored etcd is said.
const WENT_BACK: &str = "revision-went-back";

/// The state of one queue in one replica.
pub(super) struct Core {
    pub(super) me: String,
    clock: SharedClock,
    pub(super) slots: Vec<Slot>,
    by_name: HashMap<String, usize>,
    /// The order in which this replica takes what is free: its own, so that replicas starting together share.
    order: Vec<usize>,
    pub(super) layout: Layout,
    settings: Settings,
    rng: fastrand::Rng,
    stopping: Option<Instant>,
    number: u64,
    epoch: u64,
    /// The newest revision that the view has shown of this queue.
    shown: u64,
    /// An answer was newer than that: which, and since when the view has not caught up.
    behind: Option<(u64, Instant)>,
    refusals: refused::Refusals,
    /// Which standing of the layout was last told as news.
    told: String,
    /// What the readiness page says of buckets, and of which: it is taken back when all of them are held again.
    said_of: BTreeMap<&'static str, BTreeSet<usize>>,
    /// It was said that the cluster's revision went back, and the era has not been raised since.
    went_back: bool,
    out: Vec<Action>,
    wake: Option<Instant>,
}

impl Core {
    pub(super) fn new(
        me: String,
        set: &Arc<BucketSet>,
        cut: Cut,
        layout_name: String,
        settings: Settings,
        clock: SharedClock,
        mut rng: fastrand::Rng,
    ) -> Self {
        let slots: Vec<Slot> = (0..set.len()).map(|i| Slot::new(set.bucket(i))).collect();
        let by_name = slots.iter().enumerate().map(|(i, s)| (s.bucket.name().to_owned(), i)).collect();
        let mut order: Vec<usize> = (0..slots.len()).collect();
        rng.shuffle(&mut order);
        Self {
            me,
            clock,
            slots,
            by_name,
            order,
            layout: Layout::new(layout_name, cut),
            settings,
            rng,
            stopping: None,
            number: 0,
            epoch: 0,
            shown: 0,
            behind: None,
            refusals: refused::Refusals::default(),
            told: String::new(),
            said_of: BTreeMap::new(),
            went_back: false,
            out: Vec::new(),
            wake: None,
        }
    }

    pub(super) fn configure(&mut self, settings: Settings) {
        self.settings = settings;
    }

    pub(super) fn stop(&mut self, now: Now) {
        self.stopping.get_or_insert(now.at);
    }

    /// Everything given up, as far as it could be: the elector may return.
    pub(super) fn is_finished(&self, now: Now) -> bool {
        let Some(since) = self.stopping else { return false };
        let too_long = now.at >= since + self.settings.lease_duration;
        self.slots.iter().all(|s| {
            let settled = match s.phase {
                // Named as the holder of what it can neither read nor release: by then that has run out.
                Phase::Idle => too_long || !(s.names(&self.me) && s.is_own_write()),
                Phase::Left => true,
                // A take whose outcome can't be read: if it lands, it runs out by itself.
                Phase::Taking | Phase::Judging { .. } => too_long,
                Phase::Held(_) | Phase::Releasing { .. } => false,
            };
            settled && !s.tenure && !s.busy
        })
    }

    pub(super) fn promoted(&mut self, at: usize) {
        self.slots[at].promote_failures = 0;
    }

    /// A promote failed or hung: give the bucket back, and rest before it is taken again.
    pub(super) fn promote_failed(&mut self, at: usize, term: &Term, now: Now) {
        if !self.slots[at].holding().is_some_and(|h| h.term.is_same(term)) {
            return;
        }
        let failures = self.slots[at].promote_failures.min(16);
        let pause = (self.settings.retry_period * 2u32.pow(failures.min(10))).min(Duration::from_mins(5));
        let slot = &mut self.slots[at];
        slot.promote_failures = failures + 1;
        slot.resting_until = now.at + pause.mul_f64(1.0 + self.rng.f64() * 0.2);
        self.out.push(Action::End(at, Reason::Released));
        self.begin_release(at, now);
    }

    /// A tenure is over, its demote included.
    pub(super) fn ended(&mut self, at: usize, term: &Term, ended: Ended, now: Now) {
        self.slots[at].tenure = false;
        if !self.slots[at].holding().is_some_and(|h| h.term.is_same(term)) {
            return;
        }
        if ended.clean {
            self.begin_release(at, now);
        } else {
            // It saw its deadline pass while this was stuck: what is still ours is adopted by a write, for a new term.
            self.expire(at, now);
            self.lose(at);
        }
    }

    /// What is to be done now, and when to ask again at the latest.
    pub(super) fn decide(&mut self, now: Now) -> (Vec<Action>, Option<Instant>) {
        self.wake = None;
        for at in 0..self.slots.len() {
            self.expire(at, now);
        }
        self.decide_layout(now);
        for at in 0..self.slots.len() {
            self.decide_slot(at, now);
        }
        self.decide_takes(now);
        self.decide_view(now);
        self.forget_refusals(now);
        if let Some(since) = self.stopping {
            self.wake_at(since + self.settings.lease_duration, now);
        }
        (std::mem::take(&mut self.out), self.wake)
    }

    fn wake_at(&mut self, at: Instant, now: Now) {
        if at > now.at {
            self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
        }
    }

    fn ask(&mut self, target: Target, request: Request) -> u64 {
        self.number += 1;
        let creates = matches!(request, Request::Create(_));
        let writes = creates || matches!(request, Request::Replace(_));
        let revision = match target {
            Target::Bucket(at) => {
                self.slots[at].busy = true;
                self.slots[at].known.revision()
            }
            Target::Layout => {
                self.layout.busy = true;
                self.layout.known.revision()
            }
            Target::Judge => {
                self.layout.judging += 1;
                self.layout.known.revision()
            }
            Target::Queue => {
                self.layout.listing = true;
                self.layout.known.revision()
            }
        };
        let ask = Ask { target, number: self.number, epoch: self.epoch, revision, writes, creates };
        self.out.push(Action::Ask(ask, request));
        self.number
    }

    fn waits(&self) -> Waits {
        Waits { longest: self.settings.lease_duration.max(self.layout.longest()), grace: self.settings.foreign_grace }
    }

    fn each_known(&self) -> impl Iterator<Item = (&Known, bool)> {
        self.slots.iter().map(|s| (&s.known, true)).chain(self.layout.strays.values().map(|k| (k, false)))
    }

    fn notice(&mut self, code: &'static str, text: String) {
        self.out.push(Action::Observe(Event::Notice { code, text }));
    }

    /// Something that happened to one bucket.
    fn notice_of(&mut self, at: usize, code: &'static str, text: String) {
        self.said_of.entry(code).or_default().insert(at);
        self.notice(code, text);
    }

    /// One of us holds the bucket, as it should be: what was said of it is over.
    fn is_well(&mut self, at: usize) {
        let out = &mut self.out;
        self.said_of.retain(|code, of| {
            let over = of.remove(&at) && of.is_empty();
            if over {
                out.push(Action::Say(code, None));
            }
            !over
        });
    }

    /// What is held is lost: the term ends at once and writes nothing (S6).
    fn lose(&mut self, at: usize) {
        if matches!(self.slots[at].phase, Phase::Held(_)) {
            self.out.push(Action::End(at, Reason::Lost));
            self.slots[at].phase = Phase::Idle;
        }
    }

    fn begin_release(&mut self, at: usize, now: Now) {
        let Phase::Held(holding) = &self.slots[at].phase else { return };
        // What was stored last; a written one stands in the Lease already.
        let checkpoint = holding.term.checkpoint().pending();
        let until = now.at + self.settings.lease_duration;
        let slot = &mut self.slots[at];
        slot.checkpoint = checkpoint;
        slot.phase = Phase::Releasing { until };
    }

    fn pause(&mut self, failure: &Failure, failures: u32) -> Duration {
        let retry = self.settings.retry_period;
        let pause = match failure {
            Failure::Forbidden(_) | Failure::Refused { .. } => retry,
            Failure::Throttled(after) => (*after).min(retry),
            _ => Duration::from_millis(50).saturating_mul(1 << failures.min(10)).min(retry / 2),
        };
        pause.mul_f64(0.75 + self.rng.f64() * 0.25)
    }
}
