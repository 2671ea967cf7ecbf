//! The environment contract of an adapter: Knative's variables, and a few of our own.
//!
//! | variable | unset or empty | holds |
//! | --- | --- | --- |
//! | NAMESPACE | no namespace | the adapter's namespace; sent as `Kn-Namespace` with each event |
//! | NAME | `adapter` | the adapter's name |
//! | K_SINK | the program names a sink per event | an absolute http or https URL |
//! | K_CE_OVERRIDES | none | JSON `{"extensions":{"name":"value"}}`, set on each event just before it is sent |
//! | K_SINK_TIMEOUT | no time limit | whole seconds for one attempt; 0 or less: no limit |
//! | K_LEADER_ELECTION_CONFIG | the ConfigMap, or defaults | JSON of Knative's ComponentConfig |
//! | SYSTEM_NAMESPACE | no Leases can be had | the namespace of the Leases |
//! | POD_NAME, HOSTNAME | the kernel's host name | the first part of the identity, in this order |
//! | POD_UID | none | the Pod's uid |
//! | HTTP_PROXY, HTTPS_PROXY, NO_PROXY | no proxy | as in Go: also in lower case; never for loopback |
//! | LEASEHOLD_PROBE_PORT | 8080 | the port of the probes; 0 takes any |
//! | LEASEHOLD_METRICS_PORT | 9092 | the port of /metrics; 0 takes any |
//! | LEASEHOLD_LISTEN | all addresses | the IP address on which both listen |
//! | LEASEHOLD_FENCING | `false` | `true`: each event carries `leasebucket` and `leaseepoch` |
//! | LEASEHOLD_REPORT | none | a unix socket that is told what happens ([`super::report`]) |
//!
//! # Guarantees
//! - A value that breaks its rule is an error at start, with the variable, the value and the rule; all of them at once.
//! - Where Knative falls back in silence (K_SINK_TIMEOUT), so do we, with a warning.
//! - For Knative's variables empty means unset, as there. A variable of ours that is set and empty is an error: a
//!   template did not render.
//! - Read once, from a snapshot. The values do not appear in the Debug form.

mod error;
mod proxy;
mod read;
#[cfg(test)]
mod tests;

pub use error::{BadVariable, EnvError};
pub use proxy::Proxies;
pub(crate) use read::{shown, sink_url};

use super::sink::Overrides;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Where Knative's probes are asked.
pub const DEFAULT_PROBE_PORT: u16 = 8080;
/// Where Knative's adapters serve their metrics.
pub const DEFAULT_METRICS_PORT: u16 = 9092;

/// The environment, read and checked. See the module.
#[derive(Clone)]
pub struct Env {
    vars: BTreeMap<String, String>,
    namespace: String,
    sink: Option<Url>,
    overrides: Overrides,
    sink_timeout: Option<Duration>,
    proxies: Proxies,
    probe_port: u16,
    metrics_port: u16,
    listen: IpAddr,
    fencing: bool,
    report: Option<PathBuf>,
    warnings: Vec<String>,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.vars.keys()).finish()
    }
}

impl Env {
    /// Reads the variables of this process, as they are now. What is not UTF-8 has its bad bytes replaced.
    ///
    /// # Errors
    /// As [`Env::from_vars`].
    pub fn process() -> Result<Self, EnvError> {
        Self::from_vars(
            std::env::vars_os().map(|(n, v)| (n.to_string_lossy().into_owned(), v.to_string_lossy().into_owned())),
        )
    }

    /// Reads the variables given.
    ///
    /// # Errors
    /// Every variable whose value breaks its rule.
    pub fn from_vars<K, V>(vars: impl IntoIterator<Item = (K, V)>) -> Result<Self, EnvError>
    where
        K: Into<String>,
        V: Into<String>,
    {
        let vars = vars.into_iter().map(|(n, v)| (n.into(), v.into())).collect::<BTreeMap<String, String>>();
        let mut read = read::Read::of(&vars);
        let namespace = read.namespace();
        let sink = read.sink();
        let overrides = read.overrides();
        let sink_timeout = read.sink_timeout();
        let proxies = read.proxies();
        let probe_port = read.port("LEASEHOLD_PROBE_PORT", DEFAULT_PROBE_PORT);
        let metrics_port = read.port("LEASEHOLD_METRICS_PORT", DEFAULT_METRICS_PORT);
        let listen = read.listen();
        let fencing = read.fencing();
        let report = read.report();
        let read::Read { bad, warnings, .. } = read;
        if !bad.is_empty() {
            return Err(EnvError(bad));
        }
        Ok(Self {
            vars,
            namespace,
            sink,
            overrides,
            sink_timeout,
            proxies,
            probe_port,
            metrics_port,
            listen,
            fencing,
            report,
            warnings,
        })
    }

    /// A variable's value, also one that is not in the table above; None where it is not set or empty.
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.vars.get(variable).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// All variables, as they were when they were read.
    pub fn vars(&self) -> &BTreeMap<String, String> {
        &self.vars
    }

    /// NAMESPACE; empty where it is not set.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// NAME, else `adapter`.
    pub fn name(&self) -> &str {
        self.get("NAME").unwrap_or("adapter")
    }

    /// K_SINK.
    pub fn sink(&self) -> Option<&Url> {
        self.sink.as_ref()
    }

    /// K_CE_OVERRIDES.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// K_SINK_TIMEOUT: how long one attempt may take; None: without limit.
    pub fn sink_timeout(&self) -> Option<Duration> {
        self.sink_timeout
    }

    /// The proxies through which sinks are reached.
    pub fn proxies(&self) -> &Proxies {
        &self.proxies
    }

    /// K_LEADER_ELECTION_CONFIG.
    pub fn leader_election_config(&self) -> Option<&str> {
        self.get("K_LEADER_ELECTION_CONFIG")
    }

    /// SYSTEM_NAMESPACE.
    pub fn system_namespace(&self) -> Option<&str> {
        self.get("SYSTEM_NAMESPACE")
    }

    /// POD_NAME.
    pub fn pod_name(&self) -> Option<&str> {
        self.get("POD_NAME")
    }

    /// POD_UID.
    pub fn pod_uid(&self) -> Option<&str> {
        self.get("POD_UID")
    }

    /// The host's name: HOSTNAME, else the kernel's.
    pub fn hostname(&self) -> String {
        self.get("HOSTNAME")
            .map_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned(), ToOwned::to_owned)
    }

    /// A new identity: `<prefix>_<uuid>`. The prefix is the one given, else POD_NAME, else the host's name.
    ///
    /// Each process start has its own: what a former process of the same Pod held is somebody else's.
    pub fn new_identity(&self, prefix: Option<&str>) -> String {
        let prefix = prefix.or(self.pod_name()).map_or_else(|| self.hostname(), ToOwned::to_owned);
        format!("{prefix}_{}", uuid::Uuid::new_v4())
    }

    /// LEASEHOLD_PROBE_PORT.
    pub fn probe_port(&self) -> u16 {
        self.probe_port
    }

    /// LEASEHOLD_METRICS_PORT.
    pub fn metrics_port(&self) -> u16 {
        self.metrics_port
    }

    /// LEASEHOLD_LISTEN; the unspecified IPv6 address means all addresses of both families.
    pub fn listen(&self) -> IpAddr {
        self.listen
    }

    /// LEASEHOLD_FENCING.
    pub fn fencing(&self) -> bool {
        self.fencing
    }

    /// LEASEHOLD_REPORT.
    pub fn report(&self) -> Option<&PathBuf> {
        self.report.as_ref()
    }

    /// What was passed over in silence by Knative, and is not by us. Logged at start.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
