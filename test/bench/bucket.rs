//! How long it takes to find the bucket of a key: `cargo bench --bench bucket`.
//!
//! `hot` asks for one key of 20 bytes over and over; `mixed` goes through 4,096 such keys, so that neither the caches
//! nor the branch predictor know the answer. Names are those of Leases: at 1,000 buckets some of them meet, and the
//! Knative mapping then places every bucket. An allocation in a lookup would show as one.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;

use divan::{AllocProfiler, Bencher};
use leasehold::bucket::{BucketSet, Hash, key, lease_name};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const BUCKETS: [u32; 3] = [10, 100, 1_000];

fn main() {
    divan::main();
}

fn keys() -> Vec<String> {
    (0..4_096_u32).map(|i| key(&format!("team-{:05}", i * 7_919 % 100_000), &format!("feed-{i:04}"))).collect()
}

fn leases(hash: Hash, buckets: u32) -> Arc<BucketSet> {
    BucketSet::new(hash, (0..buckets).map(|i| lease_name("adapter.q", i, buckets)))
        .expect("distinct names within bounds")
}

fn hot(bencher: Bencher<'_, '_>, hash: Hash, buckets: u32) {
    let set = leases(hash, buckets);
    let key = key("team-00042", "feed-0042");
    assert_eq!(key.len(), 20);
    bencher.bench(|| set.owner(black_box(&key)));
}

fn mixed(bencher: Bencher<'_, '_>, hash: Hash, buckets: u32) {
    let set = leases(hash, buckets);
    let keys = keys();
    let at = Cell::new(0);
    bencher.bench_local(|| {
        at.set((at.get() + 1) % keys.len());
        set.owner(black_box(&keys[at.get()]))
    });
}

#[divan::bench(args = BUCKETS)]
fn knative_hot(bencher: Bencher<'_, '_>, buckets: u32) {
    hot(bencher, Hash::Knative, buckets);
}

#[divan::bench(args = BUCKETS)]
fn knative_mixed(bencher: Bencher<'_, '_>, buckets: u32) {
    mixed(bencher, Hash::Knative, buckets);
}

#[divan::bench(args = BUCKETS)]
fn ring_hot(bencher: Bencher<'_, '_>, buckets: u32) {
    hot(bencher, Hash::Ring, buckets);
}

#[divan::bench(args = BUCKETS)]
fn ring_mixed(bencher: Bencher<'_, '_>, buckets: u32) {
    mixed(bencher, Hash::Ring, buckets);
}
