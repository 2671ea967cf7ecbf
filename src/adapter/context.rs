//! What an adapter is given to work with.

use super::env::Env;
use super::late::Late;
use super::sink::Sink;
use crate::config::Config;
use crate::elector::Stop;
use crate::leader::{BoxError, DynLeaderAware, Leadership, Term, per_bucket};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The runtime, as an adapter sees it. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

pub(super) struct Inner {
    pub(super) component: String,
    pub(super) identity: String,
    pub(super) env: Env,
    pub(super) sink: Sink,
    pub(super) leadership: Leadership,
    pub(super) config: watch::Receiver<Arc<Config>>,
    pub(super) stop: Stop,
    pub(super) late: Late,
    /// The adapter has asked to be told of the stop, and so has something to do then.
    pub(super) listens: AtomicBool,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("component", &self.0.component)
            .field("identity", &self.0.identity)
            .field("leadership", &self.0.leadership)
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(super) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// The component's name.
    pub fn component(&self) -> &str {
        &self.0.component
    }

    /// The identity of this replica, as it stands in the Leases.
    pub fn identity(&self) -> &str {
        &self.0.identity
    }

    /// The environment.
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// Where events go. Name another place, other overrides or another way to retry with its `with_` methods.
    pub fn sink(&self) -> &Sink {
        &self.0.sink
    }

    /// Which keys are this replica's.
    pub fn leadership(&self) -> &Leadership {
        &self.0.leadership
    }

    /// The configuration in force; durations change live.
    pub fn config(&self) -> watch::Receiver<Arc<Config>> {
        self.0.config.clone()
    }

    /// Whether the process is stopping.
    pub fn is_stopping(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    /// Resolves when the process is told to stop. From then on no guard is given; what is out has drain-timeout.
    ///
    /// An adapter that has called this is given drain-timeout to return from `start`. One that has not is taken to have
    /// nothing to do at the end: it is dropped once no term is left. Cancel-safe.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        self.stop_token().cancelled_owned()
    }

    /// The same as a token, to give on. It is cancelled when the process is told to stop; cancelling it does nothing
    /// else.
    pub fn stop_token(&self) -> Stop {
        self.0.listens.store(true, Ordering::Release);
        self.0.stop.child_token()
    }

    /// Runs `work` once per bucket and term, in a task of its own, until the process is told to stop; see
    /// [`per_bucket`](crate::leader::per_bucket) for when it is started again, ended and awaited.
    ///
    /// It is told of the terms that stand already, too. Two calls run two tasks per bucket.
    pub async fn per_bucket<F, Fut>(&self, work: F)
    where
        F: Fn(Self, Term) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let ctx = self.clone();
        self.join(Arc::new(per_bucket(move |term| work(ctx.clone(), term))));
        self.0.stop.cancelled().await;
    }

    /// One more listener, which is promoted at once for each term that stands. A failing promote of a listener that joins
    /// so is logged, and the term goes on without it: who has to refuse a term is given at the start
    /// ([`Adapter::aware`](super::Adapter::aware)).
    pub fn join(&self, aware: Arc<dyn DynLeaderAware>) {
        self.0.late.join(aware);
    }

    pub(super) fn listens(&self) -> bool {
        self.0.listens.load(Ordering::Acquire)
    }
}
