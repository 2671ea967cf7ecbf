//! High availability off: one bucket that has every key, held from start to stop. No Leases, no fencing token.
//!
//! # Caveats
//! Two replicas do everything twice: run one.

use super::fixed::Fixed;
use super::{BuildError, Elector, Queue, Strategy};
use crate::bucket::BucketSet;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unopposed;

impl Strategy for Unopposed {
    fn name(&self) -> &'static str {
        "unopposed"
    }

    fn build(&self, queue: Queue) -> Result<Box<dyn Elector>, BuildError> {
        queue.status.say("layout", "unopposed: high availability is off; a second replica would do everything twice");
        let bucket = BucketSet::universal().bucket(0);
        Ok(Box::new(Fixed { queue, bucket }))
    }
}
