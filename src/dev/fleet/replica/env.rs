//! What a replica finds in its environment: what a Pod of a Knative adapter finds, and where to report.

use super::Pod;
use crate::adapter::report::LEASEHOLD_REPORT;
use crate::config::StrategyKind;
use crate::dev::fleet::options::strategy_name;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What of the fleet's own environment would make replicas behave in another way than the run was asked to.
const NOT_INHERITED: [&str; 14] = [
    "CONFIG_LEADERELECTION_NAME",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "K_AUDIENCE",
    "K_CA_CERTS",
    "K_CE_OVERRIDES",
    "K_LEADER_ELECTION_CONFIG",
    "K_SINK_TIMEOUT",
    "NAME",
    "STATEFUL_CONTROLLER_ORDINAL",
    "STATEFUL_SERVICE_NAME",
    "STATEFUL_SERVICE_PORT",
    "STATEFUL_SERVICE_PROTOCOL",
    "SYSTEM_NAMESPACE",
];

/// Hosts that are never asked through a proxy: the sink, the API server in memory.
const LOOPBACK: &str = "127.0.0.1,localhost";

/// What all replicas of a run share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The kubeconfig.
    pub kubeconfig: PathBuf,
    /// The namespace of the run.
    pub namespace: String,
    /// Where events go.
    pub sink: String,
    /// How buckets are shared out.
    pub strategy: StrategyKind,
    /// The sources of the run, as a file.
    pub sources: PathBuf,
}

/// A child's environment as changes to the fleet's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables that are set.
    pub set: BTreeMap<String, OsString>,
    /// Variables that are not inherited.
    pub unset: Vec<String>,
}

impl Environment {
    /// Of one replica. `own` looks into the fleet's own environment.
    pub fn new(
        shared: &Shared,
        pod: &Pod,
        report: Option<&Path>,
        own: impl Fn(&str) -> Option<OsString>,
        own_names: impl Iterator<Item = String>,
    ) -> Self {
        let mut set = BTreeMap::from([
            ("KUBECONFIG".to_owned(), shared.kubeconfig.clone().into_os_string()),
            ("SYSTEM_NAMESPACE".to_owned(), shared.namespace.clone().into()),
            ("NAMESPACE".to_owned(), shared.namespace.clone().into()),
            ("POD_NAME".to_owned(), pod.name.clone().into()),
            ("POD_UID".to_owned(), pod.uid.clone().into()),
            ("K_SINK".to_owned(), shared.sink.clone().into()),
            ("LEASEHOLD_PROBE_PORT".to_owned(), "0".into()),
            ("LEASEHOLD_METRICS_PORT".to_owned(), "0".into()),
            ("LEASEHOLD_STRATEGY".to_owned(), strategy_name(shared.strategy).into()),
            // For a CMD that is `ping` of another build: it needs no --file then.
            ("LEASEHOLD_PING_FILE".to_owned(), shared.sources.clone().into_os_string()),
        ]);
        if let Some(report) = report {
            set.insert(LEASEHOLD_REPORT.to_owned(), report.as_os_str().to_owned());
        }
        if shared.strategy == StrategyKind::StatefulSet {
            set.insert("STATEFUL_CONTROLLER_ORDINAL".to_owned(), pod.name.clone().into());
            set.insert("STATEFUL_SERVICE_NAME".to_owned(), "leasehold-dev".into());
        }
        for name in ["NO_PROXY", "no_proxy"] {
            let mut hosts = own(name).filter(|v| !v.is_empty()).map_or_else(OsString::new, |mut v| {
                v.push(",");
                v
            });
            hosts.push(LOOPBACK);
            set.insert(name.to_owned(), hosts);
        }
        // A setting of ours in the shell would beat the ConfigMap of the run.
        let ours = own_names.filter(|name| name.starts_with("LEASEHOLD_"));
        let unset = NOT_INHERITED.iter().map(|&name| name.to_owned()).chain(ours);
        let unset = unset.filter(|name| !set.contains_key(name)).collect();
        Self { set, unset }
    }

    /// Of one replica, beside this process's environment.
    pub fn of_process(shared: &Shared, pod: &Pod, report: Option<&Path>) -> Self {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        Self::new(shared, pod, report, |name| std::env::var_os(name), names)
    }

    /// Makes the changes.
    pub fn apply(&self, command: &mut tokio::process::Command) {
        for name in &self.unset {
            command.env_remove(name);
        }
        command.envs(&self.set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(strategy: StrategyKind) -> Shared {
        Shared {
            kubeconfig: "/k".into(),
            namespace: "ns".to_owned(),
            sink: "http://127.0.0.1:1/".to_owned(),
            strategy,
            sources: "/s.yaml".into(),
        }
    }

    fn pod() -> Pod {
        Pod { name: "ping-1".to_owned(), uid: "u-1".to_owned() }
    }

    #[test]
    fn a_replica_finds_what_a_pod_finds() {
        let none = std::iter::empty();
        let env = Environment::new(&shared(StrategyKind::Standard), &pod(), Some(Path::new("/r")), |_| None, none);
        let text: Vec<String> =
            env.set.iter().map(|(name, value)| format!("{name}={}", value.to_string_lossy())).collect();
        assert_eq!(
            text,
            [
                "KUBECONFIG=/k",
                "K_SINK=http://127.0.0.1:1/",
                "LEASEHOLD_METRICS_PORT=0",
                "LEASEHOLD_PING_FILE=/s.yaml",
                "LEASEHOLD_PROBE_PORT=0",
                "LEASEHOLD_REPORT=/r",
                "LEASEHOLD_STRATEGY=standard",
                "NAMESPACE=ns",
                "NO_PROXY=127.0.0.1,localhost",
                "POD_NAME=ping-1",
                "POD_UID=u-1",
                "SYSTEM_NAMESPACE=ns",
                "no_proxy=127.0.0.1,localhost",
            ]
        );
        assert!(env.unset.iter().any(|name| name == "K_LEADER_ELECTION_CONFIG"));
        assert!(!env.unset.iter().any(|name| name == "SYSTEM_NAMESPACE"));
    }

    #[test]
    fn settings_of_the_shell_do_not_beat_the_run() {
        let names = ["LEASEHOLD_BUCKET_HASH", "LEASEHOLD_STRATEGY", "PATH"].map(str::to_owned).into_iter();
        let own = |name: &str| (name == "NO_PROXY").then(|| "intern".into());
        let env = Environment::new(&shared(StrategyKind::StatefulSet), &pod(), None, own, names);
        assert!(env.unset.contains(&"LEASEHOLD_BUCKET_HASH".to_owned()));
        assert!(!env.unset.contains(&"PATH".to_owned()) && !env.unset.contains(&"LEASEHOLD_STRATEGY".to_owned()));
        assert_eq!(env.set["NO_PROXY"], "intern,127.0.0.1,localhost");
        assert_eq!(env.set["STATEFUL_CONTROLLER_ORDINAL"], "ping-1");
        assert!(!env.unset.contains(&"STATEFUL_CONTROLLER_ORDINAL".to_owned()));
    }
}
