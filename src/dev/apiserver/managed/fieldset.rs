//! Sets of fields: a trie of path elements, in the `FieldsV1` form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::dev::apiserver::schema::{List, Schema, Type};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A field of a map.
    Field(String),
    /// An item of a list, by its keys (as JSON).
    Key(String),
    /// An item of a set, by its value (as JSON).
    Item(String),
}

impl Step {
    fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(key) => format!("k:{key}"),
            Self::Item(item) => format!("v:{item}"),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => Some(Self::Key(canonical(rest)?)),
            "v" => Some(Self::Item(canonical(rest)?)),
            _ => None,
        }
    }
}

fn canonical(json: &str) -> Option<String> {
    serde_json::from_str::<Value>(json).ok().map(|v| v.to_string())
}

/// A set of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    member: bool,
    below: BTreeMap<Step, FieldSet>,
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.values().all(Self::is_empty)
    }

    /// The set below a step, made where there is none.
    pub(super) fn at(&mut self, step: Step) -> &mut Self {
        self.below.entry(step).or_default()
    }

    pub(super) fn child(&self, step: &Step) -> Option<&Self> {
        self.below.get(step)
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.below.keys()
    }

    /// Whether the path that ends here is in the set.
    pub(super) fn is_member(&self) -> bool {
        self.member
    }

    /// Whether the path that ends here is in the set, and none below it.
    pub(super) fn is_leaf(&self) -> bool {
        self.member && self.below.is_empty()
    }

    /// Takes in the path that ends here.
    pub(super) fn insert(&mut self) {
        self.member = true;
    }

    pub(super) fn union(&mut self, other: &Self) {
        self.member |= other.member;
        for (step, set) in &other.below {
            self.at(step.clone()).union(set);
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.member &= !other.member;
        self.below.retain(|step, set| {
            if let Some(gone) = other.below.get(step) {
                set.subtract(gone);
            }
            !set.is_empty()
        });
    }

    /// Drops a path and everything below it.
    pub(super) fn drop_below(&mut self, steps: &[Step]) {
        match steps {
            [] => *self = Self::default(),
            [last] => {
                self.below.remove(last);
            }
            [first, rest @ ..] => {
                if let Some(set) = self.below.get_mut(first) {
                    set.drop_below(rest);
                    if set.is_empty() {
                        self.below.remove(first);
                    }
                }
            }
        }
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut out = Self { member: self.member && other.member, below: BTreeMap::new() };
        for (step, set) in &self.below {
            if let Some(theirs) = other.below.get(step) {
                let both = set.intersection(theirs);
                if !both.is_empty() {
                    out.below.insert(step.clone(), both);
                }
            }
        }
        out
    }

    /// All paths, as people read them: `.spec.size`, `.spec.list[name="a"]`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.collect("", &mut out);
        out
    }

    fn collect(&self, path: &str, out: &mut Vec<String>) {
        if self.member {
            out.push(path.to_owned());
        }
        for (step, set) in &self.below {
            let at = match step {
                Step::Field(name) => format!("{path}.{name}"),
                Step::Key(key) => {
                    let keys = serde_json::from_str::<Map<String, Value>>(key).unwrap_or_default();
                    let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                    format!("{path}[{}]", keys.join(","))
                }
                Step::Item(item) => format!("{path}[={item}]"),
            };
            set.collect(&at, out);
        }
    }

    /// The `FieldsV1` form.
    pub(super) fn encode(&self) -> Value {
        let mut map = Map::new();
        if self.member && !self.below.is_empty() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        for (step, set) in &self.below {
            map.insert(step.encode(), set.encode());
        }
        Value::Object(map)
    }

    /// Reads the `FieldsV1` form; leaves out what it does not know.
    pub(super) fn decode(value: &Value) -> Self {
        let mut out = Self::default();
        let Some(map) = value.as_object() else { return out };
        for (key, child) in map {
            if key == "." {
                out.member = true;
            } else if let Some(step) = Step::decode(key) {
                let mut set = Self::decode(child);
                if child.as_object().is_some_and(Map::is_empty) {
                    set.member = true;
                }
                out.below.insert(step, set);
            }
        }
        out
    }
}

/// Whether a map's fields are told apart, or the map is one value.
pub(super) fn granular(schema: &Schema) -> bool {
    !schema.atomic && matches!(schema.ty, Type::Object | Type::Any)
}

/// The step that leads to an item of a list; none where the list is one value.
pub(super) fn item_step(item: &Value, schema: &Schema) -> Option<Step> {
    match &schema.list {
        List::Atomic => None,
        List::Set => Some(Step::Item(item.to_string())),
        List::Map(keys) => {
            let mut id = Map::new();
            for key in keys {
                let default = schema.item().field(key).and_then(|f| f.default.clone());
                if let Some(value) = item.get(key).cloned().or(default) {
                    id.insert(key.clone(), value);
                }
            }
            Some(Step::Key(Value::Object(id).to_string()))
        }
    }
}

/// The fields that an object sets.
pub(super) fn of(value: &Value, schema: &Schema) -> FieldSet {
    let mut set = FieldSet::default();
    match value {
        Value::Object(map) if granular(schema) && !map.is_empty() => {
            for (key, child) in map {
                let inner = of(child, schema.field_or_any(key));
                let slot = set.at(Step::Field(key.clone()));
                slot.union(&inner);
                // A key of a map, unlike a field of a struct, is itself something that was set.
                if !schema.properties.contains_key(key) {
                    slot.insert();
                }
            }
        }
        Value::Array(items) if schema.list != List::Atomic && !items.is_empty() => {
            for item in items {
                if let Some(step) = item_step(item, schema) {
                    let slot = set.at(step);
                    slot.union(&of(item, schema.item()));
                    slot.insert();
                }
            }
        }
        _ => set.insert(),
    }
    set
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dev::apiserver::schema::builtin;

    #[test]
    fn encodes_as_fields_v1() {
        let pod = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "args": ["x", "y"]}], "nodeName": "n"},
        });
        let set = of(&pod, builtin::schema("io.k8s.api.core.v1.Pod"));
        assert_eq!(
            set.encode(),
            json!({
                "f:metadata": {"f:labels": {"f:a": {}}},
                "f:spec": {
                    "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:args": {}, "f:name": {}}},
                    "f:nodeName": {},
                },
            })
        );
        assert_eq!(FieldSet::decode(&set.encode()), set);
        assert!(set.paths().contains(&".spec.containers[name=\"c\"].args".to_owned()));
    }

    #[test]
    fn set_algebra() {
        let a = FieldSet::decode(&json!({"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}}));
        let b = FieldSet::decode(&json!({"f:b": {"f:c": {}}}));
        let mut c = a.clone();
        c.subtract(&b);
        assert_eq!(c, FieldSet::decode(&json!({"f:a": {}, "f:b": {"f:d": {}}})));
        assert_eq!(a.intersection(&b), b);
        c.union(&b);
        assert_eq!(c, a);
        c.drop_below(&[Step::Field("b".into())]);
        assert_eq!(c, FieldSet::decode(&json!({"f:a": {}})));
    }
}
