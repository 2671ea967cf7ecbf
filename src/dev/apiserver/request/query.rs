//! The query of a request, read once.

use http::StatusCode;
use serde_json::json;

use super::selector::Selector;
use crate::dev::apiserver::status::Status;

/// How a resourceVersion in a list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
}

/// What unknown fields in a body lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The options of all verbs. Those that a verb does not know are ignored, as upstream does.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Query {
    pub(crate) watch: bool,
    pub(crate) resource_version: Option<u64>,
    pub(crate) version_match: Option<Match>,
    pub(crate) selector: Selector,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: Option<String>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) dry_run: bool,
    pub(crate) field_manager: Option<String>,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: bool,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) include_object: Option<String>,
}

fn flag(value: &str) -> bool {
    // As Go's conversion of a query to a bool has it: "", "false" and "0" are false, all else is true.
    !matches!(value, "false" | "0")
}

impl Query {
    /// Reads the query of a URI.
    ///
    /// # Errors
    /// 400 where an option cannot be read, 422 where a dryRun or a match is not one of the known ones.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, Status> {
        let mut q = Self::default();
        let (mut labels, mut fields) = (String::new(), String::new());
        for (key, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*key {
                "watch" => q.watch = flag(&value),
                "resourceVersion" => q.resource_version = version(&value)?,
                "resourceVersionMatch" => {
                    q.version_match = match &*value {
                        "" => None,
                        "Exact" => Some(Match::Exact),
                        "NotOlderThan" => Some(Match::NotOlderThan),
                        other => {
                            return Err(options_invalid(
                                "resourceVersionMatch",
                                other,
                                "supported values: \"Exact\", \"NotOlderThan\", \"\"",
                            ));
                        }
                    }
                }
                "labelSelector" => labels = value.into_owned(),
                "fieldSelector" => fields = value.into_owned(),
                "limit" => q.limit = number(&key, &value)?.filter(|n| *n > 0),
                "continue" => q.continue_token = Some(value.into_owned()).filter(|t| !t.is_empty()),
                "timeoutSeconds" => q.timeout_seconds = number(&key, &value)?.filter(|n| *n > 0),
                "allowWatchBookmarks" => q.bookmarks = flag(&value),
                "sendInitialEvents" => q.send_initial_events = Some(flag(&value)),
                "dryRun" => match &*value {
                    "All" => q.dry_run = true,
                    "" => {}
                    other => return Err(options_invalid("dryRun", other, "supported values: \"All\"")),
                },
                "fieldManager" => q.field_manager = Some(value.into_owned()).filter(|m| !m.is_empty()),
                "fieldValidation" => {
                    q.field_validation = match &*value {
                        "" | "Warn" => FieldValidation::Warn,
                        "Ignore" => FieldValidation::Ignore,
                        "Strict" => FieldValidation::Strict,
                        other => {
                            return Err(options_invalid(
                                "fieldValidation",
                                other,
                                "supported values: \"Ignore\", \"Strict\", \"Warn\"",
                            ));
                        }
                    }
                }
                "force" => q.force = flag(&value),
                "propagationPolicy" => q.propagation_policy = Some(value.into_owned()).filter(|p| !p.is_empty()),
                "includeObject" => q.include_object = Some(value.into_owned()),
                _ => {}
            }
        }
        q.selector = Selector::parse(&labels, &fields)?;
        Ok(q)
    }
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<Option<T>, Status> {
    if value.is_empty() {
        return Ok(None);
    }
    value
        .parse()
        .map(Some)
        .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax (option {key})")))
}

/// A resourceVersion: none where it is empty.
pub(crate) fn version(value: &str) -> Result<Option<u64>, Status> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| {
        Status::bad_request(format!(
            "resourceVersion: Invalid value: {value:?}: strconv.ParseUint: parsing {value:?}: invalid syntax"
        ))
    })
}

fn options_invalid(field: &str, value: &str, detail: &str) -> Status {
    Status::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        format!("options is invalid: {field}: Unsupported value: {value:?}: {detail}"),
    )
    .with_causes(vec![json!({
        "reason": "FieldValueNotSupported", "field": field,
        "message": format!("Unsupported value: {value:?}: {detail}"),
    })])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_clients_send() {
        let q = Query::parse(Some(
            "watch=true&resourceVersion=12&allowWatchBookmarks=1&timeoutSeconds=290&labelSelector=a%3Db&limit=5",
        ))
        .expect("reads");
        assert!(q.watch && q.bookmarks);
        assert_eq!((q.resource_version, q.timeout_seconds, q.limit), (Some(12), Some(290), Some(5)));
        assert!(!Query::parse(Some("watch=false")).expect("reads").watch);
        assert_eq!(Query::parse(None).expect("reads").resource_version, None);
    }

    #[test]
    fn refuses_nonsense() {
        for bad in ["resourceVersion=abc", "resourceVersion=-1", "limit=x", "timeoutSeconds=1.5"] {
            assert_eq!(Query::parse(Some(bad)).expect_err(bad).code(), 400, "{bad}");
        }
        for bad in ["dryRun=Some", "resourceVersionMatch=x", "fieldValidation=x"] {
            assert_eq!(Query::parse(Some(bad)).expect_err(bad).code(), 422, "{bad}");
        }
    }
}
