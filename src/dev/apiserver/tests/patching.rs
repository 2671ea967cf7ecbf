//! Patches, and who is noted to have set what.

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::objects::{CRDS, WIDGETS, crd};
use super::*;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

async fn patch(s: &Server, path: &str, media: &str, body: Value) -> (u16, Value) {
    let (code, answer) = raw_as(s, "raw", Method::PATCH, path, media, body).await;
    (code.as_u16(), answer)
}

fn managers(object: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().expect("text").to_owned();
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    entries.iter().map(|e| (text(&e["manager"]), text(&e["operation"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn each_form_of_patch() {
    let s = server();
    let path = format!("{LEASES}/l");
    let made = leases(&s, "a").create(&PostParams::default(), &lease("l", "a")).await.expect("made");
    let (code, l) = patch(&s, &path, MERGE, json!({"spec": {"holderIdentity": "b", "renewTime": null}})).await;
    assert_eq!((code, &l["spec"]["holderIdentity"], &l["spec"]["renewTime"]), (200, &json!("b"), &Value::Null));
    let at = s.revision();
    patch(&s, &path, MERGE, json!({"spec": {"holderIdentity": "b"}})).await;
    assert_eq!(s.revision(), at, "a patch that changes nothing is no write");
    let (code, l) =
        patch(&s, &path, JSON, json!([{"op": "replace", "path": "/spec/holderIdentity", "value": "c"}])).await;
    assert_eq!((code, &l["spec"]["holderIdentity"]), (200, &json!("c")));
    let (code, _) = patch(&s, &path, JSON, json!([{"op": "test", "path": "/spec/holderIdentity", "value": "x"}])).await;
    assert_eq!(code, 422);
    let finalizers = json!({"metadata": {"finalizers": ["x.io/a"]}});
    patch(&s, &path, STRATEGIC, finalizers).await;
    let (code, l) = patch(&s, &path, STRATEGIC, json!({"metadata": {"finalizers": ["x.io/b"]}})).await;
    assert_eq!((code, &l["metadata"]["finalizers"]), (200, &json!(["x.io/a", "x.io/b"])), "merged by value");
    // Preconditions, judgement and limits hold for patches too.
    let stale =
        json!({"metadata": {"resourceVersion": made.metadata.resource_version}, "spec": {"holderIdentity": "z"}});
    assert_eq!(patch(&s, &path, MERGE, stale).await.0, 409);
    assert_eq!(patch(&s, &path, MERGE, json!({"metadata": {"uid": "x"}})).await.0, 409);
    assert_eq!(patch(&s, &path, MERGE, json!({"spec": {"leaseDurationSeconds": 0}})).await.0, 422);
    assert_eq!(patch(&s, &path, MERGE, json!({"metadata": {"name": "m"}})).await.0, 422);
    assert_eq!(patch(&s, &path, MERGE, json!("text")).await.0, 400);
    assert_eq!(patch(&s, &path, "text/plain", json!({})).await.0, 415);
    assert_eq!(patch(&s, &format!("{LEASES}/none"), MERGE, json!({})).await.0, 404);
    let doubling: Vec<Value> = (0..40)
        .flat_map(|i| {
            [
                json!({"op": "add", "path": "/metadata/annotations", "value": {"a": "x".repeat(1000)}}),
                json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/annotations/n{i}")}),
            ]
            .into_iter()
            .skip(usize::from(i > 0))
        })
        .collect();
    assert_eq!(patch(&s, &path, JSON, Value::Array(doubling)).await.0, 413, "a patch that explodes");
}

#[tokio::test(start_paused = true)]
async fn custom_resources_take_no_strategic_merge() {
    let s = server();
    raw(&s, Method::POST, CRDS, crd()).await;
    raw(&s, Method::POST, WIDGETS, json!({"metadata": {"name": "w"}, "spec": {"size": 1}})).await;
    let path = format!("{WIDGETS}/w");
    assert_eq!(patch(&s, &path, STRATEGIC, json!({"spec": {"size": 2}})).await.0, 415);
    let (code, w) = patch(&s, &path, MERGE, json!({"spec": {"size": 2}})).await;
    assert_eq!((code, &w["metadata"]["generation"]), (200, &json!(2)));
    let (code, w) = patch(&s, &format!("{path}/status"), MERGE, json!({"status": {"a": 1}, "spec": {"size": 9}})).await;
    assert_eq!((code, &w["status"]["a"], &w["spec"]["size"]), (200, &json!(1), &json!(2)));
    assert_eq!(patch(&s, &path, MERGE, json!({"spec": {"size": "x"}})).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn apply_merges_conflicts_and_lets_go() {
    let s = server();
    let api: Api<Lease> = leases(&s, "a");
    let config = |holder: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "labels": {"by": holder}},
            "spec": {"holderIdentity": holder},
        })
    };
    let one = PatchParams::apply("one");
    let made = api.patch("l", &one, &Patch::Apply(config("a"))).await.expect("made");
    let at = s.revision();
    let again = api.patch("l", &one, &Patch::Apply(config("a"))).await.expect("200");
    assert_eq!((again.metadata.resource_version, s.revision()), (made.metadata.resource_version, at), "no change");
    let error = api.patch("l", &PatchParams::apply("two"), &Patch::Apply(config("b"))).await.expect_err("conflict");
    let kube::Error::Api(status) = &error else { panic!("{error:?}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(status.message.starts_with("Apply failed with 2 conflicts: conflicts with \"one\":"), "{}", status.message);
    let causes = &status.details.as_ref().expect("details").causes;
    assert!(causes.iter().any(|c| c.field == ".spec.holderIdentity" && c.reason == "FieldManagerConflict"));
    let forced = api.patch("l", &PatchParams::apply("two").force(), &Patch::Apply(config("b"))).await.expect("taken");
    assert_eq!(forced.spec.expect("spec").holder_identity.as_deref(), Some("b"));
    // What a manager drops goes, if it was the only one.
    let bare = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}});
    let left = api.patch("l", &PatchParams::apply("two"), &Patch::Apply(bare)).await.expect("200");
    assert_eq!(left.metadata.labels, None);
    assert!(left.spec.is_none_or(|s| s.holder_identity.is_none()));
    let (code, _) = raw_as(
        &s,
        "raw",
        Method::PATCH,
        &format!("{LEASES}/l"),
        "application/apply-patch+yaml",
        json!({"metadata": {"name": "l"}}),
    )
    .await;
    assert_eq!(code, 400, "a field manager is required");
}

#[tokio::test(start_paused = true)]
async fn apply_tells_items_of_a_list_apart() {
    let s = server();
    raw(&s, Method::POST, CRDS, crd()).await;
    let apply = async |manager: &str, parts: Value| {
        let path = format!("{WIDGETS}/w?fieldManager={manager}");
        let config = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"parts": parts}});
        patch(&s, &path, "application/apply-patch+yaml", config).await
    };
    assert_eq!(apply("one", json!([{"name": "a", "n": 1}])).await.0, 201);
    assert_eq!(apply("two", json!([{"name": "b", "n": 2}])).await.0, 200);
    let (code, w) = apply("one", json!([{"name": "a", "n": 3}])).await;
    assert_eq!(code, 200);
    assert_eq!(w["spec"]["parts"], json!([{"name": "a", "n": 3}, {"name": "b", "n": 2}]));
    assert_eq!(w["spec"]["mode"], "slow", "defaulted, and nobody's");
    assert_eq!(apply("two", json!([{"name": "a", "n": 4}])).await.0, 409);
    let (_, w) = apply("two", json!([])).await;
    assert_eq!(w["spec"]["parts"], json!([{"name": "a", "n": 3}]), "two's item goes with two's wish");
}

#[tokio::test(start_paused = true)]
async fn updates_are_noted_by_their_manager() {
    let s = server();
    let api = leases(&s, "replica-1");
    api.create(&PostParams::default(), &lease("l", "a")).await.expect("made");
    let stored = |s: &Server| s.object("coordination.k8s.io", "leases", "default", "l").expect("there").value().clone();
    assert_eq!(managers(&stored(&s)), [("replica-1".to_owned(), "Update".to_owned())]);
    let other = PatchParams { field_manager: Some("other".into()), ..PatchParams::default() };
    api.patch("l", &other, &Patch::Merge(json!({"spec": {"holderIdentity": "b"}}))).await.expect("200");
    let l = stored(&s);
    assert_eq!(managers(&l).len(), 2);
    let of = |l: &Value, manager: &str| {
        let entries = l["metadata"]["managedFields"].as_array().expect("entries").clone();
        entries.into_iter().find(|e| e["manager"] == manager).expect(manager)["fieldsV1"]["f:spec"].clone()
    };
    assert_eq!(of(&l, "other"), json!({"f:holderIdentity": {}}));
    assert!(of(&l, "replica-1").get("f:holderIdentity").is_none());
    // Without managed fields nothing is kept, and nothing is lost.
    let plain = Server::new(Options { managed_fields: false, ..Options::seeded(clock(), 7) });
    let made = leases(&plain, "a").create(&PostParams::default(), &lease("l", "a")).await.expect("made");
    assert_eq!(made.metadata.managed_fields, None);
}
