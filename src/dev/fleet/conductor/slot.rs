//! The place of one replica in the fleet, and who is in it.

use crate::clock::Instant;
use crate::dev::fleet::judge::ProcessId;
use crate::dev::fleet::options::Chaos;
use crate::dev::fleet::replica::Pod;

/// What goes on in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Started; has not said hello.
    Starting {
        /// Who.
        process: ProcessId,
    },
    /// At work.
    Up {
        /// Who.
        process: ProcessId,
    },
    /// Was sent SIGTERM or SIGKILL, and has not ended.
    Leaving {
        /// Who.
        process: ProcessId,
        /// By which trouble; none at the end of the run.
        by: Option<Chaos>,
        /// When the signal was sent.
        since: Instant,
        /// SIGKILL has been sent.
        killed: bool,
    },
    /// Stopped.
    Paused {
        /// Who.
        process: ProcessId,
        /// When it goes on.
        until: Instant,
    },
    /// Goes on after a pause, and has terms whose end it has not told.
    Waking {
        /// Who.
        process: ProcessId,
    },
    /// Nobody: somebody is started at `at`.
    Down {
        /// When.
        at: Instant,
    },
    /// Nobody, and nobody comes any more.
    Gone,
}

impl State {
    /// Who is there, alive as far as is known.
    pub fn process(self) -> Option<ProcessId> {
        match self {
            Self::Starting { process }
            | Self::Up { process }
            | Self::Leaving { process, .. }
            | Self::Paused { process, .. }
            | Self::Waking { process } => Some(process),
            Self::Down { .. } | Self::Gone => None,
        }
    }

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting { .. } => "starting",
            Self::Up { .. } => "up",
            Self::Leaving { killed: true, .. } => "killed",
            Self::Leaving { .. } => "stopping",
            Self::Paused { .. } => "paused",
            Self::Waking { .. } => "waking",
            Self::Down { .. } => "down",
            Self::Gone => "gone",
        }
    }
}

/// One place.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Its number.
    pub number: usize,
    /// Who the present or next replica is to be.
    pub pod: Pod,
    /// How many Pods there have been.
    pub pods: u32,
    /// What goes on.
    pub state: State,
}

impl Slot {
    /// An empty place, to be filled at once.
    pub fn new(number: usize, stateful: bool, now: Instant) -> Self {
        Self { number, pod: pod(number, 0, stateful), pods: 1, state: State::Down { at: now } }
    }

    /// The next Pod: a StatefulSet keeps its names, a Deployment does not.
    pub fn renew(&mut self, stateful: bool) {
        self.pod = pod(self.number, self.pods, stateful);
        self.pods += 1;
    }
}

fn pod(slot: usize, generation: u32, stateful: bool) -> Pod {
    let name = if stateful { format!("replica-{slot}") } else { format!("replica-{slot}-{generation}") };
    Pod { name, uid: uuid::Uuid::new_v4().to_string() }
}
