//! The kinds that are served, and by which rules.

mod builtin;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::status::FieldError;
use super::store::{Store, TableId};
use super::validation::names::NameRule;

/// Validates an object (and, for an update, what it was before) beyond its schema and metadata.
pub(crate) type Validate = fn(&Value, Option<&Value>) -> Vec<FieldError>;

/// How writes of a kind behave: what upstream calls its strategy.
#[derive(Debug, Clone, Copy)]
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
}

/// The resources that are served now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
}

impl Registry {
    /// The kinds that are always there.
    pub(crate) fn builtin(store: &mut Store) -> Self {
        let mut registry = Self::default();
        for resource in builtin::all(store) {
            registry.add(resource);
        }
        registry
    }

    fn add(&mut self, resource: Resource) {
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    /// The resource at a group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// All resources, by group, version and plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }
}
