//! The kinds that are there without a CRD.

use super::{Resource, Rules};
use crate::dev::apiserver::store::Store;
use crate::dev::apiserver::validation::{self, names::NameRule};

/// The rules of most kinds.
const PLAIN: Rules = Rules {
    create_on_update: false,
    unconditional_update: true,
    generation: false,
    returns_deleted: false,
    name: NameRule::Subdomain,
    validate: validation::nothing,
};

pub(super) fn all(store: &mut Store) -> Vec<Resource> {
    let mut make = |group: &str, version: &str, kind: &str, plural: &str, short: &[&str], rules: Rules| Resource {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: plural.into(),
        singular: kind.to_ascii_lowercase(),
        short_names: short.iter().map(|s| (*s).into()).collect(),
        categories: Vec::new(),
        namespaced: true,
        status: false,
        table: store.table_id(group, plural),
        rules,
    };
    let lease =
        Rules { create_on_update: true, unconditional_update: false, validate: validation::lease::validate, ..PLAIN };
    vec![
        make("coordination.k8s.io", "v1", "Lease", "leases", &[], lease),
        make("", "v1", "ConfigMap", "configmaps", &["cm"], PLAIN),
        Resource {
            namespaced: false,
            status: true,
            ..make(
                "",
                "v1",
                "Namespace",
                "namespaces",
                &["ns"],
                Rules { returns_deleted: true, name: NameRule::Label, ..PLAIN },
            )
        },
        Resource { status: true, ..make("", "v1", "Pod", "pods", &["po"], Rules { returns_deleted: true, ..PLAIN }) },
        make("", "v1", "ServiceAccount", "serviceaccounts", &["sa"], Rules { returns_deleted: true, ..PLAIN }),
    ]
}
