//! The lines of a watch.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::dev::apiserver::status::Status;

/// One event: its type and the bytes of its object.
pub(crate) fn event(kind: &str, object: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(object.len() + 32);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
    out.freeze()
}

/// An ERROR event.
pub(crate) fn error(status: &Status) -> Bytes {
    event("ERROR", status.to_value().to_string().as_bytes())
}

/// A bookmark: an object that says nothing but a revision.
pub(crate) fn bookmark(kind: &str, api_version: &str, revision: u64, ends_initial: bool) -> Bytes {
    let mut object = json!({
        "kind": kind, "apiVersion": api_version,
        "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null},
    });
    if ends_initial {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    event("BOOKMARK", Value::to_string(&object).as_bytes())
}
