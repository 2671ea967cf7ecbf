//! Extensions that an operator wants on each event (K_CE_OVERRIDES, `ceOverrides` of a source).
//!
//! # Guarantees
//! - Read as Go reads Knative's `CloudEventOverrides`: field names in either case, unknown ones ignored, a null is an
//!   empty value, half of a surrogate pair becomes U+FFFD (test/vectors/overrides.json, from running it).
//! - Names are put in lower case. An override with which every send would fail is refused when it is read: Knative
//!   starts, and then fails each send.

use cloudevents::Event;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The attributes of the specification, which an extension must not be named as (CloudEvents 1.0.2, section 3).
pub(super) const ATTRIBUTES: [&str; 8] =
    ["specversion", "id", "type", "source", "subject", "time", "datacontenttype", "dataschema"];

/// Extensions to set on each event just before it is sent; they replace those of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides(BTreeMap<String, String>);

/// An extension that cannot be set on an event: Knative fails each send with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// No name.
    #[error("the extension \"\" has no name")]
    Unnamed,
    /// A name that CloudEvents does not allow (1.0.2, section 3).
    #[error("the extension {0:?} has a name of more than the letters a to z, A to Z and digits")]
    Name(String),
    /// The name of an attribute of every event.
    #[error("the extension {0:?} has the name of an attribute of the specification")]
    Attribute(String),
    /// A value that no header can carry.
    #[error("the extension {name:?} has the control character {control:?} in its value")]
    Value {
        /// The name.
        name: String,
        /// The first such character.
        control: char,
    },
    /// Two that are one in lower case. (Which one Knative sends differs from event to event.)
    #[error("the extensions {first:?} and {second:?} are the same in lower case: keep one")]
    Twice {
        /// One name.
        first: String,
        /// The other.
        second: String,
    },
}

/// Overrides that would make every send fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverridesError {
    /// Not the JSON that it should be.
    #[error("{0}; it must be JSON such as {{\"extensions\":{{\"team\":\"blue\"}}}}, with strings for values")]
    Json(String),
    /// Extensions that cannot be sent; all of them.
    #[error("every event would be refused: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Extensions(Vec<ExtensionError>),
}

impl Overrides {
    /// Reads K_CE_OVERRIDES; an empty text has no overrides.
    ///
    /// # Errors
    /// [`OverridesError`].
    pub fn from_json(json: &str) -> Result<Self, OverridesError> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        let Fields(extensions) = serde_json::from_str(json).map_err(|e| OverridesError::Json(e.to_string()))?;
        Self::from_extensions(&extensions).map_err(OverridesError::Extensions)
    }

    /// The extensions given, by name.
    ///
    /// # Errors
    /// Every one that cannot be sent, in the order of the names.
    pub fn from_extensions(extensions: &BTreeMap<String, String>) -> Result<Self, Vec<ExtensionError>> {
        let (mut good, mut wrong) = (BTreeMap::new(), Vec::new());
        let mut taken: BTreeMap<String, &str> = BTreeMap::new();
        for (name, value) in extensions {
            let lower = name.to_ascii_lowercase();
            let why = check(name, value).or_else(|| {
                let first = taken.insert(lower.clone(), name)?.to_owned();
                Some(ExtensionError::Twice { first, second: name.clone() })
            });
            match why {
                None => drop(good.insert(lower, value.clone())),
                Some(why) => wrong.push(why),
            }
        }
        if wrong.is_empty() { Ok(Self(good)) } else { Err(wrong) }
    }

    /// The names in lower case with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets them on `event`.
    pub(super) fn apply(&self, event: &mut Event) {
        for (name, value) in self.iter() {
            set_extension(event, name, value);
        }
    }
}

/// Sets an extension whose name is in lower case, in place of one that differs from it in case only.
pub(super) fn set_extension(event: &mut Event, name: &str, value: &str) {
    let same = event.iter_extensions().map(|(n, _)| n).find(|n| *n != name && n.eq_ignore_ascii_case(name));
    if let Some(same) = same.map(ToOwned::to_owned) {
        event.remove_extension(&same);
    }
    event.set_extension(name, value);
}

/// What is wrong with the name of an extension.
pub(super) fn check_name(name: &str) -> Option<ExtensionError> {
    if name.is_empty() {
        return Some(ExtensionError::Unnamed);
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Some(ExtensionError::Name(name.to_owned()));
    }
    let attribute = ATTRIBUTES.iter().any(|a| a.eq_ignore_ascii_case(name));
    attribute.then(|| ExtensionError::Attribute(name.to_owned()))
}

/// What makes every send with this override fail: in Knative, so that a swap of the image changes nothing.
fn check(name: &str, value: &str) -> Option<ExtensionError> {
    check_name(name).or_else(|| {
        // What Go's net/http takes for no header value. A tab and U+0080 to U+009F it sends; so do we, percent-encoded.
        let control = value.chars().find(|c| c.is_ascii_control() && *c != '\t')?;
        Some(ExtensionError::Value { name: name.to_owned(), control })
    })
}

/// `CloudEventOverrides` of knative.dev/pkg/apis/duck/v1.
struct Fields(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct TopLevel;
        impl<'de> Visitor<'de> for TopLevel {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_unit<E>(self) -> Result<Fields, E> {
                Ok(Fields(BTreeMap::new()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut all = BTreeMap::new();
                while let Some(Text(field)) = map.next_key()? {
                    if is_extensions(&field) {
                        map.next_value_seed(Extensions(&mut all))?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Fields(all))
            }
        }
        d.deserialize_any(TopLevel)
    }
}

/// Go matches field names by Unicode simple folding, in which the long s is an s.
fn is_extensions(field: &str) -> bool {
    field.chars().map(|c| if c == 'ſ' { 's' } else { c.to_ascii_lowercase() }).eq("extensions".chars())
}

/// A later object adds to an earlier one; a null takes back what was there.
struct Extensions<'a>(&'a mut BTreeMap<String, String>);

impl<'de> DeserializeSeed<'de> for Extensions<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Extensions<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings in \"extensions\"")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.clear();
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(name)) = map.next_key()? {
            let value = map.next_value::<Option<Text>>()?;
            self.0.insert(name, value.map_or_else(String::new, |Text(value)| value));
        }
        Ok(())
    }
}

/// A JSON string as Go decodes it. serde_json gives half a surrogate pair only to who asks for bytes.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Text, E> {
                Ok(Text(lossy(bytes)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
        }
        d.deserialize_bytes(Bytes)
    }
}

/// Each half of a surrogate pair (three bytes, ED A0 80 to ED BF BF) becomes one U+FFFD, as in Go.
fn lossy(bytes: &[u8]) -> String {
    let mut whole = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, more)) = rest.split_first() {
        if let [0xED, 0xA0..=0xBF, _, ..] = rest {
            whole.extend_from_slice("\u{fffd}".as_bytes());
            rest = &rest[3..];
        } else {
            whole.push(*first);
            rest = more;
        }
    }
    String::from_utf8_lossy(&whole).into_owned()
}
