//! Names, label keys and values: the formats of k8s.io/apimachinery's `util/validation`.

/// What a kind's names may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS subdomain: most kinds.
    Subdomain,
    /// A DNS label: namespaces.
    Label,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn is_label(s: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let b = s.as_bytes();
    b.first().is_some_and(edge) && b.last().is_some_and(edge) && b.iter().all(|c| edge(c) || *c == b'-')
}

fn is_word(s: &str) -> bool {
    let b = s.as_bytes();
    b.first().is_some_and(u8::is_ascii_alphanumeric)
        && b.last().is_some_and(u8::is_ascii_alphanumeric)
        && b.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// What is wrong with a DNS subdomain; empty where nothing is.
pub(crate) fn subdomain(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    if s.len() > 253 {
        out.push(too_long(253));
    }
    if !s.split('.').all(is_label) {
        out.push(SUBDOMAIN.to_owned());
    }
    out
}

/// What is wrong with a DNS label; empty where nothing is.
pub(crate) fn label(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    if s.len() > 63 {
        out.push(too_long(63));
    }
    if !is_label(s) {
        out.push(LABEL.to_owned());
    }
    out
}

/// What is wrong with a qualified name, `name` or `prefix/name`, as labels and annotations have for keys.
pub(crate) fn qualified(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (prefix, name) = match s.split_once('/') {
        None => (None, s),
        Some((_, name)) if name.contains('/') => {
            out.push(
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                 with an alphanumeric character with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
                    .to_owned(),
            );
            return out;
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        Some("") => out.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => out.extend(subdomain(prefix).into_iter().map(|m| format!("prefix part {m}"))),
        None => {}
    }
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        out.push(format!("name part {}", too_long(63)));
    }
    if !is_word(name) {
        out.push(QUALIFIED.to_owned());
    }
    out
}

/// What is wrong with a label's value; empty where nothing is.
pub(crate) fn label_value(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    if s.len() > 63 {
        out.push(too_long(63));
    }
    if !s.is_empty() && !is_word(s) {
        out.push(LABEL_VALUE.to_owned());
    }
    out
}

impl NameRule {
    /// What is wrong with a name; of a generateName (`prefix`) the end is not judged, since more follows.
    pub(crate) fn check(self, name: &str, prefix: bool) -> Vec<String> {
        let masked;
        let name = if prefix && name.ends_with('-') && name.len() > 1 {
            masked = format!("{}a", &name[..name.len() - 1]);
            &masked
        } else {
            name
        };
        match self {
            Self::Subdomain => subdomain(name),
            Self::Label => label(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdomains() {
        for ok in ["a", "a.b", "a-b.c", "0", "component.queue.00-of-10", &"a".repeat(253)] {
            assert!(subdomain(ok).is_empty(), "{ok}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", ".a", "a.", "a..b", "a/b", "ä", &"a".repeat(254)] {
            assert!(!subdomain(bad).is_empty(), "{bad}");
        }
    }

    #[test]
    fn keys_and_values() {
        for ok in ["a", "A_b.c", "example.com/name"] {
            assert!(qualified(ok).is_empty(), "{ok}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "-a", "EXAMPLE.com/a"] {
            assert!(!qualified(bad).is_empty(), "{bad}");
        }
        assert!(label_value("").is_empty() && label_value("A_b.c-1").is_empty());
        assert!(!label_value("a b").is_empty() && !label_value(&"a".repeat(64)).is_empty());
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        assert!(NameRule::Subdomain.check("a-", true).is_empty());
        assert!(!NameRule::Subdomain.check("a-", false).is_empty());
    }
}
