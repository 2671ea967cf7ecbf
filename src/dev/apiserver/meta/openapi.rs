//! OpenAPI v3: one document per group and version, made of the schemas that requests are judged by.
//!
//! kubectl reads from them whether a server validates fields, how lists are merged, and what `explain` explains.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::dev::apiserver::kinds::{Registry, Resource};
use crate::dev::apiserver::schema::builtin::DEFINITIONS;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The list of documents.
pub(super) fn root(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for r in registry.all() {
        let path =
            if r.group.is_empty() { format!("api/{}", r.version) } else { format!("apis/{}/{}", r.group, r.version) };
        if paths.contains_key(&path) {
            continue;
        }
        // Clients keep a document under its URL for good, so the URL changes with the content.
        let document = document(registry, &r.group, &r.version).unwrap_or_default();
        let hash = crc32fast::hash(document.to_string().as_bytes());
        let url = format!("/openapi/v3/{path}?hash={hash:08X}");
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// The document of one group and version; none where nothing is served there.
pub(super) fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    let mut needed = BTreeSet::new();
    for r in registry.all().filter(|r| r.group == group && r.version == version) {
        for (path, item) in operations(r) {
            paths.insert(path, item);
        }
        schemas.insert(r.definition.clone(), definition(r));
        schemas.insert(format!("{}List", r.definition), list_definition(r));
        references(&schemas[&r.definition], &mut needed);
    }
    if paths.is_empty() {
        return None;
    }
    for name in ["DeleteOptions", "ListMeta", "Patch", "Status", "ObjectMeta"] {
        needed.insert(format!("{META}.{name}"));
    }
    while let Some(name) = needed.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(found) = DEFINITIONS.get(&name) else { continue };
        let published = published(found);
        references(&published, &mut needed);
        schemas.insert(name, published);
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn gvk(r: &Resource, kind: &str) -> Value {
    json!({"group": r.group, "version": r.version, "kind": kind})
}

fn definition(r: &Resource) -> Value {
    let mut schema = match &r.custom {
        Some(open) => {
            let mut schema = (**open).clone();
            if let Some(properties) = schema
                .as_object_mut()
                .map(|m| m.entry("properties").or_insert_with(|| json!({})))
                .and_then(Value::as_object_mut)
            {
                properties.insert(
                    "apiVersion".into(),
                    json!({"type": "string", "description": "The API version of this object."}),
                );
                properties.insert("kind".into(), json!({"type": "string", "description": "The kind of this object."}));
                properties.insert(
                    "metadata".into(),
                    json!({"allOf": [{"$ref": reference(&format!("{META}.ObjectMeta"))}], "description": "Standard metadata."}),
                );
            }
            schema
        }
        None => DEFINITIONS.get(&r.definition).map(published).unwrap_or_default(),
    };
    if let Some(map) = schema.as_object_mut() {
        map.insert("x-kubernetes-group-version-kind".into(), json!([gvk(r, &r.kind)]));
    }
    schema
}

fn list_definition(r: &Resource) -> Value {
    json!({
        "type": "object", "required": ["items"], "description": format!("A list of {}.", r.kind),
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": reference(&r.definition)}},
            "metadata": {"$ref": reference(&format!("{META}.ListMeta"))},
        },
        "x-kubernetes-group-version-kind": [gvk(r, &r.list_kind)],
    })
}

fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

/// A definition as it is published: formats by their public name, references in full.
fn published(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, child) in map {
                match (key.as_str(), child.as_str()) {
                    ("$ref", Some(name)) => {
                        out.insert("allOf".into(), json!([{"$ref": reference(name)}]));
                    }
                    ("x-proto" | "x-proto-optional", _) => {}
                    ("format", Some("time" | "micro-time")) => {
                        out.insert(key.clone(), "date-time".into());
                    }
                    _ => {
                        out.insert(key.clone(), published(child));
                    }
                }
            }
            // A reference that stands alone is one.
            if out.len() == 1
                && let Some(only) = out.get("allOf").and_then(|a| a.get(0)).filter(|_| map.contains_key("$ref"))
            {
                return only.clone();
            }
            Value::Object(out)
        }
        Value::Array(items) => Value::Array(items.iter().map(published).collect()),
        other => other.clone(),
    }
}

fn references(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                match child.as_str().and_then(|s| s.strip_prefix("#/components/schemas/")) {
                    Some(name) if key == "$ref" => {
                        out.insert(name.to_owned());
                    }
                    _ => references(child, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|i| references(i, out)),
        _ => {}
    }
}

fn parameter(name: &str, ty: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}})
}

/// The paths of a resource and what can be done at each.
fn operations(r: &Resource) -> Vec<(String, Value)> {
    let base =
        if r.group.is_empty() { format!("/api/{}", r.version) } else { format!("/apis/{}/{}", r.group, r.version) };
    let within = if r.namespaced { format!("{base}/namespaces/{{namespace}}") } else { base.clone() };
    let this = reference(&r.definition);
    let content = |schema: &str| json!({"application/json": {"schema": {"$ref": schema}}});
    let answer = |schema: &str| json!({"200": {"description": "OK", "content": content(schema)}});
    let status = reference(&format!("{META}.Status"));
    let list = reference(&format!("{}List", r.definition));
    let body = json!({"content": {"*/*": {"schema": {"$ref": this}}}});
    let strings = |names: &[&str]| -> Vec<Value> { names.iter().map(|n| parameter(n, "string")).collect() };
    let write = strings(&["dryRun", "fieldManager", "fieldValidation"]);
    let mut apply = write.clone();
    apply.push(parameter("force", "boolean"));
    let mut listing =
        strings(&["continue", "fieldSelector", "labelSelector", "resourceVersion", "resourceVersionMatch"]);
    listing.push(parameter("limit", "integer"));
    listing.push(parameter("timeoutSeconds", "integer"));
    listing.push(parameter("watch", "boolean"));
    listing.push(parameter("allowWatchBookmarks", "boolean"));
    let op = |action: &str, parameters: &[Value], responses: Value| {
        json!({
            "parameters": parameters, "responses": responses, "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(r, &r.kind),
        })
    };
    let with_body = |mut op: Value, body: &Value| {
        op["requestBody"] = body.clone();
        op
    };
    let media = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
    let strategic = r.custom.is_none().then_some("application/strategic-merge-patch+json");
    let patch: Map<String, Value> = media
        .into_iter()
        .chain(strategic)
        .map(|m| (m.to_owned(), json!({"schema": {"$ref": reference(&format!("{META}.Patch"))}})))
        .collect();
    let patch = json!({ "content": patch });
    let named = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let mut collection_at = Vec::new();
    if r.namespaced {
        collection_at.push(named("namespace"));
    }
    let mut object_at = collection_at.clone();
    object_at.push(named("name"));
    let collection = json!({
        "parameters": collection_at,
        "get": op("list", &listing, answer(&list)),
        "post": with_body(op("post", &write, answer(&this)), &body),
        "delete": op("deletecollection", &listing, answer(&status)),
    });
    let object = json!({
        "parameters": object_at,
        "get": op("get", &strings(&["resourceVersion"]), answer(&this)),
        "put": with_body(op("put", &write, answer(&this)), &body),
        "patch": with_body(op("patch", &apply, answer(&this)), &patch),
        "delete": op("delete", &strings(&["dryRun", "propagationPolicy"]), answer(&status)),
    });
    let mut out =
        vec![(format!("{within}/{}", r.plural), collection), (format!("{within}/{}/{{name}}", r.plural), object)];
    if r.namespaced {
        let all = json!({ "get": op("list", &listing, answer(&list)) });
        out.push((format!("{base}/{}", r.plural), all));
    }
    if r.status {
        let part = json!({
            "parameters": object_at,
            "get": op("get", &[], answer(&this)),
            "put": with_body(op("put", &write, answer(&this)), &body),
            "patch": with_body(op("patch", &apply, answer(&this)), &patch),
        });
        out.push((format!("{within}/{}/{{name}}/status", r.plural), part));
    }
    out
}
