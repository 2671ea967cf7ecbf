//! The sources of a run: PingSources that tick every second, as a file for `leasehold ping`, and as names to know
//! their events by.

use std::collections::HashMap;
use std::fmt::Write as _;

/// The sources of a run, numbered from 0.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    namespace: String,
    count: u32,
    /// By the `source` attribute of their events.
    numbers: HashMap<String, u32>,
}

impl Sources {
    /// `count` of them in `namespace`.
    pub(super) fn new(namespace: &str, count: u32) -> Self {
        let numbers = (0..count).map(|n| (event_source(namespace, n), n)).collect();
        Self { namespace: namespace.to_owned(), count, numbers }
    }

    /// The number of the source that sends events with this `source` attribute.
    pub(super) fn number(&self, event_source: &str) -> Option<u32> {
        self.numbers.get(event_source).copied()
    }

    /// The manifests: one YAML document for each. `sink` stands in each too, as PingSource's schema wants.
    pub(super) fn manifests(&self, sink: &str) -> String {
        let mut text = String::new();
        for n in 0..self.count {
            let (namespace, name) = (&self.namespace, name(n));
            // Nothing here needs quoting but the schedule: names are DNS labels, the sink is a URL of ours.
            let _ = write!(
                text,
                "---\napiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata:\n  name: {name}\n  namespace: \
                 {namespace}\nspec:\n  schedule: \"* * * * * *\"\n  contentType: application/json\n  data: \
                 '{{\"source\":{n}}}'\n  sink:\n    uri: {sink}\n"
            );
        }
        text
    }
}

fn name(n: u32) -> String {
    format!("ping-{n:04}")
}

/// The `source` attribute of a PingSource's events, as Knative's ping adapter writes it.
fn event_source(namespace: &str, n: u32) -> String {
    format!("/apis/v1/namespaces/{namespace}/pingsources/{}", name(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize as _;

    #[test]
    fn the_manifests_are_what_the_events_come_from() {
        let sources = Sources::new("here", 3);
        let text = sources.manifests("http://127.0.0.1:1/");
        let documents: Vec<serde_json::Value> = serde_yaml::Deserializer::from_str(&text)
            .map(|document| serde_json::Value::deserialize(document).unwrap())
            .collect();
        assert_eq!(documents.len(), 3);
        for (n, document) in (0_u32..).zip(&documents) {
            let of = |pointer| document.pointer(pointer).and_then(serde_json::Value::as_str).unwrap().to_owned();
            let source =
                format!("/apis/v1/namespaces/{}/pingsources/{}", of("/metadata/namespace"), of("/metadata/name"));
            assert_eq!(sources.number(&source), Some(n));
            assert_eq!(of("/spec/schedule"), "* * * * * *");
            assert_eq!(of("/spec/sink/uri"), "http://127.0.0.1:1/");
            assert_eq!(of("/spec/data"), format!("{{\"source\":{n}}}"));
        }
    }

    #[test]
    fn other_events_have_no_number() {
        let sources = Sources::new("here", 3);
        assert_eq!(sources.number("/apis/v1/namespaces/here/pingsources/ping-0003"), None);
        assert_eq!(sources.number("/apis/v1/namespaces/there/pingsources/ping-0000"), None);
    }
}
