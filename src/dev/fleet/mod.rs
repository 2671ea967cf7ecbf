//! A fleet of replicas on one machine, trouble among them, and a judge: what `leasehold dev` does.
//!
//! [`run`] starts a sink and N real child processes in a [`cluster::Cluster`], conducts them through a run
//! ([`conductor`]), and judges what they told, what the sink got and what the Leases said ([`judge`]).
//!
//! # Guarantees
//! - Everything that a run starts is ended by it: on success, on error and on a signal. Children are signalled by
//!   their own pid only.
//! - The conductor and the judge are pure; only [`run`] and what it starts touch processes, sockets and clocks.
//!
//! # Caveats
//! - A fleet that is itself killed with SIGKILL leaves its replicas behind.
//! - The books of a run grow with it: about 3.5 MB per hour for 40 sources, and one entry per term.

pub mod cluster;
pub mod conductor;
mod error;
pub mod judge;
pub mod options;
pub mod replica;
mod run;
mod scratch;
mod screen;
mod sink;
mod sources;
mod summary;

pub use error::FleetError;
pub use options::{Chaos, Options};
pub use run::run;
pub use scratch::Scratch;
pub use summary::summary;

#[cfg(test)]
mod tests;
