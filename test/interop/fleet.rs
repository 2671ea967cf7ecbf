//! Replicas of both kinds that share one set of Leases, each with a way to the API server of its own.

use crate::cluster::Cluster;
use crate::log::{Log, Term};
use crate::proxy::Proxy;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// What a replica is built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// This crate.
    Rust,
    /// client-go 0.20.2.
    Go20,
    /// client-go 0.32.3.
    Go32,
}

impl Kind {
    /// For tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "leasehold",
            Self::Go20 => "client-go 0.20.2",
            Self::Go32 => "client-go 0.32.3",
        }
    }

    /// Whether client-go decides.
    pub(crate) fn is_go(self) -> bool {
        self != Self::Rust
    }

    fn program(self) -> PathBuf {
        match self {
            // Beside the folder of this test's own program: cargo builds examples there.
            Self::Rust => {
                let own = std::env::current_exe().expect("this program has a path");
                let build = own.parent().and_then(Path::parent).expect("cargo's build folder");
                build.join("examples/interop_replica")
            }
            Self::Go20 => crate::go_programs().join("elector-0.20"),
            Self::Go32 => crate::go_programs().join("elector-0.32"),
        }
    }
}

/// The three durations of an election, and for how long work goes on that is asked to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) lease: Duration,
    pub(crate) renew: Duration,
    pub(crate) retry: Duration,
    pub(crate) linger: Duration,
}

impl Timing {
    /// Short, for tests.
    pub(crate) const SHORT: Self = Self::of(4_000, 3_000, 500);
    /// What most of Kubernetes runs with.
    pub(crate) const USUAL: Self = Self::of(15_000, 10_000, 2_000);

    /// In milliseconds.
    pub(crate) const fn of(lease: u64, renew: u64, retry: u64) -> Self {
        let ms = Duration::from_millis;
        Self { lease: ms(lease), renew: ms(renew), retry: ms(retry), linger: Duration::ZERO }
    }

    /// With work that takes so long to end.
    pub(crate) const fn lingering(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    fn election_config(self, buckets: usize) -> String {
        let (lease, renew, retry) = (self.lease.as_nanos(), self.renew.as_nanos(), self.retry.as_nanos());
        format!(r#"{{"Buckets":{buckets},"LeaseDuration":{lease},"RenewDeadline":{renew},"RetryPeriod":{retry}}}"#)
    }
}

/// One process.
pub(crate) struct Replica {
    pub(crate) kind: Kind,
    pid: Pid,
    proxy: Proxy,
    log: Arc<Mutex<Log>>,
    _child: Arc<AbortOnDropHandle<()>>,
    /// Set when the process has ended.
    ended: watch::Receiver<bool>,
}

impl Replica {
    /// What it has said until now.
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no panic while it is held")
    }

    /// Its identity in Leases; empty before it has begun.
    pub(crate) fn identity(&self) -> String {
        self.log().identity.clone().unwrap_or_default()
    }

    /// Whether the process runs.
    pub(crate) fn runs(&self) -> bool {
        !*self.ended.borrow()
    }

    /// Sends it a signal, if it runs.
    pub(crate) fn signal(&self, signal: Signal) {
        // The child is waited for by the task that sets `ended`, so for the blink between the pid is not in use again.
        if self.runs() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Its way to the API server becomes a black hole, or is none any more.
    pub(crate) fn hole(&self, hole: bool) {
        self.proxy.hole(hole);
    }

    /// Its way becomes a black hole at the `nth` time that it sends something from now on.
    pub(crate) fn hole_at_send(&self, nth: u32) {
        self.proxy.hole_at_send(nth);
    }

    /// Whether nothing comes through to it or from it.
    pub(crate) fn is_holed(&self) -> bool {
        self.proxy.is_hole()
    }

    /// Ends it by `signal` and waits for that.
    pub(crate) async fn end(&self, signal: Signal) {
        self.signal(signal);
        let mut ended = self.ended.clone();
        tokio::time::timeout(Duration::from_secs(60), ended.wait_for(|e| *e)).await.expect("it ends").expect("told");
    }
}

/// Replicas on one set of Leases.
pub(crate) struct Fleet {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) component: String,
    /// The names of the bucket Leases.
    pub(crate) buckets: Vec<String>,
    pub(crate) replicas: Vec<Replica>,
    scratch: PathBuf,
    news: watch::Sender<()>,
}

impl Fleet {
    /// Nobody yet, for `buckets` buckets.
    pub(crate) fn new(cluster: &Arc<Cluster>, component: &str, buckets: usize) -> Self {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&cluster.namespace).join(component);
        std::fs::create_dir_all(&scratch).expect("a folder for what the replicas say");
        Self {
            cluster: Arc::clone(cluster),
            component: component.to_owned(),
            buckets: (0..buckets).map(|i| format!("{component}.adapter.{i:02}-of-{buckets:02}")).collect(),
            replicas: Vec::new(),
            scratch,
            news: watch::Sender::new(()),
        }
    }

    /// `leasehold init`: a person's word that nothing runs.
    pub(crate) async fn init(&self, timing: Timing) {
        let mut init = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        init.args(["init", "--queue", "adapter", "--component", &self.component]);
        self.environment(&mut init, timing, &self.cluster.kubeconfig);
        let done = init.stdin(Stdio::null()).output().await.expect("leasehold starts");
        assert!(done.status.success(), "leasehold init: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn environment(&self, command: &mut Command, timing: Timing, kubeconfig: &Path) {
        for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
            if name.starts_with("LEASEHOLD_") || name.starts_with("K_") {
                command.env_remove(name);
            }
        }
        command
            .env("KUBECONFIG", kubeconfig)
            .env("SYSTEM_NAMESPACE", &self.cluster.namespace)
            .env("K_LEADER_ELECTION_CONFIG", timing.election_config(self.buckets.len()))
            .env("NO_PROXY", "127.0.0.1")
            .env("INTEROP_COMPONENT", &self.component)
            .env("INTEROP_LINGER_MS", timing.linger.as_millis().to_string())
            .env("LEASEHOLD_LISTEN", "127.0.0.1")
            .env("LEASEHOLD_PROBE_PORT", "0")
            .env("LEASEHOLD_METRICS_PORT", "0");
    }

    /// Starts a replica and waits until it runs; its number.
    pub(crate) async fn start(&mut self, kind: Kind, timing: Timing) -> usize {
        let number = self.replicas.len();
        let pod = format!("{}-{number}", if kind.is_go() { "go" } else { "rust" });
        let proxy = Proxy::to(&self.cluster.server).await;
        let kubeconfig = self.scratch.join(format!("{pod}.kubeconfig"));
        let text = std::fs::read_to_string(&self.cluster.kubeconfig).expect("the kubeconfig");
        let text = text.replace(&format!("https://{}", self.cluster.server), &format!("https://{}", proxy.address));
        std::fs::write(&kubeconfig, text).expect("a kubeconfig of its own");
        let stderr = std::fs::File::create(self.scratch.join(format!("{pod}.err"))).expect("a file for its log");

        let program = kind.program();
        let mut command = Command::new(&program);
        self.environment(&mut command, timing, &kubeconfig);
        command.env("POD_NAME", &pod);
        if kind.is_go() {
            let ms = |d: Duration| format!("{}ms", d.as_millis());
            command.args(["-pod", &pod, "-namespace", &self.cluster.namespace, "-buckets", &self.buckets.join(",")]);
            command.args(["-lease-duration", &ms(timing.lease), "-renew-deadline", &ms(timing.renew)]);
            command.args(["-retry-period", &ms(timing.retry), "-linger", &ms(timing.linger)]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|e| panic!("{} cannot be started: {e}", program.display()));
        let pid = Pid::from_raw(i32::try_from(child.id().expect("it runs")).expect("a pid")).expect("a pid");
        let log = Arc::new(Mutex::new(Log::default()));
        let (tell, ended) = watch::channel(false);
        let reading =
            tokio::spawn(read(child.stdout.take().expect("piped"), child, Arc::clone(&log), self.news.clone(), tell));
        self.replicas.push(Replica { kind, pid, proxy, log, _child: Arc::new(AbortOnDropHandle::new(reading)), ended });
        self.until(&format!("{pod} says hello"), Duration::from_secs(30), |fleet| {
            assert!(fleet.replicas[number].runs(), "{pod} has ended; its log is {}/{pod}.err", fleet.scratch.display());
            fleet.replicas[number].log().identity.is_some()
        })
        .await;
        number
    }

    /// Waits until `holds`. What does not come in `limit` fails the test.
    pub(crate) async fn until(&self, what: &str, limit: Duration, mut holds: impl FnMut(&Self) -> bool) {
        let mut news = self.news.subscribe();
        let waiting = async {
            while !holds(self) {
                // Some conditions are of time alone.
                let _ = tokio::time::timeout(Duration::from_millis(100), news.changed()).await;
            }
        };
        if tokio::time::timeout(limit, waiting).await.is_err() {
            panic!(
                "not within {limit:?}: {what}. The replicas' logs are in {}\n{}",
                self.scratch.display(),
                self.state()
            );
        }
    }

    /// Waits until each bucket is acted on by one of `replicas`.
    pub(crate) async fn until_all_act(&self, replicas: &[usize], limit: Duration) {
        self.until(&format!("{replicas:?} act on every bucket"), limit, |f| {
            f.buckets.iter().all(|b| replicas.iter().any(|&r| f.replicas[r].log().acts_on(b)))
        })
        .await;
    }

    /// Waits until the first bucket is renewed, and a bit: its holder has the answer, and sends nothing.
    pub(crate) async fn until_quiet(&self, timing: Timing) {
        let renewed = || async {
            let lease = self.cluster.lease(&self.buckets[0]).await;
            lease.and_then(|l| l["spec"]["renewTime"].as_str().map(str::to_owned))
        };
        let before = renewed().await;
        let renewal = async {
            while renewed().await == before {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), renewal).await.expect("it is renewed");
        tokio::time::sleep(timing.retry / 2).await;
    }

    /// The replica that acts on most buckets, of those that run.
    pub(crate) fn busiest(&self) -> usize {
        let running = (0..self.replicas.len()).filter(|&r| self.replicas[r].runs());
        running.max_by_key(|&r| self.replicas[r].log().acting()).expect("a replica")
    }

    /// The replicas that run.
    pub(crate) fn running(&self) -> Vec<usize> {
        (0..self.replicas.len()).filter(|&r| self.replicas[r].runs()).collect()
    }

    /// Every two stretches of acting of two processes that overlapped, with their kinds.
    pub(crate) fn overlaps(&self) -> Vec<(Kind, Kind, Term, Duration)> {
        let logs: Vec<(Kind, Log)> = self.replicas.iter().map(|r| (r.kind, r.log().clone())).collect();
        let mut found = Vec::new();
        for (i, (kind, log)) in logs.iter().enumerate() {
            for (other, theirs) in &logs[i + 1..] {
                for (a, b) in log.terms.iter().flat_map(|a| theirs.terms.iter().map(move |b| (a, b))) {
                    let both = a.overlap(b);
                    if !both.is_zero() {
                        found.push(((*kind).min(*other), (*kind).max(*other), a.clone(), both));
                    }
                }
            }
        }
        found
    }

    /// The longest time in which two acted on a bucket, of a replica of `one` and one of `other`.
    pub(crate) fn longest_overlap(&self, one: Kind, other: Kind) -> Duration {
        let of_these = |(a, b, _, both)| ((a, b) == (one.min(other), one.max(other))).then_some(both);
        self.overlaps().into_iter().filter_map(of_these).max().unwrap_or_default()
    }

    /// What the replicas have said is of no more use.
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
        // The namespace's, if this was the last in it.
        let _ = self.scratch.parent().map(std::fs::remove_dir);
    }

    fn state(&self) -> String {
        let mut text = String::new();
        for r in &self.replicas {
            use std::fmt::Write as _;
            let log = r.log();
            let acts: Vec<_> = log.terms.iter().filter(|t| t.open).map(|t| t.bucket.as_str()).collect();
            let _ = writeln!(text, "{:?} {:?}: runs {}, acts on {acts:?}", r.kind, log.identity, r.runs());
        }
        text
    }
}

async fn read(
    stdout: tokio::process::ChildStdout,
    mut child: Child,
    log: Arc<Mutex<Log>>,
    news: watch::Sender<()>,
    ended: watch::Sender<bool>,
) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        log.lock().expect("no panic while it is held").add(&line);
        news.send_replace(());
    }
    let _ = child.wait().await;
    log.lock().expect("no panic while it is held").end();
    ended.send_replace(true);
    news.send_replace(());
}
