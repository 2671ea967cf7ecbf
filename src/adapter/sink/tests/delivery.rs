//! What the vectors do not say: terms, fencing, bounds, proxies, other sinks.

use super::*;
use crate::adapter::testing::{Do, RawSink, begin, everything, hold, status};
use crate::bucket::{BucketSet, Hash};
use crate::clock::Clock;
use crate::leader::tenure::{Ended, Told};
use crate::leader::{Deadline, FencingToken, Leadership, Reason};
use cloudevents::AttributesWriter;

const LONG: Duration = Duration::from_mins(10);

#[tokio::test]
async fn retry_after_is_waited_for_while_the_term_goes_on_and_no_longer() {
    let raw = RawSink::start(|_, _| {
        let head = "HTTP/1.1 429 X\r\nRetry-After: Fri, 31 Dec 2099 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n";
        Do::Say(head.as_bytes().to_vec())
    })
    .await;
    let sink = sink_of(&[("K_SINK", &raw.url("/"))]).with_retry(Retry::default().retry_after_max(Duration::MAX));
    let deadline = Deadline::at(Boottime.now() + LONG);
    let mut held = begin(everything(), None, deadline, Arc::new(Leadership::new())).await;
    let guard = held.term.guard().unwrap();
    let sending = tokio::spawn(async move { sink.send(guard, event()).await });
    raw.arrived(1).await;
    held.tenure.end(Reason::Lost);
    assert!(matches!(sending.await.unwrap(), Outcome::Abandoned));
    assert_eq!(raw.arrivals(), 1);
    // The guard went with the delivery, so the term could end.
    let Some(Told::Ended(_, Ended { reason: Reason::Lost, clean: false })) = held.told.recv().await else { panic!() };
}

#[tokio::test]
async fn a_drain_waits_for_the_answer() {
    let raw = RawSink::start(|_, _| Do::Hang(Vec::new())).await;
    let slow = sink_of(&[("K_SINK", &raw.url("/"))]).with_timeout(Some(Duration::from_millis(300)));
    let slow = slow.with_retry(Retry::never());
    let mut held = hold(everything(), None, LONG).await;
    let guard = held.term.guard().unwrap();
    let sending = tokio::spawn(async move { slow.send(guard, event()).await });
    raw.arrived(1).await;
    held.tenure.end(Reason::Released);
    assert!(held.term.guard().is_none());
    let Some(Told::Ended(_, ended)) = held.told.recv().await else { panic!() };
    assert_eq!(ended, Ended { reason: Reason::Released, clean: true });
    assert!(sending.is_finished(), "the term ended before the delivery did");
    assert!(matches!(sending.await.unwrap(), Outcome::Exhausted { attempts: 1, last: Failure::Timeout(_) }));
}

#[tokio::test]
async fn a_guard_of_a_term_that_is_over_sends_nothing() {
    let raw = RawSink::start(|_, _| status(202)).await;
    let sink = sink_of(&[("K_SINK", &raw.url("/"))]);
    let deadline = Deadline::at(Boottime.now() + LONG);
    let held = begin(everything(), None, deadline, Arc::new(Leadership::new())).await;
    let guard = held.term.guard().unwrap();
    held.tenure.end(Reason::Lost);
    assert!(matches!(sink.send(&guard, event()).await, Outcome::Abandoned));
    assert_eq!(raw.arrivals(), 0);
}

#[tokio::test]
async fn fencing_names_the_bucket_and_its_token_over_all_else() {
    let raw = RawSink::start(|_, _| status(202)).await;
    let sink = sink_of(&[("K_SINK", &raw.url("/")), ("LEASEHOLD_FENCING", "true")]);
    let set = BucketSet::new(Hash::Knative, ["c.q.00-of-01"]).unwrap();
    let held = hold(set.bucket(0), Some(FencingToken::new(7, 42)), LONG).await;
    let mut forged = event();
    forged.set_extension("LeaseEpoch", "999");
    assert!(sink.send(held.term.guard().unwrap(), forged).await.is_delivered());
    let seen = raw.seen().pop().unwrap();
    assert_eq!(seen.header("ce-leasebucket"), Some("c.q.00-of-01"));
    assert_eq!(seen.header("ce-leaseepoch"), Some("00000700000000000000000042"));
    // Without a token there is none on the wire, not an old one.
    let held = hold(set.bucket(0), None, LONG).await;
    let mut forged = event();
    forged.set_extension("leaseepoch", "999");
    assert!(sink.send(held.term.guard().unwrap(), forged).await.is_delivered());
    assert_eq!(raw.seen().pop().unwrap().header("ce-leaseepoch"), None);
    // Not asked for: not there.
    let plain = sink.with_fencing(false).unwrap();
    assert!(plain.send(held.term.guard().unwrap(), event()).await.is_delivered());
    assert_eq!(raw.seen().pop().unwrap().header("ce-leasebucket"), None);
}

#[test]
fn an_override_that_fencing_would_replace_is_refused() {
    let sink = sink_of(&[]);
    let overrides = Overrides::from_json(r#"{"extensions":{"LeaseEpoch":"1"}}"#).unwrap();
    let with = sink.with_overrides(overrides).unwrap();
    let error = with.with_fencing(true).unwrap_err().to_string();
    assert!(error.contains("\"leaseepoch\"") && error.contains("LEASEHOLD_FENCING"), "{error}");
}

#[tokio::test]
async fn a_sink_per_event_shares_the_connections() {
    let raw = RawSink::start(|_, _| status(202)).await;
    let sink = sink_of(&[]);
    let held = hold(everything(), None, LONG).await;
    let outcome = sink.send(held.term.guard().unwrap(), event()).await;
    assert!(matches!(outcome, Outcome::Refused { why: Refusal::NoSink, attempts: 0 }), "{outcome}");
    for path in ["/a", "/b?x=1"] {
        let other = sink.with_target(&raw.url(path)).unwrap().with_namespace("other-ns").unwrap();
        assert!(other.send(held.term.guard().unwrap(), event()).await.is_delivered());
    }
    let seen = raw.seen();
    let of = |n: usize| (seen[n].target.as_str(), seen[n].connection, seen[n].header("kn-namespace").unwrap());
    assert_eq!([of(0), of(1)], [("/a", 0, "other-ns"), ("/b?x=1", 0, "other-ns")]);
    assert!(sink.with_namespace("a\nb").is_err());
}

#[tokio::test]
async fn five_hundred_is_retried_when_asked() {
    let raw = RawSink::start(|n, _| status(if n == 0 { 500 } else { 202 })).await;
    let held = hold(everything(), None, LONG).await;
    let asked = Retry::new(5, Backoff::Constant(Duration::from_millis(1))).also(500);
    let sink = sink_of(&[("K_SINK", &raw.url("/"))]).with_retry(asked);
    let outcome = sink.send(held.term.guard().unwrap(), event()).await;
    assert!(matches!(outcome, Outcome::Delivered { attempts: 2, .. }), "{outcome}");
}

#[tokio::test]
async fn an_answer_without_end_is_read_up_to_its_bound() {
    let raw = RawSink::start(|_, _| {
        let mut answer = b"HTTP/1.1 400 X\r\nContent-Length: 100000000\r\n\r\n".to_vec();
        answer.extend(std::iter::repeat_n(b'x', 4 * 1024 * 1024));
        Do::Hang(answer)
    })
    .await;
    let held = hold(everything(), None, LONG).await;
    let sink = sink_of(&[("K_SINK", &raw.url("/"))]);
    let outcome = sink.send(held.term.guard().unwrap(), event()).await;
    let Outcome::Refused { why: Refusal::Status { status: 400, body }, attempts: 1 } = &outcome else {
        panic!("{outcome}")
    };
    assert_eq!(body.len(), 1024);
}

#[tokio::test]
async fn an_event_without_a_time_gets_one_and_keeps_it() {
    let raw = RawSink::start(|n, _| status(if n == 0 { 503 } else { 202 })).await;
    let held = hold(everything(), None, LONG).await;
    let retry = Retry::new(1, Backoff::Constant(Duration::from_millis(2)));
    let sink = sink_of(&[("K_SINK", &raw.url("/"))]).with_retry(retry);
    let bare = EventBuilderV10::new().id("a b").source("s").ty("t").build().unwrap();
    assert!(sink.send(held.term.guard().unwrap(), bare).await.is_delivered());
    let seen = raw.seen();
    let time: jiff::Timestamp = seen[0].header("ce-time").unwrap().parse().unwrap();
    assert!((Boottime.wall() - time).get_seconds().abs() < 60);
    assert_eq!(seen[0].header("ce-time"), seen[1].header("ce-time"));
    assert_eq!(seen[0].header("ce-id"), Some("a%20b"));
    assert_eq!((seen[0].header("content-type"), seen[0].body.len()), (None, 0));
}

#[tokio::test]
async fn what_is_no_event_is_refused_before_it_is_sent() {
    let raw = RawSink::start(|_, _| status(202)).await;
    let held = hold(everything(), None, LONG).await;
    let sink = sink_of(&[("K_SINK", &raw.url("/"))]);
    let with = |change: fn(&mut Event)| {
        let mut event = event();
        change(&mut event);
        event
    };
    let bad: [(Event, &str); 4] = [
        (with(|e| drop(e.set_id(""))), "no id"),
        (with(|e| drop(e.set_type(""))), "no type"),
        (with(|e| drop(e.set_datacontenttype(Some("a b/c")))), "datacontenttype \"a b/c\""),
        (with(|e| e.set_extension("id", "x")), "\"id\" has the name of an attribute"),
    ];
    for (event, part) in bad {
        let outcome = sink.send(held.term.guard().unwrap(), event).await;
        let Outcome::Refused { why: Refusal::Event(why), attempts: 0 } = &outcome else { panic!("{outcome}") };
        assert!(why.to_string().contains(part), "{why}");
    }
    assert_eq!(raw.arrivals(), 0);
}

#[tokio::test]
async fn send_all_stops_where_the_checkpoint_must() {
    let numbered = |n: u32| {
        let mut event = event();
        event.set_id(n.to_string());
        event
    };
    let raw = RawSink::start(|_, seen| match seen.header("ce-id").unwrap() {
        "2" => status(400),
        "5" => status(503),
        _ => status(202),
    })
    .await;
    let sink = sink_of(&[("K_SINK", &raw.url("/"))]).with_retry(Retry::never());
    let held = hold(everything(), None, LONG).await;
    let sent = sink.send_all(&held.term, (1..=4).map(numbered)).await.unwrap();
    assert_eq!((sent.delivered, sent.refused, sent.settled()), (3, 1, 4));
    let error = sink.send_all(&held.term, (4..=8).map(numbered)).await.unwrap_err();
    assert!(matches!(error, SendAllError::Exhausted { sent: Sent { delivered: 1, refused: 0 }, .. }), "{error}");
    assert!(error.to_string().starts_with("event 2 was not delivered after 1 attempt(s): the sink answered 503"));
    assert_eq!(raw.seen().pop().unwrap().header("ce-id"), Some("5"));
    held.tenure.end(Reason::Lost);
    let error = sink.send_all(&held.term, [event()]).await.unwrap_err();
    assert_eq!(error, SendAllError::Abandoned(Sent::default()));
}

#[tokio::test]
async fn a_proxy_is_used_where_the_environment_names_one_and_never_for_loopback() {
    let proxy = RawSink::start(|_, _| status(202)).await;
    let direct = RawSink::start(|_, _| status(202)).await;
    let at = format!("127.0.0.1:{}", proxy.port);
    let held = hold(everything(), None, LONG).await;
    let send = async |sink: &Sink, url: &str| {
        sink.with_target(url).unwrap().send(held.term.guard().unwrap(), event()).await.is_delivered()
    };
    let sink = sink_of(&[("http_proxy", &at)]);
    assert!(send(&sink, "http://sink.invalid/x").await);
    assert_eq!(proxy.seen().pop().unwrap().target, "http://sink.invalid/x");
    assert!(send(&sink, &direct.url("/")).await);
    assert_eq!((proxy.arrivals(), direct.arrivals()), (1, 1));
    // This address is the machine too, but not by its number.
    let other = format!("http://0.0.0.0:{}/", direct.port);
    assert!(send(&sink, &other).await);
    assert_eq!((proxy.arrivals(), direct.arrivals()), (2, 1));
    let exempt = sink_of(&[("http_proxy", &at), ("NO_PROXY", "a.example, 0.0.0.0")]);
    assert!(send(&exempt, &other).await);
    assert_eq!((proxy.arrivals(), direct.arrivals()), (2, 2));
}
