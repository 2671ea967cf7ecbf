//! The life of an adapter's process: start, election, stop in good order.
//!
//! # Guarantees
//! - Nothing is contended for before the ports are bound and everything that can be refused has been. The ports answer while
//!   the configuration is still waited for.
//! - A stop (SIGTERM, SIGINT, an adapter that is done or has failed) goes in this order: the probes say so; no new
//!   guards; what is out finishes, or is cancelled at drain-timeout; demote; release; and only then does the process end.
//!   Probes and metrics answer to the last.
//! - A second signal ends the process at once, with 1. What is held runs out by itself.
//! - An elector that ends without being told to is an illness that /healthz shows, not an exit: kubelet restarts, and
//!   says why.
//!
//! # Exit codes
//! | code | when |
//! | --- | --- |
//! | 0 | stopped in good order, or the adapter's `start` returned Ok |
//! | 1 | it can't start; `start` gave an error or panicked; a second signal |
//! | 86 | something could not be stopped before its Lease ran out ([`crate::leader::fatal`]) |

mod life;
mod ports;
mod runtime;
#[cfg(test)]
mod tests;

pub use runtime::Runtime;

use super::context::Context;
use super::env::Env;
use super::error::RunError;
use super::signals::{self, Signals};
use crate::leader::{BoxError, DynLeaderAware};
use futures::StreamExt;
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

/// What is particular to an event source. Implementors write `async fn start`.
pub trait Adapter: Send + Sync + 'static {
    /// Runs the source. Started beside the election, in every replica; events are acted on under guards.
    ///
    /// Ok before the stop means that the adapter is done: everything is stopped in good order and the process exits
    /// with 0. An error does the same with 1. See [`Context::stopping`] for the end; what still runs then is dropped at an
    /// await.
    fn start(&self, ctx: Context) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Who else is promoted and demoted, after the gate's table and before any event. Called once, before the election.
    fn aware(&self, ctx: &Context) -> Option<Arc<dyn DynLeaderAware>> {
        let _ = ctx;
        None
    }
}

/// Runs the adapter that `constructor` makes of the environment.
///
/// `default_strategy` completes the runtime with [`Runtime::strategy`] and [`Runtime::config`]; it may take its time, and
/// a signal meanwhile ends the process with 0. What is wrong goes to the log and to standard error.
pub async fn run_with<A, E, W>(
    component: &str,
    constructor: impl FnOnce(&Env) -> Result<A, E>,
    default_strategy: impl FnOnce(Runtime) -> W,
) -> ExitCode
where
    A: Adapter,
    E: Into<BoxError>,
    W: Future<Output = Result<Runtime, BoxError>>,
{
    let run = async {
        // Before all that can take long: as process 1 of a container it would not be ended by SIGTERM otherwise.
        let signals = signals::of_the_process().map_err(RunError::Signals)?;
        compose(component, Env::process()?, signals, constructor, default_strategy).await
    };
    exit_code(component, run.await)
}

async fn compose<A, E, W>(
    component: &str,
    env: Env,
    mut signals: Signals,
    constructor: impl FnOnce(&Env) -> Result<A, E>,
    default_strategy: impl FnOnce(Runtime) -> W,
) -> Result<(), RunError>
where
    A: Adapter,
    E: Into<BoxError>,
    W: Future<Output = Result<Runtime, BoxError>>,
{
    let adapter = constructor(&env).map_err(|e| RunError::Construct(e.into()))?;
    let runtime = Runtime::new(component).env(env).listen().await?;
    let reporter = runtime.reporter.clone();
    let gone = async {
        match &reporter {
            Some(reporter) => reporter.gone().await,
            None => std::future::pending().await,
        }
    };
    let runtime = tokio::select! {
        biased;
        Some(signal) = signals.next() => {
            tracing::info!(?signal, "stopped before the election was set up");
            return Ok(());
        }
        // A fleet that was killed must leave no replica behind.
        () = gone => {
            tracing::error!("whoever read the report of LEASEHOLD_REPORT is gone: stopped before the election was set up");
            return Ok(());
        }
        runtime = default_strategy(runtime) => runtime.map_err(RunError::Wiring)?,
    };
    runtime.signals(signals).try_run(adapter).await
}

/// Says what went wrong, where a person looks for it.
#[allow(
    clippy::print_stderr,
    reason = "without a subscriber the log goes nowhere, and a start that fails must say why"
)]
fn exit_code(component: &str, result: Result<(), RunError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(component, "{error}");
            eprintln!("{component}: {error}");
            ExitCode::FAILURE
        }
    }
}
