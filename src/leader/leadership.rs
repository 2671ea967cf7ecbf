//! The gate over all buckets of a queue: which term, if any, has a key.

use super::{BoxError, Guard, LeaderAware, Lost, OnlyMine, Reason, Term};
use crate::bucket::{Bucket, BucketSet};
use arc_swap::{ArcSwap, ArcSwapOption};
use futures::Stream;
use std::fmt;
use std::sync::Arc;

/// The slots of one layout: a term for each bucket held.
struct Table {
    set: Arc<BucketSet>,
    slots: Box<[ArcSwapOption<Term>]>,
}

impl Table {
    fn of(set: Arc<BucketSet>) -> Self {
        let slots = (0..set.len()).map(|_| ArcSwapOption::empty()).collect();
        Self { set, slots }
    }
}

/// Knows the terms of a queue and gives guards by key.
///
/// # Guarantees
/// - [`Leadership::guard`] takes no lock and allocates nothing.
/// - Two layouts are never in it at one time: electors end every term of one before they begin one of another (S8).
///
/// # Assumptions
/// All buckets of one layout come from one [`BucketSet`], not from equal ones: another set is another layout.
#[derive(Clone)]
pub struct Leadership(Arc<ArcSwap<Table>>);

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("held", &self.held()).finish()
    }
}

impl Default for Leadership {
    fn default() -> Self {
        Self::new()
    }
}

impl Leadership {
    /// Holds nothing until it is promoted.
    pub fn new() -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Table::of(BucketSet::universal()))))
    }

    /// Leave to act on `key`, if this replica holds its bucket in a current term.
    #[inline]
    pub fn guard(&self, key: &str) -> Option<Guard> {
        let table = self.0.load();
        let slot = table.slots[table.set.owner(key)].load();
        slot.as_ref()?.guard()
    }

    /// The term that has `key` now, current or not.
    pub fn term(&self, key: &str) -> Option<Term> {
        let table = self.0.load();
        table.slots[table.set.owner(key)].load().as_deref().cloned()
    }

    /// The buckets held in a current term, in the order of the layout.
    pub fn held(&self) -> Vec<Bucket> {
        self.terms().into_iter().filter(Term::is_current).map(|t| t.bucket().clone()).collect()
    }

    /// The terms known, in the order of the layout.
    pub fn terms(&self) -> Vec<Term> {
        self.0.load().slots.iter().filter_map(|s| s.load().as_deref().cloned()).collect()
    }

    /// Narrows a stream of keyed events to those that this replica may act on, each with its guard.
    pub fn only_mine<S, K>(&self, events: S, key: K) -> OnlyMine<S, K>
    where
        S: Stream,
        K: for<'a> Fn(&'a S::Item) -> &'a str,
    {
        OnlyMine::new(self.clone(), events, key)
    }
}

impl LeaderAware for Leadership {
    async fn promote(&self, term: Term) -> Result<(), BoxError> {
        if term.is_cancelled() {
            // It may be of a layout that is over: laying that out again would hide every term of the present one.
            return Err(Box::new(Lost));
        }
        let mut table = self.0.load_full();
        if !Arc::ptr_eq(&table.set, term.bucket().set()) {
            // Promotes of different buckets run at the same time: only one of them lays out the new table.
            let fresh = Arc::new(Table::of(term.bucket().set().clone()));
            self.0.rcu(|now| if Arc::ptr_eq(&now.set, &fresh.set) { Arc::clone(now) } else { Arc::clone(&fresh) });
            table = self.0.load_full();
        }
        table.slots[term.bucket().index()].store(Some(Arc::new(term)));
        Ok(())
    }

    async fn demote(&self, bucket: &Bucket, _: Reason) {
        let table = self.0.load();
        if Arc::ptr_eq(&table.set, bucket.set()) {
            table.slots[bucket.index()].store(None);
        }
    }
}
