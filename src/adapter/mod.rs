//! What an event source's author gets for nothing: configuration, sharding, delivery, probes, metrics, shutdown.

mod context;
pub mod env;
mod error;
mod kubernetes;
mod late;
mod metrics;
mod probes;
pub mod report;
mod reporter;
mod run;
mod serve;
mod signals;
pub mod sink;
mod terms;
#[cfg(test)]
mod testing;

pub use context::Context;
pub use env::Env;
pub use error::RunError;
pub use kubernetes::{run, wire};
pub use metrics::Edits;
pub use reporter::Reporter;
pub use run::{Adapter, Runtime, run_with};
pub use signals::{Signal, Signals};
pub use sink::{Outcome, Sink};
