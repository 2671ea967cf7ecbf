//! Requests for Leases, each under a bound of its own.
//!
//! # Guarantees
//! - No retry below this: one call is one request. A failure says whether the write may have happened (rule S5).
//! - A request that is not answered within its bound gets the next one a fresh connection: a black-holed connection
//!   costs one attempt.
//! - Reads are from quorum: no resourceVersion is ever given to a get or a list.

use super::record::Record;
use super::write::Draft;
use crate::clock::SharedClock;
use crate::leader::BoxError;
use crate::leader::observe::{Event, SharedObserver};
use arc_swap::ArcSwap;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions, WatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Status, WatchEvent};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a replica has to be allowed, for messages.
pub(crate) const GRANTS: &str = "get, list, watch, create and update on leases.coordination.k8s.io in this namespace";

/// Makes a Kubernetes client with connections of its own, without retries and without a shared rate limit.
pub trait Connect: Send + Sync + 'static {
    /// A client that shares no connection with any made before.
    ///
    /// # Errors
    /// What makes it impossible, such as unreadable credentials.
    fn connect(&self) -> Result<kube::Client, BoxError>;
}

impl<F: Fn() -> Result<kube::Client, BoxError> + Send + Sync + 'static> Connect for F {
    fn connect(&self) -> Result<kube::Client, BoxError> {
        self()
    }
}

/// Ready-made [`Connect`]ors.
#[derive(Debug)]
pub struct Connector;

impl Connector {
    /// Clients for a kube configuration. Its `default_retry` is switched off: kube's hides a 429 for minutes.
    pub fn config(mut config: kube::Config) -> Arc<dyn Connect> {
        config.default_retry = false;
        config.connect_timeout =
            Some(config.connect_timeout.unwrap_or(Duration::from_secs(5)).min(Duration::from_secs(5)));
        Arc::new(move || kube::Client::try_from(config.clone()).map_err(BoxError::from))
    }

    /// One client for all, for services in memory that have no connections.
    pub fn client(client: kube::Client) -> Arc<dyn Connect> {
        Arc::new(move || Ok(client.clone()))
    }
}

/// Why a request brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// 409. It may hide a success of the same write, where something below retried it (rule S5).
    #[error("conflict: {0}")]
    Conflict(String),
    /// 404.
    #[error("not found")]
    NotFound,
    /// 401 or 403.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// 429: not carried out.
    #[error("the API server is throttling: again in {0:?}")]
    Throttled(Duration),
    /// 410: the resourceVersion is too old.
    #[error("gone: {0}")]
    Gone(String),
    /// Another 4xx: refused, and will be again.
    #[error("refused with {code}: {message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// What the server said.
        message: String,
    },
    /// Not answered, or a 5xx: a write may have happened, or may happen later.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// Not answered within the bound of the attempt: as [`Failure::Unknown`].
    #[error("not answered within {0:?}")]
    TimedOut(Duration),
}

impl Failure {
    /// The name in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::NotFound => "not_found",
            Self::Forbidden(_) => "forbidden",
            Self::Throttled(_) => "throttled",
            Self::Gone(_) => "gone",
            Self::Refused { .. } => "refused",
            Self::Unknown(_) => "error",
            Self::TimedOut(_) => "timeout",
        }
    }

    pub(super) fn of_status(s: &Status) -> Self {
        let message = || s.message.clone();
        match s.code {
            409 => Self::Conflict(message()),
            404 => Self::NotFound,
            401 => Self::Forbidden(format!("this replica's credentials are not accepted (401 {})", s.message)),
            403 => Self::Forbidden(message()),
            410 => Self::Gone(message()),
            429 => {
                let after = s.details.as_ref().map_or(0, |d| d.retry_after_seconds).max(1);
                Self::Throttled(Duration::from_secs(u64::from(after)))
            }
            code @ 400..=499 => Self::Refused { code, message: message() },
            code => Self::Unknown(format!("{code} {}", s.message)),
        }
    }

    pub(super) fn of(e: kube::Error) -> Self {
        match e {
            kube::Error::Api(status) => Self::of_status(&status),
            other => Self::Unknown(chain(&other)),
        }
    }
}

/// An error with its causes, since kube's own texts leave them out.
fn chain(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(c) = cause {
        let c_text = c.to_string();
        if !text.contains(&c_text) {
            text.push_str(": ");
            text.push_str(&c_text);
        }
        cause = c.source();
    }
    text
}

struct Connection {
    number: u64,
    api: Api<DynamicObject>,
}

struct Inner {
    connect: Arc<dyn Connect>,
    namespace: String,
    now: ArcSwap<Connection>,
    clock: SharedClock,
    observer: SharedObserver,
    /// The highest revision seen in any answer.
    high: AtomicU64,
    /// How often that was forgotten: an answer to what was asked before says nothing of the revisions after.
    restarts: AtomicU64,
}

/// The Leases of one namespace.
#[derive(Clone)]
pub struct LeaseClient(Arc<Inner>);

impl fmt::Debug for LeaseClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseClient").field("namespace", &self.0.namespace).finish_non_exhaustive()
    }
}

fn api(client: kube::Client, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    Api::namespaced_with(client, namespace, &ApiResource::from_gvk_with_plural(&gvk, "leases"))
}

/// Events of a watch.
pub(super) type Watched = BoxStream<'static, Result<WatchEvent<DynamicObject>, Failure>>;

impl LeaseClient {
    /// A client for the Leases of `namespace`.
    ///
    /// # Errors
    /// What `connect` says.
    pub fn new(
        connect: Arc<dyn Connect>,
        namespace: &str,
        clock: SharedClock,
        observer: SharedObserver,
    ) -> Result<Self, BoxError> {
        let first = Connection { number: 0, api: api(connect.connect()?, namespace) };
        Ok(Self(Arc::new(Inner {
            connect,
            namespace: namespace.to_owned(),
            now: ArcSwap::from_pointee(first),
            clock,
            observer,
            high: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
        })))
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// The highest revision seen in any answer.
    pub fn high(&self) -> u64 {
        self.0.high.load(Ordering::Acquire)
    }

    /// Forgets the highest revision: the cluster's has gone back.
    pub(super) fn start_over(&self, revision: u64) {
        self.0.restarts.fetch_add(1, Ordering::AcqRel);
        self.0.high.store(revision, Ordering::Release);
    }

    fn restarts(&self) -> u64 {
        self.0.restarts.load(Ordering::Acquire)
    }

    pub(super) fn saw(&self, revision: u64) {
        self.0.high.fetch_max(revision, Ordering::AcqRel);
    }

    /// Replaces connection `stale`, unless somebody has.
    pub(super) fn reconnect(&self, stale: u64) {
        let now = self.0.now.load();
        if now.number != stale {
            return;
        }
        match self.0.connect.connect() {
            Ok(client) => {
                let fresh = Connection { number: stale + 1, api: api(client, &self.0.namespace) };
                self.0.now.compare_and_swap(&now, Arc::new(fresh));
            }
            Err(e) => {
                tracing::warn!(error = %e, "no fresh connection to the API server could be made; the old one is kept");
            }
        }
    }

    pub(super) fn connection(&self) -> u64 {
        self.0.now.load().number
    }

    async fn call<T, F, Fut>(&self, verb: &'static str, bound: Duration, request: F) -> Result<T, Failure>
    where
        F: FnOnce(Api<DynamicObject>) -> Fut,
        Fut: Future<Output = Result<T, kube::Error>>,
    {
        let began = self.0.clock.now();
        let connection = self.0.now.load_full();
        let result = match tokio::time::timeout(bound, request(connection.api.clone())).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(e)) => Err(Failure::of(e)),
            Err(_) => {
                self.reconnect(connection.number);
                Err(Failure::TimedOut(bound))
            }
        };
        let outcome = result.as_ref().map_or_else(Failure::as_str, |_| "ok");
        self.0.observer.observe(&Event::Request { verb, outcome, took: self.0.clock.now().since(began) });
        result
    }

    /// Reads an answer to what was asked after so many restarts.
    fn read(&self, object: DynamicObject, restarts: u64) -> Record {
        let record = Record::of(object);
        if restarts == self.restarts() {
            self.saw(record.revision);
        }
        record
    }

    /// The Lease called `name`, from quorum; None where there is none.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn get(&self, name: &str, bound: Duration) -> Result<Option<Record>, Failure> {
        let restarts = self.restarts();
        match self.call("get", bound, |api| async move { api.get(name).await }).await {
            Ok(object) => Ok(Some(self.read(object, restarts))),
            Err(Failure::NotFound) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// All Leases of the namespace, from quorum, in one page of one revision.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn list(&self, bound: Duration) -> Result<(u64, Vec<Record>), Failure> {
        let list = self.call("list", bound, |api| async move { api.list(&ListParams::default()).await }).await?;
        let revision = list.metadata.resource_version.as_deref().and_then(|v| v.parse().ok()).unwrap_or(0);
        Ok((revision, list.items.into_iter().map(Record::of).collect()))
    }

    /// Makes a Lease.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn create(&self, draft: &Draft, bound: Duration) -> Result<Record, Failure> {
        let object = &draft.object;
        let restarts = self.restarts();
        let made =
            self.call("create", bound, |api| async move { api.create(&PostParams::default(), object).await }).await?;
        Ok(self.read(made, restarts))
    }

    /// Writes a Lease on the uid and resourceVersion in the draft.
    ///
    /// # Errors
    /// See [`Failure`]. An answer that left the resourceVersion as it was is [`Failure::Unknown`]: it changed nothing,
    /// so it proves nothing (rule S2).
    pub async fn replace(&self, draft: &Draft, bound: Duration) -> Result<Record, Failure> {
        let object = &draft.object;
        let name = object.metadata.name.clone().unwrap_or_default();
        let restarts = self.restarts();
        let put = self
            .call("update", bound, |api| async move { api.replace(&name, &PostParams::default(), object).await })
            .await?;
        let unchanged = put.metadata.resource_version == object.metadata.resource_version;
        let record = self.read(put, restarts);
        if unchanged {
            return Err(Failure::Unknown("the write left the resourceVersion as it was".to_owned()));
        }
        Ok(record)
    }

    /// Deletes a Lease, at the uid and resourceVersion of `record` only.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn delete(&self, record: &Record, bound: Duration) -> Result<(), Failure> {
        let on = Preconditions { uid: Some(record.uid.clone()), resource_version: Some(record.revision.to_string()) };
        let params = DeleteParams { preconditions: Some(on), ..DeleteParams::default() };
        let name = &record.name;
        self.call("delete", bound, |api| async move { api.delete(name, &params).await }).await?;
        Ok(())
    }

    /// Events after `revision`, bookmarks among them.
    pub(super) async fn watch(&self, revision: u64, bound: Duration) -> Result<Watched, Failure> {
        let version = revision.to_string();
        let stream = self
            .call("watch", bound, |api| async move {
                let params = WatchParams::default();
                Ok(api.watch(&params, &version).await?.boxed())
            })
            .await?;
        Ok(stream.map_err(Failure::of).boxed())
    }
}
