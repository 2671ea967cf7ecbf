//! A Lease as it stood, read here without the code that is judged.

use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// No duration that stands in a Lease binds longer.
const LONGEST: Duration = Duration::from_hours(24);
/// The leaseDurationSeconds that is no duration.
const FOREVER: u64 = 2_147_483_647;

#[derive(Clone, PartialEq, Eq, Default)]
pub struct Version {
    pub name: String,
    pub uid: String,
    pub revision: u64,
    pub holder: String,
    pub transitions: u64,
    pub acquired: String,
    pub renewed: String,
    /// leaseDurationSeconds, where it is one.
    pub spec_duration: Duration,
    /// One of us vouches for the holder.
    pub vouch: Option<Vouch>,
    /// Nobody holds it, and a release record that counts says so.
    pub released: bool,
    /// One of us made it, and nobody has held it since.
    pub fresh: bool,
    /// The longest duration that anything in it says.
    pub longest: Duration,
    /// What a layout Lease says.
    pub layout: Option<LayoutView>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vouch {
    pub duration: Duration,
    pub layout: LayoutRef,
}

/// A layout: the uid of its Lease and the generation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LayoutRef(pub String, pub u64);

/// How a queue is cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    pub buckets: u32,
    /// `knative` or `ring`.
    pub hash: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutView {
    pub id: LayoutRef,
    pub open: bool,
    pub cut: Cut,
    pub era: u32,
    pub longest: Duration,
}

/// Short: it stands in every line of a failure, and in the hash of a run.
impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} of {} by {:?}", self.name, self.revision, self.uid, self.holder)
    }
}

fn seconds(value: Option<&Value>) -> Duration {
    let secs = value.and_then(Value::as_u64).unwrap_or(0);
    Duration::from_secs(if secs == FOREVER { 0 } else { secs }).min(LONGEST)
}

impl Version {
    pub fn of(lease: &Value) -> Self {
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let note = |name: &str| -> Option<Value> {
            let text = lease.pointer("/metadata/annotations")?.get(name)?.as_str()?;
            serde_json::from_str(text).ok().filter(|n: &Value| n["v"].is_u64())
        };
        let holder = text("/spec/holderIdentity");
        let transitions = lease.pointer("/spec/leaseTransitions").and_then(Value::as_u64).unwrap_or(0);
        let renewed = text("/spec/renewTime");
        let [vouch, release, made, layout] =
            ["holder", "release", "made", "layout"].map(|n| note(&format!("leasehold.dev/{n}")));
        // Of a later format only that it is one is understood.
        let said = |n: &Option<Value>| {
            seconds(n.as_ref().filter(|n| n["v"].as_u64() == Some(1)).and_then(|n| n.get("leaseDurationSeconds")))
        };
        let spec_duration = seconds(lease.pointer("/spec/leaseDurationSeconds"));
        let uid = text("/metadata/uid");
        let released = holder.is_empty()
            && release.as_ref().is_some_and(|r| {
                r["leaseTransitions"].as_u64() == Some(transitions) && r["renewTime"].as_str() == Some(&renewed)
            });
        Self {
            name: text("/metadata/name"),
            revision: text("/metadata/resourceVersion").parse().unwrap_or(0),
            transitions,
            acquired: text("/spec/acquireTime"),
            spec_duration,
            released,
            fresh: holder.is_empty() && transitions == 0 && made.is_some(),
            longest: [said(&vouch), said(&release), said(&made), spec_duration].into_iter().max().unwrap_or_default(),
            vouch: vouch.filter(|v| !holder.is_empty() && v["holder"].as_str() == Some(&holder)).map(|v| Vouch {
                duration: seconds(v.get("leaseDurationSeconds")),
                layout: LayoutRef(
                    v["layout"]["uid"].as_str().unwrap_or_default().to_owned(),
                    v["layout"]["generation"].as_u64().unwrap_or(0),
                ),
            }),
            layout: layout.map(|l| LayoutView {
                id: LayoutRef(uid.clone(), l["generation"].as_u64().unwrap_or(0)),
                open: l["open"].as_bool().unwrap_or(false),
                cut: Cut {
                    buckets: l["buckets"].as_u64().and_then(|n| n.try_into().ok()).unwrap_or(0),
                    hash: l["hash"].as_str().unwrap_or_default().to_owned(),
                },
                era: l["era"].as_u64().and_then(|n| n.try_into().ok()).unwrap_or(0),
                longest: seconds(l.get("leaseDurationSeconds")),
            }),
            uid,
            holder,
            renewed,
        }
    }

    /// Whether nothing has happened to it but a stranger's label: the same uid and spec (rule S4).
    pub fn stands_as(&self, other: &Self) -> bool {
        let spec = |v: &Self| {
            (v.uid.clone(), v.holder.clone(), v.spec_duration, v.transitions, v.acquired.clone(), v.renewed.clone())
        };
        spec(self) == spec(other)
    }

    pub fn is_foreign(&self) -> bool {
        !self.holder.is_empty() && self.vouch.is_none()
    }
}
