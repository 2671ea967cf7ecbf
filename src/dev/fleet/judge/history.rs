//! What happened in a run, as compactly as judging it needs: terms, ticks, records of Leases, troubles.

use super::leases::Leases;
use super::terms::Terms;
use super::ticks::{Ticks, Window};
use crate::clock::Instant;
use crate::dev::fleet::options::Chaos;
use std::time::Duration;

/// One start of a replica, counted over the whole run: a replacement is another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// What is known of one process.
#[derive(Debug, Clone)]
pub struct Process {
    /// What it is called on the screen and in messages: its Pod's name.
    pub name: String,
    /// What it calls itself in Leases; none until it has said hello.
    pub identity: Option<String>,
    /// When it was started.
    pub started: Instant,
    /// When its end was seen.
    pub died: Option<Instant>,
}

/// One trouble that was made for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trouble {
    /// What was done; never [`Chaos::None`].
    pub kind: Chaos,
    /// To whom.
    pub process: ProcessId,
    /// When the signal was sent.
    pub at: Instant,
    /// When it was let run again, of a pause.
    pub resumed: Option<Instant>,
    /// Who was started in its place.
    pub successor: Option<ProcessId>,
}

/// What the judge has to know of a run from its start.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The lease-duration of the run.
    pub lease_duration: Duration,
    /// The renew-deadline of the run.
    pub renew_deadline: Duration,
    /// How many sources tick every second.
    pub sources: u32,
    /// The start of the run on the clock that decides.
    pub began: Instant,
    /// The same moment on the wall clock, in whole Unix seconds: ticks are scheduled by it.
    pub began_wall: i64,
}

/// Everything that happened. Filled while the run goes on, judged when every process has ended.
#[derive(Debug)]
pub struct History {
    /// What the run was set up with.
    pub setup: Setup,
    /// Every term that a replica told of.
    pub terms: Terms,
    /// Every event that the sink took.
    pub ticks: Ticks,
    /// What the Leases said, by the fleet's own watch.
    pub leases: Leases,
    /// Every trouble, in order.
    pub troubles: Vec<Trouble>,
    processes: Vec<Process>,
}

impl History {
    /// Nothing has happened yet.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            terms: Terms::default(),
            ticks: Ticks::new(setup.sources, setup.began, setup.began_wall),
            leases: Leases::new(setup.lease_duration),
            troubles: Vec::new(),
            processes: Vec::new(),
        }
    }

    /// A process was started; its number.
    pub fn started(&mut self, name: impl Into<String>, at: Instant) -> ProcessId {
        let id = ProcessId(u32::try_from(self.processes.len()).unwrap_or(u32::MAX));
        self.processes.push(Process { name: name.into(), identity: None, started: at, died: None });
        id
    }

    /// A process said who it is.
    pub fn named(&mut self, process: ProcessId, identity: &str) {
        if let Some(process) = self.processes.get_mut(process.0 as usize) {
            process.identity = Some(identity.to_owned());
        }
    }

    /// The end of a process was seen.
    pub fn died(&mut self, process: ProcessId, at: Instant) {
        if let Some(process) = self.processes.get_mut(process.0 as usize) {
            process.died.get_or_insert(at);
        }
    }

    /// One process.
    pub fn process(&self, process: ProcessId) -> Option<&Process> {
        self.processes.get(process.0 as usize)
    }

    /// What a process calls itself in Leases; the name of its Pod while it has not said so.
    pub fn identity(&self, process: ProcessId) -> &str {
        self.process(process).map_or("?", |p| p.identity.as_deref().unwrap_or(&p.name))
    }

    /// From when until when ticks are expected.
    pub fn window(&self) -> Option<Window> {
        self.ticks.window()
    }
}
