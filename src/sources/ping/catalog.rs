//! Which PingSources there are, from a file or from the API, ready to fire.
//!
//! # Guarantees
//! - A source that cannot fire (its schedule, its data, its sink) is said once per edit and left out; it keeps none of
//!   the others from firing.
//! - A file that cannot be read any more, and an API that cannot be reached, leave the last sources in force.

use super::event::Ping;
use super::source::PingSource;
use super::ticker::{Catalog, Source};
use crate::adapter::sink::Overrides;
use crate::adapter::{Outcome, Sink};
use crate::leader::Guard;
use crate::manifest;
use futures::future::BoxFuture;
use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::Api;
use kube::runtime::watcher::{self, watcher};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// One PingSource, ready to fire.
#[derive(Debug)]
pub(super) struct Entry {
    key: String,
    made_of: PingSource,
    ping: Ping,
    sink: Sink,
    keep_trying: Duration,
}

impl Entry {
    /// None: it is not to fire now. Err: it can't.
    fn new(source: &PingSource, sink: &Sink, keep_trying: Duration) -> Result<Option<Self>, String> {
        if source.ready() == Some(false) {
            return Ok(None);
        }
        let ping = Ping::new(source, TimeZone::UTC).map_err(|e| e.to_string())?;
        let overrides = Overrides::from_extensions(ping.overrides().clone()).map_err(|e| e.to_string())?;
        // Those of the source come on top of K_CE_OVERRIDES' place, as in Knative: a source has its own or none.
        let mut sink = if overrides.is_empty() {
            sink.clone()
        } else {
            sink.with_overrides(overrides).map_err(|e| e.to_string())?
        };
        if let Some(uri) = source.sink_uri() {
            sink = sink.with_target(uri).map_err(|e| e.to_string())?;
        }
        if sink.target().is_none() {
            return Err("no sink: neither status.sinkUri nor spec.sink.uri nor K_SINK says where to send".to_owned());
        }
        Ok(Some(Self { key: source.key(), made_of: source.clone(), ping, sink, keep_trying }))
    }
}

impl Source for Entry {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.ping.schedule().next(after)
    }

    fn created(&self) -> Option<Timestamp> {
        self.made_of.metadata.creation_timestamp.as_ref().map(|t| t.0)
    }

    fn fire<'a>(&'a self, guard: &'a Guard, at: Timestamp) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let event = self.ping.event(at);
            // A sink that is away for longer than the retries last: tried on for as long as the tick would be caught up.
            let began = tokio::time::Instant::now();
            loop {
                match self.sink.send(guard, event.clone()).await {
                    Outcome::Delivered { .. } => return true,
                    Outcome::Abandoned => return false,
                    Outcome::Refused { why, .. } => {
                        tracing::error!(source = %self.key, scheduled = %at, %why, "the sink refuses the event for good");
                        return true;
                    }
                    Outcome::Exhausted { last, attempts } if began.elapsed() >= self.keep_trying => {
                        tracing::error!(source = %self.key, scheduled = %at, attempts, %last, "the event is lost: the sink was away for too long");
                        return true;
                    }
                    Outcome::Exhausted { .. } => {
                        if guard.run(tokio::time::sleep(Duration::from_secs(1))).await.is_err() {
                            return false;
                        }
                    }
                }
            }
        })
    }
}

/// Keeps a catalog.
pub(super) struct Keeper {
    sink: Sink,
    keep_trying: Duration,
    /// Those that can't fire, as they were when it was said, and why.
    said: Mutex<BTreeMap<String, (PingSource, String)>>,
    /// None until it is known for the first time.
    out: watch::Sender<Option<Arc<Catalog<Entry>>>>,
}

impl Keeper {
    pub(super) fn new(sink: Sink, keep_trying: Duration) -> (Self, watch::Receiver<Option<Arc<Catalog<Entry>>>>) {
        let (out, seen) = watch::channel(None);
        (Self { sink, keep_trying, said: Mutex::default(), out }, seen)
    }

    /// These are all there are.
    fn publish<'a>(&self, sources: impl IntoIterator<Item = &'a PingSource>) {
        let before = self.out.borrow().clone();
        let mut catalog = Catalog::new();
        let mut cannot = BTreeMap::new();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for source in sources {
            let key = source.key();
            // What did not change stays the same entry, so its schedule is not begun anew.
            if let Some(same) = before.as_ref().and_then(|b| b.get(&key)).filter(|e| e.made_of == *source) {
                catalog.insert(key, Arc::clone(same));
                continue;
            }
            match Entry::new(source, &self.sink, self.keep_trying) {
                Ok(Some(entry)) => drop(catalog.insert(key, Arc::new(entry))),
                Ok(None) => tracing::debug!(source = %key, "not ready: it does not fire"),
                Err(why) => {
                    // An edit of another source, or of a status, is no reason to say it again.
                    let news = said.get(&key).is_none_or(|(s, w)| s.spec != source.spec || *w != why);
                    if news {
                        tracing::error!(source = %key, %why, "the PingSource can't fire; the others do");
                    }
                    cannot.insert(key, (source.clone(), why));
                }
            }
        }
        *said = cannot;
        drop(said);
        self.out.send_replace(Some(Arc::new(catalog)));
    }

    /// Reads `path`.
    ///
    /// # Errors
    /// It cannot be read, or is no manifest of PingSources.
    pub(super) async fn read(&self, path: &Path) -> Result<String, String> {
        let text = tokio::fs::read_to_string(path).await.map_err(|e| format!("{}: {e}", path.display()))?;
        self.take(path, &text)?;
        Ok(text)
    }

    fn take(&self, path: &Path, text: &str) -> Result<(), String> {
        let sources: Vec<PingSource> = manifest::objects(text).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut all = BTreeMap::new();
        for source in &sources {
            if all.insert(source.key(), source).is_some() {
                return Err(format!("{}: PingSource {} stands in it twice", path.display(), source.key()));
            }
        }
        self.publish(all.into_values());
        Ok(())
    }

    /// Follows the file, looked at every two seconds.
    pub(super) async fn follow(self, path: PathBuf, mut text: String) {
        let mut said = None;
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let result = match tokio::fs::read_to_string(&path).await {
                Ok(now) if now == text => Ok(()),
                Ok(now) => {
                    let taken = self.take(&path, &now);
                    text = now;
                    taken
                }
                Err(e) => Err(format!("{}: {e}", path.display())),
            };
            if let Err(why) = &result
                && said.as_ref() != Some(why)
            {
                tracing::error!(%why, "the file of PingSources can't be used; the last good ones stay in force");
            }
            said = result.err();
        }
    }

    /// Follows the API.
    pub(super) async fn watch(self, api: Api<PingSource>) {
        let events = watcher(api, watcher::Config::default());
        pin_mut!(events);
        let mut all: BTreeMap<String, PingSource> = BTreeMap::new();
        let mut listing = BTreeMap::new();
        let mut said: Option<String> = None;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listing.clear(),
                Ok(watcher::Event::InitApply(source)) => drop(listing.insert(source.key(), source)),
                Ok(watcher::Event::InitDone) => {
                    all = std::mem::take(&mut listing);
                    self.publish(all.values());
                }
                Ok(watcher::Event::Apply(source)) => {
                    all.insert(source.key(), source);
                    self.publish(all.values());
                }
                Ok(watcher::Event::Delete(source)) => {
                    all.remove(&source.key());
                    self.publish(all.values());
                }
                Err(e) => {
                    let why = e.to_string();
                    if said.as_ref() != Some(&why) {
                        tracing::warn!(%why, "PingSources can't be watched; tried again");
                    }
                    said = Some(why);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            }
            said = None;
        }
    }
}
