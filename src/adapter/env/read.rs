//! Reads and checks one snapshot of the environment, variable by variable.

use super::BadVariable;
use super::proxy::{self, Proxies};
use crate::adapter::sink::Overrides;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// An absolute http or https URL with a host.
///
/// # Errors
/// The rule that `text` breaks.
pub(crate) fn sink_url(text: &str) -> Result<Url, String> {
    let example = "such as http://broker-ingress.knative-eventing.svc.cluster.local/default/default";
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(url) => {
            Err(format!("its scheme is {:?}; it must be an absolute http or https URL, {example}", url.scheme()))
        }
        Err(e) => Err(format!("{e}; it must be an absolute http or https URL, {example}")),
    }
}

/// A URL as logs may show it: who asks is left out.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.into()
}

/// The reading of one snapshot.
pub(super) struct Read<'a> {
    vars: &'a BTreeMap<String, String>,
    pub(super) bad: Vec<BadVariable>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Read<'a> {
    pub(super) fn of(vars: &'a BTreeMap<String, String>) -> Self {
        Self { vars, bad: Vec::new(), warnings: Vec::new() }
    }

    /// One of Knative's: empty means unset.
    fn theirs(&self, variable: &str) -> Option<&'a str> {
        self.vars.get(variable).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// One of ours: set means meant.
    fn ours(&self, variable: &str) -> Option<&'a str> {
        self.vars.get(variable).map(String::as_str)
    }

    fn refuse(&mut self, variable: &'static str, value: &str, rule: impl Into<String>) {
        self.bad.push(BadVariable { variable, value: value.to_owned(), rule: rule.into() });
    }

    pub(super) fn namespace(&mut self) -> String {
        let Some(value) = self.theirs("NAMESPACE") else { return String::new() };
        let label = value.len() <= 63
            && value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !value.starts_with('-')
            && !value.ends_with('-');
        if !label {
            self.refuse(
                "NAMESPACE",
                value,
                "it must be a namespace's name (a DNS label: at most 63 of a-z, 0-9 and '-', with no '-' at either end), usually from fieldRef metadata.namespace",
            );
        }
        value.to_owned()
    }

    pub(super) fn sink(&mut self) -> Option<Url> {
        let value = self.theirs("K_SINK")?;
        sink_url(value).map_err(|rule| self.refuse("K_SINK", value, rule)).ok()
    }

    pub(super) fn overrides(&mut self) -> Overrides {
        let Some(value) = self.theirs("K_CE_OVERRIDES") else { return Overrides::default() };
        Overrides::from_json(value).unwrap_or_else(|e| {
            self.refuse("K_CE_OVERRIDES", value, e.to_string());
            Overrides::default()
        })
    }

    /// As Knative's GetSinktimeout: what is no whole number means no limit, but is not passed over in silence.
    pub(super) fn sink_timeout(&mut self) -> Option<Duration> {
        let value = self.ours("K_SINK_TIMEOUT")?;
        match value.parse::<i64>() {
            Ok(seconds) => u64::try_from(seconds).ok().filter(|s| *s > 0).map(Duration::from_secs),
            Err(e) => {
                self.warnings.push(format!(
                    "environment variable K_SINK_TIMEOUT is {value:?}: {e}; it should be whole seconds, such as 30; an attempt has no time limit now"
                ));
                None
            }
        }
    }

    pub(super) fn proxies(&mut self) -> Proxies {
        let either = |upper: &str, lower: &str| self.theirs(upper).or_else(|| self.theirs(lower));
        let http = either("HTTP_PROXY", "http_proxy");
        let https = either("HTTPS_PROXY", "https_proxy");
        let none = either("NO_PROXY", "no_proxy").unwrap_or_default().to_owned();
        let mut read = |variable, value: Option<&str>| {
            let value = value?;
            proxy::url(value).map_err(|rule| self.refuse(variable, value, rule)).ok()
        };
        Proxies { http: read("HTTP_PROXY", http), https: read("HTTPS_PROXY", https), none }
    }

    pub(super) fn port(&mut self, variable: &'static str, default: u16) -> u16 {
        let Some(value) = self.ours(variable) else { return default };
        value.parse().unwrap_or_else(|_| {
            self.refuse(
                variable,
                value,
                format!("it must be a port from 1 to 65535, or 0 for any; unset it for {default}"),
            );
            default
        })
    }

    pub(super) fn listen(&mut self) -> IpAddr {
        let all = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let Some(value) = self.ours("LEASEHOLD_LISTEN") else { return all };
        value.parse().unwrap_or_else(|_| {
            self.refuse(
                "LEASEHOLD_LISTEN",
                value,
                "it must be an IP address, such as 127.0.0.1; unset it for all addresses",
            );
            all
        })
    }

    pub(super) fn fencing(&mut self) -> bool {
        match self.ours("LEASEHOLD_FENCING") {
            None | Some("false") => false,
            Some("true") => true,
            Some(value) => {
                self.refuse("LEASEHOLD_FENCING", value, "it must be true or false");
                false
            }
        }
    }

    pub(super) fn report(&mut self) -> Option<PathBuf> {
        let value = self.ours("LEASEHOLD_REPORT")?;
        if value.is_empty() {
            self.refuse("LEASEHOLD_REPORT", value, "it must be the path of a unix socket; unset it to report nothing");
            return None;
        }
        Some(value.into())
    }
}
