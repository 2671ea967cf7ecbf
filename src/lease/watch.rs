//! The loop that keeps the one watched view of a namespace's Leases.
//!
//! # Guarantees
//! - One watch, in order, begun by a list from quorum. One that ends resumes at once from the last revision; 410, as an
//!   answer or as an event, lists anew.
//! - A watch that shows no life (no event, no bookmark) for [`Bounds::idle`] is replaced on a fresh connection.
//! - A list that is older than what was seen before it was sent means a restored etcd: the view is dropped and everybody
//!   is told ([`Seen::WentBack`]).

use super::client::{Failure, LeaseClient};
use super::manager::{Seen, View};
use super::record::Record;
use backon::BackoffBuilder;
use futures::StreamExt;
use kube::core::WatchEvent;
use std::sync::Arc;
use std::time::Duration;

/// How long the loop waits for what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// For an answer to a list, or to the opening of a watch.
    pub(super) answer: Duration,
    /// For any sign of life of an open watch.
    pub(super) idle: Duration,
    /// The longest pause before the watch is resumed.
    pub(super) pause: Duration,
    /// Between tries while the API refuses us: nothing changes until somebody grants it.
    pub(super) refused: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            pause: Duration::from_secs(1),
            refused: Duration::from_secs(5),
        }
    }
}

/// Why a watch ended.
enum End {
    /// Go on from the last revision.
    Resume,
    /// List anew, after a pause.
    List,
    /// List at once: somebody misses something.
    Wanted,
}

pub(super) async fn run(client: LeaseClient, view: Arc<View>, bounds: Bounds) {
    let mut pauses = Pauses::new(bounds);
    loop {
        let sent = client.high();
        match client.list(bounds.answer).await {
            Ok((revision, records)) => {
                view.clear_trouble();
                if revision < sent {
                    client.start_over(revision);
                    view.tell(&Seen::WentBack { from: sent, to: revision });
                }
                client.saw(revision);
                view.listed(revision, records);
            }
            Err(failure) => {
                view.trouble("list", &failure);
                pauses.wait(&failure).await;
                continue;
            }
        }
        let end = loop {
            match watch_once(&client, &view, bounds, &mut pauses).await {
                End::Resume => {}
                end => break end,
            }
        };
        if matches!(end, End::List) {
            // A server that refuses every watch, or ends each with 410, is not listed as fast as it answers: only what
            // a watch has shown ends the back-off.
            pauses.wait(&Failure::Unknown("to be listed".to_owned())).await;
        }
    }
}

async fn watch_once(client: &LeaseClient, view: &View, bounds: Bounds, pauses: &mut Pauses) -> End {
    let connection = client.connection();
    let mut stream = match client.watch(view.revision(), bounds.answer).await {
        Ok(stream) => stream,
        Err(Failure::Gone(_)) => return End::List,
        Err(failure) => {
            view.trouble("watch", &failure);
            // A revision that the server does not know yet (a restored etcd) is refused with a 5xx: only a list tells.
            if matches!(failure, Failure::Unknown(_)) {
                return End::List;
            }
            pauses.wait(&failure).await;
            return End::Resume;
        }
    };
    view.clear_trouble();
    loop {
        let next = tokio::select! {
            biased;
            () = view.relist_wanted() => {
                client.reconnect(connection);
                return End::Wanted;
            }
            next = tokio::time::timeout(bounds.idle, stream.next()) => next,
        };
        match next {
            Ok(Some(Ok(event))) => {
                if !apply(client, view, event) {
                    return End::List;
                }
                pauses.reset();
            }
            Ok(Some(Err(Failure::Gone(_)))) => return End::List,
            Ok(Some(Err(failure))) => {
                view.trouble("watch", &failure);
                pauses.wait(&failure).await;
                return End::Resume;
            }
            // The server ends watches as it likes. One that ends at once, again and again, is not hammered.
            Ok(None) => {
                pauses.wait(&Failure::Unknown("ended".to_owned())).await;
                return End::Resume;
            }
            Err(_) => {
                tracing::warn!(idle = ?bounds.idle, "the watch of the Leases shows no life; it is resumed on a fresh connection");
                client.reconnect(connection);
                return End::Resume;
            }
        }
    }
}

/// False: only a list can tell how things stand.
fn apply(client: &LeaseClient, view: &View, event: WatchEvent<kube::core::DynamicObject>) -> bool {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            let record = Record::of(object);
            client.saw(record.revision);
            view.changed(record)
        }
        WatchEvent::Deleted(object) => {
            let record = Record::of(object);
            client.saw(record.revision);
            view.deleted(record)
        }
        WatchEvent::Bookmark(mark) => match mark.metadata.resource_version.parse::<u64>() {
            Ok(revision) => {
                client.saw(revision);
                view.bookmark(revision)
            }
            Err(_) => true,
        },
        WatchEvent::Error(status) => {
            let failure = Failure::of_status(&status);
            view.trouble("watch", &failure);
            false
        }
    }
}

/// Pauses between tries: the first try after a success waits hardly at all.
struct Pauses {
    bounds: Bounds,
    next: backon::ExponentialBackoff,
}

impl Pauses {
    fn new(bounds: Bounds) -> Self {
        Self { bounds, next: Self::fresh(bounds) }
    }

    fn fresh(bounds: Bounds) -> backon::ExponentialBackoff {
        backon::ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(20).min(bounds.pause))
            .with_max_delay(bounds.pause)
            .with_jitter()
            .without_max_times()
            .build()
    }

    fn reset(&mut self) {
        self.next = Self::fresh(self.bounds);
    }

    async fn wait(&mut self, failure: &Failure) {
        let pause = match failure {
            Failure::Forbidden(_) => self.bounds.refused,
            Failure::Throttled(after) => *after,
            _ => self.next.next().unwrap_or(self.bounds.pause).min(self.bounds.pause),
        };
        tokio::time::sleep(pause).await;
    }
}
