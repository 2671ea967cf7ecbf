//! Adapters that ship.

pub mod ping;
