//! Whole runs on a clock of their own, with a fleet that only pretends.

use super::*;
use crate::config::StrategyKind;
use crate::dev::fleet::replica::Pod;
use crate::leader::{FencingToken, Reason};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * MS)
}

/// A replica that pretends: takes buckets nobody holds, renews, and ends as told.
#[derive(Debug, Clone)]
struct Fake {
    pod: Pod,
    hello_at: u64,
    said_hello: bool,
    stopped: bool,
    /// When it ends, once it was told to.
    ends_at: Option<u64>,
    /// Its terms: token and deadline.
    holds: BTreeMap<usize, (u64, u64)>,
    deaf: bool,
}

/// A cluster and its replicas that pretend, on a clock of their own.
struct Pretend {
    conductor: Conductor,
    now: u64,
    fakes: BTreeMap<ProcessId, Fake>,
    started: u32,
    /// When each bucket's record runs out; held by whom.
    records: Vec<Option<(ProcessId, u64)>>,
    next_token: u64,
    lease: u64,
    outstanding: u64,
    log: Vec<(u64, String)>,
    /// New replicas do not hear SIGTERM.
    deaf: bool,
    /// New replicas never say hello.
    mute: bool,
}

const STEP: u64 = 10;

impl Pretend {
    fn new(options: &Options) -> Self {
        Self {
            conductor: Conductor::new(options, at(0)),
            now: 0,
            fakes: BTreeMap::new(),
            started: 0,
            records: vec![None; options.buckets as usize],
            next_token: 1,
            lease: u64::try_from(options.lease_duration.as_millis()).unwrap(),
            outstanding: 0,
            log: Vec::new(),
            deaf: false,
            mute: false,
        }
    }

    fn bucket(n: usize) -> String {
        format!("b{n}")
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::Start { slot, pod } => {
                    let process = ProcessId(self.started);
                    self.started += 1;
                    self.log.push((self.now, format!("start {} {}", pod.name, process.0)));
                    let fake = Fake {
                        pod,
                        hello_at: self.now + 100,
                        said_hello: false,
                        stopped: false,
                        ends_at: None,
                        holds: BTreeMap::new(),
                        deaf: self.deaf,
                    };
                    self.fakes.insert(process, fake);
                    self.conductor.started(slot, process);
                }
                Command::Signal { process, signal } => {
                    self.log.push((self.now, format!("{signal:?} {}", process.0)));
                    let fake = self.fakes.get_mut(&process).expect("only the living are signalled");
                    match signal {
                        Signal::Term if !fake.deaf => fake.ends_at = Some(self.now + 50),
                        Signal::Term => {}
                        Signal::Kill => {
                            fake.stopped = false;
                            fake.holds.clear();
                            fake.ends_at = Some(self.now);
                        }
                        Signal::Stop => fake.stopped = true,
                        Signal::Cont => fake.stopped = false,
                    }
                }
            }
        }
    }

    fn tell(&mut self, process: ProcessId, line: &Line) {
        self.conductor.heard(process, line, at(self.now));
    }

    /// One step of what pretends.
    fn live(&mut self) {
        let processes: Vec<ProcessId> = self.fakes.keys().copied().collect();
        for process in processes {
            let mut fake = self.fakes.remove(&process).unwrap();
            if fake.ends_at.is_some_and(|end| self.now >= end) && !fake.stopped {
                for (n, (token, _)) in std::mem::take(&mut fake.holds) {
                    self.records[n] = None;
                    self.tell(process, &ended(n, token, self.now, Reason::Shutdown));
                }
                self.conductor.ended(process, "as told", at(self.now));
                self.log.push((self.now, format!("end {}", process.0)));
                continue;
            }
            if fake.stopped || self.mute {
                self.fakes.insert(process, fake);
                continue;
            }
            if !fake.said_hello && self.now >= fake.hello_at {
                fake.said_hello = true;
                self.tell(process, &hello());
            }
            if fake.said_hello && fake.ends_at.is_none() {
                self.elect(process, &mut fake);
            }
            self.fakes.insert(process, fake);
        }
    }

    fn elect(&mut self, process: ProcessId, fake: &mut Fake) {
        let deadline = self.now + self.lease * 2 / 3;
        for n in 0..self.records.len() {
            match fake.holds.get(&n).copied() {
                Some((token, was)) if was <= self.now => {
                    fake.holds.remove(&n);
                    self.tell(process, &ended(n, token, self.now, Reason::Lost));
                }
                Some((token, _)) => {
                    fake.holds.insert(n, (token, deadline));
                    self.records[n] = Some((process, self.now + self.lease));
                    let bucket = Self::bucket(n);
                    let (deadline, at) = (deadline * MS, self.now * MS);
                    self.tell(process, &Line::DeadlineMoved { bucket, token: Some(fence(token)), deadline, at });
                }
                None if self.records[n].is_none_or(|(_, until)| self.now >= until) => {
                    let token = self.next_token;
                    self.next_token += 1;
                    fake.holds.insert(n, (token, deadline));
                    self.records[n] = Some((process, self.now + self.lease));
                    let at = self.now * MS;
                    let begun = Line::TermBegun {
                        bucket: Self::bucket(n),
                        token: Some(fence(token)),
                        at,
                        deadline: deadline * MS,
                    };
                    self.tell(process, &begun);
                    self.tell(process, &Line::Promoted { bucket: Self::bucket(n), token: Some(fence(token)), at });
                }
                None => {}
            }
        }
    }

    fn step(&mut self) {
        self.live();
        let commands = self.conductor.step(at(self.now), self.outstanding);
        self.carry_out(commands);
        self.now += STEP;
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("never {what}; {:?}", self.log);
    }

    fn run(&mut self) {
        self.run_until("done", |p| p.conductor.phase() == Phase::Done);
        assert!(self.fakes.is_empty(), "somebody was left behind");
    }

    /// When things of this kind happened.
    fn times(&self, what: &str) -> Vec<u64> {
        self.log.iter().filter(|(_, text)| text.starts_with(what)).map(|(at, _)| *at).collect()
    }
}

fn fence(n: u64) -> FencingToken {
    FencingToken::new(0, n)
}

fn hello() -> Line {
    Line::Hello {
        pid: 1,
        identity: "x".to_owned(),
        component: "c".to_owned(),
        probe_port: None,
        metrics_port: None,
        at: 0,
    }
}

fn ended(n: usize, token: u64, now: u64, reason: Reason) -> Line {
    let at = now * MS;
    Line::TermEnded { bucket: Pretend::bucket(n), token: Some(fence(token)), reason, acted_until: at, at }
}

fn options(chaos: Chaos) -> Options {
    Options {
        chaos,
        every: Duration::from_secs(5),
        length: Duration::from_mins(1),
        lease_duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_secs(1),
        buckets: 4,
        seed: 42,
        ..Options::default()
    }
}

#[test]
fn a_run_without_trouble() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.run();
    assert_eq!(p.conductor.failure(), None);
    assert_eq!((p.started, p.conductor.troubles().len(), p.conductor.unasked_exits()), (3, 0, 0));
    let (from, until) = p.conductor.window().unwrap();
    assert_eq!((from, until.since(from)), (at(1_100), Duration::from_mins(1)), "1 s after the hello that took all");
    assert_eq!(p.conductor.held().values().sum::<u64>(), 4);
    assert_eq!(p.times("Term").len(), 3);
    assert!(p.times("Term")[0] >= 61_100);
}

#[test]
fn stopped_and_killed_replicas_are_replaced_a_second_later_as_others() {
    for chaos in [Chaos::Term, Chaos::Kill] {
        let mut p = Pretend::new(&options(chaos));
        p.run();
        let troubles = p.conductor.troubles().to_vec();
        assert!(troubles.len() >= 5, "{chaos}: {}", troubles.len());
        for trouble in &troubles {
            let end = p.times(&format!("end {}", trouble.process.0))[0];
            let next = p.log.iter().find(|(at, text)| *at > end && text.starts_with("start"));
            assert_eq!(next.map(|(at, _)| *at), Some(end + 1_000), "{chaos}");
        }
        let pods: std::collections::BTreeSet<&str> =
            p.log.iter().filter_map(|(_, t)| t.strip_prefix("start ")?.split(' ').next()).collect();
        assert_eq!(pods.len(), p.started as usize, "every start is another Pod");
        assert_eq!(p.conductor.unasked_exits(), 0);
    }
}

#[test]
fn the_next_trouble_waits_until_everybody_is_back_and_every_bucket_is_held() {
    let mut p = Pretend::new(&Options { every: Duration::from_secs(1), ..options(Chaos::Kill) });
    let mut seen = 0;
    while p.conductor.phase() != Phase::Done {
        let before = p.conductor.troubles().len();
        let calm = p.conductor.calm(at(p.now));
        p.step();
        if p.conductor.troubles().len() > before {
            seen += 1;
            // What was heard in this very step may have made it calm.
            let up = p.conductor.slots().iter().filter(|s| matches!(s.state, State::Up { .. })).count();
            assert!(calm || up == 2, "trouble at {} although not everybody was up", p.now);
            assert!(p.conductor.slots().iter().filter(|s| !matches!(s.state, State::Up { .. })).count() <= 1);
        }
    }
    // A dead holder's buckets are free a lease-duration later: one trouble takes 3 s, not 1.
    assert!((10..=20).contains(&seen), "{seen}");
    let times: Vec<Instant> = p.conductor.troubles().iter().map(|t| t.at).collect();
    assert!(times.windows(2).all(|w| w[1].since(w[0]) >= Duration::from_millis(2_900)), "{times:?}");
}

#[test]
fn a_restart_is_the_same_pod_at_once() {
    let mut p = Pretend::new(&options(Chaos::Restart));
    p.run_until("trouble", |p| p.conductor.troubles().len() == 1 && p.conductor.troubles()[0].successor.is_some());
    let trouble = p.conductor.troubles()[0];
    let slot = p.conductor.slots().iter().find(|s| s.state.process() == trouble.successor).unwrap().clone();
    let end = p.times(&format!("end {}", trouble.process.0))[0];
    let start = p.log.iter().find(|(_, t)| *t == format!("start {} {}", slot.pod.name, trouble.successor.unwrap().0));
    assert_eq!(start.map(|(at, _)| *at), Some(end));
    assert_eq!(p.fakes[&trouble.successor.unwrap()].pod, slot.pod);
    assert_eq!(slot.pods, 1, "POD_NAME and POD_UID are kept");
    p.run();
    assert!(p.conductor.troubles().iter().all(|t| t.successor.is_some()));
}

#[test]
fn a_pause_lasts_three_lease_durations() {
    let mut p = Pretend::new(&options(Chaos::Pause));
    p.run();
    let troubles = p.conductor.troubles();
    assert!(troubles.len() >= 3);
    for trouble in &troubles[..troubles.len() - 1] {
        let lasted = trouble.resumed.unwrap().since(trouble.at);
        assert!(lasted >= Duration::from_secs(9) && lasted < Duration::from_millis(9_050), "{lasted:?}");
    }
    assert!(troubles.last().unwrap().resumed.is_some(), "the end of the run ends a pause");
    assert_eq!(p.started, 3, "nobody is replaced");
}

#[test]
fn who_wakes_is_back_when_it_has_told_the_end_of_its_old_terms() {
    let mut p = Pretend::new(&Options { every: Duration::from_secs(20), ..options(Chaos::Pause) });
    let waking = |p: &Pretend| p.conductor.slots().iter().any(|s| matches!(s.state, State::Waking { .. }));
    p.run_until("waking", waking);
    assert!(!p.conductor.calm(at(p.now)));
    // Its old terms ran out long ago, and it has not said so.
    let commands = p.conductor.step(at(p.now), 0);
    assert!(commands.is_empty() && waking(&p));
    p.step();
    assert!(p.conductor.calm(at(p.now)), "{:?}", p.conductor.slots());
}

#[test]
fn a_stateful_replacement_keeps_its_name_not_its_uid() {
    let stateful = Options { strategy: StrategyKind::StatefulSet, ..options(Chaos::Kill) };
    let mut p = Pretend::new(&Options { replicas: 4, ..stateful });
    let before: Vec<Pod> = p.conductor.slots().iter().map(|s| s.pod.clone()).collect();
    p.run_until("replaced", |p| p.started == 5);
    let after: Vec<Pod> = p.conductor.slots().iter().map(|s| s.pod.clone()).collect();
    let names = |pods: &[Pod]| pods.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&before), ["replica-0", "replica-1", "replica-2", "replica-3"]);
    assert_eq!(names(&before), names(&after));
    assert_eq!(before.iter().zip(&after).filter(|(b, a)| b.uid != a.uid).count(), 1);
}

#[test]
fn replicas_are_stopped_when_every_tick_is_in_or_late_enough() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.outstanding = 1;
    p.run_until("settling", |p| p.conductor.phase() == Phase::Settling);
    let since = p.now;
    p.run_until("stopping", |p| p.conductor.phase() == Phase::Stopping);
    assert!((8_000..8_050).contains(&(p.now - since)), "lease-duration and 5 s: {}", p.now - since);

    let mut p = Pretend::new(&options(Chaos::None));
    p.outstanding = 1;
    p.run_until("settling", |p| p.conductor.phase() == Phase::Settling);
    p.outstanding = 0;
    p.step();
    assert_eq!(p.conductor.phase(), Phase::Stopping);
}

#[test]
fn the_end_waits_for_who_is_down() {
    let mut p = Pretend::new(&Options { every: Duration::from_millis(59_900), ..options(Chaos::Kill) });
    p.run_until("settling", |p| p.conductor.phase() == Phase::Settling);
    assert_eq!(p.conductor.troubles().len(), 1);
    let (_, until) = p.conductor.window().unwrap();
    p.run_until("stopping", |p| p.conductor.phase() == Phase::Stopping);
    let waited = at(p.now).since(until);
    assert!(waited >= Duration::from_millis(2_900), "until the dead one's buckets are held again: {waited:?}");
    assert_eq!(p.started, 4);
    p.run();
}

#[test]
fn who_does_not_end_is_killed() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.deaf = true;
    p.run();
    let (terms, kills) = (p.times("Term"), p.times("Kill"));
    assert_eq!((terms.len(), kills.len()), (3, 3));
    assert_eq!(kills[0] - terms[0], 30_000);
}

#[test]
fn who_ends_by_itself_is_counted_and_comes_back_as_itself() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.run_until("running", |p| p.conductor.phase() == Phase::Running);
    p.fakes.get_mut(&ProcessId(1)).unwrap().ends_at = Some(p.now + 500);
    p.run();
    assert_eq!((p.conductor.unasked_exits(), p.started), (1, 4));
    assert!(p.conductor.said().iter().any(|(_, text)| text.contains("ended by itself: as told")));
    assert!(p.log.iter().any(|(_, text)| text == "start replica-1-0 3"));
}

#[test]
fn an_end_before_any_report_fails_the_run() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.step();
    p.fakes.get_mut(&ProcessId(0)).unwrap().ends_at = Some(p.now);
    p.run();
    let expected = Failure::EndedAtOnce { process: ProcessId(0), how: "as told".to_owned() };
    assert_eq!(p.conductor.failure(), Some(&expected));
}

#[test]
fn replicas_that_never_report_fail_the_run() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.mute = true;
    p.run_until("given up", |p| p.conductor.failure().is_some());
    assert!(matches!(p.conductor.failure(), Some(Failure::NotHeld { held: 0, of: 4, reporting: 0, .. })));
    p.mute = false;
    p.run();
}

#[test]
fn a_replica_that_cannot_be_started_fails_the_run() {
    let mut conductor = Conductor::new(&options(Chaos::None), at(0));
    let commands = conductor.step(at(0), 0);
    assert_eq!(commands.len(), 3);
    for (slot, _) in commands.iter().enumerate() {
        conductor.not_started(slot, "no such file".to_owned(), at(0));
    }
    conductor.step(at(1), 0);
    assert_eq!(conductor.phase(), Phase::Done);
    assert_eq!(conductor.failure(), Some(&Failure::NotStarted("no such file".to_owned())));
}

#[test]
fn interruptions_bring_a_run_on_phase_by_phase() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.deaf = true;
    p.outstanding = 1;
    p.run_until("running", |p| p.conductor.phase() == Phase::Running);
    let cut = p.now + 20_000;
    p.run_until("a while", move |p| p.now >= cut);
    for phase in [Phase::Settling, Phase::Stopping] {
        let commands = p.conductor.interrupt(at(p.now));
        p.carry_out(commands);
        p.step();
        assert_eq!(p.conductor.phase(), phase);
    }
    let (from, until) = p.conductor.window().unwrap();
    assert_eq!((p.conductor.interrupted(), until), (true, at(cut)), "from {from:?}");
    let commands = p.conductor.interrupt(at(p.now));
    p.carry_out(commands);
    assert_eq!(p.times("Kill").len(), 3);
    p.run();
    assert_eq!(p.conductor.failure(), None, "what there was is judged");
}

#[test]
fn an_interruption_before_the_beginning_leaves_nothing_to_judge() {
    let mut p = Pretend::new(&options(Chaos::None));
    p.step();
    let commands = p.conductor.interrupt(at(p.now));
    p.carry_out(commands);
    p.run();
    assert_eq!(p.conductor.failure(), Some(&Failure::Interrupted));
}

#[test]
fn the_dead_hold_nothing() {
    let mut holders = Holders::default();
    let holding = Holding { process: ProcessId(1), token: None, begun: at(1), promoted: false, deadline: at(100) };
    holders.begun("b", holding);
    assert!(!holders.all_held(1, at(2)), "begun is not promoted");
    holders.promoted("b", ProcessId(1), None);
    assert!(holders.all_held(1, at(2)) && !holders.all_held(2, at(2)));
    assert!(!holders.all_held(1, at(100)), "past its deadline");
    assert!(holders.owes_an_end(ProcessId(1), at(100)));
    holders.died(ProcessId(1));
    assert!(!holders.all_held(1, at(2)) && !holders.owes_an_end(ProcessId(1), at(100)));
    assert_eq!(holders.held(at(2)), 0);
}
