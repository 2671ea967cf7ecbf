//! The fields of a PingSource's spec and status.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// What a user asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PingSourceSpec {
    /// When: a cron schedule ([`Schedule`](crate::sources::ping::cron::Schedule)).
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// The time zone of the schedule, by its IANA name; empty for the adapter's own.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub timezone: String,
    /// The media type of the data. Without data it is not sent.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// The event's data, as text; empty for none.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// The event's data in base64; wins over `data`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub data_base64: String,
    /// Where to.
    #[serde(deserialize_with = "null_as_default")]
    pub sink: Destination,
    /// Extensions to set on each event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_overrides: Option<CloudEventOverrides>,
}

/// Where events go: an object that has an address, a URI, or a URI relative to the object's (Knative's
/// `duck/v1.Destination`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// The object.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// The URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Certificates, in PEM, of the authorities that the sink's certificate may come from.
    #[serde(rename = "CACerts", skip_serializing_if = "Option::is_none")]
    pub ca_certs: Option<String>,
    /// The audience of the sink for OIDC tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// An object that has an address (Knative's `duck/v1.KReference`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    /// Its API version.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its name.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace; empty for that of the source.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Extensions to set on each event (Knative's `duck/v1.CloudEventOverrides`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloudEventOverrides {
    /// Names and values, as written: unchecked.
    #[serde(deserialize_with = "null_values_as_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, String>,
}

/// What a controller made of a source (Knative's `duck/v1.SourceStatus`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PingSourceStatus {
    /// The generation of the spec that this speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions; `Ready` sums them up.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Further notes of the controller.
    #[serde(deserialize_with = "null_values_as_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The sink's address, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink_uri: Option<String>,
    /// Certificates, in PEM, of the authorities that the sink's certificate may come from.
    #[serde(rename = "sinkCACerts", skip_serializing_if = "Option::is_none")]
    pub sink_ca_certs: Option<String>,
    /// The audience of the sink for OIDC tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink_audience: Option<String>,
    /// Types and sources of the events to expect.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub ce_attributes: Vec<CloudEventAttributes>,
    /// Who sends, towards a sink that asks for OIDC tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthStatus>,
}

/// A condition (Knative's `apis.Condition`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Its name.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "null_as_default")]
    pub status: String,
    /// `Warning`, `Info`, or nothing for an error.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// When the status last changed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// A word for programs.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Attributes that a source gives to its events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloudEventAttributes {
    /// The attribute `type`.
    #[serde(rename = "type", deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub ty: String,
    /// The attribute `source`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// Service accounts for OIDC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthStatus {
    /// The account that sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The accounts of a source that sends under several.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub service_account_names: Vec<String>,
}

/// A null is the same as nothing.
pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// A null is no map, and a null in it the empty text, as in Go.
fn null_values_as_empty<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map = Option::<BTreeMap<String, Option<String>>>::deserialize(from)?.unwrap_or_default();
    Ok(map.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect())
}
