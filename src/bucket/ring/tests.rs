use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::bucket::{RING_MAX, key};

/// Of 2, 3, 10, 100 and 1,000 buckets, which has the key. Computed from the description at the head of the module by a
/// program of its own, with its own SipHash, in another language. They are for ever: who changes them moves keys
/// between replicas of two releases.
const GOLDEN: [(&str, [usize; 5]); 12] = [
    ("", [0, 2, 7, 82, 389]),
    ("/", [0, 0, 6, 17, 215]),
    ("default/a", [0, 2, 2, 16, 907]),
    ("/cluster-scoped", [0, 2, 9, 23, 265]),
    ("ns/", [1, 1, 9, 29, 154]),
    ("knative-eventing/pingsource-mt-adapter", [0, 0, 0, 38, 430]),
    ("日本語/名前", [0, 2, 9, 80, 411]),
    ("nul/a\0b", [0, 0, 7, 99, 424]),
    (LONG, [0, 0, 4, 62, 339]),
    ("team-00042/feed-0042", [0, 0, 8, 88, 562]),
    ("emoji-🦆/chaos", [1, 1, 3, 68, 189]),
    ("UPPER/Case", [1, 1, 1, 72, 770]),
];

const LONG: &str = "long/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// Rings of a few numbers of buckets, ours beside `hashring`'s.
static RINGS: LazyLock<Vec<(u32, Ring, HashRing<Point>)>> = LazyLock::new(|| {
    [1, 2, 3, 10, 100, 129, 1_000].map(|buckets| (buckets, Ring::new(buckets), hash_ring(buckets))).into()
});

#[test]
fn golden_owners() {
    for (key, owners) in GOLDEN {
        let ours = [2, 3, 10, 100, 1_000].map(|buckets| {
            let (_, ring, _) = RINGS.iter().find(|(size, ..)| *size == buckets).unwrap();
            ring.owner(key.as_bytes())
        });
        assert_eq!(ours, owners, "{key:?}");
    }
}

#[test]
fn golden_places() {
    assert_eq!(place(&Key(b"")), 0x1e92_4b9d_7377_00d7);
    assert_eq!(place(&Point { bucket: 0, number: 0 }), 0xe849_e8bb_6ffe_2567);
    assert_eq!(place(&Point { bucket: 65_535, number: 99 }), 0x3b75_16d1_b37b_dfc0);
}

#[test]
fn a_bucket_has_a_hundred_points_and_more() {
    assert_eq!([1, 10, 128, 129, 1_000, 1_311, RING_MAX].map(points), [1_024, 1_024, 1_024, 1_016, 131, 100, 100]);
}

/// Stands at a place and nowhere else: a key for `hashring` whose hash is known.
struct At(u64);

/// A hash builder by which points stand where they stand and [`At`] where it says.
struct ByPlace;

struct Placed(Option<u64>, <DefaultHashBuilder as BuildHasher>::Hasher);

impl BuildHasher for ByPlace {
    type Hasher = Placed;
    fn build_hasher(&self) -> Placed {
        Placed(None, DefaultHashBuilder.build_hasher())
    }
}

impl Hasher for Placed {
    fn write(&mut self, bytes: &[u8]) {
        self.1.write(bytes);
    }
    fn write_u64(&mut self, place: u64) {
        self.0 = Some(place);
    }
    fn finish(&self) -> u64 {
        self.0.unwrap_or_else(|| self.1.finish())
    }
}

impl Hash for At {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

#[test]
fn at_every_point_and_beside_it_the_index_answers_as_hashring() {
    for (_, ring, by_hashring) in RINGS.iter() {
        let mut by_place = HashRing::with_hasher(ByPlace);
        let points: Vec<Point> = by_hashring.clone().into_iter().collect();
        let places: Vec<u64> = points.iter().map(place).collect();
        by_place.batch_add(points);
        for place in places {
            for place in [place.wrapping_sub(1), place, place.wrapping_add(1)] {
                let expected = by_place.get(&At(place)).map(|point| point.bucket as usize);
                assert_eq!(Some(ring.0.owner(place)), expected, "{place:#x}");
            }
        }
        for place in [0, u64::MAX] {
            assert_eq!(Some(ring.0.owner(place)), by_place.get(&At(place)).map(|point| point.bucket as usize));
        }
    }
}

#[test]
fn in_the_largest_ring_every_bucket_is_found_and_nowhere_do_two_points_meet() {
    let ring = hash_ring(RING_MAX).into_iter().map(|point| (place(&point), point.bucket)).collect::<Vec<_>>();
    assert!(ring.windows(2).all(|two| two[0].0 < two[1].0));

    // A smaller ring has the same points and, for each of its buckets, at most those that it has as the last bucket.
    let more = (0..RING_MAX).flat_map(|bucket| (100..points(bucket + 1)).map(move |number| Point { bucket, number }));
    let mut more: Vec<u64> = more.map(|point| place(&point)).collect();
    more.sort_unstable();
    assert!(more.windows(2).all(|two| two[0] < two[1]));
    assert!(more.iter().all(|place| ring.binary_search_by_key(place, |point| point.0).is_err()));

    let index = Index::new(ring.into_iter());
    for bucket in 0..RING_MAX {
        assert_eq!(index.owner(place(&Point { bucket, number: 99 })), bucket as usize);
    }
}

/// How much of the ring each bucket has.
fn shares(buckets: u32) -> Vec<u64> {
    let mut shares = vec![0_u64; buckets as usize];
    let ring = hash_ring(buckets).into_iter().map(|point| (place(&point), point.bucket)).collect::<Vec<_>>();
    let mut before = ring[ring.len() - 1].0;
    for (place, bucket) in ring {
        shares[bucket as usize] += place.wrapping_sub(before);
        before = place;
    }
    shares
}

#[test]
fn shares_are_even() {
    for (buckets, most) in [(2, 1.1), (3, 1.1), (5, 1.2), (10, 1.2), (50, 1.25), (128, 1.25), (1_000, 2.0)] {
        let shares = shares(buckets);
        let spread = *shares.iter().max().unwrap() as f64 / *shares.iter().min().unwrap() as f64;
        assert!(spread < most, "{buckets} buckets: {spread} to 1");
    }
}

#[test]
fn keys_fall_evenly() {
    let ring = Ring::new(10);
    let mut counts = [0_u32; 10];
    for i in 0..100_000 {
        counts[ring.owner(key(&format!("ns-{}", i % 37), &format!("source-{i}")).as_bytes())] += 1;
    }
    let spread = f64::from(*counts.iter().max().unwrap()) / f64::from(*counts.iter().min().unwrap());
    assert!(spread < 1.2, "{counts:?}: {spread} to 1");
}

#[test]
fn one_bucket_more_takes_its_share_and_moves_nothing_else() {
    let keys: Vec<String> = (0..20_000).map(|i| format!("ns-{}/{i}", i % 91)).collect();
    for buckets in [1, 2, 9, 10, 50, 127] {
        let (before, after) = (Ring::new(buckets), Ring::new(buckets + 1));
        let moved = keys
            .iter()
            .map(|key| (before.owner(key.as_bytes()), after.owner(key.as_bytes())))
            .filter(|(before, after)| before != after)
            .inspect(|(_, after)| assert_eq!(*after, buckets as usize))
            .count();
        let share = keys.len() as f64 / f64::from(buckets + 1);
        assert!((moved as f64) > share * 0.75 && (moved as f64) < share * 1.25, "{buckets}: {moved} of {share}");
    }
    let (before, after) = (Ring::new(500), Ring::new(501));
    let moved = keys.iter().filter(|key| before.owner(key.as_bytes()) != after.owner(key.as_bytes())).count();
    assert!(moved < keys.len() / 50, "{moved}");
}

proptest! {
    #[test]
    fn a_key_is_found_where_hashring_finds_it(key in "\\PC{0,60}") {
        for (_, ring, by_hashring) in RINGS.iter() {
            let expected = by_hashring.get(&Key(key.as_bytes())).map(|point| point.bucket as usize);
            prop_assert_eq!(Some(ring.owner(key.as_bytes())), expected);
        }
    }

    /// Whatever the points, also crowded ones, several at one place, and at both ends of the ring.
    #[test]
    fn the_index_finds_the_first_point_at_or_above(
        points in prop::collection::vec((places(), 0..=u32::from(u16::MAX)), 1..60),
        asked in prop::collection::vec(places(), 1..60),
    ) {
        let mut first_at = BTreeMap::new();
        for &(place, bucket) in &points {
            first_at.entry(place).or_insert(bucket);
        }
        let mut sorted = points.clone();
        sorted.sort_by_key(|&(place, _)| place);
        let index = Index::new(sorted.into_iter());
        for place in asked.into_iter().chain(points.iter().map(|&(place, _)| place)) {
            let (_, &expected) = first_at.range(place..).next().or_else(|| first_at.iter().next()).unwrap();
            prop_assert_eq!(index.owner(place), expected as usize);
        }
    }
}

fn places() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..8_u64, (u64::MAX - 8)..=u64::MAX, (1_u64 << 60)..(1 << 60) + 8]
}
