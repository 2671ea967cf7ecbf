//! The ping source.

pub mod cron;
pub mod event;
pub mod source;
