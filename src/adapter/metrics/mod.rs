//! What is counted, and how it is served: docs/metrics.md is the table, and a test holds it against this module.
//!
//! # Guarantees
//! - Names and units are by Prometheus's conventions; the text is OpenMetrics 1.0.
//! - The number of series does not grow with buckets, keys or sinks.
//! - What changes with time alone (deadlines, guards out) is read when it is scraped.

mod labels;
mod now;
#[cfg(test)]
mod tests;

pub(super) use now::Now;
pub use now::{ConfigCounts, Edits};

use super::sink::Outcome;
use super::terms::{Handover, Terms};
use crate::leader::Reason;
use crate::leader::observe::{Event, Observer};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// The content type of the page.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// From 1 ms to 65 s, each bound twice the one before.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 17))
}

/// The metrics of the election, which listen to it. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    terms: Terms,
    begun: Counter,
    ended: Family<labels::Reason, Counter>,
    promote_failures: Counter,
    renewals: Counter,
    requests: Family<labels::Request, Counter>,
    request_seconds: Histograms<labels::Verb>,
    handover_seconds: Histograms<labels::Side>,
    notices: Family<labels::Code, Counter>,
    ordinal: Gauge,
}

impl Metrics {
    /// Registers them, and those that `now` reads at each scrape.
    pub(super) fn register(registry: &mut Registry, now: Now) -> Self {
        let metrics = Self {
            terms: now.terms.clone(),
            begun: Counter::default(),
            ended: Family::default(),
            promote_failures: Counter::default(),
            renewals: Counter::default(),
            requests: Family::default(),
            request_seconds: Histograms::new_with_constructor(seconds),
            handover_seconds: Histograms::new_with_constructor(seconds),
            notices: Family::default(),
            ordinal: Gauge::default(),
        };
        metrics.ordinal.set(-1);
        // Series that exist from the start show a zero, and a rate over the first of a kind is right.
        for reason in [Reason::Released, Reason::Lost, Reason::Resharded, Reason::Shutdown] {
            drop(metrics.ended.get_or_create(&labels::Reason { reason: reason.as_str() }));
        }
        let all = registry.sub_registry_with_prefix("leasehold");
        all.register("terms_begun", "Terms begun: buckets taken", metrics.begun.clone());
        all.register("terms_ended", "Terms ended, by reason", metrics.ended.clone());
        all.register("promote_failures", "Promotes that failed or hung", metrics.promote_failures.clone());
        all.register("renewals", "Renewals that moved a deadline, one for each bucket", metrics.renewals.clone());
        all.register(
            "lease_requests",
            "Lease requests to the API server, by verb and outcome",
            metrics.requests.clone(),
        );
        all.register_with_unit(
            "lease_request_duration",
            "Time that Lease requests took",
            Unit::Seconds,
            metrics.request_seconds.clone(),
        );
        all.register_with_unit(
            "handover",
            "Time of a hand-over on this replica's side: taking, from the take to the open gate; giving, from the shut gate to the end of demote",
            Unit::Seconds,
            metrics.handover_seconds.clone(),
        );
        all.register("notices", "Notices for people, by code", metrics.notices.clone());
        all.register(
            "statefulset_ordinal",
            "The pod's ordinal, which says the bucket it assumes, in strategy statefulset; -1 in others",
            metrics.ordinal.clone(),
        );
        all.register_collector(Box::new(now));
        metrics
    }
}

impl Observer for Metrics {
    fn observe(&self, event: &Event) {
        let side = self.terms.note(event);
        match event {
            Event::TermBegun { .. } => drop(self.begun.inc()),
            Event::PromoteFailed { .. } => drop(self.promote_failures.inc()),
            Event::DeadlineMoved { .. } => drop(self.renewals.inc()),
            Event::TermEnded { reason, .. } => {
                self.ended.get_or_create(&labels::Reason { reason: reason.as_str() }).inc();
            }
            Event::Request { verb, outcome, took } => {
                self.requests.get_or_create(&labels::Request { verb, outcome }).inc();
                self.request_seconds.get_or_create(&labels::Verb { verb }).observe(took.as_secs_f64());
            }
            Event::Assumed { ordinal, .. } => drop(self.ordinal.set(i64::from(*ordinal))),
            Event::Notice { code, .. } => drop(self.notices.get_or_create(&labels::Code { code }).inc()),
            _ => {}
        }
        let (side, took) = match side {
            Some(Handover::Taking(took)) => ("taking", took),
            Some(Handover::Giving(took)) => ("giving", took),
            None => return,
        };
        self.handover_seconds.get_or_create(&labels::Side { side }).observe(took.as_secs_f64());
    }
}

/// The metrics of deliveries. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Deliveries {
    events: Family<labels::Delivery, Counter>,
    retries: Counter,
    seconds: Histograms<labels::Outcome>,
}

impl Deliveries {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let deliveries = Self {
            events: Family::default(),
            retries: Counter::default(),
            seconds: Histograms::new_with_constructor(seconds),
        };
        let all = registry.sub_registry_with_prefix("leasehold");
        all.register(
            "events",
            "Events, by how their delivery ended and the class of the last answer's status",
            deliveries.events.clone(),
        );
        all.register("delivery_retries", "Attempts after an event's first", deliveries.retries.clone());
        all.register_with_unit(
            "delivery_duration",
            "Time from the first attempt of an event to the end of its delivery",
            Unit::Seconds,
            deliveries.seconds.clone(),
        );
        deliveries
    }

    pub(super) fn ended(&self, outcome: &Outcome, took: Duration) {
        let code = match outcome.status() {
            None => "none",
            Some(100..=199) => "1xx",
            Some(200..=299) => "2xx",
            Some(300..=399) => "3xx",
            Some(400..=499) => "4xx",
            Some(500..=599) => "5xx",
            Some(_) => "other",
        };
        let outcome = outcome.as_str();
        self.events.get_or_create(&labels::Delivery { outcome, code }).inc();
        self.seconds.get_or_create(&labels::Outcome { outcome }).observe(took.as_secs_f64());
    }

    pub(super) fn retried(&self) {
        self.retries.inc();
    }
}
