use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::choose::choose_subset;
use super::*;
use crate::bucket::{BucketSet, Hash, KNATIVE_MAX, lease_name};

#[derive(Deserialize)]
struct Owned {
    buckets: Vec<String>,
    key: String,
    owner: String,
}

#[derive(Deserialize)]
struct Chosen {
    from: Vec<String>,
    n: usize,
    target: String,
    subset: Vec<String>,
}

/// What Go's code answered when it was run.
fn vectors<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let path = format!("{}/test/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

fn set(names: impl IntoIterator<Item = impl Into<String>>) -> Arc<BucketSet> {
    BucketSet::new(Hash::Knative, names).unwrap()
}

/// The way that a set of these names goes.
fn way(names: &[String]) -> &'static str {
    let boxed: Vec<Box<str>> = names.iter().map(|name| name.as_str().into()).collect();
    let mut by_name: Vec<u32> = (0..).take(boxed.len()).collect();
    by_name.sort_by_key(|&i| &boxed[i as usize]);
    match Knative::new(&boxed, &by_name).0 {
        Way::Few(_) => "few",
        Way::Some(_) => "some",
        Way::More(_) => "more",
        Way::Many(_) => "many",
        Way::Crowded(_) => "crowded",
    }
}

fn leases(buckets: u32) -> Vec<String> {
    (0..buckets).map(|ordinal| lease_name("adapter.q", ordinal, buckets)).collect()
}

/// The owner as the tests' own, slow `ChooseSubset` has it.
fn described(names: &[String], key: &str) -> String {
    let from = names.iter().map(String::as_str).collect();
    choose_subset(&from, 1, key).first().copied().unwrap().to_owned()
}

#[test]
fn every_owner_is_go_s() {
    let rows: Vec<Owned> = vectors("knative-hash.json");
    assert_eq!(rows.len(), 4_380);
    let mut sets = HashMap::new();
    for (number, row) in rows.iter().enumerate() {
        let set = sets.entry(&row.buckets).or_insert_with(|| set(row.buckets.clone()));
        assert_eq!(set.name(set.owner(&row.key)), row.owner, "row {number}, key {:?}", row.key);
        for bucket in set.buckets() {
            assert_eq!(bucket.has(&row.key), bucket.name() == row.owner, "row {number}, bucket {bucket}");
        }
        assert_eq!(described(&row.buckets, &row.key), row.owner, "row {number}");
    }
}

#[test]
fn every_subset_is_go_s() {
    let rows: Vec<Chosen> = vectors("knative-choosesubset.json");
    assert_eq!(rows.len(), 420);
    for (number, row) in rows.iter().enumerate() {
        let from = row.from.iter().map(String::as_str).collect();
        let subset = row.subset.iter().map(String::as_str).collect::<BTreeSet<_>>();
        assert_eq!(choose_subset(&from, row.n, &row.target), subset, "row {number}");
    }
}

#[test]
fn names_may_come_in_any_order() {
    for names in [leases(10), leases(20), leases(40), leases(100), leases(600)] {
        let reversed: Vec<_> = names.iter().rev().cloned().collect();
        let (forth, back) = (set(names), set(reversed));
        for key in ["", "/", "default/a", "team-00042/feed-0042"] {
            assert_eq!(forth.name(forth.owner(key)), back.name(back.owner(key)));
        }
    }
}

#[test]
fn each_way_is_gone() {
    let ways = [2, 15, 16, 31, 32, 63, 64, 100, 600].map(|buckets| way(&leases(buckets)));
    assert_eq!(ways, ["few", "few", "some", "some", "more", "more", "many", "many", "crowded"]);
    assert_eq!(way(&["lease-1050", "lease-1861", "lease-668"].map(String::from)), "crowded");
}

#[test]
fn names_that_meet_go_on_as_in_go() {
    let set = set(["lease-668", "lease-1050", "lease-1861"]);
    assert_eq!(set.name(set.owner("collide/k0")), "lease-1861");
}

#[test]
fn every_angle_can_have_a_bucket() {
    let names = leases(KNATIVE_MAX);
    let set = set(names.clone());
    for key in ["default/a", "team-00042/feed-0042", ""] {
        assert_eq!(set.name(set.owner(key)), described(&names, key), "{key:?}");
    }
}

/// Names as Leases have them, and names of which many meet, as few and as many as each way takes.
fn names() -> impl Strategy<Value = Vec<String>> {
    let sizes = prop_oneof![2..70_u32, Just(15), Just(16), Just(31), Just(32), Just(63), Just(64), 70..400_u32];
    let few = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    prop_oneof![
        ("[a-z.]{1,12}", sizes.clone()).prop_map(|(prefix, n)| (0..n).map(|i| lease_name(&prefix, i, n)).collect()),
        sizes.prop_flat_map(|n| prop::collection::vec("lease-[0-9]{1,4}", n as usize)).prop_map(few),
        prop::collection::vec("\\PC{1,9}", 2..40).prop_map(few),
    ]
    .prop_filter("at least two", |names| names.len() > 1)
    .prop_shuffle()
}

fn keys() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9-]{0,20}/[a-z0-9-]{0,20}", "\\PC{0,40}", "[a-z]{200,300}"]
}

proptest! {
    #[test]
    fn whatever_is_fast_is_what_is_described(names in names(), keys in prop::collection::vec(keys(), 1..8)) {
        let set = set(names.clone());
        for key in keys {
            prop_assert_eq!(set.name(set.owner(&key)), described(&names, &key), "{} {:?}", way(&names), key);
        }
    }

    #[test]
    fn two_names_meet_for_every_key_or_for_none(a in "lease-[0-9]{1,5}", b in "lease-[0-9]{1,5}", key in keys()) {
        let angle = |bytes: &str| fnv::angle(fnv::low(fnv::hash(fnv::BASIS, bytes.as_bytes())));
        prop_assert_eq!(angle(&a) == angle(&b), angle(&format!("{a}{key}")) == angle(&format!("{b}{key}")));
    }

    #[test]
    fn what_goes_forward_comes_back(states in any::<[Low; 16]>(), key in keys()) {
        prop_assert_eq!(lanes::backward(lanes::forward(states, key.as_bytes()), key.as_bytes()), states);
    }
}
