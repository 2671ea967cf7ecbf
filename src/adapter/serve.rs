//! The two small HTTP servers of a replica: probes and metrics.

use super::metrics;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// Binds `port`, 0 for any. Where a machine has no IPv6, all addresses means all of IPv4.
pub(super) async fn bind(listen: IpAddr, port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::new(listen, port)).await {
        Err(e) if listen.is_ipv6() && listen.is_unspecified() && e.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)).await
        }
        bound => bound,
    }
}

/// Serves until the handle is dropped.
pub(super) fn serve(listener: TcpListener, router: Router) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        // It goes on over every error of a connection, and ends only by being dropped.
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "a server ended");
        }
    }))
}

/// `/metrics`, as OpenMetrics text.
pub(super) fn metrics(registry: Arc<Registry>) -> Router {
    Router::new().route("/metrics", get(move || std::future::ready(page(&registry))))
}

fn page(registry: &Registry) -> Response {
    let mut out = String::new();
    match text::encode(&mut out, registry) {
        Ok(()) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], out).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics can't be written\n").into_response(),
    }
}
