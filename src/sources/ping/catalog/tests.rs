//! Sources from a file and from the API, good and bad.

use super::*;
use crate::adapter::Env;
use crate::adapter::testing::install_tls;
use crate::clock::Boottime;
use crate::clock::virtual_time::VirtualClock;
use crate::dev::apiserver::{Cut, Match, Options, Outage, Server};
use crate::dev::fleet::Scratch;
use crate::sources::ping::testing::Logged;
use crate::sources::ping::ticker::Source as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio_util::task::AbortOnDropHandle;

/// What comes, comes within an hour of the timers' time.
const SOON: Duration = Duration::from_hours(1);

fn keeper_of(vars: &[(&str, &str)]) -> (Keeper, Known<Entry>) {
    install_tls();
    let env = Env::from_vars([("NAMESPACE", "adapter-ns")].iter().chain(vars).copied()).unwrap();
    Keeper::new(Sink::new(&env, Arc::new(Boottime)).unwrap(), Duration::from_mins(1))
}

fn keeper() -> (Keeper, Known<Entry>) {
    keeper_of(&[])
}

#[allow(clippy::needless_pass_by_value, reason = "what json! makes")]
fn source(name: &str, more: Value) -> PingSource {
    let mut object = json!({
        "apiVersion": "sources.knative.dev/v1", "kind": "PingSource",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": "* * * * *", "sink": {"uri": "http://sink.test/"}},
    });
    json_patch::merge(&mut object, &more);
    serde_json::from_value(object).unwrap()
}

fn keys(known: &Known<Entry>) -> Vec<String> {
    known.borrow().iter().flat_map(|catalog| catalog.keys()).map(ToString::to_string).collect()
}

async fn become_keys(known: &mut Known<Entry>, expected: &[&str]) {
    let is = |now: &Option<Arc<Catalog<Entry>>>| {
        now.as_ref().is_some_and(|c| c.keys().map(|k| &**k).eq(expected.iter().copied()))
    };
    let come = tokio::time::timeout(SOON, known.wait_for(is)).await;
    assert!(come.is_ok(), "not {expected:?}");
}

fn entry(known: &Known<Entry>, key: &str) -> Arc<Entry> {
    Arc::clone(&known.borrow().as_ref().unwrap()[key])
}

#[test]
fn what_cannot_fire_is_said_once_per_edit_and_the_others_fire() {
    let logged = Logged::here();
    let (mut keeper, known) = keeper();
    let long = "x".repeat(320);
    let no_sink = json!({"spec": {"sink": {"uri": null}}});
    let reference = json!({"spec": {"sink": {"uri": null, "ref": {"kind": "Service", "name": "s"}}}});
    let sources = || {
        [
            source("good", json!({})),
            source("schedule", json!({"spec": {"schedule": "never"}})),
            source("data", json!({"spec": {"dataBase64": "!"}})),
            source("nowhere", no_sink.clone()),
            source("odd", json!({"spec": {"sink": {"uri": "ftp://sink.test/"}}})),
            source("waits", reference.clone()),
            source(&long, json!({})),
            source("quo\\", json!({})),
            source("unready", json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})),
            source("going", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
        ]
    };
    for _ in 0..3 {
        keeper.replace(sources());
        keeper.publish();
    }
    assert_eq!(keys(&known), ["default/good"]);
    for (name, said) in [
        ("schedule", "spec.schedule \"never\": expected 5 to 6 fields"),
        ("data", "spec.dataBase64"),
        ("nowhere", "no sink"),
        ("odd", "ftp://sink.test/"),
        ("waits", "status.sinkUri is empty"),
        (&long, "that Kubernetes allows"),
        ("quo\\", "that Kubernetes allows"),
    ] {
        let lines = logged.with(&format!("default/{name}"));
        assert!(lines.len() == 1 && lines[0].contains(said), "{name}: {lines:?}");
    }
    assert!(logged.with("default/unready").is_empty() && logged.with("default/going").is_empty());
    keeper.put(source("schedule", json!({"spec": {"schedule": "never ever"}})));
    assert_eq!(logged.with("default/schedule").len(), 2, "another edit, said again");
    keeper.put(source("schedule", json!({})));
    keeper.put(source("unready", json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})));
    let found = json!({"status": {"sinkUri": "http://found.test/x"}});
    let mut resolved = reference.clone();
    json_patch::merge(&mut resolved, &found);
    keeper.put(source("waits", resolved));
    keeper.publish();
    assert_eq!(keys(&known), ["default/good", "default/schedule", "default/unready", "default/waits"]);
}

#[test]
fn k_sink_is_for_those_that_name_no_sink() {
    let (mut keeper, known) = keeper_of(&[("K_SINK", "http://k.test/")]);
    keeper.put(source("none", json!({"spec": {"sink": null}})));
    keeper.put(source("own", json!({})));
    keeper.put(source("ref", json!({"spec": {"sink": {"uri": "/path", "ref": {"kind": "Service"}}}})));
    keeper.publish();
    assert_eq!(keys(&known), ["default/none", "default/own"]);
    let shown = format!("{:?} {:?}", entry(&known, "default/none"), entry(&known, "default/own"));
    assert!(shown.contains("http://k.test/") && shown.contains("http://sink.test/"), "{shown}");
}

/// Only a new entry makes a bucket look for its next tick, so a status that is written each minute must not make one.
#[test]
fn a_source_stays_the_same_entry_until_it_changes() {
    let (mut keeper, mut known) = keeper();
    keeper.put(source("a", json!({"metadata": {"resourceVersion": "1"}})));
    keeper.publish();
    let first = entry(&known, "default/a");
    known.borrow_and_update();
    keeper.put(source(
        "a",
        json!({
            "metadata": {"resourceVersion": "2", "labels": {"x": "y"}},
            "status": {"observedGeneration": 3, "conditions": [{"type": "Deployed", "status": "True"}]},
        }),
    ));
    keeper.publish();
    assert!(!known.has_changed().unwrap());
    assert!(Arc::ptr_eq(&first, &entry(&known, "default/a")));
    for change in [
        json!({"spec": {"data": "x"}}),
        json!({"metadata": {"uid": "u"}}),
        json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}),
        json!({"status": {"sinkUri": "http://other.test/"}}),
    ] {
        let before = entry(&known, "default/a");
        keeper.put(source("a", change.clone()));
        keeper.publish();
        assert!(!Arc::ptr_eq(&before, &entry(&known, "default/a")), "{change}");
    }
    let made = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}});
    keeper.put(source("a", made));
    keeper.publish();
    assert_eq!(entry(&known, "default/a").created().unwrap().to_string(), "2026-01-01T00:00:00Z");
}

/// A file in a directory of its own.
struct File {
    path: PathBuf,
    scratch: Option<Scratch>,
}

impl File {
    fn holding(text: &str) -> Self {
        let scratch = Scratch::new().unwrap();
        let file = Self { path: scratch.path().join("sources.yaml"), scratch: Some(scratch) };
        file.write(text);
        file
    }
    fn write(&self, text: &str) {
        std::fs::write(&self.path, text).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.scratch.take().into_iter().for_each(Scratch::discard);
    }
}

fn yaml(names: &[&str]) -> String {
    let one = |name: &&str| {
        format!(
            "---\napiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {{name: {name}, namespace: default}}\n\
             spec: {{schedule: '* * * * *', sink: {{uri: 'http://sink.test/'}}}}\n"
        )
    };
    names.iter().map(one).collect()
}

#[tokio::test(start_paused = true)]
async fn a_bad_edit_of_the_file_keeps_the_last_good_one_and_is_said_once() {
    let logged = Logged::here();
    let file = File::holding(&yaml(&["a", "b"]));
    let (mut keeper, mut known) = keeper();
    let text = keeper.read(&file.path).await.unwrap();
    assert_eq!(keys(&known), ["default/a", "default/b"]);
    let first = entry(&known, "default/a");
    let _following = AbortOnDropHandle::new(tokio::spawn(keeper.follow(file.path.clone(), text)));
    let said = "the last good ones stay in force";
    let mut bad = 0;
    for text in ["apiVersion: [", "kind: Pod\napiVersion: v1\n", "- 1", &yaml(&["a", "c", "a"])] {
        file.write(text);
        tokio::time::sleep(Duration::from_secs(30)).await;
        bad += 1;
        assert_eq!(logged.with(said).len(), bad, "{text:?}, once in half a minute");
        assert!(logged.with(said)[bad - 1].contains("sources.yaml"));
        assert_eq!(keys(&known), ["default/a", "default/b"], "{text:?}");
    }
    assert!(logged.with(said)[3].contains("default/a stands in it twice"));
    std::fs::remove_file(&file.path).unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(logged.with(said).len(), bad + 1);
    assert_eq!(keys(&known), ["default/a", "default/b"]);
    file.write(&yaml(&["a", "c"]));
    become_keys(&mut known, &["default/a", "default/c"]).await;
    assert!(Arc::ptr_eq(&first, &entry(&known, "default/a")), "it has not changed");
    file.write("");
    become_keys(&mut known, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_read_at_the_start_is_an_error_that_names_it() {
    let (mut keeper, known) = keeper();
    let error = keeper.read("/nonexistent/sources.yaml".as_ref()).await.unwrap_err();
    assert!(error.starts_with("/nonexistent/sources.yaml: "), "{error}");
    let file = File::holding(&yaml(&["a", "a"]));
    assert!(keeper.read(&file.path).await.unwrap_err().ends_with("PingSource default/a stands in it twice"));
    assert!(known.borrow().is_none(), "nothing is known, so no bucket moves its checkpoint");
}

async fn served() -> (Server, Api<PingSource>) {
    let server = Server::new(Options::seeded(VirtualClock::new().shared(), 7));
    let client = server.client("person").kube("default");
    let definition: CustomResourceDefinition =
        serde_yaml::from_str(include_str!("../../../../config/crd-pingsource.yaml")).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &definition).await.unwrap();
    (server, Api::namespaced(client, "default"))
}

fn follow(server: &Server, keeper: Keeper) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(keeper.watch(Api::all(server.client("ping").kube("default")))))
}

async fn create(api: &Api<PingSource>, name: &str) {
    api.create(&PostParams::default(), &source(name, json!({}))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_api_is_followed_through_edits_deletions_and_a_list_made_anew() {
    let (server, api) = served().await;
    create(&api, "a").await;
    create(&api, "b").await;
    let (keeper, mut known) = keeper();
    let _following = follow(&server, keeper);
    become_keys(&mut known, &["default/a", "default/b"]).await;
    let (a, b) = (entry(&known, "default/a"), entry(&known, "default/b"));
    assert!(a.created().is_some());

    create(&api, "c").await;
    become_keys(&mut known, &["default/a", "default/b", "default/c"]).await;
    let mut edited = api.get("b").await.unwrap();
    edited.spec.schedule = "bad".to_owned();
    api.replace("b", &PostParams::default(), &edited).await.unwrap();
    become_keys(&mut known, &["default/a", "default/c"]).await;
    edited = api.get("b").await.unwrap();
    edited.spec.schedule = "*/5 * * * *".to_owned();
    api.replace("b", &PostParams::default(), &edited).await.unwrap();
    become_keys(&mut known, &["default/a", "default/b", "default/c"]).await;
    assert!(!Arc::ptr_eq(&b, &entry(&known, "default/b")));
    api.delete("c", &DeleteParams::default()).await.unwrap();
    become_keys(&mut known, &["default/a", "default/b"]).await;

    // While the watch is away one goes and one comes, and the history of it is gone too: only a list shows it.
    let outage = server.faults("ping").outage(Outage::Refused);
    api.delete("b", &DeleteParams::default()).await.unwrap();
    create(&api, "d").await;
    server.compact(server.revision());
    server.faults("ping").remove(outage);
    become_keys(&mut known, &["default/a", "default/d"]).await;
    assert!(Arc::ptr_eq(&a, &entry(&known, "default/a")), "a list made anew is no edit");

    server.cut_watches(&Match::any().resource("pingsources"), Cut::Gone);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    become_keys(&mut known, &["default/d"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_api_that_cannot_be_reached_is_said_once_and_leaves_the_last_sources() {
    let (server, api) = served().await;
    create(&api, "a").await;
    let (keeper, mut known) = keeper();
    let logged = Logged::here();
    let _following = follow(&server, keeper);
    become_keys(&mut known, &["default/a"]).await;
    let outage = server.faults("ping").outage(Outage::Answers(503));
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(keys(&known), ["default/a"]);
    let said = logged.with("can't be watched").len();
    assert!((1..=2).contains(&said), "{:?}", logged.with("can't be watched"));
    server.faults("ping").remove(outage);
    create(&api, "b").await;
    become_keys(&mut known, &["default/a", "default/b"]).await;
}

#[tokio::test(start_paused = true)]
async fn many_changes_at_once_are_taken_together() {
    let (server, api) = served().await;
    for i in 0..300 {
        create(&api, &format!("s{i}")).await;
    }
    let (keeper, mut known) = keeper();
    let _following = follow(&server, keeper);
    let all = known.wait_for(|now| now.as_ref().is_some_and(|now| now.len() == 300));
    assert!(tokio::time::timeout(SOON, all).await.is_ok(), "one list, never a part of it");
}
