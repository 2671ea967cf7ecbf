use std::collections::BTreeMap;

use cloudevents::AttributesReader as _;
use cloudevents::event::SpecVersion;

use super::super::source::CloudEventOverrides;
use super::vectors::{Request, Row, rows};
use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

fn source(spec: PingSourceSpec) -> PingSource {
    let mut source = PingSource { spec, ..PingSource::default() };
    source.metadata.namespace = Some("ns".to_owned());
    source.metadata.name = Some("ping".to_owned());
    source
}

fn minutely() -> PingSourceSpec {
    PingSourceSpec { schedule: "* * * * *".to_owned(), ..PingSourceSpec::default() }
}

fn bytes(event: &Event) -> Vec<u8> {
    match event.data() {
        None => Vec::new(),
        Some(Data::Binary(bytes)) => bytes.clone(),
        Some(Data::String(text)) => text.clone().into_bytes(),
        Some(Data::Json(value)) => panic!("data is never parsed, but here is {value}"),
    }
}

/// The `dataBase64` of rows in which Knative sends the part before the fault, if any. We refuse the source.
const BAD_BASE64: [&str; 12] = [
    "!!!",
    "c29tZSBkYXRh!",
    "c29tZSBk!XRh",
    "c29tZSBkYXRhIQ",
    "c29tZSBkYXRhIQ=",
    "c29tZSBkYXRhIQ===",
    "c29t ZSBk",
    "-_-_",
    "=",
    "====",
    "a",
    "YQ==YQ==",
];

fn assert_same(row: &Row, request: &Request) {
    let ping = Ping::new(&row.source, TimeZone::UTC).unwrap_or_else(|error| panic!("{:?}: {error}", row.source));
    let time = at("2025-06-17T12:00:00Z");
    let event = ping.event(time);
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    let url = url::Url::parse(&format!("http://sink{}", row.sink_path)).unwrap();
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", &url[url::Position::BeforePath..url::Position::AfterQuery])
    );
    assert_eq!(event.specversion(), SpecVersion::V10);
    assert_eq!(header("Ce-Specversion"), Some("1.0"));
    assert_eq!(header("Ce-Type"), Some(event.ty()));
    assert_eq!(header("Ce-Source"), Some(event.source().as_str()));
    assert_eq!(header("Content-Type"), event.datacontenttype());
    assert_eq!(header("Kn-Namespace"), Some(row.source.namespace()));
    assert_eq!((event.subject(), event.dataschema(), event.iter_extensions().count()), (None, None, 0));
    assert_eq!(bytes(&event), request.body());
    // Go trims the values of headers as it writes them.
    let sent = ping.overrides().iter().map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    assert_eq!(sent.collect::<BTreeMap<_, _>>(), request.extensions());
}

#[test]
fn every_row_is_knatives_event_or_a_refusal_of_ours() {
    let (mut same, mut refused) = (0, 0);
    for row in rows() {
        let spec = &row.source.spec;
        let bad_base64 = BAD_BASE64.contains(&spec.data_base64.as_str());
        if let Some(request) = row.request().filter(|_| !bad_base64) {
            assert_same(&row, request);
            same += 1;
            continue;
        }
        refused += 1;
        let error = Ping::new(&row.source, TimeZone::UTC).err();
        let error = error.unwrap_or_else(|| panic!("{spec:?} is taken, and Knative does not send it"));
        if bad_base64 {
            assert!(matches!(error.problems(), [Problem::Base64(_)]), "{spec:?}: {error}");
        } else if row.scheduled {
            assert_said(&row, &error);
        } else {
            let schedule = |p: &Problem| matches!(p, Problem::Schedule { .. } | Problem::Timezone { .. });
            assert!(error.problems().iter().all(schedule), "{spec:?}: {error}");
        }
    }
    // 14 for base64, 7 for content types, 11 for overrides, 5 for schedules.
    assert_eq!((same, refused), (62, 37));
}

/// What Knative's sender says at each send, we say of the source.
fn assert_said(row: &Row, error: &Invalid) {
    let text = error.to_string();
    let theirs = &row.send_result;
    if let Some(reason) = theirs.split("mime: ").nth(1) {
        assert!(text.starts_with("spec.contentType ") && text.contains(reason.trim()), "{text} for {theirs}");
        return;
    }
    let extensions = &row.source.spec.ce_overrides.as_ref().expect("nothing else fails a send").extensions;
    for name in extensions.keys() {
        let named = theirs.contains(&format!("extension:{name}:")) || theirs.contains("invalid header field value");
        assert_eq!(named, text.contains(&format!("{name:?}")), "{text} for {theirs}");
    }
}

#[test]
fn refusals_name_the_field_and_all_of_them_are_told() {
    let mut spec = PingSourceSpec {
        schedule: "bad".to_owned(),
        content_type: "garbage garbage".to_owned(),
        data_base64: "!".to_owned(),
        ce_overrides: Some(CloudEventOverrides { extensions: BTreeMap::from([("id".to_owned(), String::new())]) }),
        ..PingSourceSpec::default()
    };
    let error = Ping::new(&source(spec.clone()), TimeZone::UTC).unwrap_err();
    let lines: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            r#"spec.schedule "bad": expected 5 to 6 fields, found 1: [bad]"#,
            "spec.dataBase64: Invalid symbol 33, offset 0. (line breaks left out): write standard base64 with padding, \
             or plain text in spec.data",
            r#"spec.contentType "garbage garbage": expected slash after first token: write a media type such as application/json"#,
            r#"spec.ceOverrides: the extension "id" has the name of an attribute of the specification"#,
        ]
    );
    assert_eq!(error.to_string(), lines.join("; "));

    spec = PingSourceSpec { timezone: "Bad/Zone".to_owned(), ..minutely() };
    assert_eq!(
        Ping::new(&source(spec), TimeZone::UTC).unwrap_err().to_string(),
        r#"spec.timezone "Bad/Zone": provided bad location Bad/Zone: unknown time zone Bad/Zone"#
    );
    spec = PingSourceSpec { timezone: "UTC".to_owned(), schedule: "TZ=UTC @daily".to_owned(), ..minutely() };
    assert_eq!(
        Ping::new(&source(spec), TimeZone::UTC).unwrap_err().to_string(),
        "spec.timezone \"UTC\": the time zone is given twice: \"UTC\" beside the schedule, and in the schedule \
         \"TZ=UTC @daily\": keep one of them"
    );
    spec = PingSourceSpec { schedule: "TZ=Bad/Zone @daily".to_owned(), ..minutely() };
    assert_eq!(
        Ping::new(&source(spec), TimeZone::UTC).unwrap_err().to_string(),
        r#"spec.schedule "TZ=Bad/Zone @daily": provided bad location Bad/Zone: unknown time zone Bad/Zone"#
    );
    assert_eq!(
        Ping::new(&PingSource { spec: minutely(), ..PingSource::default() }, TimeZone::UTC).unwrap_err().problems(),
        [Problem::Name]
    );
}

#[test]
fn id_and_time_are_those_of_the_scheduled_time() {
    let source = source(minutely());
    let (first, again) = (Ping::new(&source, TimeZone::UTC).unwrap(), Ping::new(&source, TimeZone::UTC).unwrap());
    let (noon, later) = (at("2025-06-17T12:00:00Z"), at("2025-06-17T12:01:00Z"));
    assert_eq!(first.event(noon), again.event(noon));
    assert_ne!(first.event(noon).id(), first.event(later).id());
    assert_eq!(first.event(noon).time().unwrap().to_rfc3339(), "2025-06-17T12:00:00+00:00");
    // Before 1970 too: nothing here may panic.
    assert_eq!(first.event(at("1969-12-31T23:59:59.5Z")).time().unwrap().to_rfc3339(), "1969-12-31T23:59:59.500+00:00");
    first.event(Timestamp::MIN);
    first.event(Timestamp::MAX);
}

#[test]
fn an_edit_of_the_data_keeps_the_id() {
    let edited = PingSourceSpec { data: "x".to_owned(), ..minutely() };
    let noon = at("2025-06-17T12:00:00Z");
    let id = |spec| Ping::new(&source(spec), TimeZone::UTC).unwrap().event(noon).id().to_owned();
    assert_eq!(id(minutely()), id(edited));
}

#[test]
fn schedules_keep_their_zone_and_intervals_their_origin() {
    let spec = PingSourceSpec { schedule: "0 6 * * *".to_owned(), timezone: "Asia/Kolkata".to_owned(), ..minutely() };
    let ping = Ping::new(&source(spec), TimeZone::UTC).unwrap();
    assert_eq!(ping.schedule().next(at("2025-06-17T12:00:00Z")), Some(at("2025-06-18T00:30:00Z")));

    let mut every = source(PingSourceSpec { schedule: "@every 40s".to_owned(), ..minutely() });
    let next =
        |source: &PingSource| Ping::new(source, TimeZone::UTC).unwrap().schedule().next(at("2025-06-17T12:00:05Z"));
    // 2025-06-17T12:00:00Z is a multiple of 40 s after 1970.
    assert_eq!(next(&every), Some(at("2025-06-17T12:00:40Z")));
    every.metadata.creation_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at("2025-06-17T11:59:59Z")));
    assert_eq!(next(&every), Some(at("2025-06-17T12:00:39Z")));
}
