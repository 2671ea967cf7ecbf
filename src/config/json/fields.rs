//! The fields of a ComponentConfig, filled as Go fills them.

use super::scan::{Event, Kind, scan};
use super::text::unescape;
use super::{Decoded, JsonError};
use crate::config::component::ComponentConfig;
use crate::config::keys;

/// Decodes the JSON of a ComponentConfig.
pub(in super::super) fn decode(json: &str) -> Result<Decoded, JsonError> {
    let mut filler = Filler::default();
    scan(json, |event| filler.meet(event))?;
    match filler.error {
        Some(error) => Err(error),
        None => Ok(Decoded { config: filler.config, unknown: filler.unknown }),
    }
}

/// A field, by its place in [`keys::JSON_FIELDS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Component,
    Buckets,
    LeaseDuration,
    RenewDeadline,
    RetryPeriod,
    Identity,
    Mapping,
}

impl Field {
    const ALL: [Self; 7] = [
        Self::Component,
        Self::Buckets,
        Self::LeaseDuration,
        Self::RenewDeadline,
        Self::RetryPeriod,
        Self::Identity,
        Self::Mapping,
    ];

    fn named(name: &str) -> Option<Self> {
        let name = fold(name);
        let index = keys::JSON_FIELDS.iter().position(|field| field.to_ascii_lowercase() == name)?;
        Self::ALL.get(index).copied()
    }

    fn name(self) -> &'static str {
        keys::JSON_FIELDS[self as usize]
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Component | Self::Identity => "string",
            Self::Buckets => "uint32",
            Self::LeaseDuration | Self::RenewDeadline | Self::RetryPeriod => "time.Duration",
            Self::Mapping => "map[string]string",
        }
    }
}

/// Upper and lower case alike, as far as it can matter for names of ASCII letters: two characters outside of ASCII
/// fold to one inside, the Kelvin sign and the long s.
fn fold(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '\u{212a}' => 'k',
            '\u{17f}' => 's',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

#[derive(Default)]
struct Filler {
    config: ComponentConfig,
    unknown: Vec<String>,
    /// The first field of a wrong type. Told only when the syntax is right to the end.
    error: Option<JsonError>,
    /// Whether the whole is an object.
    object: bool,
    /// The field whose value comes or is being read.
    field: Option<Field>,
    /// The member of the mapping whose value comes.
    member: Option<String>,
}

impl Filler {
    fn meet(&mut self, event: Event<'_>) {
        match event {
            Event::Value { kind, depth: 0, .. } => match kind {
                Kind::Object => self.object = true,
                Kind::Null => {}
                other => self.wrong(JsonError::NotAnObject { found: other.word() }),
            },
            Event::Key { raw, depth: 1 } if self.object => {
                let name = unescape(raw);
                self.field = Field::named(&name);
                if self.field.is_none() {
                    self.unknown.push(name);
                }
            }
            Event::Value { kind, raw, depth: 1 } if self.object => self.fill(kind, raw),
            Event::End { depth: 1 } => self.field = None,
            // The mapping's members. An array's elements have no key before them.
            Event::Key { raw, depth: 2 } if self.field == Some(Field::Mapping) => self.member = Some(unescape(raw)),
            Event::Value { kind, raw, depth: 2 } if self.field == Some(Field::Mapping) => self.map(kind, raw),
            Event::Key { .. } | Event::Value { .. } | Event::End { .. } => {}
        }
    }

    /// A value for the field whose name came before.
    fn fill(&mut self, kind: Kind, raw: &str) {
        let Some(field) = self.field else { return };
        let config = &mut self.config;
        let filled = match (field, kind) {
            (Field::Mapping, Kind::Null) => {
                config.lease_names_prefix_mapping = None;
                true
            }
            (Field::Mapping, Kind::Object) => {
                config.lease_names_prefix_mapping.get_or_insert_default();
                true
            }
            (_, Kind::Null) => true,
            (Field::Component, Kind::String) => set(&mut config.component, Some(unescape(raw))),
            (Field::Identity, Kind::String) => set(&mut config.identity, Some(unescape(raw))),
            (Field::Buckets, Kind::Number) => set(&mut config.buckets, digits(raw).and_then(|raw| raw.parse().ok())),
            (Field::LeaseDuration, Kind::Number) => set(&mut config.lease_duration, integer(raw)),
            (Field::RenewDeadline, Kind::Number) => set(&mut config.renew_deadline, integer(raw)),
            (Field::RetryPeriod, Kind::Number) => set(&mut config.retry_period, integer(raw)),
            _ => false,
        };
        if !filled {
            let numeric =
                matches!(field, Field::Buckets | Field::LeaseDuration | Field::RenewDeadline | Field::RetryPeriod);
            // Only where some number would do does Go say which one did not.
            let found = match kind {
                Kind::Number if numeric => format!("number {raw}"),
                kind => kind.word().to_owned(),
            };
            self.wrong(JsonError::Field { found, field: field.name().to_owned(), wanted: field.wanted() });
            self.field = None;
        }
    }

    /// A value for the member of the mapping whose name came before.
    fn map(&mut self, kind: Kind, raw: &str) {
        let Some(member) = self.member.take() else { return };
        let to = match kind {
            Kind::String => unescape(raw),
            Kind::Null => String::new(),
            other => {
                return self.wrong(JsonError::Field {
                    found: other.word().to_owned(),
                    field: format!("{}.{member}", Field::Mapping.name()),
                    wanted: "string",
                });
            }
        };
        self.config.lease_names_prefix_mapping.get_or_insert_default().insert(member, to);
    }

    fn wrong(&mut self, error: JsonError) {
        self.error.get_or_insert(error);
    }
}

fn set<T>(into: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            *into = value;
            true
        }
        None => false,
    }
}

/// Go's ParseUint takes digits and nothing else.
fn digits(raw: &str) -> Option<&str> {
    raw.bytes().all(|b| b.is_ascii_digit()).then_some(raw)
}

/// Go's ParseInt: a sign and digits.
fn integer(raw: &str) -> Option<i64> {
    digits(raw.strip_prefix('-').unwrap_or(raw)).and_then(|_| raw.parse().ok())
}
