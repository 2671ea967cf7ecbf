//! What an event source's author gets for nothing: configuration, sharding, delivery, probes, metrics, shutdown.

pub mod report;
