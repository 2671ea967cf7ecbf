//! kubectl: get, describe, apply, edit, delete, watch, create and patch, of every kind.

use crate::kinds::{ALL, CRD, LEASE, WIDGET};
use crate::support::{Bench, show};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_from_create_to_delete() {
    let Some(b) = Bench::new("every_kind_from_create_to_delete").await else { return };
    for k in &ALL {
        let scope: &[&str] = if k.namespaced { &["-n", "default"] } else { &[] };
        let with = |args: &[&'static str]| -> Vec<&str> { args.iter().chain(scope).copied().collect() };
        let mut watch = b.follow(&with(&["get", k.resource, "--watch", "--output-watch-events", "-o", "json"]));
        let mut table = b.follow(&with(&["get", k.resource, "--watch"]));
        // Once both watch, and none of a kind before.
        let plural = k.resource.split('.').next().expect("a plural");
        b.watched(plural, 2).await;
        b.feed(&["create", "-f", "-"], k.manifest).await.succeeded();
        watch.line("\"type\":\"ADDED\"").await;
        table.line(k.column).await;

        let listed = b.run(&with(&["get", k.resource, "-o", "name"])).await.succeeded();
        assert!(listed.lines().any(|l| l.ends_with(&format!("/{}", k.name))), "{listed}");
        b.run(&with(&["patch", k.resource, k.name, "--type", "merge", "-p", k.patch.0])).await.succeeded();
        watch.line("\"type\":\"MODIFIED\"").await;
        let yaml = b.run(&with(&["get", k.resource, k.name, "-o", "yaml"])).await.succeeded();
        assert!(yaml.contains(k.patch.1), "{yaml}");

        let what: Vec<&str> = [k.resource, k.name].iter().chain(scope).copied().collect();
        let edited = b.edit(&what, k.edit.0).await.succeeded();
        assert!(edited.contains("edited"), "{edited}");
        let yaml = b.run(&with(&["get", k.resource, k.name, "-o", "yaml"])).await.succeeded();
        assert!(yaml.contains(k.edit.1), "{}: {yaml}", k.resource);

        let described = b.run(&with(&["describe", k.resource, k.name])).await.succeeded();
        let words = described.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(k.described), "{}: {described}", k.resource);

        // Applying what was created some other way warns, and works.
        b.feed(&["apply", "-f", "-"], k.manifest).await.succeeded();
        let again = b.feed(&["apply", "-f", "-"], k.manifest).await.succeeded();
        assert!(again.contains("unchanged"), "{}: {again}", k.resource);
        b.feed(&["apply", "--server-side", "--force-conflicts", "-f", "-"], k.manifest).await.succeeded();

        if k.resource != "customresourcedefinitions" {
            b.run(&with(&["delete", k.resource, k.name])).await.succeeded();
            watch.line("\"type\":\"DELETED\"").await;
            let gone = b.run(&with(&["get", k.resource, k.name])).await.failed();
            assert!(gone.contains("NotFound"), "{gone}");
        }
    }
    b.feed(&["create", "-f", "-"], WIDGET).await.succeeded();
    b.run(&["delete", "crd/widgets.example.com"]).await.succeeded();
    assert!(b.server.object("example.com", "widgets", "default", "w1").is_none(), "its objects go with it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn describe_lists_events() {
    let Some(b) = Bench::new("describe_lists_events").await else { return };
    b.feed(&["create", "-f", "-"], LEASE).await.succeeded();
    let uid = b.server.object("coordination.k8s.io", "leases", "default", "l1").expect("made").uid().to_owned();
    let event = format!(
        "
apiVersion: events.k8s.io/v1
kind: Event
metadata: {{name: took, namespace: default}}
eventTime: \"2024-01-01T00:00:00.000000Z\"
reportingController: leasehold
reportingInstance: replica-1
action: Take
reason: LeaderElection
type: Normal
regarding: {{apiVersion: coordination.k8s.io/v1, kind: Lease, name: l1, namespace: default, uid: {uid}}}
note: replica-1 became leader
"
    );
    b.feed(&["create", "-f", "-"], &event).await.succeeded();
    let described = b.run(&["describe", "lease", "l1"]).await.succeeded();
    assert!(described.contains("replica-1 became leader"), "{described}");
    let events = b.run(&["get", "events"]).await.succeeded();
    assert!(events.contains("lease/l1") && events.contains("LeaderElection"), "{events}");
    let events = b.run(&["events", "--for", "lease/l1"]).await.succeeded();
    assert!(events.contains("became leader"), "{events}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_watch_shows_rows() {
    let Some(b) = Bench::new("get_watch_shows_rows").await else { return };
    let mut rows = b.follow(&["get", "leases", "-w"]);
    b.watched("leases", 1).await;
    b.feed(&["create", "-f", "-"], LEASE).await.succeeded();
    rows.line("HOLDER").await;
    rows.line("a ").await;
    b.run(&["patch", "lease", "l1", "--type", "merge", "-p", r#"{"spec":{"holderIdentity":"somebody"}}"#])
        .await
        .succeeded();
    rows.line("somebody").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_are_judged_by_their_schema() {
    let Some(b) = Bench::new("custom_resources_are_judged_by_their_schema").await else { return };
    b.feed(&["create", "-f", "-"], CRD).await.succeeded();
    b.run(&["wait", "--for=condition=Established", "--timeout=20s", "crd/widgets.example.com"]).await.succeeded();
    let bad = b.feed(&["create", "-f", "-"], &WIDGET.replace("size: 3", "size: 0")).await.failed();
    assert!(bad.contains("spec.size in body should be greater than or equal to 1"), "{bad}");
    let bad = b.feed(&["create", "-f", "-"], &WIDGET.replace("size: 3", "size: 3, mode: odd")).await.failed();
    assert!(bad.contains("Unsupported value: \"odd\": supported values: \"fast\", \"slow\""), "{bad}");
    let bad = b.feed(&["create", "-f", "-"], &WIDGET.replace("size: 3", "size: 3, odd: 1")).await.failed();
    assert!(bad.contains("unknown field \"spec.odd\""), "{bad}");
    b.feed(&["create", "-f", "-"], WIDGET).await.succeeded();
    let ready = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    b.run(&["patch", "wd", "w1", "--subresource=status", "--type=merge", "-p", ready]).await.succeeded();
    b.run(&["wait", "--for=condition=Ready", "--timeout=20s", "wd/w1"]).await.succeeded();
    let row = b.run(&["get", "wd", "w1", "--no-headers"]).await.succeeded();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["w1", "3", "True"]);
    // A status cannot be smuggled in through the object's own path.
    b.run(&["patch", "wd", "w1", "--type=merge", "-p", r#"{"status":null,"spec":{"size":7}}"#]).await.succeeded();
    let row = b.run(&["get", "wd", "w1", "--no-headers"]).await.succeeded();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["w1", "7", "True"]);
    let explained = b.run(&["explain", "wd.spec.size"]).await.succeeded();
    assert!(explained.contains("How large it is."), "{explained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apply_knows_who_set_what() {
    let Some(b) = Bench::new("apply_knows_who_set_what").await else { return };
    let held = |by: &str| LEASE.replace("holderIdentity: a", &format!("holderIdentity: {by}"));
    let apply = |manager: &'static str| ["apply", "--server-side", "--field-manager", manager, "-f", "-"];
    b.feed(&apply("one"), LEASE).await.succeeded();
    b.feed(&apply("two"), LEASE).await.succeeded();
    let conflict = b.feed(&apply("two"), &held("b")).await.failed();
    assert!(conflict.contains("conflict with \"one\": .spec.holderIdentity"), "{conflict}");
    b.feed(&["apply", "--server-side", "--force-conflicts", "--field-manager", "two", "-f", "-"], &held("b"))
        .await
        .succeeded();
    // What one no longer names stays, since two has set it too; what two drops goes when nobody else has set it.
    let without = LEASE.lines().filter(|l| !l.contains("holderIdentity")).collect::<Vec<_>>().join("\n");
    b.feed(&apply("one"), &without).await.succeeded();
    let holder = b.run(&["get", "lease", "l1", "-o", "jsonpath={.spec.holderIdentity}"]).await.succeeded();
    assert_eq!(holder, "b");
    b.feed(&apply("two"), &without).await.succeeded();
    let holder = b.run(&["get", "lease", "l1", "-o", "jsonpath={.spec.holderIdentity}"]).await.succeeded();
    assert_eq!(holder, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apply_and_diff_from_files() {
    let Some(b) = Bench::new("apply_and_diff_from_files").await else { return };
    let file = b.path("pod.yaml");
    let pod = |value: &str| {
        format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: p1, labels: {{app: x}}}}
spec:
  containers:
  - {{name: a, image: i, env: [{{name: A, value: \"{value}\"}}, {{name: B, value: b}}]}}
  - {{name: b, image: i}}
"
        )
    };
    std::fs::write(&file, pod("1")).expect("written");
    let f = show(&file);
    b.run(&["apply", "-f", &f]).await.succeeded();
    b.run(&["diff", "-f", &f]).await.succeeded();
    std::fs::write(&file, pod("2")).expect("written");
    assert!(!b.run(&["diff", "-f", &f]).await.ok, "a difference");
    b.run(&["apply", "-f", &f]).await.succeeded();
    let env = b.run(&["get", "pod", "p1", "-o", "jsonpath={.spec.containers[0].env[*].value}"]).await.succeeded();
    assert_eq!(env, "2 b");
    let bad = b.feed(&["apply", "-f", "-"], &LEASE.replace("holderIdentity", "holder")).await.failed();
    assert!(bad.contains("unknown field \"spec.holder\""), "{bad}");
    let dry = b.feed(&["apply", "--dry-run=server", "-f", "-"], LEASE).await.succeeded();
    assert!(dry.contains("server dry run"), "{dry}");
    assert!(b.server.object("coordination.k8s.io", "leases", "default", "l1").is_none());
    b.run(&["label", "pod", "p1", "app=y", "--overwrite"]).await.succeeded();
    b.run(&["annotate", "pod", "p1", "note=z"]).await.succeeded();
    let chosen = b.run(&["get", "pods", "-l", "app in (y)", "--field-selector", "status.phase=Pending", "-o", "name"]);
    assert_eq!(chosen.await.succeeded().trim(), "pod/p1");
    let replaced = pod("3").replace("app: x", "app: z");
    b.feed(&["replace", "-f", "-"], &replaced).await.succeeded();
    b.run(&["delete", "pods", "--all"]).await.succeeded();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_create_speaks_protobuf() {
    let Some(b) = Bench::new("kubectl_create_speaks_protobuf").await else { return };
    b.run(&["create", "namespace", "n"]).await.succeeded();
    b.run(&["create", "configmap", "c", "-n", "n", "--from-literal=a=b"]).await.succeeded();
    b.run(&["create", "secret", "generic", "s", "-n", "n", "--from-literal=a=b"]).await.succeeded();
    b.run(&["create", "serviceaccount", "sa", "-n", "n"]).await.succeeded();
    let token = b.run(&["create", "token", "sa", "-n", "n", "--audience=x"]).await.succeeded();
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
    let data = b.run(&["get", "configmap", "c", "-n", "n", "-o", "jsonpath={.data}"]).await.succeeded();
    assert_eq!(data, r#"{"a":"b"}"#);
    let data = b.run(&["get", "secret", "s", "-n", "n", "-o", "jsonpath={.data.a}"]).await.succeeded();
    assert_eq!(data, "Yg==");
    // A namespace takes along what is in it.
    b.run(&["delete", "namespace", "n"]).await.succeeded();
    assert!(b.server.object("", "configmaps", "n", "c").is_none());
    let refused = b.run(&["create", "configmap", "c", "-n", "n"]).await.failed();
    assert!(refused.contains("namespaces \"n\" not found"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discovery_and_documents() {
    let Some(b) = Bench::new("discovery_and_documents").await else { return };
    let version = b.run(&["version"]).await.succeeded();
    assert!(version.contains("Server Version: v1.32"), "{version}");
    let all = b.run(&["api-resources", "-o", "wide"]).await.succeeded();
    for kind in ["Lease", "ConfigMap", "Event", "Pod", "CustomResourceDefinition"] {
        assert!(all.contains(kind), "{all}");
    }
    assert!(b.run(&["api-versions"]).await.succeeded().contains("coordination.k8s.io/v1"));
    let explained = b.run(&["explain", "lease.spec", "--recursive"]).await.succeeded();
    assert!(explained.contains("leaseDurationSeconds\t<integer>"), "{explained}");
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(b.run(&["get", "--raw", path]).await.succeeded(), "ok");
    }
    for path in ["/", "/api", "/api/v1", "/apis", "/apis/coordination.k8s.io", "/apis/coordination.k8s.io/v1"] {
        let text = b.run(&["get", "--raw", path]).await.succeeded();
        assert!(text.starts_with('{'), "{path}: {text}");
    }
}
