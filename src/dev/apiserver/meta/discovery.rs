//! Discovery: which groups, versions and resources there are; one by one, or all at once (aggregated).

use serde_json::{Map, Value, json};

use crate::dev::apiserver::kinds::{Registry, Resource};

/// An answer and its media type.
pub(super) struct Found {
    pub(super) value: Value,
    pub(super) media: String,
}

/// Answers `/api..` and `/apis..` paths that name no resource.
pub(super) fn answer(registry: &Registry, parts: &[&str], accept: &str) -> Option<Found> {
    let plain = |value: Value| Some(Found { value, media: "application/json".into() });
    match parts {
        ["api" | "apis"] => {
            let core = parts == ["api"];
            for version in ["v2", "v2beta1"] {
                let asks = |media: &str| {
                    media.contains("as=APIGroupDiscoveryList")
                        && media.split(';').any(|p| p.trim() == format!("v={version}"))
                };
                if accept.split(',').any(asks) {
                    let media = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
                    return Some(Found { value: aggregated(registry, core, version), media });
                }
            }
            plain(if core {
                json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
            } else {
                let groups: Vec<Value> = groups(registry, false).into_iter().map(|g| group(registry, &g)).collect();
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            })
        }
        ["api", version] => resources(registry, "", version).and_then(plain),
        ["apis", name] => {
            let known = groups(registry, false).iter().any(|g| g == name);
            known
                .then(|| {
                    let mut value = group(registry, name);
                    if let Some(map) = value.as_object_mut() {
                        map.insert("kind".into(), "APIGroup".into());
                        map.insert("apiVersion".into(), "v1".into());
                    }
                    value
                })
                .and_then(plain)
        }
        ["apis", name, version] => resources(registry, name, version).and_then(plain),
        _ => None,
    }
}

fn groups(registry: &Registry, core: bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for resource in registry.all().filter(|r| r.group.is_empty() == core) {
        if !out.contains(&resource.group) {
            out.push(resource.group.clone());
        }
    }
    out
}

/// The versions of a group, the most stable and newest first, as upstream prefers them.
fn versions(registry: &Registry, group: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for resource in registry.all().filter(|r| r.group == group) {
        if !out.contains(&resource.version) {
            out.push(resource.version.clone());
        }
    }
    out.sort_by_key(|v| std::cmp::Reverse(rank(v)));
    out
}

/// How a version ranks: stable over beta over alpha over anything else, then by its numbers.
fn rank(version: &str) -> (u8, u64, u64) {
    let number = |text: &str| text.parse::<u64>().ok();
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    for (word, stage) in [("beta", 2), ("alpha", 1)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return match (number(major), number(minor)) {
                (Some(major), Some(minor)) => (stage, major, minor),
                _ => (0, 0, 0),
            };
        }
    }
    number(rest).map_or((0, 0, 0), |major| (3, major, 0))
}

fn group(registry: &Registry, name: &str) -> Value {
    let versions: Vec<Value> = versions(registry, name)
        .into_iter()
        .map(|v| json!({"groupVersion": format!("{name}/{v}"), "version": v}))
        .collect();
    let preferred = versions.first().cloned();
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
}

/// The verbs of a resource, or of its status.
fn verbs(status: bool) -> &'static [&'static str] {
    if status {
        &["get", "patch", "update"]
    } else {
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    }
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    let mut found = None;
    for r in registry.all().filter(|r| r.group == group && r.version == version) {
        found = Some(r.api_version());
        let mut map = Map::new();
        map.insert("name".into(), r.plural.clone().into());
        map.insert("singularName".into(), r.singular.clone().into());
        map.insert("namespaced".into(), r.namespaced.into());
        map.insert("kind".into(), r.kind.clone().into());
        map.insert("verbs".into(), verbs(false).into());
        for (key, names) in [("shortNames", &r.short_names), ("categories", &r.categories)] {
            if !names.is_empty() {
                map.insert(key.into(), names.clone().into());
            }
        }
        list.push(Value::Object(map));
        for (sub, kind, verbs) in subresources(r) {
            list.push(json!({
                "name": format!("{}/{sub}", r.plural), "singularName": "", "namespaced": r.namespaced, "kind": kind,
                "verbs": verbs,
            }));
        }
    }
    found.map(|v| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": v, "resources": list}))
}

fn subresources(r: &Resource) -> Vec<(&'static str, String, &'static [&'static str])> {
    let mut out = Vec::new();
    if r.status {
        out.push(("status", r.kind.clone(), verbs(true)));
    }
    if r.group.is_empty() && r.plural == "serviceaccounts" {
        out.push(("token", "TokenRequest".to_owned(), &["create"][..]));
    }
    out
}

fn aggregated(registry: &Registry, core: bool, version: &str) -> Value {
    let kind = |r: &Resource| json!({"group": r.group, "version": r.version, "kind": r.kind});
    let items: Vec<Value> = groups(registry, core)
        .into_iter()
        .map(|group| {
            let versions: Vec<Value> = versions(registry, &group)
                .into_iter()
                .map(|version| {
                    let served: Vec<Value> = registry
                        .all()
                        .filter(|r| r.group == group && r.version == version)
                        .map(|r| {
                            let subs: Vec<Value> = subresources(r)
                                .into_iter()
                                .map(|(sub, _, verbs)| {
                                    json!({"subresource": sub, "responseKind": kind(r), "verbs": verbs})
                                })
                                .collect();
                            json!({
                                "resource": r.plural, "responseKind": kind(r), "singularResource": r.singular,
                                "scope": if r.namespaced { "Namespaced" } else { "Cluster" }, "verbs": verbs(false),
                                "shortNames": r.short_names, "categories": r.categories, "subresources": subs,
                            })
                        })
                        .collect();
                    json!({"version": version, "resources": served, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {},
        "items": items,
    })
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn stable_versions_come_first() {
        let mut all = ["v1alpha1", "v2", "foo", "v1", "v10beta1", "v2beta2", "v1beta1"];
        all.sort_by_key(|v| std::cmp::Reverse(rank(v)));
        assert_eq!(all, ["v2", "v1", "v10beta1", "v2beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
