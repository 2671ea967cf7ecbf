//! Proxies between the adapter and its sinks, as Go's default transport takes them from the environment.

use url::Url;

/// What Go never sends through a proxy, whatever NO_PROXY says.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
///
/// # Guarantees
/// - None is used that the environment does not name, and none for loopback.
/// - What is used is said in the log at start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For http sinks.
    pub http: Option<Url>,
    /// For https sinks.
    pub https: Option<Url>,
    /// What is reached without: names with their subdomains, addresses, networks, `*`; separated by commas.
    pub none: String,
}

impl Proxies {
    /// As the HTTP client takes them.
    ///
    /// # Errors
    /// A URL that the client does not take.
    pub(crate) fn build(&self) -> Result<Vec<reqwest::Proxy>, reqwest::Error> {
        let none = || reqwest::NoProxy::from_string(&format!("{LOOPBACK},{}", self.none));
        let mut all = Vec::new();
        if let Some(url) = &self.http {
            all.push(reqwest::Proxy::http(url.clone())?.no_proxy(none()));
        }
        if let Some(url) = &self.https {
            all.push(reqwest::Proxy::https(url.clone())?.no_proxy(none()));
        }
        Ok(all)
    }
}

/// A proxy's URL; one without a scheme is http, as in Go.
pub(super) fn url(text: &str) -> Result<Url, String> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    match Url::parse(&full) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(url) => Err(format!("its scheme is {:?}; a proxy is named as http://proxy.example:3128", url.scheme())),
        Err(e) => Err(format!("{e}; a proxy is named as http://proxy.example:3128")),
    }
}
