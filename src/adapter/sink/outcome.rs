//! How a delivery ended.

use super::encode::EventError;
use std::fmt;

/// How the delivery of one event ended.
#[derive(Debug)]
#[must_use = "an event that was not delivered is lost unless its source keeps it"]
#[non_exhaustive]
pub enum Outcome {
    /// The sink took it: an answer of 2xx.
    Delivered {
        /// The answer's status.
        status: u16,
        /// How many times it was sent.
        attempts: u32,
    },
    /// Refused for good: sending it again would end the same way.
    Refused {
        /// Why.
        why: Refusal,
        /// How many times it was sent.
        attempts: u32,
    },
    /// The term ended first. Not an error to log: the next holder of the bucket sends it, under the same id.
    Abandoned,
    /// The retries are used up.
    Exhausted {
        /// How many times it was sent.
        attempts: u32,
        /// What came of the last attempt.
        last: Failure,
    },
}

impl Outcome {
    /// Whether the sink has it.
    pub fn is_delivered(&self) -> bool {
        matches!(self, Self::Delivered { .. })
    }

    /// Whether nothing remains to be done about the event: it was delivered, or refused for good. A checkpoint may pass it.
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Delivered { .. } | Self::Refused { .. })
    }

    /// The status of the last answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Delivered { status, .. } => Some(*status),
            Self::Refused { why, .. } => why.status(),
            Self::Exhausted { last: Failure::Status { status, .. }, .. } => Some(*status),
            Self::Exhausted { .. } | Self::Abandoned => None,
        }
    }

    /// The name in metrics and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Delivered { .. } => "delivered",
            Self::Refused { .. } => "refused",
            Self::Abandoned => "abandoned",
            Self::Exhausted { .. } => "exhausted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered { status, attempts } => write!(f, "delivered with {status} at attempt {attempts}"),
            Self::Refused { why, .. } => write!(f, "refused for good: {why}"),
            Self::Abandoned => f.write_str("abandoned: the term ended; the next holder of the bucket sends it"),
            Self::Exhausted { attempts, last } => write!(f, "not delivered after {attempts} attempt(s): {last}"),
        }
    }
}

/// Why an event will never be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// An answer that is not retried.
    #[error("the sink answered {status}{}", said(.body))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the answer's body.
        body: String,
    },
    /// A redirect that is not followed: 307 and 308 are, others would make a GET without body of it.
    #[error(
        "the sink answered {status}, a redirect to {location:?}, {why}: name that place as the sink if it is the right one"
    )]
    Redirect {
        /// The status.
        status: u16,
        /// The place that was named.
        location: String,
        /// Why it is not followed.
        why: &'static str,
    },
    /// The answer has no status between 100 and 999.
    #[error("the sink's answer has a status that HTTP does not know")]
    NoStatus,
    /// The certificate is another host's.
    #[error("the sink's certificate is not for its name: {0}")]
    TlsName(String),
    /// The URL can't be asked with what this program was built with.
    #[error("the sink's URL can't be used: {0}")]
    Url(String),
    /// There is neither K_SINK nor a sink for this event.
    #[error("there is no sink: set K_SINK, or name a sink for the event")]
    NoSink,
    /// Not an event that HTTP can carry.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl Refusal {
    /// The status of the answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } | Self::Redirect { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// What came of an attempt that is worth another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// An answer that is retried.
    #[error("the sink answered {status}{}", said(.body))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the answer's body.
        body: String,
    },
    /// No answer in time.
    #[error("no answer within {0:?} (K_SINK_TIMEOUT)")]
    Timeout(std::time::Duration),
    /// The network, TLS or HTTP failed.
    #[error("{0}")]
    Network(String),
    /// More than ten redirects, one after the other.
    #[error("stopped after 10 redirects, the last to {0}")]
    Redirects(String),
}

fn said(body: &str) -> String {
    if body.trim().is_empty() { String::new() } else { format!(": {:?}", body.trim()) }
}
