//! What goes over the wire for a PingSource, against what Knative's adapter sent for it (test/vectors/ping-events.json).

use super::catalog::{Entry, NotFiring};
use super::event::vectors::{Request, Row, rows};
use super::source::PingSource;
use super::ticker::Source as _;
use crate::adapter::testing::{RawSink, Seen, everything, hold, install_tls, status};
use crate::adapter::{Env, Sink};
use crate::clock::Boottime;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Values that Knative sends raw, less the blanks at their ends, and we send percent-encoded.
const ENCODED: [usize; 4] = [64, 65, 66, 68];
/// Sources whose data is no base64: Knative sends what stands before the fault, we refuse the source.
const BAD_BASE64: [usize; 14] = [36, 37, 38, 39, 40, 41, 42, 43, 46, 47, 50, 51, 52, 54];
/// Sources for which Knative fails each send (content type, overrides); we refuse the source.
const FAILS_EACH_SEND: [usize; 18] = [17, 18, 19, 22, 23, 27, 29, 67, 69, 70, 71, 72, 73, 74, 75, 76, 77, 80];
/// Sources that Knative does not schedule either.
const NOT_SCHEDULED: [usize; 5] = [92, 93, 94, 97, 98];
/// What the HTTP library sets by itself: it says which library it is.
const OF_THE_LIBRARY: [&str; 4] = ["accept", "accept-encoding", "host", "user-agent"];
/// What each event has, and the vectors leave out.
const OF_THE_EVENT: [&str; 2] = ["ce-id", "ce-time"];

fn headers(seen: &Seen) -> BTreeMap<String, String> {
    let text = |value: &Vec<u8>| String::from_utf8(value.clone()).unwrap();
    let other = |name: &&String| !OF_THE_LIBRARY.contains(&name.as_str()) && !OF_THE_EVENT.contains(&name.as_str());
    seen.headers.iter().filter(|(name, _)| other(name)).map(|(name, value)| (name.clone(), text(value))).collect()
}

fn theirs(request: &Request) -> BTreeMap<String, String> {
    let all = request.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
    all.filter(|(name, _)| !OF_THE_LIBRARY.contains(&name.as_str())).collect()
}

/// What section 3.1.3.2 of the HTTP binding makes of a value, written without the code under test.
fn encoded(text: &str) -> String {
    let plain = |b: u8| (0x21..=0x7e).contains(&b) && b != b'"' && b != b'%';
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// The row's source, with the sink at `base`.
fn at_sink(row: &Row, base: &str) -> PingSource {
    let mut source = row.source.clone();
    source.spec.sink.uri = Some(format!("{base}{}", row.sink_path));
    source
}

#[tokio::test]
async fn each_row_is_knatives_request_or_a_difference_on_purpose() {
    install_tls();
    let raw = RawSink::start(|_, _| status(202)).await;
    let held = hold(everything(), None, Duration::from_mins(10)).await;
    let env = Env::from_vars([("NAMESPACE", "adapter-ns"), ("K_CE_OVERRIDES", "")]).unwrap();
    let sink = Sink::new(&env, Arc::new(Boottime)).unwrap();
    let at: Timestamp = "2025-06-17T12:00:00Z".parse().unwrap();
    let (mut refused, mut differs, mut same) = (Vec::new(), Vec::new(), 0);
    for (n, row) in rows().iter().enumerate() {
        let entry = match Entry::new(&at_sink(row, &raw.url("")), &sink, Duration::ZERO) {
            Ok(entry) => entry,
            Err(NotFiring::Invalid(_)) => {
                refused.push(n);
                continue;
            }
            Err(e) => panic!("row {n}: {e}"),
        };
        let before = raw.arrivals();
        assert!(entry.fire(&held.term.guard().unwrap(), at).await, "row {n}");
        let seen = &raw.seen()[before];
        let request = row.request().unwrap_or_else(|| panic!("row {n}: Knative sent nothing"));
        assert_eq!((&seen.method, &seen.target), (&request.method, &request.target), "row {n}");
        assert_eq!(seen.body, request.body(), "row {n}");
        assert_eq!(seen.header("ce-time"), Some("2025-06-17T12:00:00Z"), "row {n}");
        assert!(seen.header("ce-id").is_some_and(|id| id.len() == 36), "row {n}");
        let mut expected = theirs(request);
        let exactly = headers(seen) == expected;
        for (name, value) in row.source.spec.ce_overrides.iter().flat_map(|overrides| &overrides.extensions) {
            expected.insert(format!("ce-{}", name.to_lowercase()), encoded(value));
        }
        assert_eq!(headers(seen), expected, "row {n}");
        if exactly {
            same += 1;
        } else {
            differs.push(n);
        }
    }
    let mut expected = [&BAD_BASE64[..], &FAILS_EACH_SEND, &NOT_SCHEDULED].concat();
    expected.sort_unstable();
    assert_eq!(refused, expected);
    assert_eq!(differs, ENCODED);
    assert_eq!(same, rows().len() - expected.len() - ENCODED.len());
}
