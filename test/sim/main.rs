//! Fleets of replicas on paused time over the in-memory API server, judged by the rules of the design.
#![allow(missing_docs, unreachable_pub, reason = "a test")]
#![allow(clippy::pedantic, reason = "a test reads best short")]
#![allow(clippy::collapsible_match, reason = "what a guard would do in passing here is the point of the arm")]

mod cases;
mod clock;
mod foreign;
mod history;
mod process;
mod proxy;
mod review;
mod seeds;
mod spy;
mod world;
