//! Label and field selectors.

use serde_json::Value;

use crate::dev::apiserver::object::meta;
use crate::dev::apiserver::status::Status;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Op {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

/// Which objects a list, a watch or a deletecollection is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<(String, Op)>,
    fields: Vec<(String, bool, String)>,
}

impl Selector {
    /// Reads both selectors.
    ///
    /// # Errors
    /// 400 where one cannot be read.
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, Status> {
        Ok(Self { labels: parse_labels(labels)?, fields: parse_fields(fields)? })
    }

    /// Whether everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Gives each path of the field selector its path in the stored form.
    ///
    /// # Errors
    /// 400 for a path that `stored` does not know.
    pub(crate) fn resolve<'a>(&mut self, stored: impl Fn(&str) -> Option<&'a str>) -> Result<(), Status> {
        for (path, ..) in &mut self.fields {
            match stored(path) {
                Some(found) => found.clone_into(path),
                None => return Err(Status::bad_request(format!("field label not supported: {path}"))),
            }
        }
        Ok(())
    }

    /// Narrows it to one name.
    pub(crate) fn only(&mut self, name: &str) {
        self.fields.push(("metadata.name".to_owned(), true, name.to_owned()));
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        if self.is_everything() {
            return true;
        }
        let labels = meta(object).get("labels").and_then(Value::as_object);
        self.labels.iter().all(|(key, op)| {
            let value = labels.and_then(|l| l.get(key)).and_then(Value::as_str);
            match op {
                Op::In(any) => value.is_some_and(|v| any.iter().any(|a| a == v)),
                Op::NotIn(none) => value.is_none_or(|v| !none.iter().any(|a| a == v)),
                Op::Exists => value.is_some(),
                Op::Absent => value.is_none(),
                Op::Greater(than) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v > *than),
                Op::Less(than) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v < *than),
            }
        }) && self.fields.iter().all(|(path, equal, wanted)| field_is(object, path, wanted) == *equal)
    }
}

fn field_is(object: &Value, path: &str, wanted: &str) -> bool {
    let found = path.split('.').try_fold(object, |at, part| at.get(part));
    match found {
        None | Some(Value::Null) => wanted.is_empty(),
        Some(Value::String(s)) => s == wanted,
        Some(other) => {
            // A number or a boolean, by its JSON text.
            let text = other.to_string();
            text == wanted
        }
    }
}

fn parse_fields(text: &str) -> Result<Vec<(String, bool, String)>, Status> {
    let mut out = Vec::new();
    for term in text.split(',').filter(|t| !t.is_empty()) {
        let (key, equal, value) = if let Some((k, v)) = term.split_once("!=") {
            (k, false, v)
        } else if let Some((k, v)) = term.split_once("==") {
            (k, true, v)
        } else if let Some((k, v)) = term.split_once('=') {
            (k, true, v)
        } else {
            return Err(Status::bad_request(format!(
                "Unable to parse field selector {text:?}: invalid selector: {term:?}; can't understand {term:?}"
            )));
        };
        out.push((key.to_owned(), equal, value.to_owned()));
    }
    Ok(out)
}

fn parse_labels(text: &str) -> Result<Vec<(String, Op)>, Status> {
    let bad = |what: &str| Status::bad_request(format!("unable to parse requirement: {what} (in {text:?})"));
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (requirement, after) = requirement(rest, &bad)?;
        out.push(requirement);
        rest = after.trim_start();
        if let Some(next) = rest.strip_prefix(',') {
            rest = next.trim_start();
            if rest.is_empty() {
                return Err(bad("found '', expected: identifier after ','"));
            }
        } else if !rest.is_empty() {
            return Err(bad(&format!("found {rest:?}, expected: ',' or end of string")));
        }
    }
    Ok(out)
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_whitespace() || "=!,()<>".contains(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn requirement<'a>(text: &'a str, bad: &dyn Fn(&str) -> Status) -> Result<((String, Op), &'a str), Status> {
    let (absent, text) = match text.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    let (key, rest) = word(text);
    if key.is_empty() {
        return Err(bad("found '', expected: !, identifier, or 'end of string'"));
    }
    let rest = rest.trim_start();
    let key = key.to_owned();
    if absent {
        return Ok(((key, Op::Absent), rest));
    }
    if rest.is_empty() || rest.starts_with(',') {
        return Ok(((key, Op::Exists), rest));
    }
    for (sign, equal) in [("==", true), ("!=", false), ("=", true)] {
        if let Some(after) = rest.strip_prefix(sign) {
            let (value, after) = word(after.trim_start());
            let values = vec![value.to_owned()];
            return Ok(((key, if equal { Op::In(values) } else { Op::NotIn(values) }), after));
        }
    }
    for (sign, greater) in [(">", true), ("<", false)] {
        if let Some(after) = rest.strip_prefix(sign) {
            let (value, after) = word(after.trim_start());
            let n = value
                .parse()
                .map_err(|_| bad(&format!("{value:?}: for 'Gt', 'Lt' operators, the value must be an integer")))?;
            return Ok(((key, if greater { Op::Greater(n) } else { Op::Less(n) }), after));
        }
    }
    let (name, after) = word(rest);
    let listed = after.trim_start().strip_prefix('(').and_then(|inner| inner.split_once(')'));
    match (name, listed) {
        ("in" | "notin", Some((inner, after))) => {
            let values = inner.split(',').map(|v| v.trim().to_owned()).collect();
            Ok(((key, if name == "in" { Op::In(values) } else { Op::NotIn(values) }), after))
        }
        _ => Err(bad(&format!("found {name:?}, expected: in, notin, =, ==, !=, gt, lt"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(selector: &str, object: &Value) -> bool {
        Selector::parse(selector, "").expect(selector).matches(object)
    }

    #[test]
    fn label_selectors() {
        let o = json!({"metadata": {"name": "x", "labels": {"a": "b", "n": "5", "e": ""}}});
        for yes in [
            "",
            "a=b",
            "a==b",
            "a",
            "!c",
            "a!=c",
            "c!=d",
            "a in (b,c)",
            "a notin (c)",
            "c notin (b)",
            "a=b,n",
            "n>4",
            "n<6",
            "e=",
            "a in (b, c) , !z",
            "e",
        ] {
            assert!(labels(yes, &o), "{yes}");
        }
        for no in ["a=c", "c", "!a", "a!=b", "a in (c)", "c in (b)", "a notin (b)", "a=b,c", "n>5", "a>1"] {
            assert!(!labels(no, &o), "{no}");
        }
        for bad in ["a in b", "a b", "=b", "a=b,", "a in (b", "n>x", "a=b c"] {
            assert_eq!(Selector::parse(bad, "").expect_err(bad).code(), 400, "{bad}");
        }
    }

    #[test]
    fn field_selectors() {
        let o = json!({"metadata": {"name": "x", "namespace": "n"}, "spec": {"nodeName": null}, "count": 3});
        let fields = |s: &str| Selector::parse("", s).expect(s).matches(&o);
        for yes in ["metadata.name=x", "metadata.name==x,metadata.namespace!=m", "spec.nodeName=", "count=3", "no="] {
            assert!(fields(yes), "{yes}");
        }
        for no in ["metadata.name=y", "metadata.name!=x", "spec.nodeName!="] {
            assert!(!fields(no), "{no}");
        }
        assert!(Selector::parse("", "metadata.name").is_err());
        let mut s = Selector::parse("", "regarding.name=x").expect("reads");
        s.resolve(|p| (p == "regarding.name").then_some("metadata.name")).expect("known");
        assert!(s.matches(&o));
        assert_eq!(s.resolve(|_| None).expect_err("unknown").code(), 400);
    }
}
