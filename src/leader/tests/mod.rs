//! The rules of the design that this module keeps, each as a test that fails without it.
#![allow(
    clippy::unchecked_time_subtraction,
    clippy::items_after_statements,
    reason = "constants of a test, and a helper beside the one test that needs it"
)]

mod chain;
mod checkpoint;
mod drain;
mod fatal;
mod gate;
mod guard;
mod lead;
mod leadership;
mod observe;
mod only_mine;
mod order;
mod panic;
mod per_bucket;
mod promote;
mod support;
mod term;
mod token;
