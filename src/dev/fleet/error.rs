//! Why a run has no verdict.

use super::cluster::ClusterError;
use super::options::OptionsError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a run has no verdict. A verdict of "failed" is none of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// It cannot be run as asked.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Something on this machine that a run needs.
    #[error("{what}: {cause}")]
    Local {
        /// What.
        what: String,
        /// Why not.
        cause: io::Error,
    },
    /// `leasehold init` failed.
    #[error("`leasehold init` failed, so the first start is not prepared: {0}")]
    Init(io::Error),
    /// A replica could not be started.
    #[error("a replica could not be started: {0}")]
    NotStarted(String),
    /// A replica ended before it had reported anything.
    #[error(
        "{name} ended ({how}) before it reported anything. CMD has to be a program that runs with \
         leasehold::adapter::run and reports to LEASEHOLD_REPORT. {}", told(.output, .tail)
    )]
    EndedAtOnce {
        /// Which replica.
        name: String,
        /// How it ended.
        how: String,
        /// What it wrote.
        output: PathBuf,
        /// The end of that.
        tail: String,
    },
    /// Not every bucket was held at one time.
    #[error(
        "only {held} of {of} buckets were held {after:?} after the start, and {reporting} replicas have reported \
         anything to LEASEHOLD_REPORT: see what they wrote in {}", .directory.display()
    )]
    NotHeld {
        /// How many were.
        held: usize,
        /// Of how many.
        of: usize,
        /// After how long.
        after: Duration,
        /// How many replicas have reported.
        reporting: usize,
        /// Where their output is.
        directory: PathBuf,
    },
    /// A signal, before ticks were expected.
    #[error("interrupted before every bucket was held: there is nothing to judge")]
    Interrupted,
}

/// What a replica wrote, where it wrote anything.
fn told(output: &Path, tail: &str) -> String {
    if tail.is_empty() { "It wrote nothing".to_owned() } else { format!("The end of {}:\n{tail}", output.display()) }
}

/// Names what failed.
pub(super) fn local(what: impl Into<String>) -> impl FnOnce(io::Error) -> FleetError {
    move |cause| FleetError::Local { what: what.into(), cause }
}
