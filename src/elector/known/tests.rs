use super::{Free, How, Known, Waits};
use crate::clock::Instant;
use crate::lease::Record;
use kube::core::DynamicObject;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u32>().prop_map(|n| json!(n.to_string())),
        proptest::sample::select(vec!["", "a", "retired-", "retired-7", "2026-01-01T00:00:00.000000Z", "{}", "[]"])
            .prop_map(Value::from),
        Just(json!({"uid": "u", "generation": 1})),
        any::<String>().prop_map(Value::from),
    ]
}

fn any_fields(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    proptest::collection::vec(proptest::option::weighted(0.8, any_value()), keys.len()).prop_map(|values| {
        let fields = keys.iter().zip(values).filter_map(|(k, v)| Some(((*k).to_owned(), v?)));
        Value::Object(fields.collect::<Map<_, _>>())
    })
}

fn any_note() -> impl Strategy<Value = String> {
    let keys = &["holder", "leaseDurationSeconds", "layout", "member", "leaseTransitions", "renewTime", "position"];
    let known = (0..3_u64, any_fields(keys)).prop_map(|(v, mut note)| {
        note["v"] = json!(v);
        note.to_string()
    });
    prop_oneof![3 => known, 1 => any::<String>()]
}

fn any_lease() -> impl Strategy<Value = Record> {
    let keys = &["holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime", "acquireTime"];
    (any_fields(keys), any_note(), any_note(), any_note(), any_note(), any::<u32>()).prop_map(
        |(spec, holder, release, made, checkpoint, revision)| {
            let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
                "name": "c.q.00-of-02", "uid": "u", "resourceVersion": revision.to_string(), "annotations": {
                    "leasehold.dev/holder": holder, "leasehold.dev/release": release, "leasehold.dev/made": made,
                    "leasehold.dev/checkpoint": checkpoint, "leasehold.dev/layout": holder}}, "spec": spec});
            Record::of(serde_json::from_value::<DynamicObject>(object).expect("an object"))
        },
    )
}

proptest! {
    /// Whatever stands in a Lease: nothing panics, and no duration stops a bucket for longer than a day and the grace.
    #[test]
    fn whatever_stands_there_binds_a_day_at_most(first in any_lease(), second in any_lease(), generation in 0..10_u64) {
        let (longest, grace) = (Duration::from_secs(15), Duration::from_secs(10));
        let now = Instant::from_nanos(1_000_000_000);
        let mut known = Known::default();
        for (record, after) in [(first, 0), (second, 5)] {
            let now = now + Duration::from_secs(after);
            known.look(&Arc::new(record), How::Watched, now);
            let Known::There(sight) = &known else { panic!("{known:?}") };
            let record = &sight.record;
            match sight.free(Waits { longest, grace }, Duration::ZERO, generation) {
                Free::At(at) => {
                    prop_assert!(at >= sight.since + longest);
                    prop_assert!(at <= now + Duration::from_hours(24) + grace);
                }
                Free::Never => prop_assert!(
                    record.retired().is_some() || record.is_of_later_format() || record.vouched().is_some_and(|n| n.member.is_some())
                ),
                Free::Released => prop_assert!(!record.is_held() || record.retired().is_some_and(|g| g < generation)),
            }
        }
    }
}

/// One of us made it, it was seen empty, then not seen for a while; taken meanwhile, and blanked by a person, it looks as
/// before. What was read proves no silence of an empty Lease; what was watched does.
#[test]
fn s4_an_empty_spec_that_was_not_watched_proves_no_silence() {
    let empty = |revision: u32| {
        let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
            "name": "c.q.00-of-02", "uid": "u", "resourceVersion": revision.to_string(),
            "annotations": {"leasehold.dev/made": json!({"v": 1, "leaseDurationSeconds": 15}).to_string()}}});
        Arc::new(Record::of(serde_json::from_value::<DynamicObject>(object).expect("an object")))
    };
    let longest = Duration::from_secs(15);
    let (first, again) = (Instant::from_nanos(1_000_000_000), Instant::from_nanos(41_000_000_000));
    for (how, since) in [(How::Watched, first), (How::Read, again)] {
        let mut known = Known::default();
        known.look(&empty(10), How::Read, first);
        known.look(&empty(20), how, again);
        let Known::There(sight) = &known else { panic!("{known:?}") };
        let free = sight.free(Waits { longest, grace: Duration::ZERO }, Duration::ZERO, 0);
        assert_eq!(free, Free::At(since + longest), "{how:?}");
    }
}
