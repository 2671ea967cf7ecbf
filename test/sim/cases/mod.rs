//! Schedules that broke earlier versions of the protocol, and what users of leader election report: one test each, named
//! after the rule it is about. `docs/schedules.md` says which is where.
//!
//! Each plays the shortest schedule with the faults of the in-memory server and is judged by all rules.

mod authors;
mod clocks;
mod crowd;
mod first_start;
mod free;
mod people;
mod records;
mod reports;
mod s2;
mod s3;
mod s4;
mod s5;
mod s6;
mod s8;
mod s9;

use crate::history::What;
use crate::world::{COMPONENT, NAMESPACE, QUEUE, Replica, World};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use leasehold::clock::{Boottime, SharedClock};
use leasehold::dev::apiserver::{Effect, Match, Outage, Verb};
use leasehold::leader::Reason;
use leasehold::lease::init::{Done, Init, InitError};
use leasehold::lease::{Connector, Cut as Layout, Draft, HashName, LeaseClient, Record, Times};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub const S: Duration = Duration::from_secs(1);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The name of the layout Lease.
pub fn layout() -> String {
    format!("{COMPONENT}.{QUEUE}")
}

/// The name of bucket `i` of `n`.
pub fn bucket(i: u32, n: u32) -> String {
    leasehold::bucket::lease_name(&layout(), i, n)
}

pub async fn init(world: &World, buckets: u32) -> Result<Done, InitError> {
    let clock: SharedClock = Arc::new(Boottime);
    let client = client(world, "init");
    let cut = Layout { strategy: "standard".into(), hash: HashName::Knative, buckets, prefix: layout() };
    let init = Init { layout: layout(), cut, lease_duration: world.timing.lease_duration };
    init.run(&client, &clock, 5 * S).await
}

/// Our own client, as `name`.
pub fn client(world: &World, name: &str) -> LeaseClient {
    let client = kube::Client::new(world.server.client(name), NAMESPACE);
    LeaseClient::new(Connector::client(client), NAMESPACE, Arc::new(Boottime), Arc::new(|_: &_| {})).expect("a client")
}

pub fn held(replicas: &[&Replica]) -> usize {
    replicas.iter().map(|r| r.held()).sum()
}

pub async fn all_held(world: &World, replicas: &[&Replica], bound: Duration) -> Duration {
    let n = world.buckets as usize;
    world.until("every bucket held", bound, || held(replicas) == n).await
}

/// A client for what a person does with kubectl.
pub fn person(world: &World) -> kube::Api<DynamicObject> {
    let client = kube::Client::new(world.server.client("person"), NAMESPACE);
    let gvk = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    kube::Api::namespaced_with(client, NAMESPACE, &ApiResource::from_gvk_with_plural(&gvk, "leases"))
}

pub async fn patch(world: &World, name: &str, patch: Value) {
    person(world).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

pub async fn remove(world: &World, name: &str) {
    person(world).delete(name, &DeleteParams::default()).await.expect("deleted");
}

/// A person makes a Lease.
pub async fn make(world: &World, name: &str, annotations: Value, spec: Value) {
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "annotations": annotations}, "spec": spec});
    let lease: DynamicObject = serde_json::from_value(lease).expect("a Lease");
    person(world).create(&PostParams::default(), &lease).await.expect("made");
}

/// The buckets of a cut into `n`, each there with a release record: free at once.
pub async fn make_released(world: &World, n: u32) {
    for i in 0..n {
        let draft = Draft::init(&bucket(i, n), 15 * S, Times { wall: "2026-01-01T00:00:00Z".parse().expect("a time") });
        person(world).create(&PostParams::default(), &draft.object).await.expect("made");
    }
}

/// What says that a queue is cut into `buckets`, under `generation`; of a layout Lease.
pub fn layout_note(buckets: u32, generation: u64) -> Value {
    let note = json!({"v": 1, "strategy": "standard", "hash": "knative", "buckets": buckets, "prefix": layout(),
        "generation": generation, "open": true, "era": 0, "leaseDurationSeconds": 15});
    json!({"leasehold.dev/layout": note.to_string()})
}

/// A Lease as it stands.
pub fn lease(world: &World, name: &str) -> Option<Record> {
    let object = world.server.object("coordination.k8s.io", "leases", NAMESPACE, name)?;
    Some(Record::of(serde_json::from_value(object.value().clone()).expect("a Lease")))
}

/// Nothing of this replica reaches the server, and it hears nothing.
pub fn cut_off(replica: &Replica) -> leasehold::dev::apiserver::RuleId {
    replica.faults.inject(Match::any(), Effect::Outage(Outage::BlackHole))
}

/// It is shown nothing any more: its watch is silent, and lists hang. Reads by name and writes work.
pub fn blind(replica: &Replica) {
    replica.faults.inject(Match::verb(Verb::Watch), Effect::SilentWatch);
    replica.faults.inject(Match::verb(Verb::List), Effect::HangBefore);
}

/// A guard that takes so long, whatever it is told; the history hears of it.
pub fn stubborn(world: &World, replica: &Replica, length: Duration) -> tokio::task::JoinHandle<()> {
    let guarded = (0..100).find_map(|i| {
        let key = format!("stubborn/{i}");
        replica.leadership.guard(&key).map(|guard| (key, guard))
    });
    let (key, guard) = guarded.expect("something held");
    let (truth, history, name) = (world.truth, world.history.clone(), replica.name.clone());
    tokio::spawn(async move {
        let began = truth.now();
        tokio::time::sleep(length).await;
        let (bucket, token) = (guard.bucket().name().to_owned(), guard.token());
        let until = truth.now();
        drop(guard);
        history.add(began, &name, What::Act { bucket, key, token, given: began, until, stubborn: true });
    })
}

/// Fails on any broken rule; what two would do at one time has a while to happen in.
pub async fn judge(world: &World) {
    tokio::time::sleep(5 * S).await;
    world.judge();
}

/// How many terms have begun.
pub fn terms(world: &World) -> usize {
    world.history.entries().iter().filter(|e| matches!(e.what, What::Begun { .. })).count()
}

/// How many of this replica.
pub fn terms_of(world: &World, replica: &Replica) -> usize {
    let begun = |e: &&crate::history::Entry| *e.replica == *replica.name && matches!(e.what, What::Begun { .. });
    world.history.entries().iter().filter(begun).count()
}

/// Whether a notice of this code was given.
pub fn said(world: &World, code: &str) -> bool {
    let given = |w: &What| matches!(w, What::Notice(text) if text.starts_with(code));
    world.history.entries().iter().any(|e| given(&e.what))
}

pub fn lost(world: &World) -> usize {
    let lost = |w: &What| matches!(w, What::Ended { reason: Reason::Lost, .. });
    world.history.entries().iter().filter(|e| lost(&e.what)).count()
}
