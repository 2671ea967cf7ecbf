//! What an adapter or a reconciler sees of the election: [`LeaderAware`], [`Term`], [`Guard`] and ready-made implementations.
//!
//! # Guarantees
//! - A [`Guard`] is given only inside a current term: the gate is open and the clock, read at that moment, stands
//!   before the term's deadline (rules S1 and S2). Nothing has to run in the background for that to hold.
//! - `promote` and `demote` of one bucket are paired, run one after the other, and are never dropped half-way.
//!   Buckets do not wait for each other.
//! - A term is given up only after the last guard was dropped (rule S6, see [`tenure`]).
//!
//! # Caveats
//! A pause between the last look at the clock and a send lets one request out. For that there is the
//! [`FencingToken`].
//!
//! Nothing in this module knows Kubernetes.

mod aware;
mod checkpoint;
pub mod fatal;
mod gate;
mod guard;
mod lead;
mod leadership;
pub mod observe;
mod only_mine;
mod per_bucket;
pub mod tenure;
mod term;
mod token;

pub use aware::{BoxError, Chain, DynLeaderAware, LeaderAware, Reason};
pub use checkpoint::{Checkpoint, CheckpointError, MAX_CHECKPOINT, Saved};
pub use guard::{Guard, Lost};
pub use lead::{Lead, lead};
pub use leadership::Leadership;
pub use only_mine::OnlyMine;
pub use per_bucket::{PerBucket, per_bucket};
pub use term::{Deadline, Term, TermParts};
pub use token::{FencingToken, TokenError};

#[cfg(test)]
mod tests;
