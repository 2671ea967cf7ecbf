//! The extensions that a source sets on its events, checked before any event is made.

use std::collections::BTreeMap;

use super::error::Problem;

/// The attributes of CloudEvents 1.0.2, none of which an extension may replace.
const ATTRIBUTES: [&str; 8] =
    ["datacontenttype", "dataschema", "id", "source", "specversion", "subject", "time", "type"];

/// The extensions with their names in lower case, as CloudEvents spells them, and what is wrong with the others.
///
/// Refused is what Knative's sender refuses at each event: a name that is empty or has anything but ASCII letters and
/// digits, a name of an attribute, and a value that no header can carry; and two names that become one.
pub(super) fn checked(extensions: &BTreeMap<String, String>) -> (BTreeMap<String, String>, Vec<Problem>) {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    let mut good = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, value) in extensions {
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            problems.push(Problem::ExtensionName { name: name.clone() });
        } else if ATTRIBUTES.contains(&lower.as_str()) {
            problems.push(Problem::Attribute { name: name.clone() });
        } else if value.chars().any(|c| c.is_ascii_control() && c != '\t') {
            problems.push(Problem::ExtensionValue { name: name.clone(), value: value.clone() });
        } else if let Some(first) = taken.insert(lower.clone(), name) {
            problems.push(Problem::ExtensionTwice { first: first.to_owned(), second: name.clone() });
        } else {
            good.insert(lower, value.clone());
        }
    }
    (good, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_lower_case_and_only_once() {
        let given = |pairs: &[(&str, &str)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let (good, problems) = checked(&given(&[("MyExt", "a\tb"), ("data", "ü"), ("1", "")]));
        assert_eq!(good, given(&[("myext", "a\tb"), ("data", "ü"), ("1", "")]));
        assert_eq!(problems, []);

        let (good, problems) =
            checked(&given(&[("Ext", "1"), ("ext", "2"), ("a-b", ""), ("TYPE", ""), ("x", "\u{7f}"), ("ok", "")]));
        assert_eq!(
            good,
            given(&[("Ext", "1"), ("ok", "")])
                .into_iter()
                .map(|(n, v): (String, String)| (n.to_lowercase(), v))
                .collect()
        );
        let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                r#"spec.ceOverrides.extensions "TYPE": an attribute of CloudEvents, which no extension may replace"#,
                r#"spec.ceOverrides.extensions "a-b": the name of an extension has letters a to z and digits only"#,
                r#"spec.ceOverrides.extensions "Ext" and "ext": the same in lower case: keep one"#,
                r#"spec.ceOverrides.extensions "x": the value "\u{7f}" has a control character"#,
            ]
        );
    }
}
