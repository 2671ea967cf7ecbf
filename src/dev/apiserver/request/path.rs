//! Paths: `/api/v1/..` and `/apis/GROUP/VERSION/..`, split into their parts.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A path below a group and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) sub: Option<String>,
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    /// A resource, or one of its objects.
    Resource(ResourcePath),
    /// Everything else: discovery, health, documents; the parts of the path.
    Other(Vec<String>),
}

/// Splits a path. A part that is not UTF-8 once decoded gives none.
pub(crate) fn parse(path: &str) -> Option<Path> {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|p| !p.is_empty()) {
        parts.push(percent_decode_str(part).decode_utf8().map(Cow::into_owned).ok()?);
    }
    let (group, version, rest) = match parts.as_slice() {
        [api, version, rest @ ..] if api == "api" && !rest.is_empty() => (String::new(), version.clone(), rest),
        [apis, group, version, rest @ ..] if apis == "apis" && !rest.is_empty() => {
            (group.clone(), version.clone(), rest)
        }
        _ => return Some(Path::Other(parts)),
    };
    let make = |namespace: Option<&String>, plural: &str, name: Option<&String>, sub: Option<&String>| {
        Some(Path::Resource(ResourcePath {
            group: group.clone(),
            version: version.clone(),
            plural: plural.to_owned(),
            namespace: namespace.cloned(),
            name: name.cloned(),
            sub: sub.cloned(),
        }))
    };
    match rest {
        // A namespace is an object too, and its sub-resources are not kinds within it.
        [nss, ns, sub] if nss == "namespaces" && (sub == "status" || sub == "finalize") => {
            make(None, "namespaces", Some(ns), Some(sub))
        }
        [nss, ns, plural] if nss == "namespaces" => make(Some(ns), plural, None, None),
        [nss, ns, plural, name] if nss == "namespaces" => make(Some(ns), plural, Some(name), None),
        [nss, ns, plural, name, sub] if nss == "namespaces" => make(Some(ns), plural, Some(name), Some(sub)),
        [plural] => make(None, plural, None, None),
        [plural, name] => make(None, plural, Some(name), None),
        [plural, name, sub] => make(None, plural, Some(name), Some(sub)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn res(path: &str) -> (String, String, Option<String>, Option<String>, Option<String>) {
        match parse(path) {
            Some(Path::Resource(r)) => (format!("{}/{}", r.group, r.version), r.plural, r.namespace, r.name, r.sub),
            other => panic!("{path}: {other:?}"),
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "it stands where options stand")]
    fn some(x: &str) -> Option<String> {
        Some(x.to_owned())
    }

    #[test]
    fn resources() {
        assert_eq!(res("/api/v1/namespaces"), ("/v1".into(), "namespaces".into(), None, None, None));
        assert_eq!(res("/api/v1/namespaces/a"), ("/v1".into(), "namespaces".into(), None, some("a"), None));
        assert_eq!(
            res("/api/v1/namespaces/a/status"),
            ("/v1".into(), "namespaces".into(), None, some("a"), some("status"))
        );
        assert_eq!(res("/api/v1/namespaces/a/configmaps"), ("/v1".into(), "configmaps".into(), some("a"), None, None));
        assert_eq!(
            res("/apis/coordination.k8s.io/v1/namespaces/a/leases/b.c"),
            ("coordination.k8s.io/v1".into(), "leases".into(), some("a"), some("b.c"), None)
        );
        assert_eq!(res("/apis/x.io/v1/widgets"), ("x.io/v1".into(), "widgets".into(), None, None, None));
        assert_eq!(
            res("/apis/x.io/v1/namespaces/a/widgets/w/status"),
            ("x.io/v1".into(), "widgets".into(), some("a"), some("w"), some("status"))
        );
        assert_eq!(res("/api/v1/namespaces/a%2Fb").3, some("a/b"));
    }

    #[test]
    fn others() {
        assert_eq!(parse("/api"), Some(Path::Other(vec!["api".into()])));
        assert_eq!(parse("/apis/g/v1"), Some(Path::Other(vec!["apis".into(), "g".into(), "v1".into()])));
        assert_eq!(parse("/"), Some(Path::Other(vec![])));
        assert_eq!(parse("/api/v1/a/b/c/d/e/f"), None);
        assert_eq!(parse("/api/v1/%ff"), None);
    }
}
