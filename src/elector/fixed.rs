//! An elector without Leases: one bucket, held from start to stop.

use super::{Elector, Queue, Stop};
use crate::bucket::Bucket;
use crate::leader::tenure::{Limits, Surroundings, Tenure, Told};
use crate::leader::{Deadline, DynLeaderAware, Reason, Term, TermParts};
use backon::BackoffBuilder;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

pub(super) struct Fixed {
    pub(super) queue: Queue,
    pub(super) bucket: Bucket,
}

impl Elector for Fixed {
    fn run(self: Box<Self>, aware: Arc<dyn DynLeaderAware>, stop: Stop) -> BoxFuture<'static, ()> {
        Box::pin(hold(*self, aware, stop))
    }
}

/// Holds the bucket; a promote that fails is tried again after a back-off.
async fn hold(fixed: Fixed, aware: Arc<dyn DynLeaderAware>, stop: Stop) {
    let Fixed { queue, bucket } = fixed;
    let (tell, mut told) = mpsc::unbounded_channel();
    let around = Surroundings {
        aware,
        clock: Arc::clone(&queue.clock),
        observer: Arc::clone(&queue.observer),
        on_fatal: Arc::clone(&queue.on_fatal),
        told: tell,
    };
    let mut backoff = backon::ExponentialBuilder::default()
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(Duration::from_mins(5))
        .with_jitter()
        .without_max_times()
        .build();
    while !stop.is_cancelled() {
        let config = queue.config.borrow().clone();
        // Without a Lease nobody else waits for anything: only the drain is bounded.
        let limits = Limits {
            promote: config.timing.renew_deadline,
            drain_timeout: config.drain_timeout,
            lease_duration: Duration::MAX,
            renew_deadline: Duration::ZERO,
        };
        let parts = TermParts {
            bucket: bucket.clone(),
            token: None,
            deadline: Deadline::never(),
            clock: Arc::clone(&queue.clock),
            saved: None,
        };
        let term = Term::new(parts);
        let checkpoint = term.checkpoint();
        let tenure = Tenure::begin(term.clone(), limits, around.clone());
        let mut asked = false;
        loop {
            tokio::select! {
                () = stop.cancelled(), if !asked => {
                    asked = true;
                    tenure.end(Reason::Shutdown);
                }
                // No Lease keeps a position: it lasts as long as this process, and whoever waits for the write goes on.
                () = checkpoint.wanted() => {
                    if let Some((number, _)) = checkpoint.pending() {
                        checkpoint.mark_written(number);
                    }
                }
                told = told.recv() => match told {
                    Some(Told::PromoteFailed(_)) => tenure.end(Reason::Released),
                    Some(Told::Promoted(_)) => {}
                    Some(Told::Ended(..)) | None => break,
                },
            }
        }
        let pause = backoff.next().unwrap_or(Duration::from_mins(5));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
