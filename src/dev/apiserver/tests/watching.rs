//! Watches, lists and the history behind them.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, PostParams};

use super::*;

async fn make(api: &Api<Lease>, names: &[&str]) {
    for name in names {
        api.create(&PostParams::default(), &lease(name, "a")).await.expect("created");
    }
}

async fn touch(api: &Api<Lease>, name: &str, holder: &str) -> Lease {
    let mut l = api.get(name).await.expect("there");
    l.spec.as_mut().expect("spec").holder_identity = Some(holder.into());
    api.replace(name, &PostParams::default(), &l).await.expect("replaced")
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_revision_shows_each_change_once_in_order() {
    let s = server();
    let api = leases(&s, "a");
    make(&api, &["x"]).await;
    let from = s.revision();
    touch(&api, "x", "b").await;
    let (lines, _w) = watch(&s, "w", &format!("{LEASES}?watch=1&resourceVersion={from}")).await;
    make(&api, &["y"]).await;
    touch(&api, "x", "c").await;
    api.delete("x", &DeleteParams::default()).await.expect("deleted");
    settle().await;
    assert_eq!(lines.kinds(), ["MODIFIED", "ADDED", "MODIFIED", "DELETED"]);
    let revisions: Vec<u64> = lines
        .all()
        .iter()
        .map(|l| l["object"]["metadata"]["resourceVersion"].as_str().expect("rv").parse().expect("a number"))
        .collect();
    assert_eq!(revisions, (from + 1..=from + 4).collect::<Vec<_>>());
    assert_eq!(lines.all()[3]["object"]["spec"]["holderIdentity"], "c");
}

#[tokio::test(start_paused = true)]
async fn without_a_revision_a_watch_first_shows_what_is_there() {
    let s = server();
    let api = leases(&s, "a");
    make(&api, &["x", "y"]).await;
    for rv in ["", "&resourceVersion=0", "&resourceVersion="] {
        let (lines, _w) = watch(&s, "w", &format!("{LEASES}?watch=1{rv}")).await;
        settle().await;
        assert_eq!(lines.kinds(), ["ADDED", "ADDED"], "{rv}");
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark() {
    let s = server();
    make(&leases(&s, "a"), &["x"]).await;
    let q = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let (lines, _w) = watch(&s, "w", &format!("{LEASES}?{q}")).await;
    settle().await;
    assert_eq!(lines.kinds(), ["ADDED", "BOOKMARK"]);
    let meta = &lines.all()[1]["object"]["metadata"];
    assert_eq!(meta["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(meta["resourceVersion"], s.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_to_those_who_asked() {
    let s = server();
    let api = leases(&s, "a");
    let from = s.revision();
    let (with, _a) = watch(&s, "w", &format!("{LEASES}?watch=1&resourceVersion={from}&allowWatchBookmarks=true")).await;
    let (without, _b) = watch(&s, "w", &format!("{LEASES}?watch=1&resourceVersion={from}")).await;
    make(&api, &["x"]).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(with.kinds(), ["ADDED", "BOOKMARK"]);
    let bookmark = with.all()[1].clone();
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], s.revision().to_string());
    assert_eq!(bookmark["object"]["kind"], "Lease");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((with.kinds().len(), without.kinds().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout() {
    let s = server();
    let (_, task) = watch(&s, "w", &format!("{LEASES}?watch=1&timeoutSeconds=10")).await;
    let begun = tokio::time::Instant::now();
    assert!(!task.await.expect("no panic"), "in good order");
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_compacted_revision_is_410_to_lists_and_an_error_event_to_watches() {
    let s = server();
    let api = leases(&s, "a");
    let old = s.revision();
    make(&api, &["x", "y"]).await;
    let (open, _w) = watch(&s, "w", &format!("{LEASES}?watch=1&resourceVersion={old}")).await;
    s.compact(s.revision());
    let (lines, task) = watch(&s, "w", &format!("{LEASES}?watch=1&resourceVersion={old}")).await;
    assert!(!task.await.expect("no panic"), "ends after its one event");
    assert_eq!(lines.kinds(), ["ERROR"]);
    let status = &lines.all()[0]["object"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    let (code, status) =
        raw(&s, Method::GET, &format!("{LEASES}?resourceVersion={old}&resourceVersionMatch=Exact"), Value::Null).await;
    assert_eq!((code.as_u16(), &status["reason"]), (410, &json!("Expired")));
    make(&api, &["z"]).await;
    settle().await;
    assert_eq!(open.kinds(), ["ADDED"; 3], "a watch that was open goes on");
    let (code, _) =
        raw(&s, Method::GET, &format!("{LEASES}?resourceVersion={old}&resourceVersionMatch=NotOlderThan"), Value::Null)
            .await;
    assert_eq!(code, 200, "no older than that is whatever is newest");
}

#[tokio::test(start_paused = true)]
async fn history_is_compacted_by_itself() {
    let s = server();
    let api = leases(&s, "a");
    make(&api, &["x"]).await;
    let old = s.revision();
    for i in 0..25 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        touch(&api, "x", &format!("h{i}")).await;
    }
    let (lines, _) = watch(&s, "w", &format!("{LEASES}?watch=1&resourceVersion={old}")).await;
    settle().await;
    assert_eq!(lines.kinds(), ["ERROR"]);
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_breaks_watches_and_repeats_revisions() {
    let s = server();
    let api = leases(&s, "a");
    make(&api, &["x"]).await;
    let snapshot = s.snapshot();
    let later = touch(&api, "x", "b").await;
    let ahead = s.revision();
    let (_, task) = watch(&s, "w", &format!("{LEASES}?watch=1")).await;
    settle().await;
    s.restore(&snapshot);
    assert!(task.await.expect("no panic"), "broken");
    assert_eq!(s.revision(), snapshot.revision());
    assert_eq!(api.get("x").await.expect("there").spec.expect("spec").holder_identity.as_deref(), Some("a"));
    // A watch from a revision that is not there yet is silent until it has passed, bookmarks included.
    let (lines, _w) =
        watch(&s, "w", &format!("{LEASES}?watch=1&resourceVersion={ahead}&allowWatchBookmarks=true")).await;
    let again = touch(&api, "x", "c").await;
    assert_eq!(again.metadata.resource_version, later.metadata.resource_version, "revisions repeat");
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(lines.kinds().iter().all(|k| k == "BOOKMARK"), "{:?}", lines.kinds());
    touch(&api, "x", "d").await;
    settle().await;
    assert_eq!(lines.kinds().last().map(String::as_str), Some("MODIFIED"));
}

#[tokio::test(start_paused = true)]
async fn pages_are_all_of_one_revision() {
    let s = server();
    let api = leases(&s, "a");
    make(&api, &["a", "b", "c", "d", "e"]).await;
    let first = api.list(&ListParams::default().limit(2)).await.expect("a page");
    assert_eq!(first.items.len(), 2);
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    touch(&api, "c", "z").await;
    api.delete("d", &DeleteParams::default()).await.expect("deleted");
    let token = first.metadata.continue_.clone().expect("more");
    let rest = api.list(&ListParams::default().continue_token(&token)).await.expect("the rest");
    let names: Vec<_> = rest.items.iter().map(|l| l.metadata.name.clone().expect("named")).collect();
    assert_eq!(names, ["c", "d", "e"]);
    assert_eq!(rest.items[0].spec.as_ref().expect("spec").holder_identity.as_deref(), Some("a"));
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    // Compacted, the token is refused, with another one that goes on from what is there now.
    s.compact(s.revision());
    let (code, status) = raw(&s, Method::GET, &format!("{LEASES}?limit=2&continue={token}"), Value::Null).await;
    assert_eq!(code, 410);
    let onward = status["metadata"]["continue"].as_str().expect("a token");
    let (code, list) = raw(&s, Method::GET, &format!("{LEASES}?limit=2&continue={onward}"), Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(list["items"][0]["spec"]["holderIdentity"], "z");
    // With resourceVersion=0 the limit is not honoured, as the watch cache does.
    let (_, list) = raw(&s, Method::GET, &format!("{LEASES}?limit=2&resourceVersion=0"), Value::Null).await;
    assert_eq!(list["items"].as_array().expect("items").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_exact_revision_is_read_as_it_was() {
    let s = server();
    let api = leases(&s, "a");
    make(&api, &["a"]).await;
    let then = s.revision();
    touch(&api, "a", "z").await;
    make(&api, &["b"]).await;
    let path = format!("{LEASES}?resourceVersion={then}&resourceVersionMatch=Exact");
    let (_, list) = raw(&s, Method::GET, &path, Value::Null).await;
    assert_eq!(list["metadata"]["resourceVersion"], then.to_string());
    assert_eq!(list["items"].as_array().expect("items").len(), 1);
    assert_eq!(list["items"][0]["spec"]["holderIdentity"], "a");
}
