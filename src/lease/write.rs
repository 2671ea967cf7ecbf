//! What is written into a Lease: each function here is one of the writes that the design names.
//!
//! A [`Draft`] is a whole object with the uid and resourceVersion it was decided on; what is not ours in the Lease it
//! was made from is kept.

use super::notes::{
    CHECKPOINT, CheckpointNote, HOLDER, HolderNote, LAYOUT, LayoutId, LayoutNote, MADE, MadeNote, RELEASE, ReleaseNote,
    VERSION,
};
use super::record::{FOREVER, Record, Spec};
use crate::leader::Saved;
use jiff::{SignedDuration, Timestamp};
use kube::core::{DynamicObject, TypeMeta};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The largest leaseTransitions that the API takes.
const MOST_TRANSITIONS: i64 = i32::MAX as i64;

/// A Lease to be sent: by POST if it has no resourceVersion, else by PUT.
#[derive(Debug, Clone)]
pub struct Draft {
    /// All of it.
    pub object: Box<DynamicObject>,
    /// The spec in it, to know it again.
    pub spec: Spec,
}

/// Points in time for a write: for people, except that a renewal's differs from the one before (rule S3).
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The wall clock now.
    pub wall: Timestamp,
}

impl Times {
    /// A renewTime that is later than the one that stands in the Lease, whatever the wall clock says. One that is
    /// absurdly far ahead (a person's, a broken clock's) is left behind instead: a take by another holder changes the
    /// spec anyway, and holders only ever follow their own.
    fn later_than(self, before: Option<Timestamp>) -> String {
        let micro = |t: Timestamp| Timestamp::from_microsecond(t.as_microsecond()).unwrap_or(t);
        let now = micro(self.wall);
        let at = match before {
            Some(b) if b >= now => b.checked_add(SignedDuration::from_micros(1)).unwrap_or(now),
            _ => now,
        };
        format_micro(at)
    }
}

/// RFC 3339 in UTC with six digits, as Kubernetes' MicroTime is written.
fn format_micro(t: Timestamp) -> String {
    let t = t.to_zoned(jiff::tz::TimeZone::UTC);
    format!("{}", t.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))
}

/// Whole seconds, rounded up.
fn seconds(d: Duration) -> u32 {
    u32::try_from(d.as_secs() + u64::from(d.subsec_nanos() > 0)).unwrap_or(u32::MAX)
}

fn note(value: &impl Serialize) -> String {
    // A struct of strings and numbers: serialising it into a string cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl Draft {
    fn fresh(name: &str) -> DynamicObject {
        DynamicObject {
            types: Some(TypeMeta { api_version: "coordination.k8s.io/v1".into(), kind: "Lease".into() }),
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                name: Some(name.to_owned()),
                ..Default::default()
            },
            data: json!({ "spec": {} }),
        }
    }

    fn on(base: &Record) -> DynamicObject {
        let mut object = (*base.object).clone();
        object.types = Some(TypeMeta { api_version: "coordination.k8s.io/v1".into(), kind: "Lease".into() });
        // Exactly what was decided on, also where a proxy dropped one of them from the answer (rule S3).
        object.metadata.uid = Some(base.uid.clone());
        object.metadata.resource_version = Some(base.revision.to_string());
        object
    }

    fn finish(mut object: DynamicObject, spec: Spec) -> Self {
        if !object.data.is_object() {
            object.data = json!({});
        }
        let mut fields = match object.data.get_mut("spec").map(Value::take) {
            Some(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        fields.insert("holderIdentity".into(), json!(spec.holder));
        fields.insert("leaseTransitions".into(), json!(spec.transitions));
        let mut optional = |key: &str, value: Option<Value>| match value {
            Some(value) => drop(fields.insert(key.to_owned(), value)),
            None => drop(fields.remove(key)),
        };
        optional("leaseDurationSeconds", spec.duration.map(Value::from));
        optional("acquireTime", spec.acquire_time.clone().map(Value::from));
        optional("renewTime", spec.renew_time.clone().map(Value::from));
        object.data["spec"] = Value::Object(fields);
        Self { object: Box::new(object), spec }
    }

    fn annotate(object: &mut DynamicObject, key: &str, value: Option<String>) {
        let annotations = object.metadata.annotations.get_or_insert_default();
        match value {
            Some(value) => drop(annotations.insert(key.to_owned(), value)),
            None => drop(annotations.remove(key)),
        }
    }

    fn save(object: &mut DynamicObject, saved: Option<Saved>) {
        if let Some(Saved { position, token }) = saved {
            Self::annotate(object, CHECKPOINT, Some(note(&CheckpointNote { v: VERSION, token, position })));
        }
    }

    /// An empty bucket Lease, stamped as ours, that says the longest duration that has bound under its name, and the last
    /// checkpoint that its maker saw there before it was deleted. No release record (rule S3).
    pub fn make(name: &str, longest: Duration, saved: Option<Saved>) -> Self {
        let mut object = Self::fresh(name);
        let made = MadeNote { v: VERSION, lease_duration_seconds: seconds(longest) };
        Self::annotate(&mut object, MADE, Some(note(&made)));
        Self::save(&mut object, saved);
        Self::finish(object, Spec::default())
    }

    /// A take in standard, or the adoption of what a take of unknown outcome has brought.
    pub fn take(base: &Record, me: &str, lease: Duration, layout: &LayoutId, times: Times) -> Self {
        let renew = times
            .later_than(base.spec.renewed().filter(|b| b.duration_since(times.wall) < SignedDuration::from_hours(24)));
        let again = base.spec.holder == me;
        let spec = Spec {
            holder: me.to_owned(),
            duration: Some(i64::from(seconds(lease))),
            // An int32 in Kubernetes: above it every take would be refused.
            transitions: if again {
                base.spec.transitions
            } else {
                base.spec.transitions.saturating_add(1).min(MOST_TRANSITIONS)
            },
            acquire_time: Some(renew.clone()),
            renew_time: Some(renew),
        };
        let mut object = Self::on(base);
        Self::vouch(&mut object, me, lease, layout);
        Self::annotate(&mut object, RELEASE, None);
        Self::annotate(&mut object, MADE, None);
        Self::finish(object, spec)
    }

    fn vouch(object: &mut DynamicObject, me: &str, lease: Duration, layout: &LayoutId) {
        let vouch = HolderNote {
            v: VERSION,
            holder: me.to_owned(),
            lease_duration_seconds: seconds(lease),
            layout: layout.clone(),
            member: None,
        };
        Self::annotate(object, HOLDER, Some(note(&vouch)));
    }

    /// A renewal in standard; a checkpoint rides on it.
    pub fn renew(base: &Record, lease: Duration, layout: &LayoutId, saved: Option<Saved>, times: Times) -> Self {
        let spec = Spec {
            duration: Some(i64::from(seconds(lease))),
            renew_time: Some(times.later_than(base.spec.renewed())),
            ..base.spec.clone()
        };
        let mut object = Self::on(base);
        Self::vouch(&mut object, &base.spec.holder, lease, layout);
        Self::save(&mut object, saved);
        Self::finish(object, spec)
    }

    /// A release: an empty holder and a duration of 1, as client-go writes it (`leaderelection.go`, release), with our
    /// release record and the final checkpoint.
    pub fn release(base: &Record, longest: Duration, saved: Option<Saved>, times: Times) -> Self {
        let now = times.later_than(base.spec.renewed());
        let spec = Spec {
            holder: String::new(),
            duration: Some(1),
            transitions: base.spec.transitions,
            acquire_time: Some(now.clone()),
            renew_time: Some(now.clone()),
        };
        let mut object = Self::on(base);
        let released = ReleaseNote {
            v: VERSION,
            lease_transitions: spec.transitions,
            renew_time: now,
            lease_duration_seconds: seconds(longest),
        };
        Self::annotate(&mut object, HOLDER, None);
        Self::annotate(&mut object, MADE, None);
        Self::annotate(&mut object, RELEASE, Some(note(&released)));
        Self::save(&mut object, saved);
        Self::finish(object, spec)
    }

    /// Given back by a holder that does not know whether the one before it has ended: as a release, but without a record,
    /// so that it is free only after the longest duration that may bind.
    pub fn vacate(base: &Record, longest: Duration, times: Times) -> Self {
        let now = times.later_than(base.spec.renewed());
        let spec = Spec {
            holder: String::new(),
            duration: Some(i64::from(seconds(longest)).min(FOREVER - 1)),
            transitions: base.spec.transitions,
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
        };
        let mut object = Self::on(base);
        for key in [HOLDER, MADE, RELEASE] {
            Self::annotate(&mut object, key, None);
        }
        Self::finish(object, spec)
    }

    /// `leasehold init` alone: a bucket that is there from the start with a release record.
    pub fn init(name: &str, longest: Duration, times: Times) -> Self {
        let base = Record::of(Self::fresh(name));
        let mut draft = Self::release(&base, longest, None, times);
        draft.object.metadata.uid = None;
        draft.object.metadata.resource_version = None;
        draft
    }

    /// The layout Lease, made.
    pub fn make_layout(name: &str, layout: &LayoutNote) -> Self {
        let mut object = Self::fresh(name);
        Self::annotate(&mut object, LAYOUT, Some(note(layout)));
        Self { object: Box::new(object), spec: Spec::default() }
    }

    /// The layout Lease, changed.
    pub fn change_layout(base: &Record, layout: &LayoutNote) -> Self {
        let mut object = Self::on(base);
        Self::annotate(&mut object, LAYOUT, Some(note(layout)));
        Self { object: Box::new(object), spec: base.spec.clone() }
    }
}
