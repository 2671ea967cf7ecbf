//! The JSONPath that CRDs use for columns and selectable fields: fields, indices, `*` and equality filters.

use serde_json::Value;

/// A path, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Items whose field at a path equals a value.
    Where(JsonPath, Value),
}

impl JsonPath {
    /// Reads a path, as in `.spec.size`, `.items[0].name` or `.status.conditions[?(@.type=="Ready")].status`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        if !rest.starts_with(['.', '[']) {
            return None;
        }
        while !rest.is_empty() {
            let step;
            (step, rest) = if let Some(after) = rest.strip_prefix('.') { field(after)? } else { bracket(rest)? };
            steps.push(step);
        }
        Some(Self(steps))
    }

    /// Everything that the path leads to.
    pub(crate) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.0 {
            let mut next = Vec::new();
            for value in found {
                match step {
                    Step::Field(name) => next.extend(value.get(name)),
                    Step::Index(i) => {
                        if let Some(items) = value.as_array() {
                            let at = if *i < 0 { i.checked_add_unsigned(items.len() as u64) } else { Some(*i) };
                            next.extend(at.and_then(|at| usize::try_from(at).ok()).and_then(|at| items.get(at)));
                        }
                    }
                    Step::All => match value {
                        Value::Array(items) => next.extend(items),
                        Value::Object(map) => next.extend(map.values()),
                        _ => {}
                    },
                    Step::Where(path, wanted) => {
                        let items = value.as_array().into_iter().flatten();
                        next.extend(items.filter(|item| path.find(item).first().is_some_and(|v| *v == wanted)));
                    }
                }
            }
            found = next;
        }
        found
    }
}

fn field(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(c),
        }
    }
    let step = match name.as_str() {
        "" => return None,
        "*" => Step::All,
        _ => Step::Field(name),
    };
    Some((step, &text[end..]))
}

fn bracket(text: &str) -> Option<(Step, &str)> {
    let inner = text.strip_prefix('[')?;
    if let Some(filter) = inner.strip_prefix("?(@") {
        let (condition, rest) = filter.split_once(")]")?;
        let (path, value) = condition.split_once("==")?;
        let value = value.trim();
        let quoted = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
        let value = match quoted {
            Some(text) => Value::String(text.to_owned()),
            None => serde_json::from_str(value).ok()?,
        };
        return Some((Step::Where(JsonPath::parse(path.trim())?, value), rest));
    }
    let (key, rest) = inner.split_once(']')?;
    let quoted = ['"', '\''].iter().find_map(|q| key.strip_prefix(*q)?.strip_suffix(*q));
    let step = match (key, quoted) {
        ("*", _) => Step::All,
        (_, Some(name)) => Step::Field(name.to_owned()),
        (index, None) => Step::Index(index.parse().ok()?),
    };
    Some((step, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_what_crds_ask_for() {
        let v = json!({
            "spec": {"size": 3, "list": [1, 2, 3], "a.b/c": "x"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
        });
        for (path, wanted) in [
            (".spec.size", vec![json!(3)]),
            ("{.spec.size}", vec![json!(3)]),
            ("$.spec['size']", vec![json!(3)]),
            (".spec.list[0]", vec![json!(1)]),
            (".spec.list[-1]", vec![json!(3)]),
            (".spec.list[*]", vec![json!(1), json!(2), json!(3)]),
            (".spec.a\\.b/c", vec![json!("x")]),
            (".status.conditions[?(@.type==\"Ready\")].status", vec![json!("True")]),
            (".status.conditions[?(@.type=='None')].status", vec![]),
            (".spec.none.none", vec![]),
        ] {
            let found: Vec<Value> = JsonPath::parse(path).expect(path).find(&v).into_iter().cloned().collect();
            assert_eq!(found, wanted, "{path}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for bad in ["", "spec", ".", ".a[", ".a[x]", ".a[?(@.b)]", ".a..b", ".a\\"] {
            assert_eq!(JsonPath::parse(bad), None, "{bad}");
        }
    }
}
