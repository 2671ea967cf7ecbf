//! A process of an adapter, put together.

use super::life::Ready;
use super::ports::Ports;
use super::{Adapter, exit_code};
use crate::adapter::env::Env;
use crate::adapter::error::RunError;
use crate::adapter::metrics::Edits;
use crate::adapter::reporter::Reporter;
use crate::adapter::signals::{Signal, Signals};
use crate::clock::{Boottime, SharedClock};
use crate::config::Config;
use crate::elector::{Status, Stop, Strategy};
use crate::leader::fatal::{self, OnFatal};
use crate::leader::observe::{Observers, SharedObserver};
use futures::Stream;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

pub(super) type Alongside = Box<dyn FnOnce(Stop) -> BoxFuture<'static, ()> + Send>;

/// A process of an adapter, to be put together and run. See the module.
#[must_use = "a runtime does nothing until it runs"]
pub struct Runtime {
    pub(super) component: String,
    pub(super) queue: String,
    pub(super) env: Option<Env>,
    pub(super) strategy: Option<Arc<dyn Strategy>>,
    pub(super) config: Option<watch::Receiver<Arc<Config>>>,
    pub(super) clock: SharedClock,
    pub(super) status: Status,
    pub(super) observers: Observers,
    pub(super) on_fatal: OnFatal,
    pub(super) signals: Option<Signals>,
    pub(super) at_once: Arc<dyn Fn() + Send + Sync>,
    pub(super) registry: Registry,
    pub(super) edits: Option<Edits>,
    pub(super) alongside: Vec<Alongside>,
    pub(super) ports: Option<Ports>,
    pub(super) reporter: Option<Reporter>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("component", &self.component)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// Ends the process of which a second signal asks it.
#[allow(
    clippy::disallowed_methods,
    reason = "a second signal asks for no drain and no release; what hangs must not delay it"
)]
fn exit_at_once() {
    std::process::exit(1);
}

impl Runtime {
    /// A runtime for `component`, with one queue named `adapter`.
    pub fn new(component: impl Into<String>) -> Self {
        Self {
            component: component.into(),
            queue: "adapter".to_owned(),
            env: None,
            strategy: None,
            config: None,
            clock: Arc::new(Boottime),
            status: Status::default(),
            observers: Observers::default(),
            on_fatal: fatal::exits(),
            signals: None,
            at_once: Arc::new(exit_at_once),
            registry: Registry::default(),
            edits: None,
            alongside: Vec::new(),
            ports: None,
            reporter: None,
        }
    }

    /// Another name for the queue; it is a part of the Leases' names.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queue = name.into();
        self
    }

    /// The environment, instead of the process's own.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Who decides which replica holds what. Required.
    pub fn strategy(mut self, strategy: Arc<dyn Strategy>) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// The configuration as it changes. Required.
    pub fn config(mut self, config: watch::Receiver<Arc<Config>>) -> Self {
        self.config = Some(config);
        self
    }

    /// The clock that decides, instead of the machine's.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// The table of sentences that `/readyz?verbose` shows, to be written to from elsewhere too.
    pub fn status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// One more listener to the election.
    pub fn observer(mut self, observer: SharedObserver) -> Self {
        self.observers.push(observer);
        self
    }

    /// What happens when something cannot be stopped, instead of the end of the process.
    pub fn on_fatal(mut self, on_fatal: OnFatal) -> Self {
        self.on_fatal = on_fatal;
        self
    }

    /// Where wishes to end come from, instead of SIGTERM and SIGINT.
    pub fn signals(mut self, signals: impl Stream<Item = Signal> + Send + 'static) -> Self {
        self.signals = Some(Box::pin(signals));
        self
    }

    /// What a second signal does, instead of ending the process; if it returns, so does the run, at once.
    pub fn at_once(mut self, at_once: Arc<dyn Fn() + Send + Sync>) -> Self {
        self.at_once = at_once;
        self
    }

    /// The metrics of the program itself, to be served with the runtime's.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Tells how many edits of the configuration were applied and refused; asked at each scrape.
    pub fn edits(mut self, edits: Edits) -> Self {
        self.edits = Some(edits);
        self
    }

    /// A task beside the election, such as the watching of the configuration. It is told to stop after the election has
    /// ended, and given 5 s.
    pub fn alongside<F>(mut self, task: impl FnOnce(Stop) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.alongside.push(Box::new(|stop| Box::pin(task(stop))));
        self
    }

    /// Binds the ports of the environment that was given: from now on the probes say that it starts. And finds the reader of
    /// its report, without whom it is not to start.
    pub(super) async fn listen(mut self) -> Result<Self, RunError> {
        if let Some(env) = &self.env {
            self.ports = Some(Ports::bind(env, &self.component, self.status.clone()).await?);
            self.reporter = connect(env, &self.clock).await?;
        }
        Ok(self)
    }

    /// The table of sentences of the readiness page.
    pub(in crate::adapter) fn shown(&self) -> &Status {
        &self.status
    }

    /// There is no configuration yet: said on the readiness page, and counted.
    pub(in crate::adapter) fn no_configuration(&self, why: &dyn std::fmt::Display) {
        self.status.say("configuration", format!("none yet: {why}; tried again"));
        if let Some(ports) = &self.ports {
            ports.failed();
        }
    }

    /// The component's name.
    pub fn component(&self) -> &str {
        &self.component
    }

    /// The environment that was given.
    pub fn environment(&self) -> Option<&Env> {
        self.env.as_ref()
    }

    /// Runs `adapter` until it is done or told to stop; the answer is for `main` to return. See the module for the codes.
    pub async fn run<A: Adapter>(self, adapter: A) -> ExitCode {
        let component = self.component.clone();
        exit_code(&component, self.try_run(adapter).await)
    }

    /// As [`Runtime::run`], with the reason.
    ///
    /// Dropping the future ends all terms as lost, at once.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn try_run<A: Adapter>(self, adapter: A) -> Result<(), RunError> {
        Ready::prepare(self).await?.live(Arc::new(adapter)).await
    }
}

/// To the socket of LEASEHOLD_REPORT, if there is one.
pub(super) async fn connect(env: &Env, clock: &SharedClock) -> Result<Option<Reporter>, RunError> {
    let Some(socket) = env.report() else { return Ok(None) };
    let connected = Reporter::connect(socket, clock.clone()).await;
    Ok(Some(connected.map_err(|source| RunError::Report { socket: socket.clone(), source })?))
}
