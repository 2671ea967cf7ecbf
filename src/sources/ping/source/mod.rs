//! The PingSource resource, `sources.knative.dev/v1`, as Knative Eventing defines it.
//!
//! # Guarantees
//! - Field names and meanings are Knative's (pkg/apis/sources/v1), so objects move between it and this program as they
//!   are. `config/crd-pingsource.yaml` is the definition for clusters without Knative.
//! - Reading is lenient: a null counts as absent and unknown fields are ignored, since one object that fails to parse
//!   would fail a whole list. What is asked of the values is the business of [`Ping`](super::event::Ping).
//!
//! # Caveats
//! Unknown fields are not kept: write a status with a patch, never by putting back what was read here.

mod fields;
#[cfg(test)]
mod tests;

pub use fields::{
    AuthStatus, CloudEventAttributes, CloudEventOverrides, Condition, Destination, PingSourceSpec, PingSourceStatus,
    Reference,
};

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Serialize, Serializer};

use fields::null_as_default;

/// The API group.
pub const GROUP: &str = "sources.knative.dev";
/// The version of the API.
pub const VERSION: &str = "v1";
/// Group and version, as `apiVersion` has them.
pub const API_VERSION: &str = "sources.knative.dev/v1";
/// The kind.
pub const KIND: &str = "PingSource";
/// The kind as a path names it.
pub const PLURAL: &str = "pingsources";

/// A source that sends one fixed event on a schedule.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "AnyObject")]
pub struct PingSource {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// What its user asks for.
    pub spec: PingSourceSpec,
    /// What a controller made of it. In Knative that is the eventing controller, which finds the sink.
    pub status: Option<PingSourceStatus>,
}

impl PingSource {
    /// Its name; empty where it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its namespace; empty where it has none.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The key it is sharded by: `namespace/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace(), self.name())
    }

    /// The sink's address: what a controller found, else the URI of a spec that names no object.
    pub fn sink_uri(&self) -> Option<&str> {
        let found = self.status.as_ref().and_then(|status| status.sink_uri.as_deref());
        let given = self.spec.sink.uri.as_deref().filter(|_| self.spec.sink.reference.is_none());
        found.filter(|uri| !uri.is_empty()).or(given).filter(|uri| !uri.is_empty())
    }

    /// Whether the condition `Ready` is true; `None` where nobody has said.
    pub fn ready(&self) -> Option<bool> {
        let conditions = &self.status.as_ref()?.conditions;
        conditions.iter().find(|condition| condition.kind == "Ready").map(|ready| ready.status == "True")
    }
}

impl Resource for PingSource {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }
    fn api_version((): &()) -> Cow<'_, str> {
        API_VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// As it is read: an object that may say that it is something else.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnyObject {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    metadata: ObjectMeta,
    #[serde(deserialize_with = "null_as_default")]
    spec: PingSourceSpec,
    status: Option<PingSourceStatus>,
}

impl TryFrom<AnyObject> for PingSource {
    type Error = String;

    fn try_from(object: AnyObject) -> Result<Self, String> {
        let kind = object.kind.as_deref().unwrap_or(KIND);
        let api_version = object.api_version.as_deref().unwrap_or(API_VERSION);
        if (kind, api_version) != (KIND, API_VERSION) {
            return Err(format!("a {kind} of {api_version} where a {KIND} of {API_VERSION} is expected"));
        }
        Ok(Self { metadata: object.metadata, spec: object.spec, status: object.status })
    }
}

impl Serialize for PingSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed<'a> {
            api_version: &'a str,
            kind: &'a str,
            metadata: &'a ObjectMeta,
            spec: &'a PingSourceSpec,
            #[serde(skip_serializing_if = "Option::is_none")]
            status: &'a Option<PingSourceStatus>,
        }
        let Self { metadata, spec, status } = self;
        Typed { api_version: API_VERSION, kind: KIND, metadata, spec, status }.serialize(serializer)
    }
}
