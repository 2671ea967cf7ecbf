//! What only a socket shows: connections, their ends, their limits, and who is at the other end.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use leasehold::dev::apiserver::{CLIENT_HEADER, Effect, Listening, Match, Options, Outage, Server, Verb};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::support::PATIENCE;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

async fn server() -> (Server, Listening) {
    let server = Server::new(Options::default());
    let listening = server.listen("127.0.0.1:0").await.expect("a free port");
    (server, listening)
}

fn request(method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header(CLIENT_HEADER, "tester")
        .body(Full::new(bytes))
        .expect("a request")
}

/// One request on a connection of its own, HTTP/1.1.
async fn send(listening: &Listening, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
    let stream = TcpStream::connect(listening.local_addr()).await.expect("listens");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    tokio::time::timeout(PATIENCE, sender.send_request(request)).await.expect("answers")
}

async fn json_of(response: Response<Incoming>) -> Value {
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&bytes).expect("JSON")
}

fn lease(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"holderIdentity": "a"}})
}

#[tokio::test]
async fn the_two_faces_show_one_server() {
    let (server, l) = server().await;
    let made = send(&l, request("POST", LEASES, &lease("l"))).await.expect("answers");
    assert_eq!(made.status(), StatusCode::CREATED);
    let made = json_of(made).await;
    let api: kube::Api<k8s_openapi::api::coordination::v1::Lease> =
        kube::Api::namespaced(server.client("inside").kube("default"), "default");
    let same = api.get("l").await.expect("there");
    assert_eq!(same.metadata.uid.as_deref(), made["metadata"]["uid"].as_str());
    assert_eq!(server.counts(Some("tester"), "leases").create, 1);
    assert_eq!(server.counts(Some("inside"), "leases").get, 1);
}

#[tokio::test]
async fn http2_without_negotiation() {
    let (_server, l) = server().await;
    let stream = TcpStream::connect(l.local_addr()).await.expect("listens");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    let url = format!("http://{}{LEASES}", l.local_addr());
    let get = Request::get(url).body(Full::new(Bytes::new())).expect("a request");
    let response = sender.send_request(get).await.expect("answers");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.version(), http::Version::HTTP_2);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_413() {
    let (_server, l) = server().await;
    let big = json!({"metadata": {"name": "l", "annotations": {"a": "x".repeat(4 * 1024 * 1024)}}});
    // The server may answer and close before all of it has been sent.
    if let Ok(response) = send(&l, request("POST", LEASES, &big)).await {
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    let small = send(&l, request("POST", LEASES, &lease("l"))).await.expect("answers");
    assert_eq!(small.status(), StatusCode::CREATED, "the server lives on");
}

#[tokio::test]
async fn a_dropped_connection_is_one() {
    let (server, l) = server().await;
    let f = server.faults("tester");
    f.inject(Match::verb(Verb::Create).name("lost").times(1), Effect::DropAfter);
    assert!(send(&l, request("POST", LEASES, &lease("lost"))).await.is_err(), "no answer");
    assert!(server.object("coordination.k8s.io", "leases", "default", "lost").is_some(), "and yet it landed");
    let outage = f.outage(Outage::Refused);
    assert!(send(&l, request("GET", LEASES, &Value::Null)).await.is_err());
    f.remove(outage);
    let limited = f.inject(Match::any(), Effect::AnswerBefore(429, Some(7)));
    let response = send(&l, request("GET", LEASES, &Value::Null)).await.expect("answers");
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].as_bytes()), (429, &b"7"[..]));
    f.remove(limited);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_watch() {
    let (server, l) = server().await;
    let watch = request("GET", &format!("{LEASES}?watch=1"), &Value::Null);
    let response = send(&l, watch).await.expect("answers");
    assert_eq!(server.faults("tester").open_watches(&Match::any()), 1);
    drop(response);
    let gone = async {
        while server.faults("tester").open_watches(&Match::any()) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("noticed");
}

#[tokio::test]
async fn stopping_ends_what_is_open() {
    let (server, l) = server().await;
    let addr = l.local_addr();
    let response = send(&l, request("GET", &format!("{LEASES}?watch=1"), &Value::Null)).await.expect("answers");
    let body = tokio::spawn(async move { response.into_body().collect().await.is_err() });
    tokio::time::timeout(PATIENCE, l.stop()).await.expect("stops");
    assert!(tokio::time::timeout(PATIENCE, body).await.expect("ends").expect("no panic"), "broken");
    assert!(TcpStream::connect(addr).await.is_err(), "nobody listens");
    assert_eq!(server.faults("*").open_watches(&Match::any()), 0);
}

#[tokio::test]
async fn nonsense_is_answered() {
    let (_server, l) = server().await;
    for (method, path, body, code) in [
        ("GET", "/nowhere", Value::Null, 404),
        ("GET", "/api/v1/widgets", Value::Null, 404),
        ("POST", "/healthz", Value::Null, 405),
        ("PATCH", &format!("{LEASES}/l"), json!({}), 415),
        ("OPTIONS", LEASES, Value::Null, 405),
        ("GET", "/api/v1/%ff", Value::Null, 404),
        ("GET", "/openapi/v3/apis/none/v1", Value::Null, 404),
    ] {
        let response = send(&l, request(method, path, &body)).await.expect("answers");
        assert_eq!(response.status(), code, "{method} {path}");
        assert_eq!(json_of(response).await["kind"], "Status", "{method} {path}");
    }
}
