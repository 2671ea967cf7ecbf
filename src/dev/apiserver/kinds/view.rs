//! How a resource shows what is stored in another form.
//!
//! A kind is stored in one form and may be served in several: the versions of a CRD, which differ in apiVersion only,
//! and Events, which core/v1 and events.k8s.io/v1 name differently.

use serde_json::{Map, Value};

use crate::dev::apiserver::object::object_mut;

/// The difference between what is stored and what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// None.
    Stored,
    /// The apiVersion: what is shown, and what is stored.
    Version { shown: String, stored: String },
    /// Stored as core/v1 Events, shown as those of events.k8s.io/v1.
    Events,
}

/// The fields of an Event, as events.k8s.io/v1 and as core/v1 name them.
pub(super) const EVENT_FIELDS: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

impl View {
    /// Whether what is shown is what is stored, byte for byte.
    pub(crate) fn is_stored(&self) -> bool {
        *self == Self::Stored
    }

    /// A stored object as it is shown.
    pub(crate) fn show(&self, stored: &Value) -> Value {
        let mut out = stored.clone();
        match self {
            Self::Stored => {}
            Self::Version { shown, .. } => set_version(&mut out, shown),
            Self::Events => {
                set_version(&mut out, "events.k8s.io/v1");
                let map = object_mut(&mut out);
                for (new, old) in EVENT_FIELDS {
                    rename(map, old, new);
                }
            }
        }
        out
    }

    /// A shown object as it is stored.
    pub(crate) fn store(&self, mut shown: Value) -> Value {
        match self {
            Self::Stored => {}
            Self::Version { stored, .. } => set_version(&mut shown, stored),
            Self::Events => {
                set_version(&mut shown, "v1");
                let map = object_mut(&mut shown);
                for (new, old) in EVENT_FIELDS {
                    rename(map, new, old);
                }
            }
        }
        shown
    }
}

fn set_version(value: &mut Value, version: &str) {
    object_mut(value).insert("apiVersion".into(), version.into());
}

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_go_there_and_back() {
        let shown = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "n", "type": "Normal",
            "regarding": {"kind": "Pod"}, "reportingController": "c", "deprecatedCount": 3,
        });
        let stored = View::Events.store(shown.clone());
        assert_eq!(stored["apiVersion"], "v1");
        assert_eq!((&stored["message"], &stored["involvedObject"]["kind"]), (&json!("n"), &json!("Pod")));
        assert_eq!(View::Events.show(&stored), shown);
    }
}
