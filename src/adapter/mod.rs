//! What an event source's author gets for nothing: configuration, sharding, delivery, probes, metrics, shutdown.

pub mod env;
mod metrics;
pub mod report;
pub mod sink;
mod terms;
