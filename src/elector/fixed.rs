//! An elector without Leases: one bucket, held from start to stop.
//!
//! # Caveats
//! A checkpoint is kept in the process only: it lasts from one term to the next (a promote that failed), not longer.

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
    let mut saved = None;
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
            saved: saved.clone(),
        };
        let tenure = Tenure::begin(Term::new(parts), limits, around.clone());
        let checkpoint = Arc::clone(tenure.term().checkpoint());
        let mut asked = false;
        loop {
            tokio::select! {
                () = stop.cancelled(), if !asked => {
                    asked = true;
                    tenure.end(Reason::Shutdown);
                }
                () = checkpoint.wanted() => {
                    if let Some((number, position)) = checkpoint.pending() {
                        saved = Some(position);
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
        saved = checkpoint.pending().map(|(_, position)| position).or(saved);
        let pause = backoff.next().unwrap_or(Duration::from_mins(5));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Queue, Status, Stop, Strategy, unopposed::Unopposed};
    use crate::clock::virtual_time::VirtualClock;
    use crate::config::Config;
    use crate::leader::{Leadership, fatal};
    use std::sync::Arc;
    use tokio::sync::watch;

    #[tokio::test(start_paused = true)]
    async fn holds_everything_keeps_its_checkpoint_and_stops_in_good_order() {
        let config = Config::builder().build().expect("valid");
        let queue = Queue {
            component: "c".into(),
            name: "q".into(),
            identity: "i_1".into(),
            config: watch::channel(Arc::new(config)).1,
            clock: Arc::new(VirtualClock::new()),
            observer: Arc::new(|_: &_| {}),
            on_fatal: fatal::exits(),
            status: Status::default(),
        };
        let (leadership, stop) = (Leadership::new(), Stop::new());
        let elector = Unopposed.build(queue).expect("always");
        let run = tokio::spawn(elector.run(Arc::new(leadership.clone()), stop.clone()));
        while leadership.guard("any/key").is_none() {
            tokio::task::yield_now().await;
        }
        let term = leadership.term("any/key").expect("held");
        assert_eq!(term.token(), None, "no Lease, no token");
        term.checkpoint().store("here").expect("kept");
        term.checkpoint().flush().await.expect("there is no Lease to wait for");
        stop.cancel();
        run.await.expect("no panic");
        assert!(leadership.guard("any/key").is_none());
    }
}
