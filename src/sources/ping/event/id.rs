//! The id of an event: the same at each sending, in whichever process.

use jiff::Timestamp;
use uuid::{Uuid, uuid};

use crate::sources::ping::source::PingSource;

/// The name space of the ids (RFC 9562, section 5.5), made up once. To change it, or what is hashed, would make every event
/// that is sent again over an update a new one.
const NAMESPACE: Uuid = uuid!("6d1c3f0e-5b0f-4c5e-9a57-2f4a3f1c7b90");

/// What the ids of one source have in common: its uid, namespace and name, each with a line break behind it, which
/// none of them can contain.
#[derive(Debug, Clone)]
pub(super) struct Ids(String);

impl Ids {
    pub(super) fn of(source: &PingSource) -> Self {
        let uid = source.metadata.uid.as_deref().unwrap_or_default();
        Self(format!("{uid}\n{}\n{}\n", source.namespace(), source.name()))
    }

    /// The id of the event scheduled at that time: a UUID of version 5 over the source and the time in RFC 3339, in UTC.
    ///
    /// A source that is deleted and made anew has another uid, and so other ids.
    pub(super) fn at(&self, scheduled: Timestamp) -> String {
        Uuid::new_v5(&NAMESPACE, format!("{}{scheduled}", self.0).as_bytes()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(namespace: &str, name: &str, uid: Option<&str>) -> PingSource {
        let mut source = PingSource::default();
        source.metadata.namespace = Some(namespace.to_owned());
        source.metadata.name = Some(name.to_owned());
        source.metadata.uid = uid.map(str::to_owned);
        source
    }

    #[test]
    fn golden() {
        // Computed with another library: uuid5 over the uid, namespace, name and time, each on a line.
        let at = "2025-06-17T12:00:00Z".parse().unwrap();
        let uid = "1f0c7a52-8f5c-4e0a-9a35-0d8e0a3a9c11";
        assert_eq!(Ids::of(&source("ns", "ping", Some(uid))).at(at), "1641af4a-936c-5ff5-ba03-6f67a5a27d38");
        assert_eq!(Ids::of(&source("ns", "ping", None)).at(at), "d4bc9ecd-2cb1-557e-a5fb-534231efa78a");
    }

    #[test]
    fn another_source_or_time_is_another_id() {
        let at: Timestamp = "2025-06-17T12:00:00Z".parse().unwrap();
        let sources = [("a", "b", None), ("a", "c", None), ("c", "b", None), ("ab", "", None), ("a", "b", Some("u"))];
        let mut ids: Vec<String> = sources
            .iter()
            .flat_map(|(namespace, name, uid)| {
                let ids = Ids::of(&source(namespace, name, *uid));
                [ids.at(at), ids.at(at + jiff::SignedDuration::from_secs(1))]
            })
            .collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
