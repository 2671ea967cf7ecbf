//! CustomResourceDefinitions, and the resources that they bring.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::builtin::PLAIN;
use super::columns::{self, Cell, Column};
use super::jsonpath::JsonPath;
use super::{Resource, Rules, View};
use crate::dev::apiserver::object::{child_mut, meta_str, object_mut};
use crate::dev::apiserver::schema::{self, structural};
use crate::dev::apiserver::status::FieldError;
use crate::dev::apiserver::store::Store;
use crate::dev::apiserver::validation::names as formats;

/// The group of CRDs.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
/// Their plural.
pub(crate) const PLURAL: &str = "customresourcedefinitions";
/// Their OpenAPI definition.
pub(crate) const DEFINITION: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

/// Groups that belong to this server.
const TAKEN: [&str; 4] = ["", "coordination.k8s.io", "events.k8s.io", GROUP];

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Fills in the names that follow from others, and the status: a kind is served as soon as it is defined.
pub(crate) fn prepare(new: &mut Value, old: Option<&Value>) {
    let since = match old {
        Some(old) => text(old, "/status/conditions/0/lastTransitionTime").to_owned(),
        None => meta_str(new, "creationTimestamp").to_owned(),
    };
    let storage: Vec<Value> =
        versions(new).iter().filter(|v| flag(v, "storage")).filter_map(|v| v.get("name")).cloned().collect();
    let map = object_mut(new);
    let spec = child_mut(map, "spec");
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    let names = child_mut(spec, "names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (key, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
            names.insert(key.into(), value.into());
        }
    }
    let accepted = names.clone();
    let status = child_mut(map, "status");
    status.insert("acceptedNames".into(), Value::Object(accepted));
    if !status.contains_key("conditions") {
        let condition = |ty: &str, reason: &str, message: &str| json!({"type": ty, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since});
        status.insert(
            "conditions".into(),
            json!([
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ]),
        );
    }
    if let Value::Array(stored) = status.entry("storedVersions").or_insert_with(|| json!([])) {
        for version in storage {
            if !stored.contains(&version) {
                stored.push(version);
            }
        }
    }
}

/// Checks a CRD.
pub(crate) fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let (group, plural) = (text(new, "/spec/group"), text(new, "/spec/names/plural"));
    let name = meta_str(new, "name");
    if name != format!("{plural}.{group}") {
        let msg = "must be spec.names.plural+\".\"+spec.group";
        out.push(FieldError::invalid("metadata.name", &name.into(), msg));
    }
    if group.is_empty() {
        out.push(FieldError::required("spec.group", ""));
    } else if !group.contains('.') {
        out.push(FieldError::invalid("spec.group", &group.into(), "should be a domain with at least one dot"));
    } else if TAKEN.contains(&group) {
        out.push(FieldError::invalid("spec.group", &group.into(), "is served by this server itself"));
    }
    for msg in formats::subdomain(group).into_iter().filter(|_| !group.is_empty()) {
        out.push(FieldError::invalid("spec.group", &group.into(), &msg));
    }
    for key in ["plural", "singular", "kind", "listKind"] {
        let value = text(new, &format!("/spec/names/{key}"));
        let field = format!("spec.names.{key}");
        if value.is_empty() {
            out.push(FieldError::required(field, ""));
        } else {
            for msg in formats::label(&value.to_lowercase()) {
                out.push(FieldError::invalid(&*field, &value.into(), &msg));
            }
        }
    }
    let scope = text(new, "/spec/scope");
    if scope.is_empty() {
        out.push(FieldError::required("spec.scope", ""));
    } else if !matches!(scope, "Namespaced" | "Cluster") {
        let known = ["\"Cluster\"", "\"Namespaced\""].map(str::to_owned);
        out.push(FieldError::unsupported("spec.scope", &scope.into(), &known));
    }
    if text(new, "/spec/conversion/strategy") == "Webhook" {
        let known = ["\"None\"".to_owned()];
        out.push(FieldError::unsupported("spec.conversion.strategy", &"Webhook".into(), &known));
    }
    let all = versions(new);
    if all.iter().filter(|v| flag(v, "storage")).count() != 1 {
        let shown = Value::Array(all.iter().filter_map(|v| v.get("name")).cloned().collect());
        let msg = "must have exactly one version marked as storage version";
        out.push(FieldError::invalid("spec.versions", &shown, msg));
    }
    let mut seen = Vec::new();
    for (i, version) in all.iter().enumerate() {
        one_version(version, &format!("spec.versions[{i}]"), &mut seen, &mut out);
    }
    if let Some(old) = old {
        for field in ["/spec/group", "/spec/names/plural", "/spec/names/kind", "/spec/scope"] {
            if new.pointer(field) != old.pointer(field) {
                let path = field.trim_start_matches('/').replace('/', ".");
                out.push(FieldError::invalid(path, &text(new, field).into(), "field is immutable"));
            }
        }
    }
    out
}

fn one_version(version: &Value, at: &str, seen: &mut Vec<String>, out: &mut Vec<FieldError>) {
    let name = text(version, "/name").to_owned();
    for msg in formats::label(&name) {
        out.push(FieldError::invalid(format!("{at}.name"), &name.as_str().into(), &msg));
    }
    if seen.contains(&name) {
        out.push(FieldError::invalid(format!("{at}.name"), &name.as_str().into(), "must contain unique version names"));
    }
    seen.push(name);
    let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
    structural::check(schema, &format!("{at}.schema.openAPIV3Schema"), out);
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    for (i, column) in columns.into_iter().flatten().enumerate() {
        let field = format!("{at}.additionalPrinterColumns[{i}]");
        if text(column, "/name").is_empty() {
            out.push(FieldError::required(format!("{field}.name"), ""));
        }
        if JsonPath::parse(text(column, "/jsonPath")).is_none() {
            let given = text(column, "/jsonPath").into();
            out.push(FieldError::invalid(format!("{field}.jsonPath"), &given, "is invalid: cannot be read"));
        }
        let ty = text(column, "/type");
        if !["integer", "number", "string", "boolean", "date"].contains(&ty) {
            let known = ["boolean", "date", "integer", "number", "string"].map(|t| format!("{t:?}"));
            out.push(FieldError::unsupported(format!("{field}.type"), &ty.into(), &known));
        }
    }
}

/// The group and the plural of the kind that a CRD defines.
pub(crate) fn names(crd: &Value) -> (&str, &str) {
    (text(crd, "/spec/group"), text(crd, "/spec/names/plural"))
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The resources that a CRD, which has been judged, brings: one for each version that is served.
pub(crate) fn resources(crd: &Value, store: &mut Store) -> Vec<Resource> {
    let name = |key: &str| text(crd, &format!("/spec/names/{key}")).to_owned();
    let group = text(crd, "/spec/group").to_owned();
    let stored = versions(crd).iter().find(|v| flag(v, "storage")).map_or("", |v| text(v, "/name"));
    let table = store.table_id(&group, &name("plural"));
    let mut out = Vec::new();
    for version in versions(crd).iter().filter(|v| flag(v, "served")) {
        let v = text(version, "/name").to_owned();
        let open = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(|| json!({}));
        let fields = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
        let fields = fields
            .map(|f| text(f, "/jsonPath").trim_start_matches('.').to_owned())
            .filter(|f| !f.is_empty())
            .map(|f| (f.clone(), f))
            .collect();
        let reversed: Vec<&str> = group.rsplit('.').collect();
        out.push(Resource {
            definition: format!("{}.{v}.{}", reversed.join("."), name("kind")),
            kind: name("kind"),
            list_kind: name("listKind"),
            plural: name("plural"),
            singular: name("singular"),
            short_names: strings(crd.pointer("/spec/names/shortNames")),
            categories: strings(crd.pointer("/spec/names/categories")),
            namespaced: text(crd, "/spec/scope") == "Namespaced",
            status: version.pointer("/subresources/status").is_some(),
            table,
            rules: Rules { unconditional_update: false, generation: true, ..PLAIN },
            schema: schema::parse(&open, &Map::new()),
            custom: Some(Arc::new(open)),
            view: if v == stored {
                View::Stored
            } else {
                View::Version { shown: format!("{group}/{v}"), stored: format!("{group}/{stored}") }
            },
            fields,
            columns: printer_columns(version),
            group: group.clone(),
            version: v,
        });
    }
    out
}

fn printer_columns(version: &Value) -> Vec<Column> {
    let given = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let Some(given) = given.filter(|g| !g.is_empty()) else { return columns::plain() };
    let mut out: Vec<Column> = columns::plain().into_iter().take(1).collect();
    for column in given {
        let Some(path) = JsonPath::parse(text(column, "/jsonPath")) else { continue };
        out.push(Column {
            name: text(column, "/name").to_owned(),
            ty: text(column, "/type").to_owned(),
            format: text(column, "/format").to_owned(),
            description: text(column, "/description").to_owned(),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            cell: if text(column, "/type") == "date" { Cell::SincePath(path) } else { Cell::Path(path) },
        });
    }
    out
}
