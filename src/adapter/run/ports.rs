//! The ports of the probes and the metrics: bound first of all, and answering while there is no election yet.
//!
//! What keeps a replica from starting may last (the ConfigMap may not be read, the API server is away). Whoever asks is told so,
//! instead of being refused the connection: alive, not ready, and why.

use crate::adapter::env::Env;
use crate::adapter::error::RunError;
use crate::adapter::{probes, serve};
use crate::elector::Status;
use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt as _;

/// A port that answers by the router that was shown last.
struct Port {
    number: Option<u16>,
    router: Arc<ArcSwap<Router>>,
    _server: AbortOnDropHandle<()>,
}

impl Port {
    fn serve(listener: TcpListener, first: Router) -> Self {
        let number = listener.local_addr().ok().map(|a| a.port());
        let router = Arc::new(ArcSwap::from_pointee(first));
        let shown = Arc::clone(&router);
        let by_it = move |request: Request| Router::clone(&shown.load()).oneshot(request);
        let server = serve::serve(listener, Router::new().fallback(by_it));
        Self { number, router, _server: server }
    }
}

/// See the module. They answer until this is dropped.
pub(super) struct Ports {
    probes: Port,
    metrics: Port,
    failures: Counter,
}

impl Ports {
    /// Binds both. `status` is what the readiness page says until [`Ports::show`].
    pub(super) async fn bind(env: &Env, component: &str, status: Status) -> Result<Self, RunError> {
        let probe = bind(env, env.probe_port(), "probes", "LEASEHOLD_PROBE_PORT").await?;
        let metrics = bind(env, env.metrics_port(), "metrics", "LEASEHOLD_METRICS_PORT").await?;
        let failures = Counter::default();
        let mut registry = Registry::default();
        registry.sub_registry_with_prefix("leasehold").register(
            "config_watch_failures",
            "Reads, lists and watches of the ConfigMap that failed",
            failures.clone(),
        );
        let ports = Self {
            probes: Port::serve(probe, probes::starting(component, status)),
            metrics: Port::serve(metrics, serve::metrics(Arc::new(registry))),
            failures,
        };
        let (probe_port, metrics_port) = ports.numbers();
        tracing::info!(component, probe_port, metrics_port, "listening");
        Ok(ports)
    }

    /// Of the probes, and of the metrics.
    pub(super) fn numbers(&self) -> (Option<u16>, Option<u16>) {
        (self.probes.number, self.metrics.number)
    }

    /// The configuration could not be read.
    pub(super) fn failed(&self) {
        self.failures.inc();
    }

    /// From now on these answer.
    pub(super) fn show(&self, probes: Router, metrics: Router) {
        self.probes.router.store(Arc::new(probes));
        self.metrics.router.store(Arc::new(metrics));
    }
}

async fn bind(env: &Env, port: u16, what: &'static str, variable: &'static str) -> Result<TcpListener, RunError> {
    serve::bind(env.listen(), port).await.map_err(|source| RunError::Port { what, port, variable, source })
}
