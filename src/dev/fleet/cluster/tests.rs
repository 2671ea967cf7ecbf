//! The fleet's own watch over a client that is scripted, and the real cluster's part over HTTP.

use super::*;
use crate::clock::Boottime;
use crate::dev::fleet::judge::Seen;
use crate::dev::fleet::options::Options;
use axum::http::{Method, Uri};
use kube::client::Body;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

/// What a scripted server answers, in order: a body, or none for a request that is never answered.
fn scripted(answers: &[Option<&'static str>]) -> (kube::Client, Arc<Mutex<Vec<String>>>) {
    let answers = Arc::new(Mutex::new(answers.iter().copied().collect::<VecDeque<_>>()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let watch = query.contains("watch=true");
        let from = query.split('&').find_map(|p| p.strip_prefix("resourceVersion=")).unwrap_or("-").to_owned();
        log.lock().unwrap().push(if watch { format!("watch {from}") } else { "list".to_owned() });
        let answer = answers.lock().unwrap().pop_front().flatten();
        async move {
            match answer {
                Some(text) => Ok::<_, Infallible>(http::Response::new(Body::from(text.as_bytes().to_vec()))),
                None => std::future::pending().await,
            }
        }
    });
    (kube::Client::new(service, "ns"), asked)
}

const LIST: &str = r#"{"apiVersion":"coordination.k8s.io/v1","kind":"LeaseList","metadata":{"resourceVersion":"5"},"items":[
{"metadata":{"name":"b0","resourceVersion":"3"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.000006Z"}},
{"metadata":{"name":"odd","resourceVersion":"4"}}]}"#;
const EVENTS: &str = r#"{"type":"MODIFIED","object":{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"b0","resourceVersion":"7"},"spec":{"holderIdentity":"b"}}}
{"type":"BOOKMARK","object":{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"resourceVersion":"9"}}}
{"type":"ADDED","object":{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"b1","resourceVersion":"10"},"spec":{"holderIdentity":"c"}}}
{"type":"DELETED","object":{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"odd","resourceVersion":"11"}}}
"#;
const GONE: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}}
"#;
const LATER: &str = r#"{"apiVersion":"coordination.k8s.io/v1","kind":"LeaseList","metadata":{"resourceVersion":"20"},"items":[
{"metadata":{"name":"b1","resourceVersion":"18"},"spec":{"holderIdentity":"c"}}]}"#;

#[tokio::test(start_paused = true)]
async fn the_watch_goes_on_from_where_it_was_and_lists_where_it_must() {
    let (client, asked) = scripted(&[Some(LIST), Some(EVENTS), Some(GONE), Some(LATER), None]);
    let own = OwnRequests::default();
    let mut seen = Vec::new();
    let watching = watch_leases(client, "ns", &Boottime, &own, |s: Seen| seen.push(s));
    assert!(tokio::time::timeout(std::time::Duration::from_secs(8), watching).await.is_err(), "it watches for ever");
    assert_eq!(*asked.lock().unwrap(), ["list", "watch 5", "watch 11", "list", "watch 20"]);
    let shown: Vec<(&str, Option<&str>)> = seen.iter().map(|s| (s.name.as_str(), s.holder.as_deref())).collect();
    assert_eq!(
        shown,
        [
            ("b0", Some("a")),
            ("odd", None),
            ("b0", Some("b")),
            ("b1", Some("c")),
            ("odd", None),
            // The second list: who is there, then who is not any more.
            ("b1", Some("c")),
            ("b0", None),
        ]
    );
    assert_eq!((seen[0].seconds, seen[0].renewed), (Some(15), Some(1_767_323_045_000_006)));
    assert!(seen.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let counted = (own.counted_at_begin(), own.counted_at_end());
    assert_eq!((counted.0.list, counted.0.watch, counted.1.watch), (2, 3, 3), "a cancelled watch has ended too");
}

#[tokio::test(start_paused = true)]
async fn what_is_never_answered_is_asked_anew() {
    let (client, asked) = scripted(&[None, Some(LIST), None, Some(LATER), None]);
    let own = OwnRequests::default();
    let watching = watch_leases(client, "ns", &Boottime, &own, |_| {});
    let _ = tokio::time::timeout(std::time::Duration::from_secs(25), watching).await;
    assert_eq!(*asked.lock().unwrap(), ["list", "list", "watch 5", "list", "watch 20"]);
}

/// A kube-apiserver as far as [`Real`] knows it.
async fn server(asked: Arc<Mutex<Vec<String>>>) -> (std::net::SocketAddr, tokio_util::task::AbortOnDropHandle<()>) {
    let tcp = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = tcp.local_addr().unwrap();
    let app = axum::Router::new().fallback(move |method: Method, uri: Uri, body: String| {
        asked.lock().unwrap().push(format!("{method} {}", uri.path()));
        let metrics = "apiserver_request_total{group=\"coordination.k8s.io\",resource=\"leases\",verb=\"PUT\"} 12\n\
                       apiserver_request_total{group=\"coordination.k8s.io\",resource=\"leases\",verb=\"LIST\"} 4\n";
        let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;
        let answer = match (method.as_str(), uri.path()) {
            ("GET", "/metrics") => metrics.to_owned(),
            ("POST", _) => body,
            _ => status.to_owned(),
        };
        async move { answer }
    });
    let serving = tokio::spawn(async move { axum::serve(tcp, app).await.unwrap() });
    (address, tokio_util::task::AbortOnDropHandle::new(serving))
}

#[tokio::test]
async fn a_real_cluster_gets_a_namespace_of_its_own_and_loses_it_again() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (address, _serving) = server(Arc::clone(&asked)).await;
    let scratch = crate::dev::fleet::Scratch::new().unwrap();
    let file = scratch.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{server: \"http://{address}\"}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    );
    std::fs::write(&file, text).unwrap();

    let cluster = Real::new(&file).await.unwrap();
    let namespace = cluster.namespace().to_owned();
    assert!(namespace.starts_with("leasehold-dev-") && cluster.kubeconfig().is_absolute());
    prepare(&cluster, &Options::default()).await.unwrap();
    let own = OwnRequests::default();
    own.list();
    own.watch_begun();
    let requests = cluster.lease_requests(&own).await.unwrap();
    assert_eq!(requests, Requests { update: 12, list: 3, ..Requests::default() });
    cluster.close().await.unwrap();
    let expected = [
        "POST /api/v1/namespaces".to_owned(),
        format!("POST /api/v1/namespaces/{namespace}/configmaps"),
        "GET /metrics".to_owned(),
        format!("DELETE /apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
        format!("DELETE /api/v1/namespaces/{namespace}/configmaps"),
        format!("DELETE /api/v1/namespaces/{namespace}"),
    ];
    assert_eq!(*asked.lock().unwrap(), expected);
    // Another run is in another namespace.
    assert_ne!(Real::new(&file).await.unwrap().namespace(), namespace);
    scratch.discard();
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_named() {
    let error = Real::new(std::path::Path::new("/nonexistent/config")).await.err().unwrap();
    assert!(error.to_string().contains("/nonexistent/config"), "{error}");
}

#[test]
fn verbs_are_counted_as_servers_write_them() {
    let mut requests = Requests::default();
    for verb in
        ["GET", "list", "WATCH", "POST", "create", "PUT", "update", "DELETE", "deletecollection", "APPLY", "CONNECT"]
    {
        requests.add(verb, 1);
    }
    let expected = Requests { get: 1, list: 1, watch: 1, create: 2, update: 2, delete: 2, patch: 1 };
    assert_eq!(requests, expected);
    assert_eq!(Requests::default() - expected, Requests::default(), "a server that was restarted counts from 0");
}
