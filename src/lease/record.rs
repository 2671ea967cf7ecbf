//! One Lease as it was read. Reading never fails: what is missing or odd is an answer too.

use super::notes::{
    CHECKPOINT, CheckpointNote, HOLDER, HolderNote, LAYOUT, LONGEST, LayoutNote, MADE, MadeNote, Note, RELEASE,
    ReleaseNote,
};
use crate::leader::Saved;
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The leaseDurationSeconds that is no duration and binds none of us (rule S4).
pub const FOREVER: i64 = 2_147_483_647;

/// The fields by which a holding is told from another, as they stand in the Lease.
///
/// Two specs that are equal are the same write (rule S4: silence is judged by uid and spec). The times are kept as
/// text: they are compared, shown and repeated, never trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// Who holds it; empty where nobody does.
    pub holder: String,
    /// leaseDurationSeconds.
    pub duration: Option<i64>,
    /// leaseTransitions; 0 where it is missing.
    pub transitions: i64,
    /// acquireTime as it stands.
    pub acquire_time: Option<String>,
    /// renewTime as it stands.
    pub renew_time: Option<String>,
}

impl Spec {
    fn of(value: Option<&Value>) -> Self {
        let text = |key: &str| value?.get(key)?.as_str().map(str::to_owned);
        let number = |key: &str| value?.get(key)?.as_i64();
        Self {
            holder: text("holderIdentity").unwrap_or_default(),
            duration: number("leaseDurationSeconds"),
            transitions: number("leaseTransitions").unwrap_or(0),
            acquire_time: text("acquireTime"),
            renew_time: text("renewTime"),
        }
    }

    /// renewTime as a point in time, where it is one.
    pub fn renewed(&self) -> Option<Timestamp> {
        self.renew_time.as_deref()?.parse().ok()
    }

    /// The duration that a foreign holder's spec binds us to: none where it is missing, not above zero, or
    /// [`FOREVER`]; at most 24 h.
    pub fn foreign_duration(&self) -> Duration {
        match self.duration {
            Some(s) if s > 0 && s != FOREVER => Duration::from_secs(s.unsigned_abs()).min(LONGEST),
            _ => Duration::ZERO,
        }
    }
}

/// A Lease at one resourceVersion.
#[derive(Debug, Clone)]
pub struct Record {
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion as a number.
    pub revision: u64,
    /// The spec.
    pub spec: Spec,
    /// Our annotations, as far as they can be read.
    pub holder_note: Note<HolderNote>,
    /// The release record.
    pub release_note: Note<ReleaseNote>,
    /// The stamp of one of us who made it.
    pub made_note: Note<MadeNote>,
    /// The layout, in a layout Lease.
    pub layout_note: Note<LayoutNote>,
    /// The checkpoint.
    pub saved: Option<Saved>,
    /// All of it, for the next write.
    pub object: Arc<DynamicObject>,
}

impl Record {
    /// Reads a Lease. One without a resourceVersion that is a number gets revision 0, which no write is decided on.
    pub fn of(object: DynamicObject) -> Self {
        let meta = &object.metadata;
        let annotation = |key: &str| meta.annotations.as_ref()?.get(key).map(String::as_str);
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            revision: meta.resource_version.as_deref().and_then(|v| v.parse().ok()).unwrap_or(0),
            spec: Spec::of(object.data.get("spec")),
            holder_note: Note::read(annotation(HOLDER)),
            release_note: Note::read(annotation(RELEASE)),
            made_note: Note::read(annotation(MADE)),
            layout_note: Note::read(annotation(LAYOUT)),
            saved: Note::<CheckpointNote>::read(annotation(CHECKPOINT)).known().map(CheckpointNote::saved),
            object: Arc::new(object),
        }
    }

    /// Whether anybody holds it.
    pub fn is_held(&self) -> bool {
        !self.spec.holder.is_empty()
    }

    /// The annotation that vouches for the holder: it counts only while it repeats holderIdentity (design 5.2), since
    /// client-go keeps annotations it does not know.
    pub fn vouched(&self) -> Option<&HolderNote> {
        self.holder_note.known().filter(|n| self.is_held() && n.holder == self.spec.holder)
    }

    /// Whether the holder's annotation is of a later format than this code knows: then it is one of us, and nothing
    /// else is concluded from it. Like ours it counts only while it repeats holderIdentity: client-go keeps it too.
    pub fn is_of_later_format(&self) -> bool {
        let Note::Later { holder, .. } = &self.holder_note else { return false };
        self.is_held() && holder.as_ref().is_none_or(|h| *h == self.spec.holder)
    }

    /// Whether a client-go program, by its own rules, holds it.
    pub fn is_foreign(&self) -> bool {
        self.is_held() && self.vouched().is_none() && !self.is_of_later_format() && self.retired().is_none()
    }

    /// The release record that counts: one that repeats the leaseTransitions and renewTime of the release, while both
    /// still stand in the spec and nobody holds it.
    pub fn released(&self) -> Option<&ReleaseNote> {
        self.release_note.known().filter(|n| {
            !self.is_held()
                && n.lease_transitions == self.spec.transitions
                && self.spec.renew_time.as_deref() == Some(n.renew_time.as_str())
        })
    }

    /// The generation in which it was retired (design 6.4).
    pub fn retired(&self) -> Option<u64> {
        self.spec.holder.strip_prefix("retired-")?.parse().ok()
    }

    /// One of us made it and nobody has held it since.
    pub fn is_fresh(&self) -> bool {
        !self.is_held() && self.spec.transitions == 0 && self.made_note.known().is_some()
    }

    /// The longest duration that anything in it says, for whoever must not be quicker than a holder it can't see.
    pub fn longest(&self) -> Duration {
        let notes = [
            self.holder_note.known().map(|n| n.lease_duration_seconds),
            self.release_note.known().map(|n| n.lease_duration_seconds),
            self.made_note.known().map(|n| n.lease_duration_seconds),
        ];
        let ours = notes.into_iter().flatten().max().unwrap_or(0);
        Duration::from_secs(u64::from(ours)).min(LONGEST).max(self.spec.foreign_duration())
    }
}
