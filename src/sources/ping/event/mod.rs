//! From a PingSource to the events it sends: a pure function of the source and a scheduled time.
//!
//! # Guarantees
//! - The event is the one that Knative's ping adapter (pkg/adapter/mtping, commit 8cf4c4b) makes: type, source, content
//!   type and data, attribute for attribute (test/vectors/ping-events.json, from running it).
//! - Its id is a function of the source (uid, namespace, name) and the scheduled time, and its time is that scheduled
//!   time, so that an event sent twice can be told from two events. (Knative's id is random, its time that of sending.)
//! - What would fail or falsify each send is refused when the source is read, all of it at once, with the field named:
//!   an unreadable schedule or zone, data that is not base64 (Knative sends the part before the fault), a content type
//!   that is none, an override that no event may carry.
//!
//! # Caveats
//! - Overrides are not in the event: the sink sets them on what it sends ([`Ping::overrides`]).
//! - Data is text or bytes as given, never parsed, so that a sink gets in binary mode what the source says to the byte.
//!   For the structured mode whoever encodes must look at the content type.

mod error;
mod id;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod vectors;

pub use error::{Invalid, Problem};

use std::time::SystemTime;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use cloudevents::{AttributesWriter as _, Data, Event};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cron::{CronError, Schedule};
use super::source::{PLURAL, PingSource, PingSourceSpec};
use crate::adapter::sink::{Overrides, media_type};
use id::Ids;

/// The type of the events.
pub const EVENT_TYPE: &str = "dev.knative.sources.ping";

/// Base64 as Go's `StdEncoding` reads it: padded, and lenient about the bits that padding leaves over.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// The attribute `source` of a PingSource's events.
pub fn source_attribute(namespace: &str, name: &str) -> String {
    format!("/apis/v1/namespaces/{namespace}/{PLURAL}/{name}")
}

/// A PingSource that has been checked: when it is due, and what it sends then.
#[derive(Debug, Clone)]
pub struct Ping {
    schedule: Schedule,
    ids: Ids,
    /// The event without its id and time.
    event: Event,
    overrides: Overrides,
}

impl Ping {
    /// Checks a source. `default_zone` is the time zone of a source that names none.
    ///
    /// `@every` counts from when the source was made (its `creationTimestamp`, else 1970), so that every replica has the
    /// same times.
    ///
    /// # Errors
    /// Everything that is wrong with the source.
    pub fn new(source: &PingSource, default_zone: TimeZone) -> Result<Self, Invalid> {
        let mut problems = Vec::new();
        if source.name().is_empty() {
            problems.push(Problem::Name);
        }
        let schedule = schedule(source, default_zone).map_err(|problem| problems.push(problem)).ok();
        let data = data(&source.spec).map_err(|problem| problems.push(problem)).ok();
        // Without data the content type is not sent, and not looked at.
        let content_type = match &data {
            Some(None) => None,
            _ => content_type(&source.spec).unwrap_or_else(|problem| {
                problems.push(problem);
                None
            }),
        };
        let extensions = source.spec.ce_overrides.as_ref().map(|overrides| &overrides.extensions);
        let overrides =
            extensions.map_or(Ok(Overrides::default()), Overrides::from_extensions).unwrap_or_else(|wrong| {
                problems.extend(wrong.into_iter().map(Problem::Override));
                Overrides::default()
            });
        let (Some(schedule), Some(data), true) = (schedule, data, problems.is_empty()) else {
            return Err(Invalid(problems));
        };

        let mut event = Event::default();
        event.set_type(EVENT_TYPE);
        event.set_source(source_attribute(source.namespace(), source.name()));
        event.set_time(None::<SystemTime>);
        event.set_datacontenttype(content_type);
        if let Some(data) = data {
            event.set_data_unchecked(data);
        }
        Ok(Self { schedule, ids: Ids::of(source), event, overrides })
    }

    /// When it is due.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The event scheduled at that time.
    pub fn event(&self, scheduled: Timestamp) -> Event {
        let mut event = self.event.clone();
        event.set_id(self.ids.at(scheduled));
        event.set_time(Some(SystemTime::from(scheduled)));
        event
    }

    /// The extensions to set on the event when it is sent, in place of any of the same names.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }
}

fn schedule(source: &PingSource, default_zone: TimeZone) -> Result<Schedule, Problem> {
    let PingSourceSpec { schedule, timezone, .. } = &source.spec;
    let made = source.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    match Schedule::parse_in(schedule, timezone, default_zone) {
        Ok(schedule) => Ok(schedule.anchored(made)),
        Err(reason @ (CronError::Zone { .. } | CronError::TwoZones { .. })) if !timezone.is_empty() => {
            Err(Problem::Timezone { timezone: timezone.clone(), reason })
        }
        Err(reason) => Err(Problem::Schedule { schedule: schedule.clone(), reason }),
    }
}

/// The data, if the source has any. Empty base64 is none; base64 of nothing is data of no length.
fn data(spec: &PingSourceSpec) -> Result<Option<Data>, Problem> {
    if !spec.data_base64.is_empty() {
        // Go skips line breaks wherever they stand.
        let text = spec.data_base64.replace(['\r', '\n'], "");
        return BASE64.decode(text).map(|bytes| Some(Data::Binary(bytes))).map_err(Problem::Base64);
    }
    Ok(Some(&spec.data).filter(|data| !data.is_empty()).map(|data| Data::String(data.clone())))
}

fn content_type(spec: &PingSourceSpec) -> Result<Option<String>, Problem> {
    match media_type::checked(&spec.content_type) {
        Ok(content_type) => Ok(content_type.map(str::to_owned)),
        Err(reason) => Err(Problem::ContentType { content_type: spec.content_type.clone(), reason }),
    }
}
