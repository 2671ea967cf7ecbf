//! What the tests of this module share: terms begun by hand, and a sink that does what it is told with each request.

use crate::bucket::{Bucket, BucketSet, Hash};
use crate::clock::{Boottime, Clock};
use crate::config::{Config, StrategyKind, Timing};
use crate::leader::tenure::{Limits, Surroundings, Tenure, Told};
use crate::leader::{Deadline, DynLeaderAware, FencingToken, Leadership, Term, TermParts};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// The program installs it in main.
pub(crate) fn install_tls() {
    #[cfg(feature = "program")]
    let _ = rustls::crypto::ring::default_provider().install_default();
}

pub(crate) fn config() -> Config {
    let secs = Duration::from_secs;
    Config {
        timing: Timing { lease_duration: secs(15), renew_deadline: secs(10), retry_period: secs(2) },
        buckets: 2,
        hash: Hash::Knative,
        strategy: StrategyKind::Standard,
        prefix_map: BTreeMap::new(),
        identity: None,
        rebalance_delay: secs(15),
        drain_timeout: secs(10),
        foreign_grace: None,
        checkpoint_interval: None,
        fixed: true,
    }
}

pub(crate) fn limits(drain_timeout: Duration) -> Limits {
    let secs = Duration::from_secs;
    Limits { promote: secs(10), drain_timeout, lease_duration: secs(15), renew_deadline: secs(10) }
}

/// The bucket of strategy `unopposed`.
pub(crate) fn everything() -> Bucket {
    BucketSet::universal().bucket(0)
}

/// A term under way, with its gate open.
pub(crate) struct Held {
    pub(crate) term: Term,
    pub(crate) tenure: Tenure,
    pub(crate) told: mpsc::UnboundedReceiver<Told>,
}

/// Holds `bucket` for `lasts`, by the machine's clock.
pub(crate) async fn hold(bucket: Bucket, token: Option<FencingToken>, lasts: Duration) -> Held {
    let deadline = Deadline::at(Boottime.now() + lasts);
    begin(bucket, token, deadline, Arc::new(Leadership::new())).await
}

/// Holds `bucket` until `deadline`, promoting `aware`.
pub(crate) async fn begin(
    bucket: Bucket,
    token: Option<FencingToken>,
    deadline: Arc<Deadline>,
    aware: Arc<dyn DynLeaderAware>,
) -> Held {
    let (told_to, mut told) = mpsc::unbounded_channel();
    let term = Term::new(TermParts { bucket, token, deadline, clock: Arc::new(Boottime), saved: None });
    let around = Surroundings {
        aware,
        clock: Arc::new(Boottime),
        observer: Arc::new(|_: &crate::leader::observe::Event| {}),
        on_fatal: Arc::new(|why| panic!("{why}")),
        told: told_to,
    };
    let tenure = Tenure::begin(term.clone(), limits(Duration::from_secs(10)), around);
    assert!(matches!(told.recv().await, Some(Told::Promoted(_))));
    Held { term, tenure, told }
}

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Counts the connections from 0.
    pub(crate) connection: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, Vec<u8>>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| std::str::from_utf8(v).unwrap())
    }
}

/// What the sink does with a request that it has read.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    /// Writes this and goes on with the connection.
    Say(Vec<u8>),
    /// Writes this and closes.
    Close(Vec<u8>),
    /// Writes this and then nothing more, for ever.
    Hang(Vec<u8>),
    /// Resets the connection.
    Reset,
}

/// A status line and no body.
pub(crate) fn status(code: u16) -> Do {
    Do::Say(format!("HTTP/1.1 {code:03} X\r\nContent-Length: 0\r\n\r\n").into_bytes())
}

/// What the sink does with a connection before it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    Read,
    Close,
    Reset,
}

type Script = Arc<dyn Fn(usize, &Seen) -> Do + Send + Sync>;

/// A TCP server on loopback that speaks HTTP as badly as it is told to.
pub(crate) struct RawSink {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrivals: watch::Receiver<usize>,
    _task: tokio_util::task::AbortOnDropHandle<()>,
}

impl RawSink {
    /// `script` is given the number of the request, from 0.
    pub(crate) async fn start(script: impl Fn(usize, &Seen) -> Do + Send + Sync + 'static) -> Self {
        Self::accepting(Accept::Read, script).await
    }

    pub(crate) async fn accepting(accept: Accept, script: impl Fn(usize, &Seen) -> Do + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = watch::channel(0);
        let (script, arrived): (Script, _) = (Arc::new(script), Arc::new(arrived));
        let task = {
            let seen = seen.clone();
            tokio::spawn(async move {
                // Dropped with the server: no connection outlives it.
                let mut connections = tokio::task::JoinSet::new();
                for connection in 0.. {
                    let (stream, _) = listener.accept().await.unwrap();
                    match accept {
                        Accept::Read => {}
                        Accept::Close => {
                            arrived.send_modify(|n| *n += 1);
                            continue;
                        }
                        Accept::Reset => {
                            stream.set_zero_linger().unwrap();
                            arrived.send_modify(|n| *n += 1);
                            continue;
                        }
                    }
                    let (seen, script, arrived) = (seen.clone(), script.clone(), arrived.clone());
                    connections.spawn(async move { converse(stream, connection, &seen, &script, &arrived).await });
                }
            })
        };
        Self { port, seen, arrivals, _task: tokio_util::task::AbortOnDropHandle::new(task) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Requests, or connections where none is read.
    pub(crate) fn arrivals(&self) -> usize {
        *self.arrivals.borrow()
    }

    pub(crate) async fn arrived(&self, n: usize) {
        self.arrivals.clone().wait_for(|now| *now >= n).await.unwrap();
    }
}

async fn converse(
    mut stream: TcpStream,
    connection: usize,
    seen: &Mutex<Vec<Seen>>,
    script: &Script,
    arrived: &watch::Sender<usize>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer, connection).await {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        let reply = script(number, &request);
        if let Do::Say(bytes) | Do::Close(bytes) | Do::Hang(bytes) = &reply
            && stream.write_all(bytes).await.is_err()
        {
            arrived.send_modify(|n| *n += 1);
            return;
        }
        arrived.send_modify(|n| *n += 1);
        match reply {
            Do::Say(_) => {}
            Do::Close(_) => return,
            Do::Hang(_) => std::future::pending().await,
            Do::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<Seen> {
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let head: Vec<Vec<u8>> =
                buffer[..end].split(|b| *b == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l).to_vec()).collect();
            let headers: BTreeMap<String, Vec<u8>> = head[1..]
                .iter()
                .map(|line| {
                    let colon = line.iter().position(|b| *b == b':').unwrap();
                    let name = String::from_utf8(line[..colon].to_vec()).unwrap().to_lowercase();
                    (name, line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..]).to_vec())
                })
                .collect();
            let length =
                headers.get("content-length").map_or(0, |v| std::str::from_utf8(v).unwrap().parse::<usize>().unwrap());
            if buffer.len() >= end + 4 + length {
                let line = String::from_utf8(head[0].clone()).unwrap();
                let mut words = line.split(' ').map(ToOwned::to_owned);
                let body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                let (method, target) = (words.next().unwrap(), words.next().unwrap());
                return Some(Seen { connection, method, target, headers, body });
            }
        }
        match stream.read(&mut chunk).await {
            Ok(n) if n > 0 => buffer.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    }
}
