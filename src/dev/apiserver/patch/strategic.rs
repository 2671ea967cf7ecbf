//! Strategic merge: a merge patch that knows which lists are merged, by which key, and has directives of its own.

use serde_json::{Map, Value};

use crate::dev::apiserver::object::object_mut;
use crate::dev::apiserver::schema::{Schema, join};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Merges a patch into a value.
///
/// # Errors
/// Where a directive is not one, or an item of a list that is merged by key has no key.
pub(crate) fn strategic(old: &mut Value, patch: &Map<String, Value>, schema: &Schema) -> Result<(), String> {
    merge(old, patch, schema, "")
}

fn merge(old: &mut Value, patch: &Map<String, Value>, schema: &Schema, path: &str) -> Result<(), String> {
    match patch.get(DIRECTIVE).map(|d| d.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            *old = plain(&Value::Object(patch.clone()));
            return Ok(());
        }
        Some("delete") => {
            *old = Value::Object(Map::new());
            return Ok(());
        }
        Some(other) => return Err(format!("unknown patch type: {other} (at {path:?})")),
    }
    let map = object_mut(old);
    if let Some(Value::Array(keep)) = patch.get(RETAIN) {
        map.retain(|key, _| keep.iter().any(|k| k == key));
    }
    for (key, change) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (map.get_mut(field), change) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if key.starts_with('$') {
            continue;
        }
        let known = schema.field_or_any(key);
        let at = join(path, key);
        match (map.get_mut(key), change) {
            (_, Value::Null) => {
                map.remove(key);
            }
            (Some(there @ Value::Object(_)), Value::Object(change)) => merge(there, change, known, &at)?,
            (Some(Value::Array(there)), Value::Array(change)) if known.merge.into => {
                merge_list(there, change, known, &at)?;
            }
            (_, change) => {
                let new = fresh(change, known, &at)?;
                map.insert(key.clone(), new);
            }
        }
    }
    for (key, order) in patch {
        let Some(field) = key.strip_prefix(ORDER) else { continue };
        if let (Some(Value::Array(items)), Value::Array(order)) = (map.get_mut(field), order) {
            reorder(items, order, schema.field_or_any(field).merge.key.as_deref());
        }
    }
    Ok(())
}

/// What a patch brings where nothing was there: itself, without directives.
fn fresh(change: &Value, schema: &Schema, path: &str) -> Result<Value, String> {
    match change {
        Value::Object(patch) => {
            let mut new = Value::Object(Map::new());
            merge(&mut new, patch, schema, path)?;
            Ok(new)
        }
        Value::Array(items) if schema.merge.into => {
            let mut new = Vec::new();
            merge_list(&mut new, items, schema, path)?;
            Ok(Value::Array(new))
        }
        other => Ok(plain(other)),
    }
}

/// A value without directives and without nulls in maps.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(k, v)| !k.starts_with('$') && !v.is_null())
                .map(|(k, v)| (k.clone(), plain(v)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

fn merge_list(old: &mut Vec<Value>, patch: &[Value], schema: &Schema, path: &str) -> Result<(), String> {
    let Some(key) = &schema.merge.key else {
        for item in patch {
            if !old.contains(item) {
                old.push(item.clone());
            }
        }
        return Ok(());
    };
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    if patch.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        // An item that says so replaces the list by the others.
        *old = patch.iter().filter(|item| directive(item).is_none()).map(plain).collect();
        return Ok(());
    }
    for item in patch {
        let Value::Object(change) = item else {
            return Err(format!("the list {path} is merged by {key}: its items must be maps"));
        };
        let Some(id) = change.get(key) else {
            return Err(format!("map: map[] does not contain declared merge key: {key} (at {path})"));
        };
        let deletes = directive(item).as_deref() == Some("delete");
        match old.iter_mut().find(|o| o.get(key) == Some(id)) {
            _ if deletes => old.retain(|o| o.get(key) != Some(id)),
            Some(there) => merge(there, change, schema.item(), path)?,
            None => old.push(fresh(item, schema.item(), path)?),
        }
    }
    Ok(())
}

/// Puts the items that an order names into that order; the others stay behind the ones that they stood behind.
fn reorder(items: &mut Vec<Value>, order: &[Value], key: Option<&str>) {
    let id = |item: &Value| match key {
        Some(key) => item.get(key).cloned().unwrap_or(Value::Null),
        None => item.clone(),
    };
    let rank = |item: &Value| {
        let wanted = id(item);
        order.iter().position(|o| match key {
            Some(key) => o.get(key) == Some(&wanted),
            None => *o == wanted,
        })
    };
    let mut last = None;
    let mut ranked: Vec<(Option<usize>, Value)> = Vec::new();
    for item in items.drain(..) {
        let own = rank(&item);
        if own.is_some() {
            last = own;
        }
        ranked.push((own.or(last), item));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    items.extend(ranked.into_iter().map(|(_, item)| item));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dev::apiserver::schema::builtin;

    fn pod(old: &Value, patch: &Value) -> Result<Value, String> {
        let mut new = json!({ "spec": old });
        let patch = json!({ "spec": patch });
        strategic(&mut new, patch.as_object().expect("a map"), builtin::schema("io.k8s.api.core.v1.Pod"))?;
        Ok(new["spec"].take())
    }

    #[test]
    fn lists_merge_by_their_key() {
        let old = json!({"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "1"}]});
        let new = pod(
            &old,
            &json!({"containers": [{"name": "a", "image": "2", "args": ["y"]}, {"name": "c", "image": "3"}]}),
        );
        assert_eq!(
            new,
            Ok(json!({"containers": [
                {"name": "a", "image": "2", "args": ["y"]}, {"name": "b", "image": "1"}, {"name": "c", "image": "3"},
            ]}))
        );
        let new = pod(&old, &json!({"containers": [{"name": "a", "$patch": "delete"}]}));
        assert_eq!(new, Ok(json!({"containers": [{"name": "b", "image": "1"}]})));
        let new = pod(&old, &json!({"containers": [{"name": "z"}, {"$patch": "replace"}]}));
        assert_eq!(new, Ok(json!({"containers": [{"name": "z"}]})));
        assert!(pod(&old, &json!({"containers": [{"image": "2"}]})).is_err());
    }

    #[test]
    fn other_lists_are_replaced_and_nulls_delete() {
        let old = json!({"tolerations": [{"key": "a"}], "nodeName": "n", "nodeSelector": {"a": "b", "c": "d"}});
        let new =
            pod(&old, &json!({"tolerations": [{"key": "b"}], "nodeName": null, "nodeSelector": {"a": null, "e": "f"}}));
        assert_eq!(new, Ok(json!({"tolerations": [{"key": "b"}], "nodeSelector": {"c": "d", "e": "f"}})));
    }

    #[test]
    fn lists_of_plain_values() {
        let mut o = json!({"metadata": {"finalizers": ["a/a", "b/b"]}});
        let patch = json!({"metadata": {"finalizers": ["c/c"], "$deleteFromPrimitiveList/finalizers": ["a/a"]}});
        strategic(&mut o, patch.as_object().expect("a map"), builtin::schema(builtin::LEASE)).expect("merges");
        let mut all: Vec<_> = o["metadata"]["finalizers"].as_array().expect("a list").clone();
        all.sort_by_key(ToString::to_string);
        assert_eq!(all, [json!("b/b"), json!("c/c")]);
    }

    #[test]
    fn directives() {
        let old = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "s"}, {"name": "c"}]});
        let new = pod(
            &old,
            &json!({"containers": [{"name": "d"}], "$setElementOrder/containers": [
                {"name": "d"}, {"name": "c"}, {"name": "a"}, {"name": "b"},
            ]}),
        )
        .expect("merges");
        let names: Vec<&str> =
            new["containers"].as_array().expect("a list").iter().filter_map(|c| c["name"].as_str()).collect();
        assert_eq!(names, ["d", "c", "a", "b", "s"]);
        let replaced =
            pod(&json!({"nodeSelector": {"a": "b"}}), &json!({"nodeSelector": {"$patch": "replace", "c": "d"}}));
        assert_eq!(replaced, Ok(json!({"nodeSelector": {"c": "d"}})));
        let retained = pod(
            &json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            &json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}),
        );
        assert_eq!(retained, Ok(json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})));
        assert!(pod(&json!({}), &json!({"nodeSelector": {"$patch": "odd"}})).is_err());
    }
}
