//! The command line: one subcommand per file, each of which says how it exits.

mod dev;
mod init;
mod log;
mod ping;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Event-source adapters and reconcilers that scale by replica count.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a fleet of replicas on this machine, make trouble among them, and judge what they did.
    Dev(Box<dev::Args>),
    Init(init::Args),
    Ping(Box<ping::Args>),
}

/// Parses the command line, runs what it asks for, and says how it went.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    // One provider for everything that speaks TLS; an error only means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return failed(&anyhow::Error::from(e).context("cannot start the runtime")),
    };
    let outcome = match cli.command {
        Command::Dev(args) => runtime.block_on(dev::run(*args)),
        Command::Init(args) => runtime.block_on(init::run(args)),
        Command::Ping(args) => runtime.block_on(ping::run(*args)),
    };
    outcome.unwrap_or_else(|e| failed(&e))
}

/// A line on standard output.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Says what went wrong, with its causes.
fn failed(error: &anyhow::Error) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "leasehold: {error:#}");
    ExitCode::FAILURE
}
