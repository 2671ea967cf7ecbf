use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::*;

const HASHES: [Hash; 2] = [Hash::Knative, Hash::Ring];

fn set(hash: Hash, buckets: u32) -> Arc<BucketSet> {
    BucketSet::new(hash, (0..buckets).map(|i| lease_name("c.queue", i, buckets))).unwrap()
}

#[test]
fn a_hash_is_read_as_it_is_written() {
    for (hash, word) in [(Hash::Knative, "knative"), (Hash::Ring, "ring")] {
        assert_eq!(hash.to_string(), word);
        assert_eq!(word.parse(), Ok(hash));
        assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{word}\""));
        assert_eq!(serde_json::from_str::<Hash>(&format!("\"{word}\"")).unwrap(), hash);
    }
    for word in ["", "Ring", " ring", "ring ", "maglev"] {
        assert_eq!(word.parse::<Hash>(), Err(BucketError::UnknownHash { found: word.to_owned() }));
    }
    assert_eq!(
        "Ring".parse::<Hash>().unwrap_err().to_string(),
        "bucket-hash: \"Ring\" is no hash of ours: set it to \"knative\" or \"ring\""
    );
}

#[test]
fn bounds_are_told_in_knative_s_words() {
    let text = |hash: Hash, buckets| hash.check_buckets(buckets).map_err(|e| e.to_string());
    let refused = |found: u32, max: u32| Err(format!("buckets: value must be between 1 <= {found} <= {max}"));
    assert_eq!(text(Hash::Knative, 0), refused(0, 2_048));
    assert_eq!(text(Hash::Knative, 1), Ok(()));
    assert_eq!(text(Hash::Knative, 2_048), Ok(()));
    assert_eq!(text(Hash::Knative, 2_049), refused(2_049, 2_048));
    assert_eq!(text(Hash::Ring, 0), refused(0, 65_536));
    assert_eq!(text(Hash::Ring, 65_536), Ok(()));
    assert_eq!(text(Hash::Ring, u32::MAX), refused(u32::MAX, 65_536));
}

#[test]
fn a_set_keeps_to_the_bounds() {
    let none: [&str; 0] = [];
    let numbered = |n: u32| (0..n).map(|i| i.to_string());
    for hash in HASHES {
        let max = hash.max_buckets();
        assert_eq!(BucketSet::new(hash, none).unwrap_err(), BucketError::Count { found: 0, max });
        assert_eq!(BucketSet::new(hash, numbered(max + 1)).unwrap_err(), BucketError::Count { found: max + 1, max });
        assert_eq!(BucketSet::new(hash, ["a", ""]).unwrap_err(), BucketError::Unnamed { position: 1 });
    }
    assert_eq!(BucketSet::new(Hash::Knative, numbered(2_048)).unwrap().len(), 2_048);
}

#[test]
fn equal_names_are_one_bucket() {
    for hash in HASHES {
        let twice = BucketSet::new(hash, ["b", "a", "b", "a", "c"]).unwrap();
        assert_eq!(twice.names().collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(twice, BucketSet::new(hash, ["b", "a", "c"]).unwrap());
    }
}

#[test]
fn a_bucket_is_found_by_its_name() {
    for hash in HASHES {
        // Sorted as strings, 100 stands between 10 and 11.
        let set = set(hash, 120);
        for (index, bucket) in set.buckets().enumerate() {
            assert_eq!(set.index_of(bucket.name()), Some(index));
            assert_eq!((bucket.index(), bucket.name()), (index, set.name(index)));
            assert_eq!(bucket, set.bucket(index));
        }
        assert_eq!(set.index_of("c.queue.120-of-120"), None);
        assert_eq!(set.index_of(""), None);
    }
}

#[test]
#[should_panic(expected = "there is no bucket 3: the set has 3")]
fn there_is_no_bucket_beyond_the_last() {
    set(Hash::Ring, 3).bucket(3);
}

#[test]
fn one_bucket_has_every_key() {
    for set in [BucketSet::universal(), set(Hash::Knative, 1), set(Hash::Ring, 1)] {
        assert_eq!(set.len(), 1);
        for key in ["", "/", "a/b", "日本語/名前"] {
            assert!(set.bucket(0).has(key));
        }
    }
    assert_eq!(BucketSet::universal().bucket(0).name(), "");
    assert_eq!(BucketSet::universal(), BucketSet::universal());
}

#[test]
fn buckets_are_equal_when_they_have_the_same_keys() {
    let a = set(Hash::Ring, 3);
    let again = set(Hash::Ring, 3);
    assert_eq!(a.bucket(1), again.bucket(1));
    assert_ne!(a.bucket(1), a.bucket(2));
    assert_ne!(a.bucket(1), set(Hash::Knative, 3).bucket(1));
    let (first_three, shuffled) =
        (BucketSet::new(Hash::Ring, ["a", "b", "c"]).unwrap(), BucketSet::new(Hash::Ring, ["a", "c", "b"]).unwrap());
    assert_ne!(first_three.bucket(0), shuffled.bucket(0));
    assert_eq!(a.buckets().chain(again.buckets()).collect::<HashSet<_>>().len(), 3);
}

#[test]
fn buckets_show_themselves() {
    let bucket = set(Hash::Ring, 3).bucket(1);
    assert_eq!(format!("{bucket}|{bucket:>20}"), "c.queue.01-of-03|    c.queue.01-of-03");
    assert_eq!(format!("{bucket:?}"), "Bucket(\"c.queue.01-of-03\", 1 of 3 by ring)");
}

static SETS: LazyLock<Vec<Arc<BucketSet>>> =
    LazyLock::new(|| HASHES.into_iter().flat_map(|hash| [1, 2, 10, 20, 40, 80].map(|n| set(hash, n))).collect());

proptest! {
    #[test]
    fn every_key_has_one_bucket(key in "\\PC{0,40}") {
        for set in SETS.iter() {
            let having: Vec<_> = set.buckets().filter(|bucket| bucket.has(&key)).map(|bucket| bucket.index()).collect();
            prop_assert_eq!(having, [set.owner(&key)]);
        }
    }
}
