//! What was measured on a real kube-apiserver 1.20.2, row by row.

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use serde_json::{Value, json};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_put_identical_to_what_is_stored_leaves_the_resource_version() {
    let s = server();
    let api = leases(&s, "a");
    let made = api.create(&PostParams::default(), &lease("l", "a")).await.expect("created");
    let again = api.replace("l", &PostParams::default(), &made).await.expect("200");
    assert_eq!(again, made);
    let mut changed = made.clone();
    changed.spec.as_mut().expect("spec").holder_identity = Some("b".into());
    let changed = api.replace("l", &PostParams::default(), &changed).await.expect("200");
    assert_ne!(changed.metadata.resource_version, made.metadata.resource_version);
    assert_eq!(changed.metadata.uid, made.metadata.uid);
}

#[tokio::test(start_paused = true)]
async fn a_put_without_a_resource_version_is_422() {
    let s = server();
    let api = leases(&s, "a");
    api.create(&PostParams::default(), &lease("l", "a")).await.expect("created");
    let (code, status) = raw(
        &s,
        Method::PUT,
        &format!("{LEASES}/l"),
        json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}}),
    )
    .await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be \
         specified for an update"
    );
    assert_eq!(status["reason"], "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.resourceVersion");
}

/// A Lease that was made and then deleted.
async fn deleted(s: &Server) -> Lease {
    let api = leases(s, "a");
    let made = api.create(&PostParams::default(), &lease("l", "a")).await.expect("created");
    api.delete("l", &DeleteParams::default()).await.expect("deleted");
    made
}

#[tokio::test(start_paused = true)]
async fn a_put_with_the_uid_of_a_deleted_lease_is_409() {
    let s = server();
    let old = deleted(&s).await;
    let error = leases(&s, "a").replace("l", &PostParams::default(), &old).await.expect_err("gone");
    assert_eq!(code(&error), 409);
    assert!(s.object("coordination.k8s.io", "leases", "default", "l").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_put_without_uid_makes_a_deleted_lease_anew() {
    let s = server();
    let old = deleted(&s).await;
    let mut body = serde_json::to_value(&old).expect("JSON");
    body["metadata"].as_object_mut().expect("metadata").remove("uid");
    let (code, new) = raw(&s, Method::PUT, &format!("{LEASES}/l"), body.clone()).await;
    assert_eq!(code, 201);
    assert_ne!(new["metadata"]["uid"], old.metadata.uid.clone().expect("uid"));
    // Only about ten kinds do this; a ConfigMap is not one of them.
    let (code, _) = raw(
        &s,
        Method::PUT,
        "/api/v1/namespaces/default/configmaps/c",
        json!({"metadata": {"name": "c"}, "data": {"a": "b"}}),
    )
    .await;
    assert_eq!(code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_label_removed_is_a_deletion_to_a_watch_that_selects_by_it() {
    let s = server();
    let api = leases(&s, "a");
    let mut l = lease("l", "a");
    l.metadata.labels = Some([("app".to_owned(), "x".to_owned())].into());
    let made = api.create(&PostParams::default(), &l).await.expect("created");
    let (lines, _watch) = watch(&s, "w", &format!("{LEASES}?watch=1&labelSelector=app%3Dx")).await;
    let mut bare = made.clone();
    bare.metadata.labels = None;
    let bare = api.replace("l", &PostParams::default(), &bare).await.expect("200");
    settle().await;
    assert_eq!(lines.kinds(), ["ADDED", "DELETED"]);
    let last = &lines.all()[1]["object"];
    assert_eq!(last["metadata"]["uid"], made.metadata.uid.clone().expect("uid"));
    assert_eq!(last["metadata"]["labels"]["app"], "x", "its last content that matched");
    assert_eq!(last["metadata"]["resourceVersion"], bare.metadata.resource_version.expect("rv"));
    assert!(s.object("coordination.k8s.io", "leases", "default", "l").is_some(), "the Lease lives on");
    // And it is new to that watch when it matches again.
    let mut again = api.get("l").await.expect("there");
    again.metadata.labels = l.metadata.labels.clone();
    api.replace("l", &PostParams::default(), &again).await.expect("200");
    settle().await;
    assert_eq!(lines.kinds(), ["ADDED", "DELETED", "ADDED"]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_keeps_its_preconditions() {
    let s = server();
    let api = leases(&s, "a");
    let made = api.create(&PostParams::default(), &lease("l", "a")).await.expect("created");
    let rv = made.metadata.resource_version.clone();
    let uid = made.metadata.uid.clone();
    let with = |uid: Option<String>, rv: Option<String>| {
        DeleteParams::default().preconditions(Preconditions { uid, resource_version: rv })
    };
    for wrong in [with(None, Some("1".into())), with(Some("x".into()), rv.clone()), with(Some("x".into()), None)] {
        assert_eq!(code(&api.delete("l", &wrong).await.expect_err("precondition")), 409);
    }
    let answer = api.delete("l", &with(uid.clone(), rv)).await.expect("deleted");
    let status = answer.right().expect("a Status, as for most kinds");
    assert_eq!(status.details.expect("details").uid, uid.expect("uid"));
    assert_eq!(code(&api.get("l").await.expect_err("gone")), 404);
}

#[tokio::test(start_paused = true)]
async fn a_uid_that_a_client_chose_is_replaced() {
    let s = server();
    let mut l = lease("l", "a");
    l.metadata.uid = Some("00000000-0000-0000-0000-000000000001".into());
    let made = leases(&s, "a").create(&PostParams::default(), &l).await.expect("created");
    assert_ne!(made.metadata.uid, l.metadata.uid);
}

#[tokio::test(start_paused = true)]
async fn a_duration_of_0_is_422_and_the_largest_is_taken() {
    let s = server();
    let api = leases(&s, "a");
    let mut l = lease("l", "a");
    l.spec.as_mut().expect("spec").lease_duration_seconds = Some(0);
    let error = api.create(&PostParams::default(), &l).await.expect_err("refused");
    let kube::Error::Api(status) = &error else { panic!("{error:?}") };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        status.message,
        "Lease.coordination.k8s.io \"l\" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater \
         than 0"
    );
    l.spec.as_mut().expect("spec").lease_duration_seconds = Some(i32::MAX);
    api.create(&PostParams::default(), &l).await.expect("created");
}

#[tokio::test(start_paused = true)]
async fn the_usual_refusals() {
    let s = server();
    let api = leases(&s, "a");
    api.create(&PostParams::default(), &lease("l", "a")).await.expect("created");
    let error = api.create(&PostParams::default(), &lease("l", "a")).await.expect_err("there");
    let kube::Error::Api(status) = &error else { panic!("{error:?}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(status.message, "leases.coordination.k8s.io \"l\" already exists");

    let mut stale = api.get("l").await.expect("there");
    stale.metadata.resource_version = Some("1".into());
    let error = api.replace("l", &PostParams::default(), &stale).await.expect_err("stale");
    let kube::Error::Api(status) = &error else { panic!("{error:?}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(status.message.contains("the object has been modified; please apply your changes to the latest version"));

    let error = api.create(&PostParams::default(), &lease("Upper", "a")).await.expect_err("name");
    assert_eq!(code(&error), 422);
    let elsewhere: Api<Lease> = Api::namespaced(s.client("a").kube("default"), "nowhere");
    let error = elsewhere.create(&PostParams::default(), &lease("l", "a")).await.expect_err("no namespace");
    let kube::Error::Api(status) = &error else { panic!("{error:?}") };
    assert_eq!(status.message, "namespaces \"nowhere\" not found");

    let mut set = lease("m", "a");
    set.metadata.resource_version = Some("1".into());
    assert_eq!(code(&api.create(&PostParams::default(), &set).await.expect_err("rv on create")), 500);
    assert!(api.list(&ListParams::default()).await.expect("list").items.len() == 1);
}

#[tokio::test(start_paused = true)]
async fn bad_requests_get_a_status() {
    let s = server();
    for (method, path, body, expected) in [
        (Method::GET, "/apis/coordination.k8s.io/v2/leases", Value::Null, 404),
        (Method::GET, "/nothing", Value::Null, 404),
        (Method::GET, &format!("{LEASES}?resourceVersion=x"), Value::Null, 400),
        (Method::GET, &format!("{LEASES}?resourceVersion=99999"), Value::Null, 504),
        (Method::GET, &format!("{LEASES}?labelSelector=a%20b"), Value::Null, 400),
        (Method::GET, &format!("{LEASES}?continue=nonsense"), Value::Null, 400),
        (Method::POST, LEASES, json!("text"), 400),
        (Method::POST, LEASES, json!([]), 400),
        (Method::POST, LEASES, json!({"kind": "ConfigMap", "metadata": {"name": "x"}}), 400),
        (Method::POST, LEASES, json!({"apiVersion": "v1", "metadata": {"name": "x"}}), 400),
        (Method::POST, LEASES, json!({"metadata": {"name": "x", "namespace": "other"}}), 400),
        (Method::POST, LEASES, json!({"metadata": {}}), 422),
        (Method::POST, &format!("{LEASES}/l"), json!({"metadata": {"name": "l"}}), 405),
        (Method::POST, "/apis/coordination.k8s.io/v1/leases", json!({"metadata": {"name": "l"}}), 405),
        (Method::PUT, &format!("{LEASES}/l"), json!({"metadata": {"name": "m"}}), 400),
        (Method::PUT, LEASES, json!({"metadata": {"name": "m"}}), 405),
        (Method::TRACE, LEASES, Value::Null, 405),
    ] {
        let (code, status) = raw(&s, method.clone(), path, body.clone()).await;
        assert_eq!(code, expected, "{method} {path} {body}: {status}");
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["code"], expected);
    }
}
