//! Each variable: unset, empty, good and broken.

use super::*;

fn read(vars: &[(&str, &str)]) -> Result<Env, EnvError> {
    Env::from_vars(vars.iter().copied())
}

fn refused(variable: &str, value: &str) -> String {
    let error = read(&[(variable, value)]).unwrap_err();
    assert_eq!(error.0.len(), 1, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&format!("environment variable {} is ", variable.to_uppercase())), "{text}");
    text
}

#[test]
fn unset_or_empty_has_a_default() {
    let knatives =
        ["NAMESPACE", "NAME", "K_SINK", "K_CE_OVERRIDES", "K_LEADER_ELECTION_CONFIG", "SYSTEM_NAMESPACE", "HTTP_PROXY"];
    let empty: Vec<_> = knatives.iter().map(|name| (*name, "")).collect();
    for env in [read(&[]).unwrap(), read(&empty).unwrap()] {
        assert_eq!((env.namespace(), env.name()), ("", "adapter"));
        assert_eq!((env.sink(), env.sink_timeout(), env.overrides().is_empty()), (None, None, true));
        assert_eq!((env.leader_election_config(), env.system_namespace(), env.pod_uid()), (None, None, None));
        assert_eq!((env.probe_port(), env.metrics_port(), env.fencing()), (8080, 9092, false));
        assert_eq!((env.report(), env.proxies()), (None, &Proxies::default()));
        assert!(env.listen().is_unspecified() && env.warnings().is_empty());
        assert!(!env.hostname().is_empty());
    }
}

#[test]
fn what_is_set_is_read() {
    let env = read(&[
        ("NAMESPACE", "knative-eventing"),
        ("NAME", "feed"),
        ("K_SINK", "https://user@sink.example:8443/path?query"),
        ("K_CE_OVERRIDES", r#"{"extensions":{"Team":"blue"}}"#),
        ("K_SINK_TIMEOUT", "30"),
        ("K_LEADER_ELECTION_CONFIG", "{}"),
        ("POD_UID", "u-1"),
        ("https_proxy", "proxy.example:3128"),
        ("NO_PROXY", ".svc"),
        ("LEASEHOLD_PROBE_PORT", "0"),
        ("LEASEHOLD_METRICS_PORT", "65535"),
        ("LEASEHOLD_LISTEN", "127.0.0.1"),
        ("LEASEHOLD_FENCING", "true"),
        ("LEASEHOLD_REPORT", "/tmp/r.sock"),
        ("FEED_URL", "x"),
    ])
    .unwrap();
    assert_eq!((env.namespace(), env.name(), env.get("FEED_URL")), ("knative-eventing", "feed", Some("x")));
    assert_eq!(env.sink().unwrap().as_str(), "https://user@sink.example:8443/path?query");
    assert!(env.overrides().iter().eq([("team", "blue")]));
    assert_eq!(env.sink_timeout(), Some(Duration::from_secs(30)));
    assert_eq!((env.leader_election_config(), env.pod_uid()), (Some("{}"), Some("u-1")));
    assert_eq!(env.proxies().https.as_ref().unwrap().as_str(), "http://proxy.example:3128/");
    assert_eq!((env.probe_port(), env.metrics_port(), env.fencing()), (0, 65535, true));
    assert_eq!((env.listen().to_string(), env.report().unwrap().to_str()), ("127.0.0.1".into(), Some("/tmp/r.sock")));
}

#[test]
fn what_is_broken_names_variable_value_and_rule() {
    for (variable, value, rule) in [
        ("NAMESPACE", "Big", "a DNS label"),
        ("NAMESPACE", "-a", "a DNS label"),
        ("K_SINK", "sink.example/path", "relative URL without a base; it must be an absolute http or https URL"),
        ("K_SINK", "ftp://sink.example/", "its scheme is \"ftp\""),
        ("K_SINK", "http://[bad", "invalid IPv6 address"),
        ("K_CE_OVERRIDES", "[]", "it must be JSON such as"),
        ("K_CE_OVERRIDES", r#"{"extensions":{"bad-name":"x"}}"#, "every event would be refused"),
        ("http_proxy", "socks5://x", "its scheme is \"socks5\""),
        ("LEASEHOLD_PROBE_PORT", "65536", "a port from 1 to 65535, or 0 for any; unset it for 8080"),
        ("LEASEHOLD_PROBE_PORT", "", "a port from 1 to 65535"),
        ("LEASEHOLD_METRICS_PORT", "http", "unset it for 9092"),
        ("LEASEHOLD_LISTEN", "localhost", "an IP address"),
        ("LEASEHOLD_FENCING", "yes", "true or false"),
        ("LEASEHOLD_FENCING", "", "true or false"),
        ("LEASEHOLD_REPORT", "", "the path of a unix socket"),
    ] {
        let text = refused(variable, value);
        assert!(text.contains(&format!("{value:?}")) && text.contains(rule), "{text}");
    }
}

#[test]
fn all_that_is_broken_is_said_at_once() {
    let error = read(&[("K_SINK", "x"), ("LEASEHOLD_FENCING", "1"), ("K_CE_OVERRIDES", "x")]).unwrap_err();
    assert_eq!(
        error.0.iter().map(|b| b.variable).collect::<Vec<_>>(),
        ["K_SINK", "K_CE_OVERRIDES", "LEASEHOLD_FENCING"]
    );
    let long = "é".repeat(500);
    let text = read(&[("K_SINK", &long)]).unwrap_err().to_string();
    assert!(text.len() < 500 && text.contains('…'), "{text}");
}

#[test]
fn a_sink_timeout_that_is_no_number_is_none_and_not_passed_over_in_silence() {
    for broken in ["", "30s", "1.5", " 3"] {
        let env = read(&[("K_SINK_TIMEOUT", broken)]).unwrap();
        assert_eq!(env.sink_timeout(), None);
        assert!(env.warnings()[0].contains("K_SINK_TIMEOUT") && env.warnings()[0].contains(&format!("{broken:?}")));
    }
    for off in ["0", "-1", "-9223372036854775808"] {
        let env = read(&[("K_SINK_TIMEOUT", off)]).unwrap();
        assert_eq!((env.sink_timeout(), env.warnings().len()), (None, 0));
    }
}

#[test]
fn an_identity_is_new_each_time_and_begins_with_the_pod() {
    let env = read(&[("POD_NAME", "pod-0"), ("HOSTNAME", "host")]).unwrap();
    let (one, two) = (env.new_identity(None), env.new_identity(None));
    assert!(one.starts_with("pod-0_") && one != two);
    assert!(env.new_identity(Some("given")).starts_with("given_"));
    assert!(read(&[("HOSTNAME", "host")]).unwrap().new_identity(None).starts_with("host_"));
}

#[test]
fn values_are_not_shown() {
    let shown = format!("{:?}", read(&[("PASSWORD", "hunter2")]).unwrap());
    assert!(shown.contains("PASSWORD") && !shown.contains("hunter2"));
}
