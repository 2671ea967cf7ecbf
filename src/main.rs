//! The `leasehold` program.

fn main() {}
