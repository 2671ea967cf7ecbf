//! Who set what, when an object is written whole.

use serde_json::{Map, Value};

use super::fieldset::{self, FieldSet, Step};
use crate::dev::apiserver::object::{meta, meta_mut};
use crate::dev::apiserver::schema::{List, Schema};

/// Who writes, and how.
#[derive(Debug, Clone)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) subresource: &'a str,
    /// Now, as metadata shows it.
    pub(crate) time: &'a str,
}

/// One entry of managedFields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: String,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: String,
    pub(super) set: FieldSet,
}

impl Entry {
    pub(super) fn is(&self, writer: &Writer<'_>, operation: &str) -> bool {
        self.manager == writer.manager
            && self.operation == operation
            && self.subresource == writer.subresource
            && self.api_version == writer.api_version
    }
}

/// The entries of an object.
pub(super) fn read(object: &Value) -> Vec<Entry> {
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let entries = meta(object).get("managedFields").and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .map(|v| Entry {
            manager: text(v, "manager"),
            operation: text(v, "operation"),
            api_version: text(v, "apiVersion"),
            subresource: text(v, "subresource"),
            time: text(v, "time"),
            set: v.get("fieldsV1").map(FieldSet::decode).unwrap_or_default(),
        })
        .filter(|e| !e.set.is_empty())
        .collect()
}

/// Writes entries into an object; those that own nothing any more go.
pub(super) fn write(object: &mut Value, entries: &[Entry]) {
    let list: Vec<Value> = entries
        .iter()
        .filter(|e| !e.set.is_empty())
        .map(|e| {
            let mut map = Map::new();
            map.insert("manager".into(), e.manager.clone().into());
            map.insert("operation".into(), e.operation.clone().into());
            map.insert("apiVersion".into(), e.api_version.clone().into());
            map.insert("time".into(), e.time.clone().into());
            map.insert("fieldsType".into(), "FieldsV1".into());
            map.insert("fieldsV1".into(), e.set.encode());
            if !e.subresource.is_empty() {
                map.insert("subresource".into(), e.subresource.clone().into());
            }
            Value::Object(map)
        })
        .collect();
    if list.is_empty() {
        meta_mut(object).remove("managedFields");
    } else {
        meta_mut(object).insert("managedFields".into(), Value::Array(list));
    }
}

/// The fields that nobody owns: those that name the object, and those that are the server's.
pub(super) fn strip(set: &mut FieldSet) {
    let field = |name: &str| Step::Field(name.to_owned());
    set.drop_below(&[field("apiVersion")]);
    set.drop_below(&[field("kind")]);
    for key in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        set.drop_below(&[field("metadata"), field(key)]);
    }
}

/// Notes in `new` that the writer set what differs from `old`.
///
/// What was changed leaves the sets of all others; what was removed leaves everybody's.
pub(crate) fn update(new: &mut Value, old: Option<&Value>, schema: &Schema, writer: &Writer<'_>) {
    // An empty list is a client's wish to forget who set what.
    let reset = meta(new).get("managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty);
    let mut entries = if reset { Vec::new() } else { old.map(read).unwrap_or_default() };
    let (mut changed, mut removed) = (FieldSet::default(), FieldSet::default());
    match old {
        Some(old) => compare(old, new, schema, &mut changed, &mut removed),
        None => changed = added(new, schema),
    }
    strip(&mut changed);
    strip(&mut removed);
    if !changed.is_empty() || !removed.is_empty() {
        let own = entries.iter().position(|e| e.is(writer, "Update"));
        let own = own.unwrap_or_else(|| {
            entries.push(Entry {
                manager: writer.manager.to_owned(),
                operation: "Update".to_owned(),
                api_version: writer.api_version.to_owned(),
                subresource: writer.subresource.to_owned(),
                time: String::new(),
                set: FieldSet::default(),
            });
            entries.len() - 1
        });
        for (i, entry) in entries.iter_mut().enumerate() {
            entry.set.subtract(&removed);
            if i == own {
                entry.set.union(&changed);
                writer.time.clone_into(&mut entry.time);
            } else {
                entry.set.subtract(&changed);
            }
        }
    }
    write(new, &entries);
}

/// Everything in a new value, each map and list that is itself new included.
fn added(value: &Value, schema: &Schema) -> FieldSet {
    let mut set = fieldset::of(value, schema);
    mark(value, schema, &mut set, true);
    set
}

/// Takes in the maps and lists on the way: they were set too.
fn mark(value: &Value, schema: &Schema, set: &mut FieldSet, root: bool) {
    if let Value::Object(map) = value {
        if !fieldset::granular(schema) {
            return;
        }
        for (key, child) in map {
            if child.is_object() || child.is_array() {
                // The parts that every object has are not something that was set.
                let part = root && matches!(key.as_str(), "metadata" | "spec" | "status");
                let slot = set.at(Step::Field(key.clone()));
                if !part {
                    slot.insert();
                }
                mark(child, schema.field_or_any(key), slot, false);
            }
        }
    }
}

/// What differs between two versions: what was added or changed, and what was removed.
fn compare(old: &Value, new: &Value, schema: &Schema, changed: &mut FieldSet, removed: &mut FieldSet) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) if fieldset::granular(schema) => {
            for (key, after) in b {
                let known = schema.field_or_any(key);
                let step = Step::Field(key.clone());
                match a.get(key) {
                    Some(before) if before == after => {}
                    Some(before) => compare(before, after, known, changed.at(step.clone()), removed.at(step)),
                    None => {
                        let slot = changed.at(step);
                        slot.union(&added(after, known));
                        slot.insert();
                    }
                }
            }
            for (key, before) in a.iter().filter(|(key, _)| !b.contains_key(*key)) {
                let slot = removed.at(Step::Field(key.clone()));
                slot.union(&added(before, schema.field_or_any(key)));
                slot.insert();
            }
        }
        (Value::Array(a), Value::Array(b)) if schema.list != List::Atomic => {
            let find = |items: &[Value], step: &Step| -> Option<Value> {
                items.iter().find(|i| fieldset::item_step(i, schema).as_ref() == Some(step)).cloned()
            };
            for after in b {
                let Some(step) = fieldset::item_step(after, schema) else { continue };
                match find(a, &step) {
                    Some(before) if before == *after => {}
                    Some(before) => {
                        compare(&before, after, schema.item(), changed.at(step.clone()), removed.at(step));
                    }
                    None => {
                        let slot = changed.at(step);
                        slot.union(&added(after, schema.item()));
                        slot.insert();
                    }
                }
            }
            for before in a {
                let Some(step) = fieldset::item_step(before, schema) else { continue };
                if find(b, &step).is_none() {
                    let slot = removed.at(step);
                    slot.union(&added(before, schema.item()));
                    slot.insert();
                }
            }
        }
        _ => changed.insert(),
    }
}
