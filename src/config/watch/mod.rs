//! The configuration as it changes: where it comes from, what is in force, and what was refused.
//!
//! [`ConfigSource::choose`] picks the source, [`ConfigSource::start`] reads it once, and the [`Watching`] that comes of
//! it follows the ConfigMap for as long as it runs. A [`ConfigWatch`] shows what is in force and how it came to that.
//!
//! # Guarantees
//! - There is always a configuration in force, and it has always passed every check: a bad edit, a deleted ConfigMap
//!   or an API server that is away leave it as it was.
//! - A bad edit is logged, counted and shown until an edit that is in order comes. The same edit is judged once,
//!   however often the API server tells of it.
//! - Durations change live, the layout does not ([`Config::change`](super::Config::change)); an edit of both changes the durations.
//! - [`Watching::run`] ends only when it is told to.
//!
//! # Caveats
//! An edit is noticed within moments while the API server can be reached. A connection that has died in silence is
//! noticed after five minutes.

mod follow;
mod source;
mod status;

#[cfg(test)]
mod tests;

pub use follow::Watching;
pub use source::{ConfigSource, StartError};
pub use status::{ConfigWatch, Origin, Status};
