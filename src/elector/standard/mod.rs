//! The standard strategy: every replica competes for each bucket Lease, wire-compatible with client-go and Knative.
//!
//! The holder renews each bucket every retry-period; the others do not poll: one watch, and a timer per bucket for its
//! expiry (design 5.1). The layout Lease is in its first form (design 6): first start, the read after a take, the list
//! before the first promotion.
//!
//! # Guarantees
//! - Rules S1 to S6 and S9 of the design among replicas of leasehold, S8 as far as the layout does not change.
//! - A Go replica and this one can share a set of Leases.
//!
//! # Caveats
//! The first replica up takes what is free; those that start together share, since whoever holds some waits a little.
//!
//! # Layout of the module
//! `core` decides (no clock, no input or output: it can be simulated and read alone), with one file for
//! `slot`s (one per bucket) and one for the `layout` Lease; `run` carries out what was decided.

mod core;
mod layout;
mod run;
mod slot;

use super::{BuildError, Elector, Queue, Strategy};
use crate::bucket::{self, BucketSet};
use crate::lease::{Cut, Manager};

/// See the module.
#[derive(Debug, Clone)]
pub struct Standard {
    manager: Manager,
}

impl Standard {
    /// Electors over the Leases of `manager`.
    pub fn new(manager: Manager) -> Self {
        Self { manager }
    }
}

impl Strategy for Standard {
    fn name(&self) -> &'static str {
        "standard"
    }

    fn build(&self, queue: Queue) -> Result<Box<dyn Elector>, BuildError> {
        let config = queue.config.borrow().clone();
        let prefix = config.prefix(&queue.component, &queue.name);
        let names: Vec<String> = (0..config.buckets).map(|i| bucket::lease_name(&prefix, i, config.buckets)).collect();
        let layout = layout_name(&queue.component, &queue.name);
        for name in names.iter().chain([&layout]) {
            bucket::check_lease_name(name).map_err(|e| {
                BuildError::Name(format!(
                    "queue {:?} of component {:?}: {e}. Shorten the component or the queue, or map the prefix with \
                     map-lease-prefix.{}.{}",
                    queue.name, queue.component, queue.component, queue.name
                ))
            })?;
        }
        let claim = self.manager.claim(
            &queue.component,
            &queue.name,
            names.iter().cloned().chain([layout.clone()]).collect(),
        )?;
        self.manager.listen(&queue.observer);
        let set = BucketSet::new(config.hash, names)?;
        let cut = Cut {
            strategy: self.name().to_owned(),
            hash: config.hash.into(),
            buckets: config.buckets,
            prefix: prefix.to_lowercase(),
        };
        Ok(Box::new(run::Running::new(self.manager.clone(), claim, queue, set, cut, layout)))
    }
}

/// The name of a queue's layout Lease: never mapped by a prefix (design 6).
pub fn layout_name(component: &str, queue: &str) -> String {
    format!("{component}.{queue}").to_lowercase()
}
