//! A fleet on a laptop.

pub mod apiserver;
pub mod fleet;
