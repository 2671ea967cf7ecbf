//! The ping source.

pub mod cron;
