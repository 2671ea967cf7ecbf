//! test/vectors/retry.json, row by row, against raw TCP sinks; waits are a fiftieth of the real ones.

use super::*;
use crate::adapter::testing::{Accept, Do, RawSink, everything, hold, status};
use crate::clock::Clock;
use futures::StreamExt;

#[derive(Debug, Clone, Deserialize)]
struct Row {
    case: String,
    status: Option<u16>,
    strategy: String,
    sink_timeout_s: i64,
    attempts: usize,
    requests_seen: Vec<String>,
    delays_ms: Vec<u64>,
    ack: bool,
    undelivered: bool,
    result_status: Option<u16>,
    result_retries: Option<u32>,
}

/// Go turns the POST into a GET without the event and counts its answer; we refuse, and name the place.
const REDIRECTS_REFUSED: [usize; 7] = [506, 507, 508, 509, 510, 511, 521];
/// Go does not look at Retry-After; we wait for it.
const RETRY_AFTER_HONOURED: [usize; 4] = [529, 530, 532, 533];
/// Go tries to send to what is no http URL, again and again; we don't start.
const REFUSED_AT_START: [usize; 2] = [550, 551];
/// Go knows statuses below 100. For us an answer with one is refused for good too, without its number.
const NO_STATUS: [usize; 3] = [522, 523, 524];
/// A context's deadline is a term's here: what Go counts as failed, the next holder sends.
const ABANDONED: [usize; 3] = [564, 565, 566];

const SCALE: u32 = 50;
/// So much of a Retry-After is waited for here: more than any scaled wait.
const RETRY_AFTER: Duration = Duration::from_millis(40);
/// With a row that takes so long something is wrong.
const PATIENCE: Duration = Duration::from_mins(1);

fn reply(head: &str) -> Vec<u8> {
    format!("{head}\r\n\r\n").into_bytes()
}

fn informational(code: u16) -> Vec<u8> {
    reply(&format!("HTTP/1.1 {code} X"))
}

fn named(case: &str) -> Option<Vec<u16>> {
    Some(match case {
        "503 then 202" => vec![503, 202],
        "503, 503, 202" => vec![503, 503, 202],
        "404, 413, 425, 429, 502, 202" => vec![404, 413, 425, 429, 502, 202],
        "503, 500" => vec![503, 500],
        "503, 400" => vec![503, 400],
        "503 five times, then 202" => vec![503, 503, 503, 503, 503, 202],
        "503 six times, then 202" => vec![503, 503, 503, 503, 503, 503, 202],
        "503, context deadline 250 ms" | "503, context deadline 50 ms" => vec![503; 9],
        _ => return None,
    })
}

/// What the sink of a row does with request `n`, which is for `target`.
fn script(row: &Row, n: usize, target: &str) -> Do {
    let code = row.status.unwrap_or_default();
    let case = row.case.as_str();
    if let Some(statuses) = named(case) {
        return status(statuses[n.min(statuses.len() - 1)]);
    }
    if let Some(answer) = case.strip_prefix("redirect with Location: /q, which answers ") {
        return if target == "/q" {
            status(answer.parse().unwrap())
        } else {
            Do::Say(reply(&format!("HTTP/1.1 {code} X\r\nLocation: /q\r\nContent-Length: 0")))
        };
    }
    if let Some(line) = case.strip_prefix("status line ") {
        return Do::Close(reply(&format!("{line} X\r\nContent-Length: 0")));
    }
    if let Some(header) = case.strip_prefix("status with ") {
        return Do::Say(reply(&format!("HTTP/1.1 {code} X\r\n{header}\r\nContent-Length: 0")));
    }
    match case {
        "status" if code == 101 => Do::Close(informational(101)),
        "status" => status(code),
        "informational status alone, then the connection is closed" => Do::Close(informational(code)),
        "informational status, then 202" => {
            Do::Say([informational(code), reply("HTTP/1.1 202 X\r\nContent-Length: 0")].concat())
        }
        "redirect loop to itself" => Do::Say(reply("HTTP/1.1 307 X\r\nLocation: /p\r\nContent-Length: 0")),
        "redirect with bad Location" => Do::Say(reply("HTTP/1.1 302 X\r\nLocation: http://[bad\r\nContent-Length: 0")),
        "connection reset after the request was read" => Do::Reset,
        "connection closed (EOF) after the request was read" => Do::Close(Vec::new()),
        "reset then 202" => [Do::Reset, status(202)][n].clone(),
        "reset then 500" => [Do::Reset, status(500)][n].clone(),
        "reset, 503, 202" => [Do::Reset, status(503), status(202)][n].clone(),
        "202 after 503, other connection each time" => {
            let code = [503, 503, 202][n];
            Do::Close(reply(&format!("HTTP/1.1 {code} X\r\nContent-Length: 0\r\nConnection: close")))
        }
        "no answer, sink timeout 1 s"
        | "no answer, sink timeout 1 s, no retries"
        | "no answer, context deadline 300 ms" => Do::Hang(Vec::new()),
        "partial status line, sink timeout 1 s" => Do::Hang(b"HTTP/1.1 20".to_vec()),
        "202 whose body never comes, sink timeout 1 s" => Do::Hang(reply("HTTP/1.1 202 X\r\nContent-Length: 10")),
        "202 with truncated body" => Do::Close(reply("HTTP/1.1 202 X\r\nContent-Length: 10")),
        "503 with truncated body" => Do::Close(reply("HTTP/1.1 503 X\r\nContent-Length: 10")),
        "202 with an event in the answer" => Do::Say(reply(
            "HTTP/1.1 202 X\r\nCe-Id: a\r\nCe-Source: b\r\nCe-Type: c\r\nCe-Specversion: 1.0\r\nContent-Length: 0",
        )),
        "answer is not HTTP" => Do::Close(b"garbage\r\n\r\n".to_vec()),
        "answer with a bad header line" => Do::Close(reply("HTTP/1.1 202 X\r\nbad header")),
        other => panic!("a case that is not known: {other}"),
    }
}

fn strategy(text: &str) -> Retry {
    if text == "none" {
        return Retry::never();
    }
    let (kind, rest) = text.strip_suffix(')').unwrap().split_once('(').unwrap();
    let (period, times) = rest.split_once("ms,").unwrap();
    let period = Duration::from_millis(period.parse().unwrap());
    let backoff = match kind {
        "exponential" => Backoff::Exponential,
        "linear" => Backoff::Linear,
        "constant" => Backoff::Constant,
        other => panic!("{other}"),
    };
    Retry::new(times.parse().unwrap(), backoff(period))
}

fn scaled(text: &str) -> Retry {
    let Some((kind, rest)) = text.split_once('(') else { return strategy(text) };
    let (period, times) = rest.split_once("ms,").unwrap();
    let period = Duration::from_millis(period.parse().unwrap()) / SCALE;
    let times = times.trim_end_matches(')').parse().unwrap();
    let backoff = match kind {
        "exponential" => Backoff::Exponential(period),
        "linear" => Backoff::Linear(period),
        _ => Backoff::Constant(period),
    };
    Retry::new(times, backoff).jitter(0.0).retry_after_max(RETRY_AFTER)
}

/// The gaps that Go left between its attempts are our waits, but for noise, a time-out and what a redirect adds.
fn assert_waits(n: usize, row: &Row) {
    let timeout = u64::try_from(row.sink_timeout_s).unwrap_or(0) * 1000;
    let gaps: Vec<u64> = row.delays_ms.iter().map(|d| d.saturating_sub(timeout)).filter(|d| *d > 5).collect();
    let waits: Vec<u64> = strategy(&row.strategy).waits().map(|w| u64::try_from(w.as_millis()).unwrap()).collect();
    for (gap, wait) in gaps.iter().zip(&waits) {
        assert!((*wait..wait + 30).contains(gap), "row {n}: Go waited {gaps:?}, we wait {waits:?}");
    }
    assert!(gaps.len() <= waits.len(), "row {n}: Go waited {gaps:?}, we wait {waits:?}");
}

async fn check(n: usize, row: Row) {
    assert_waits(n, &row);
    let accept = match row.case.as_str() {
        "connection closed at once after accept" | "https URL, plain HTTP sink" => Accept::Close,
        "connection reset at once after accept" => Accept::Reset,
        _ => Accept::Read,
    };
    let raw = {
        let row = row.clone();
        RawSink::accepting(accept, move |i, seen| script(&row, i, &seen.target)).await
    };
    let timeout = u64::try_from(row.sink_timeout_s).ok().map(Duration::from_secs);
    let sink = sink_of(&[]).with_retry(scaled(&row.strategy)).with_timeout(timeout);
    if REFUSED_AT_START.contains(&n) {
        let scheme = if row.case == "URL without scheme" { "" } else { "ftp:" };
        let error = sink.with_target(&format!("{scheme}//127.0.0.1:{}/p", raw.port)).unwrap_err().to_string();
        assert!(error.contains("absolute http or https URL"), "row {n}: {error}");
        return;
    }
    let port = if row.case.starts_with("connection refused") { unused_port() } else { raw.port };
    let scheme = if row.case.starts_with("https") { "https" } else { "http" };
    let sink = sink.with_target(&format!("{scheme}://127.0.0.1:{port}/p")).unwrap();
    let held = hold(everything(), None, Duration::from_mins(10)).await;
    let event = match row.case.as_str() {
        "invalid event (extension bad-name)" => {
            let mut event = event();
            event.set_extension("bad-name", "x");
            event
        }
        _ => event(),
    };
    let began = Boottime.now();
    let outcome = sink.send(held.term.guard().unwrap(), event).await;
    let took = Boottime.now().since(began);
    let tries = row.result_retries.map_or(1, |r| r + 1);
    let seen: Vec<String> = raw
        .seen()
        .iter()
        .map(|s| {
            let event = if s.headers.contains_key("ce-id") { " ce-headers" } else { "" };
            format!("{} {}{event}{}", s.method, s.target, if s.body.is_empty() { "" } else { " body" })
        })
        .collect();

    if REDIRECTS_REFUSED.contains(&n) {
        let Outcome::Refused { why: Refusal::Redirect { status, location, .. }, attempts: 1 } = &outcome else {
            panic!("row {n}: {outcome:?}")
        };
        let there = if n == 521 { "http://[bad" } else { "/q" };
        assert_eq!((Some(*status), location.as_str()), (row.status.or(Some(302)), there), "row {n}");
        assert_eq!(seen, ["POST /p ce-headers body"], "row {n}");
        return;
    }
    if accept == Accept::Read && port == raw.port {
        assert_eq!(seen, row.requests_seen, "row {n} {}: {outcome}", row.case);
    }
    let go_status = row.result_status;
    match &outcome {
        Outcome::Delivered { status, attempts } => {
            assert!(row.ack, "row {n} {}: {outcome}", row.case);
            assert_eq!((Some(*status), *attempts), (go_status, tries), "row {n}");
        }
        Outcome::Refused { why, attempts } => {
            assert!(!row.ack, "row {n} {}: {outcome}", row.case);
            if row.undelivered {
                assert!(matches!(why, Refusal::Event(_)) && *attempts == 0, "row {n}: {outcome}");
            } else if NO_STATUS.contains(&n) {
                assert_eq!((why, *attempts), (&Refusal::NoStatus, 1), "row {n}");
            } else {
                assert_eq!((why.status(), *attempts), (go_status, tries), "row {n} {}", row.case);
                // Knative stopped here although it had retries left: so it was not for their number.
                assert!(strategy(&row.strategy).waits().count() >= tries as usize || tries == 1, "row {n}");
            }
        }
        Outcome::Exhausted { attempts, .. } => {
            assert!(!row.ack && !row.undelivered, "row {n} {}: {outcome}", row.case);
            assert_eq!((outcome.status(), *attempts), (go_status, tries), "row {n} {}", row.case);
            assert_eq!(strategy(&row.strategy).waits().count() + 1, tries as usize, "row {n}");
        }
        Outcome::Abandoned => panic!("row {n} {}: abandoned", row.case),
    }
    let least = if RETRY_AFTER_HONOURED.contains(&n) { RETRY_AFTER } else { Duration::ZERO };
    let waits: Duration = scaled(&row.strategy).waits().take(tries as usize - 1).map(|w| w.max(least)).sum();
    assert!(row.undelivered || took >= waits, "row {n} {}: {took:?} is less than its waits, {waits:?}", row.case);
}

/// Nobody listens there: it was free a moment ago.
fn unused_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_is_knatives_or_a_difference_on_purpose() {
    let rows: Vec<Row> = rows(include_str!("../../../../test/vectors/retry.json"));
    assert_eq!(rows.len(), 580);
    let checks = rows.into_iter().enumerate().filter(|(n, row)| {
        // These two kinds have tests of their own below.
        !ABANDONED.contains(n) && !row.case.starts_with("after an acknowledged send")
    });
    // Each in a task, so that a failing row names itself and hides no other.
    let failed: Vec<String> = futures::stream::iter(checks)
        .map(|(n, row)| {
            let whole = format!("row {n} {} {:?}: no end of it", row.case, row.status);
            tokio::spawn(async move { tokio::time::timeout(PATIENCE, check(n, row)).await.expect(&whole) })
        })
        .buffer_unordered(24)
        .filter_map(|r| async { r.err().map(|e| format!("{e:?}")) })
        .collect()
        .await;
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test]
async fn a_term_that_ends_abandons_what_go_calls_failed() {
    let rows: Vec<Row> = rows(include_str!("../../../../test/vectors/retry.json"));
    // The times are Go's twice over, so that a slow machine sees the same requests.
    for (n, lasts) in [(564, 500), (565, 100), (566, 600)] {
        let row = rows[n].clone();
        let raw = {
            let row = row.clone();
            RawSink::start(move |i, seen| script(&row, i, &seen.target)).await
        };
        let retry = Retry::new(5, Backoff::Exponential(Duration::from_millis(100))).jitter(0.0);
        let sink = sink_of(&[("K_SINK", &raw.url("/p"))]).with_retry(retry);
        let held = hold(everything(), None, Duration::from_millis(lasts)).await;
        let began = Boottime.now();
        let outcome = sink.send(held.term.guard().unwrap(), event()).await;
        assert!(matches!(outcome, Outcome::Abandoned), "row {n}: {outcome}");
        assert_eq!(raw.arrivals(), row.attempts, "row {n}");
        let took = Boottime.now().since(began);
        assert!(took < Duration::from_millis(lasts + 400), "row {n}: {took:?} after its deadline");
    }
}

/// Lets the runtime see what its sockets have to say: that the sink has closed.
async fn turn() {
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_connection_that_the_sink_closed_meanwhile_costs_no_attempt() {
    for retry in [scaled("exponential(50ms,5)"), Retry::never()] {
        // Closed after the answer, which did not say so.
        let raw = RawSink::start(|_, _| Do::Close(reply("HTTP/1.1 202 X\r\nContent-Length: 0"))).await;
        let sink = sink_of(&[("K_SINK", &raw.url("/p"))]).with_retry(retry);
        let held = hold(everything(), None, Duration::from_mins(10)).await;
        for _ in 0..2 {
            let outcome = sink.send(held.term.guard().unwrap(), event()).await;
            assert!(matches!(outcome, Outcome::Delivered { status: 202, attempts: 1 }), "{outcome}");
            turn().await;
        }
        assert_eq!(raw.seen().iter().map(|s| s.connection).collect::<Vec<_>>(), [0, 1]);
    }
}

#[tokio::test]
async fn a_reused_connection_that_is_closed_without_an_answer_is_a_failed_attempt() {
    let close = |n, _: &_| if n == 1 { Do::Close(Vec::new()) } else { status(202) };
    for (retry, expected) in [(scaled("exponential(50ms,5)"), 2), (Retry::never(), 1)] {
        let raw = RawSink::start(close).await;
        let sink = sink_of(&[("K_SINK", &raw.url("/p"))]).with_retry(retry);
        let held = hold(everything(), None, Duration::from_mins(10)).await;
        assert!(sink.send(held.term.guard().unwrap(), event()).await.is_delivered());
        let outcome = sink.send(held.term.guard().unwrap(), event()).await;
        match expected {
            2 => assert!(matches!(outcome, Outcome::Delivered { attempts: 2, .. }), "{outcome}"),
            _ => assert!(matches!(outcome, Outcome::Exhausted { attempts: 1, .. }), "{outcome}"),
        }
        let connections: Vec<_> = raw.seen().iter().map(|s| s.connection).collect();
        assert_eq!(connections[..2], [0, 0], "the connection was not used again");
        assert_eq!(connections.len(), 1 + expected);
    }
}
