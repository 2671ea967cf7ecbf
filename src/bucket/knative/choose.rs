//! `ChooseSubset` of `knative.dev/pkg/hash`, step by step as it is described, for the tests: whatever is fast is
//! measured against it. It shares nothing with the fast ways but FNV-1a itself.

use std::collections::{BTreeMap, BTreeSet};

use super::fnv;

const UNIVERSE: u64 = 2_048;

fn fnv(bytes: &[u8]) -> u64 {
    fnv::hash(fnv::BASIS, bytes)
}

/// `n` of the names in `from` for `target`; all of them if there are no more than `n`. At most 2,048 names.
pub(super) fn choose_subset<'a>(from: &BTreeSet<&'a str>, n: usize, target: &str) -> BTreeSet<&'a str> {
    if n >= from.len() {
        return from.clone();
    }
    assert!(from.len() <= 2_048, "Go would look for a free angle for ever");
    let start = fnv(format!("{target}start-angle-salt").as_bytes()) % UNIVERSE;
    let step = fnv(format!("{target}step-angle-salt").as_bytes()) % UNIVERSE;

    let mut placed = BTreeMap::new();
    for &name in from {
        let mut bytes = format!("{name}{target}").into_bytes();
        let mut hash = fnv(&bytes);
        while placed.contains_key(&(hash % UNIVERSE)) {
            bytes.extend_from_slice(format!("{hash:x}").as_bytes());
            hash = fnv(&bytes);
        }
        placed.insert(hash % UNIVERSE, name);
    }

    let mut chosen = BTreeSet::new();
    let mut angle = start;
    while chosen.len() < n {
        let up_and_round = placed.range(angle..).chain(placed.range(..angle));
        if let Some((_, name)) = up_and_round.map(|(at, name)| (at, *name)).find(|(_, name)| !chosen.contains(name)) {
            chosen.insert(name);
        }
        angle = (angle + step) % UNIVERSE;
    }
    chosen
}
