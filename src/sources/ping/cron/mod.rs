//! Cron.
