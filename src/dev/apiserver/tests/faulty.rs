//! Each fault, as a client sees it.

use std::future::Future;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, PostParams};
use tokio::time::{Instant, timeout};

use super::*;
use crate::dev::apiserver::{Cut, Effect, Match, Outage, Staleness, Verb};

const SEC: Duration = Duration::from_secs(1);

fn holder(s: &Server) -> Option<String> {
    let object = s.object("coordination.k8s.io", "leases", "default", "l")?;
    Some(object.value()["spec"]["holderIdentity"].as_str().expect("a holder").to_owned())
}

/// A server with a Lease that `x` holds, and the PUT by which `y` takes it.
async fn taking() -> (Server, impl Future<Output = Result<Lease, kube::Error>>) {
    let s = server();
    let mut made = leases(&s, "setup").create(&PostParams::default(), &lease("l", "x")).await.expect("created");
    made.spec.as_mut().expect("spec").holder_identity = Some("y".into());
    let api = leases(&s, "c");
    let put = async move { api.replace("l", &PostParams::default(), &made).await };
    (s, put)
}

fn put() -> Match {
    Match::verb(Verb::Update).resource("leases").name("l")
}

#[tokio::test(start_paused = true)]
async fn a_delay_before_the_commit_can_be_cancelled() {
    let (s, take) = taking().await;
    s.faults("c").inject(put(), Effect::DelayBefore(5 * SEC));
    assert!(timeout(2 * SEC, take).await.is_err());
    tokio::time::sleep(10 * SEC).await;
    assert_eq!(holder(&s).as_deref(), Some("x"), "dropped before its commit, it never lands");
    let last = s.requests().pop().expect("recorded");
    assert_eq!((last.code, last.revision), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_delay_before_the_commit_lands_when_waited_for() {
    let (s, take) = taking().await;
    s.faults("c").inject(put(), Effect::DelayBefore(5 * SEC));
    let begun = Instant::now();
    take.await.expect("200");
    assert_eq!(begun.elapsed().as_secs(), 5);
    assert_eq!(holder(&s).as_deref(), Some("y"));
}

#[tokio::test(start_paused = true)]
async fn a_delay_after_the_commit_has_landed_when_the_client_gives_up() {
    let (s, take) = taking().await;
    s.faults("c").inject(put(), Effect::DelayAfter(5 * SEC));
    assert!(timeout(2 * SEC, take).await.is_err());
    assert_eq!(holder(&s).as_deref(), Some("y"));
}

#[tokio::test(start_paused = true)]
async fn a_late_commit_lands_although_nobody_waits() {
    let (s, take) = taking().await;
    s.faults("c").inject(put(), Effect::LateCommit(5 * SEC));
    assert!(timeout(2 * SEC, take).await.is_err());
    assert_eq!(holder(&s).as_deref(), Some("x"), "read: not there");
    tokio::time::sleep(4 * SEC).await;
    assert_eq!(holder(&s).as_deref(), Some("y"), "and then it lands");
}

#[tokio::test(start_paused = true)]
async fn a_late_commit_is_judged_when_it_lands() {
    let (s, take) = taking().await;
    s.faults("c").inject(put(), Effect::LateCommit(5 * SEC));
    assert!(timeout(2 * SEC, take).await.is_err());
    let other = leases(&s, "o");
    let mut l = other.get("l").await.expect("there");
    l.spec.as_mut().expect("spec").holder_identity = Some("z".into());
    other.replace("l", &PostParams::default(), &l).await.expect("200");
    tokio::time::sleep(4 * SEC).await;
    assert_eq!(holder(&s).as_deref(), Some("z"), "its resourceVersion is stale by then");
}

#[tokio::test(start_paused = true)]
async fn hangs_last_until_they_are_cancelled() {
    for (effect, lands) in [(Effect::HangBefore, "x"), (Effect::HangAfter, "y")] {
        let (s, take) = taking().await;
        s.faults("c").inject(put(), effect);
        assert!(timeout(3600 * SEC, take).await.is_err());
        assert_eq!(holder(&s).as_deref(), Some(lands), "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn broken_connections_are_errors_of_the_service() {
    for (effect, lands) in [(Effect::DropBefore, "x"), (Effect::DropAfter, "y")] {
        let (s, take) = taking().await;
        s.faults("c").inject(put(), effect);
        assert!(matches!(take.await.expect_err("broken"), kube::Error::Service(_)));
        assert_eq!(holder(&s).as_deref(), Some(lands), "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_can_lie() {
    for wanted in [500, 503, 429, 403, 409] {
        for (effect, lands) in [(Effect::AnswerBefore(wanted, Some(1)), "x"), (Effect::AnswerAfter(wanted, None), "y")]
        {
            let (s, take) = taking().await;
            // kube retries 429, 503 and 504 by itself unless told not to; only the first answer is the rule's.
            s.faults("c").inject(put().times(1), effect);
            let path = format!("{LEASES}/l");
            let mut body = s.object("coordination.k8s.io", "leases", "default", "l").expect("there").value().clone();
            body["spec"]["holderIdentity"] = json!("y");
            let (code, status) = raw_as(&s, "c", Method::PUT, &path, "application/json", body).await;
            drop(take);
            assert_eq!((code.as_u16(), &status["code"]), (wanted, &json!(wanted)));
            assert_eq!(holder(&s).as_deref(), Some(lands), "{effect:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rules_count_and_choose() {
    let s = server();
    let f = s.faults("c");
    let names = Match::verb(Verb::Get).name_where(|n| n.starts_with('a'));
    let second = f.inject(names.clone().nth(2), Effect::DropBefore);
    let get = async |name: &str| {
        let request = Request::get(format!("{LEASES}/{name}")).body(kube::client::Body::empty()).expect("a request");
        s.client("c").oneshot(request).await.is_err()
    };
    assert_eq!([get("a").await, get("b").await, get("a").await, get("a").await], [false, false, true, false]);
    assert_eq!(f.fired(second), 1);
    f.remove(second);
    let _ = f.inject(names.clone().every(2).times(2), Effect::DropBefore);
    let mut hits = Vec::new();
    for _ in 0..8 {
        hits.push(get("a").await);
    }
    assert_eq!(hits, [false, true, false, true, false, false, false, false]);
    f.clear();
    assert!(!get("a").await);
    let half = f.inject(Match::any().probability(0.5), Effect::DropBefore);
    for _ in 0..200 {
        get("a").await;
    }
    assert!((60..140).contains(&f.fired(half)), "{}", f.fired(half));
    // Rules are the client's own.
    let api = leases(&s, "other");
    api.list(&ListParams::default()).await.expect("no fault");
}

#[tokio::test(start_paused = true)]
async fn reads_can_be_stale() {
    let (s, take) = taking().await;
    let then = s.revision();
    take.await.expect("200");
    let f = s.faults("c");
    let rule = f.inject(Match::cached_reads(), Effect::Stale(Staleness::Behind(1)));
    let read = async |q: &str| {
        let (_, l) = raw_as(&s, "c", Method::GET, &format!("{LEASES}{q}"), "", Value::Null).await;
        (
            l["items"][0]["spec"]["holderIdentity"].as_str().expect("held").to_owned(),
            l["metadata"]["resourceVersion"].clone(),
        )
    };
    assert_eq!(read("?resourceVersion=0").await, ("x".into(), json!(then.to_string())));
    assert_eq!(read("").await.0, "y", "a quorum read is not a cached one");
    f.remove(rule);
    f.inject(Match::reads(), Effect::Stale(Staleness::At(then)));
    assert_eq!(read("").await.0, "x");
    let (_, l) = raw_as(&s, "c", Method::GET, &format!("{LEASES}/l"), "", Value::Null).await;
    assert_eq!(l["spec"]["holderIdentity"], "x");
    let (lines, _w) = watch(&s, "c", &format!("{LEASES}?watch=1&resourceVersion=0")).await;
    settle().await;
    assert_eq!(lines.kinds(), ["ADDED", "MODIFIED"], "a watch catches up from there");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_shows_nothing_and_does_not_end() {
    let (s, take) = taking().await;
    let from = s.revision();
    let q = format!("{LEASES}?watch=1&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=600");
    let (silenced, task) = watch(&s, "c", &q).await;
    let (other, _w) = watch(&s, "o", &q).await;
    let rule = s.faults("c").inject(Match::verb(Verb::Watch), Effect::SilentWatch);
    take.await.expect("200");
    tokio::time::sleep(700 * SEC).await;
    assert!(silenced.kinds().is_empty());
    assert!(!task.is_finished(), "not even its end arrives");
    assert_eq!(other.kinds()[0], "MODIFIED");
    s.faults("c").remove(rule);
    settle().await;
    assert_eq!(silenced.kinds(), ["MODIFIED"], "what it missed comes when the silence ends");
    assert!(task.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_lag() {
    let (s, take) = taking().await;
    let from = s.revision();
    s.faults("c").inject(Match::verb(Verb::Watch), Effect::LagWatch(3 * SEC));
    let (lines, _w) = watch(&s, "c", &format!("{LEASES}?watch=1&resourceVersion={from}")).await;
    take.await.expect("200");
    tokio::time::sleep(Duration::from_millis(2990)).await;
    assert!(lines.kinds().is_empty());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(lines.kinds(), ["MODIFIED"]);
}

#[tokio::test(start_paused = true)]
async fn watches_can_be_cut() {
    let s = server();
    for (how, broken, shown) in [(Cut::End, false, 0), (Cut::Reset, true, 0), (Cut::Gone, false, 1)] {
        let (lines, task) = watch(&s, "c", &format!("{LEASES}?watch=1")).await;
        settle().await;
        assert_eq!(s.faults("c").open_watches(&Match::any()), 1);
        assert_eq!(s.faults("c").cut_watches(&Match::any().resource("leases"), how), 1);
        assert_eq!(task.await.expect("no panic"), broken);
        assert_eq!(lines.all().len(), shown);
        assert_eq!(s.faults("c").open_watches(&Match::any()), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn outages() {
    let s = server();
    let all = s.faults("*");
    let get = async || {
        let request = Request::get(LEASES).body(kube::client::Body::empty()).expect("a request");
        timeout(SEC, s.client("c").oneshot(request)).await.map(|r| r.map(|r| r.status().as_u16()).ok())
    };
    let (lines, task) = watch(&s, "c", &format!("{LEASES}?watch=1")).await;
    settle().await;
    let hole = all.outage(Outage::BlackHole);
    assert!(get().await.is_err(), "hangs");
    assert!(!task.is_finished());
    all.remove(hole);
    assert_eq!(get().await, Ok(Some(200)));
    let refused = all.outage(Outage::Refused);
    assert_eq!(get().await, Ok(None));
    assert!(task.await.expect("no panic"), "broken");
    all.remove(refused);
    all.outage(Outage::Answers(503));
    assert_eq!(get().await, Ok(Some(503)));
    all.clear();
    assert_eq!(get().await, Ok(Some(200)));
    assert!(lines.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_the_authorizers_403() {
    let s = server();
    s.deny("c", Some(Verb::Create), "leases");
    let error = leases(&s, "c").create(&PostParams::default(), &lease("l", "a")).await.expect_err("denied");
    let kube::Error::Api(status) = &error else { panic!("{error:?}") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        status.message,
        "leases.coordination.k8s.io is forbidden: User \"c\" cannot create resource \"leases\" in API group \
         \"coordination.k8s.io\" in the namespace \"default\""
    );
    leases(&s, "d").create(&PostParams::default(), &lease("l", "a")).await.expect("others may");
    s.allow("c", Some(Verb::Create), "leases");
    leases(&s, "c").create(&PostParams::default(), &lease("m", "a")).await.expect("allowed again");
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_and_recorded() {
    let (s, take) = taking().await;
    let mut commits = s.subscribe();
    take.await.expect("200");
    leases(&s, "c").list(&ListParams::default()).await.expect("a list");
    let counts = s.lease_requests();
    assert_eq!((counts.create, counts.update, counts.list, counts.get), (1, 1, 1, 0));
    assert_eq!(s.counts(Some("c"), "leases").create, 0);
    let commit = commits.recv().await.expect("a commit");
    assert_eq!((commit.verb, &*commit.client, commit.resource.as_str()), (Verb::Update, "c", "leases"));
    assert_eq!(commit.after.as_ref().map(|o| o.revision()), Some(s.revision()));
    assert_eq!(commit.before.expect("was there").value()["spec"]["holderIdentity"], "x");
    let record = &s.requests()[1];
    assert_eq!((record.code, record.revision, record.name.as_deref()), (Some(200), Some(commit.revision), Some("l")));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_server() {
    let uids = async || {
        let s = server();
        let made = leases(&s, "a").create(&PostParams::default(), &lease("l", "a")).await.expect("created");
        (made.metadata.uid, s.revision())
    };
    assert_eq!(uids().await, uids().await);
}
