//! One run: what the conductor asks for is done, what happens is told to the conductor, the judge's books and the screen.

mod notes;
mod rates;
mod setup;
mod view;

use super::cluster::{Cluster, OwnRequests, Requests};
use super::conductor::{Command, Conductor, Failure, Phase, Signal};
use super::error::{FleetError, local};
use super::judge::{Arrival, Circumstances, Ended, History, ProcessId, Report, Seen, Setup, Window, judge};
use super::options::Options;
use super::replica::{self, Environment, Launch, Pod, Program, Replica, Reports, Shared};
use super::scratch::Scratch;
use super::screen::Screen;
use super::sink::{Delivery, Sink};
use super::sources::Sources;
use crate::adapter::report::Line;
use crate::clock::{Boottime, Instant, SharedClock};
use crate::config::StrategyKind;
use notes::Notes;
use rates::Rates;
use setup::{make_ready, program, watching};
use std::collections::HashMap;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often time alone makes something happen.
const TICK: Duration = Duration::from_millis(50);
/// How long the server may take to say how many requests there were.
const COUNTING: Duration = Duration::from_secs(10);
/// A wall clock that moved by more than this against the clock that decides was set.
const WALL_SET: i128 = 100_000_000;
/// How much of what a replica wrote stands in an error.
const TAIL: usize = 20;

/// Something that was heard.
enum Heard {
    Line(ProcessId, Result<Line, String>),
    Event(Result<Delivery, String>),
    Lease(Seen),
    Ended(ProcessId, io::Result<ExitStatus>, Instant),
}

/// Runs a fleet in `cluster` and judges it.
///
/// Each message on `interrupts` brings the run one phase on: to waiting for what is outstanding, to stopping the
/// replicas, to killing them. Dropping the future kills the replicas.
///
/// # Errors
/// The run has no verdict: see [`FleetError`]. Replicas have ended by then.
pub async fn run(
    options: &Options,
    cluster: &dyn Cluster,
    scratch: &Scratch,
    interrupts: &mut mpsc::Receiver<()>,
) -> Result<Report, FleetError> {
    options.check()?;
    let clock: SharedClock = Arc::new(Boottime);
    let (tell, inbox) = mpsc::unbounded_channel();
    let sink = {
        let tell = tell.clone();
        let listener = Arc::new(move |event| drop(tell.send(Heard::Event(event))));
        Sink::start(Arc::clone(&clock), listener).await.map_err(local("cannot listen for events on loopback"))?
    };
    let sources = Sources::new(cluster.namespace(), options.sources);
    let file = scratch.path().join("sources.yaml");
    std::fs::write(&file, sources.manifests(sink.url())).map_err(local(format!("cannot write {}", file.display())))?;
    let shared = Shared {
        kubeconfig: cluster.kubeconfig().to_owned(),
        namespace: cluster.namespace().to_owned(),
        sink: sink.url().to_owned(),
        strategy: options.strategy,
        sources: file,
    };

    tokio::select! {
        biased;
        done = make_ready(options, cluster, &shared) => done?,
        Some(()) = interrupts.recv() => return Err(FleetError::Interrupted),
    }

    let own = Arc::new(OwnRequests::default());
    let now = clock.now();
    let setup = Setup {
        lease_duration: options.lease_duration,
        renew_deadline: options.renew_deadline,
        sources: options.sources,
        began: now,
        began_wall: clock.wall().as_second(),
    };
    let mut run = Run {
        options,
        cluster,
        own,
        history: History::new(setup),
        conductor: Conductor::new(options, now),
        program: program(options, &shared)?,
        screen: Screen::new(!options.verbose, now),
        rates: Rates::default(),
        notes: Notes::default(),
        counted: Counted::default(),
        replicas: HashMap::new(),
        expected: None,
        wall_offset: 0,
        said: 0,
        clock,
        sources,
        scratch,
        shared,
        tell,
    };
    run.go(inbox, interrupts).await
}

/// Lease requests at the four moments that count.
#[derive(Debug, Default)]
struct Counted {
    start: Option<Requests>,
    from: Option<Requests>,
    until: Option<Requests>,
    /// How many of the moments of the window have been.
    moments: u8,
}

/// A run under way.
struct Run<'a> {
    options: &'a Options,
    cluster: &'a dyn Cluster,
    scratch: &'a Scratch,
    own: Arc<OwnRequests>,
    clock: SharedClock,
    sources: Sources,
    shared: Shared,
    program: Program,
    history: History,
    conductor: Conductor,
    screen: Screen,
    rates: Rates,
    notes: Notes,
    counted: Counted,
    /// Those that run. Dropping one kills it.
    replicas: HashMap<ProcessId, Replica>,
    /// The window as the judge knows it.
    expected: Option<(Instant, Instant)>,
    /// What the wall clock was ahead of the clock that decides, in nanoseconds, when ticks began to be expected.
    wall_offset: i128,
    /// How much of what the conductor said is on the screen.
    said: usize,
    tell: mpsc::UnboundedSender<Heard>,
}

impl Run<'_> {
    async fn go(
        &mut self,
        mut inbox: mpsc::UnboundedReceiver<Heard>,
        interrupts: &mut mpsc::Receiver<()>,
    ) -> Result<Report, FleetError> {
        let began = self.clock.now();
        self.screen.say(began, &format!("{} in {}", self.title(), self.cluster.about()));
        self.screen
            .say(began, &format!("events go to {}, files are in {}", self.sink(), self.scratch.path().display()));
        // Before the watch: what is on its way would be ours by our count, and not yet by the server's.
        self.counted.start = self.requests().await;
        let _watching = watching(self.cluster, &self.clock, &self.own, &self.tell);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        while self.conductor.phase() != Phase::Done {
            let mut commands = Vec::new();
            tokio::select! {
                Some(heard) = inbox.recv() => self.hear(heard),
                Some(()) = interrupts.recv() => commands = self.conductor.interrupt(self.clock.now()),
                _ = tick.tick() => {}
            }
            // What has piled up, before anything is decided on it.
            while let Ok(heard) = inbox.try_recv() {
                self.hear(heard);
            }
            let now = self.clock.now();
            commands.extend(self.conductor.step(now, self.history.ticks.outstanding()));
            for command in commands {
                self.carry_out(command, now);
            }
            self.follow_window();
            self.count_window(now).await;
            self.show(now, false);
        }
        while let Ok(heard) = inbox.try_recv() {
            self.hear(heard);
        }
        self.show(self.clock.now(), true);
        self.finish().await
    }

    fn sink(&self) -> &str {
        &self.shared.sink
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Line(process, Ok(line)) => {
                enter(&mut self.history, process, &line);
                self.conductor.heard(process, &line, self.clock.now());
            }
            Heard::Line(_, Err(text)) => Notes::add(&mut self.notes.unreadable, text),
            Heard::Event(Err(text)) => Notes::add(&mut self.notes.refused, text),
            Heard::Event(Ok(delivery)) => self.event(&delivery),
            Heard::Lease(seen) => self.history.leases.seen(seen),
            Heard::Ended(process, status, at) => {
                self.replicas.remove(&process);
                self.history.died(process, at);
                let how = status.map_or_else(|e| e.to_string(), |status| status.to_string());
                self.conductor.ended(process, &how, self.clock.now());
            }
        }
    }

    fn event(&mut self, delivery: &Delivery) {
        let key = delivery.term.as_ref().map(|(bucket, token)| self.history.terms.key(bucket, *token));
        self.rates.event(delivery.term.as_ref().map(|(bucket, _)| bucket.as_str()));
        match (self.sources.number(&delivery.source), delivery.second) {
            (Some(source), Some(second)) => {
                self.history.ticks.arrived(source, second, Arrival { id: delivery.id, at: delivery.at, key });
            }
            _ => self.history.ticks.other(delivery.at, key),
        }
    }

    fn carry_out(&mut self, command: Command, now: Instant) {
        match command {
            Command::Start { slot, pod } => match self.start(&pod) {
                Ok(process) => self.conductor.started(slot, process),
                Err(e) => self.conductor.not_started(slot, e.to_string(), now),
            },
            Command::Signal { process, signal } => {
                use rustix::process::Signal as Unix;
                let signal = match signal {
                    Signal::Term => Unix::TERM,
                    Signal::Kill => Unix::KILL,
                    Signal::Stop => Unix::STOP,
                    Signal::Cont => Unix::CONT,
                };
                if let Some(replica) = self.replicas.get(&process) {
                    replica.signal(signal);
                }
            }
        }
    }

    fn start(&mut self, pod: &Pod) -> io::Result<ProcessId> {
        let process = self.history.started(pod.name.clone(), self.clock.now());
        let socket = self.scratch.socket(process.0);
        let environment = Environment::of_process(&self.shared, pod, Some(&socket));
        let output = self.scratch.output(&pod.name);
        let launch = Launch {
            program: &self.program,
            environment: &environment,
            name: &pod.name,
            output: &output,
            verbose: self.options.verbose,
        };
        let (lines, ends) = (self.tell.clone(), self.tell.clone());
        let replica = Replica::start(
            &launch,
            Reports::bind(&socket)?,
            Arc::new(move |line| drop(lines.send(Heard::Line(process, line)))),
            Arc::clone(&self.clock),
            move |status, at| drop(ends.send(Heard::Ended(process, status, at))),
        )?;
        self.replicas.insert(process, replica);
        Ok(process)
    }

    /// The conductor decides from when until when ticks are expected; they are scheduled by the wall clock.
    fn follow_window(&mut self) {
        let window = self.conductor.window();
        let Some((from, until)) = window.filter(|_| window != self.expected) else { return };
        if self.expected.is_none() {
            self.wall_offset = self.wall_ahead();
        }
        let wall = |at: Instant| i128::from(at.as_nanos()) + self.wall_offset;
        self.history.ticks.expect(Window::between(wall(from), wall(until)));
        self.expected = window;
    }

    fn wall_ahead(&self) -> i128 {
        self.clock.wall().as_nanosecond() - i128::from(self.clock.now().as_nanos())
    }

    /// Lease requests when the window begins and when it ends.
    async fn count_window(&mut self, now: Instant) {
        let Some((from, until)) = self.conductor.window() else { return };
        if self.counted.moments == 0 && now >= from {
            self.counted.from = self.requests().await;
            self.counted.moments = 1;
        }
        if self.counted.moments == 1 && now >= until {
            self.counted.until = self.requests().await;
            self.counted.moments = 2;
        }
    }

    /// Lease requests up to now; where they are not known, why is noted once.
    async fn requests(&mut self) -> Option<Requests> {
        let counted = tokio::time::timeout(COUNTING, self.cluster.lease_requests(&self.own)).await;
        let problem = match counted {
            Ok(Ok(requests)) => return Some(requests),
            Ok(Err(e)) => format!("lease_requests are not known: {e}"),
            Err(_) => format!("lease_requests are not known: no answer within {COUNTING:?}"),
        };
        if !self.notes.other.contains(&problem) {
            self.notes.other.push(problem);
        }
        None
    }

    /// Everybody has ended: the verdict.
    async fn finish(&mut self) -> Result<Report, FleetError> {
        if let Some(failure) = self.conductor.failure() {
            return Err(self.explain(failure.clone()));
        }
        let end = self.requests().await;
        let between = |a: Option<Requests>, b: Option<Requests>| Some(b? - a?);
        if (self.wall_ahead() - self.wall_offset).abs() > WALL_SET {
            self.notes.other.push(
                "the wall clock was set during the run: ticks are scheduled by it, so what is missed or doubled may be \
                 its doing"
                    .to_owned(),
            );
        }
        self.history.troubles = self.conductor.troubles().to_vec();
        if self.options.strategy == StrategyKind::Unopposed && self.options.replicas > 1 {
            self.notes.other.push("strategy unopposed: each replica acts for everything, so they overlap".to_owned());
        }
        let unasked = self.conductor.unasked_exits();
        if unasked > 0 {
            self.notes.other.push(format!("{unasked} times a replica ended although nobody had asked it to"));
        }
        let around = Circumstances {
            held: self.conductor.held().clone(),
            requests: between(self.counted.start, end),
            requests_in_window: between(self.counted.from, self.counted.until),
            unasked_exits: unasked,
            interrupted: self.conductor.interrupted(),
            seconds: self.conductor.window().map_or(0.0, |(from, until)| until.since(from).as_secs_f64()),
            notes: std::mem::take(&mut self.notes).all(),
        };
        Ok(judge(self.options, &self.history, around))
    }

    fn explain(&self, failure: Failure) -> FleetError {
        match failure {
            Failure::NotStarted(why) => FleetError::NotStarted(why),
            Failure::Interrupted => FleetError::Interrupted,
            Failure::EndedAtOnce { process, how } => {
                let name = self.history.process(process).map_or_else(String::new, |p| p.name.clone());
                let output = self.scratch.output(&name);
                let tail = replica::tail(&output, TAIL);
                FleetError::EndedAtOnce { name, how, output, tail }
            }
            Failure::NotHeld { held, of, after, reporting } => {
                FleetError::NotHeld { held, of, after, reporting, directory: self.scratch.path().to_owned() }
            }
        }
    }
}

/// Enters a report line into the judge's books.
fn enter(history: &mut History, process: ProcessId, line: &Line) {
    let at = |nanos: &u64| Instant::from_nanos(*nanos);
    match line {
        Line::Hello { identity, .. } => history.named(process, identity),
        Line::TermBegun { bucket, token, at: begun, deadline } => {
            history.terms.begun(process, bucket, *token, at(begun), at(deadline));
        }
        Line::Promoted { bucket, token, at: promoted } => {
            history.terms.promoted(process, bucket, *token, at(promoted));
        }
        Line::DeadlineMoved { bucket, token, deadline, .. } => {
            history.terms.moved(process, bucket, *token, at(deadline));
        }
        Line::TermEnded { bucket, token, reason, acted_until, at: ended } => {
            let end = Ended { reason: *reason, acted_until: at(acted_until), at: at(ended) };
            history.terms.ended(process, bucket, *token, end);
        }
        _ => {}
    }
}
