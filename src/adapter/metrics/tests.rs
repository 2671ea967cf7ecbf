//! The table in docs/metrics.md against what is served.

use super::*;
use crate::adapter::sink::{Failure, Refusal};
use crate::adapter::testing::everything;
use crate::clock::{Boottime, Clock, Instant};
use crate::leader::Leadership;
use prometheus_client::encoding::text::encode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

struct Served {
    registry: Registry,
    metrics: Metrics,
    deliveries: Deliveries,
}

fn served() -> Served {
    let mut registry = Registry::default();
    let now = Now {
        terms: Terms::default(),
        leadership: Leadership::new(),
        clock: Arc::new(Boottime),
        edits: Some(Arc::new(|| ConfigCounts { applied: 2, refused: 1, watch_failures: 5 })),
    };
    let metrics = Metrics::register(&mut registry, now);
    let deliveries = Deliveries::register(&mut registry);
    Served { registry, metrics, deliveries }
}

impl Served {
    fn page(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.registry).unwrap();
        page
    }

    /// One of each thing that is counted.
    fn all_happens(&self) {
        let (bucket, token) = (everything(), None);
        let at = |secs: u64| Instant::from_nanos(secs * 1_000_000_000);
        let now = Boottime.now();
        let deliver = |outcome: Outcome| self.deliveries.ended(&outcome, Duration::from_millis(20));
        for event in [
            Event::TermBegun { bucket: bucket.clone(), token, at: at(1), deadline: now + Duration::from_mins(1) },
            Event::Promoted { bucket: bucket.clone(), token, at: at(3) },
            Event::DeadlineMoved { bucket: bucket.clone(), token, deadline: now + Duration::from_mins(2) },
            Event::GuardsOut { bucket: bucket.clone(), token, guards: 4, at: at(5) },
            Event::TermEnded { bucket: bucket.clone(), token, reason: Reason::Lost, acted_until: at(6), at: at(8) },
            Event::TermBegun { bucket: bucket.clone(), token, at: at(9), deadline: now + Duration::from_mins(1) },
            Event::PromoteFailed { bucket, why: "no".into() },
            Event::Request { verb: "update", outcome: "conflict", took: Duration::from_millis(12) },
            Event::Notice { code: "foreign-holder", text: "x".into() },
        ] {
            self.metrics.observe(&event);
        }
        let last = Failure::Status { status: 503, body: String::new() };
        deliver(Outcome::Delivered { status: 202, attempts: 1 });
        deliver(Outcome::Exhausted { attempts: 6, last });
        deliver(Outcome::Refused { why: Refusal::NoSink, attempts: 0 });
        deliver(Outcome::Abandoned);
        self.deliveries.retried();
    }
}

/// Name, type, labels and meaning, as a row of the table says them.
type Row = (String, String, String, String);

fn served_rows(page: &str) -> BTreeSet<Row> {
    let mut families: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for line in page.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' ')) {
            families.entry(name).or_default().0 = kind;
        }
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|l| l.split_once(' ')) {
            families.entry(name).or_default().1 = help.trim_end_matches('.');
        }
    }
    let row = |(name, (kind, help)): (&str, (&str, &str))| {
        let mut labels = BTreeSet::new();
        let samples = page.lines().filter(|l| !l.starts_with('#') && l.starts_with(name));
        for sample in samples {
            let Some((_, rest)) = sample.split_once('{') else { continue };
            let pairs = rest.split('}').next().unwrap().split("\",").filter_map(|p| p.split_once('='));
            labels.extend(pairs.map(|(label, _)| label).filter(|l| *l != "le"));
        }
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        let labels = labels.into_iter().collect::<Vec<_>>().join(", ");
        (name, kind.to_owned(), labels, help.to_owned())
    };
    families.into_iter().map(row).collect()
}

fn documented_rows() -> BTreeSet<Row> {
    let table = include_str!("../../../docs/metrics.md");
    let rows = table.lines().filter(|l| l.starts_with("| `leasehold_"));
    rows.map(|line| {
        let mut cells = line.trim_matches('|').split(" | ").map(|c| c.trim().trim_matches('`').to_owned());
        let mut cell = || cells.next().unwrap();
        (cell(), cell(), cell(), cell())
    })
    .collect()
}

#[test]
fn the_table_in_the_docs_is_what_is_served() {
    let served = served();
    served.all_happens();
    let page = served.page();
    assert!(page.ends_with("# EOF\n"));
    assert_eq!(served_rows(&page), documented_rows(), "{page}");
}

#[test]
fn everything_that_happens_moves_its_metric() {
    let served = served();
    served.all_happens();
    let page = served.page();
    for line in [
        "leasehold_terms_begun_total 2",
        "leasehold_terms_ended_total{reason=\"lost\"} 1",
        "leasehold_terms_ended_total{reason=\"shutdown\"} 0",
        "leasehold_promote_failures_total 1",
        "leasehold_renewals_total 1",
        "leasehold_lease_requests_total{verb=\"update\",outcome=\"conflict\"} 1",
        "leasehold_lease_request_duration_seconds_sum{verb=\"update\"} 0.012",
        "leasehold_handover_seconds_sum{side=\"taking\"} 2.0",
        "leasehold_handover_seconds_sum{side=\"giving\"} 3.0",
        "leasehold_notices_total{code=\"foreign-holder\"} 1",
        "leasehold_events_total{outcome=\"delivered\",code=\"2xx\"} 1",
        "leasehold_events_total{outcome=\"exhausted\",code=\"5xx\"} 1",
        "leasehold_events_total{outcome=\"refused\",code=\"none\"} 1",
        "leasehold_events_total{outcome=\"abandoned\",code=\"none\"} 1",
        "leasehold_delivery_retries_total 1",
        "leasehold_delivery_duration_seconds_count{outcome=\"delivered\"} 1",
        "leasehold_config_edits_total{result=\"applied\"} 2",
        "leasehold_config_edits_total{result=\"refused\"} 1",
        "leasehold_config_watch_failures_total 5",
        "leasehold_buckets_held 0",
        "leasehold_guards_out 0",
    ] {
        assert!(page.lines().any(|l| l.starts_with(line)), "{line}\n{page}");
    }
    let deadline = page.lines().find_map(|l| l.strip_prefix("leasehold_deadline_seconds ")).unwrap();
    let deadline: f64 = deadline.parse().unwrap();
    assert!((30.0..=60.0).contains(&deadline), "{deadline}");
}

#[test]
fn without_a_term_there_is_no_deadline_rather_than_a_wrong_one() {
    let page = served().page();
    assert!(page.contains("# TYPE leasehold_deadline_seconds gauge"));
    assert!(!page.lines().any(|l| l.starts_with("leasehold_deadline_seconds")), "{page}");
}
