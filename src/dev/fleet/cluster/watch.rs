//! The fleet's own watch of Leases: when a record was last renewed, whatever the replicas say.

use super::OwnRequests;
use crate::clock::Clock;
use crate::dev::fleet::judge::Seen;
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use std::collections::HashSet;
use std::time::Duration;

/// A watch is begun anew after so many seconds, so that a dead connection is noticed.
const TURN: u32 = 60;
/// Nothing at all for this long, although the turn should have ended: the connection is dead.
const DEAD: Duration = Duration::from_secs(75);
/// A server that has not begun to answer by now does not.
const ANSWER: Duration = Duration::from_secs(10);
/// Before asking again after a failure.
const BACK_OFF: Duration = Duration::from_millis(200);

/// Shows every change of a Lease in the namespace to `seen`, for ever.
///
/// Runs on through any failure of the server: each is logged, and answered with a list. Cancel-safe.
pub async fn watch_leases(
    client: kube::Client,
    namespace: &str,
    clock: &dyn Clock,
    own: &OwnRequests,
    mut seen: impl FnMut(Seen) + Send,
) {
    let api = Api::<Lease>::namespaced(client, namespace);
    let mut known = HashSet::new();
    let mut from: Option<String> = None;
    loop {
        let version = match from.take() {
            Some(version) => version,
            None => match list(&api, clock, own, &mut known, &mut seen).await {
                Ok(version) => version,
                Err(why) => {
                    tracing::warn!("the fleet's own list of Leases failed, asking again: {why}");
                    tokio::time::sleep(BACK_OFF).await;
                    continue;
                }
            },
        };
        from = watch(&api, version, clock, own, &mut known, &mut seen).await;
        if from.is_none() {
            tokio::time::sleep(BACK_OFF).await;
        }
    }
}

/// Shows what is there, and what is not there any more; the revision from which to watch.
async fn list(
    api: &Api<Lease>,
    clock: &dyn Clock,
    own: &OwnRequests,
    known: &mut HashSet<String>,
    seen: &mut (impl FnMut(Seen) + Send),
) -> Result<String, String> {
    own.list();
    let list = answer(api.list(&ListParams::default())).await?;
    let at = clock.now();
    let mut gone = std::mem::take(known);
    for lease in &list.items {
        gone.remove(&lease.name_any());
        known.insert(lease.name_any());
        seen(Seen { at, ..record(lease) });
    }
    for name in gone {
        seen(Seen { name, at, ..Seen::default() });
    }
    Ok(list.metadata.resource_version.unwrap_or_default())
}

/// Watches until the turn is over; the revision from which to go on, or none where only a list helps.
async fn watch(
    api: &Api<Lease>,
    mut version: String,
    clock: &dyn Clock,
    own: &OwnRequests,
    known: &mut HashSet<String>,
    seen: &mut (impl FnMut(Seen) + Send),
) -> Option<String> {
    let params = WatchParams { bookmarks: true, ..WatchParams::default() }.timeout(TURN);
    own.watch_begun();
    let _ended = counted_at_end(own);
    let stream = match answer(api.watch(&params, &version)).await {
        Ok(stream) => stream,
        Err(why) => {
            tracing::warn!("the fleet's own watch of Leases failed, listing anew: {why}");
            return None;
        }
    };
    futures::pin_mut!(stream);
    loop {
        let Ok(next) = tokio::time::timeout(DEAD, stream.next()).await else {
            tracing::warn!("the fleet's own watch of Leases was silent for {DEAD:?}, listing anew");
            return None;
        };
        let at = clock.now();
        match next {
            None => return Some(version),
            Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => {
                version = lease.resource_version().unwrap_or(version);
                known.insert(lease.name_any());
                seen(Seen { at, ..record(&lease) });
            }
            Some(Ok(WatchEvent::Deleted(lease))) => {
                version = lease.resource_version().unwrap_or(version);
                known.remove(&lease.name_any());
                seen(Seen { name: lease.name_any(), at, ..Seen::default() });
            }
            Some(Ok(WatchEvent::Bookmark(mark))) => version = mark.metadata.resource_version,
            Some(Ok(WatchEvent::Error(status))) => {
                tracing::warn!("the fleet's own watch of Leases ended, listing anew: {}", status.message);
                return None;
            }
            Some(Err(e)) => {
                tracing::warn!("the fleet's own watch of Leases broke, listing anew: {e}");
                return None;
            }
        }
    }
}

/// Waits for an answer, but not for ever.
async fn answer<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match tokio::time::timeout(ANSWER, request).await {
        Ok(answer) => answer.map_err(|e| e.to_string()),
        Err(_) => Err(format!("no answer within {ANSWER:?}")),
    }
}

/// Counts the end of a watch whichever way it ends, a cancellation included.
fn counted_at_end(own: &OwnRequests) -> impl Drop + '_ {
    struct Ended<'a>(&'a OwnRequests);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.watch_ended();
        }
    }
    Ended(own)
}

fn record(lease: &Lease) -> Seen {
    let spec = lease.spec.clone().unwrap_or_default();
    Seen {
        name: lease.name_any(),
        holder: spec.holder_identity,
        renewed: spec.renew_time.map(|t| t.0.as_microsecond()),
        acquired: spec.acquire_time.map(|t| t.0.as_microsecond()),
        seconds: spec.lease_duration_seconds,
        ..Seen::default()
    }
}
