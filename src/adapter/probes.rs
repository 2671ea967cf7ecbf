//! What Kubernetes and people ask a replica: is it ready, is it well, and what is it doing.
//!
//! | path | answers |
//! | --- | --- |
//! | /readiness, /health | Knative's: 200 and no body; once the stop has begun 500 `received SIGTERM from kubelet` |
//! | /readyz | 200 `ok`, or 500 once the stop has begun |
//! | /livez, /healthz | 200 `ok`, or 500 with what is wrong |
//!
//! With `?verbose` the last three say in words what this replica holds and why not more. Before there is a configuration,
//! /readyz and /readiness answer 503, the others 200.
//!
//! # Guarantees
//! - Ready does not mean holding a bucket: a replica that stands by is ready.
//! - /healthz fails when the election task has ended without being told to, and when a term has not ended although its
//!   deadline passed more than lease-duration ago. A restart mends both, and nothing else would.
//! - A stop in good order is no illness: /healthz goes on answering 200.

use super::terms::{Held, Terms};
use crate::clock::SharedClock;
use crate::config::Config;
use crate::elector::{Status, Stop};
use crate::leader::Leadership;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// What the answers are made of.
pub(super) struct Health {
    pub(super) component: String,
    pub(super) identity: String,
    pub(super) queue: String,
    pub(super) strategy: &'static str,
    pub(super) terms: Terms,
    pub(super) leadership: Leadership,
    pub(super) status: Status,
    pub(super) config: watch::Receiver<Arc<Config>>,
    pub(super) clock: SharedClock,
    pub(super) stop: Stop,
    /// The election task ended without being told to.
    pub(super) election_died: AtomicBool,
}

impl Health {
    /// What is wrong beyond mending from within.
    pub(super) fn ills(&self) -> Vec<String> {
        let mut ills = Vec::new();
        if self.election_died.load(Ordering::Acquire) {
            ills.push(
                "the election task has ended without being told to: this replica will never hold a bucket again".into(),
            );
        }
        let (now, lease) = (self.clock.now(), self.config.borrow().timing.lease_duration);
        for (bucket, held) in self.terms.all() {
            let past = now.since(held.deadline);
            if past > lease {
                ills.push(format!(
                    "{}: its deadline passed {} ago and the term has not ended",
                    shown(&bucket),
                    secs(past)
                ));
            }
        }
        ills
    }

    /// All that can be said, one sentence a line.
    fn words(&self) -> String {
        let mut out = String::new();
        let stopping = if self.stop.is_cancelled() { "stopping" } else { "ready" };
        let _ = writeln!(out, "{} is {stopping}", self.component);
        let _ = writeln!(out, "identity: {}", self.identity);
        let held = self.leadership.held().len();
        let buckets = self.config.borrow().buckets;
        let _ = writeln!(out, "queue {}, strategy {}: holds {held} of {buckets} bucket(s)", self.queue, self.strategy);
        if held == 0 && !self.stop.is_cancelled() {
            let _ = writeln!(out, "standing by: ready does not mean holding a bucket");
        }
        let guards: BTreeMap<_, _> =
            self.leadership.terms().iter().map(|t| (t.bucket().name().to_owned(), t.guards_out())).collect();
        for (bucket, held) in self.terms.all() {
            self.bucket(&mut out, &bucket, held, guards.get(&bucket).copied().unwrap_or_default());
        }
        for (topic, sentence) in self.status.all() {
            let _ = writeln!(out, "{topic}: {sentence}");
        }
        for ill in self.ills() {
            let _ = writeln!(out, "ILL: {ill}");
        }
        out
    }

    fn bucket(&self, out: &mut String, bucket: &str, held: Held, guards: u64) {
        let now = self.clock.now();
        let state = match held {
            Held { closing: Some(since), .. } => format!("being given up for {}", secs(now.since(since))),
            Held { promoted: true, .. } => format!("held for {}", secs(now.since(held.begun))),
            Held { .. } => format!("taken {} ago, its promote under way", secs(now.since(held.begun))),
        };
        let left = match held.deadline {
            at if at.as_nanos() == u64::MAX => "no deadline".to_owned(),
            at if at > now => format!("{} to its deadline", secs(at.since(now))),
            at => format!("its deadline passed {} ago", secs(now.since(at))),
        };
        let token = held.token.map_or_else(|| "no token".to_owned(), |t| format!("token {t}"));
        let _ = writeln!(out, "{}: {state}, {left}, {guards} guard(s) out, {token}", shown(bucket));
    }
}

/// Strategy `unopposed` has one bucket, whose name is empty.
fn shown(bucket: &str) -> String {
    if bucket.is_empty() { "everything".to_owned() } else { format!("bucket {bucket}") }
}

fn secs(d: Duration) -> String {
    format!("{:.1}s", d.as_secs_f64())
}

/// The routes of a replica that has no configuration yet: alive, not ready, and why.
pub(super) fn starting(component: &str, status: Status) -> Router {
    let component = component.to_owned();
    let answer = move |code: StatusCode, RawQuery(query): RawQuery| {
        let mut words = format!("{component} is starting: it has no configuration yet\n");
        if is_verbose(query.as_deref()) {
            for (topic, sentence) in status.all() {
                let _ = writeln!(words, "{topic}: {sentence}");
            }
        }
        std::future::ready((code, words))
    };
    let (alive, not_ready) = (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE);
    let of = |code| {
        let answer = answer.clone();
        get(move |query: RawQuery| answer(code, query))
    };
    Router::new()
        .route("/readiness", of(not_ready))
        .route("/readyz", of(not_ready))
        .route("/health", of(alive))
        .route("/livez", of(alive))
        .route("/healthz", of(alive))
}

/// The routes.
pub(super) fn router(health: Arc<Health>) -> Router {
    Router::new()
        .route("/readiness", get(knative))
        .route("/health", get(knative))
        .route("/readyz", get(readyz))
        .route("/livez", get(healthz))
        .route("/healthz", get(healthz))
        .with_state(health)
}

async fn knative(State(health): State<Arc<Health>>) -> Response {
    if health.stop.is_cancelled() {
        return (StatusCode::INTERNAL_SERVER_ERROR, "received SIGTERM from kubelet\n").into_response();
    }
    StatusCode::OK.into_response()
}

async fn readyz(State(health): State<Arc<Health>>, query: RawQuery) -> Response {
    let code = if health.stop.is_cancelled() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    let short = if health.stop.is_cancelled() { "stopping\n" } else { "ok\n" };
    answer(code, &health, &query, short.to_owned())
}

async fn healthz(State(health): State<Arc<Health>>, query: RawQuery) -> Response {
    let ills = health.ills();
    if ills.is_empty() {
        return answer(StatusCode::OK, &health, &query, "ok\n".to_owned());
    }
    answer(StatusCode::INTERNAL_SERVER_ERROR, &health, &query, ills.join("\n") + "\n")
}

fn answer(code: StatusCode, health: &Health, RawQuery(query): &RawQuery, short: String) -> Response {
    (code, if is_verbose(query.as_deref()) { health.words() } else { short }).into_response()
}

fn is_verbose(query: Option<&str>) -> bool {
    query.iter().flat_map(|q| q.split('&')).any(|p| p == "verbose" || p.starts_with("verbose="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::testing::{config, everything};
    use crate::clock::{Clock, Instant};
    use crate::leader::observe::Event;
    use std::sync::atomic::AtomicU64;

    #[derive(Debug, Default)]
    struct Hand(AtomicU64);

    impl Hand {
        fn at(&self, secs: u64) {
            self.0.store(secs * 1_000_000_000, Ordering::Release);
        }
    }

    impl Clock for Hand {
        fn now(&self) -> Instant {
            Instant::from_nanos(self.0.load(Ordering::Acquire))
        }
        fn wall(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }
    }

    fn health(clock: Arc<Hand>) -> Health {
        Health {
            component: "c".into(),
            identity: "pod_u".into(),
            queue: "adapter".into(),
            strategy: "standard",
            terms: Terms::default(),
            leadership: Leadership::new(),
            status: Status::default(),
            config: watch::channel(Arc::new(config())).1,
            clock,
            stop: Stop::new(),
            election_died: AtomicBool::new(false),
        }
    }

    #[test]
    fn a_term_that_has_not_ended_is_an_illness_a_lease_duration_after_its_deadline() {
        let clock = Arc::new(Hand::default());
        let health = health(clock.clone());
        let (bucket, token, secs) = (everything(), None, |n: u64| Instant::from_nanos(n * 1_000_000_000));
        health.terms.note(&Event::TermBegun { bucket: bucket.clone(), token, at: secs(1), deadline: secs(11) });
        assert!(health.words().contains("everything: taken 0.0s ago, its promote under way, 11.0s to its deadline"));
        health.terms.note(&Event::Promoted { bucket: bucket.clone(), token, at: secs(2) });
        // lease-duration is 15 s.
        clock.at(26);
        assert_eq!(health.ills(), Vec::<String>::new());
        assert!(health.words().contains("everything: held for 25.0s, its deadline passed 15.0s ago"));
        clock.at(27);
        assert_eq!(health.ills(), ["everything: its deadline passed 16.0s ago and the term has not ended"]);
        assert!(health.words().contains("ILL: everything"));
        // A renewal, or the end, mends it.
        health.terms.note(&Event::DeadlineMoved { bucket: bucket.clone(), token, deadline: secs(40) });
        assert!(health.ills().is_empty());
        clock.at(60);
        assert_eq!(health.ills().len(), 1);
        let reason = crate::leader::Reason::Lost;
        health.terms.note(&Event::TermEnded { bucket, token, reason, acted_until: secs(40), at: secs(60) });
        assert!(health.ills().is_empty());
    }

    #[test]
    fn standing_by_is_said_and_is_no_illness() {
        let health = health(Arc::default());
        health.status.say("standing by", "another layout is in force: 4 buckets");
        let words = health.words();
        for part in [
            "c is ready\n",
            "identity: pod_u\n",
            "queue adapter, strategy standard: holds 0 of 2 bucket(s)\n",
            "standing by: ready does not mean holding a bucket\n",
            "standing by: another layout is in force: 4 buckets\n",
        ] {
            assert!(words.contains(part), "{part}\n{words}");
        }
        assert!(health.ills().is_empty());
        health.stop.cancel();
        assert!(health.words().starts_with("c is stopping\n"));
    }

    #[test]
    fn what_has_no_deadline_is_never_late() {
        let clock = Arc::new(Hand::default());
        let health = health(clock.clone());
        let at = Instant::from_nanos;
        let begun = Event::TermBegun { bucket: everything(), token: None, at: at(0), deadline: at(u64::MAX) };
        health.terms.note(&begun);
        clock.at(1_000_000_000);
        assert!(health.ills().is_empty() && health.words().contains("no deadline"));
    }
}
