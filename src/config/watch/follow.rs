//! Follows the ConfigMap: each edit is judged by a pure function, and what comes of it is carried out here.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, watch_object};
use tokio_util::sync::CancellationToken;

use super::source::{Data, Place, brief, brief_status, pauses};
use super::status::ConfigWatch;
use crate::config::{Change, Config, ConfigError, Env, Warning};

/// A watch that says nothing for so long is begun anew. The API server ends one after 290 s, and then says nothing
/// either: that a request hangs is not to be told from that nothing changes.
const QUIET: Duration = Duration::from_mins(5);

/// A list that was answered shows nothing of the watch after it. One that has not failed for so long stands.
const PROVEN: Duration = Duration::from_secs(5);

/// The task that keeps a [`ConfigWatch`] up to date.
#[must_use = "without `run` no edit is ever noticed"]
#[derive(Debug)]
pub struct Watching {
    watch: ConfigWatch,
    from: Option<Place>,
    /// The data that was judged last; None: the ConfigMap is not there.
    seen: Option<Data>,
}

/// What comes of an edit.
#[derive(Debug, PartialEq)]
struct Verdict {
    config: Option<Config>,
    keys: Vec<&'static str>,
    refusal: Option<String>,
    /// None where the edit could not be read.
    warnings: Option<Vec<Warning>>,
}

/// Judges an edit against what is in force.
fn judge(in_force: &Config, component: &str, data: &Data, env: &Env) -> Verdict {
    let parsed = match Config::from_config_map(Some(data), env) {
        Ok(parsed) => parsed,
        Err(error) => {
            return Verdict { config: None, keys: Vec::new(), refusal: Some(unreadable(&error)), warnings: None };
        }
    };
    let (config, keys, refusal) = match in_force.change(&parsed.config, component) {
        Change::Unchanged => (None, Vec::new(), None),
        Change::Applied { config, keys } => (Some(config), keys, None),
        Change::Refused(refused) => (None, Vec::new(), Some(refused.to_string())),
        Change::Partly { config, keys, refused } => (Some(config), keys, Some(refused.to_string())),
    };
    Verdict { config, keys, refusal, warnings: Some(parsed.warnings) }
}

fn unreadable(error: &ConfigError) -> String {
    format!("{error}; what was in force stays in force")
}

fn reason(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error) => format!("list: {}", brief(error)),
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            format!("watch: {}", brief(error))
        }
        watcher::Error::WatchError(status) => format!("watch: {}", brief_status(status)),
        other @ watcher::Error::NoResourceVersion => other.to_string(),
    }
}

impl Watching {
    /// There is nothing to watch.
    pub(super) fn nothing(watch: ConfigWatch) -> Self {
        Self { watch, from: None, seen: None }
    }

    /// Watches a ConfigMap whose data was `seen`.
    pub(super) fn of(watch: ConfigWatch, place: Place, seen: Option<Data>) -> Self {
        Self { watch, from: Some(place), seen }
    }

    /// Keeps the configuration up to date until `stop`. It can be dropped at any time: no edit is taken half-way.
    pub async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(self.follow()).await;
    }

    async fn follow(&mut self) {
        let Some(place) = self.from.clone() else { return std::future::pending().await };
        let mut backoff = pauses();
        loop {
            // Begun anew after each error: only the list that stands at its beginning shows that all is well again.
            let mut edits = pin!(watch_object(place.api.clone(), &place.name));
            let (mut listed, mut proven) = (false, false);
            let error = loop {
                let patience = if listed && !proven { PROVEN } else { QUIET };
                match tokio::time::timeout(patience, edits.next()).await {
                    Ok(Some(Ok(map))) => {
                        // What comes after the list came by the watch.
                        proven |= listed;
                        listed = true;
                        self.meet(&place, map.map(|map| map.data.unwrap_or_default()));
                    }
                    Ok(Some(Err(error))) => break Some(error),
                    Err(_) if !proven && listed => proven = true,
                    Ok(None) | Err(_) => break None,
                }
                if proven {
                    backoff = pauses();
                    self.watchable(&place);
                }
            };
            if let Some(error) = error {
                self.unwatchable(&place, &reason(&error));
                tokio::time::sleep(backoff.next().unwrap_or(QUIET)).await;
            }
        }
    }

    fn watchable(&self, place: &Place) {
        if self.watch.status().watch_error.is_some() {
            tracing::info!(config_map = %place.origin(), "the ConfigMap can be watched again");
            self.watch.note(|status| status.watch_error = None);
        }
    }

    fn unwatchable(&self, place: &Place, error: &str) {
        // Said once for each reason: an outage of an hour is not a line every half minute.
        if self.watch.status().watch_error.as_deref() != Some(error) {
            tracing::warn!(config_map = %place.origin(), error, "the ConfigMap cannot be watched; what was in force stays");
        }
        self.watch.note(|status| {
            status.watch_error = Some(error.to_owned());
            status.watch_failures += 1;
        });
    }

    /// Takes note of the data as it stands now. What was judged already is not judged again.
    fn meet(&mut self, place: &Place, now: Option<Data>) {
        if now == self.seen {
            return;
        }
        self.seen = now;
        let config_map = place.origin();
        let Some(data) = &self.seen else {
            tracing::warn!(%config_map, "the ConfigMap was deleted; what was in force stays in force until it is made again");
            self.watch.note(|status| {
                status.present = false;
                status.refusal = None;
                status.warnings = Vec::new();
            });
            return;
        };
        let Verdict { config, keys, refusal, warnings } =
            judge(&self.watch.config(), &place.component, data, &place.env);
        if let Some(refusal) = &refusal {
            tracing::warn!(%config_map, %refusal, "an edit was refused");
        }
        for warning in warnings.iter().flatten() {
            tracing::warn!(%config_map, %warning, "configuration without effect");
        }
        let applied = config.is_some();
        if let Some(config) = config {
            tracing::info!(%config_map, ?keys, ?config, "an edit took effect");
            self.watch.put_in_force(config);
        }
        self.watch.note(|status| {
            status.present = true;
            status.generation += u64::from(applied);
            status.applied += u64::from(applied);
            status.refused += u64::from(refusal.is_some());
            status.refusal = refusal;
            status.warnings = warnings.unwrap_or_default();
        });
    }
}
