//! The judge of a run: what was told and seen goes in, a verdict comes out. Pure functions over plain data.
//!
//! # Guarantees
//! - A term is in force from its beginning to what its replica told of its end, its last deadline, or the death of its
//!   process, whichever came first; nothing later counts in a replica's favour or against it.
//! - Times are CLOCK_BOOTTIME of one machine, so those of all replicas, the sink and the fleet compare.
//!
//! # Assumptions
//! - Replicas tell the truth. Events say under which bucket and token they were sent (`leasebucket`, `leaseepoch`);
//!   those that do not cannot be found late or sent under overlapping terms.
//! - The wall clock, by which ticks are scheduled, is not set during the run.
//!
//! # Caveats
//! Lines that a process had not yet written when it was killed are lost: its last term may then end up to one renewal
//! too early in these books.

mod handover;
mod history;
mod leases;
mod report;
mod terms;
mod ticks;

pub use handover::{Handovers, handovers};
pub use history::{History, Process, ProcessId, Setup, Trouble};
pub use leases::{Leases, Seen};
pub use report::{ByKind, Circumstances, Events, Report, Times, judge};
pub use terms::{Ended, Overlap, Senders, Term, TermKey, Terms, in_force_until, overlaps};
pub use ticks::{Arrival, Counts, Tick, Ticks, Window, count};

#[cfg(test)]
mod tests;
