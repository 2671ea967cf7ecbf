//! Asking which bucket has a key allocates nothing, whichever way the question takes.

use leasehold::bucket::{BucketSet, Hash};

#[test]
fn an_owner_is_found_without_allocating() {
    let key = "team-00042/feed-0042";
    for hash in [Hash::Knative, Hash::Ring] {
        for buckets in [1, 2, 10, 20, 100, 1_000, 2_048] {
            let names = (0..buckets).map(|i| leasehold::bucket::lease_name("adapter.q", i, buckets));
            let set = BucketSet::new(hash, names).unwrap();
            let bucket = set.bucket(set.owner(key));
            let mut has = false;
            let seen = allocation_counter::measure(|| has = bucket.has(key));
            assert!(has);
            assert_eq!(seen.count_total, 0, "{hash}, {buckets} buckets");
        }
    }
    // The counter counts.
    assert_ne!(allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1)))).count_total, 0);
}
