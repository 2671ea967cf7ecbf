//! The API server hangs or is gone for longer than a lease, and comes back.

use crate::fleet::{Fleet, SLACK, Timing};
use crate::harness::{Verdict, World};
use crate::server::Server;
use crate::space::{Space, until};
use leasehold::clock::{Boottime, Clock};
use rustix::process::{Signal, kill_process};
use std::time::Duration;

const T: Timing = Timing::SHORT;
const BUCKETS: usize = 6;

async fn three_replicas(server: &Server, name: &str) -> Fleet {
    let mut fleet = Fleet::new(Space::new(server, name).await, BUCKETS, T).await;
    for _ in 0..3 {
        fleet.launch().await;
    }
    for number in 0..3 {
        fleet.started(number).await;
    }
    fleet.all_acted_on(&[0, 1, 2], SLACK).await;
    fleet
}

async fn all_have_stopped(fleet: &Fleet, since: leasehold::clock::Instant) {
    until("nobody acts", T.renew + SLACK, async || (0..3).all(|r| fleet.acting(r) == 0)).await;
    let last = fleet.replicas.iter().flat_map(|r| r.log().terms.clone()).map(|t| t.until).max().expect("acts");
    let latest = (since + T.renew + (T.lease - T.renew) / 2).as_nanos();
    assert!(last <= latest, "acted {:?} after the server had gone", Duration::from_nanos(last - since.as_nanos()));
}

/// Longer than a lease: by then everybody takes everybody for dead.
async fn until_leases_have_run_out(since: leasehold::clock::Instant) {
    let lasts = T.lease + T.retry;
    until("the leases have run out", lasts + SLACK, async || Boottime.now().since(since) > lasts).await;
}

/// Every bucket is acted on again. Meant: within a retry-period and its jitter; asserted: with room for a busy machine.
async fn held_again(fleet: &Fleet, gone: leasehold::clock::Instant, back: leasehold::clock::Instant, what: &str) {
    fleet.all_acted_on(&[0, 1, 2], SLACK).await;
    // Nobody acted from the end of the deadlines on.
    let since = gone + T.lease;
    let logs: Vec<_> = fleet.replicas.iter().map(|r| r.log().clone()).collect();
    let first = |bucket: &String| {
        logs.iter().flat_map(|l| l.of(bucket)).map(|t| t.from).filter(|&from| from > since.as_nanos()).min()
    };
    let last = fleet.buckets.iter().map(|b| first(b).expect("acted on")).max().expect("buckets");
    let took = Duration::from_nanos(last.saturating_sub(back.as_nanos()));
    eprintln!("{what}: every bucket held again {took:?} after the server was back (retry-period {:?})", T.retry);
    // A retry-period and its jitter, on a machine with other work; and less than a lease, which nobody has to wait out.
    let bound = T.retry * 6;
    assert!(bound < T.lease && took <= bound, "{took:?}");
}

/// SIGSTOP: connections stand and nothing is answered. What was sent meanwhile is carried out when it goes on.
pub(crate) async fn server_hangs(world: World) -> Verdict {
    let server = world.own("").await?;
    let fleet = three_replicas(&server, "hangs").await;
    let pid = server.pid("kube-apiserver");
    let from = Boottime.now();
    kill_process(pid, Signal::STOP).expect("it runs");
    all_have_stopped(&fleet, from).await;
    until_leases_have_run_out(from).await;
    let back = Boottime.now();
    kill_process(pid, Signal::CONT).expect("it runs");
    held_again(&fleet, from, back, "hung").await;
    fleet.renewed_for(T.lease).await;
    fleet.assert_one_at_a_time();
    fleet.close().await;
    server.close().await;
    Ok(())
}

/// kube-apiserver and etcd end, and start again with their data.
pub(crate) async fn server_stopped_and_started(world: World) -> Verdict {
    let server = world.own("").await?;
    let fleet = three_replicas(&server, "stopped").await;
    let from = Boottime.now();
    server.down_and_keep().await;
    all_have_stopped(&fleet, from).await;
    until_leases_have_run_out(from).await;
    let answers = async {
        let asked = async || fleet.client.apiserver_version().await.is_ok();
        until("the server answers", SLACK * 4, asked).await;
        Boottime.now()
    };
    let ((), back) = tokio::join!(server.up_again(""), answers);
    held_again(&fleet, from, back, "restarted").await;
    fleet.renewed_for(T.lease).await;
    fleet.assert_one_at_a_time();
    fleet.close().await;
    server.close().await;
    Ok(())
}
