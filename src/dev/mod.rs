//! A fleet on a laptop.

pub mod apiserver;
