//! What an adapter gets from Kubernetes: its configuration, and the strategy that the configuration names.

use super::{Adapter, ConfigCounts, Env, Runtime, run_with};
use crate::clock::Boottime;
use crate::config::{self, Config, ConfigSource, ConfigWatch, StrategyKind};
use crate::elector::standard::Standard;
use crate::elector::statefulset::StatefulSet;
use crate::elector::unopposed::Unopposed;
use crate::elector::{Status, Strategy};
use crate::leader::BoxError;
use crate::lease::{Connector, Manager};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the adapter that `constructor` makes of the environment, until it is done or told to stop.
///
/// Its configuration is K_LEADER_ELECTION_CONFIG, or the ConfigMap `config-leader-election` in SYSTEM_NAMESPACE, or the
/// defaults; it competes for the buckets of the queue `adapter` with the strategy that the configuration names. See
/// [`Adapter`] for what it does and [`Runtime`] for everything that can be set. The exit codes are 0 after a clean stop, 1
/// for what can't start or has failed, and 86 for what could not be stopped.
///
/// In a program: install one crypto provider for rustls first, and a subscriber for the log.
pub async fn run<A, E>(component: &str, constructor: impl FnOnce(&Env) -> Result<A, E>) -> ExitCode
where
    A: Adapter,
    E: Into<BoxError>,
{
    run_with(component, constructor, |runtime| wire(runtime, true)).await
}

/// The way to the cluster: a service account in a pod, KUBECONFIG, or ~/.kube/config.
///
/// # Errors
/// There is none that can be used; nothing of a kubeconfig's content is shown.
pub async fn cluster() -> Result<kube::Config, BoxError> {
    kube::Config::infer().await.map_err(|e| {
        format!(
            "no way to a cluster was found (a service account in a pod, KUBECONFIG, or ~/.kube/config): {}",
            without_excerpt(&e)
        )
        .into()
    })
}

/// What is wrong with a kubeconfig. The parser shows the lines around the fault below its message: tokens and keys, which
/// have no place in a log.
pub(crate) fn without_excerpt(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_end();
    if first.len() == text.len() { text } else { format!("{first} (the lines of the file are not shown)") }
}

/// Completes a runtime with what Kubernetes says. `available`: high availability is wanted; else the strategy is
/// `unopposed`, whatever the configuration names (`--disable-ha`).
///
/// Waits through an API server that cannot be reached; cancel-safe.
///
/// # Errors
/// A configuration that can't be used, no way to find a cluster, SYSTEM_NAMESPACE missing.
pub async fn wire(runtime: Runtime, available: bool) -> Result<Runtime, BoxError> {
    let vars = runtime.environment().map(|e| e.vars().clone()).unwrap_or_default();
    let env: config::Env = vars.clone().into_iter().collect();
    if !available {
        let config = Config::default_without_config_map(&env)?.config;
        let watch = ConfigWatch::fixed(config);
        return Ok(runtime.strategy(Arc::new(Unopposed)).config(watch.subscribe()));
    }
    let cluster = cluster().await?;
    let client = kube::Client::try_from(cluster.clone())?;
    let source = ConfigSource::choose(runtime.component(), &env, client)?;
    let (watch, watching) = source.start_patiently(|error| runtime.no_configuration(error)).await?;
    let config = watch.config();
    let strategy: Arc<dyn Strategy> = match config.strategy {
        StrategyKind::Unopposed => Arc::new(Unopposed),
        StrategyKind::StatefulSet => {
            let resolv = tokio::fs::read_to_string("/etc/resolv.conf").await.unwrap_or_default();
            Arc::new(StatefulSet::from_env(|name| vars.get(name).cloned(), &resolv)?)
        }
        StrategyKind::Standard | StrategyKind::Balanced => Arc::new(Standard::new(Manager::new(
            Connector::config(cluster),
            env.system_namespace()?,
            Arc::new(Boottime),
        )?)),
    };
    let status = watch.clone();
    let edits = Arc::new(move || {
        let status = status.status();
        ConfigCounts { applied: status.applied, refused: status.refused, watch_failures: status.watch_failures }
    });
    // What was said of it until now is said anew by this.
    let shown: Status = runtime.shown().clone();
    let mirror = show(watch.clone(), shown.clone());
    let runtime = runtime.strategy(strategy).config(watch.subscribe()).edits(edits);
    Ok(runtime.alongside(|stop| async move {
        tokio::select! {
            () = watching.run(stop) => {}
            () = mirror => {}
        }
    }))
}

/// Keeps saying on the readiness page where the configuration comes from and what of it is not in force.
async fn show(watch: ConfigWatch, shown: Status) {
    let mut seen = watch.subscribe_status();
    loop {
        let status = seen.borrow_and_update().clone();
        let mut text = format!("{}, generation {}", status.origin, status.generation);
        for trouble in status.refusal.iter().chain(&status.watch_error) {
            text.push_str("; ");
            text.push_str(trouble);
        }
        for warning in &status.warnings {
            // Writing into a String cannot fail.
            let _ = write!(text, "; {warning}");
        }
        shown.say("configuration", text);
        if seen.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_kubeconfig_shows_no_token() {
        let yaml = "apiVersion: v1\nclusters:\n- {name: t, cluster: {server: http://x\nusers:\n- {name: u, user: {token: hunter2}}\n";
        let error = kube::config::Kubeconfig::from_yaml(yaml).unwrap_err();
        let shown = without_excerpt(&error);
        assert!(!shown.contains("hunter2") && !shown.contains('\n') && shown.contains("line"), "{shown}");
        assert_eq!(without_excerpt(&"No such file"), "No such file");
    }
}
