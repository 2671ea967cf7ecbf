//! Leases: what stands in one, how it is written, and the one watched view of them that a process has.
//!
//! # Guarantees
//! - Whatever a person, client-go or a later version of this crate put into a Lease is survived, and kept on every
//!   write: what is not ours goes back as it came.
//! - Every write carries the uid and the resourceVersion that it was decided on (rule S3). A create makes a Lease that
//!   nobody holds; only a PUT takes. No patch, no server-side apply.
//! - Every request has a bound of its own. No layer here retries: a failure is told to whoever decides (rule S5).
//!
//! # Assumptions
//! resourceVersions are decimal numbers that grow (etcd's revisions), as Kubernetes itself assumes for Leases' storage
//! and states since 1.35.

mod client;
pub mod init;
mod manager;
mod notes;
mod record;
mod watch;
mod write;

pub(crate) use client::GRANTS;
pub use client::{Connect, Connector, Failure, LeaseClient};
pub use manager::{Claim, Manager, Seen, Subscription};
pub use notes::{
    CHECKPOINT, Cut, HOLDER, HashName, HolderNote, LAYOUT, LayoutId, LayoutNote, MADE, MadeNote, MemberRef, Note,
    RELEASE, ReleaseNote, VERSION,
};
pub use record::{FOREVER, Record, Spec};
pub use write::{Draft, Times};
