//! Runs with real processes, sockets and signals, in a cluster that is nowhere: strategy `statefulset` needs no Lease.
//! The replicas are this test program again, pretending.

use super::cluster::{Cluster, ClusterError, OwnRequests, Requests};
use super::*;
use crate::clock::{Boottime, Clock as _};
use crate::config::StrategyKind;
use crate::leader::Reason;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::client::Body;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// A cluster that takes a ConfigMap and has no Leases.
struct Nowhere {
    client: kube::Client,
    kubeconfig: PathBuf,
}

impl Nowhere {
    fn new() -> Self {
        let service = tower::service_fn(|request: http::Request<Body>| async move {
            if request.uri().query().is_some_and(|q| q.contains("watch=true")) {
                std::future::pending::<()>().await;
            }
            let list = br#"{"apiVersion":"coordination.k8s.io/v1","kind":"LeaseList","metadata":{"resourceVersion":"1"},"items":[]}"#;
            let body = if request.method() == http::Method::GET {
                list.to_vec()
            } else {
                request.into_body().collect_bytes().await.unwrap().to_vec()
            };
            Ok::<_, Infallible>(http::Response::new(Body::from(body)))
        });
        Self { client: kube::Client::new(service, "default"), kubeconfig: "/nonexistent/kubeconfig".into() }
    }
}

impl Cluster for Nowhere {
    fn about(&self) -> String {
        "nowhere".to_owned()
    }
    fn client(&self) -> kube::Client {
        self.client.clone()
    }
    fn namespace(&self) -> &'static str {
        "default"
    }
    fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
    fn lease_requests<'a>(&'a self, own: &'a OwnRequests) -> BoxFuture<'a, Result<Requests, ClusterError>> {
        std::future::ready(Ok(own.counted_at_begin() - own.counted_at_begin())).boxed()
    }
    fn close(&self) -> BoxFuture<'_, Result<(), ClusterError>> {
        std::future::ready(Ok(())).boxed()
    }
}

fn options(command: Vec<OsString>) -> Options {
    Options {
        replicas: 2,
        buckets: 2,
        strategy: StrategyKind::StatefulSet,
        sources: 4,
        lease_duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_secs(1),
        every: Duration::from_secs(1),
        length: Duration::from_secs(3),
        seed: 1,
        command: Some(command),
        ..Options::default()
    }
}

/// This test program, as a replica.
fn pretender() -> Vec<OsString> {
    let this = std::env::current_exe().unwrap().into_os_string();
    let args = ["--exact", "dev::fleet::tests::a_replica_that_pretends", "--ignored", "--nocapture"];
    std::iter::once(this).chain(args.map(OsString::from)).collect()
}

async fn run_here(options: &Options) -> Result<judge::Report, FleetError> {
    let (_tell, mut interrupts) = mpsc::channel(1);
    let scratch = Scratch::new().unwrap();
    let outcome = run(options, &Nowhere::new(), &scratch, &mut interrupts).await;
    scratch.discard();
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_of_real_processes_is_conducted_and_judged() {
    let report = run_here(&Options { chaos: Chaos::Restart, ..options(pretender()) }).await.unwrap();
    assert!(report.passed(), "{report:#?}");
    assert_eq!((report.events.expected, report.events.missed), (12, 0), "{report:#?}");
    assert!(report.events.received >= 12 && report.troubles >= 1, "{report:#?}");
    assert!(report.handovers.restart.count >= 1 && report.handovers.restart.unfinished == 0, "{report:#?}");
    assert_eq!(report.held.values().sum::<u64>(), 2, "{report:#?}");
    assert_eq!(report.unasked_exits, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_replicas_end_in_good_order_and_are_replaced() {
    let report = run_here(&Options { chaos: Chaos::Term, ..options(pretender()) }).await.unwrap();
    assert!(report.passed(), "{report:#?}");
    assert!(report.handovers.term.count >= 1, "{report:#?}");
    // Nobody comes for a second.
    assert!(report.handovers.term.max_ms.is_some_and(|ms| ms >= 1_000.0), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_at_once_is_said_to_with_what_it_wrote() {
    let command = ["/bin/sh", "-c", "echo no such flag >&2; exit 64"].map(OsString::from).to_vec();
    let error = run_here(&options(command)).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, FleetError::EndedAtOnce { .. }), "{text}");
    assert!(text.contains("exit status: 64") && text.contains("no such flag"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_not_there_is_named() {
    let error = run_here(&options(vec!["/nonexistent/adapter".into()])).await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/adapter"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_run_ends_its_replicas() {
    let scratch = Scratch::new().unwrap();
    let pids = scratch.path().join("pids");
    let script = format!("echo $$ >> {}; exec sleep 600", pids.display());
    let options = options(vec!["/bin/sh".into(), "-c".into(), script.into()]);
    let (_tell, mut interrupts) = mpsc::channel(1);
    let nowhere = Nowhere::new();
    let started = || std::fs::read_to_string(&pids).unwrap_or_default().lines().count() == 2;
    tokio::select! {
        outcome = run(&options, &nowhere, &scratch, &mut interrupts) => panic!("{outcome:?}"),
        () = wait_for(started) => {}
    }
    for pid in std::fs::read_to_string(&pids).unwrap().lines() {
        wait_for(|| !Path::new("/proc").join(pid).exists()).await;
    }
    scratch.discard();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_before_the_beginning_ends_the_replicas() {
    let scratch = Scratch::new().unwrap();
    let (tell, mut interrupts) = mpsc::channel(1);
    let command = ["/bin/sh", "-c", "exec sleep 600"].map(OsString::from).to_vec();
    let options = options(command);
    let nowhere = Nowhere::new();
    let mut running = Box::pin(run(&options, &nowhere, &scratch, &mut interrupts));
    tokio::select! {
        outcome = &mut running => panic!("{outcome:?}"),
        () = wait_for(|| scratch.output("replica-1").exists()) => {}
    }
    tell.send(()).await.unwrap();
    assert!(matches!(running.await, Err(FleetError::Interrupted)));
    scratch.discard();
}

async fn wait_for(what: impl Fn() -> bool) {
    let wait = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait).await.unwrap();
}

/// Not a test: a replica of the fleet above. Sends the ticks of half the sources, and after a restart what was missed.
#[tokio::test]
#[ignore = "a replica for the tests above, which start it"]
async fn a_replica_that_pretends() {
    use crate::adapter::report::{LEASEHOLD_REPORT, Line};
    let Ok(socket) = std::env::var(LEASEHOLD_REPORT) else { return };
    let name = std::env::var("POD_NAME").unwrap();
    let ordinal: u32 = name.rsplit('-').next().unwrap().parse().unwrap();
    let state = PathBuf::from(std::env::var_os("LEASEHOLD_PING_FILE").unwrap()).with_file_name(format!("{name}.at"));
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    let mut report = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let mut tell = |line: &Line| writeln!(report, "{}", serde_json::to_string(line).unwrap()).unwrap();
    let now = || Boottime.now().as_nanos();
    let (bucket, token) = (format!("b{ordinal}"), None);
    tell(&Line::Hello {
        pid: std::process::id(),
        identity: format!("{name}_{}", std::process::id()),
        component: "pretender".to_owned(),
        probe_port: None,
        metrics_port: None,
        at: now(),
    });
    tell(&Line::TermBegun { bucket: bucket.clone(), token, at: now(), deadline: u64::MAX });
    tell(&Line::Promoted { bucket: bucket.clone(), token, at: now() });
    let wall = || Boottime.wall().as_second();
    let mut sent = std::fs::read_to_string(&state).ok().and_then(|s| s.parse().ok()).unwrap_or_else(wall);
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        while sent < wall() {
            for source in (0..4).filter(|n| n % 2 == ordinal) {
                post(source, sent + 1).await;
            }
            sent += 1;
            std::fs::write(&state, sent.to_string()).unwrap();
        }
    }
    tell(&Line::TermEnded { bucket, token, reason: Reason::Shutdown, acted_until: now(), at: now() });
}

async fn post(source: u32, second: i64) {
    let sink = std::env::var("K_SINK").unwrap();
    let address = sink.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let time = jiff::Timestamp::from_second(second).unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: sink\r\nconnection: close\r\ncontent-length: 0\r\nce-specversion: 1.0\r\nce-type: t\r\n\
         ce-id: {source}-{second}\r\nce-source: /apis/v1/namespaces/default/pingsources/ping-{source:04}\r\nce-time: {time}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
}
