//! `leasehold dev`: a fleet on this machine (docs/dev.md).

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use leasehold::config::StrategyKind;
use leasehold::config::duration::parse_positive;
use leasehold::dev::fleet::cluster::{Cluster, InMemory, Loopback, Real};
use leasehold::dev::fleet::judge::Report;
use leasehold::dev::fleet::options::{PING_COMPONENT, PING_QUEUE};
use leasehold::dev::fleet::{self, Chaos, Options, Scratch};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a cluster may take to answer at the start, and to be cleaned up at the end.
const CLUSTER: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many replicas.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000))]
    replicas: u32,
    /// How many buckets they share.
    #[arg(long, default_value_t = 10, value_name = "N")]
    buckets: u32,
    /// How buckets are shared out.
    #[arg(long, value_enum, default_value_t = Strategy::Standard)]
    strategy: Strategy,
    /// How many sources that tick every second; 0 judges no ticks, for a CMD that sends something else.
    #[arg(long, default_value_t = 40, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100_000))]
    sources: u32,
    /// For how long a record in a Lease is honoured.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = parse_positive)]
    lease_duration: Duration,
    /// From the send of a renewal to the deadline it gives.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = parse_positive)]
    renew_deadline: Duration,
    /// From one renewal to the next.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = parse_positive)]
    retry_period: Duration,
    /// Which trouble is made: none, term (SIGTERM), kill (SIGKILL), pause (SIGSTOP for three lease-durations), or
    /// restart (SIGKILL, and the same Pod again at once).
    #[arg(long, default_value_t = Chaos::None, value_name = "CHAOS")]
    chaos: Chaos,
    /// From one trouble to the next.
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = parse_positive)]
    every: Duration,
    /// How long ticks are expected, from 1 s after every bucket was first held.
    #[arg(long = "for", default_value = "60s", value_name = "DURATION", value_parser = parse_positive)]
    length: Duration,
    /// Whom trouble hits is drawn from this; made up, and printed, where it is not given.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the report there, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Use the cluster of this file, in a new namespace, instead of an API server in memory.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The component whose first start is prepared by `leasehold init`, where CMD is another than ping.
    #[arg(long, default_value = PING_COMPONENT)]
    component: String,
    /// Its queue.
    #[arg(long, default_value = PING_QUEUE)]
    queue: String,
    /// Show what the replicas write, instead of the table.
    #[arg(long, short)]
    verbose: bool,
    /// What is run N times [default: this program's `ping`].
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// [`StrategyKind`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// Each bucket is raced for on its own, as client-go and Knative do.
    Standard,
    /// By the replica's ordinal, without Leases.
    #[value(name = "statefulset")]
    StatefulSet,
    /// Everything is everybody's: meant for one replica.
    Unopposed,
}

impl From<Strategy> for StrategyKind {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Standard => Self::Standard,
            Strategy::StatefulSet => Self::StatefulSet,
            Strategy::Unopposed => Self::Unopposed,
        }
    }
}

impl Args {
    fn options(&self) -> Options {
        Options {
            replicas: self.replicas,
            buckets: self.buckets,
            strategy: self.strategy.into(),
            sources: self.sources,
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
            chaos: self.chaos,
            every: self.every,
            length: self.length,
            seed: self.seed.unwrap_or_else(|| fastrand::u64(..)),
            command: (!self.command.is_empty()).then(|| self.command.clone()),
            component: self.component.clone(),
            queue: self.queue.clone(),
            verbose: self.verbose,
        }
    }
}

/// Exits with 0 when the run passed, with 1 when it failed or could not be judged.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")),
        )
        .with_writer(std::io::stderr)
        .init();
    let options = args.options();
    options.check()?;
    // Known before a minute has passed.
    if let Some(path) = &args.report {
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot write the report to {}", path.display()))?;
    }
    let mut interrupts = interrupts()?;
    let scratch = Scratch::new().context("cannot make a directory for the run")?;
    let outcome = in_cluster(&args, &options, &scratch, &mut interrupts).await;
    let passed = matches!(&outcome, Ok(report) if report.passed() && report.unasked_exits == 0);
    if passed || !scratch.has_output() {
        scratch.discard();
    } else {
        let _ = writeln!(std::io::stderr(), "what the replicas wrote is in {}", scratch.path().display());
    }
    let report = outcome?;
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    let _ = write!(std::io::stdout(), "\n{}", fleet::summary(&report));
    if let Some(path) = &args.report {
        std::fs::write(path, text).with_context(|| format!("cannot write the report to {}", path.display()))?;
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the cluster of the run, runs, and cleans up whatever came of it.
async fn in_cluster(
    args: &Args,
    options: &Options,
    scratch: &Scratch,
    interrupts: &mut mpsc::Receiver<()>,
) -> Result<Report> {
    let made = tokio::select! {
        made = tokio::time::timeout(CLUSTER, cluster(args, scratch)) => made,
        Some(()) = interrupts.recv() => bail!("interrupted while the cluster was being made"),
    };
    let cluster = made.with_context(|| format!("the cluster did not answer within {CLUSTER:?}"))??;
    let outcome = fleet::run(options, &*cluster, scratch, interrupts).await;
    match tokio::time::timeout(CLUSTER, cluster.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::warn!("the cluster was not cleaned up: {e}"),
        Err(_) => tracing::warn!("the cluster was not cleaned up within {CLUSTER:?}: see {}", cluster.about()),
    }
    Ok(outcome?)
}

async fn cluster(args: &Args, scratch: &Scratch) -> Result<Box<dyn Cluster>> {
    match &args.kubeconfig {
        Some(file) => Ok(Box::new(Real::new(file).await?)),
        None => in_memory(scratch).await,
    }
}

/// Each SIGINT, SIGTERM and SIGHUP as a message. From here on none of them ends the process by itself.
fn interrupts() -> Result<mpsc::Receiver<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (tell, hear) = mpsc::channel(8);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let mut signals = signal(kind).context("cannot listen for signals")?;
        let tell = tell.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                // Full: nobody has answered eight of them, and one more says nothing new.
                let _ = tell.try_send(());
            }
        });
    }
    Ok(hear)
}

/// The API server in memory, which lives as long as the cluster that is made of it.
async fn in_memory(scratch: &Scratch) -> Result<Box<dyn Cluster>> {
    let hosted = Loopback::start().await.context("the API server in memory cannot listen on loopback")?;
    Ok(Box::new(InMemory::new(Box::new(hosted), scratch.path()).await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, String> {
        let words = std::iter::once("dev").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args).map_err(|e| e.to_string())
    }

    #[test]
    fn the_defaults_are_those_of_the_library() {
        let options = parse("").unwrap().options();
        let expected = Options { seed: options.seed, ..Options::default() };
        assert_eq!(format!("{options:?}"), format!("{expected:?}"));
    }

    #[test]
    fn everything_can_be_said() {
        let args = parse(
            "--replicas 5 --buckets 7 --strategy statefulset --sources 0 --lease-duration 5s --renew-deadline 4s \
             --retry-period 500ms --chaos kill --every 1m30s --for 2h --seed 9 --report r.json --kubeconfig k \
             --component c --queue q -v -- ./adapter --flag -x",
        )
        .unwrap();
        let options = args.options();
        assert_eq!((options.replicas, options.buckets, options.sources, options.seed), (5, 7, 0, 9));
        assert_eq!((options.strategy, options.chaos), (StrategyKind::StatefulSet, Chaos::Kill));
        assert_eq!((options.every, options.length), (Duration::from_secs(90), Duration::from_hours(2)));
        let times = (options.lease_duration, options.renew_deadline, options.retry_period);
        assert_eq!(times, (Duration::from_secs(5), Duration::from_secs(4), Duration::from_millis(500)));
        assert_eq!(options.command, Some(["./adapter", "--flag", "-x"].map(OsString::from).to_vec()));
        assert_eq!((options.component.as_str(), options.queue.as_str(), options.verbose), ("c", "q", true));
        assert_eq!((args.report, args.kubeconfig), (Some("r.json".into()), Some("k".into())));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (line, said) in [
            ("--chaos murder", "murder"),
            ("--strategy Standard", "standard"),
            ("--every 5", "--every"),
            ("--for -5s", "unexpected argument"),
            ("--for=-5s", "must not be negative"),
            ("--for 5d", "5d"),
            ("--replicas x", "--replicas"),
            ("adapter", "adapter"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn a_seed_is_made_up_where_none_is_given() {
        let seeds: std::collections::BTreeSet<u64> = (0..8).map(|_| parse("").unwrap().options().seed).collect();
        assert!(seeds.len() > 1);
    }
}
