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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::testing::config;
    use crate::clock::Boottime;
    use crate::elector::{Status, Stop};
    use crate::leader::Leadership;
    use crate::leader::observe::Event;
    use std::sync::Arc;
    use std::time::Duration;

    /// No Lease keeps a position: whoever flushes one would wait for ever.
    #[tokio::test(start_paused = true)]
    async fn a_flushed_checkpoint_is_not_waited_for() {
        let queue = Queue {
            component: "c".to_owned(),
            name: "q".to_owned(),
            identity: "i".to_owned(),
            config: tokio::sync::watch::channel(Arc::new(config())).1,
            clock: Arc::new(Boottime),
            observer: Arc::new(|_: &Event| {}),
            on_fatal: Arc::new(|why| panic!("{why}")),
            status: Status::default(),
        };
        let leadership = Leadership::new();
        let stop = Stop::new();
        let run = tokio::spawn(Unopposed.build(queue).unwrap().run(Arc::new(leadership.clone()), stop.clone()));
        let term = loop {
            if let Some(term) = leadership.terms().pop() {
                break term;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        for position in ["a", "b"] {
            term.checkpoint().store(position).unwrap();
            tokio::time::timeout(Duration::from_secs(5), term.checkpoint().flush()).await.expect("at once").unwrap();
        }
        stop.cancel();
        run.await.unwrap();
    }
}
