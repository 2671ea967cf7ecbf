//! A set of buckets, and one of them.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash as StdHash, Hasher};
use std::sync::{Arc, LazyLock};

use super::knative::Knative;
use super::ring::Ring;
use super::{BucketError, Hash};

/// The buckets of one queue under one layout. It never changes: another layout is another set.
pub struct BucketSet {
    hash: Hash,
    /// In the order given: the position of a name is its bucket's ordinal.
    names: Box<[Box<str>]>,
    /// The ordinals in the bytewise order of their names: Knative places buckets in it, and a name is found by it.
    by_name: Box<[u32]>,
    index: Index,
}

/// What answers which bucket has a key.
enum Index {
    /// The only bucket has every key, and under both hashes no key is looked at.
    One,
    Knative(Knative),
    Ring(Ring),
}

impl BucketSet {
    /// The buckets with these names, given in the order of their ordinals. Of equal names the first one counts, as in
    /// the set that Knative puts them in.
    ///
    /// A ring takes time and memory to lay out, and some is kept: for 10 buckets 1 ms and 0.2 MB, for 1,000 about 10 ms
    /// and 2 MB, for [`RING_MAX`](super::RING_MAX) about a second and 100 MB, and as much again while it is laid out.
    ///
    /// # Errors
    /// [`BucketError::Count`] for no names or more than the hash can have, [`BucketError::Unnamed`] for an empty one.
    pub fn new(hash: Hash, names: impl IntoIterator<Item = impl Into<String>>) -> Result<Arc<Self>, BucketError> {
        let mut seen = HashSet::new();
        let mut distinct: Vec<Box<str>> = Vec::new();
        for (position, name) in names.into_iter().enumerate() {
            let name = name.into().into_boxed_str();
            if name.is_empty() {
                return Err(BucketError::Unnamed { position });
            }
            if seen.insert(name.clone()) {
                distinct.push(name);
            }
        }
        let count = u32::try_from(distinct.len()).unwrap_or(u32::MAX);
        hash.check_buckets(count)?;
        Ok(Arc::new(Self::build(hash, distinct.into_boxed_slice(), count)))
    }

    /// The one bucket, named "", that has every key: what a replica without leader election holds (Knative's
    /// `UniversalBucket`).
    pub fn universal() -> Arc<Self> {
        static UNIVERSAL: LazyLock<Arc<BucketSet>> =
            LazyLock::new(|| Arc::new(BucketSet::build(Hash::Knative, Box::new(["".into()]), 1)));
        Arc::clone(&UNIVERSAL)
    }

    fn build(hash: Hash, names: Box<[Box<str>]>, count: u32) -> Self {
        let mut by_name: Box<[u32]> = (0..count).collect();
        by_name.sort_unstable_by(|&a, &b| names[a as usize].cmp(&names[b as usize]));
        let index = match hash {
            _ if count == 1 => Index::One,
            Hash::Knative => Index::Knative(Knative::new(&names, &by_name)),
            Hash::Ring => Index::Ring(Ring::new(count)),
        };
        Self { hash, names, by_name, index }
    }

    /// The hash that cuts the key space.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// How many buckets there are: at least one.
    #[allow(clippy::len_without_is_empty, reason = "a set has at least one bucket, so the question does not arise")]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The names, in the order of the ordinals.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.names.iter().map(|name| &**name)
    }

    /// The name of the bucket at `index`.
    ///
    /// # Panics
    /// As a slice does, if `index` is not below [`len`](Self::len).
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// The index of the bucket with this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        let at = self.by_name.binary_search_by(|&i| (*self.names[i as usize]).cmp(name)).ok()?;
        Some(self.by_name[at] as usize)
    }

    /// The index of the bucket that has `key`. Takes no lock and allocates nothing.
    #[inline]
    pub fn owner(&self, key: &str) -> usize {
        match &self.index {
            Index::One => 0,
            Index::Knative(knative) => knative.owner(key.as_bytes()),
            Index::Ring(ring) => ring.owner(key.as_bytes()),
        }
    }

    /// The bucket at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    pub fn bucket(self: &Arc<Self>, index: usize) -> Bucket {
        assert!(index < self.len(), "there is no bucket {index}: the set has {}", self.len());
        Bucket { set: Arc::clone(self), index }
    }

    /// All buckets, in the order of their ordinals.
    pub fn buckets(self: &Arc<Self>) -> impl ExactSizeIterator<Item = Bucket> + DoubleEndedIterator + use<'_> {
        (0..self.len()).map(|index| Bucket { set: Arc::clone(self), index })
    }
}

/// Sets are equal when they cut the key space alike and name the shares alike: same hash, same names in the same order.
impl PartialEq for BucketSet {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.names == other.names
    }
}

impl Eq for BucketSet {}

impl fmt::Debug for BucketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketSet").field("hash", &self.hash).field("names", &self.names).finish_non_exhaustive()
    }
}

/// One share of a queue's key space. Cheap to clone: a pointer and a number.
///
/// Two buckets are equal when they have the same name and their sets are equal, which is when they have the same keys.
#[derive(Clone)]
pub struct Bucket {
    set: Arc<BucketSet>,
    index: usize,
}

impl Bucket {
    /// The name, which is its Lease's; empty for the one of [`BucketSet::universal`].
    pub fn name(&self) -> &str {
        self.set.name(self.index)
    }

    /// Its place in the set: its ordinal.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether `key` is one of its keys. Takes no lock and allocates nothing.
    #[inline]
    pub fn has(&self, key: &str) -> bool {
        self.set.owner(key) == self.index
    }

    /// The set it is part of.
    pub fn set(&self) -> &Arc<BucketSet> {
        &self.set
    }
}

impl PartialEq for Bucket {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && (Arc::ptr_eq(&self.set, &other.set) || self.set == other.set)
    }
}

impl Eq for Bucket {}

impl StdHash for Bucket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({:?}, {} of {} by {})", self.name(), self.index, self.set.len(), self.set.hash)
    }
}
