//! The rules in force and the watches that are open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::watch;

use super::rule::Match;
use super::{Cut, Effect, Outage, Staleness};
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::status::Status;

/// A rule, to be removed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(u64);

/// One thing that happens to a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Delay(Duration),
    Hang,
    Drop,
    Answer(Status),
}

/// Everything that happens to one request.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) before: Vec<Step>,
    pub(crate) after: Vec<Step>,
    pub(crate) late: Option<Duration>,
    pub(crate) stale: Option<Staleness>,
}

/// What is being done to an open watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Control {
    pub(crate) silent: bool,
    pub(crate) lag: Duration,
    pub(crate) cut: Option<Cut>,
}

#[derive(Debug)]
struct Rule {
    id: RuleId,
    client: Arc<str>,
    matcher: Match,
    effect: Effect,
    seen: u64,
    fired: u64,
}

#[derive(Debug)]
struct Open {
    call: Call,
    control: watch::Sender<Control>,
}

#[derive(Debug)]
struct Inner {
    rules: Vec<Rule>,
    open: BTreeMap<u64, Open>,
    rng: fastrand::Rng,
    next: u64,
}

/// The rules and the open watches of one server. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Board(Arc<Mutex<Inner>>);

/// Marks a watch as open for as long as it lives.
#[derive(Debug)]
pub(crate) struct WatchTicket {
    id: u64,
    board: Board,
}

impl Drop for WatchTicket {
    fn drop(&mut self) {
        self.board.lock().open.remove(&self.id);
    }
}

fn is_for(rule: &str, client: &str) -> bool {
    rule == "*" || rule == client
}

impl Inner {
    fn control_of(&self, call: &Call) -> Control {
        let mut control = Control::default();
        for rule in &self.rules {
            if !is_for(&rule.client, &call.client) || !rule.matcher.covers(call, None) {
                continue;
            }
            match rule.effect {
                Effect::SilentWatch | Effect::Outage(Outage::BlackHole) => control.silent = true,
                Effect::LagWatch(d) => control.lag = control.lag.max(d),
                _ => {}
            }
        }
        control
    }

    fn steer(&self) {
        for open in self.open.values() {
            let new = self.control_of(&open.call);
            open.control.send_if_modified(|c| {
                let next = Control { cut: c.cut, ..new };
                let differs = *c != next;
                *c = next;
                differs
            });
        }
    }

    fn cut(&self, client: &str, which: &Match, how: Cut) -> usize {
        let mut n = 0;
        for open in self.open.values() {
            if is_for(client, &open.call.client) && which.covers(&open.call, None) {
                open.control.send_modify(|c| c.cut = Some(how));
                n += 1;
            }
        }
        n
    }
}

impl Board {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = fastrand::Rng::with_seed(seed ^ 0x6661_756c_7473);
        Self(Arc::new(Mutex::new(Inner { rules: Vec::new(), open: BTreeMap::new(), rng, next: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The faults of one client; `*` for those of all.
    pub(crate) fn handle(&self, client: &str) -> Faults {
        Faults { board: self.clone(), client: client.into() }
    }

    /// What happens to a request. Counts it.
    pub(crate) fn plan(&self, call: &Call) -> Plan {
        let mut plan = Plan::default();
        let mut inner = self.lock();
        let Inner { rules, rng, .. } = &mut *inner;
        for rule in rules.iter_mut() {
            if !is_for(&rule.client, &call.client) || !rule.matcher.covers(call, call.about()) {
                continue;
            }
            rule.seen += 1;
            if !rule.matcher.fires(rule.seen, rule.fired, rng) {
                continue;
            }
            rule.fired += 1;
            plan.add(rule.effect);
        }
        plan
    }

    /// Takes note of a watch that has been opened, and says what is being done to it.
    pub(crate) fn opened(&self, call: &Call) -> (WatchTicket, watch::Receiver<Control>) {
        let mut inner = self.lock();
        let id = inner.next;
        inner.next += 1;
        let (control, seen) = watch::channel(inner.control_of(call));
        inner.open.insert(id, Open { call: Call { body: bytes::Bytes::new(), ..call.clone() }, control });
        (WatchTicket { id, board: self.clone() }, seen)
    }
}

impl Plan {
    fn add(&mut self, effect: Effect) {
        let answer = |code: u16, retry_after| {
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Step::Answer(Status::of_code(code, retry_after))
        };
        match effect {
            Effect::DelayBefore(d) => self.before.push(Step::Delay(d)),
            Effect::DelayAfter(d) => self.after.push(Step::Delay(d)),
            Effect::HangBefore | Effect::Outage(Outage::BlackHole) => self.before.push(Step::Hang),
            Effect::HangAfter => self.after.push(Step::Hang),
            Effect::DropBefore | Effect::Outage(Outage::Refused) => self.before.push(Step::Drop),
            Effect::DropAfter => self.after.push(Step::Drop),
            Effect::AnswerBefore(code, after) => self.before.push(answer(code, after)),
            Effect::Outage(Outage::Answers(code)) => self.before.push(answer(code, None)),
            Effect::AnswerAfter(code, after) => self.after.push(answer(code, after)),
            Effect::LateCommit(d) => self.late = Some(self.late.unwrap_or_default().max(d)),
            Effect::Stale(s) => self.stale = Some(s),
            Effect::SilentWatch | Effect::LagWatch(_) => {}
        }
    }
}

/// The faults of one client, or of all (`*`). Clones act on the same rules.
#[derive(Debug, Clone)]
pub struct Faults {
    board: Board,
    client: Arc<str>,
}

impl Faults {
    /// Adds a rule. It stands until it is removed; [`Match::times`] bounds how often it acts.
    ///
    /// For [`Effect::SilentWatch`], [`Effect::LagWatch`] and [`Effect::Outage`] the counting conditions of the match
    /// do not apply to watches: all that are covered are affected, as long as the rule stands.
    pub fn inject(&self, matcher: Match, effect: Effect) -> RuleId {
        let mut inner = self.board.lock();
        let id = RuleId(inner.next);
        inner.next += 1;
        if matches!(effect, Effect::Outage(Outage::Refused | Outage::Answers(_))) {
            inner.cut(&self.client, &matcher, Cut::Reset);
        }
        inner.rules.push(Rule { id, client: self.client.clone(), matcher, effect, seen: 0, fired: 0 });
        inner.steer();
        id
    }

    /// Nothing of this client gets through, until the rule is removed.
    pub fn outage(&self, how: Outage) -> RuleId {
        self.inject(Match::any(), Effect::Outage(how))
    }

    /// Ends a rule. What hangs because of it goes on hanging; a watch that was silent shows what it missed.
    pub fn remove(&self, rule: RuleId) {
        let mut inner = self.board.lock();
        inner.rules.retain(|r| r.id != rule);
        inner.steer();
    }

    /// Ends all rules made through this client's handle.
    pub fn clear(&self) {
        let mut inner = self.board.lock();
        inner.rules.retain(|r| r.client != self.client);
        inner.steer();
    }

    /// How often a rule has acted; 0 for one that is no more.
    pub fn fired(&self, rule: RuleId) -> u64 {
        self.board.lock().rules.iter().find(|r| r.id == rule).map_or(0, |r| r.fired)
    }

    /// Ends the open watches that the match covers; says how many.
    pub fn cut_watches(&self, which: &Match, how: Cut) -> usize {
        self.board.lock().cut(&self.client, which, how)
    }

    /// How many of the open watches the match covers.
    pub fn open_watches(&self, which: &Match) -> usize {
        let inner = self.board.lock();
        inner.open.values().filter(|o| is_for(&self.client, &o.call.client) && which.covers(&o.call, None)).count()
    }
}
