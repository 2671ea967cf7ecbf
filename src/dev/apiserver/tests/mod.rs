//! The in-process face, through `kube::Client`, on paused time.

mod facts;
mod faulty;
mod objects;
mod patching;
mod properties;
mod watching;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Options, Server};
use crate::clock::{Clock, Instant, SharedClock};

/// A clock that stands where tokio's paused clock stands.
#[derive(Debug)]
pub(super) struct TestClock(tokio::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.0.elapsed()
    }

    fn wall(&self) -> jiff::Timestamp {
        let nanos = i64::try_from(self.0.elapsed().as_nanos()).expect("a short test");
        jiff::Timestamp::from_second(1_700_000_000).expect("in range") + jiff::SignedDuration::from_nanos(nanos)
    }
}

pub(super) fn clock() -> SharedClock {
    Arc::new(TestClock(tokio::time::Instant::now()))
}

pub(super) fn server() -> Server {
    Server::new(Options::seeded(clock(), 7))
}

pub(super) fn leases(server: &Server, client: &str) -> Api<Lease> {
    Api::namespaced(server.client(client).kube("default"), "default")
}

pub(super) fn lease(name: &str, holder: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2024-01-01T00:00:00.000000Z", "renewTime": "2024-01-01T00:00:00.000000Z",
        },
    }))
    .expect("a Lease")
}

/// One request as bytes; the code and the JSON of the answer.
pub(super) async fn raw(server: &Server, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    raw_as(server, "raw", method, path, "application/json", body).await
}

pub(super) async fn raw_as(
    server: &Server,
    client: &str,
    method: Method,
    path: &str,
    content_type: &str,
    body: Value,
) -> (StatusCode, Value) {
    let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body).expect("JSON") };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(kube::client::Body::from(bytes))
        .expect("a request");
    let response = server.client(client).oneshot(request).await.expect("no fault");
    let code = response.status();
    let bytes = response.into_body().collect().await.expect("no fault").to_bytes();
    (code, serde_json::from_slice(&bytes).expect("JSON"))
}

pub(super) fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer: {other:?}"),
    }
}

/// The lines of a watch, as they come.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<Value>>>);

impl Lines {
    pub(super) fn all(&self) -> Vec<Value> {
        self.0.lock().expect("whole").clone()
    }

    pub(super) fn kinds(&self) -> Vec<String> {
        self.all().iter().map(|l| l["type"].as_str().expect("a type").to_owned()).collect()
    }
}

/// Opens a watch and follows it on a task of its own, which answers whether it broke.
pub(super) async fn watch(server: &Server, client: &str, path: &str) -> (Lines, tokio::task::JoinHandle<bool>) {
    let request = Request::get(path).body(kube::client::Body::empty()).expect("a request");
    let response = server.client(client).oneshot(request).await.expect("no fault");
    assert_eq!(response.status(), 200);
    let lines = Lines::default();
    let mut body = response.into_body();
    let out = lines.clone();
    let task = tokio::spawn(async move {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return true };
            let bytes = frame.into_data().expect("data");
            for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                out.0.lock().expect("whole").push(serde_json::from_slice(line).expect("JSON"));
            }
        }
        false
    });
    (lines, task)
}

/// Lets everything that is ready run.
pub(super) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub(super) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
