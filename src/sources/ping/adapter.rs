//! `leasehold ping`: fires the events of PingSources on their schedules, each from the replica that holds its bucket.

use super::catalog::Keeper;
use super::source::PingSource;
use super::ticker::{self, Bounds};
use crate::adapter::{Adapter, Context};
use crate::clock::{Boottime, SharedClock};
use crate::leader::BoxError;
use kube::Api;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The component, as Knative names it (`cmd/mtping/main.go`).
pub const COMPONENT: &str = "pingsource-mt-adapter";
/// The queue, as Knative's generated reconciler names it: so the Leases are the same.
pub const QUEUE: &str = "knative.dev.eventing.pkg.adapter.mtping.Reconciler";

/// Where PingSources come from.
#[derive(Debug, Clone)]
pub enum From {
    /// A YAML file, followed as it changes.
    File(PathBuf),
    /// The API: those of one namespace, or of all.
    Api {
        /// The namespace; None for all.
        namespace: Option<String>,
    },
}

/// The adapter.
#[derive(Debug, Clone)]
pub struct PingAdapter {
    /// Where PingSources come from.
    pub from: From,
    /// Ticks missed while nobody held their bucket are fired late, if they are no older than this; for as long, but for
    /// half a minute at least, an event is tried that its sink does not take.
    pub catch_up: Duration,
    /// Adds the fencing extensions `leasebucket` and `leaseepoch`.
    pub fence: bool,
}

/// How many ticks of one bucket may be out at one time.
const AT_ONCE: usize = 256;
/// A watch in which nothing comes for so long, no bookmark either (an API server sends one a minute), is begun anew.
const SILENCE: Duration = Duration::from_mins(3);

impl Adapter for PingAdapter {
    async fn start(&self, ctx: Context) -> Result<(), BoxError> {
        let sink = ctx.sink().with_fencing(self.fence || ctx.env().fencing())?;
        let (mut keeper, catalog) = Keeper::new(sink, self.catch_up);
        let clock: SharedClock = Arc::new(Boottime);
        let bounds = Bounds { catch_up: self.catch_up, at_once: AT_ONCE };
        let fire = ctx.per_bucket(move |_, term| {
            let (catalog, clock) = (catalog.clone(), Arc::clone(&clock));
            ticker::run(catalog, term, clock, bounds)
        });
        match &self.from {
            From::File(path) => {
                let text = keeper.read(path).await?;
                tokio::select! {
                    () = fire => {}
                    () = keeper.follow(path.clone(), text) => {}
                }
            }
            From::Api { namespace } => {
                let mut config = crate::adapter::cluster().await?;
                config.read_timeout = Some(SILENCE);
                let client = kube::Client::try_from(config)?;
                let api: Api<PingSource> = match namespace {
                    Some(namespace) => Api::namespaced(client, namespace),
                    None => Api::all(client),
                };
                tokio::select! {
                    () = fire => {}
                    () = keeper.watch(api) => {}
                }
            }
        }
        Ok(())
    }
}
