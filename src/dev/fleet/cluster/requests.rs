//! Lease requests by verb, and the fleet's own share in them.

use serde::Serialize;
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many requests for Leases, by verb.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// GET of one.
    pub get: u64,
    /// GET of all.
    pub list: u64,
    /// Watches.
    pub watch: u64,
    /// POST.
    pub create: u64,
    /// PUT.
    pub update: u64,
    /// DELETE, of one or of all.
    pub delete: u64,
    /// PATCH of any kind, which replicas never send (rule S3).
    pub patch: u64,
}

impl Requests {
    /// Adds `count` requests of a verb, as audit logs and the server's metrics write verbs. Others are not counted.
    pub fn add(&mut self, verb: &str, count: u64) {
        let field = match verb.to_ascii_lowercase().as_str() {
            "get" => &mut self.get,
            "list" => &mut self.list,
            "watch" | "watchlist" => &mut self.watch,
            "create" | "post" => &mut self.create,
            "update" | "put" => &mut self.update,
            "delete" | "deletecollection" => &mut self.delete,
            "patch" | "apply" => &mut self.patch,
            _ => return,
        };
        *field = field.saturating_add(count);
    }
}

impl Sub for Requests {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            get: self.get.saturating_sub(earlier.get),
            list: self.list.saturating_sub(earlier.list),
            watch: self.watch.saturating_sub(earlier.watch),
            create: self.create.saturating_sub(earlier.create),
            update: self.update.saturating_sub(earlier.update),
            delete: self.delete.saturating_sub(earlier.delete),
            patch: self.patch.saturating_sub(earlier.patch),
        }
    }
}

/// What the fleet's own watch has asked for so far.
#[derive(Debug, Default)]
pub struct OwnRequests {
    lists: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl OwnRequests {
    pub(super) fn list(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn watch_begun(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn watch_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// As a server counts them that counts a watch when it begins.
    pub fn counted_at_begin(&self) -> Requests {
        Requests { watch: self.begun.load(Ordering::Relaxed), ..self.lists() }
    }

    /// As a server counts them that counts a watch when it ends: kube-apiserver does.
    pub fn counted_at_end(&self) -> Requests {
        Requests { watch: self.ended.load(Ordering::Relaxed), ..self.lists() }
    }

    fn lists(&self) -> Requests {
        Requests { list: self.lists.load(Ordering::Relaxed), ..Requests::default() }
    }
}
