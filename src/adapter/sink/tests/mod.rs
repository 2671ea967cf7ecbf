//! The sink against servers on loopback that answer as they are told to.

mod delivery;
mod overrides;
mod retry;

use super::*;
use crate::adapter::testing::install_tls;
use crate::clock::Boottime;
use cloudevents::{EventBuilder, EventBuilderV10};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A sink in namespace `src-ns`, without jitter.
fn sink_of(vars: &[(&str, &str)]) -> Sink {
    install_tls();
    let env = Env::from_vars([("NAMESPACE", "src-ns")].iter().chain(vars).copied()).unwrap();
    Sink::new(&env, Arc::new(Boottime)).unwrap().with_retry(Retry::default().jitter(0.0))
}

fn event() -> Event {
    EventBuilderV10::new()
        .id("id-1")
        .source("/test/source")
        .ty("test.type")
        .time("2024-01-02T03:04:05.6789Z")
        .extension("existing", "old")
        .data("application/json", serde_json::json!({"x": 1}))
        .build()
        .unwrap()
}

/// `{"about", "rows"}`, as all vectors are.
#[derive(Deserialize)]
struct Vectors<R> {
    rows: Vec<R>,
}

fn rows<R: serde::de::DeserializeOwned>(json: &str) -> Vec<R> {
    serde_json::from_str::<Vectors<R>>(json).unwrap().rows
}

/// A request as Go put it on the wire.
#[derive(Deserialize)]
struct Request {
    method: String,
    target: String,
    headers: BTreeMap<String, String>,
    body_base64: String,
}
