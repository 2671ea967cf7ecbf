//! What stands in a Lease, field by field, after each of the writes of either kind.

use super::{SLACK, close, fleet, holder, lease, with_both};
use crate::fleet::{Fleet, Kind, Timing};
use rustix::process::Signal;
use serde_json::Value;

with_both!(a_lease_looks_the_same_whoever_wrote_it);

const T: Timing = Timing::SHORT;

/// A Lease before a replica took it, while it held it, and after it gave it up in good order.
struct Written {
    before: Option<Value>,
    renewed: Value,
    released: Value,
}

async fn a_lease_looks_the_same_whoever_wrote_it(go: Kind) {
    let Some(mut fleet) = fleet("fields", 1).await else { return };
    fleet.init(T).await;
    let rust = held_and_released(&mut fleet, Kind::Rust).await;
    // Over what a replica of leasehold has left, with its annotations.
    let after_rust = held_and_released(&mut fleet, go).await;
    // Over what client-go has left.
    let after_go = held_and_released(&mut fleet, Kind::Rust).await;
    // And one that client-go has made itself.
    let mut alone = Fleet::new(&fleet.cluster, "alone", 1);
    let made = held_and_released(&mut alone, go).await;
    for other in [&after_rust, &made, &after_go] {
        assert_eq!(shape(&rust.renewed), shape(&other.renewed));
        assert_eq!(shape(&rust.released), shape(&other.released));
    }
    // leaseTransitions: one more with each holder, none with a release; client-go makes a Lease with 0.
    let transitions = |l: &Value| l["spec"]["leaseTransitions"].as_i64().expect("a number");
    for written in [&rust, &after_rust, &made, &after_go] {
        let taken = written.before.as_ref().map_or(0, |b| transitions(b) + 1);
        assert_eq!((transitions(&written.renewed), transitions(&written.released)), (taken, taken));
    }
    // Annotations are ours alone, and client-go keeps those it finds.
    assert_eq!(made.released["metadata"].get("annotations"), None);
    assert_eq!(after_rust.released["metadata"]["annotations"], rust.released["metadata"]["annotations"]);
    close(alone).await;
    close(fleet).await;
}

async fn held_and_released(fleet: &mut Fleet, kind: Kind) -> Written {
    for _ in 0..5 {
        if let Some(written) = held_once(fleet, kind).await {
            return written;
        }
        // client-go's release fails where SIGTERM falls into a renewal. Its next one takes the Lease when it has run out.
        assert!(kind.is_go(), "not released");
    }
    panic!("client-go never released it");
}

async fn held_once(fleet: &mut Fleet, kind: Kind) -> Option<Written> {
    let bucket = fleet.buckets[0].clone();
    let before = fleet.cluster.lease(&bucket).await;
    let number = fleet.start(kind, T).await;
    fleet.until_all_act(&[number], T.lease + T.renew + SLACK).await;
    let me = fleet.replicas[number].identity();
    let (pod, uuid) = me.split_once('_').expect("<pod>_<uuid>");
    assert!(pod.ends_with(&format!("-{number}")) && uuid.parse::<uuid::Uuid>().is_ok(), "{me}");

    let taken = lease(fleet, &bucket, "taken", |l| holder(l) == me).await;
    let time = |l: &Value, field: &str| l["spec"][field].as_str().expect("a time").to_owned();
    let since = time(&taken, "renewTime");
    let renewed = lease(fleet, &bucket, "renewed", |l| time(l, "renewTime") != since).await;
    assert_eq!(holder(&renewed), me);
    assert_eq!(renewed["spec"]["leaseDurationSeconds"], T.lease.as_secs());
    assert_eq!(time(&renewed, "acquireTime"), time(&taken, "acquireTime"), "a renewal leaves it");
    assert_eq!(renewed["metadata"]["uid"], taken["metadata"]["uid"]);
    // As text: of one length, in UTC, they are ordered as the points in time are.
    assert!(time(&renewed, "renewTime") > since && time(&renewed, "renewTime") > time(&renewed, "acquireTime"));

    // Between two renewals.
    tokio::time::sleep(T.retry / 2).await;
    fleet.replicas[number].end(Signal::TERM).await;
    let released = fleet.cluster.lease(&bucket).await.expect("it stands");
    if holder(&released) == me {
        return None;
    }
    assert_eq!(released["spec"]["holderIdentity"], "", "there, and empty");
    assert_eq!(released["spec"]["leaseDurationSeconds"], 1);
    assert_eq!(time(&released, "acquireTime"), time(&released, "renewTime"));
    assert!(time(&released, "renewTime") > time(&renewed, "renewTime"));
    Some(Written { before, renewed, released })
}

/// The spec's fields, their types, and the form of what has one: digits as 0.
fn shape(lease: &Value) -> Vec<String> {
    let mut fields: Vec<_> = lease["spec"]
        .as_object()
        .expect("a spec")
        .iter()
        .map(|(name, value)| match (name.as_str(), value) {
            ("holderIdentity", Value::String(s)) => format!("{name} {}", if s.is_empty() { "empty" } else { "set" }),
            (_, Value::String(s)) => {
                format!("{name} {}", s.replace(|c: char| c.is_ascii_digit(), "0"))
            }
            ("leaseDurationSeconds", number) => format!("{name} {number}"),
            (_, Value::Number(n)) if n.is_i64() => format!("{name} whole number"),
            (_, other) => format!("{name} {other}"),
        })
        .collect();
    fields.sort();
    fields
}
