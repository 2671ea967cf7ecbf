//! The kinds that are served, and by which rules.

mod builtin;
mod columns;
pub(crate) mod crd;
mod jsonpath;
mod registry;
mod view;

use std::sync::Arc;

use serde_json::Value;

use super::schema::Schema;
use super::status::FieldError;
use super::store::TableId;
use super::validation::names::NameRule;
pub(crate) use columns::{Cell, Column};
pub(crate) use registry::Registry;
pub(crate) use view::View;

/// Validates an object (and, for an update, what it was before) beyond its schema and metadata.
pub(crate) type Validate = fn(&Value, Option<&Value>) -> Vec<FieldError>;

/// Fills in what a kind has by default, in a new object or (given the old one) in a new version of it.
pub(crate) type Prepare = fn(&mut Value, Option<&Value>);

/// How writes of a kind behave: what upstream calls its strategy.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own, by upstream's name")]
pub(crate) struct Rules {
    /// A PUT of what is not there makes it (`AllowCreateOnUpdate`).
    pub(crate) create_on_update: bool,
    /// A PUT may leave out the resourceVersion (`AllowUnconditionalUpdate`).
    pub(crate) unconditional_update: bool,
    /// `metadata.generation` counts the changes of what is neither metadata nor status.
    pub(crate) generation: bool,
    /// A delete is answered with the object instead of a Status.
    pub(crate) returns_deleted: bool,
    /// What a name may look like.
    pub(crate) name: NameRule,
    /// The kind's defaults.
    pub(crate) prepare: Prepare,
    /// The kind's own checks.
    pub(crate) validate: Validate,
}

/// One served resource: a kind in one version.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Whether `status` is a path of its own.
    pub(crate) status: bool,
    pub(crate) table: TableId,
    pub(crate) rules: Rules,
    pub(crate) schema: Arc<Schema>,
    /// The name of its OpenAPI definition.
    pub(crate) definition: String,
    /// The definition itself, for a kind of a CRD.
    pub(crate) custom: Option<Arc<Value>>,
    /// How it differs from the form in which its objects are stored.
    pub(crate) view: View,
    /// The fields beside name and namespace that a field selector may name, each with its path in the stored form.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) columns: Vec<Column>,
}

impl Resource {
    /// `GROUP/VERSION`, or `VERSION` in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `leases.coordination.k8s.io`, or `configmaps` in the core group.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// An object as this resource shows it.
    pub(crate) fn show(&self, stored: &Value) -> Value {
        self.view.show(stored)
    }

    /// The path in the stored form that a field selector's path means; none where it may not be selected by.
    pub(crate) fn selectable(&self, path: &str) -> Option<&str> {
        match path {
            "metadata.name" => Some("metadata.name"),
            "metadata.namespace" if self.namespaced => Some("metadata.namespace"),
            _ => self.fields.iter().find(|(shown, _)| shown == path).map(|(_, stored)| stored.as_str()),
        }
    }
}
