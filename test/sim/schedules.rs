//! Named schedules: each once broke an earlier version of the protocol, or is what users of leader election report.

use crate::history::What;
use crate::world::{COMPONENT, Character, NAMESPACE, QUEUE, Replica, World, timing};
use leasehold::clock::{Boottime, SharedClock};
use leasehold::dev::apiserver::{Cut, Effect, Match, Outage, Verb};
use leasehold::leader::Reason;
use leasehold::lease::init::{Done, Init, InitError};
use leasehold::lease::{Connector, Cut as Layout, HashName, LeaseClient};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub const S: Duration = Duration::from_secs(1);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn bucket(i: u32, n: u32) -> String {
    leasehold::bucket::lease_name(&format!("{COMPONENT}.{QUEUE}"), i, n)
}

pub async fn init(world: &World, buckets: u32) -> Result<Done, InitError> {
    let clock: SharedClock = Arc::new(Boottime);
    let client = kube::Client::new(world.server.client("init"), NAMESPACE);
    let client =
        LeaseClient::new(Connector::client(client), NAMESPACE, clock.clone(), Arc::new(|_: &_| {})).expect("a client");
    let cut = Layout {
        strategy: "standard".into(),
        hash: HashName::Knative,
        buckets,
        prefix: format!("{COMPONENT}.{QUEUE}"),
    };
    let init = Init { layout: format!("{COMPONENT}.{QUEUE}"), cut, lease_duration: world.timing.lease_duration };
    init.run(&client, &clock, 5 * S).await
}

pub fn held(replicas: &[&Replica]) -> usize {
    replicas.iter().map(|r| r.held()).sum()
}

pub async fn all_held(world: &World, replicas: &[&Replica], bound: Duration) -> Duration {
    let n = world.buckets as usize;
    world.until("every bucket held", bound, || held(replicas) == n).await
}

/// A client for what a person does with kubectl.
pub fn person(world: &World) -> kube::Api<kube::core::DynamicObject> {
    let client = kube::Client::new(world.server.client("person"), NAMESPACE);
    let gvk = kube::core::GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    kube::Api::namespaced_with(client, NAMESPACE, &kube::core::ApiResource::from_gvk_with_plural(&gvk, "leases"))
}

pub async fn patch(world: &World, name: &str, patch: serde_json::Value) {
    let patch = kube::api::Patch::Merge(patch);
    person(world).patch(name, &kube::api::PatchParams::default(), &patch).await.expect("patched");
}

pub async fn remove(world: &World, name: &str) {
    person(world).delete(name, &kube::api::DeleteParams::default()).await.expect("deleted");
}

pub fn terms(world: &World) -> usize {
    world.history.entries().iter().filter(|e| matches!(e.what, What::Begun { .. })).count()
}

/// Whether a notice of this code was given.
fn said(world: &World, code: &str) -> bool {
    let given = |w: &What| matches!(w, What::Notice(text) if text.starts_with(code));
    world.history.entries().iter().any(|e| given(&e.what))
}

pub fn lost(world: &World) -> usize {
    let lost = |w: &What| matches!(w, What::Ended { reason: Reason::Lost, .. });
    world.history.entries().iter().filter(|e| lost(&e.what)).count()
}

#[tokio::test(start_paused = true)]
async fn first_start_waits_a_lease_duration_and_says_so() {
    let world = World::new(1, 10, timing(15, 10, 2));
    let a = world.replica(Character::default());
    tokio::time::sleep(14 * S).await;
    assert_eq!(a.held(), 0, "taken before the wait was over");
    let said = a.status.get("layout").expect("said");
    assert!(said.contains("first start") && said.contains("before 2"), "{said}");
    let waited = all_held(&world, &[&a], 3 * S).await;
    assert!(waited < 2 * S, "{waited:?}");
    // Paid once per queue: the next fleet starts at once.
    a.stop().await;
    let b = world.replica(Character::default());
    let waited = all_held(&world, &[&b], S).await;
    assert!(waited < ms(200), "{waited:?}");
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn init_skips_the_wait_and_changes_nothing_twice() {
    let world = World::new(2, 10, timing(15, 10, 2));
    assert_eq!(init(&world, 10).await.expect("opened"), Done::Opened { written: 10 });
    assert_eq!(init(&world, 10).await.expect("in force"), Done::AlreadyInForce);
    assert!(matches!(init(&world, 3).await, Err(InitError::Other { .. })));
    let a = world.replica(Character::default());
    let waited = all_held(&world, &[&a], S).await;
    assert!(waited < ms(200), "{waited:?}");
    remove(&world, &format!("{COMPONENT}.{QUEUE}")).await;
    assert!(matches!(init(&world, 10).await, Err(InitError::Held(_))));
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_together_share() {
    let world = World::new(3, 10, timing(15, 10, 2));
    world.server.faults("*").inject(Match::any(), Effect::DelayBefore(ms(2)));
    init(&world, 10).await.expect("opened");
    let all: Vec<Replica> = (0..3).map(|_| world.replica(Character::default())).collect();
    all_held(&world, &all.iter().collect::<Vec<_>>(), S).await;
    for r in &all {
        assert!((1..=6).contains(&r.held()), "{:?}", all.iter().map(Replica::held).collect::<Vec<_>>());
    }
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_stop_hands_over_at_once() {
    let world = World::new(4, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    assert_eq!(b.held(), 0);
    a.stop().await;
    all_held(&world, &[&b], S).await;
    let entries = world.history.entries();
    for i in 0..10 {
        let name = bucket(i, 10);
        let ended = entries
            .iter()
            .find(|e| matches!(&e.what, What::Ended { bucket, reason: Reason::Shutdown, .. } if *bucket == name));
        let promoted = entries.iter().rev().find(|e| matches!(&e.what, What::Promoted { bucket } if *bucket == name));
        let gap = promoted.expect("promoted").at - ended.expect("ended").at;
        assert!(gap < ms(100), "{name}: {gap:?}");
    }
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_killed_holder_is_followed_at_its_expiry() {
    let world = World::new(5, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(20 * S).await;
    let died = world.truth.now();
    a.kill();
    tokio::time::sleep(12 * S).await;
    assert_eq!(b.held(), 0, "taken before the lease ran out");
    all_held(&world, &[&b], 4 * S).await;
    // The last renewal of each was at most a retry-period before the death.
    let took = world.truth.now() - died;
    assert!(took >= 13 * S && took < 15 * S + ms(150), "{took:?}");
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn standbys_send_nothing_and_a_holder_one_write_a_period() {
    let world = World::new(6, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(10 * S).await;
    let (before_a, before_b) =
        (world.server.counts(Some(&a.name), "leases"), world.server.counts(Some(&b.name), "leases"));
    tokio::time::sleep(200 * S).await;
    let (after_a, after_b) =
        (world.server.counts(Some(&a.name), "leases"), world.server.counts(Some(&b.name), "leases"));
    assert_eq!(before_b, after_b, "the standby sent something");
    let writes = after_a.update - before_a.update;
    assert!((980..=1050).contains(&writes), "{writes} renewals of 10 buckets in 100 periods");
    assert_eq!(before_a.get, after_a.get);
    assert_eq!(before_a.list, after_a.list);
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_any_length_is_survived() {
    for length in [5, 12, 60, 600] {
        let world = World::new(7, 10, timing(15, 10, 2));
        init(&world, 10).await.expect("opened");
        let a = world.replica(Character::default());
        let b = world.replica(Character::default());
        all_held(&world, &[&a, &b], S).await;
        tokio::time::sleep(10 * S).await;
        let rule = world.server.faults("*").inject(Match::any(), Effect::Outage(Outage::Refused));
        world.server.cut_watches(&Match::any(), Cut::Reset);
        tokio::time::sleep(length * S).await;
        if length > 10 {
            assert_eq!(held(&[&a, &b]), 0, "held past the deadline");
        }
        world.server.faults("*").remove(rule);
        all_held(&world, &[&a, &b], 4 * S).await;
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_that_hang_lose_no_term() {
    let world = World::new(8, 10, timing(15, 10, 2));
    init(&world, 10).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    a.faults.inject(Match::verbs([Verb::Get, Verb::Update]).resource("leases").every(10), Effect::DelayBefore(15 * S));
    tokio::time::sleep(300 * S).await;
    assert_eq!(lost(&world), 0);
    assert_eq!(a.held(), 10);
    world.judge();
}

/// S5, cases V1 and F1: a take that times out and lands later is adopted by a write, and acted on.
#[tokio::test(start_paused = true)]
async fn a_take_that_lands_late_is_adopted() {
    let world = World::new(9, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    a.faults.inject(Match::verb(Verb::Update).name(bucket(1, 3)).times(1), Effect::LateCommit(6 * S));
    all_held(&world, &[&a], 30 * S).await;
    tokio::time::sleep(20 * S).await;
    assert_eq!(a.held(), 3);
    world.judge();
}

/// S6, cases H10, V4 and B6: once a release has been sent the term is over, whatever the answer.
#[tokio::test(start_paused = true)]
async fn a_release_of_unknown_outcome_ends_the_term() {
    let world = World::new(10, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    // The release lands, its answer is lost; for another bucket it lands after the time-out.
    let release = |i| Match::verb(Verb::Update).name(bucket(i, 3)).times(1);
    a.tell_to_stop();
    a.faults.inject(release(0), Effect::HangAfter);
    a.faults.inject(release(1), Effect::LateCommit(4 * S));
    all_held(&world, &[&b], 20 * S).await;
    world.until("the stopped one has ended", 20 * S, || !a.is_running()).await;
    world.judge();
}

/// S2 and S5, case B8: a renewal whose answer is lost counts from its own send, and loses no term.
#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_is_read_and_counts() {
    let world = World::new(11, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    a.faults.inject(Match::verb(Verb::Update).resource("leases").every(2), Effect::HangAfter);
    tokio::time::sleep(120 * S).await;
    assert_eq!(lost(&world), 0);
    // A server that answers 500 after it has written is the same.
    a.faults.clear();
    a.faults.inject(Match::verb(Verb::Update).resource("leases").every(3), Effect::AnswerAfter(500, None));
    a.faults.inject(Match::verb(Verb::Update).resource("leases").every(5), Effect::AnswerAfter(409, None));
    tokio::time::sleep(120 * S).await;
    assert_eq!(lost(&world), 0);
    assert_eq!(terms(&world), 3);
    world.judge();
}

/// 5.1 and case S1: a Lease that is deleted while held ends the term, is made anew, empty, and waits.
#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_never_free_at_once() {
    let world = World::new(12, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    tokio::time::sleep(5 * S).await;
    remove(&world, &bucket(0, 3)).await;
    tokio::time::sleep(S).await;
    assert_eq!(held(&[&a, &b]), 2);
    assert!(said(&world, "lease-gone"));
    tokio::time::sleep(13 * S).await;
    assert_eq!(held(&[&a, &b]), 2, "taken before anybody who may still act has ended");
    all_held(&world, &[&a, &b], 3 * S).await;
    world.judge();
}

/// A Lease deleted by a person does not cost the bucket its place: whoever makes it anew puts the last checkpoint back.
#[tokio::test(start_paused = true)]
async fn a_deleted_lease_keeps_its_checkpoint() {
    let world = World::new(70, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let term = a.leadership.terms().remove(0);
    term.checkpoint().store("page 7").expect("kept");
    term.checkpoint().flush().await.expect("written");
    let b = world.replica(Character::default());
    tokio::time::sleep(S).await;
    a.kill();
    remove(&world, &bucket(0, 1)).await;
    all_held(&world, &[&b], 20 * S).await;
    assert_eq!(b.leadership.terms()[0].checkpoint().load().as_deref(), Some("page 7"));
    world.judge();
}

/// A holder blanked, or renamed, by a person; a Lease without spec.
#[tokio::test(start_paused = true)]
async fn what_a_person_does_to_a_lease_is_survived() {
    let edits = [
        json!({"spec": {"holderIdentity": ""}}),
        json!({"spec": {"holderIdentity": null}}),
        json!({"spec": null}),
        json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 20}}),
        json!({"spec": {"renewTime": null, "acquireTime": null}}),
        json!({"spec": {"leaseDurationSeconds": 2_147_483_647}}),
        json!({"metadata": {"annotations": {"leasehold.dev/holder": null}}}),
        json!({"metadata": {"annotations": {"leasehold.dev/holder": "{\"v\":1"}}}),
    ];
    for (i, edit) in edits.into_iter().enumerate() {
        let world = World::new(13 + i as u64, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        let b = world.replica(Character::default());
        all_held(&world, &[&a, &b], S).await;
        tokio::time::sleep(5 * S).await;
        patch(&world, &bucket(1, 3), edit.clone()).await;
        tokio::time::sleep(ms(200)).await;
        assert_eq!(lost(&world), 1, "{edit}: the term of bucket 1 went on");
        if edit.get("metadata").is_none() {
            // Where only our annotation went, the holder adopts what it still holds by a write, for a new term (S5).
            assert_eq!(held(&[&a, &b]), 2, "{edit}");
        }
        // At the latest: a foreign holder of 20 s, with the grace of 10 s.
        all_held(&world, &[&a, &b], 32 * S).await;
        world.judge();
    }
}

/// A stranger's label changes the resourceVersion: the term goes on, and so does its silence (S4).
#[tokio::test(start_paused = true)]
async fn a_label_neither_ends_a_term_nor_proves_life() {
    let world = World::new(30, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    for i in 0..30 {
        patch(&world, &bucket(0, 3), json!({"metadata": {"labels": {"n": i.to_string()}}})).await;
        tokio::time::sleep(ms(700)).await;
    }
    assert_eq!((a.held(), terms(&world)), (3, 3));
    let kept = person(&world).get(&bucket(0, 3)).await.expect("there");
    assert_eq!(kept.metadata.labels.expect("kept")["n"], "29", "a label was lost in a write");
    a.kill();
    for i in 0..16 {
        patch(&world, &bucket(0, 3), json!({"metadata": {"labels": {"n": i.to_string()}}})).await;
        tokio::time::sleep(S).await;
    }
    assert_eq!(b.held(), 3, "an annotator kept a dead holder alive");
    world.judge();
}

/// 5.1 and case H17: client-go may act on after its lease: a grace is added for it, none for one of us.
#[tokio::test(start_paused = true)]
async fn a_foreign_holder_is_respected_with_a_grace() {
    let world = World::new(31, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let name = bucket(2, 3);
    let foreign = json!({"spec": {"holderIdentity": "go-1_x", "leaseDurationSeconds": 20, "leaseTransitions": 4,
        "renewTime": "2026-01-01T00:00:00.000000Z", "acquireTime": "2026-01-01T00:00:00.000000Z"}});
    patch(&world, &name, foreign).await;
    let a = world.replica(Character::default());
    world.until("the other two held", S, || a.held() == 2).await;
    tokio::time::sleep(29 * S).await;
    assert_eq!(a.held(), 2, "a foreign holder's lease of 20 s and the grace of 10 s");
    all_held(&world, &[&a], 2 * S).await;
    // Released as client-go releases, without our record: waited for as long, with the grace.
    let release = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}, "metadata": {"annotations": {"leasehold.dev/holder": null}}});
    patch(&world, &name, json!({"spec": {"holderIdentity": "go-2_x"}})).await;
    tokio::time::sleep(S).await;
    patch(&world, &name, release).await;
    // 20 s had bound in it before, and the grace of 10 s.
    tokio::time::sleep(29 * S).await;
    assert_eq!(a.held(), 2, "client-go releases before it stops");
    all_held(&world, &[&a], 2 * S).await;
    world.judge();
}

/// S4 and cases H11 and T1: the longer duration binds.
#[tokio::test(start_paused = true)]
async fn the_longer_duration_binds() {
    let world = World::new(32, 3, timing(60, 40, 10));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let short = Some(timing(15, 10, 2));
    let b = world.replica(Character { timing: short, ..Character::default() });
    tokio::time::sleep(20 * S).await;
    // Cut off, and its Leases deleted: whoever waits must wait as long as it may act.
    a.faults.inject(Match::any(), Effect::Outage(Outage::BlackHole));
    for i in 0..3 {
        remove(&world, &bucket(i, 3)).await;
    }
    let cut = world.truth.now();
    all_held(&world, &[&b], 90 * S).await;
    assert!(world.truth.now() - cut >= 59 * S, "{:?}", world.truth.now() - cut);
    world.judge();
}

/// Durations that change live: a shorter lease is written before anybody counts by it.
#[tokio::test(start_paused = true)]
async fn durations_change_live() {
    let world = World::new(33, 3, timing(60, 40, 10));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    tokio::time::sleep(30 * S).await;
    for r in [&a, &b] {
        r.configure(&world, timing(5, 4, 1));
    }
    tokio::time::sleep(200 * S).await;
    assert_eq!((held(&[&a, &b]), terms(&world)), (3, 3));
    let (a_held, died) = (a.held(), world.truth.now());
    a.kill();
    all_held(&world, &[&b], 10 * S).await;
    assert!(a_held == 0 || world.truth.now() - died < 6 * S, "the short lease is in force");
    b.configure(&world, timing(60, 40, 10));
    tokio::time::sleep(100 * S).await;
    assert_eq!(b.held(), 3);
    world.judge();
}

/// S9: a restored etcd: terms end, the era is raised, tokens go on growing.
#[tokio::test(start_paused = true)]
async fn a_restored_etcd_raises_the_era() {
    let world = World::new(34, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    tokio::time::sleep(20 * S).await;
    let backup = world.server.snapshot();
    tokio::time::sleep(60 * S).await;
    let before = a.leadership.terms()[0].token().expect("a token");
    world.server.restore(&backup);
    world
        .until("a term of a later era", 60 * S, || {
            a.held() == 3 && a.leadership.terms().iter().all(|t| t.token().is_some_and(|t| t.era() > before.era()))
        })
        .await;
    assert!(a.leadership.terms()[0].token().expect("a token") > before);
    world.judge();
}

/// 6.1 and case H15: the layout Lease deleted while all is held: terms end in good order, and the queue opens anew.
#[tokio::test(start_paused = true)]
async fn a_deleted_layout_lease_is_a_first_start() {
    let world = World::new(35, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    tokio::time::sleep(5 * S).await;
    remove(&world, &format!("{COMPONENT}.{QUEUE}")).await;
    world.until("all released", S, || held(&[&a, &b]) == 0).await;
    tokio::time::sleep(14 * S).await;
    assert_eq!(held(&[&a, &b]), 0);
    all_held(&world, &[&a, &b], 5 * S).await;
    assert_eq!(lost(&world), 0);
    world.judge();
}

/// Another layout than the one in force: it stands by, ready, saying so.
#[tokio::test(start_paused = true)]
async fn another_layout_stands_by() {
    let world = World::new(36, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character { buckets: Some(7), ..Character::default() });
    tokio::time::sleep(120 * S).await;
    assert_eq!((a.held(), b.held()), (3, 0));
    assert!(b.status.get("layout").expect("said").starts_with("standing by: in force is strategy standard"));
    world.judge();
}

/// Case V10: a silent watch costs time, never safety.
#[tokio::test(start_paused = true)]
async fn a_silent_watch_costs_time_never_safety() {
    let world = World::new(37, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    b.faults.inject(Match::verb(Verb::Watch), Effect::SilentWatch);
    tokio::time::sleep(300 * S).await;
    assert_eq!((a.held(), b.held(), lost(&world)), (3, 0, 0));
    a.faults.inject(Match::verb(Verb::Watch), Effect::SilentWatch);
    tokio::time::sleep(60 * S).await;
    assert_eq!((a.held(), lost(&world)), (3, 0), "its own writes show it what it holds");
    world.judge();
}

/// 403 on each verb in turn: said, survived, recovered from when given back.
#[tokio::test(start_paused = true)]
async fn a_verb_taken_away_is_said_and_recovered_from() {
    for verb in [Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Update] {
        let world = World::new(38, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let name = "r0";
        world.server.deny(name, Some(verb), "leases");
        let a = world.replica(Character::default());
        tokio::time::sleep(30 * S).await;
        world.server.allow(name, Some(verb), "leases");
        all_held(&world, &[&a], 12 * S).await;
        world.judge();
    }
}

/// S6: a stop ends although what is named as ours can neither be read nor released: it has run out by then.
#[tokio::test(start_paused = true)]
async fn a_stop_ends_in_an_outage() {
    for outage in [Outage::Refused, Outage::BlackHole, Outage::Answers(503)] {
        let world = World::new(44, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        a.faults.inject(Match::any(), Effect::Outage(outage));
        world.server.cut_watches(&Match::any(), Cut::Reset);
        world.until("every term lost", 12 * S, || a.held() == 0).await;
        tokio::time::sleep(20 * S).await;
        tokio::time::timeout(20 * S, a.stop()).await.expect("a stop takes no longer than lease-duration");
        world.judge();
    }
}

/// A SYSTEM_NAMESPACE that is not there: every POST is answered with 404. Said, and not asked for again and again.
#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_said_and_the_server_spared() {
    let world = World::new(45, 3, timing(15, 10, 2));
    let a = world.replica(Character::default());
    let rule = a.faults.inject(Match::verb(Verb::Create), Effect::AnswerBefore(404, None));
    tokio::time::sleep(60 * S).await;
    assert!(a.status.get("no-namespace").is_some_and(|t| t.contains("SYSTEM_NAMESPACE")), "{:?}", a.status.all());
    let counts = world.server.counts(Some(&a.name), "leases");
    assert!(counts.create < 90 && counts.get < 90, "{counts:?} in a minute");
    a.faults.remove(rule);
    all_held(&world, &[&a], 20 * S).await;
    assert_eq!(a.status.get("no-namespace"), None);
    world.judge();
}

/// Writes that fail while reads succeed (a webhook that is down): the pause grows all the same.
#[tokio::test(start_paused = true)]
async fn writes_that_fail_for_long_come_seldom() {
    for code in [409, 500, 503] {
        let world = World::new(46, 3, timing(15, 10, 2));
        init(&world, 3).await.expect("opened");
        let a = world.replica(Character::default());
        all_held(&world, &[&a], S).await;
        let rule = a.faults.inject(Match::verb(Verb::Update), Effect::AnswerBefore(code, None));
        let before = world.server.counts(Some(&a.name), "leases");
        tokio::time::sleep(60 * S).await;
        let after = world.server.counts(Some(&a.name), "leases");
        let writes = after.update - before.update;
        assert!(writes < 3 * 100, "{writes} writes of 3 buckets in a minute that answers {code}");
        a.faults.remove(rule);
        all_held(&world, &[&a], 20 * S).await;
        world.judge();
    }
}

/// What happens a second time is said a second time.
#[tokio::test(start_paused = true)]
async fn what_happens_again_is_said_again() {
    let world = World::new(47, 1, timing(15, 10, 2));
    init(&world, 1).await.expect("opened");
    let a = world.replica(Character::default());
    let mut said = Vec::new();
    for _ in 0..2 {
        all_held(&world, &[&a], 60 * S).await;
        patch(&world, &bucket(0, 1), json!({"spec": {"holderIdentity": ""}})).await;
        world.until("lost", S, || a.held() == 0).await;
        said.push(a.status.get("lost").expect("said"));
    }
    assert!(said[0].contains("at ") && said[0] != said[1], "{said:?}");
    world.judge();
}

/// The machine sleeps: no timer has run, and no guard is given on waking.
#[tokio::test(start_paused = true)]
async fn no_guard_after_a_suspend() {
    let world = World::new(39, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    a.clock.sleep(60 * S);
    assert!((0..40).all(|i| a.leadership.guard(&format!("ns/{i}")).is_none()), "a guard past the deadline");
    world.until("the deadline is said to have passed", 2 * S, || said(&world, "deadline")).await;
    all_held(&world, &[&a], 5 * S).await;
    world.judge();
}

/// A wall clock that jumps an hour, either way, changes nothing.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_changes_nothing() {
    let world = World::new(40, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    for hours in [1, -1, 0, -2, 5] {
        a.clock.set_wall_off(jiff::SignedDuration::from_hours(hours));
        tokio::time::sleep(30 * S).await;
    }
    assert_eq!((held(&[&a, &b]), terms(&world)), (3, 3));
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_second_elector_of_one_queue_is_refused() {
    use leasehold::elector::{BuildError, Queue, Status, Strategy, standard::Standard};
    let world = World::new(41, 3, timing(15, 10, 2));
    let clock: SharedClock = Arc::new(Boottime);
    let client = kube::Client::new(world.server.client("x"), NAMESPACE);
    let observer: Arc<dyn leasehold::leader::observe::Observer> = Arc::new(|_: &_| {});
    let manager = leasehold::lease::Manager::new(Connector::client(client), NAMESPACE, clock.clone());
    let standard = Standard::new(manager.expect("a client"));
    let queue = |name: &str| Queue {
        component: COMPONENT.into(),
        name: name.into(),
        identity: "x_1".into(),
        config: tokio::sync::watch::channel(Arc::new(world.config(&Character::default()))).1,
        clock: clock.clone(),
        observer: observer.clone(),
        on_fatal: leasehold::leader::fatal::exits(),
        status: Status::default(),
    };
    let first = standard.build(queue("q")).map(drop_later).expect("the first");
    assert!(matches!(standard.build(queue("q")), Err(BuildError::Twice { .. })));
    assert!(standard.build(queue("other")).is_ok());
    drop(first);
    assert!(standard.build(queue("q")).is_ok(), "free again");
    let long = "q".repeat(300);
    let error = standard.build(queue(&long)).err().expect("too long").to_string();
    assert!(error.contains("253"), "{error}");
}

fn drop_later(e: Box<dyn leasehold::elector::Elector>) -> Box<dyn leasehold::elector::Elector> {
    e
}
