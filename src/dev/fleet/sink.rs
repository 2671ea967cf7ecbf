//! Where the replicas send their events: an HTTP server on loopback that notes each and says yes.
//!
//! # Guarantees
//! - An event is noted before it is answered: what a replica may count as delivered is in the books.
//! - Its time is read when its head has arrived, before its body.
//!
//! # Caveats
//! Binary mode only, which is what adapters send by default; anything else is refused, and counted.

use crate::clock::{Instant, SharedClock};
use crate::leader::FencingToken;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::serve::ListenerExt as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The largest body that is taken.
const LARGEST: usize = 4 << 20;

/// An event as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    /// Its `source`.
    pub(super) source: String,
    /// A hash of its `id`.
    pub(super) id: u64,
    /// Its `time`, where that is a whole second: the Unix second for which it was scheduled.
    pub(super) second: Option<i64>,
    /// `leasebucket` and `leaseepoch`, where both are there.
    pub(super) term: Option<(String, FencingToken)>,
    /// When its head had arrived.
    pub(super) at: Instant,
}

/// Hears of each event, and of each request that is none.
pub(super) type Listener = Arc<dyn Fn(Result<Delivery, String>) + Send + Sync>;

/// A sink that listens; dropping it ends it.
#[derive(Debug)]
pub(super) struct Sink {
    url: String,
    server: tokio::task::JoinHandle<()>,
}

impl Sink {
    /// Listens on a free port of loopback and tells `listener` of what comes.
    ///
    /// # Errors
    /// No port can be had.
    pub(super) async fn start(clock: SharedClock, listener: Listener) -> std::io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/", tcp.local_addr()?);
        let app = axum::Router::new().fallback(take).with_state(Shared { clock, listener });
        // An answer is small and waited for: it must not wait for more to say.
        let tcp = tcp.tap_io(|stream| drop(stream.set_nodelay(true)));
        let server = tokio::spawn(async move {
            if let Err(e) = axum::serve(tcp, app).await {
                tracing::error!("the sink ended: {e}");
            }
        });
        Ok(Self { url, server })
    }

    /// Where it is: K_SINK.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[derive(Clone)]
struct Shared {
    clock: SharedClock,
    listener: Listener,
}

async fn take(State(shared): State<Shared>, request: Request) -> (StatusCode, String) {
    let at = shared.clock.now();
    let read = if request.method() == axum::http::Method::POST {
        read(request.headers(), at)
    } else {
        Err((StatusCode::METHOD_NOT_ALLOWED, format!("{} is not POST", request.method())))
    };
    // Read to its end, so that the connection can be used again.
    let body = axum::body::to_bytes(request.into_body(), LARGEST).await;
    let outcome = read.and_then(|delivery| match body {
        Ok(_) => Ok(delivery),
        Err(e) => Err((StatusCode::PAYLOAD_TOO_LARGE, format!("its body could not be read: {e}"))),
    });
    match outcome {
        Ok(delivery) => {
            (shared.listener)(Ok(delivery));
            (StatusCode::ACCEPTED, String::new())
        }
        Err((status, text)) => {
            (shared.listener)(Err(text.clone()));
            (status, text)
        }
    }
}

/// The attributes of an event in binary mode.
fn read(headers: &HeaderMap, at: Instant) -> Result<Delivery, (StatusCode, String)> {
    let bad = |text: String| (StatusCode::BAD_REQUEST, text);
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], axum::http::HeaderValue::as_bytes);
    if kind.starts_with(b"application/cloudevents") {
        let text = "structured or batched mode: this sink takes events in binary mode".to_owned();
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let needed =
        |name: &str| attribute(headers, name).ok_or_else(|| bad(format!("no CloudEvent: ce-{name} is missing")));
    let (_, _) = (needed("specversion")?, needed("type")?);
    let (id, source) = (needed("id")?, needed("source")?);
    let second = match attribute(headers, "time") {
        None => None,
        Some(text) => {
            let time: jiff::Timestamp = text.parse().map_err(|e| bad(format!("ce-time {text:?}: {e}")))?;
            (time.subsec_nanosecond() == 0).then(|| time.as_second())
        }
    };
    let term = match (attribute(headers, "leasebucket"), attribute(headers, "leaseepoch")) {
        (Some(bucket), Some(epoch)) => Some((bucket, epoch.parse().map_err(|e| bad(format!("ce-leaseepoch: {e}")))?)),
        _ => None,
    };
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    Ok(Delivery { source, id: hasher.finish(), second, term, at })
}

/// One attribute: header values are percent-encoded (CloudEvents HTTP binding 1.0.2, section 3.1.3.2).
fn attribute(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(format!("ce-{name}"))?.as_bytes();
    Some(percent_encoding::percent_decode(value).decode_utf8_lossy().into_owned()).filter(|v| !v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Boottime;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::mpsc;

    async fn send(sink: &Sink, request: &str) -> String {
        let address = sink.url().trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn post(headers: &str) -> String {
        format!("POST / HTTP/1.1\r\nhost: sink\r\nconnection: close\r\ncontent-length: 2\r\n{headers}\r\n{{}}")
    }

    const TICK: &str = "ce-specversion: 1.0\r\nce-type: t\r\nce-id: a\r\nce-source: /a%20b\r\n";

    #[tokio::test]
    async fn an_event_is_noted_before_it_is_answered() {
        let (heard, mut hears) = mpsc::unbounded_channel();
        let listener: Listener = Arc::new(move |delivery| heard.send(delivery).unwrap());
        let sink = Sink::start(Arc::new(Boottime), listener).await.unwrap();
        let more =
            "ce-time: 2026-01-02T03:04:05Z\r\nce-leasebucket: b\r\nce-leaseepoch: 00000000000000000000000007\r\n";
        let answer = send(&sink, &post(&format!("{TICK}{more}"))).await;
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        let delivery = hears.try_recv().unwrap().unwrap();
        assert_eq!(delivery.source, "/a b");
        assert_eq!(delivery.second, Some(1_767_323_045));
        assert_eq!(delivery.term, Some(("b".to_owned(), FencingToken::new(0, 7))));
    }

    #[tokio::test]
    async fn what_is_no_event_is_refused_and_told() {
        let (heard, mut hears) = mpsc::unbounded_channel();
        let listener: Listener = Arc::new(move |delivery| heard.send(delivery).unwrap());
        let sink = Sink::start(Arc::new(Boottime), listener).await.unwrap();
        for (request, status) in [
            (post("content-type: application/json\r\n"), "400"),
            (post("content-type: application/cloudevents+json\r\n"), "415"),
            (post(&format!("{TICK}ce-time: yesterday\r\n")), "400"),
            (post(&format!("{TICK}ce-leasebucket: b\r\nce-leaseepoch: 7\r\n")), "400"),
            ("GET / HTTP/1.1\r\nhost: sink\r\nconnection: close\r\n\r\n".to_owned(), "405"),
        ] {
            let answer = send(&sink, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
            assert!(hears.try_recv().unwrap().is_err());
        }
    }

    #[test]
    fn a_time_between_seconds_is_no_tick() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("ce-specversion", "1.0"),
            ("ce-type", "t"),
            ("ce-id", "a"),
            ("ce-source", "s"),
            ("ce-time", "2026-01-02T03:04:05.5+01:00"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        assert_eq!(read(&headers, Instant::ORIGIN).unwrap().second, None);
    }
}
