//! An event as an HTTP request in binary content mode (HTTP protocol binding for CloudEvents 1.0.2, section 3.1).
//!
//! cloudevents-sdk walks the event; the header values are encoded here, since it does not percent-encode them
//! (section 3.1.3.2) and prints times with more zeros than Go does.

use super::media_type::{self, ContentTypeError};
use super::overrides::check_name;
use bytes::Bytes;
use cloudevents::AttributesReader;
use cloudevents::Event;
use cloudevents::event::SpecVersion;
use cloudevents::message::{BinaryDeserializer, BinarySerializer, MessageAttributeValue};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What section 3.1.3.2 has encoded: the space, the double quote, the percent sign and all outside U+0021 to U+007E.
/// (`CONTROLS` holds U+0000 to U+001F and U+007F; what is not ASCII is always encoded.)
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// An event that no sink can be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EventError(String);

fn wrong(why: impl Into<String>) -> EventError {
    EventError(why.into())
}

/// The parts of the request that the event decides.
#[derive(Debug, Clone)]
pub(super) struct Encoded {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The value of an attribute as an HTTP header's.
pub(super) fn header_value(text: &str) -> HeaderValue {
    let ascii = utf8_percent_encode(text, ENCODED).to_string();
    // Only U+0021 to U+007E are left, all of which a header may hold.
    HeaderValue::from_maybe_shared(Bytes::from(ascii)).unwrap_or(HeaderValue::from_static(""))
}

/// Encodes `event`. `now` is the time of an event that has none, as Knative's client gives it one.
///
/// # Errors
/// What makes it no CloudEvent, or one that HTTP cannot carry. Sending it again would not help.
pub(super) fn encode(event: Event, now: jiff::Timestamp) -> Result<Encoded, EventError> {
    for (name, text) in [("id", event.id()), ("source", event.source().as_str()), ("type", event.ty())] {
        if text.is_empty() {
            return Err(wrong(format!("the event has no {name}: CloudEvents asks for one that is not empty")));
        }
    }
    let bad = event.iter_extensions().find_map(|(name, _)| check_name(name));
    if let Some(bad) = bad {
        return Err(wrong(format!("{bad} (CloudEvents 1.0.2, section 3)")));
    }
    let timeless = event.time().is_none();
    let parts = Parts { headers: HeaderMap::with_capacity(16) };
    let mut encoded = event.deserialize_binary(parts).map_err(|e| match e {
        cloudevents::message::Error::Other { source } => wrong(source.to_string()),
        e => wrong(e.to_string()),
    })?;
    if timeless {
        encoded.headers.insert(HeaderName::from_static("ce-time"), header_value(&now.to_string()));
    }
    if encoded.body.is_empty() {
        // hyper leaves it out; RFC 9110, section 8.6, asks for it, Go sends it, and some servers answer 411 without.
        encoded.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    Ok(encoded)
}

struct Parts {
    headers: HeaderMap,
}

impl Parts {
    fn set(&mut self, attribute: &str, value: &MessageAttributeValue) -> Result<(), cloudevents::message::Error> {
        let name = HeaderName::try_from(format!("ce-{}", attribute.to_ascii_lowercase())).map_err(other)?;
        self.headers.insert(name, header_value(&text(value)));
        Ok(())
    }
}

fn other(e: impl std::error::Error + Send + Sync + 'static) -> cloudevents::message::Error {
    cloudevents::message::Error::Other { source: Box::new(e) }
}

/// The canonical string of an attribute's value; times as Go prints them, with as many digits as they need.
fn text(value: &MessageAttributeValue) -> String {
    let MessageAttributeValue::DateTime(time) = value else { return value.to_string() };
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or(0);
    jiff::Timestamp::new(time.timestamp(), nanos).map_or_else(|_| value.to_string(), |t| t.to_string())
}

/// The header of a content type; none for an empty one. It is not percent-encoded (section 3.1.1).
fn content_type(value: &MessageAttributeValue) -> Result<Option<HeaderValue>, EventError> {
    let text = value.to_string();
    let no = |why: ContentTypeError| {
        wrong(format!("datacontenttype {text:?} is no media type, such as application/json: {why}"))
    };
    let Some(checked) = media_type::checked(&text).map_err(no)? else { return Ok(None) };
    HeaderValue::from_bytes(checked.as_bytes()).map(Some).map_err(|_| no(ContentTypeError::Character))
}

impl BinarySerializer<Encoded> for Parts {
    fn set_spec_version(mut self, version: SpecVersion) -> cloudevents::message::Result<Self> {
        self.set("specversion", &MessageAttributeValue::String(version.to_string()))?;
        Ok(self)
    }

    fn set_attribute(mut self, name: &str, value: MessageAttributeValue) -> cloudevents::message::Result<Self> {
        if name == "datacontenttype" {
            if let Some(value) = content_type(&value).map_err(other)? {
                self.headers.insert(CONTENT_TYPE, value);
            }
        } else {
            self.set(name, &value)?;
        }
        Ok(self)
    }

    fn set_extension(mut self, name: &str, value: MessageAttributeValue) -> cloudevents::message::Result<Self> {
        self.set(name, &value)?;
        Ok(self)
    }

    fn end_with_data(self, bytes: Vec<u8>) -> cloudevents::message::Result<Encoded> {
        Ok(Encoded { headers: self.headers, body: bytes.into() })
    }

    fn end(self) -> cloudevents::message::Result<Encoded> {
        Ok(Encoded { headers: self.headers, body: Bytes::new() })
    }
}
