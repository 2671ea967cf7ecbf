//! Why there is no sink, and why a sending of many stopped.

use super::Failure;

/// Why there can be no sink.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// Not a URL to which an event can be sent.
    #[error("sink {url:?}: {rule}")]
    Url {
        /// What was given.
        url: String,
        /// Its rule.
        rule: String,
    },
    /// Not a namespace.
    #[error("namespace {0:?} can't stand in the header Kn-Namespace")]
    Namespace(String),
    /// An override has the name of a fencing extension.
    #[error(
        "the override {0:?} would be replaced by the fencing extension of that name: rename it, or set LEASEHOLD_FENCING to false"
    )]
    Fencing(&'static str),
    /// The program was built with rustls and installed no crypto provider.
    #[error(
        "no rustls crypto provider is installed: call rustls::crypto::ring::default_provider().install_default() first in main"
    )]
    NoCryptoProvider,
    /// The HTTP client does not come up.
    #[error("the HTTP client for events can't be set up: {0}")]
    Client(#[source] reqwest::Error),
}

/// What [`Sink::send_all`](super::Sink::send_all) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Events that the sink took.
    pub delivered: usize,
    /// Events refused for good; each was logged.
    pub refused: usize,
}

impl Sent {
    /// Events about which nothing remains to be done.
    pub fn settled(self) -> usize {
        self.delivered + self.refused
    }
}

/// Why [`Sink::send_all`](super::Sink::send_all) stopped early. A checkpoint must not pass the event at which it did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendAllError {
    /// The term ended: the next holder goes on.
    #[error("the term ended after {} of the events; the next holder goes on", .0.settled())]
    Abandoned(Sent),
    /// The sink does not take what it should.
    #[error("event {} was not delivered after {attempts} attempt(s): {last}", .sent.settled() + 1)]
    Exhausted {
        /// What was done before.
        sent: Sent,
        /// How often it was tried.
        attempts: u32,
        /// What came of the last attempt.
        last: Failure,
    },
}
