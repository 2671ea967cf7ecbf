//! What Knative's ping adapter sends for a source (test/vectors/ping-events.json), for the tests of whatever makes the
//! event and of whatever makes a request of it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use crate::sources::ping::source::PingSource;

/// A source, and what Knative did with it.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    /// The source.
    pub(crate) source: PingSource,
    /// What stands behind `http://HOST:PORT` in the sink's URL.
    pub(crate) sink_path: String,
    /// Whether its schedule was taken.
    pub(crate) scheduled: bool,
    /// The requests: one, or none where nothing was scheduled or sent.
    requests: Vec<Request>,
    /// The result of one send; `202: ` is success.
    pub(crate) send_result: String,
}

/// A request as it was on the wire.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: String,
    /// The path and query.
    pub(crate) target: String,
    /// The headers by name, without `Ce-Id`, `Ce-Time` and `Host`.
    pub(crate) headers: BTreeMap<String, String>,
    /// The body, in base64.
    body_base64: String,
}

impl Row {
    /// What Knative sent, if it did.
    pub(crate) fn request(&self) -> Option<&Request> {
        assert!(self.requests.len() <= 1, "a source sends one event at a time");
        self.requests.first()
    }
}

impl Request {
    /// The body.
    pub(crate) fn body(&self) -> Vec<u8> {
        BASE64_STANDARD.decode(&self.body_base64).expect("the vectors' own base64")
    }

    /// The headers of extensions, named in lower case and without `Ce-`.
    pub(crate) fn extensions(&self) -> BTreeMap<String, String> {
        let extensions = self.headers.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("Ce-")?.to_ascii_lowercase();
            let attribute = ["source", "specversion", "type"].contains(&name.as_str());
            (!attribute).then(|| (name, value.clone()))
        });
        extensions.collect()
    }
}

/// All rows, in the file's order.
pub(crate) fn rows() -> Vec<Row> {
    #[derive(Deserialize)]
    struct Vectors {
        rows: Vec<Row>,
    }
    let text = include_str!("../../../../test/vectors/ping-events.json");
    serde_json::from_str::<Vectors>(text).expect("the vectors parse").rows
}
