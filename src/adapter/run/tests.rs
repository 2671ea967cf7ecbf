//! Whole runs over a hand-written election: signals, probes, metrics and the report are real.

use super::*;
use crate::adapter::report::Line;
use crate::adapter::signals::Signal;
use crate::adapter::testing::{Do, RawSink, config, install_tls, limits, status};
use crate::bucket::{Bucket, BucketSet, Hash};
use crate::clock::{Boottime, Clock};
use crate::elector::{BuildError, Elector, Queue, Stop, Strategy};
use crate::leader::tenure::{Surroundings, Tenure, Told};
use crate::leader::{Deadline, FencingToken, Reason, Term, TermParts};
use cloudevents::{Event, EventBuilder, EventBuilderV10};
use futures::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(20);

/// Holds all buckets from the start, for as long as the process lives.
struct AllMine {
    dies: Arc<Notify>,
}

impl Strategy for AllMine {
    fn name(&self) -> &'static str {
        "all-mine"
    }
    fn build(&self, queue: Queue) -> Result<Box<dyn Elector>, BuildError> {
        if queue.name == "refused" {
            return Err(BuildError::Other("no such queue".into()));
        }
        Ok(Box::new(Running { queue, dies: self.dies.clone() }))
    }
}

struct Running {
    queue: Queue,
    dies: Arc<Notify>,
}

fn bucket_names() -> [&'static str; 2] {
    ["c.adapter.00-of-02", "c.adapter.01-of-02"]
}

impl Elector for Running {
    fn run(self: Box<Self>, aware: Arc<dyn DynLeaderAware>, stop: Stop) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let (told_to, mut told) = mpsc::unbounded_channel();
            let Queue { clock, observer, on_fatal, config, status, .. } = self.queue;
            status.say("layout", "2 buckets, as configured");
            let around = Surroundings { aware, clock: clock.clone(), observer, on_fatal, told: told_to };
            let set = BucketSet::new(Hash::Knative, bucket_names()).unwrap();
            let drain_timeout = config.borrow().drain_timeout;
            let tenures: Vec<Tenure> = set
                .buckets()
                .map(|bucket| {
                    let token = Some(FencingToken::new(0, 7 + bucket.index() as u64));
                    let deadline = Deadline::at(clock.now() + Duration::from_mins(10));
                    let parts = TermParts { bucket, token, deadline, clock: clock.clone(), saved: None };
                    Tenure::begin(Term::new(parts), limits(drain_timeout), around.clone())
                })
                .collect();
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.dies.notified() => return,
            }
            for tenure in &tenures {
                tenure.end(Reason::Shutdown);
            }
            let mut left = tenures.len();
            while left > 0 {
                left -= usize::from(matches!(told.recv().await, Some(Told::Ended(..))));
            }
        })
    }
}

/// An adapter made of a closure.
struct Works<F>(F);

impl<F, Fut> Adapter for Works<F>
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    async fn start(&self, ctx: Context) -> Result<(), BoxError> {
        (self.0)(ctx).await
    }
}

/// A process under way, seen from outside.
struct Process {
    probes: String,
    metrics: String,
    lines: mpsc::UnboundedReceiver<Line>,
    signals: mpsc::UnboundedSender<Signal>,
    elector_dies: Arc<Notify>,
    ended_at_once: Arc<Notify>,
    run: JoinHandle<Result<(), RunError>>,
    http: reqwest::Client,
}

fn socket() -> PathBuf {
    std::env::temp_dir().join(format!("leasehold-{}.sock", uuid::Uuid::new_v4()))
}

fn env(vars: &[(&str, &str)]) -> Env {
    let base = [
        ("NAMESPACE", "ns"),
        ("POD_NAME", "pod-0"),
        ("LEASEHOLD_LISTEN", "127.0.0.1"),
        ("LEASEHOLD_PROBE_PORT", "0"),
        ("LEASEHOLD_METRICS_PORT", "0"),
    ];
    Env::from_vars(base.iter().chain(vars).copied()).unwrap()
}

fn runtime(env: Env, drain_timeout: Duration) -> Runtime {
    install_tls();
    let config = crate::config::Config { drain_timeout, ..config() };
    Runtime::new("c")
        .env(env)
        .strategy(Arc::new(AllMine { dies: Arc::default() }))
        .config(watch::channel(Arc::new(config)).1)
        .signals(futures::stream::pending())
        .on_fatal(Arc::new(|why| panic!("{why}")))
}

impl Process {
    async fn start<A: Adapter>(vars: &[(&str, &str)], drain_timeout: Duration, adapter: A) -> Self {
        let path = socket();
        let listener = UnixListener::bind(&path).unwrap();
        let env = env(&[&[("LEASEHOLD_REPORT", path.to_str().unwrap())], vars].concat());
        let (signals, heard) = mpsc::unbounded_channel();
        let (elector_dies, ended_at_once) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let heard = futures::stream::unfold(heard, |mut heard| async { heard.recv().await.map(|s| (s, heard)) });
        let at_once = ended_at_once.clone();
        let runtime = runtime(env, drain_timeout)
            .strategy(Arc::new(AllMine { dies: elector_dies.clone() }))
            .signals(heard)
            .at_once(Arc::new(move || at_once.notify_one()))
            .edits(Arc::new(|| crate::adapter::ConfigCounts { applied: 3, refused: 1, watch_failures: 0 }));
        let run = tokio::spawn(runtime.try_run(adapter));
        let (stream, _) = listener.accept().await.unwrap();
        std::fs::remove_file(path).unwrap();
        let (told, mut lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut text = BufReader::new(stream).lines();
            while let Ok(Some(line)) = text.next_line().await {
                told.send(serde_json::from_str(&line).unwrap()).unwrap();
            }
        });
        let Some(Line::Hello { pid, identity, component, probe_port, metrics_port, at }) = lines.recv().await else {
            panic!()
        };
        assert_eq!((pid, component.as_str()), (std::process::id(), "c"));
        assert!(identity.starts_with("pod-0_") && identity.len() == 6 + 36, "{identity}");
        assert!(at <= Boottime.now().as_nanos());
        let url = |port: Option<u16>| format!("http://127.0.0.1:{}", port.unwrap());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let (probes, metrics) = (url(probe_port), url(metrics_port));
        Self { probes, metrics, lines, signals, elector_dies, ended_at_once, run, http }
    }

    async fn ask(&self, path: &str) -> (u16, String) {
        let answer = self.http.get(format!("{}{path}", self.probes)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn metrics(&self) -> String {
        let answer = self.http.get(format!("{}/metrics", self.metrics)).send().await.unwrap();
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
        answer.text().await.unwrap()
    }

    fn signal(&self) {
        self.signals.send(Signal::Terminate).unwrap();
    }

    /// The next line that `wanted` takes.
    async fn line<T>(&mut self, wanted: impl Fn(Line) -> Option<T>) -> T {
        let next = async {
            loop {
                let line = self.lines.recv().await.expect("the report has ended");
                if let Some(found) = wanted(line) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.unwrap()
    }

    async fn promoted(&mut self) {
        for _ in bucket_names() {
            self.line(|l| matches!(l, Line::Promoted { .. }).then_some(())).await;
        }
    }

    /// The end of the run, and the reasons for which its terms ended.
    async fn end(mut self) -> (Result<(), RunError>, Vec<Reason>) {
        let result = tokio::time::timeout(PATIENCE, self.run).await.expect("it does not end").unwrap();
        let mut reasons = Vec::new();
        while let Some(line) = self.lines.recv().await {
            if let Line::TermEnded { reason, .. } = line {
                reasons.push(reason);
            }
        }
        (result, reasons)
    }
}

fn event(id: &str) -> Event {
    EventBuilderV10::new().id(id).source("s").ty("t").build().unwrap()
}

const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_stop_lets_what_is_out_finish_while_the_probes_say_so() {
    let (answer, answered) = watch::channel(false);
    let raw = Arc::new(RawSink::start(|_, _| Do::Hang(Vec::new())).await);
    let adapter = Works(move |ctx: Context| {
        let mut answered = answered.clone();
        async move {
            let guard = loop {
                if let Some(guard) = ctx.leadership().guard("ns/a") {
                    break guard;
                }
                tokio::task::yield_now().await;
            };
            // Work that goes on over the stop: it ends by itself, not by being cancelled.
            guard.run(answered.wait_for(|done| *done)).await.unwrap().unwrap();
            drop(guard);
            ctx.stopping().await;
            Ok(())
        }
    });
    let mut process = Process::start(&[("K_SINK", &raw.url("/"))], LONG, adapter).await;
    process.promoted().await;
    assert_eq!(process.ask("/readiness").await, (200, String::new()));
    assert_eq!(process.ask("/health").await, (200, String::new()));
    assert_eq!(process.ask("/readyz").await, (200, "ok\n".into()));
    assert_eq!(process.ask("/nothing").await.0, 404);

    process.signal();
    let guards = process.line(|l| match l {
        Line::GuardsOut { guards, .. } if guards > 0 => Some(guards),
        _ => None,
    });
    assert_eq!(guards.await, 1);
    let knative = (500, "received SIGTERM from kubelet\n".to_owned());
    assert_eq!(process.ask("/readiness").await, knative);
    assert_eq!(process.ask("/health").await, knative);
    assert_eq!(process.ask("/readyz").await, (500, "stopping\n".into()));
    assert_eq!(process.ask("/healthz").await, (200, "ok\n".into()));
    assert!(process.ask("/healthz?verbose").await.1.contains("being given up for"));
    assert!(!process.run.is_finished());

    answer.send(true).unwrap();
    let (result, reasons) = process.end().await;
    result.unwrap();
    // One may have ended before the guard that was waited for was seen.
    assert!(!reasons.is_empty() && reasons.iter().all(|r| *r == Reason::Shutdown), "{reasons:?}");
}

#[tokio::test]
async fn events_go_out_under_guards_and_are_counted() {
    let raw = RawSink::start(|_, _| status(202)).await;
    let adapter = Works(|ctx: Context| async move {
        ctx.per_bucket(|ctx, term| async move {
            let sent = ctx.sink().send_all(&term, [event(term.bucket().name())]).await?;
            assert_eq!(sent.delivered, 1);
            Ok(())
        })
        .await;
        Ok(())
    });
    let vars = [("K_SINK", &*raw.url("/")), ("LEASEHOLD_FENCING", "true")];
    let mut process = Process::start(&vars, LONG, adapter).await;
    process.promoted().await;
    raw.arrived(2).await;
    let mut ids: Vec<String> = raw
        .seen()
        .iter()
        .map(|s| format!("{} {}", s.header("ce-id").unwrap(), s.header("ce-leaseepoch").unwrap()))
        .collect();
    ids.sort();
    assert_eq!(ids, ["c.adapter.00-of-02 00000000000000000000000007", "c.adapter.01-of-02 00000000000000000000000008"]);
    let sent = "leasehold_events_total{outcome=\"delivered\",code=\"2xx\"} 2";
    let page = async {
        loop {
            let page = process.metrics().await;
            if page.contains(sent) {
                return page;
            }
        }
    };
    let page = tokio::time::timeout(PATIENCE, page).await.unwrap();
    for line in [
        "leasehold_buckets_held 2",
        "leasehold_terms_begun_total 2",
        "leasehold_terms_ended_total{reason=\"lost\"} 0",
        "leasehold_config_edits_total{result=\"applied\"} 3",
        "leasehold_config_edits_total{result=\"refused\"} 1",
        "leasehold_handover_seconds_count{side=\"taking\"} 2",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    let (_, words) = process.ask("/readyz?verbose").await;
    for part in [
        "c is ready\n",
        "identity: pod-0_",
        "queue adapter, strategy all-mine: holds 2 of 2 bucket(s)\n",
        "bucket c.adapter.00-of-02: held for ",
        "to its deadline, 0 guard(s) out, token 00000000000000000000000007\n",
        "layout: 2 buckets, as configured\n",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
    process.signal();
    let (result, reasons) = process.end().await;
    result.unwrap();
    assert_eq!(reasons, [Reason::Shutdown; 2]);
}

#[tokio::test]
async fn an_adapter_that_is_done_ends_the_process_well() {
    let process = Process::start(&[], LONG, Works(|_| async { Ok(()) })).await;
    let (result, reasons) = process.end().await;
    result.unwrap();
    assert_eq!(reasons, [Reason::Shutdown; 2]);
}

#[tokio::test]
async fn an_adapter_that_fails_releases_everything_first() {
    let process = Process::start(&[], LONG, Works(|_| async { Err("the feed is gone".into()) })).await;
    let (result, reasons) = process.end().await;
    assert_eq!(result.unwrap_err().to_string(), "the adapter failed: the feed is gone");
    assert_eq!(reasons, [Reason::Shutdown; 2]);
    let process = Process::start(&[], LONG, Works(|_| async { panic!("an index") })).await;
    let (result, reasons) = process.end().await;
    assert_eq!(result.unwrap_err().to_string(), "the adapter panicked: an index");
    assert_eq!(reasons, [Reason::Shutdown; 2]);
}

#[tokio::test]
async fn who_never_asked_to_be_told_is_dropped_as_soon_as_no_term_is_left() {
    let mut process = Process::start(&[], LONG, Works(|_| std::future::pending())).await;
    process.promoted().await;
    process.signal();
    let began = Boottime.now();
    let (result, reasons) = process.end().await;
    result.unwrap();
    assert_eq!(reasons, [Reason::Shutdown; 2]);
    assert!(Boottime.now().since(began) < LONG / 2, "drain-timeout was waited for");
}

#[tokio::test]
async fn who_asked_to_be_told_is_given_drain_timeout_and_no_more() {
    let patience = Duration::from_millis(400);
    let adapter = Works(|ctx: Context| async move {
        ctx.stopping().await;
        std::future::pending().await
    });
    let mut process = Process::start(&[], patience, adapter).await;
    process.promoted().await;
    // Asked for at the latest now: the terms began in tasks spawned before.
    tokio::task::yield_now().await;
    let began = Boottime.now();
    process.signal();
    let (result, _) = process.end().await;
    result.unwrap();
    assert!(Boottime.now().since(began) >= patience);

    let errs = Works(|ctx: Context| async move {
        ctx.stopping().await;
        Err("the last batch was not written".into())
    });
    let mut process = Process::start(&[], LONG, errs).await;
    process.promoted().await;
    process.signal();
    let (result, reasons) = process.end().await;
    assert!(matches!(result, Err(RunError::Adapter(_))), "{result:?}");
    assert_eq!(reasons, [Reason::Shutdown; 2]);
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let (hold, held) = mpsc::unbounded_channel();
    let held = Mutex::new(Some(held));
    let adapter = Works(move |ctx: Context| {
        let mut held = held.lock().unwrap().take().unwrap();
        async move {
            let guard = loop {
                if let Some(guard) = ctx.leadership().guard("ns/a") {
                    break guard;
                }
                tokio::task::yield_now().await;
            };
            let _: Option<()> = held.recv().await;
            drop(guard);
            Ok(())
        }
    });
    let mut process = Process::start(&[], LONG, adapter).await;
    process.promoted().await;
    process.signal();
    process.line(|l| matches!(l, Line::GuardsOut { guards: 1, .. }).then_some(())).await;
    process.signal();
    process.ended_at_once.notified().await;
    let result = tokio::time::timeout(PATIENCE, process.run).await.expect("it waits for the guard").unwrap();
    assert!(matches!(result, Err(RunError::SecondSignal)), "{result:?}");
    drop(hold);
}

#[tokio::test]
async fn an_election_that_dies_is_an_illness_and_no_exit() {
    let mut process = Process::start(&[], LONG, Works(|_| std::future::pending())).await;
    process.promoted().await;
    assert_eq!(process.ask("/livez").await, (200, "ok\n".into()));
    process.elector_dies.notify_one();
    let sick = async {
        while process.ask("/healthz").await.0 == 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, sick).await.unwrap();
    let (code, words) = process.ask("/livez").await;
    assert!(code == 500 && words.contains("without being told to"), "{code} {words}");
    assert_eq!(process.ask("/readiness").await, (200, String::new()));
    process.signal();
    let (result, reasons) = process.end().await;
    result.unwrap();
    assert_eq!(reasons, [Reason::Lost; 2]);
}

#[tokio::test]
async fn what_can_be_refused_is_refused_before_anything_is_contended_for() {
    let idle = || Works(|_: Context| async { unreachable!("it was started") });
    let refused = async |runtime: Runtime| runtime.try_run(idle()).await.unwrap_err().to_string();

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = refused(runtime(env(&[("LEASEHOLD_METRICS_PORT", &port)]), LONG)).await;
    assert!(error.contains(&port) && error.contains("metrics") && error.contains("LEASEHOLD_METRICS_PORT"), "{error}");

    let nobody = socket();
    let error = refused(runtime(env(&[("LEASEHOLD_REPORT", nobody.to_str().unwrap())]), LONG)).await;
    assert!(error.contains("LEASEHOLD_REPORT") && error.contains(nobody.to_str().unwrap()), "{error}");

    assert_eq!(refused(runtime(env(&[]), LONG).queue("refused")).await, "no such queue");
    let missing = refused(Runtime::new("c").env(env(&[])).signals(futures::stream::pending())).await;
    assert!(missing.contains("Runtime::strategy"), "{missing}");

    let code = runtime(env(&[]), LONG).queue("refused").run(idle()).await;
    assert_eq!(code, ExitCode::FAILURE);
    assert_eq!(runtime(env(&[]), LONG).run(Works(|_| async { Ok(()) })).await, ExitCode::SUCCESS);
}

#[tokio::test]
async fn what_is_put_together_by_default_can_be_refused_and_interrupted() {
    let made = |_: &Env| Ok::<_, BoxError>(Works(|_: Context| async { Ok(()) }));
    let none = || futures::stream::pending().boxed();
    let vars = || env(&[("FEED", "x")]);

    let refused = |env: &Env| {
        Err::<Works<fn(Context) -> std::future::Ready<Result<(), BoxError>>>, _>(env.get("FEED").unwrap().to_owned())
    };
    let wired = async |_: Runtime| -> Result<Runtime, BoxError> { unreachable!("the adapter was refused") };
    let error = compose("c", vars(), none(), refused, wired).await.unwrap_err();
    assert_eq!(error.to_string(), "the adapter can't be made: x");

    let error = compose("c", vars(), none(), made, async |_| Err("no cluster".into())).await.unwrap_err();
    assert_eq!(error.to_string(), "the election can't be set up: no cluster");

    // The API server may be away for long; a signal must not wait for it.
    let signals = futures::stream::iter([Signal::Terminate]).chain(futures::stream::pending()).boxed();
    compose("c", vars(), signals, made, |_| std::future::pending()).await.unwrap();

    let whole = async |given: Runtime| {
        assert_eq!((given.component(), given.environment().unwrap().namespace()), ("c", "ns"));
        let Runtime { strategy, config, .. } = runtime(env(&[]), LONG);
        Ok(Runtime { strategy, config, ..given })
    };
    compose("c", vars(), none(), made, whole).await.unwrap();
}

/// What keeps it from a configuration may last: alive, not ready, and why; on the same ports as later.
#[tokio::test]
async fn the_ports_answer_while_the_configuration_is_waited_for() {
    let signals = futures::stream::pending();
    let waits = Runtime::new("c").env(env(&[])).signals(signals).listen().await.unwrap();
    let (Some(probes), Some(metrics)) = waits.ports.as_ref().unwrap().numbers() else { panic!("no ports") };
    install_tls();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = async |port: u16, path: &str| {
        let answer = http.get(format!("http://127.0.0.1:{port}{path}")).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    waits.no_configuration(&"nobody granted it");
    for (path, code) in [("/readyz", 503), ("/readiness", 503), ("/healthz", 200), ("/livez", 200), ("/health", 200)] {
        let (found, words) = ask(probes, path).await;
        assert_eq!((found, words.contains("c is starting")), (code, true), "{path}: {words}");
    }
    let (_, words) = ask(probes, "/readyz?verbose").await;
    assert!(words.contains("configuration: none yet: nobody granted it"), "{words}");
    let (_, page) = ask(metrics, "/metrics").await;
    assert!(page.contains("leasehold_config_watch_failures_total 1\n"), "{page}");

    let Runtime { strategy, config, .. } = runtime(env(&[]), LONG);
    let (ended, ends) = tokio::sync::oneshot::channel();
    let ends = Mutex::new(Some(ends));
    let adapter = Works(move |_: Context| {
        let ends = ends.lock().unwrap().take();
        async move {
            ends.unwrap().await.unwrap();
            Ok(())
        }
    });
    let run = tokio::spawn(Runtime { strategy, config, ..waits }.try_run(adapter));
    let ready = async {
        while ask(probes, "/readyz").await.0 != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.unwrap();
    assert!(ask(metrics, "/metrics").await.1.contains("leasehold_buckets_held"));
    ended.send(()).unwrap();
    run.await.unwrap().unwrap();
}

/// The author's own listener is promoted after the table of the gate, and demoted before it.
struct Listens {
    told: mpsc::UnboundedSender<String>,
}

struct Aware {
    ctx: Context,
    told: mpsc::UnboundedSender<String>,
}

impl crate::leader::LeaderAware for Aware {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        let known = self.ctx.leadership().terms().iter().any(|t| t.is_same(&term));
        let _ = self.told.send(format!("+{} {known}", term.bucket()));
        Ok(())
    }
    async fn demote(&self, bucket: &Bucket, reason: Reason) {
        let known = self.ctx.leadership().terms().iter().any(|t| t.bucket() == bucket);
        let _ = self.told.send(format!("-{bucket} {known} {}", reason.as_str()));
    }
}

impl Adapter for Listens {
    async fn start(&self, ctx: Context) -> Result<(), BoxError> {
        ctx.stopping().await;
        Ok(())
    }
    fn aware(&self, ctx: &Context) -> Option<Arc<dyn DynLeaderAware>> {
        Some(Arc::new(Aware { ctx: ctx.clone(), told: self.told.clone() }))
    }
}

#[tokio::test]
async fn an_authors_own_listener_stands_between_the_gate_and_the_events() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let mut process = Process::start(&[], LONG, Listens { told }).await;
    process.promoted().await;
    process.signal();
    process.end().await.0.unwrap();
    let mut all = Vec::new();
    while let Some(one) = heard.recv().await {
        all.push(one);
    }
    all.sort();
    assert_eq!(
        all,
        [
            "+c.adapter.00-of-02 true",
            "+c.adapter.01-of-02 true",
            "-c.adapter.00-of-02 true shutdown",
            "-c.adapter.01-of-02 true shutdown",
        ]
    );
}
