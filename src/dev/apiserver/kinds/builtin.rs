//! The kinds that are there without a CRD.

use serde_json::{Map, Value, json};

use super::view::EVENT_FIELDS;
use super::{Column, Resource, Rules, View, columns, crd};
use crate::dev::apiserver::object::{child_mut, meta_str, object_mut};
use crate::dev::apiserver::schema::builtin;
use crate::dev::apiserver::store::Store;
use crate::dev::apiserver::validation::{self, names::NameRule};

/// The rules of most kinds.
pub(super) const PLAIN: Rules = Rules {
    create_on_update: false,
    unconditional_update: true,
    generation: false,
    returns_deleted: false,
    name: NameRule::Subdomain,
    prepare: |_, _| {},
    validate: validation::nothing,
};

/// A built-in kind as the table below writes it down.
struct Line {
    group: &'static str,
    definition: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    rules: Rules,
    columns: Vec<Column>,
}

fn resource(store: &mut Store, line: Line) -> Resource {
    Resource {
        group: line.group.into(),
        version: "v1".into(),
        kind: line.kind.into(),
        list_kind: format!("{}List", line.kind),
        plural: line.plural.into(),
        singular: line.kind.to_ascii_lowercase(),
        short_names: line.short.iter().map(|s| (*s).into()).collect(),
        categories: Vec::new(),
        namespaced: true,
        status: false,
        table: store.table_id(line.group, line.plural),
        rules: line.rules,
        schema: builtin::schema(line.definition).clone(),
        definition: line.definition.into(),
        custom: None,
        view: View::Stored,
        fields: Vec::new(),
        columns: line.columns,
    }
}

fn same(paths: &[&str]) -> Vec<(String, String)> {
    paths.iter().map(|p| ((*p).to_owned(), (*p).to_owned())).collect()
}

pub(super) fn all(store: &mut Store) -> Vec<Resource> {
    let mut make = |line: Line| resource(store, line);
    let core = |kind, plural, short, definition, rules, columns| Line {
        group: "",
        definition,
        kind,
        plural,
        short,
        rules,
        columns,
    };
    let lease =
        Rules { create_on_update: true, unconditional_update: false, validate: validation::lease::validate, ..PLAIN };
    let event = Rules { create_on_update: true, prepare: prepare_event, validate: validation::kinds::event, ..PLAIN };
    let namespace = Rules { returns_deleted: true, name: NameRule::Label, prepare: prepare_namespace, ..PLAIN };
    let secret = Rules { prepare: prepare_secret, validate: validation::kinds::secret, ..PLAIN };
    let events = make(core("Event", "events", &["ev"], "io.k8s.api.core.v1.Event", event, columns::event()));
    let mut event_fields = same(&["reason", "type"]);
    for part in ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"] {
        let stored = format!("involvedObject.{part}");
        event_fields.push((stored.clone(), stored.clone()));
        event_fields.push((format!("regarding.{part}"), stored));
    }
    for (shown, stored) in [
        ("reportingComponent", "reportingComponent"),
        ("reportingController", "reportingComponent"),
        ("source", "source.component"),
    ] {
        event_fields.push((shown.into(), stored.into()));
    }
    vec![
        Resource {
            group: "events.k8s.io".into(),
            schema: builtin::schema("io.k8s.api.events.v1.Event").clone(),
            definition: "io.k8s.api.events.v1.Event".into(),
            view: View::Events,
            fields: event_fields.clone(),
            ..events.clone()
        },
        Resource { fields: event_fields, ..events },
        make(Line {
            group: "coordination.k8s.io",
            definition: builtin::LEASE,
            kind: "Lease",
            plural: "leases",
            short: &[],
            rules: lease,
            columns: columns::lease(),
        }),
        make(core(
            "ConfigMap",
            "configmaps",
            &["cm"],
            "io.k8s.api.core.v1.ConfigMap",
            Rules { validate: validation::kinds::config_map, ..PLAIN },
            columns::config_map(),
        )),
        Resource {
            fields: same(&["type"]),
            ..make(core("Secret", "secrets", &[], "io.k8s.api.core.v1.Secret", secret, columns::secret()))
        },
        Resource {
            namespaced: false,
            status: true,
            fields: same(&["status.phase"]),
            ..make(core(
                "Namespace",
                "namespaces",
                &["ns"],
                "io.k8s.api.core.v1.Namespace",
                namespace,
                columns::namespace(),
            ))
        },
        Resource {
            status: true,
            fields: same(&[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            ]),
            categories: vec!["all".into()],
            ..make(core(
                "Pod",
                "pods",
                &["po"],
                "io.k8s.api.core.v1.Pod",
                Rules { returns_deleted: true, prepare: prepare_pod, validate: validation::kinds::pod, ..PLAIN },
                columns::pod(),
            ))
        },
        make(core(
            "ServiceAccount",
            "serviceaccounts",
            &["sa"],
            "io.k8s.api.core.v1.ServiceAccount",
            Rules { returns_deleted: true, ..PLAIN },
            columns::service_account(),
        )),
        Resource {
            namespaced: false,
            status: true,
            categories: vec!["api-extensions".into()],
            ..make(Line {
                group: crd::GROUP,
                definition: crd::DEFINITION,
                kind: "CustomResourceDefinition",
                plural: crd::PLURAL,
                short: &["crd", "crds"],
                rules: Rules {
                    unconditional_update: false,
                    generation: true,
                    prepare: crd::prepare,
                    validate: crd::validate,
                    ..PLAIN
                },
                columns: columns::crd(),
            })
        },
    ]
}

fn prepare_namespace(new: &mut Value, old: Option<&Value>) {
    let name = meta_str(new, "name").to_owned();
    let map = object_mut(new);
    if old.is_none() {
        map.insert("status".into(), json!({"phase": "Active"}));
        map.insert("spec".into(), json!({"finalizers": ["kubernetes"]}));
    } else if let Some(spec) = old.and_then(|o| o.get("spec")) {
        // Its finalizers have a path of their own.
        map.insert("spec".into(), spec.clone());
    }
    if !name.is_empty() {
        let labels = child_mut(child_mut(map, "metadata"), "labels");
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

fn prepare_pod(new: &mut Value, old: Option<&Value>) {
    let map = object_mut(new);
    if old.is_none() {
        map.insert("status".into(), json!({"phase": "Pending", "qosClass": "BestEffort"}));
    }
    let spec = child_mut(map, "spec");
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
    ] {
        spec.entry(key).or_insert(value);
    }
}

fn prepare_secret(new: &mut Value, _: Option<&Value>) {
    use base64::Engine;
    let map = object_mut(new);
    map.entry("type").or_insert_with(|| "Opaque".into());
    if let Some(Value::Object(texts)) = map.remove("stringData") {
        let data = child_mut(map, "data");
        for (key, text) in texts {
            let bytes = text.as_str().unwrap_or_default().as_bytes();
            data.insert(key, base64::engine::general_purpose::STANDARD.encode(bytes).into());
        }
    }
}

fn prepare_event(new: &mut Value, _: Option<&Value>) {
    let map = object_mut(new);
    // Go writes these structs whether or not they are set.
    for key in ["involvedObject", "source"] {
        map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    }
    debug_assert!(EVENT_FIELDS.iter().all(|(shown, _)| !map.contains_key(*shown)), "stored as core/v1");
}
