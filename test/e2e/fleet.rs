//! Replicas that share one set of Leases: child processes of this program, each with a way to the API server of its own, as the
//! user of the scene's namespace. Each acts every 20 ms on each bucket it holds, and says so: who acted when is what they are
//! judged by.

use crate::log::{Log, Term};
use crate::plain::{metric, request};
use crate::proxy::Proxy;
use crate::space::{Space, until};
use rustix::process::{Pid, Signal, kill_process};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The first argument that makes this program a replica.
pub(crate) const REPLICA: &str = "replica";
/// Room for a busy machine: never for what must not happen, only for what must.
pub(crate) const SLACK: Duration = Duration::from_secs(15);

/// The three durations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) lease: Duration,
    pub(crate) renew: Duration,
    pub(crate) retry: Duration,
}

impl Timing {
    /// As short as whole seconds and three attempts per deadline allow.
    pub(crate) const SHORT: Self = Self::of(3_000, 2_000, 400);
    /// With room for a renewal that is slow.
    pub(crate) const ROOMY: Self = Self::of(5_000, 4_000, 1_000);

    const fn of(lease: u64, renew: u64, retry: u64) -> Self {
        let ms = Duration::from_millis;
        Self { lease: ms(lease), renew: ms(renew), retry: ms(retry) }
    }
}

/// One process.
pub(crate) struct Replica {
    pub(crate) proxy: Proxy,
    pid: Pid,
    log: Arc<Mutex<Log>>,
    written: PathBuf,
    /// Of the probes and the metrics.
    ports: Option<(u16, u16)>,
    ended: watch::Receiver<Option<i32>>,
    _reading: AbortOnDropHandle<()>,
}

impl Replica {
    /// What it did.
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no panic while it is held")
    }

    /// What it has written to its log.
    pub(crate) fn written(&self) -> String {
        std::fs::read_to_string(&self.written).unwrap_or_default()
    }

    /// How many lines of its log have all of `words`.
    pub(crate) fn lines(&self, words: &[&str]) -> usize {
        self.written().lines().filter(|line| words.iter().all(|w| line.contains(w))).count()
    }

    /// Its identity in Leases.
    pub(crate) fn identity(&self) -> String {
        self.log().identity.clone().unwrap_or_default()
    }

    fn port(&self, which: &str) -> Option<u16> {
        let log = self.written();
        let (_, rest) = log.split_once(&format!("{which}="))?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    }

    /// A page of its probes: status and text.
    pub(crate) async fn probe(&self, path: &str) -> (u16, String) {
        let (probes, _) = self.ports.expect("it has started");
        request(&format!("127.0.0.1:{probes}"), "GET", path, "").await.expect("the probes answer")
    }

    /// The line of `/readyz?verbose` on `topic`.
    pub(crate) async fn says(&self, topic: &str) -> Option<String> {
        let (_, page) = self.probe("/readyz?verbose").await;
        page.lines().find(|l| l.starts_with(&format!("{topic}: "))).map(ToOwned::to_owned)
    }

    /// One of its metrics.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let (_, metrics) = self.ports.expect("it has started");
        let page = request(&format!("127.0.0.1:{metrics}"), "GET", "/metrics", "").await.expect("the metrics answer");
        metric(&page.1, name, labels)
    }

    /// Lease requests it has sent, of `verb` or all where that is empty.
    pub(crate) async fn requests(&self, verb: &str) -> f64 {
        let labels = [("verb", verb)];
        self.metric("leasehold_lease_requests_total", if verb.is_empty() { &[] } else { &labels }).await
    }

    /// Sends it a signal, if it runs.
    pub(crate) fn signal(&self, signal: Signal) {
        // The child is waited for by the task that sets `ended`: the pid is not in use again before.
        if self.ended.borrow().is_none() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Waits for its end: its exit code, or -1 after a signal.
    pub(crate) async fn exit(&self) -> i32 {
        let mut ended = self.ended.clone();
        let code = tokio::time::timeout(Duration::from_secs(60), ended.wait_for(Option::is_some));
        code.await.expect("it ends").expect("told").expect("a code")
    }

    /// Ends it by `signal`.
    pub(crate) async fn end(&self, signal: Signal) -> i32 {
        self.signal(signal);
        self.exit().await
    }
}

/// Replicas of one component.
pub(crate) struct Fleet {
    pub(crate) space: Space,
    pub(crate) component: String,
    /// The names of the bucket Leases.
    pub(crate) buckets: Vec<String>,
    pub(crate) replicas: Vec<Replica>,
}

impl Deref for Fleet {
    type Target = Space;
    fn deref(&self) -> &Space {
        &self.space
    }
}

impl Fleet {
    /// Nobody yet; the ConfigMap is there, and the queue is open.
    pub(crate) async fn new(space: Space, buckets: usize, timing: Timing) -> Self {
        let fleet = Self::unopened(space, "acts", buckets, timing).await;
        let (code, said) = fleet.init(&fleet.kubeconfig).await;
        assert_eq!(code, Some(0), "leasehold init: {said}");
        fleet
    }

    /// `leasehold init`: its exit code, and what it says.
    pub(crate) async fn init(&self, kubeconfig: &Path) -> (Option<i32>, String) {
        let mut init = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        init.args(["init", "--queue", "adapter", "--component", &self.component]);
        self.environment(&mut init).env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
        let done = init.output().await.expect("leasehold starts");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// Nobody yet, and no Leases.
    pub(crate) async fn unopened(space: Space, component: &str, buckets: usize, timing: Timing) -> Self {
        let ms = |d: Duration| format!("{}ms", d.as_millis());
        let (lease, renew, retry) = (ms(timing.lease), ms(timing.renew), ms(timing.retry));
        let data = [("lease-duration", &lease), ("renew-deadline", &renew), ("retry-period", &retry)];
        let (hash, number) = ("knative", buckets.to_string());
        let data = data.map(|(k, v)| (k, v.as_str()));
        let data: Vec<_> = data.into_iter().chain([("buckets", number.as_str()), ("bucket-hash", hash)]).collect();
        space.configure(&data).await;
        let names = (0..buckets).map(|i| format!("{component}.adapter.{i:02}-of-{buckets:02}")).collect();
        Self { space, component: component.to_owned(), buckets: names, replicas: Vec::new() }
    }

    fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
            if name.starts_with("LEASEHOLD_") || name.starts_with("K_") {
                command.env_remove(name);
            }
        }
        command
            .env("SYSTEM_NAMESPACE", &self.namespace)
            .env("NO_PROXY", "127.0.0.1")
            .env("INTEROP_COMPONENT", &self.component)
            .env("LEASEHOLD_LISTEN", "127.0.0.1")
            .env("LEASEHOLD_PROBE_PORT", "0")
            .env("LEASEHOLD_METRICS_PORT", "0")
            .env("LEASEHOLD_LOG", "info,kube_client=off")
    }

    /// Starts a replica; its number. It may not have come far.
    pub(crate) async fn launch(&mut self) -> usize {
        let number = self.replicas.len();
        let pod = format!("pod-{number}");
        let proxy = Proxy::to(&self.server).await;
        let kubeconfig = self.user_kubeconfig(&proxy.address, &format!("{pod}.kubeconfig"));
        let written = self.scratch.join(format!("{pod}.err"));
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.arg(REPLICA);
        self.environment(&mut command).env("KUBECONFIG", kubeconfig).env("POD_NAME", &pod);
        let stderr = std::fs::File::create(&written).expect("a file for its log");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
        let mut child = command.spawn().expect("this program can be run");
        let pid = Pid::from_raw(i32::try_from(child.id().expect("it runs")).expect("a pid")).expect("a pid");
        let log = Arc::new(Mutex::new(Log::default()));
        let (tell, ended) = watch::channel(None);
        let stdout = child.stdout.take().expect("piped");
        let reading = AbortOnDropHandle::new(tokio::spawn(read(stdout, child, Arc::clone(&log), tell)));
        self.replicas.push(Replica { proxy, pid, log, written, ports: None, ended, _reading: reading });
        number
    }

    /// Starts a replica and waits until it runs; its number.
    pub(crate) async fn start(&mut self) -> usize {
        let number = self.launch().await;
        self.started(number).await;
        number
    }

    /// Waits until the probes of a replica that was launched answer.
    pub(crate) async fn listens(&mut self, number: usize) {
        let replica = &self.replicas[number];
        let both = || replica.port("probe_port").zip(replica.port("metrics_port"));
        until("a replica listens", SLACK, async || both().is_some()).await;
        let ports = both();
        self.replicas[number].ports = ports;
    }

    /// Waits until a replica that was launched runs.
    pub(crate) async fn started(&mut self, number: usize) {
        self.listens(number).await;
        let replica = &self.replicas[number];
        until("a replica has started", SLACK, async || replica.log().identity.is_some()).await;
    }

    /// Waits until each bucket is acted on by one of `replicas`.
    pub(crate) async fn all_acted_on(&self, replicas: &[usize], limit: Duration) {
        let what = format!("{replicas:?} act on every bucket; their logs are in {}", self.scratch.display());
        let acts = |bucket: &String| replicas.iter().any(|&r| self.replicas[r].log().acts_on(bucket));
        until(&what, limit, async || self.buckets.iter().all(acts)).await;
    }

    /// Who acts on the bucket of this number.
    pub(crate) fn holder(&self, bucket: usize) -> Option<usize> {
        (0..self.replicas.len()).find(|&r| self.replicas[r].log().acts_on(&self.buckets[bucket]))
    }

    /// How many buckets `replica` acts on.
    pub(crate) fn acting(&self, replica: usize) -> usize {
        self.replicas[replica].log().acting()
    }

    /// The one of `replicas` that acts on most buckets.
    pub(crate) fn busiest(&self) -> usize {
        (0..self.replicas.len()).max_by_key(|&r| self.acting(r)).expect("a replica")
    }

    /// No two acted on one bucket at one time.
    #[track_caller]
    pub(crate) fn assert_one_at_a_time(&self) {
        let logs: Vec<Log> = self.replicas.iter().map(|r| r.log().clone()).collect();
        for (i, log) in logs.iter().enumerate() {
            for other in &logs[i + 1..] {
                for (a, b) in log.terms.iter().flat_map(|a| other.terms.iter().map(move |b| (a, b))) {
                    let both = Term::overlap(a, b);
                    assert!(
                        both.is_zero(),
                        "two acted on {} for {both:?}: {:?} and {:?}",
                        a.bucket,
                        log.identity,
                        other.identity
                    );
                }
            }
        }
    }

    /// No replica lost a term.
    pub(crate) async fn assert_nothing_lost(&self) {
        for replica in &self.replicas {
            let lost = replica.metric("leasehold_terms_ended_total", &[("reason", "lost")]).await;
            assert_eq!(lost, 0.0, "{} lost terms:\n{}", replica.identity(), replica.written());
        }
    }

    /// Waits until every bucket has been renewed for as long as `more`.
    pub(crate) async fn renewed_for(&self, more: Duration) {
        let from = jiff::Timestamp::from_second(0).expect("valid");
        let mut begun = from;
        for bucket in &self.buckets {
            begun = begun.max(self.renewed(bucket).await);
        }
        for bucket in &self.buckets {
            let late = async || self.renewed(bucket).await.duration_since(begun) >= more.try_into().expect("short");
            until(&format!("{bucket} is renewed for {more:?}"), more + SLACK, late).await;
        }
    }

    async fn renewed(&self, bucket: &str) -> jiff::Timestamp {
        let lease = self.lease(bucket).await.expect("the Lease stands");
        lease["spec"]["renewTime"].as_str().expect("a renewTime").parse().expect("a time")
    }

    /// The end of a scene that passed.
    pub(crate) async fn close(self) {
        for replica in &self.replicas {
            replica.end(Signal::KILL).await;
        }
        self.assert_one_at_a_time();
        self.space.close().await;
    }
}

async fn read(
    stdout: tokio::process::ChildStdout,
    mut child: Child,
    log: Arc<Mutex<Log>>,
    ended: watch::Sender<Option<i32>>,
) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        log.lock().expect("no panic while it is held").add(&line);
    }
    let status = child.wait().await;
    log.lock().expect("no panic while it is held").end();
    ended.send_replace(Some(status.ok().and_then(|s| s.code()).unwrap_or(-1)));
}
