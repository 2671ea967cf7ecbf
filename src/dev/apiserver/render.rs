//! Answers as bytes, in the form that the client asked for.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value};

use super::kinds::Resource;
use super::object::{Object, to_bytes};
use super::ops::Page;
use super::request::Call;
use super::watch::frame;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects themselves.
    Plain,
}

impl Form {
    /// The form that a call asks for.
    pub(crate) fn of(_call: &Call) -> Self {
        Self::Plain
    }

    /// One object.
    pub(crate) fn object(self, _resource: &Resource, object: &Object) -> Bytes {
        object.json().clone()
    }

    /// An object that is not stored.
    pub(crate) fn value(self, _resource: &Resource, value: &Value) -> Bytes {
        to_bytes(value)
    }

    /// A page of a collection. The items' bytes were made when they were first read and are copied here.
    pub(crate) fn page(self, resource: &Resource, page: &Page) -> Bytes {
        let size: usize = page.items.iter().map(|o| o.json().len() + 1).sum();
        let mut out = BytesMut::with_capacity(size + 256);
        let mut meta = Map::new();
        meta.insert("resourceVersion".into(), page.revision.to_string().into());
        if let Some(token) = &page.continue_token {
            meta.insert("continue".into(), token.clone().into());
        }
        if let Some(n) = page.remaining {
            meta.insert("remainingItemCount".into(), n.into());
        }
        out.put_slice(
            format!("{{\"kind\":{:?},\"apiVersion\":{:?},\"metadata\":", resource.list_kind, resource.api_version())
                .as_bytes(),
        );
        out.put_slice(Value::Object(meta).to_string().as_bytes());
        out.put_slice(b",\"items\":[");
        for (i, item) in page.items.iter().enumerate() {
            if i > 0 {
                out.put_u8(b',');
            }
            out.put_slice(item.json());
        }
        out.put_slice(b"]}");
        out.freeze()
    }

    /// One event of a watch.
    pub(crate) fn event(self, kind: &str, _resource: &Resource, object: &Object) -> Bytes {
        frame::event(kind, object.json())
    }
}
