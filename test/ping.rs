//! Two processes of `leasehold ping` share the PingSources of a cluster in memory, over HTTP; one of them is stopped. No
//! tick is missed, and none comes twice.
#![allow(clippy::unwrap_used, reason = "a test: what is not as it should be ends it, and the line says where")]

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use leasehold::clock::{Boottime, Clock};
use leasehold::dev::apiserver::Server;
use leasehold::dev::fleet::Scratch;
use leasehold::sources::ping::source::PingSource;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::{Child, Command};

const SOURCES: usize = 8;
const BUCKETS: usize = 4;
/// For what takes a second or two on an idle machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The ids that came for each scheduled second, by the source.
type Seen = Arc<Mutex<BTreeMap<String, BTreeMap<i64, Vec<String>>>>>;

async fn take(State(seen): State<Seen>, headers: HeaderMap) -> StatusCode {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let at: Timestamp = header("ce-time").parse().expect("a time");
    assert_eq!(header("ce-type"), "dev.knative.sources.ping");
    let (source, id) = (header("ce-source"), header("ce-id"));
    seen.lock().unwrap().entry(source).or_default().entry(at.as_second()).or_default().push(id);
    StatusCode::ACCEPTED
}

async fn sink() -> (String, Seen) {
    let seen = Seen::default();
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let app = Router::new().fallback(take).with_state(Arc::clone(&seen));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, seen)
}

fn manifest(i: usize, sink: &str) -> String {
    format!(
        "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {{name: ping-{i}, namespace: default}}\n\
         spec: {{schedule: '* * * * * *', contentType: text/plain, data: hello, sink: {{uri: '{sink}'}}}}\n"
    )
}

/// Waits until `done` says so, looking every 50 ms.
async fn until<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    let wait = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "not within {PATIENCE:?}: {what}");
}

/// Waits until each source has had `more` further ticks.
async fn ticks(seen: &Seen, more: usize) {
    let had = |i: usize| {
        let key = format!("/apis/v1/namespaces/default/pingsources/ping-{i}");
        seen.lock().unwrap().get(&key).map_or(0, BTreeMap::len)
    };
    let before: Vec<usize> = (0..SOURCES).map(had).collect();
    until("ticks of every source", || async { (0..SOURCES).all(|i| had(i) >= before[i] + more) }).await;
}

struct World {
    scratch: Scratch,
    client: kube::Client,
    sink: String,
    seen: Seen,
    from_file: bool,
    _server: leasehold::dev::apiserver::Listening,
}

impl World {
    async fn new(from_file: bool) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (sink, seen) = sink().await;
        let listening = Server::default().listen((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let scratch = Scratch::new().unwrap();
        let text = listening.kubeconfig();
        std::fs::write(scratch.path().join("kubeconfig"), &text).unwrap();
        let parsed = Kubeconfig::from_yaml(&text).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.unwrap();
        config.proxy_url = None;
        let client = kube::Client::try_from(config).unwrap();
        let world = Self { scratch, client, sink, seen, from_file, _server: listening };
        world.prepare().await;
        world
    }

    async fn prepare(&self) {
        let settings = [("buckets", "4"), ("lease-duration", "5s"), ("renew-deadline", "4s"), ("retry-period", "1s")];
        let mut map = ConfigMap::default();
        map.metadata.name = Some("config-leader-election".to_owned());
        map.data = Some(settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        let post = PostParams::default();
        Api::namespaced(self.client.clone(), "default").create(&post, &map).await.unwrap();
        let manifests: Vec<String> = (0..SOURCES).map(|i| manifest(i, &self.sink)).collect();
        if self.from_file {
            std::fs::write(self.file(), manifests.join("---\n")).unwrap();
        } else {
            let definition: CustomResourceDefinition =
                serde_yaml::from_str(include_str!("../config/crd-pingsource.yaml")).unwrap();
            Api::all(self.client.clone()).create(&post, &definition).await.unwrap();
            let api = Api::<PingSource>::namespaced(self.client.clone(), "default");
            for text in manifests {
                api.create(&post, &serde_yaml::from_str(&text).unwrap()).await.unwrap();
            }
        }
        let init = self.command("init", &["init"]).status().await.unwrap();
        assert!(init.success(), "{init}");
    }

    fn file(&self) -> std::path::PathBuf {
        self.scratch.path().join("sources.yaml")
    }

    fn command(&self, pod: &str, args: &[&str]) -> Command {
        let kubeconfig = self.scratch.path().join("kubeconfig");
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        // What a process says is kept where the test fails: then the directory is not discarded.
        let log = std::fs::File::create(self.scratch.path().join(format!("{pod}.log"))).unwrap();
        command.args(args).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        let vars: [(&str, &Path); 7] = [
            ("KUBECONFIG", &kubeconfig),
            ("SYSTEM_NAMESPACE", "default".as_ref()),
            ("NAMESPACE", "default".as_ref()),
            ("POD_NAME", pod.as_ref()),
            ("LEASEHOLD_PROBE_PORT", "0".as_ref()),
            ("LEASEHOLD_METRICS_PORT", "0".as_ref()),
            ("LEASEHOLD_STRATEGY", "standard".as_ref()),
        ];
        command.envs(vars);
        command
    }

    fn ping(&self, pod: &str) -> Child {
        let file = self.file();
        let args = if self.from_file { vec!["ping", "--file", file.to_str().unwrap()] } else { vec!["ping"] };
        self.command(pod, &args).spawn().unwrap()
    }

    /// Who holds how many buckets, by Pod.
    async fn holders(&self) -> BTreeMap<String, usize> {
        let api = Api::<Lease>::namespaced(self.client.clone(), "default");
        let mut holders = BTreeMap::new();
        for lease in api.list(&ListParams::default()).await.unwrap() {
            let bucket = lease.metadata.name.is_some_and(|name| name.ends_with("-of-04"));
            let holder = lease.spec.and_then(|spec| spec.holder_identity).filter(|holder| bucket && !holder.is_empty());
            if let Some(holder) = holder {
                let pod = holder.split('_').next().unwrap_or_default().to_owned();
                *holders.entry(pod).or_default() += 1;
            }
        }
        holders
    }

    async fn all_held(&self) -> bool {
        self.holders().await.values().sum::<usize>() == BUCKETS
    }
}

/// SIGTERM; it has to end in good order.
async fn stop(mut process: Child) {
    let pid = i32::try_from(process.id().expect("it runs")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = tokio::time::timeout(PATIENCE, process.wait()).await.expect("it ends").unwrap();
    assert!(status.success(), "{status}");
}

async fn one_is_stopped_and_no_tick_is_missed_or_doubled(from_file: bool) {
    let world = World::new(from_file).await;
    let mut processes = BTreeMap::from(["ping-a", "ping-b"].map(|pod| (pod.to_owned(), world.ping(pod))));
    until("every bucket is held", || world.all_held()).await;
    let began = Boottime.wall().as_second() + 1;
    ticks(&world.seen, 3).await;

    let victim = world.holders().await.into_iter().max_by_key(|(_, n)| *n).expect("somebody holds").0;
    stop(processes.remove(&victim).expect("one of the two")).await;
    until("the other holds all", || world.all_held()).await;
    assert!(!world.holders().await.contains_key(&victim));
    ticks(&world.seen, 3).await;

    let lasts =
        world.seen.lock().unwrap().values().filter_map(|ticks| ticks.keys().last().copied()).collect::<Vec<_>>();
    let ended = lasts.into_iter().min().expect("ticks came");
    assert!(ended >= began + 4, "{began} to {ended}");
    for (_, process) in processes {
        stop(process).await;
    }
    let seen = world.seen.lock().unwrap().clone();
    let mut ids = BTreeSet::new();
    assert_eq!(seen.len(), SOURCES);
    for (source, ticks) in seen {
        for second in began..=ended {
            assert_eq!(
                ticks.get(&second).map_or(0, Vec::len),
                1,
                "{source} at {second}, of {began} to {ended}: {ticks:?}"
            );
        }
        for (second, came) in ticks {
            assert_eq!(came.len(), 1, "{source} at {second}");
            assert!(ids.insert(came[0].clone()), "an id of its own");
        }
    }
    world.scratch.discard();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_of_the_api() {
    one_is_stopped_and_no_tick_is_missed_or_doubled(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_of_a_file() {
    one_is_stopped_and_no_tick_is_missed_or_doubled(true).await;
}
