//! Answers as bytes, in the form that the client asked for: the objects, a table of them, or their metadata.

mod age;
mod table;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value, json};

use super::kinds::Resource;
use super::object::{Object, to_bytes};
use super::ops::Page;
use super::request::Call;
use super::watch::frame;
use crate::clock::SharedClock;

/// What the answer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The objects themselves.
    Objects,
    /// Tables, as `kubectl get` prints them.
    Table(Include),
    /// Their metadata only.
    Metadata,
}

/// What a table's rows carry beside their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The form of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    of: Of,
    clock: SharedClock,
}

const METADATA_KIND: &str = "PartialObjectMetadata";
const META_VERSION: &str = "meta.k8s.io/v1";

/// The parameters of the first media type in an Accept header that this server can give.
fn wanted(accept: &str) -> Option<String> {
    for media in accept.split(',') {
        let mut parts = media.split(';').map(str::trim);
        if !matches!(parts.next(), Some("application/json" | "*/*" | "application/*")) {
            continue;
        }
        let parts: Vec<&str> = parts.collect();
        let param = |key: &str| parts.iter().find_map(|p| p.strip_prefix(key)?.strip_prefix('='));
        match param("as") {
            None => return None,
            Some(kind) if param("g") == Some("meta.k8s.io") && matches!(param("v"), Some("v1" | "v1beta1")) => {
                return Some(kind.to_owned());
            }
            Some(_) => {}
        }
    }
    None
}

impl Form {
    /// The form that a call asks for.
    pub(crate) fn of(call: &Call, clock: &SharedClock) -> Self {
        let of = match wanted(&call.accept).as_deref() {
            Some("Table") => Of::Table(match call.query.include_object.as_deref() {
                Some("None") => Include::Nothing,
                Some("Object") => Include::Object,
                _ => Include::Metadata,
            }),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Of::Metadata,
            _ => Of::Objects,
        };
        Self { of, clock: clock.clone() }
    }

    /// One object.
    pub(crate) fn object(&self, resource: &Resource, object: &Object) -> Bytes {
        match self.of {
            Of::Objects if resource.view.is_stored() => object.json().clone(),
            _ => self.value(resource, object.value()),
        }
    }

    /// An object in its stored form.
    pub(crate) fn value(&self, resource: &Resource, stored: &Value) -> Bytes {
        match self.of {
            Of::Objects => to_bytes(&resource.show(stored)),
            Of::Metadata => to_bytes(&metadata(stored)),
            Of::Table(include) => {
                let meta = json!({"resourceVersion": super::object::meta_str(stored, "resourceVersion")});
                let row = table::row(resource, stored, include, self.clock.wall());
                to_bytes(&table::table(resource, &meta, &[row], true))
            }
        }
    }

    /// A page of a collection. The items' bytes were made when they were first read and are copied here.
    pub(crate) fn page(&self, resource: &Resource, page: &Page) -> Bytes {
        let mut meta = Map::new();
        meta.insert("resourceVersion".into(), page.revision.to_string().into());
        if let Some(token) = &page.continue_token {
            meta.insert("continue".into(), token.clone().into());
        }
        if let Some(n) = page.remaining {
            meta.insert("remainingItemCount".into(), n.into());
        }
        if let Of::Table(include) = self.of {
            let now = self.clock.wall();
            let rows: Vec<Value> = page.items.iter().map(|o| table::row(resource, o.value(), include, now)).collect();
            return to_bytes(&table::table(resource, &Value::Object(meta), &rows, true));
        }
        let (kind, version) = match self.of {
            Of::Metadata => ("PartialObjectMetadataList", META_VERSION.to_owned()),
            _ => (resource.list_kind.as_str(), resource.api_version()),
        };
        let items: Vec<Bytes> = page.items.iter().map(|o| self.object(resource, o)).collect();
        let mut out = BytesMut::with_capacity(items.iter().map(|b| b.len() + 1).sum::<usize>() + 256);
        let head = format!("{{\"kind\":{kind:?},\"apiVersion\":{version:?},\"metadata\":{},", Value::Object(meta));
        out.put_slice(head.as_bytes());
        out.put_slice(b"\"items\":[");
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.put_u8(b',');
            }
            out.put_slice(item);
        }
        out.put_slice(b"]}");
        out.freeze()
    }

    /// One event of a watch; only the first of a watch needs to say what its columns are.
    pub(crate) fn event(&self, kind: &str, resource: &Resource, object: &Object) -> Bytes {
        match self.of {
            Of::Objects if resource.view.is_stored() => frame::event(kind, object.json()),
            _ => frame::event(kind, &self.value(resource, object.value())),
        }
    }

    /// A bookmark: an object that says nothing but a revision.
    pub(crate) fn bookmark(&self, resource: &Resource, revision: u64, ends_initial: bool) -> Bytes {
        let (kind, version) = match self.of {
            Of::Metadata => (METADATA_KIND, META_VERSION.to_owned()),
            _ => (resource.kind.as_str(), resource.api_version()),
        };
        frame::bookmark(kind, &version, revision, ends_initial)
    }
}

fn metadata(stored: &Value) -> Value {
    json!({"kind": METADATA_KIND, "apiVersion": META_VERSION, "metadata": stored.get("metadata")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_headers() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                       application/json";
        assert_eq!(wanted(kubectl).as_deref(), Some("Table"));
        assert_eq!(wanted("application/json"), None);
        assert_eq!(wanted("application/vnd.kubernetes.protobuf, application/json;as=Table;g=x;v=v1, */*"), None);
        assert_eq!(
            wanted("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").as_deref(),
            Some("PartialObjectMetadata")
        );
        assert_eq!(wanted(""), None);
    }
}
