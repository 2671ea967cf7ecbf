//! The one HTTP client of a process's sinks.

use super::SinkError;
use crate::adapter::env::Proxies;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use std::time::Duration;

/// Of Go's default transport: a sink that does not even accept is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const USER_AGENT: &str = concat!("leasehold/", env!("CARGO_PKG_VERSION"));

fn builder(proxies: &Proxies) -> Result<ClientBuilder, reqwest::Error> {
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(Duration::from_secs(15))
        // Followed by us, who know which of them keep the event.
        .redirect(Policy::none())
        // Retried by us: a layer below that does so too would send under a term that has ended.
        .retry(reqwest::retry::never())
        // None but those named.
        .no_proxy();
    for proxy in proxies.build()? {
        builder = builder.proxy(proxy);
    }
    Ok(builder)
}

/// Builds the client.
///
/// # Errors
/// [`SinkError::NoCryptoProvider`], [`SinkError::Client`].
pub(super) fn build(proxies: &Proxies) -> Result<Client, SinkError> {
    if let (None, None) = (&proxies.http, &proxies.https) {
        tracing::debug!("events go to their sinks directly");
    } else {
        let show = |url: &Option<url::Url>| url.as_ref().and_then(|u| u.host_str().map(ToOwned::to_owned));
        tracing::info!(http = ?show(&proxies.http), https = ?show(&proxies.https), none = proxies.none, "events go through a proxy");
    }
    with_tls(proxies)
}

#[cfg(feature = "program")]
fn with_tls(proxies: &Proxies) -> Result<Client, SinkError> {
    // Asked first, since the client would panic.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        return Err(SinkError::NoCryptoProvider);
    }
    without(proxies).or_else(|e| {
        // An image without CA certificates is no reason not to send to a sink in the cluster by http.
        let bare = builder(proxies).and_then(|b| b.tls_certs_only([]).build()).map_err(SinkError::Client)?;
        tracing::warn!(error = %e, "no CA certificates on this system: no https sink can be trusted");
        Ok(bare)
    })
}

/// The library's user brings TLS for reqwest, or none.
#[cfg(not(feature = "program"))]
fn with_tls(proxies: &Proxies) -> Result<Client, SinkError> {
    without(proxies)
}

fn without(proxies: &Proxies) -> Result<Client, SinkError> {
    builder(proxies).and_then(ClientBuilder::build).map_err(SinkError::Client)
}
