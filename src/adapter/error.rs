//! Why a run ends otherwise than well.

use super::env::EnvError;
use super::sink::SinkError;
use crate::elector::BuildError;
use crate::leader::BoxError;
use std::io;
use std::path::PathBuf;

/// Why a run ended otherwise than in good order. The process exits with 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The environment breaks its rules.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// The adapter's constructor refused.
    #[error("the adapter can't be made: {0}")]
    Construct(#[source] BoxError),
    /// The configuration or the strategy can't be had.
    #[error("the election can't be set up: {0}")]
    Wiring(#[source] BoxError),
    /// A part of the runtime was not given.
    #[error("the runtime was given no {0}: call Runtime::{0} before run")]
    Missing(&'static str),
    /// There can be no sink.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// No elector can be built for the queue.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A port can't be had.
    #[error(
        "can't listen on port {port} for the {what}: {source}; free it, or name another in {variable} (0 takes any)"
    )]
    Port {
        /// Probes or metrics.
        what: &'static str,
        /// The port asked for.
        port: u16,
        /// The variable that names it.
        variable: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Nobody reads the report.
    #[error("environment variable LEASEHOLD_REPORT is {}: {source}; it must be a unix socket on which a reader listens; unset it to report nothing", .socket.display())]
    Report {
        /// The socket.
        socket: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Signals can't be caught.
    #[error("SIGTERM and SIGINT can't be caught: {0}")]
    Signals(#[source] io::Error),
    /// The adapter's `start` gave an error. What was held has been released in good order.
    #[error("the adapter failed: {0}")]
    Adapter(#[source] BoxError),
    /// The adapter's `start` panicked. What was held has been released in good order.
    #[error("the adapter panicked: {0}")]
    Panicked(String),
    /// A second signal came: nothing was waited for.
    #[error("a second signal: ended at once; what was held runs out by itself")]
    SecondSignal,
}
