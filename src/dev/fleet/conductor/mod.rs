//! The course of a run: replicas start, trouble moves among them, everybody comes back, everybody is stopped.
//!
//! A pure state machine: what was heard goes in ([`Conductor::heard`], [`Conductor::ended`]), and [`Conductor::step`] says
//! what is to be done. It starts no process and reads no clock, so a whole run can be played in a test.
//!
//! # Guarantees
//! - One trouble at a time: the next waits until every replica is up and every bucket is held.
//! - Every process that was started is told to end, and killed where it does not.

mod chaos;
mod command;
mod holders;
mod slot;

pub use chaos::Scheduler;
pub use command::{Command, Failure, Phase, Signal};
pub use holders::{Holders, Holding};
pub use slot::{Slot, State};

use crate::adapter::report::Line;
use crate::clock::Instant;
use crate::dev::fleet::judge::{ProcessId, Trouble};
use crate::dev::fleet::options::{Chaos, Options};
use std::collections::BTreeMap;
use std::time::Duration;

/// A replica that was stopped or killed is replaced so long after its end.
const REPLACED_AFTER: Duration = Duration::from_secs(1);
/// Ticks are expected from so long after every bucket was first held.
const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// How long a replica may take to end after SIGTERM: what Kubernetes gives a Pod.
const STOP_GRACE: Duration = Duration::from_secs(30);
/// What is still not in so long after lease-duration has passed does not come.
const OUTSTANDING_GRACE: Duration = Duration::from_secs(5);
/// Starting may take so long, and four lease-durations.
const START_GRACE: Duration = Duration::from_mins(1);

/// What a run is to be.
#[derive(Debug, Clone)]
struct Plan {
    buckets: usize,
    lease_duration: Duration,
    length: Duration,
    stateful: bool,
}

/// Conducts one run.
#[derive(Debug)]
pub struct Conductor {
    plan: Plan,
    phase: Phase,
    /// When the phase began.
    since: Instant,
    slots: Vec<Slot>,
    holders: Holders,
    scheduler: Scheduler,
    troubles: Vec<Trouble>,
    /// From when until when ticks are expected.
    window: Option<(Instant, Instant)>,
    held: BTreeMap<ProcessId, u64>,
    unasked_exits: u64,
    interrupted: bool,
    failure: Option<Failure>,
    said: Vec<(Instant, String)>,
}

impl Conductor {
    /// A run that begins at `now`.
    pub fn new(options: &Options, now: Instant) -> Self {
        let stateful = options.strategy == crate::config::StrategyKind::StatefulSet;
        Self {
            plan: Plan {
                buckets: options.buckets_to_hold(),
                lease_duration: options.lease_duration,
                length: options.length,
                stateful,
            },
            phase: Phase::Starting,
            since: now,
            slots: (0..options.replicas as usize).map(|n| Slot::new(n, stateful, now)).collect(),
            holders: Holders::default(),
            scheduler: Scheduler::new(options.chaos, options.every, options.seed),
            troubles: Vec::new(),
            window: None,
            held: BTreeMap::new(),
            unasked_exits: 0,
            interrupted: false,
            failure: None,
            said: Vec::new(),
        }
    }

    /// Where the run is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Who is where.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Who holds what.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }

    /// From when until when ticks are expected, once that is known; cut short by an interruption.
    pub fn window(&self) -> Option<(Instant, Instant)> {
        self.window
    }

    /// The troubles so far.
    pub fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    /// Buckets per living process just before the fleet was stopped.
    pub fn held(&self) -> &BTreeMap<ProcessId, u64> {
        &self.held
    }

    /// How often a replica ended although nobody had asked it to.
    pub fn unasked_exits(&self) -> u64 {
        self.unasked_exits
    }

    /// Whether the run was cut short.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Why there is no verdict.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// What happened, in words, in order.
    pub fn said(&self) -> &[(Instant, String)] {
        &self.said
    }

    fn say(&mut self, now: Instant, text: impl Into<String>) {
        self.said.push((now, text.into()));
    }

    fn slot_of(&mut self, process: ProcessId) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.state.process() == Some(process))
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        (self.phase, self.since) = (phase, now);
    }

    /// The replica of a [`Command::Start`] runs.
    pub fn started(&mut self, slot: usize, process: ProcessId) {
        let Some(slot) = self.slots.get_mut(slot) else { return };
        slot.state = State::Starting { process };
        let restarted = self.troubles.last_mut().filter(|t| t.kind == Chaos::Restart && t.successor.is_none());
        if let Some(trouble) = restarted {
            trouble.successor = Some(process);
        }
    }

    /// The replica of a [`Command::Start`] could not be started.
    pub fn not_started(&mut self, slot: usize, why: String, now: Instant) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.state = State::Gone;
        }
        self.fail(Failure::NotStarted(why), now);
    }

    fn fail(&mut self, failure: Failure, now: Instant) {
        self.failure.get_or_insert(failure);
        if !matches!(self.phase, Phase::Stopping | Phase::Done) {
            self.enter(Phase::Stopping, now);
        }
    }

    /// A process reported a line. Lines of processes that have ended change nothing.
    pub fn heard(&mut self, process: ProcessId, line: &Line, now: Instant) {
        let Some(slot) = self.slot_of(process) else { return };
        if slot.state == (State::Starting { process }) {
            slot.state = State::Up { process };
        }
        match line {
            Line::TermBegun { bucket, token, at, deadline } => {
                let (begun, deadline) = (Instant::from_nanos(*at), Instant::from_nanos(*deadline));
                self.holders.begun(bucket, Holding { process, token: *token, begun, promoted: false, deadline });
            }
            Line::Promoted { bucket, token, .. } => self.holders.promoted(bucket, process, *token),
            Line::DeadlineMoved { bucket, token, deadline, .. } => {
                self.holders.moved(bucket, process, *token, Instant::from_nanos(*deadline));
            }
            Line::GuardsOut { bucket, token, .. } => self.holders.shut(bucket, process, *token),
            Line::TermEnded { bucket, token, .. } => self.holders.ended(bucket, process, *token),
            Line::Notice { code, text, .. } => {
                let text = format!("{}: {code}: {text}", self.name(process));
                self.say(now, text);
            }
            _ => {}
        }
    }

    fn name(&self, process: ProcessId) -> &str {
        let slot = self.slots.iter().find(|slot| slot.state.process() == Some(process));
        slot.map_or("?", |slot| slot.pod.name.as_str())
    }

    /// A process has ended, `how` in words.
    pub fn ended(&mut self, process: ProcessId, how: &str, now: Instant) {
        let (stateful, starting) = (self.plan.stateful, self.phase == Phase::Starting);
        let stopping = matches!(self.phase, Phase::Stopping | Phase::Done);
        self.holders.died(process);
        let name = self.name(process).to_owned();
        let Some(slot) = self.slot_of(process) else { return };
        let was = slot.state;
        let (at, another_pod, unasked) = match was {
            State::Leaving { by: Some(Chaos::Restart), .. } => (now, false, false),
            State::Leaving { .. } => (now + REPLACED_AFTER, true, false),
            // As a container that ends by itself: the same Pod, a little later.
            _ => (now + REPLACED_AFTER, false, true),
        };
        slot.state = if stopping { State::Gone } else { State::Down { at } };
        if another_pod && !stopping {
            slot.renew(stateful);
        }
        if unasked && !stopping {
            self.unasked_exits += 1;
            self.say(now, format!("{name} ended by itself: {how}"));
            if starting && matches!(was, State::Starting { .. }) {
                self.fail(Failure::EndedAtOnce { process, how: how.to_owned() }, now);
            }
        }
    }

    /// Ctrl-C and the like: each brings the run one phase on.
    pub fn interrupt(&mut self, now: Instant) -> Vec<Command> {
        match self.phase {
            Phase::Starting => self.fail(Failure::Interrupted, now),
            Phase::Running => {
                self.interrupted = true;
                if let Some((from, until)) = &mut self.window {
                    *until = now.max(*from).min(*until);
                }
                self.say(now, "interrupted: waiting for what is outstanding");
                self.settle(now);
            }
            Phase::Settling => {
                self.interrupted = true;
                self.stop(now);
            }
            Phase::Stopping => return self.kill_all(now),
            Phase::Done => {}
        }
        Vec::new()
    }

    /// What is to be done by now; `outstanding` expected ticks have no event.
    pub fn step(&mut self, now: Instant, outstanding: u64) -> Vec<Command> {
        let mut commands = Vec::new();
        for slot in &mut self.slots {
            if let State::Waking { process } = slot.state
                && !self.holders.owes_an_end(process, now)
            {
                slot.state = State::Up { process };
            }
        }
        match self.phase {
            Phase::Starting => self.starting(now),
            Phase::Running => self.running(now, &mut commands),
            Phase::Settling => {
                let limit = self.since + self.plan.lease_duration + OUTSTANDING_GRACE;
                if (outstanding == 0 && self.calm(now)) || now >= limit {
                    self.stop(now);
                }
            }
            Phase::Stopping | Phase::Done => {}
        }
        if self.phase == Phase::Stopping {
            self.stopping(now, &mut commands);
        }
        self.slots_move(now, &mut commands);
        commands
    }

    fn calm(&self, now: Instant) -> bool {
        self.slots.iter().all(|slot| matches!(slot.state, State::Up { .. }))
            && self.holders.all_held(self.plan.buckets, now)
    }

    fn starting(&mut self, now: Instant) {
        if self.holders.all_held(self.plan.buckets, now) {
            let from = now + SETTLED_AFTER;
            self.window = Some((from, from + self.plan.length));
            self.scheduler.begin(from);
            let took = now.since(self.since);
            self.say(now, format!("every bucket is held, after {:.1} s", took.as_secs_f64()));
            self.enter(Phase::Running, now);
            return;
        }
        let after = now.since(self.since);
        if after > START_GRACE + 4 * self.plan.lease_duration {
            let reporting =
                |slot: &&Slot| !matches!(slot.state, State::Starting { .. } | State::Down { .. } | State::Gone);
            let failure = Failure::NotHeld {
                held: self.holders.held(now),
                of: self.plan.buckets,
                after,
                reporting: self.slots.iter().filter(reporting).count(),
            };
            self.fail(failure, now);
        }
    }

    fn running(&mut self, now: Instant, commands: &mut Vec<Command>) {
        if self.window.is_some_and(|(_, until)| now >= until) {
            self.say(now, "time is over: no more trouble, waiting for what is outstanding");
            self.settle(now);
            return;
        }
        let holds: Vec<usize> = self
            .slots
            .iter()
            .map(|slot| slot.state.process().map_or(0, |process| self.holders.held_by(process, now)))
            .collect();
        let calm = self.calm(now);
        if let Some((kind, victim)) = self.scheduler.next(now, calm, &holds) {
            self.make_trouble(kind, victim, holds[victim], now, commands);
        }
    }

    fn make_trouble(&mut self, kind: Chaos, slot: usize, holds: usize, now: Instant, commands: &mut Vec<Command>) {
        let Some(process) = self.slots[slot].state.process() else { return };
        let (signal, state) = match kind {
            Chaos::None => return,
            Chaos::Term => (Signal::Term, State::Leaving { process, by: Some(kind), since: now, killed: false }),
            Chaos::Kill | Chaos::Restart => {
                (Signal::Kill, State::Leaving { process, by: Some(kind), since: now, killed: true })
            }
            Chaos::Pause => (Signal::Stop, State::Paused { process, until: now + 3 * self.plan.lease_duration }),
        };
        self.slots[slot].state = state;
        let text = format!("{kind}: {}, which holds {holds}", self.slots[slot].pod.name);
        self.say(now, text);
        self.troubles.push(Trouble { kind, process, at: now, resumed: None, successor: None });
        commands.push(Command::Signal { process, signal });
    }

    fn settle(&mut self, now: Instant) {
        self.scheduler.end();
        for slot in &mut self.slots {
            if let State::Paused { until, .. } = &mut slot.state {
                *until = now;
            }
        }
        self.enter(Phase::Settling, now);
    }

    fn stop(&mut self, now: Instant) {
        self.held = self
            .slots
            .iter()
            .filter_map(|slot| slot.state.process())
            .map(|process| (process, self.holders.held_by(process, now) as u64))
            .collect();
        self.say(now, "stopping the replicas");
        self.enter(Phase::Stopping, now);
    }

    /// Everybody who has not been told to end is; done when everybody has ended.
    fn stopping(&mut self, now: Instant, commands: &mut Vec<Command>) {
        for slot in &mut self.slots {
            match slot.state {
                State::Starting { process } | State::Up { process } | State::Waking { process } => {
                    commands.push(Command::Signal { process, signal: Signal::Term });
                    slot.state = State::Leaving { process, by: None, since: now, killed: false };
                }
                State::Paused { process, .. } => {
                    // SIGTERM waits in a stopped process until it goes on.
                    commands.push(Command::Signal { process, signal: Signal::Term });
                    commands.push(Command::Signal { process, signal: Signal::Cont });
                    slot.state = State::Leaving { process, by: None, since: now, killed: false };
                    resumed(&mut self.troubles, process, now);
                }
                State::Down { .. } => slot.state = State::Gone,
                State::Leaving { .. } | State::Gone => {}
            }
        }
        if self.slots.iter().all(|slot| slot.state == State::Gone) {
            self.enter(Phase::Done, now);
        }
    }

    /// What time brings: who is down starts, who is paused goes on, who does not end is killed.
    fn slots_move(&mut self, now: Instant, commands: &mut Vec<Command>) {
        let mut late = Vec::new();
        for slot in &mut self.slots {
            match slot.state {
                State::Down { at } if now >= at => {
                    commands.push(Command::Start { slot: slot.number, pod: slot.pod.clone() });
                }
                State::Paused { process, until } if now >= until => {
                    commands.push(Command::Signal { process, signal: Signal::Cont });
                    slot.state = State::Waking { process };
                    resumed(&mut self.troubles, process, now);
                }
                State::Leaving { process, by, since, killed: false } if now >= since + STOP_GRACE => {
                    commands.push(Command::Signal { process, signal: Signal::Kill });
                    slot.state = State::Leaving { process, by, since, killed: true };
                    late.push(slot.pod.name.clone());
                }
                _ => {}
            }
        }
        for name in late {
            self.say(now, format!("{name} has not ended {STOP_GRACE:?} after SIGTERM: killed"));
        }
    }

    fn kill_all(&mut self, now: Instant) -> Vec<Command> {
        self.say(now, "interrupted again: killing the replicas");
        let mut commands = Vec::new();
        for slot in &mut self.slots {
            if let Some(process) = slot.state.process() {
                commands.push(Command::Signal { process, signal: Signal::Kill });
                slot.state = State::Leaving { process, by: None, since: now, killed: true };
            }
        }
        commands
    }
}

fn resumed(troubles: &mut [Trouble], process: ProcessId, now: Instant) {
    if let Some(trouble) = troubles.iter_mut().rev().find(|t| t.kind == Chaos::Pause && t.process == process) {
        trouble.resumed.get_or_insert(now);
    }
}

#[cfg(test)]
mod tests;
