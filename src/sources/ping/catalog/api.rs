//! PingSources from the API.

use super::Keeper;
use crate::sources::ping::source::PingSource;
use futures::{StreamExt, pin_mut};
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};

/// So many changes are taken together where they come at once.
const TOGETHER: usize = 1024;

impl Keeper {
    /// Follows the API. What is wrong with it is said once, and tried again for ever; ends never.
    pub(in crate::sources::ping) async fn watch(mut self, api: Api<PingSource>) {
        let events = watcher(api, watcher::Config::default()).default_backoff().ready_chunks(TOGETHER);
        pin_mut!(events);
        // None: no list is under way.
        let mut listing: Option<Vec<PingSource>> = None;
        let mut said: Option<String> = None;
        while let Some(events) = events.next().await {
            let mut changed = false;
            for event in events {
                let event = match event {
                    Ok(event) => event,
                    Err(e) => {
                        let why = e.to_string();
                        if said.as_ref() != Some(&why) {
                            tracing::warn!(%why, "PingSources can't be watched: the last ones stay in force; tried again");
                        }
                        said = Some(why);
                        continue;
                    }
                };
                match event {
                    Event::Init => listing = Some(Vec::new()),
                    Event::InitApply(source) => listing.get_or_insert_default().push(source),
                    Event::InitDone => {
                        self.replace(listing.take().unwrap_or_default());
                        changed = true;
                    }
                    Event::Apply(source) => {
                        self.put(source);
                        changed = true;
                    }
                    Event::Delete(source) => {
                        self.remove(&source.key());
                        changed = true;
                    }
                }
                if changed && said.take().is_some() {
                    tracing::info!("PingSources are watched again");
                }
            }
            if changed {
                self.publish();
            }
        }
    }
}
