//! `leasehold ping`: takes the place of Knative's pingsource-mt-adapter.

use super::log;
use leasehold::adapter::{Env, run_with, wire};
use leasehold::config::duration;
use leasehold::sources::ping::adapter::{COMPONENT, From, PingAdapter, QUEUE};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Fire the events of PingSources on their schedules, sharded over all replicas.
///
/// Configured like Knative's pingsource-mt-adapter: K_LEADER_ELECTION_CONFIG, or the ConfigMap config-leader-election in
/// SYSTEM_NAMESPACE; K_SINK is where a PingSource that names no sink sends to. Stops in good order on SIGTERM, at once on a
/// second one. Exit codes: 0 stopped in good order, 1 cannot start or a second signal, 86 something could not be stopped
/// before its Lease ran out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Read PingSources from this YAML file, followed as it changes, instead of from the API.
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_PING_FILE")]
    file: Option<PathBuf>,
    /// Watch PingSources in this namespace only; all namespaces by default.
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "file", env = "LEASEHOLD_PING_NAMESPACE")]
    namespace: Option<String>,
    /// Fire ticks that came due while nobody held their bucket, if they are no older than this.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse_positive, env = "LEASEHOLD_PING_CATCH_UP")]
    catch_up: Duration,
    /// Add the extensions leasebucket and leaseepoch, by which a sink can refuse a stale sender.
    #[arg(long)]
    fence: bool,
    /// High availability off: no Leases, every source is this process's. Run one replica then.
    #[arg(long)]
    disable_ha: bool,
    #[command(flatten)]
    log: log::Args,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.log.start()?;
    let from = args.file.map_or(From::Api { namespace: args.namespace }, From::File);
    let adapter = PingAdapter { from, catch_up: args.catch_up, fence: args.fence };
    let available = !args.disable_ha;
    let code = run_with(
        COMPONENT,
        |_: &Env| {
            // Before anything is taken: a replica that ends at once must not win buckets first.
            if let From::File(path) = &adapter.from {
                std::fs::read_to_string(path)
                    .map_err(|e| format!("--file (LEASEHOLD_PING_FILE) {}: {e}", path.display()))?;
            }
            Ok::<_, String>(adapter)
        },
        |runtime| wire(runtime.queue(QUEUE), available),
    )
    .await;
    Ok(code)
}
