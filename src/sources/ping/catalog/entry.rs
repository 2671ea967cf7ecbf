//! One PingSource, ready to fire.

use crate::adapter::sink::{Retry, SinkError};
use crate::adapter::{Outcome, Sink};
use crate::leader::Guard;
use crate::sources::ping::event::{Invalid, Ping};
use crate::sources::ping::position::has_room_for;
use crate::sources::ping::source::PingSource;
use crate::sources::ping::ticker::Source;
use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::time::Duration;

/// An event is tried for so long at least, however little is caught up: a sink that is rolled out anew needs it.
const LEAST_TRYING: Duration = Duration::from_secs(30);
/// An attempt without an answer is given up after so long, where K_SINK_TIMEOUT says nothing: a tick must end.
const ATTEMPT: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Debug)]
pub(in crate::sources::ping) struct Entry {
    created: Option<Timestamp>,
    ping: Ping,
    sink: Sink,
}

/// Why a source does not fire.
#[derive(Debug, thiserror::Error)]
pub(in crate::sources::ping) enum NotFiring {
    /// It is being deleted, or its controller says that it is not ready.
    #[error("not ready: it does not fire until its condition Ready is True")]
    NotReady,
    #[error("it is being deleted")]
    Deleted,
    #[error(
        "spec.sink names an object, whose address a controller has to find, and status.sinkUri is empty: it fires once that \
         is set. Without such a controller name the address in spec.sink.uri"
    )]
    Unresolved,
    #[error("no sink: neither status.sinkUri nor spec.sink.uri nor K_SINK says where to send")]
    NoSink,
    #[error(
        "its namespace or name is none that Kubernetes allows: at most 63 and 253 of a to z, digits, dots and hyphens"
    )]
    Name,
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl NotFiring {
    pub(super) fn say(&self, source: &str) {
        match self {
            Self::NotReady | Self::Deleted => tracing::debug!(source, "{self}"),
            Self::Unresolved => tracing::warn!(source, "{self}"),
            _ => tracing::error!(source, why = %self, "the PingSource can't fire; the others do"),
        }
    }
}

impl Entry {
    pub(in crate::sources::ping) fn new(
        source: &PingSource,
        sink: &Sink,
        keep_trying: Duration,
    ) -> Result<Self, NotFiring> {
        if source.metadata.deletion_timestamp.is_some() {
            return Err(NotFiring::Deleted);
        }
        if source.ready() == Some(false) {
            return Err(NotFiring::NotReady);
        }
        if !has_room_for(&source.key()) {
            return Err(NotFiring::Name);
        }
        let ping = Ping::new(source, TimeZone::UTC)?;
        let mut sink = sink.with_namespace(source.namespace())?;
        // A source has its own overrides, or K_CE_OVERRIDES.
        if !ping.overrides().is_empty() {
            sink = sink.with_overrides(ping.overrides().clone())?;
        }
        match source.sink_uri() {
            Some(uri) => sink = sink.with_target(uri)?,
            // K_SINK is for those that name no sink at all.
            None if source.spec.sink.reference.is_some() => return Err(NotFiring::Unresolved),
            None if sink.target().is_none() => return Err(NotFiring::NoSink),
            None => {}
        }
        let patience = keep_trying.max(LEAST_TRYING);
        sink = sink.with_retry(Retry::default().lasting(patience).retry_after_max(patience));
        if sink.timeout().is_none() {
            sink = sink.with_timeout(Some(ATTEMPT));
        }
        let created = source.metadata.creation_timestamp.as_ref().map(|t| t.0);
        Ok(Self { created, ping, sink })
    }
}

impl Source for Entry {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.ping.schedule().next(after)
    }

    fn created(&self) -> Option<Timestamp> {
        self.created
    }

    fn fire<'a>(&'a self, guard: &'a Guard, at: Timestamp) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            match self.sink.send(guard, self.ping.event(at)).await {
                Outcome::Abandoned => false,
                // The sink has said so. A tick that nobody takes is given up, or nothing would ever come after it.
                Outcome::Delivered { .. } | Outcome::Refused { .. } | Outcome::Exhausted { .. } => true,
            }
        })
    }
}
