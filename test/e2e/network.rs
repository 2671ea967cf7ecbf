//! The way to the server breaks, is slow, or swallows everything; and the server forgets what a watch would resume from.

use crate::fleet::{Fleet, Replica, SLACK, Timing};
use crate::harness::{Verdict, World};
use crate::plain;
use crate::rbac::hands_over;
use crate::server::Server;
use crate::space::{Space, until};
use leasehold::clock::{Boottime, Clock};
use serde_json::Value;
use std::time::Duration;

const T: Timing = Timing::ROOMY;
const BUCKETS: usize = 4;

async fn two_replicas(server: &Server, name: &str) -> Fleet {
    let mut fleet = Fleet::new(Space::new(server, name).await, BUCKETS, T).await;
    for number in [fleet.launch().await, fleet.launch().await] {
        fleet.started(number).await;
    }
    fleet.all_acted_on(&[0, 1], SLACK).await;
    fleet
}

/// How many watches were begun, and how many lists were asked for.
async fn watches_and_lists(replica: &Replica) -> (f64, f64) {
    (replica.requests("watch").await, replica.requests("list").await)
}

/// Every connection is cut, again and again: the watch goes on from its last revision, and no term is lost.
pub(crate) async fn cut(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "cut").await;
    for _ in 0..3 {
        for replica in &fleet.replicas {
            let (watches, lists) = watches_and_lists(replica).await;
            replica.proxy.cut();
            until("a watch is begun anew", SLACK, async || replica.requests("watch").await > watches).await;
            until("it stands", SLACK, async || replica.says("watch").await.is_none()).await;
            assert_eq!(
                watches_and_lists(replica).await.1,
                lists,
                "it resumes, and does not list:\n{}",
                replica.written()
            );
        }
        fleet.renewed_for(T.retry).await;
    }
    fleet.assert_nothing_lost().await;
    hands_over(&fleet).await;
    fleet.close().await;
    Ok(())
}

/// 150 ms longer each way, for each piece of a TLS handshake too: renewals are in time.
pub(crate) async fn delay(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "delay").await;
    for replica in &fleet.replicas {
        replica.proxy.delay(Duration::from_millis(150));
    }
    fleet.renewed_for(T.lease).await;
    for replica in &fleet.replicas {
        replica.proxy.cut();
    }
    fleet.renewed_for(T.lease).await;
    fleet.assert_nothing_lost().await;
    hands_over(&fleet).await;
    fleet.close().await;
    Ok(())
}

/// A holder in a black hole stops at its deadline; the other takes after the lease, not before; nobody acts beside anybody.
pub(crate) async fn black_hole(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "hole").await;
    // Each has seen a renewal of the other's.
    fleet.renewed_for(T.retry).await;
    let holed = fleet.busiest();
    let held: Vec<usize> = (0..BUCKETS).filter(|&b| fleet.holder(b) == Some(holed)).collect();
    fleet.replicas[holed].proxy.hole(true);
    let from = Boottime.now();
    // What the other counts from at the earliest: a renewal that was under way may land yet.
    let mut expiries = Vec::new();
    for &bucket in &held {
        let name = &fleet.buckets[bucket];
        expiries.push((name, renewed_at(&fleet.lease(name).await.expect("it stands")) + T.lease));
    }
    until("it has stopped", T.renew + SLACK, async || fleet.acting(holed) == 0).await;
    let last = fleet.replicas[holed].log().terms.iter().map(|t| t.until).max().expect("it acted");
    // A line is written after the look at the clock that allowed it; on a busy machine a little after.
    let latest = (from + T.renew + (T.lease - T.renew) / 2).as_nanos();
    assert!(last <= latest, "it acted {:?} after the hole", Duration::from_nanos(last - from.as_nanos()));
    fleet.all_acted_on(&[1 - holed], T.lease + SLACK).await;
    for (name, expiry) in expiries {
        let next = fleet.replicas[1 - holed].log().of(name).map(|t| t.from).next().expect("it acts");
        // A renewTime is of the wall clock, which may be slewed.
        assert!(
            next + 5_000_000 >= expiry.as_nanos(),
            "taken {:?} early",
            Duration::from_nanos(expiry.as_nanos() - next)
        );
    }
    // Back again: what it sees is another's.
    fleet.replicas[holed].proxy.hole(false);
    until("it sees again", SLACK, async || fleet.replicas[holed].says("watch").await.is_none()).await;
    fleet.renewed_for(T.retry).await;
    assert_eq!(fleet.acting(holed), 0, "it acts on what another holds");
    hands_over(&fleet).await;
    fleet.close().await;
    Ok(())
}

/// A Lease's renewTime on the clock of this machine's processes.
fn renewed_at(lease: &Value) -> leasehold::clock::Instant {
    let renewed: jiff::Timestamp = lease["spec"]["renewTime"].as_str().expect("a renewTime").parse().expect("a time");
    // The two clocks are not read at once: of some tries the closest.
    let tries = (0..20).map(|_| {
        let (before, wall, after) = (Boottime.now(), Boottime.wall(), Boottime.now());
        (after.since(before), before - Duration::try_from(wall.duration_since(renewed)).unwrap_or_default())
    });
    tries.min_by_key(|(apart, _)| *apart).expect("some").1
}

/// etcd forgets all revisions but the last.
async fn compact(server: &Server) {
    let etcd = server.etcd();
    let (code, answer) =
        plain::request(&etcd, "POST", "/v3/kv/range", r#"{"key":"YQ=="}"#).await.expect("etcd answers");
    assert_eq!(code, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let revision = answer["header"]["revision"].as_str().expect("a revision").to_owned();
    let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
    let (code, answer) = plain::request(&etcd, "POST", "/v3/kv/compaction", &body).await.expect("etcd answers");
    assert_eq!(code, 200, "{answer}");
}

/// While the watch of `replica` is cut off, there is news, and etcd is compacted: its watch is too old to be resumed.
pub(crate) async fn compacted_under(server: &Server, fleet: &Fleet, replica: usize) {
    let proxy = &fleet.replicas[replica].proxy;
    proxy.hole(true);
    proxy.cut();
    for edit in ["1", "2", "3"] {
        let lease = crate::leases::body("news", serde_json::json!({ "holderIdentity": edit }));
        let (code, answer) = match fleet.lease("news").await {
            None => fleet.request("POST", &fleet.leases(""), Some(&lease)).await,
            Some(mut stands) => {
                stands["spec"]["holderIdentity"] = serde_json::json!(edit);
                fleet.request("PUT", &fleet.leases("news"), Some(&stands)).await
            }
        };
        assert!(matches!(code, 200 | 201), "{answer}");
    }
    compact(server).await;
    proxy.hole(false);
}

/// The resumed watch is told that its revision is gone: the replica lists again and goes on. No term is lost, since renewals go
/// on.
pub(crate) async fn compaction(world: World) -> Verdict {
    let server = world.uncached().await?;
    let fleet = two_replicas(server, "compaction").await;
    let blind = fleet.busiest();
    let (watches, lists) = watches_and_lists(&fleet.replicas[blind]).await;
    compacted_under(server, &fleet, blind).await;
    let replica = &fleet.replicas[blind];
    until("it lists again", SLACK, async || replica.requests("list").await > lists).await;
    until("it sees again", SLACK, async || replica.says("watch").await.is_none()).await;
    fleet.renewed_for(T.lease).await;
    let (watched, listed) = watches_and_lists(replica).await;
    assert!(
        listed - lists <= 2.0 && watched - watches <= 6.0,
        "{listed} lists, {watched} watches:\n{}",
        replica.written()
    );
    fleet.assert_nothing_lost().await;
    hands_over(&fleet).await;
    fleet.close().await;
    Ok(())
}
