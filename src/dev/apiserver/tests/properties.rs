//! What must hold whatever is asked.

use std::collections::BTreeMap;

use http::Method;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Update(u8, u8),
    Delete(u8),
    Label(u8, bool),
    Pause,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..4_u8).prop_map(Step::Create),
        (0..4_u8, 0..3_u8).prop_map(|(n, v)| Step::Update(n, v)),
        (0..4_u8).prop_map(Step::Delete),
        (0..4_u8, any::<bool>()).prop_map(|(n, on)| Step::Label(n, on)),
        Just(Step::Pause),
    ];
    proptest::collection::vec(step, 1..60)
}

async fn merge(s: &Server, name: u8, body: Value) {
    let path = format!("{LEASES}/l{name}");
    raw_as(s, "raw", Method::PATCH, &path, "application/merge-patch+json", body).await;
}

fn run<F: std::future::Future<Output = ()>>(f: F) {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    rt.expect("a runtime").block_on(f);
}

/// What a watch's events add up to.
fn replayed(lines: &Lines) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    for line in lines.all() {
        let name = line["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match line["type"].as_str() {
            Some("ADDED") => assert!(out.insert(name, line["object"].clone()).is_none(), "added twice"),
            Some("MODIFIED") => assert!(out.insert(name, line["object"].clone()).is_some(), "modified before added"),
            Some("DELETED") => assert!(out.remove(&name).is_some(), "deleted before added"),
            other => panic!("{other:?}"),
        }
    }
    out
}

async fn listed(s: &Server, query: &str) -> BTreeMap<String, Value> {
    let (_, list) = raw(s, Method::GET, &format!("{LEASES}?{query}"), Value::Null).await;
    let items = list["items"].as_array().expect("items").clone();
    items.into_iter().map(|o| (o["metadata"]["name"].as_str().expect("named").to_owned(), o)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A watch adds up to the list, with a selector and without, from the start and from any revision on.
    #[test]
    fn a_watch_adds_up_to_the_list(steps in steps()) {
        run(async move {
            let s = server();
            let (all, _a) = watch(&s, "w", &format!("{LEASES}?watch=1")).await;
            let (some, _b) = watch(&s, "w", &format!("{LEASES}?watch=1&labelSelector=on")).await;
            let mut history = vec![(s.revision(), listed(&s, "").await)];
            for step in &steps {
                match step {
                    Step::Create(n) => {
                        raw(&s, Method::POST, LEASES, json!({"metadata": {"name": format!("l{n}")}})).await;
                    }
                    Step::Update(n, v) => merge(&s, *n, json!({"spec": {"holderIdentity": format!("h{v}")}})).await,
                    Step::Delete(n) => {
                        raw(&s, Method::DELETE, &format!("{LEASES}/l{n}"), Value::Null).await;
                    }
                    Step::Label(n, on) => {
                        let label = if *on { json!("x") } else { Value::Null };
                        merge(&s, *n, json!({"metadata": {"labels": {"on": label}}})).await;
                    }
                    Step::Pause => settle().await,
                }
                if history.last().is_some_and(|(r, _)| *r < s.revision()) {
                    history.push((s.revision(), listed(&s, "").await));
                }
            }
            settle().await;
            assert_eq!(replayed(&all), listed(&s, "").await);
            assert_eq!(replayed(&some), listed(&s, "labelSelector=on").await);
            for (revision, then) in history {
                let exact = format!("resourceVersion={revision}&resourceVersionMatch=Exact");
                assert_eq!(listed(&s, &exact).await, then, "as of {revision}");
            }
        });
    }

    /// Nothing that is sent makes the server panic, and every answer is JSON.
    #[test]
    fn anything_is_answered(
        method in prop::sample::select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
        path in prop::sample::select(vec![
            "/", "/api", "/apis", "/openapi/v3", LEASES, "/apis/coordination.k8s.io/v1/namespaces/default/leases/l",
            "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/events/e", "/api/v1/namespaces/default",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces//pods/", "/version",
        ]),
        query in "[a-zA-Z=&%0-9,!]{0,40}",
        media in prop::sample::select(vec![
            "application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
            "application/strategic-merge-patch+json", "application/apply-patch+yaml",
            "application/vnd.kubernetes.protobuf", "nonsense",
        ]),
        body in prop_oneof![
            any::<Vec<u8>>(),
            "\\PC{0,60}".prop_map(String::into_bytes),
            any::<u8>().prop_map(|n| json!({"metadata": {"name": "l", "labels": n}, "spec": {"containers": n}}).to_string().into_bytes()),
            any::<u8>().prop_map(|n| json!({"metadata": {"name": "l", "finalizers": [n]}, "spec": [], "data": {"a": n}}).to_string().into_bytes()),
            Just(json!({"metadata": {"name": "l", "managedFields": [{"fieldsV1": {"f:": {"k:x": {}, "v:": 1}}}]}, "spec": {"versions": [1, {}]}}).to_string().into_bytes()),
            Just(b"k8s\0\n\x04\n\x02v1\x12\xff\xff".to_vec()),
        ],
    ) {
        run(async move {
            let s = server();
            leases(&s, "a").create(&kube::api::PostParams::default(), &lease("l", "a")).await.expect("made");
            let Ok(request) = Request::builder()
                .method(method)
                .uri(format!("{path}?{query}&fieldManager=x"))
                .header("content-type", media)
                .body(kube::client::Body::from(body))
            else {
                return;
            };
            let response = s.client("fuzz").oneshot(request).await.expect("no fault");
            let whole = response.headers().get("content-type").expect("a type").to_str().expect("text").to_owned();
            if response.status() != 200 || whole.starts_with("application/json") {
                let end = tokio::time::timeout(Duration::from_hours(2), response.into_body().collect()).await;
                end.expect("a watch ends by itself").expect("no fault");
            }
        });
    }
}
