//! What the conductor asks for, where a run is, and why one has no verdict.

use crate::dev::fleet::judge::ProcessId;
use crate::dev::fleet::replica::Pod;
use std::time::Duration;

/// The signals that the fleet sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Cont,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start a replica, then say [`Conductor::started`](super::Conductor::started) or [`Conductor::not_started`](super::Conductor::not_started).
    Start {
        /// In which place.
        slot: usize,
        /// As whom.
        pod: Pod,
    },
    /// Send a signal.
    Signal {
        /// To whom.
        process: ProcessId,
        /// Which.
        signal: Signal,
    },
}

/// Why a run has no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A replica could not be started.
    NotStarted(String),
    /// A replica ended before it had reported anything.
    EndedAtOnce {
        /// Who.
        process: ProcessId,
        /// How.
        how: String,
    },
    /// Not every bucket was ever held at one time.
    NotHeld {
        /// How many were.
        held: usize,
        /// Of how many.
        of: usize,
        /// After how long.
        after: Duration,
        /// How many replicas have reported anything.
        reporting: usize,
    },
    /// A signal, before ticks were expected.
    Interrupted,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Until every bucket is held.
    Starting,
    /// Ticks are expected, trouble is made.
    Running,
    /// No more trouble; what is down comes back, what is outstanding comes in.
    Settling,
    /// Everybody is told to end.
    Stopping,
    /// Everybody has ended.
    Done,
}
