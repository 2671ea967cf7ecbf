//! The cluster that the fleet elects in: an API server in this process, or the one of a kubeconfig.
//!
//! # Guarantees
//! - A real cluster is used in a namespace of its own, made with a random name and deleted at the end.
//! - The fleet's own requests (one watch of Leases) are not counted among the replicas'.

mod in_memory;
mod metrics;
mod prepare;
mod real;
mod requests;
mod watch;

pub use in_memory::{Hosted, InMemory, Loopback};
pub use prepare::prepare;
pub use real::Real;
pub use requests::{OwnRequests, Requests};
pub use watch::watch_leases;

use futures::future::BoxFuture;
use std::path::{Path, PathBuf};

/// A cluster for one run.
pub trait Cluster: Send + Sync {
    /// What to call it, with what a person needs to look into it.
    fn about(&self) -> String;
    /// A client for what the fleet itself asks.
    fn client(&self) -> kube::Client;
    /// The namespace of the run.
    fn namespace(&self) -> &str;
    /// The kubeconfig that replicas get.
    fn kubeconfig(&self) -> &Path;
    /// Lease requests up to now, by verb, less `own`.
    fn lease_requests<'a>(&'a self, own: &'a OwnRequests) -> BoxFuture<'a, Result<Requests, ClusterError>>;
    /// Removes what the run made there.
    fn close(&self) -> BoxFuture<'_, Result<(), ClusterError>>;
}

/// What goes wrong with a cluster. Each message holds its cause, so none is told twice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A kubeconfig that cannot be used.
    #[error("kubeconfig {}: {cause}", .path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, without its content.
        cause: String,
    },
    /// A file of the run that cannot be written.
    #[error("cannot write {}: {cause}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A request that failed.
    #[error("cannot {what}: {cause}")]
    Request {
        /// What was asked for.
        what: String,
        /// Why not. Boxed: it is large, and rare.
        cause: Box<kube::Error>,
    },
    /// An answer that says nothing.
    #[error("the server's /metrics has no apiserver_request_total: it is no kube-apiserver, or it hides them")]
    NoMetrics,
}

/// Names what failed.
fn asked(what: impl Into<String>) -> impl FnOnce(kube::Error) -> ClusterError {
    move |cause| ClusterError::Request { what: what.into(), cause: Box::new(cause) }
}

#[cfg(test)]
mod tests;
