//! The ping source: PingSources (`sources.knative.dev/v1`) fire events on schedules.
//!
//! [`cron`] reads schedules as robfig/cron does, [`source`] is the resource, [`event`] what it sends, [`adapter`] the
//! program: each bucket's schedules run where its Lease is held, and its checkpoint says what has been answered.

pub mod adapter;
mod catalog;
pub mod cron;
pub mod event;
mod position;
pub mod source;
#[cfg(test)]
mod testing;
mod ticker;
#[cfg(test)]
mod wire;
