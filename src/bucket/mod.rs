//! Buckets and keys (placeholder of the same shape until the real module is merged).
#![allow(missing_docs, clippy::all, clippy::pedantic)]
use std::sync::Arc;
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hash {
    Knative,
    Ring,
}
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct BucketError;
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BucketSet {
    names: Vec<String>,
}
impl BucketSet {
    pub fn new(_hash: Hash, names: impl IntoIterator<Item = impl Into<String>>) -> Result<Arc<BucketSet>, BucketError> {
        Ok(Arc::new(Self { names: names.into_iter().map(Into::into).collect() }))
    }
    pub fn universal() -> Arc<BucketSet> {
        Arc::new(Self { names: vec![String::new()] })
    }
    pub fn hash(&self) -> Hash {
        Hash::Knative
    }
    pub fn len(&self) -> usize {
        self.names.len()
    }
    pub fn name(&self, i: usize) -> &str {
        &self.names[i]
    }
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
    pub fn index_of(&self, n: &str) -> Option<usize> {
        self.names.iter().position(|x| x == n)
    }
    pub fn owner(&self, key: &str) -> usize {
        key.len() % self.names.len()
    }
    pub fn bucket(self: &Arc<Self>, index: usize) -> Bucket {
        Bucket { set: self.clone(), index }
    }
    pub fn buckets(self: &Arc<Self>) -> impl Iterator<Item = Bucket> + '_ {
        (0..self.len()).map(|i| self.bucket(i))
    }
}
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    set: Arc<BucketSet>,
    index: usize,
}
impl Bucket {
    pub fn name(&self) -> &str {
        self.set.name(self.index)
    }
    pub fn index(&self) -> usize {
        self.index
    }
    pub fn set(&self) -> &Arc<BucketSet> {
        &self.set
    }
    pub fn has(&self, key: &str) -> bool {
        self.set.owner(key) == self.index
    }
}
impl std::fmt::Display for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
pub fn lease_name(prefix: &str, ordinal: u32, buckets: u32) -> String {
    format!("{prefix}.{ordinal:02}-of-{buckets:02}").to_lowercase()
}
pub fn parse_lease_name(prefix: &str, name: &str) -> Option<(u32, u32)> {
    let r = name.strip_prefix(&prefix.to_lowercase())?.strip_prefix('.')?;
    let (a, b) = r.split_once("-of-")?;
    Some((a.parse().ok()?, b.parse().ok()?))
}
#[derive(Debug, thiserror::Error)]
#[error("bad name")]
pub struct NameError;
pub fn check_lease_name(_: &str) -> Result<(), NameError> {
    Ok(())
}
