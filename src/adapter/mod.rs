//! What an event source's author gets for nothing: configuration, sharding, delivery, probes, metrics, shutdown.
//!
//! An author writes an [`Adapter`]: what is particular to the source. Every replica starts it. Which of its events a
//! replica acts on, the election decides; leave to act on one is a [`Guard`](crate::leader::Guard).
//!
//! ```
//! use cloudevents::{EventBuilder, EventBuilderV10};
//! use futures::StreamExt;
//! use leasehold::adapter::{Adapter, Context, Env};
//! use leasehold::leader::BoxError;
//!
//! /// Every replica sees every entry; each sends its own.
//! struct Feeds {
//!     names: Vec<String>,
//! }
//!
//! impl Feeds {
//!     fn from_env(env: &Env) -> Result<Self, BoxError> {
//!         let names = env.get("FEEDS").ok_or("FEEDS is not set: it names the feeds, separated by commas")?;
//!         Ok(Self { names: names.split(',').map(ToOwned::to_owned).collect() })
//!     }
//! }
//!
//! impl Adapter for Feeds {
//!     async fn start(&self, ctx: Context) -> Result<(), BoxError> {
//!         let entries = futures::stream::iter(self.names.clone());
//!         ctx.leadership()
//!             .only_mine(entries, |feed| feed)
//!             .for_each_concurrent(16, |(guard, feed)| {
//!                 let ctx = ctx.clone();
//!                 async move {
//!                     let event = EventBuilderV10::new().id("1").source(feed).ty("com.example.entry").build();
//!                     if let Ok(event) = event {
//!                         let _outcome = ctx.sink().send(guard, event).await;
//!                     }
//!                 }
//!             })
//!             .await;
//!         Ok(())
//!     }
//! }
//! ```
//!
//! The pieces: [`mod@env`] reads the environment, [`sink`] delivers, [`Runtime`] puts a process together and runs it,
//! [`report`] is what a replica tells the judge of a fleet.
//!
//! # Guarantees
//! - Events go out under guards only, and what is out is waited for in a stop ([`Runtime`]).
//! - What is wrong with the environment or the set-up is an error at start that says what to do, with exit code 1.
//!
//! # Caveats
//! [`Adapter::start`] runs in every replica, whether it holds a bucket or not: what must happen once is done under a
//! guard.

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
pub(crate) mod testing;

pub use context::Context;
pub use env::Env;
pub use error::RunError;
#[cfg(feature = "dev")]
pub(crate) use kubernetes::without_excerpt;
pub use kubernetes::{cluster, run, wire};
pub use metrics::{ConfigCounts, Edits};
pub use reporter::Reporter;
pub use run::{Adapter, Runtime, run_with};
pub use signals::{Signal, Signals};
pub use sink::{Outcome, Sink};
