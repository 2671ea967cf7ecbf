//! test/vectors/overrides.json and the overrides of test/vectors/ping-events.json, row by row.

use super::*;
use crate::adapter::testing::{RawSink, Seen, everything, hold, status};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

#[derive(Deserialize)]
struct Row {
    r#in: String,
    overrides: Option<Extensions>,
    parse_error: Option<String>,
    requests: Vec<Request>,
}

#[derive(Deserialize, Default)]
struct Extensions {
    #[serde(default)]
    extensions: BTreeMap<String, String>,
}

/// Knative starts with these and then fails each send; we don't start.
const FAIL_AT_START: [usize; 26] =
    [50, 51, 52, 53, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 77, 78, 79, 80, 81, 82, 83, 84, 85, 90];
/// Knative sends these values raw, and its HTTP library trims blanks; we percent-encode.
const ENCODED: [usize; 11] = [47, 48, 49, 54, 55, 56, 57, 58, 59, 60, 61];
/// The headers that the HTTP library sets by itself: they say which library it is.
const OF_THE_LIBRARY: [&str; 4] = ["accept", "accept-encoding", "host", "user-agent"];

/// What section 3.1.3.2 of the binding makes of a value, written without the code under test.
fn encoded(text: &str) -> String {
    let plain = |b: u8| (0x21..=0x7e).contains(&b) && b != b'"' && b != b'%';
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Whether the request is the one that Go sent but for encoded values; true: it is that one to the letter.
fn assert_same(row: usize, seen: &Seen, go: &Request, overrides: &BTreeMap<String, String>) -> bool {
    assert_eq!((&seen.method, &seen.target), (&go.method, &go.target), "row {row}");
    assert_eq!(seen.body, BASE64_STANDARD.decode(&go.body_base64).unwrap(), "row {row}");
    let mut same = true;
    let mut expected: BTreeMap<String, String> =
        go.headers.iter().map(|(n, v)| (n.to_lowercase(), v.clone())).collect();
    for (name, value) in overrides {
        let name = format!("ce-{}", name.to_lowercase());
        let value = encoded(value);
        same &= expected.get(&name) == Some(&value);
        expected.insert(name, value);
    }
    for name in OF_THE_LIBRARY {
        expected.remove(name);
    }
    let ours: BTreeMap<String, String> = seen
        .headers
        .iter()
        .filter(|(n, _)| !OF_THE_LIBRARY.contains(&n.as_str()))
        .map(|(n, v)| (n.clone(), String::from_utf8(v.clone()).unwrap()))
        .collect();
    assert_eq!(ours, expected, "row {row}");
    same
}

#[tokio::test]
async fn each_row_is_knatives_or_a_difference_on_purpose() {
    let raw = RawSink::start(|_, _| status(202)).await;
    let held = hold(everything(), None, Duration::from_mins(10)).await;
    let plain = sink_of(&[("K_SINK", &raw.url(""))]);
    let (mut at_start, mut differs) = (Vec::new(), Vec::new());
    for (n, row) in rows::<Row>(include_str!("../../../../test/vectors/overrides.json")).into_iter().enumerate() {
        let read = Overrides::from_json(&row.r#in);
        if row.parse_error.is_some() {
            assert!(matches!(read, Err(OverridesError::Json(_))), "row {n}: {read:?}");
            continue;
        }
        let go = row.overrides.unwrap_or_default().extensions;
        let Some(request) = row.requests.first() else {
            assert!(matches!(read, Err(OverridesError::Extensions(_))), "row {n}: {read:?}");
            at_start.push(n);
            continue;
        };
        let read = read.unwrap_or_else(|e| panic!("row {n}: {e}"));
        let lower = go.iter().map(|(n, v)| (n.to_lowercase(), v.clone())).collect::<BTreeMap<_, _>>();
        assert!(read.iter().eq(lower.iter().map(|(n, v)| (n.as_str(), v.as_str()))), "row {n}: {read:?}");
        let before = raw.arrivals();
        let outcome = plain.with_overrides(read).unwrap().send(held.term.guard().unwrap(), event()).await;
        assert!(matches!(outcome, Outcome::Delivered { status: 202, attempts: 1 }), "row {n}: {outcome}");
        if !assert_same(n, &raw.seen()[before], request, &go) {
            differs.push(n);
        }
    }
    assert_eq!(at_start, FAIL_AT_START);
    assert_eq!(differs, ENCODED);
}

#[test]
fn an_override_that_can_never_be_sent_is_said_whole() {
    let json = r#"{"extensions":{"bad-1":"y","type":"x","ok":"z","bad\u0020":"w","lf":"a\nb"}}"#;
    let error = Overrides::from_json(json).unwrap_err().to_string();
    for part in ["bad-1", "\"bad \"", "\"type\" has the name of an attribute", "'\\n'", "every event would be refused"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("\"ok\""), "{error}");
}

#[test]
fn names_are_put_in_lower_case_and_come_once() {
    let given = |pairs: &[(&str, &str)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let good = Overrides::from_extensions(&given(&[("MyExt", "a\tb"), ("data", "ü"), ("1", "")])).unwrap();
    assert_eq!(good.iter().collect::<Vec<_>>(), [("1", ""), ("data", "ü"), ("myext", "a\tb")]);
    let wrong = given(&[("Ext", "1"), ("ext", "2"), ("", ""), ("a-b", ""), ("TYPE", ""), ("x", "\u{7f}"), ("ok", "")]);
    assert_eq!(
        Overrides::from_extensions(&wrong).unwrap_err(),
        [
            ExtensionError::Unnamed,
            ExtensionError::Attribute("TYPE".into()),
            ExtensionError::Name("a-b".into()),
            ExtensionError::Twice { first: "Ext".into(), second: "ext".into() },
            ExtensionError::Value { name: "x".into(), control: '\u{7f}' },
        ]
    );
}

#[derive(Deserialize)]
struct PingRow {
    source: PingSource,
    requests: Vec<Request>,
}

#[derive(Deserialize)]
struct PingSource {
    spec: PingSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PingSpec {
    #[serde(default)]
    ce_overrides: Option<Extensions>,
}

/// Knative sends the blanks, quotes, percent signs and UTF-8 in these raw; we percent-encode.
const PING_ENCODED: [usize; 4] = [64, 65, 66, 68];

#[tokio::test]
async fn overrides_of_a_ping_source_are_percent_encoded() {
    let raw = RawSink::start(|_, _| status(202)).await;
    let held = hold(everything(), None, Duration::from_mins(10)).await;
    let plain = sink_of(&[("K_SINK", &raw.url(""))]);
    let (mut differs, mut sent) = (Vec::new(), 0);
    for (n, row) in rows::<PingRow>(include_str!("../../../../test/vectors/ping-events.json")).into_iter().enumerate() {
        let Some(extensions) = row.source.spec.ce_overrides.map(|o| o.extensions) else { continue };
        let Some(go) = row.requests.first() else { continue };
        let overrides = Overrides::from_extensions(&extensions).unwrap_or_else(|e| panic!("row {n}: {e:?}"));
        let outcome = plain.with_overrides(overrides).unwrap().send(held.term.guard().unwrap(), event()).await;
        assert!(outcome.is_delivered(), "row {n}: {outcome}");
        let seen = raw.seen().pop().unwrap();
        sent += 1;
        for (name, value) in &extensions {
            let name = format!("ce-{}", name.to_lowercase());
            assert_eq!(seen.header(&name), Some(encoded(value).as_str()), "row {n}");
            let wire = go.headers.iter().find(|(n, _)| n.to_lowercase() == name).unwrap().1;
            if *wire != encoded(value) {
                differs.push(n);
            }
        }
    }
    assert!(sent > 5, "{sent}");
    assert_eq!(differs, PING_ENCODED);
}
