//! Which resources are served now.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Resource, builtin};
use crate::dev::apiserver::store::Store;

/// The resources that are served now, by group, version and plural.
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

    /// Serves a resource, in place of one of the same group, version and plural.
    pub(crate) fn add(&mut self, resource: Resource) {
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    /// No longer serves the resources of a CRD.
    pub(crate) fn remove_custom(&mut self, group: &str, plural: &str) {
        self.resources.retain(|_, r| r.custom.is_none() || r.group != group || r.plural != plural);
    }

    /// No longer serves any CRD's resources.
    pub(crate) fn clear_custom(&mut self) {
        self.resources.retain(|_, r| r.custom.is_none());
    }

    /// The resource at a group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// A resource of a group and plural in any version.
    pub(crate) fn any(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.values().find(|r| r.group == group && r.plural == plural)
    }

    /// All resources, by group, version and plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }
}
