//! `leasehold init`: says that nothing runs, so that nothing waits whichever replica starts first.

use leasehold::adapter::cluster;
use leasehold::clock::{Boottime, SharedClock};
use leasehold::config::{ConfigSource, Env, StrategyKind};
use leasehold::elector::standard::layout_name;
use leasehold::lease::init::{Done, Init};
use leasehold::lease::{Connector, Cut, LeaseClient};
use leasehold::sources::ping::adapter::{COMPONENT, QUEUE};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Make a queue's Leases, ready to be taken: your word that nothing of it runs.
///
/// Without it the first replicas ever wait one lease-duration, since nobody can know whether something runs that cannot be
/// seen. Configured like the adapter: K_LEADER_ELECTION_CONFIG, or the ConfigMap config-leader-election in
/// SYSTEM_NAMESPACE. Running it again does no harm. Exit codes: 0 the queue is ready; 1 a bucket is held, another layout is
/// in force, or the API server cannot be reached.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The component whose queue it is.
    #[arg(long, default_value = COMPONENT)]
    component: String,
    /// The queue.
    #[arg(long, default_value = QUEUE)]
    queue: String,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let cluster = cluster().await.map_err(|e| anyhow::anyhow!(e))?;
    let source = ConfigSource::choose(&args.component, &env, kube::Client::try_from(cluster.clone())?)?;
    let (watch, _) = source.start().await?;
    let config = watch.config();
    let strategy = match config.strategy {
        kind @ (StrategyKind::Standard | StrategyKind::Balanced) => kind.as_str().to_owned(),
        kind => anyhow::bail!("strategy {kind} has no Leases, so there is nothing to make"),
    };
    let init = Init {
        layout: layout_name(&args.component, &args.queue),
        cut: Cut {
            strategy,
            hash: config.hash.into(),
            buckets: config.buckets,
            prefix: config.prefix(&args.component, &args.queue),
        },
        lease_duration: config.timing.lease_duration,
    };
    let clock: SharedClock = Arc::new(Boottime);
    let client =
        LeaseClient::new(Connector::config(cluster), env.system_namespace()?, Arc::clone(&clock), Arc::new(|_: &_| {}))
            .map_err(anyhow::Error::from_boxed)?;
    let done = init.run(&client, &clock, Duration::from_secs(10)).await?;
    super::say(&match done {
        Done::AlreadyInForce => format!("{}: in force already, nothing to do", init.layout),
        Done::Opened { written } => format!("{}: ready ({}; {written} Leases written)", init.layout, init.cut),
    });
    Ok(ExitCode::SUCCESS)
}
