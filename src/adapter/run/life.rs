//! The life of a process: everything is prepared, then it lives, then it stops in good order.

use super::Adapter;
use super::ports::Ports;
use super::runtime::{Alongside, Runtime, connect};
use crate::adapter::context::{Context, Inner};
use crate::adapter::env::{Env, shown};
use crate::adapter::error::RunError;
use crate::adapter::late::Late;
use crate::adapter::metrics::{Deliveries, Metrics, Now};
use crate::adapter::probes::{self, Health};
use crate::adapter::report::Line;
use crate::adapter::reporter::Reporter;
use crate::adapter::serve;
use crate::adapter::signals::{self, Signals};
use crate::adapter::sink::Sink;
use crate::adapter::terms::Terms;
use crate::elector::{Elector, Queue, Stop};
use crate::leader::{Chain, DynLeaderAware, Leadership};
use futures::StreamExt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How long the end of the process waits for what ran alongside.
const ALONGSIDE_PATIENCE: Duration = Duration::from_secs(5);

/// Everything that can be refused has been.
pub(super) struct Ready {
    ctx: Context,
    elector: Box<dyn Elector>,
    health: Arc<Health>,
    signals: Signals,
    at_once: Arc<dyn Fn() + Send + Sync>,
    alongside: Vec<Alongside>,
    reporter: Option<Reporter>,
    late: Late,
    /// They answer to the last.
    _ports: Ports,
}

impl Ready {
    pub(super) async fn prepare(runtime: Runtime) -> Result<Self, RunError> {
        let Runtime { component, queue, clock, status, mut observers, on_fatal, mut registry, .. } = runtime;
        let env = runtime.env.map_or_else(Env::process, Ok)?;
        let strategy = runtime.strategy.ok_or(RunError::Missing("strategy"))?;
        let config = runtime.config.ok_or(RunError::Missing("config"))?;
        let signals = match runtime.signals {
            Some(signals) => signals,
            None => signals::of_the_process().map_err(RunError::Signals)?,
        };
        for warning in env.warnings() {
            tracing::warn!("{warning}");
        }

        let (terms, leadership, stop, late) = (Terms::default(), Leadership::new(), Stop::new(), Late::default());
        let now =
            Now { terms: terms.clone(), leadership: leadership.clone(), clock: clock.clone(), edits: runtime.edits };
        observers.push(Arc::new(Metrics::register(&mut registry, now)));
        let sink = Sink::counted(&env, clock.clone(), Some(Deliveries::register(&mut registry)))?;

        let identity = env.new_identity(config.borrow().identity.as_deref());
        let ports = match runtime.ports {
            Some(ports) => ports,
            None => Ports::bind(&env, &component, status.clone()).await?,
        };
        let (probe_port, metrics_port) = ports.numbers();

        let reporter = match runtime.reporter {
            Some(reporter) => Some(reporter),
            None => connect(&env, &clock).await?,
        };
        if let Some(reporter) = &reporter {
            observers.push(Arc::new(reporter.clone()));
        }

        let elector = strategy.build(Queue {
            component: component.clone(),
            name: queue.clone(),
            identity: identity.clone(),
            config: config.clone(),
            clock: clock.clone(),
            observer: Arc::new(observers),
            on_fatal,
            status: status.clone(),
        })?;
        tracing::info!(
            component,
            queue,
            identity,
            strategy = strategy.name(),
            probe_port,
            metrics_port,
            sink = sink.target().map(shown),
            "started"
        );
        if let Some(reporter) = &reporter {
            reporter.write(&Line::Hello {
                pid: std::process::id(),
                identity: identity.clone(),
                component: component.clone(),
                probe_port,
                metrics_port,
                at: clock.now().as_nanos(),
            });
        }
        let health = Arc::new(Health {
            component: component.clone(),
            identity: identity.clone(),
            queue,
            strategy: strategy.name(),
            terms,
            leadership: leadership.clone(),
            status,
            config: config.clone(),
            clock,
            stop: stop.clone(),
            election_died: AtomicBool::new(false),
        });
        ports.show(probes::router(Arc::clone(&health)), serve::metrics(Arc::new(registry)));
        let listens = AtomicBool::new(false);
        let inner = Inner { component, identity, env, sink, leadership, config, stop, late: late.clone(), listens };
        Ok(Self {
            ctx: Context::new(inner),
            elector,
            health,
            signals,
            at_once: runtime.at_once,
            alongside: runtime.alongside,
            reporter,
            late,
            _ports: ports,
        })
    }

    pub(super) async fn live<A: Adapter>(self, adapter: Arc<A>) -> Result<(), RunError> {
        let Self { ctx, elector, health, signals, at_once, alongside, reporter, late, _ports } = self;
        let stop = health.stop.clone();
        let second = CancellationToken::new();
        let _signals = AbortOnDropHandle::new(tokio::spawn(heed(signals, stop.clone(), second.clone(), at_once)));
        // A fleet that was killed must leave no replica behind.
        let _fleet = reporter.clone().map(|reporter| {
            let stop = stop.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                reporter.gone().await;
                if !stop.is_cancelled() {
                    tracing::error!("whoever read the report of LEASEHOLD_REPORT is gone: stopping");
                    stop.cancel();
                }
            }))
        });
        let beside = CancellationToken::new();
        let beside_tasks: Vec<_> =
            alongside.into_iter().map(|task| AbortOnDropHandle::new(tokio::spawn(task(beside.clone())))).collect();

        let mut chain: Vec<Arc<dyn DynLeaderAware>> = vec![Arc::new(ctx.leadership().clone())];
        chain.extend(adapter.aware(&ctx));
        chain.push(Arc::new(late.clone()));
        let mut election = AbortOnDropHandle::new(tokio::spawn(elector.run(Arc::new(Chain::new(chain)), stop.clone())));
        let mut start = AbortOnDropHandle::new(tokio::spawn({
            let ctx = ctx.clone();
            async move { adapter.start(ctx).await }
        }));

        let whole = async {
            let (mut done, mut ended) = (None, false);
            while !stop.is_cancelled() {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    result = &mut start => {
                        tracing::info!("the adapter is done: stopping");
                        stop.cancel();
                        done = Some(result);
                    }
                    died = &mut election, if !ended => {
                        ended = true;
                        if !stop.is_cancelled() {
                            health.election_died.store(true, Ordering::Release);
                            let panic = died.err().map(|e| e.to_string());
                            tracing::error!(panic, "the election task has ended without being told to: /healthz fails now");
                        }
                    }
                }
            }
            let patience = health.config.borrow().drain_timeout;
            let grace = tokio::time::sleep(patience);
            let elected = async {
                if !ended && let Err(e) = election.await {
                    tracing::error!(panic = %e, "the election task did not end in good order");
                }
            };
            let started = match done {
                Some(result) => {
                    elected.await;
                    Some(result)
                }
                None => finish(&mut start, elected, grace, &ctx).await,
            };
            match started {
                None | Some(Ok(Ok(()))) => Ok(()),
                Some(Ok(Err(error))) => Err(RunError::Adapter(error)),
                Some(Err(join)) if join.is_cancelled() => Ok(()),
                Some(Err(join)) => Err(RunError::Panicked(panic_text(join))),
            }
        };
        let result = tokio::select! {
            biased;
            () = second.cancelled() => return Err(RunError::SecondSignal),
            result = whole => result,
        };
        beside.cancel();
        let _ = tokio::time::timeout(ALONGSIDE_PATIENCE, futures::future::join_all(beside_tasks)).await;
        late.clear();
        if let Some(reporter) = reporter {
            reporter.finish().await;
        }
        tracing::info!("stopped");
        result
    }
}

/// Waits for the end of the election, and for the adapter's as long as that may take. None: it had not ended.
async fn finish<T>(
    start: &mut AbortOnDropHandle<T>,
    elected: impl Future<Output = ()>,
    grace: impl Future<Output = ()>,
    ctx: &Context,
) -> Option<Result<T, JoinError>> {
    tokio::pin!(elected);
    tokio::select! {
        biased;
        ended = &mut *start => {
            // The terms are still to be given up.
            elected.await;
            return Some(ended);
        }
        () = &mut elected => {}
    }
    if !ctx.listens() && !start.is_finished() {
        return None;
    }
    tokio::select! {
        biased;
        ended = &mut *start => Some(ended),
        () = grace => {
            tracing::warn!("the adapter did not return within drain-timeout of the stop: it is dropped");
            None
        }
    }
}

/// The first signal stops, the second ends at once.
async fn heed(mut signals: Signals, stop: Stop, second: CancellationToken, at_once: Arc<dyn Fn() + Send + Sync>) {
    let mut heard = 0;
    while let Some(signal) = signals.next().await {
        heard += 1;
        if heard == 1 {
            tracing::info!(?signal, "stopping");
            stop.cancel();
        } else {
            tracing::error!(?signal, "a second signal: ending at once");
            at_once();
            second.cancel();
        }
    }
}

fn panic_text(join: JoinError) -> String {
    let Ok(panic) = join.try_into_panic() else { return "cancelled".to_owned() };
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
