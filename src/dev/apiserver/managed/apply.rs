//! Server-side apply: what a manager wants, merged into what is there, unless another manager wants it otherwise.

use serde_json::{Value, json};

use super::fieldset::{self, FieldSet, Step};
use super::track::{Entry, Writer, read, strip, write};
use crate::dev::apiserver::kinds::Resource;
use crate::dev::apiserver::schema::{List, Schema};
use crate::dev::apiserver::status::Status;

/// The object that comes of applying `config` to `live`, with its managed fields.
///
/// What the manager applied before and no longer names is removed, where nobody else has set it.
///
/// # Errors
/// 409 with a cause for each field that another manager has set otherwise, unless `force` is given.
pub(crate) fn apply(
    live: Option<&Value>,
    config: &Value,
    resource: &Resource,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, Status> {
    let schema = &*resource.schema;
    let mut entries = live.map(read).unwrap_or_default();
    let mut wanted = fieldset::of(config, schema);
    strip(&mut wanted);
    if resource.status && writer.subresource.is_empty() {
        wanted.drop_below(&[Step::Field("status".into())]);
    }
    let empty = json!({});
    let before = live.unwrap_or(&empty);
    let mut new = before.clone();
    merge(&mut new, config, schema);

    let differs = {
        let mut differs = FieldSet::default();
        differing(before, &new, schema, &wanted, &mut differs);
        differs
    };
    let mut causes = Vec::new();
    let mut who = Vec::new();
    for entry in entries.iter_mut().filter(|e| !e.is(writer, "Apply")) {
        let clash = entry.set.intersection(&differs);
        if clash.is_empty() {
            continue;
        }
        if force {
            entry.set.subtract(&clash);
            continue;
        }
        let name = described(entry);
        for path in clash.paths() {
            causes.push(json!({
                "reason": "FieldManagerConflict", "message": format!("conflict with {name}"), "field": path,
            }));
            who.push((name.clone(), path));
        }
    }
    if !causes.is_empty() {
        return Err(conflict(&who).with_causes(causes));
    }

    let own = entries.iter().position(|e| e.is(writer, "Apply"));
    if let Some(own) = own {
        let mut gone = entries[own].set.clone();
        gone.subtract(&wanted);
        for (i, entry) in entries.iter().enumerate() {
            if i != own {
                gone.subtract(&entry.set);
            }
        }
        prune(&mut new, schema, &gone, &wanted);
    }
    let same = own.is_some_and(|own| entries[own].set == wanted);
    let own = own.unwrap_or_else(|| {
        entries.push(Entry {
            manager: writer.manager.to_owned(),
            operation: "Apply".to_owned(),
            api_version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
            time: String::new(),
            set: FieldSet::default(),
        });
        entries.len() - 1
    });
    if !same || !differs.is_empty() {
        writer.time.clone_into(&mut entries[own].time);
    }
    entries[own].set = wanted;
    write(&mut new, &entries);
    Ok(new)
}

fn described(entry: &Entry) -> String {
    let via =
        if entry.subresource.is_empty() { String::new() } else { format!(" with subresource {:?}", entry.subresource) };
    let using = if entry.operation == "Apply" {
        String::new()
    } else if entry.time.is_empty() {
        format!(" using {}", entry.api_version)
    } else {
        format!(" using {} at {}", entry.api_version, entry.time)
    };
    format!("{:?}{via}{using}", entry.manager)
}

fn conflict(who: &[(String, String)]) -> Status {
    let plural = if who.len() == 1 { "" } else { "s" };
    let (first, path) = &who[0];
    let text = if who.len() == 1 {
        format!("Apply failed with 1 conflict: conflict with {first}: {path}")
    } else if who.iter().all(|(name, _)| name == first) {
        let paths: Vec<String> = who.iter().map(|(_, p)| format!("- {p}")).collect();
        format!("Apply failed with {} conflict{plural}: conflicts with {first}:\n{}", who.len(), paths.join("\n"))
    } else {
        let lines: Vec<String> = who.iter().map(|(n, p)| format!("conflicts with {n}:\n- {p}")).collect();
        format!("Apply failed with {} conflict{plural}: {}", who.len(), lines.join("\n"))
    };
    Status::new(http::StatusCode::CONFLICT, "Conflict", text)
}

/// Merges what is wanted into what is there.
fn merge(live: &mut Value, config: &Value, schema: &Schema) {
    match (&mut *live, config) {
        (Value::Object(there), Value::Object(wanted)) if fieldset::granular(schema) => {
            for (key, value) in wanted {
                match there.get_mut(key) {
                    Some(old) => merge(old, value, schema.field_or_any(key)),
                    None => {
                        there.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(there), Value::Array(wanted)) if schema.list != List::Atomic => {
            for item in wanted {
                let step = fieldset::item_step(item, schema);
                match there.iter_mut().find(|old| fieldset::item_step(old, schema) == step) {
                    Some(old) => merge(old, item, schema.item()),
                    None => there.push(item.clone()),
                }
            }
        }
        (live, config) => *live = config.clone(),
    }
}

fn find<'a>(value: &'a Value, step: &Step, schema: &Schema) -> Option<&'a Value> {
    match step {
        Step::Field(name) => value.get(name),
        _ => value.as_array()?.iter().find(|i| fieldset::item_step(i, schema).as_ref() == Some(step)),
    }
}

fn below<'a>(schema: &'a Schema, step: &Step) -> &'a Schema {
    match step {
        Step::Field(name) => schema.field_or_any(name),
        _ => schema.item(),
    }
}

/// Of the fields that are wanted, those that were not already so.
fn differing(old: &Value, new: &Value, schema: &Schema, wanted: &FieldSet, out: &mut FieldSet) {
    for step in wanted.steps() {
        let Some(inner) = wanted.child(step) else { continue };
        let after = find(new, step, schema);
        match (find(old, step, schema), after) {
            (Some(before), Some(after)) if before == after => {}
            (Some(before), Some(after)) => {
                let slot = out.at(step.clone());
                if inner.is_leaf() {
                    slot.insert();
                }
                differing(before, after, below(schema, step), inner, slot);
            }
            _ => out.at(step.clone()).union(inner),
        }
    }
}

/// Removes fields that the manager has let go of.
fn prune(value: &mut Value, schema: &Schema, gone: &FieldSet, wanted: &FieldSet) {
    for step in gone.steps() {
        let Some(inner) = gone.child(step) else { continue };
        let still = wanted.child(step);
        let whole = inner.is_leaf() || (inner.is_member() && still.is_none());
        match (step, &mut *value) {
            (Step::Field(name), Value::Object(map)) => {
                if whole && still.is_none() {
                    map.remove(name);
                } else if let Some(child) = map.get_mut(name) {
                    prune(child, below(schema, step), inner, still.unwrap_or(&FieldSet::default()));
                    if still.is_none() && empty(child) {
                        map.remove(name);
                    }
                }
            }
            (_, Value::Array(items)) => {
                if whole && still.is_none() {
                    items.retain(|i| fieldset::item_step(i, schema).as_ref() != Some(step));
                } else if let Some(item) =
                    items.iter_mut().find(|i| fieldset::item_step(i, schema).as_ref() == Some(step))
                {
                    prune(item, schema.item(), inner, still.unwrap_or(&FieldSet::default()));
                }
            }
            _ => {}
        }
    }
}

fn empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
