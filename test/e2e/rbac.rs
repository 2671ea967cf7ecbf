//! Each verb of the documented Role taken away from a fleet that runs, and given back: what stops, where it is said, how fast it
//! is asked again, and that it is as before afterwards.

use crate::fleet::{Fleet, Replica, SLACK, Timing};
use crate::harness::{Verdict, World};
use crate::server::{Server, Skipped};
use crate::space::{Space, until};
use rustix::process::Signal;
use std::time::Duration;

const BUCKETS: usize = 4;
const T: Timing = Timing::SHORT;

async fn two_replicas(server: &Server, name: &str, timing: Timing) -> Result<Fleet, Skipped> {
    let mut fleet = Fleet::new(Space::new(server, name).await, BUCKETS, timing).await;
    for number in [fleet.launch().await, fleet.launch().await] {
        fleet.started(number).await;
    }
    fleet.all_acted_on(&[0, 1], SLACK).await;
    Ok(fleet)
}

/// Where a person looks: a line in the log, once; two metrics; the line `topic` of the readiness page, which stays green.
async fn said(replica: &Replica, verb: &str, topic: &str) {
    let cannot = format!("cannot {verb} resource \\\"leases\\\"");
    let warned = || replica.lines(&["WARN", "cannot ", verb, "leases", "Grant get, list, watch, create and update"]);
    until(&format!("{verb} is said in the log"), SLACK, async || warned() > 0).await;
    let forbidden = [("verb", verb), ("outcome", "forbidden")];
    let counted = async || replica.metric("leasehold_lease_requests_total", &forbidden).await > 0.0;
    until("the requests are counted", SLACK, counted).await;
    let noticed = replica.metric("leasehold_notices_total", &[("code", "forbidden")]).await;
    assert!(noticed >= 1.0, "notices: {noticed}");
    let shown = async || replica.says(topic).await.is_some_and(|line| line.contains(&format!("cannot {verb} ")));
    until(&format!("{verb} is said on the readiness page ({cannot})"), SLACK, shown).await;
    assert_eq!(replica.probe("/readyz").await, (200, "ok\n".to_owned()), "a restart mends nothing");
    assert_eq!(replica.probe("/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(warned(), 1, "said once:\n{}", replica.written());
}

/// At most so many requests in two seconds.
async fn asks_slowly(replica: &Replica, verb: &str, most: f64) {
    let before = replica.requests(verb).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let sent = replica.requests(verb).await - before;
    assert!(sent <= most, "{sent} requests in two seconds");
}

async fn no_longer_said(replica: &Replica, topic: &str) {
    until(&format!("{topic} is no longer said"), SLACK, async || replica.says(topic).await.is_none()).await;
}

/// A read and a write for each bucket in each retry-period (which is jittered down to three quarters), and the layout's.
fn one_try_each(timing: Timing) -> f64 {
    let tries = Duration::from_secs(2).as_secs_f64() / (timing.retry.as_secs_f64() * 0.75);
    2.0 * tries.ceil() * (BUCKETS as f64 + 1.0)
}

pub(crate) async fn update(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "update", T).await?;
    fleet.take_away("update", "leases").await;
    let stopped = async || fleet.acting(0) + fleet.acting(1) == 0;
    until("nothing is renewed, so nobody acts", T.renew + SLACK, stopped).await;
    for replica in &fleet.replicas {
        said(replica, "update", "forbidden").await;
        asks_slowly(replica, "", one_try_each(T)).await;
    }
    fleet.give_back("update", "leases").await;
    fleet.all_acted_on(&[0, 1], T.lease + SLACK).await;
    for replica in &fleet.replicas {
        no_longer_said(replica, "forbidden").await;
    }
    fleet.close().await;
    Ok(())
}

/// A take is judged by a read of the layout Lease: without it no term begins. What is held already needs none.
pub(crate) async fn get(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "get", Timing::ROOMY).await?;
    let gone = fleet.busiest();
    let (stays, had) = (1 - gone, fleet.acting(1 - gone));
    fleet.take_away("get", "leases").await;
    fleet.replicas[gone].end(Signal::TERM).await;
    said(&fleet.replicas[stays], "get", "forbidden").await;
    asks_slowly(&fleet.replicas[stays], "get", one_try_each(Timing::ROOMY)).await;
    assert_eq!(fleet.acting(stays), had, "it goes on with what it had, and acts on no more");
    fleet.give_back("get", "leases").await;
    fleet.all_acted_on(&[stays], Timing::ROOMY.lease + SLACK).await;
    no_longer_said(&fleet.replicas[stays], "forbidden").await;
    fleet.close().await;
    Ok(())
}

/// Needed where a Lease is missing.
pub(crate) async fn create(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "create", Timing::ROOMY).await?;
    fleet.take_away("create", "leases").await;
    let name = fleet.buckets[0].clone();
    let had = fleet.holder(0).expect("held");
    assert_eq!(fleet.request("DELETE", &fleet.leases(&name), None).await.0, 200);
    until("its holder stops", SLACK, async || fleet.holder(0).is_none()).await;
    for replica in &fleet.replicas {
        said(replica, "create", "forbidden").await;
        asks_slowly(replica, "create", one_try_each(Timing::ROOMY)).await;
    }
    assert_eq!(fleet.acting(0) + fleet.acting(1), BUCKETS - 1, "the others are held on");
    assert!(fleet.lease(&name).await.is_none());
    fleet.give_back("create", "leases").await;
    fleet.all_acted_on(&[0, 1], Timing::ROOMY.lease + SLACK).await;
    for replica in &fleet.replicas {
        no_longer_said(replica, "forbidden").await;
    }
    let lost = fleet.replicas[had].metric("leasehold_terms_ended_total", &[("reason", "lost")]).await;
    assert_eq!(lost, 1.0, "the one whose Lease was deleted, and no other");
    fleet.close().await;
    Ok(())
}

/// Needed when a watch is begun: one that stands goes on. Renewals need no watch.
pub(crate) async fn watch(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "watch", Timing::ROOMY).await?;
    fleet.take_away("watch", "leases").await;
    for replica in &fleet.replicas {
        replica.proxy.cut();
        said(replica, "watch", "watch").await;
    }
    for replica in &fleet.replicas {
        asks_slowly(replica, "watch", 2.0).await;
    }
    fleet.renewed_for(Timing::ROOMY.lease).await;
    fleet.assert_nothing_lost().await;
    fleet.give_back("watch", "leases").await;
    for replica in &fleet.replicas {
        no_longer_said(replica, "watch").await;
    }
    hands_over(&fleet).await;
    fleet.close().await;
    Ok(())
}

/// Needed at the start, and when a watch is too old to be resumed.
pub(crate) async fn list(world: World) -> Verdict {
    let server = world.uncached().await?;
    let fleet = two_replicas(server, "list", Timing::ROOMY).await?;
    fleet.take_away("list", "leases").await;
    let blind = fleet.busiest();
    crate::network::compacted_under(server, &fleet, blind).await;
    said(&fleet.replicas[blind], "list", "watch").await;
    asks_slowly(&fleet.replicas[blind], "list", 2.0).await;
    fleet.renewed_for(Timing::ROOMY.lease).await;
    fleet.assert_nothing_lost().await;
    fleet.give_back("list", "leases").await;
    no_longer_said(&fleet.replicas[blind], "watch").await;
    hands_over(&fleet).await;
    fleet.close().await;
    Ok(())
}

/// All is as it was: a release by one is seen by the other.
pub(crate) async fn hands_over(fleet: &Fleet) {
    let gone = fleet.busiest();
    assert_eq!(fleet.replicas[gone].end(Signal::TERM).await, 0);
    fleet.all_acted_on(&[1 - gone], SLACK).await;
}

/// What was in force stays; it is said, once, and tried again slowly.
async fn config_map_trouble_is_said(replica: &Replica, verb: &str) {
    let cannot = format!("cannot {verb} ");
    let log = async || replica.lines(&["WARN", "ConfigMap cannot be watched", &cannot]) > 0;
    until("said in the log", SLACK, log).await;
    let page = async || replica.says("configuration").await.is_some_and(|line| line.contains(&cannot));
    until("said on the readiness page", SLACK, page).await;
    assert_eq!(replica.probe("/readyz").await, (200, "ok\n".to_owned()));
    let failures = "leasehold_config_watch_failures_total";
    let before = replica.metric(failures, &[]).await;
    assert!(before >= 1.0);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let more = replica.metric(failures, &[]).await - before;
    assert!(more <= 4.0, "{more} tries in four seconds");
    assert_eq!(replica.lines(&["ConfigMap cannot be watched"]), 1, "said once:\n{}", replica.written());
}

/// An edit that was made meanwhile takes effect, and the page says nothing of the trouble any more.
async fn config_map_is_followed_again(fleet: &Fleet, replica: &Replica, verb: &str) {
    let durations = [("lease-duration", "5s"), ("renew-deadline", "3s"), ("retry-period", "1s"), ("buckets", "4")];
    fleet.configure(&durations).await;
    fleet.give_back(verb, "configmaps").await;
    until("the edit takes effect", SLACK * 2, async || replica.lines(&["an edit took effect"]) > 0).await;
    until("said in the log", SLACK, async || replica.lines(&["the ConfigMap can be watched again"]) == 1).await;
    let clear = async || replica.says("configuration").await.is_some_and(|line| !line.contains("cannot"));
    until("the page says nothing of it any more", SLACK, clear).await;
}

/// Needed when a watch is begun.
pub(crate) async fn config_map_watch(world: World) -> Verdict {
    let fleet = two_replicas(world.shared().await?, "cm-watch", Timing::ROOMY).await?;
    fleet.take_away("watch", "configmaps").await;
    let replica = &fleet.replicas[0];
    replica.proxy.cut();
    config_map_trouble_is_said(replica, "watch").await;
    config_map_is_followed_again(&fleet, replica, "watch").await;
    fleet.assert_nothing_lost().await;
    fleet.close().await;
    Ok(())
}

/// Needed at the start, and when a watch is too old to be resumed.
pub(crate) async fn config_map_list(world: World) -> Verdict {
    let mut fleet = two_replicas(world.shared().await?, "cm-list", Timing::ROOMY).await?;
    fleet.take_away("list", "configmaps").await;
    let third = fleet.start().await;
    let replica = &fleet.replicas[third];
    config_map_trouble_is_said(replica, "list").await;
    config_map_is_followed_again(&fleet, replica, "list").await;
    fleet.assert_nothing_lost().await;
    fleet.close().await;
    Ok(())
}

/// Needed at the start alone: what runs goes on, what starts waits, says so, and starts when it may.
pub(crate) async fn config_map_get(world: World) -> Verdict {
    let mut fleet = two_replicas(world.shared().await?, "cm-get", Timing::ROOMY).await?;
    fleet.take_away("get", "configmaps").await;
    let third = fleet.launch().await;
    fleet.listens(third).await;
    let waits = &fleet.replicas[third];
    let grant = ["WARN", "no configuration yet", "cannot get ", "get, list and watch on configmaps"];
    until("said in the log", SLACK, async || waits.lines(&grant) > 0).await;
    until("counted", SLACK, async || waits.metric("leasehold_config_watch_failures_total", &[]).await > 0.0).await;
    let page = async || waits.says("configuration").await.is_some_and(|line| line.contains("cannot get "));
    until("said on the readiness page", SLACK, page).await;
    assert_eq!(waits.probe("/readyz").await.0, 503, "it cannot act");
    assert_eq!(waits.probe("/healthz").await.0, 200, "a restart mends nothing");
    fleet.renewed_for(Timing::ROOMY.lease).await;
    fleet.assert_two_running_lost_nothing().await;
    let tries = fleet.replicas[third].lines(&["no configuration yet"]);
    assert!(tries <= 5, "{tries} tries");
    fleet.give_back("get", "configmaps").await;
    fleet.started(third).await;
    assert_eq!(fleet.replicas[third].probe("/readyz").await.0, 200);
    for gone in [0, 1] {
        assert_eq!(fleet.replicas[gone].end(Signal::TERM).await, 0);
    }
    fleet.all_acted_on(&[third], SLACK).await;
    fleet.close().await;
    Ok(())
}

impl Fleet {
    async fn assert_two_running_lost_nothing(&self) {
        for replica in &self.replicas[..2] {
            assert_eq!(replica.metric("leasehold_terms_ended_total", &[("reason", "lost")]).await, 0.0);
        }
    }
}

/// `leasehold init` as the same user: what it lacks it says, and it ends with 1.
pub(crate) async fn init(world: World) -> Verdict {
    let fleet = Fleet::unopened(Space::new(world.shared().await?, "init").await, "acts", BUCKETS, T).await;
    let kubeconfig = fleet.user_kubeconfig(&fleet.server, "kubeconfig");
    for (verb, resource) in [("get", "configmaps"), ("list", "leases"), ("create", "leases")] {
        fleet.take_away(verb, resource).await;
        let (code, said) = fleet.init(&kubeconfig).await;
        assert_eq!(code, Some(1), "without {verb} on {resource}: {said}");
        assert!(said.contains(&format!("cannot {verb} resource \"{resource}\"")), "{said}");
        assert!(fleet.lease(&fleet.buckets[0]).await.is_none());
        fleet.give_back(verb, resource).await;
    }
    // It opens the layout by a PUT, last; again, it finds its own work half done.
    fleet.take_away("update", "leases").await;
    let (code, said) = fleet.init(&kubeconfig).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot update resource"), "{said}");
    fleet.give_back("update", "leases").await;
    assert_eq!(fleet.init(&kubeconfig).await.0, Some(0));
    let layout = fleet.lease("acts.adapter").await.expect("made");
    assert!(
        layout["metadata"]["annotations"]["leasehold.dev/layout"].as_str().is_some_and(|l| l.contains("\"open\":true"))
    );
    fleet.close().await;
    Ok(())
}
