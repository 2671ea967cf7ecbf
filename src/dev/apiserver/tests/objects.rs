//! Objects of all kinds: what is made of them, judged, marked and removed.

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use super::*;
use crate::dev::apiserver::{Disconnected, ResponseBody};

pub(super) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(super) fn crd() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "properties": {
                            "size": {"type": "integer", "minimum": 1},
                            "mode": {"type": "string", "default": "slow"},
                            "parts": {
                                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                                "items": {"type": "object", "required": ["name"], "properties": {
                                    "name": {"type": "string"}, "n": {"type": "integer"},
                                }},
                            },
                        }},
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    }}},
                },
                {
                    "name": "v1beta1", "served": true, "storage": false,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                },
            ],
        },
    })
}

async fn response(s: &Server, request: Request<kube::client::Body>) -> http::Response<ResponseBody> {
    let answer: Result<_, Disconnected> = s.client("raw").oneshot(request).await;
    answer.expect("no fault")
}

#[tokio::test(start_paused = true)]
async fn leases_are_decoded_as_strictly_as_go_does() {
    let s = server();
    for (spec, wanted) in [
        (json!({"renewTime": "2024-01-01T00:00:00Z"}), "cannot parse \"Z\" as \".000000\""),
        (json!({"renewTime": 5}), "cannot unmarshal number into Go struct field LeaseSpec.spec.renewTime of type"),
        (json!({"leaseDurationSeconds": "15"}), "cannot unmarshal string into Go struct field"),
        (json!({"leaseDurationSeconds": 2_147_483_648_u64}), "of type int32"),
    ] {
        let (code, status) = raw(&s, Method::POST, LEASES, json!({"metadata": {"name": "l"}, "spec": spec})).await;
        assert_eq!((code.as_u16(), &status["reason"]), (400, &json!("BadRequest")), "{status}");
        let message = status["message"].as_str().expect("text");
        assert!(message.starts_with("Lease in version \"v1\" cannot be handled as a Lease: "), "{message}");
        assert!(message.contains(wanted), "{message}");
    }
    // Times in other zones are taken, and shown in UTC; nulls are left out; unknown fields draw a warning and go.
    let body = json!({
        "metadata": {"name": "l", "labels": null},
        "spec": {"renewTime": "2024-01-01T01:00:00.000000+01:00", "holderIdentity": null, "odd": 1},
    });
    let request =
        Request::post(LEASES).body(kube::client::Body::from(body.to_string().into_bytes())).expect("a request");
    let answer = response(&s, request).await;
    assert_eq!(answer.headers()["warning"], "299 - \"unknown field \\\"spec.odd\\\"\"");
    let made = s.object("coordination.k8s.io", "leases", "default", "l").expect("made");
    assert_eq!(made.value()["spec"], json!({"renewTime": "2024-01-01T00:00:00.000000Z"}));
    let (code, status) = raw(
        &s,
        Method::POST,
        &format!("{LEASES}?fieldValidation=Strict"),
        json!({"metadata": {"name": "m"}, "spec": {"odd": 1}}),
    )
    .await;
    assert_eq!(code, 400);
    assert!(status["message"].as_str().expect("text").contains("strict decoding error: unknown field \"spec.odd\""));
}

#[tokio::test(start_paused = true)]
async fn metadata_is_judged() {
    let s = server();
    for (meta, field) in [
        (json!({"name": "UPPER"}), "metadata.name"),
        (json!({"name": "a".repeat(254)}), "metadata.name"),
        (json!({}), "metadata.name"),
        (json!({"generateName": "Up-"}), "metadata.generateName"),
        (json!({"name": "a", "labels": {"a b": "c"}}), "metadata.labels"),
        (json!({"name": "a", "labels": {"a": "b c"}}), "metadata.labels"),
        (json!({"name": "a", "annotations": {"a b": "c"}}), "metadata.annotations"),
        (json!({"name": "a", "annotations": {"a": "x".repeat(262_144)}}), "metadata.annotations"),
        (json!({"name": "a", "finalizers": ["plain"]}), "metadata.finalizers"),
        (
            json!({"name": "a", "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u"}]}),
            "metadata.ownerReferences[0].apiVersion",
        ),
    ] {
        let (code, status) = raw(&s, Method::POST, MAPS, json!({"metadata": meta.clone()})).await;
        assert_eq!(code, 422, "{meta}: {status}");
        assert_eq!(status["details"]["causes"][0]["field"], field, "{status}");
        assert_eq!(status["details"]["kind"], "ConfigMap");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_change_does_not() {
    let s = server();
    let (_, made) = raw(&s, Method::POST, MAPS, json!({"metadata": {"name": "c"}})).await;
    let path = format!("{MAPS}/c");
    let mut changed = made.clone();
    changed["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    let (code, status) = raw(&s, Method::PUT, &path, changed).await;
    assert_eq!(code, 422);
    assert!(status["message"].as_str().expect("text").contains("field is immutable"), "{status}");
    // A ConfigMap may be put without a resourceVersion, and keeps what the client left out.
    let (code, put) = raw(&s, Method::PUT, &path, json!({"metadata": {"name": "c"}, "data": {"a": "b"}})).await;
    assert_eq!(code, 200);
    assert_eq!(put["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(put["metadata"]["creationTimestamp"], made["metadata"]["creationTimestamp"]);
}

#[tokio::test(start_paused = true)]
async fn names_are_generated() {
    let s = server();
    let mut names = Vec::new();
    for _ in 0..20 {
        let (code, made) = raw(&s, Method::POST, MAPS, json!({"metadata": {"generateName": "c-"}})).await;
        assert_eq!(code, 201);
        names.push(made["metadata"]["name"].as_str().expect("a name").to_owned());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 20);
    assert!(names.iter().all(|n| n.starts_with("c-") && n.len() == 7));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let s = server();
    let before = s.revision();
    let api: Api<ConfigMap> = Api::namespaced(s.client("a").kube("default"), "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let c: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "c"}})).expect("a ConfigMap");
    let made = api.create(&dry, &c).await.expect("would be made");
    assert!(made.metadata.uid.is_some());
    assert_eq!(s.revision(), before);
    api.create(&PostParams::default(), &c).await.expect("made");
    let at = s.revision();
    api.replace("c", &dry, &c).await.expect("would be replaced");
    api.delete("c", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.expect("would be deleted");
    assert_eq!(s.revision(), at);
    assert_eq!(code(&api.create(&dry, &c).await.expect_err("there")), 409, "judged all the same");
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let s = server();
    let path = format!("{MAPS}/c");
    raw(&s, Method::POST, MAPS, json!({"metadata": {"name": "c", "finalizers": ["x.io/hold"]}})).await;
    let (lines, _w) = watch(&s, "w", &format!("{MAPS}?watch=1")).await;
    let (code, marked) = raw(&s, Method::DELETE, &path, Value::Null).await;
    assert_eq!((code.as_u16(), &marked["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(0)));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let at = s.revision();
    let (code, _) = raw(&s, Method::DELETE, &path, Value::Null).await;
    assert_eq!((code.as_u16(), s.revision()), (200, at), "a second delete changes nothing");
    let (code, status) = raw(&s, Method::POST, MAPS, json!({"metadata": {"name": "c"}})).await;
    assert_eq!(code, 409);
    assert!(status["message"].as_str().expect("text").starts_with("object is being deleted"));
    let mut more = marked.clone();
    more["metadata"]["finalizers"] = json!(["x.io/hold", "x.io/more"]);
    assert_eq!(raw(&s, Method::PUT, &path, more).await.0, 422, "none may be added now");
    let mut free = marked;
    free["metadata"]["finalizers"] = json!([]);
    let (code, _) = raw(&s, Method::PUT, &path, free).await;
    assert_eq!(code, 200);
    assert!(s.object("", "configmaps", "default", "c").is_none());
    settle().await;
    assert_eq!(lines.kinds(), ["ADDED", "MODIFIED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_its_content() {
    let s = server();
    let api: Api<Namespace> = Api::all(s.client("a").kube("default"));
    let ns: Namespace = serde_json::from_value(json!({"metadata": {"name": "n"}})).expect("a Namespace");
    let made = api.create(&PostParams::default(), &ns).await.expect("made");
    assert_eq!(made.status.expect("a status").phase.as_deref(), Some("Active"));
    let maps = "/api/v1/namespaces/n/configmaps";
    raw(&s, Method::POST, maps, json!({"metadata": {"name": "free"}})).await;
    raw(&s, Method::POST, maps, json!({"metadata": {"name": "held", "finalizers": ["x.io/hold"]}})).await;
    api.delete("n", &DeleteParams::default()).await.expect("marked");
    let left = api.get("n").await.expect("still there");
    assert_eq!(left.status.expect("a status").phase.as_deref(), Some("Terminating"));
    assert!(s.object("", "configmaps", "n", "free").is_none());
    let (code, status) = raw(&s, Method::POST, maps, json!({"metadata": {"name": "new"}})).await;
    assert_eq!(code, 403);
    assert!(status["message"].as_str().expect("text").contains("because it is being terminated"));
    let (_, mut held) = raw(&s, Method::GET, &format!("{maps}/held"), Value::Null).await;
    held["metadata"]["finalizers"] = json!([]);
    raw(&s, Method::PUT, &format!("{maps}/held"), held).await;
    assert_eq!(code_of(api.get("n").await), 404, "its last content took it along");
}

fn code_of<T: std::fmt::Debug>(answer: Result<T, kube::Error>) -> u16 {
    code(&answer.expect_err("refused"))
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let s = server();
    let api: Api<ConfigMap> = Api::namespaced(s.client("a").kube("default"), "default");
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let body = json!({"metadata": {"name": name, "labels": {"app": app}}});
        raw(&s, Method::POST, MAPS, body).await;
    }
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("app=x")).await.expect("deleted");
    let left = api.list(&ListParams::default()).await.expect("a list");
    assert_eq!(left.items.len(), 1);
    let one = api.list(&ListParams::default().fields("metadata.name=c")).await.expect("a list");
    assert_eq!(one.items.len(), 1);
    let (code, status) = raw(&s, Method::GET, &format!("{MAPS}?fieldSelector=data.a%3Db"), Value::Null).await;
    assert_eq!(code, 400);
    assert_eq!(status["message"], "field label not supported: data.a");
}

#[tokio::test(start_paused = true)]
async fn a_crd_brings_its_kind_and_takes_it_along() {
    let s = server();
    assert_eq!(raw(&s, Method::GET, WIDGETS, Value::Null).await.0, 404);
    let (code, made) = raw(&s, Method::POST, CRDS, crd()).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["spec"]["names"]["listKind"], "WidgetList");
    let established = |c: &Value| c["type"] == "Established" && c["status"] == "True";
    assert!(made["status"]["conditions"].as_array().expect("conditions").iter().any(established));

    let (code, widget) =
        raw(&s, Method::POST, WIDGETS, json!({"metadata": {"name": "w"}, "spec": {"size": 1, "odd": 1}})).await;
    assert_eq!(code, 201, "{widget}");
    assert_eq!(widget["spec"], json!({"size": 1, "mode": "slow"}), "defaulted and pruned");
    let (code, status) = raw(&s, Method::POST, WIDGETS, json!({"metadata": {"name": "x"}, "spec": {"size": 0}})).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "Widget.example.com \"x\" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or \
         equal to 1"
    );
    // The other version shows the same object.
    let beta = "/apis/example.com/v1beta1/namespaces/default/widgets";
    let (_, other) = raw(&s, Method::GET, &format!("{beta}/w"), Value::Null).await;
    assert_eq!((&other["apiVersion"], &other["spec"]["size"]), (&json!("example.com/v1beta1"), &json!(1)));
    let mut via_beta = other;
    via_beta["spec"]["size"] = json!(2);
    let (code, put) = raw(&s, Method::PUT, &format!("{beta}/w"), via_beta).await;
    assert_eq!((code.as_u16(), &put["apiVersion"]), (200, &json!("example.com/v1beta1")));
    let stored = s.object("example.com", "widgets", "default", "w").expect("stored");
    assert_eq!(stored.value()["apiVersion"], "example.com/v1");

    let snapshot = s.snapshot();
    let (code, _) = raw(&s, Method::DELETE, &format!("{CRDS}/widgets.example.com"), Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(raw(&s, Method::GET, WIDGETS, Value::Null).await.0, 404);
    s.restore(&snapshot);
    let (code, _) = raw(&s, Method::GET, &format!("{WIDGETS}/w"), Value::Null).await;
    assert_eq!(code, 200, "what was served then is served again");
}

#[tokio::test(start_paused = true)]
async fn a_bad_crd_is_refused() {
    let s = server();
    for (at, value, field) in [
        ("/metadata/name", json!("other"), "metadata.name"),
        ("/spec/scope", json!("Odd"), "spec.scope"),
        ("/spec/versions/0/storage", json!(false), "spec.versions"),
        ("/spec/versions/1/name", json!("v1"), "spec.versions[1].name"),
        ("/spec/versions/0/schema", json!({}), "spec.versions[0].schema.openAPIV3Schema"),
        (
            "/spec/versions/0/schema/openAPIV3Schema/type",
            json!("array"),
            "spec.versions[0].schema.openAPIV3Schema.type",
        ),
    ] {
        let mut bad = crd();
        *bad.pointer_mut(at).expect(at) = value;
        let (code, status) = raw(&s, Method::POST, CRDS, bad).await;
        assert_eq!(code, 422, "{status}");
        let causes = status["details"]["causes"].as_array().expect("causes");
        assert!(causes.iter().any(|c| c["field"] == field), "{field}: {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_have_paths_of_their_own() {
    let s = server();
    raw(&s, Method::POST, CRDS, crd()).await;
    let body = json!({"metadata": {"name": "w"}, "spec": {"size": 1}, "status": {"smuggled": true}});
    let (_, made) = raw(&s, Method::POST, WIDGETS, body).await;
    assert_eq!((&made["status"], &made["metadata"]["generation"]), (&Value::Null, &json!(1)));
    let path = format!("{WIDGETS}/w");
    let mut both = made;
    both["spec"]["size"] = json!(5);
    both["status"] = json!({"phase": "Ready"});
    let (code, after) = raw(&s, Method::PUT, &format!("{path}/status"), both.clone()).await;
    assert_eq!(code, 200, "{after}");
    assert_eq!((&after["status"]["phase"], &after["spec"]["size"]), (&json!("Ready"), &json!(1)));
    assert_eq!(after["metadata"]["generation"], 1, "a status is no change of what is wanted");
    both["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
    both["status"] = json!({"phase": "Other"});
    let (_, after) = raw(&s, Method::PUT, &path, both).await;
    assert_eq!((&after["status"]["phase"], &after["spec"]["size"]), (&json!("Ready"), &json!(5)));
    assert_eq!(after["metadata"]["generation"], 2);
    let (code, _) = raw(&s, Method::PUT, &format!("{LEASES}/l/status"), json!({})).await;
    assert_eq!(code, 404, "a Lease has no status");
}

#[tokio::test(start_paused = true)]
async fn events_are_one_kind_in_two_apis() {
    let s = server();
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let old = "/api/v1/namespaces/default/events";
    let event = json!({
        "metadata": {"name": "e"}, "eventTime": "2024-01-01T00:00:00.000000Z", "reportingController": "x.io/c",
        "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal", "note": "hello",
        "regarding": {"kind": "Lease", "name": "l", "namespace": "default"},
    });
    let (code, made) = raw(&s, Method::POST, new, event).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["note"], "hello");
    let (lines, _w) = watch(&s, "w", &format!("{new}?watch=1&fieldSelector=regarding.name%3Dl")).await;
    let (_, list) = raw(&s, Method::GET, &format!("{old}?fieldSelector=involvedObject.name%3Dl"), Value::Null).await;
    assert_eq!((&list["items"][0]["message"], &list["items"][0]["apiVersion"]), (&json!("hello"), &json!("v1")));
    raw_as(&s, "raw", Method::PATCH, &format!("{old}/e"), "application/merge-patch+json", json!({"count": 2})).await;
    settle().await;
    assert_eq!(lines.kinds(), ["ADDED", "MODIFIED"]);
    assert_eq!(lines.all()[1]["object"]["deprecatedCount"], 2);
    // They go after an hour.
    tokio::time::sleep(Duration::from_secs(3700)).await;
    let other = json!({"metadata": {"name": "f"}, "involvedObject": {"namespace": "default"}});
    raw(&s, Method::POST, old, other).await;
    assert!(s.object("", "events", "default", "e").is_none());
    assert!(s.object("", "events", "default", "f").is_some());
}

#[tokio::test(start_paused = true)]
async fn tables_and_metadata_are_given_when_asked_for() {
    let s = server();
    leases(&s, "a").create(&PostParams::default(), &lease("l", "somebody")).await.expect("made");
    let get = async |path: &str, accept: &str| {
        let request = Request::get(path).header("accept", accept).body(kube::client::Body::empty()).expect("a request");
        let bytes = response(&s, request).await.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice::<Value>(&bytes).expect("JSON")
    };
    tokio::time::sleep(Duration::from_secs(200)).await;
    let table = get(LEASES, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").await;
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][0]["cells"], json!(["l", "somebody", "3m20s"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let meta = get(&format!("{LEASES}/l"), "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").await;
    assert_eq!((&meta["metadata"]["name"], &meta["spec"]), (&json!("l"), &Value::Null));
    let api: Api<k8s_openapi::api::coordination::v1::Lease> = leases(&s, "a");
    assert_eq!(api.list_metadata(&ListParams::default()).await.expect("a list").items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_account_gets_a_token() {
    let s = server();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    raw(&s, Method::POST, accounts, json!({"metadata": {"name": "a"}})).await;
    let request = json!({"spec": {"audiences": ["sink"], "expirationSeconds": 600}});
    let (code, token) = raw(&s, Method::POST, &format!("{accounts}/a/token"), request).await;
    assert_eq!(code, 201, "{token}");
    assert_eq!(token["status"]["expirationTimestamp"], "2023-11-14T22:23:20Z");
    assert_eq!(token["status"]["token"].as_str().expect("text").split('.').count(), 3);
    let (code, _) = raw(&s, Method::POST, &format!("{accounts}/none/token"), json!({})).await;
    assert_eq!(code, 404);
    let (code, _) =
        raw(&s, Method::POST, &format!("{accounts}/a/token"), json!({"spec": {"expirationSeconds": 1}})).await;
    assert_eq!(code, 422);
}
