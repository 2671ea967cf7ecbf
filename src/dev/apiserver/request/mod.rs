//! What a request asks for: its path, its query, its selectors, the form of answer it wants.

pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod selector;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::kinds::Resource;
pub(crate) use query::Query;

/// What a request does to a resource, in the words of Kubernetes' authorizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH, in any of its forms.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb as the authorizer and the audit log write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it may change what is stored.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A part of an object that has a path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sub {
    Status,
    /// A ServiceAccount's TokenRequest.
    Token,
}

impl Sub {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Token => "token",
        }
    }
}

/// A request for a resource, read and understood.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Who asks.
    pub(crate) client: Arc<str>,
    /// The program that asks, for managedFields.
    pub(crate) manager: String,
    pub(crate) verb: Verb,
    pub(crate) resource: Arc<Resource>,
    /// The namespace in the path; none across all of them and for what is cluster-scoped.
    pub(crate) namespace: Option<String>,
    /// The name in the path.
    pub(crate) name: Option<String>,
    /// The name in the body of a create: for rules and records.
    pub(crate) body_name: Option<String>,
    pub(crate) sub: Option<Sub>,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
    pub(crate) content_type: String,
    pub(crate) accept: String,
}

impl Call {
    /// The namespace in the path, empty where there is none.
    pub(crate) fn ns(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The name of the object that this is about, where that is known.
    pub(crate) fn about(&self) -> Option<&str> {
        self.name.as_deref().or(self.body_name.as_deref())
    }

    /// The name in the path, empty where there is none.
    pub(crate) fn named(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}
