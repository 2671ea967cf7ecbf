//! The log: to standard error, text for people, JSON for machines.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How a log line looks.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log. `filter`: what is logged, as tracing's EnvFilter reads it.
pub(crate) fn start(format: Format, filter: &str) -> anyhow::Result<()> {
    // An empty filter would log nothing: a template did not render.
    anyhow::ensure!(
        !filter.trim().is_empty(),
        "LEASEHOLD_LOG is {filter:?}: it must be a level or a filter, such as info; unset it for info"
    );
    let filter = EnvFilter::try_new(filter).map_err(|e| anyhow::anyhow!("LEASEHOLD_LOG {filter:?}: {e}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    match format {
        Format::Text => log.try_init(),
        Format::Json => log.json().flatten_event(true).try_init(),
    }
    .map_err(|e| anyhow::anyhow!("the log can't be started: {e}"))
}

/// How to log, for every command that runs for long.
#[derive(Debug, clap::Args)]
// Its name is that of the command it is part of, which a group of arguments may not be.
#[group(skip)]
pub(crate) struct Args {
    /// What is logged: a level, or `target=level` pairs with commas between them. By default not what kube's client says of
    /// each connection that fails: whoever asked says it.
    #[arg(long = "log", env = "LEASEHOLD_LOG", default_value = "info,kube_client=off", value_name = "FILTER")]
    filter: String,
    /// How a log line looks.
    #[arg(long = "log-format", env = "LEASEHOLD_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    format: Format,
}

impl Args {
    pub(crate) fn start(&self) -> anyhow::Result<()> {
        start(self.format, &self.filter)
    }
}
