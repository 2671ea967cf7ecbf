//! Who holds which bucket: [`Strategy`] builds an [`Elector`] for a [`Queue`]; an elector runs until it is told to stop
//! and tells a [`LeaderAware`](crate::leader::LeaderAware).
//!
//! # Guarantees
//! - An election task ends only because it was told to: it runs on through any outage, any answer and any error of an
//!   author's promote.
//! - Nothing in these two traits knows Kubernetes: a user's crate can bring its own strategy, with
//!   [`Tenure`](crate::leader::tenure::Tenure) to keep promote, drain and demote in order.

mod fixed;
mod known;
pub mod standard;
pub mod statefulset;
mod status;
pub mod unopposed;

pub use status::Status;

use crate::clock::SharedClock;
use crate::config::Config;
use crate::leader::DynLeaderAware;
use crate::leader::fatal::OnFatal;
use crate::leader::observe::SharedObserver;
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::watch;

/// Told once; the elector then gives up what it holds in good order and returns.
pub type Stop = tokio_util::sync::CancellationToken;

/// One set of buckets in a component, and what an elector for it needs.
#[derive(Clone)]
pub struct Queue {
    /// The adapter or controller, e.g. `pingsource-mt-adapter`.
    pub component: String,
    /// The queue's name in it; a plain adapter's is `adapter`.
    pub name: String,
    /// `<POD_NAME or hostname>_<uuid>`, new at each process start.
    pub identity: String,
    /// The configuration in force; durations change live.
    pub config: watch::Receiver<Arc<Config>>,
    /// The clock that decides.
    pub clock: SharedClock,
    /// Who is told what happens.
    pub observer: SharedObserver,
    /// What happens when something cannot be stopped.
    pub on_fatal: OnFatal,
    /// What the readiness page says of it.
    pub status: Status,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("component", &self.component)
            .field("name", &self.name)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Builds an elector for a queue.
pub trait Strategy: Send + Sync {
    /// Its name in configuration, logs and metrics.
    fn name(&self) -> &'static str;

    /// Builds the elector; no request is sent before it runs.
    ///
    /// # Errors
    /// What makes it impossible to run at all, such as a name that no Lease may have. The process should not start.
    fn build(&self, queue: Queue) -> Result<Box<dyn Elector>, BuildError>;
}

/// Competes for the buckets of one queue.
pub trait Elector: Send {
    /// Runs until `stop`; returns when every term it began has ended and what could be released was.
    ///
    /// Dropping the future ends all terms as lost, at once.
    fn run(self: Box<Self>, aware: Arc<dyn DynLeaderAware>, stop: Stop) -> BoxFuture<'static, ()>;
}

/// Why no elector can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// An elector for the same queue is there already in this process.
    #[error(
        "queue {queue:?} of component {component:?} already has an elector in this process: two would hold two terms of one bucket; give the second another queue name"
    )]
    Twice {
        /// The component.
        component: String,
        /// The queue.
        queue: String,
    },
    /// A name that no Lease may have.
    #[error("{0}")]
    Name(String),
    /// Buckets that cannot be.
    #[error(transparent)]
    Buckets(#[from] crate::bucket::BucketError),
    /// Anything else, said in full.
    #[error("{0}")]
    Other(String),
}
