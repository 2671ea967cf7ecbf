//! Delivery of CloudEvents over HTTP: to K_SINK, or to the sink that the program names for an event.
//!
//! # Guarantees
//! - An event is sent under a guard, and everything about it (requests, waits, `Retry-After`) ends by the deadline of
//!   the guard's term as it then stands (rule S7). The guard is kept until the delivery has ended, so the bucket is not
//!   released while an answer may still come.
//! - Binary content mode of the CloudEvents HTTP binding 1.0.2, header values percent-encoded as its section 3.1.3.2
//!   asks. `Kn-Namespace` goes with each request.
//! - The event is the same in each attempt: its id, its time, its overrides.
//! - Retried as Knative's ping retries ([`Retry`]). 307 and 308 are followed, ten requests at most; no other redirect
//!   is, since the event would not go along. What would fail the same way again (a bad URL, another host's certificate)
//!   is not retried.
//! - Memory is bounded: of an answer at most 64 KiB are read, in at most a second after its head.
//!
//! # Caveats
//! - A request that was cancelled at the deadline may still be processed by the sink. With fencing on, each event
//!   carries `leasebucket` and `leaseepoch` (the fencing token), so that the sink can refuse a stale sender.
//! - Without K_SINK_TIMEOUT an attempt has no time limit but the term's, as in Knative. A peer that is gone is noticed
//!   by TCP's keep-alive; a connect is given 30 s.
//! - A Go receiver does not decode percent-encoded header values: an override with a blank or an umlaut reaches it as
//!   `%20` or `%C3%BC`.
//! - Proxies are those of HTTP_PROXY, HTTPS_PROXY and NO_PROXY ([`Proxies`](super::env::Proxies)), as in Go.
//! - TLS is reqwest's as the program was built; the crypto provider is the program's to install.

mod attempt;
mod client;
mod encode;
mod error;
pub(crate) mod media_type;
mod outcome;
mod overrides;
mod retry;
#[cfg(test)]
mod tests;

pub use encode::EventError;
pub use error::{SendAllError, Sent, SinkError};
pub use media_type::ContentTypeError;
pub use outcome::{Failure, Outcome, Refusal};
pub use overrides::{ExtensionError, Overrides, OverridesError};
pub use retry::{Backoff, Retry};

use super::env::{Env, shown, sink_url};
use super::metrics::Deliveries;
use crate::clock::{SharedClock, sleep_until};
use crate::leader::{Guard, Term};
use attempt::{Attempt, attempt};
use cloudevents::{AttributesReader, Event};
use encode::{Encoded, encode};
use http::header::{HeaderName, HeaderValue};
use retry::retry_after;
use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The extension that names the bucket under which an event is sent.
pub const BUCKET_EXTENSION: &str = "leasebucket";
/// The extension that holds the fencing token of the term, a String of 26 digits.
pub const EPOCH_EXTENSION: &str = "leaseepoch";

const KN_NAMESPACE: HeaderName = HeaderName::from_static("kn-namespace");

/// Where events go, and how. Cheap to clone: clones share one HTTP client and its connections. See the module.
#[derive(Clone)]
pub struct Sink {
    shared: Arc<Shared>,
    target: Option<Url>,
    overrides: Arc<Overrides>,
    retry: Arc<Retry>,
    namespace: HeaderValue,
    timeout: Option<Duration>,
    fencing: bool,
}

struct Shared {
    client: reqwest::Client,
    clock: SharedClock,
    counted: Option<Deliveries>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink")
            .field("target", &self.target.as_ref().map(shown))
            .field("retry", &self.retry)
            .field("timeout", &self.timeout)
            .field("fencing", &self.fencing)
            .finish_non_exhaustive()
    }
}

impl Sink {
    /// The sink that the environment describes.
    ///
    /// # Errors
    /// [`SinkError`].
    pub fn new(env: &Env, clock: SharedClock) -> Result<Self, SinkError> {
        Self::counted(env, clock, None)
    }

    /// As [`Sink::new`], counting what is delivered.
    ///
    /// # Errors
    /// [`SinkError`].
    pub(crate) fn counted(env: &Env, clock: SharedClock, counted: Option<Deliveries>) -> Result<Self, SinkError> {
        let shared = Arc::new(Shared { client: client::build(env.proxies())?, clock, counted });
        let sink = Self {
            shared,
            target: env.sink().cloned(),
            overrides: Arc::default(),
            retry: Arc::default(),
            namespace: HeaderValue::from_static(""),
            timeout: env.sink_timeout(),
            fencing: false,
        };
        sink.with_namespace(env.namespace())?.with_fencing(env.fencing())?.with_overrides(env.overrides().clone())
    }

    /// The same with another place to send to: an absolute http or https URL.
    ///
    /// # Errors
    /// [`SinkError::Url`].
    pub fn with_target(&self, url: &str) -> Result<Self, SinkError> {
        let target = sink_url(url).map_err(|rule| SinkError::Url { url: url.to_owned(), rule })?;
        Ok(Self { target: Some(target), ..self.clone() })
    }

    /// The same with these overrides in place of those before.
    ///
    /// # Errors
    /// [`SinkError::Fencing`].
    pub fn with_overrides(&self, overrides: Overrides) -> Result<Self, SinkError> {
        Self { overrides: Arc::new(overrides), ..self.clone() }.consistent()
    }

    /// The same, with the fencing extensions or without.
    ///
    /// # Errors
    /// [`SinkError::Fencing`].
    pub fn with_fencing(&self, fencing: bool) -> Result<Self, SinkError> {
        Self { fencing, ..self.clone() }.consistent()
    }

    /// The same with another `Kn-Namespace`.
    ///
    /// # Errors
    /// [`SinkError::Namespace`].
    pub fn with_namespace(&self, namespace: &str) -> Result<Self, SinkError> {
        let value = HeaderValue::from_str(namespace).map_err(|_| SinkError::Namespace(namespace.to_owned()))?;
        Ok(Self { namespace: value, ..self.clone() })
    }

    /// The same with another way to retry.
    #[must_use]
    pub fn with_retry(&self, retry: Retry) -> Self {
        Self { retry: Arc::new(retry), ..self.clone() }
    }

    /// The same with another time limit for one attempt.
    #[must_use]
    pub fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// The time limit for one attempt; None: the term's end.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Where events go.
    pub fn target(&self) -> Option<&Url> {
        self.target.as_ref()
    }

    fn consistent(self) -> Result<Self, SinkError> {
        let taken =
            [BUCKET_EXTENSION, EPOCH_EXTENSION].into_iter().find(|e| self.overrides.iter().any(|(n, _)| n == *e));
        match taken {
            Some(name) if self.fencing => Err(SinkError::Fencing(name)),
            _ => Ok(self),
        }
    }

    /// Sends `event` under `guard`, which is kept, or borrowed, until the delivery has ended.
    ///
    /// What failed for good or too often is logged here, once; an end of the term is not.
    ///
    /// Dropping the future cancels the request; the sink may have taken the event all the same.
    pub async fn send(&self, guard: impl Borrow<Guard>, event: Event) -> Outcome {
        let guard: &Guard = guard.borrow();
        let clock = &self.shared.clock;
        let began = clock.now();
        let (id, source) = (event.id().to_owned(), event.source().clone());
        let outcome = match self.prepare(guard, event) {
            Err(why) => Outcome::Refused { why, attempts: 0 },
            Ok((url, event)) => match guard.run(self.deliver(url, &event)).await {
                Ok(outcome) => outcome,
                Err(_) => Outcome::Abandoned,
            },
        };
        if let Some(counted) = &self.shared.counted {
            counted.ended(&outcome, clock.now().since(began));
        }
        let bucket = guard.bucket();
        match &outcome {
            Outcome::Delivered { .. } | Outcome::Abandoned => tracing::debug!(id, source, %bucket, "{outcome}"),
            Outcome::Refused { .. } | Outcome::Exhausted { .. } => tracing::error!(id, source, %bucket, "{outcome}"),
        }
        outcome
    }

    /// Sends `events` one after the other, each under a guard of `term`. What is refused for good is passed over.
    ///
    /// # Errors
    /// [`SendAllError`], at the first event that was not settled; those after it were not sent.
    pub async fn send_all(&self, term: &Term, events: impl IntoIterator<Item = Event>) -> Result<Sent, SendAllError> {
        let mut sent = Sent::default();
        for event in events {
            let Some(guard) = term.guard() else { return Err(SendAllError::Abandoned(sent)) };
            match self.send(guard, event).await {
                Outcome::Delivered { .. } => sent.delivered += 1,
                Outcome::Refused { .. } => sent.refused += 1,
                Outcome::Abandoned => return Err(SendAllError::Abandoned(sent)),
                Outcome::Exhausted { attempts, last } => return Err(SendAllError::Exhausted { sent, attempts, last }),
            }
        }
        Ok(sent)
    }

    /// The event as each attempt sends it.
    fn prepare(&self, guard: &Guard, mut event: Event) -> Result<(&Url, Encoded), Refusal> {
        let url = self.target.as_ref().ok_or(Refusal::NoSink)?;
        self.overrides.apply(&mut event);
        if self.fencing {
            overrides::set_extension(&mut event, BUCKET_EXTENSION, guard.bucket().name());
            // A term without a token (no Leases) must not pass on the token of whoever made the event.
            match guard.token() {
                Some(token) => overrides::set_extension(&mut event, EPOCH_EXTENSION, &token.to_string()),
                None => drop(event.remove_extension(EPOCH_EXTENSION)),
            }
        }
        let mut encoded = encode(event, self.shared.clock.wall())?;
        encoded.headers.insert(KN_NAMESPACE, self.namespace.clone());
        Ok((url, encoded))
    }

    async fn deliver(&self, url: &Url, event: &Encoded) -> Outcome {
        let Shared { client, clock, counted } = &*self.shared;
        let (began, mut waits, mut waited) = (clock.now(), self.retry.waits(), Duration::ZERO);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (last, asked) = match attempt(client, url, event, self.timeout).await {
                Attempt::Refused(why) => return Outcome::Refused { why, attempts },
                Attempt::Failed(failure) => (failure, None),
                Attempt::Answer { status, .. } if status.is_success() => {
                    return Outcome::Delivered { status: status.as_u16(), attempts };
                }
                Attempt::Answer { status, headers, body } if self.retry.retries(status) => {
                    (Failure::Status { status: status.as_u16(), body }, retry_after(&headers, clock.wall()))
                }
                Attempt::Answer { status, body, .. } => {
                    return Outcome::Refused { why: Refusal::Status { status: status.as_u16(), body }, attempts };
                }
            };
            let next = self.retry.next(&mut *waits, waited, clock.now().since(began));
            let Some(next) = next else { return Outcome::Exhausted { attempts, last } };
            waited = next;
            let wait = self.retry.wait(next, asked);
            tracing::debug!(url = shown(url), attempts, ?wait, "{last}: tried again");
            if let Some(counted) = counted {
                counted.retried();
            }
            sleep_until(&**clock, clock.now() + wait).await;
        }
    }
}
