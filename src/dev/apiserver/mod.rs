//! An API server in memory: Kubernetes' API, its rules and its oddities, without a cluster.
//!
//! It has two faces over one core. [`Server::client`] is a `tower::Service` for `kube::Client` in the same process: no
//! sockets, no time of its own, so that a fleet of replicas runs on tokio's paused clock, seed by seed.
//! [`Server::listen`] speaks HTTP to any client, kubectl among them.
//!
//! # Guarantees
//! - Every write is atomic and counted by one revision, as etcd's are; optimistic concurrency, preconditions, no-op
//!   writes, watches and compaction behave as measured on a real kube-apiserver.
//! - The same options, seed and requests give the same answers, uids included.
//! - Memory is bounded: by the objects that are stored, a window of history and a window of the audit log.
//! - Bad requests are answered with the Status that a real server gives, and never panic.
//!
//! # Caveats
//! It is for tests and laptops. It has no authentication, and no controllers beyond the deletion of namespaces: no
//! garbage collection by owner, no scheduler, no kubelet.

mod audit;
mod body;
mod core;
mod faults;
mod http;
mod kinds;
mod local;
mod managed;
mod meta;
mod object;
mod ops;
mod options;
mod patch;
mod render;
mod request;
mod schema;
mod server;
mod state;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod validation;
mod watch;

pub use self::http::{CLIENT_HEADER, Listening, kubeconfig};
pub use audit::{Counts, Record};
pub use body::{Disconnected, ResponseBody};
pub use faults::{Cut, Effect, Faults, Match, Outage, RuleId, Staleness};
pub use local::Local;
pub use object::Object;
pub use options::Options;
pub use request::Verb;
pub use server::Server;
pub use state::Commit;
pub use store::Snapshot;
