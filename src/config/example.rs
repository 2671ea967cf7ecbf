//! The `_example` of a ConfigMap and its checksum (knative.dev/pkg, configmap/example.go and webhook/configmaps).
//!
//! A person who edits the explanation instead of the configuration changes nothing and wonders why. Knative's
//! webhook therefore refuses a ConfigMap whose `_example` does not match its annotation. The runtime itself never
//! looks at either.

use std::collections::BTreeMap;

use super::keys;

/// The annotation that holds the checksum.
pub const CHECKSUM_ANNOTATION: &str = "knative.dev/example-checksum";

/// An `_example` that is not the one its annotation was made for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the value of \"_example\" was changed: its checksum is {found}, the annotation {CHECKSUM_ANNOTATION} says \
     {annotated:?}; a setting belongs directly under \"data\", the example only explains it"
)]
pub struct ExampleChanged {
    /// The checksum of the value.
    pub found: String,
    /// What the annotation says.
    pub annotated: String,
}

/// The checksum of an example: CRC-32 (IEEE) in eight hexadecimal digits.
///
/// White space at both ends does not count, nor does the number of line ends (LF or CRLF) that follow one another. A
/// run of them counts as the two characters `\n`, not as a line feed: Knative's own code does that.
pub fn checksum(example: &str) -> String {
    let mut hasher = crc32fast::Hasher::new();
    let mut rest = example.trim();
    while let Some(feed) = rest.find('\n') {
        let line = &rest[..feed];
        // Only the carriage return right before a line feed belongs to it.
        hasher.update(line.strip_suffix('\r').unwrap_or(line).as_bytes());
        hasher.update(br"\n");
        rest = &rest[feed + 1..];
        while let Some(after) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) {
            rest = after;
        }
    }
    hasher.update(rest.as_bytes());
    format!("{:08x}", hasher.finalize())
}

/// The webhook's rule: where there is both an `_example` and the annotation, they match.
///
/// # Errors
/// [`ExampleChanged`] where they do not.
pub fn check_example(
    annotations: Option<&BTreeMap<String, String>>,
    data: Option<&BTreeMap<String, String>>,
) -> Result<(), ExampleChanged> {
    let annotated = annotations.and_then(|annotations| annotations.get(CHECKSUM_ANNOTATION));
    let example = data.and_then(|data| data.get(keys::EXAMPLE));
    let (Some(annotated), Some(example)) = (annotated, example) else { return Ok(()) };
    let found = checksum(example);
    if found == *annotated { Ok(()) } else { Err(ExampleChanged { found, annotated: annotated.clone() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::vectors;
    use crate::config::{Config, Env};
    use proptest::prelude::*;

    #[derive(serde::Deserialize)]
    struct Row {
        r#in: String,
        out: String,
    }

    #[test]
    fn every_row_of_the_table_has_knatives_checksum() {
        let rows: Vec<Row> = vectors(include_str!("../../test/vectors/checksum.json"));
        assert_eq!(rows.len(), 84);
        for row in rows {
            assert_eq!(checksum(&row.r#in), row.out, "{:?}", row.r#in);
        }
    }

    fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
        entries.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn only_a_pair_that_differs_is_refused() {
        let good = map([(CHECKSUM_ANNOTATION, "e8b7be43")]);
        let bad = map([(CHECKSUM_ANNOTATION, "00000000")]);
        let data = map([("_example", "a"), ("buckets", "2")]);
        assert_eq!(check_example(Some(&good), Some(&data)), Ok(()));
        assert_eq!(check_example(Some(&bad), Some(&map([("buckets", "2")]))), Ok(()));
        assert_eq!(check_example(Some(&map([])), Some(&data)), Ok(()));
        assert_eq!(check_example(None, Some(&data)), Ok(()));
        assert_eq!(check_example(Some(&bad), None), Ok(()));
        let error = check_example(Some(&bad), Some(&data)).unwrap_err().to_string();
        assert!(
            error.contains("e8b7be43") && error.contains("\"00000000\"") && error.contains("under \"data\""),
            "{error}"
        );
    }

    #[derive(serde::Deserialize)]
    struct Manifest {
        kind: String,
        metadata: Metadata,
        data: BTreeMap<String, String>,
    }

    #[derive(serde::Deserialize)]
    struct Metadata {
        name: String,
        annotations: BTreeMap<String, String>,
    }

    fn shipped() -> Manifest {
        serde_yaml::from_str(include_str!("../../config/config-leader-election.yaml")).unwrap()
    }

    #[test]
    fn the_shipped_example_has_its_checksum() {
        let shipped = shipped();
        assert_eq!((shipped.kind.as_str(), shipped.metadata.name.as_str()), ("ConfigMap", "config-leader-election"));
        assert_eq!(
            shipped.metadata.annotations.get(CHECKSUM_ANNOTATION),
            Some(&checksum(&shipped.data["_example"])),
            "run hack/example-checksum config/config-leader-election.yaml"
        );
        assert_eq!(shipped.data.len(), 1, "it configures nothing, so that applying it changes nothing");
        assert_eq!(check_example(Some(&shipped.metadata.annotations), Some(&shipped.data)), Ok(()));
    }

    #[test]
    fn the_shipped_example_explains_every_key_and_shows_the_defaults() {
        let example = &shipped().data["_example"];
        let settings: BTreeMap<String, String> = serde_yaml::from_str(example).unwrap();
        let current = keys::TIMING.map(|(_, current)| current);
        for key in current.into_iter().chain([keys::BUCKETS]).chain(keys::OWN) {
            assert!(settings.contains_key(key), "{key}");
        }
        assert!(example.contains("map-lease-prefix.<component>.<queue>"));
        let shown = Config::from_config_map(Some(&settings), &Env::default()).unwrap();
        assert_eq!(shown.warnings, []);
        let mut default = Config::from_config_map(None, &Env::default()).unwrap().config;
        default.foreign_grace = Some(default.effective_foreign_grace());
        default.checkpoint_interval = Some(default.effective_checkpoint_interval());
        assert_eq!(shown.config, default);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_edges_do_not_count(text in any::<String>()) {
            prop_assert_eq!(checksum(&format!(" \n{text}\r\n\t")), checksum(&text));
        }
    }
}
