//! leasehold lets event-source adapters and reconcilers scale by replica count.
//!
//! Each replica competes for N bucket Leases in Kubernetes and acts only on the events whose keys hash to the
//! buckets it holds. See `docs/` for the protocol and its limits.

pub mod adapter;
pub mod bucket;
pub mod clock;
pub mod config;
#[cfg(feature = "dev")]
pub mod dev;
pub mod elector;
pub mod leader;
pub mod lease;
pub mod manifest;
#[cfg(feature = "sources")]
pub mod sources;

/// The examples of the README compile.
#[cfg(all(doctest, feature = "program"))]
#[doc = include_str!("../README.md")]
struct Readme;
