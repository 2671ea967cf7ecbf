use super::*;
use crate::bucket::{Bucket, BucketSet};
use crate::clock::Clock as _;
use crate::clock::virtual_time::VirtualClock;
use crate::leader::tenure::{Limits, Surroundings, Tenure};
use crate::leader::{Deadline, LeaderAware, Reason, TermParts};
use std::sync::Mutex;
use tokio::sync::{Notify, mpsc};

const S: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

struct Nothing;

impl LeaderAware for Nothing {
    async fn promote(&self, _: Term) -> Result<(), BoxError> {
        Ok(())
    }
    async fn demote(&self, _: &Bucket, _: Reason) {}
}

/// Fires at every multiple of a period.
struct Every {
    key: &'static str,
    period: i64,
    fired: Arc<Mutex<Vec<(&'static str, Timestamp)>>>,
    /// It is answered when this is told.
    answers: Option<Arc<Notify>>,
}

impl Source for Every {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        Timestamp::from_second((after.as_second().div_euclid(self.period) + 1) * self.period).ok()
    }

    fn created(&self) -> Option<Timestamp> {
        None
    }

    fn fire<'a>(&'a self, _: &'a Guard, at: Timestamp) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            self.fired.lock().expect("whole").push((self.key, at));
            if let Some(answers) = &self.answers {
                answers.notified().await;
            }
            true
        })
    }
}

struct Rig {
    clock: VirtualClock,
    term: Term,
    catalog: watch::Sender<Option<Arc<Catalog<Every>>>>,
    fired: Arc<Mutex<Vec<(&'static str, Timestamp)>>>,
    _tenure: Tenure,
}

impl Rig {
    /// One bucket with a checkpoint of now, and nothing in its catalog.
    async fn new(at_once: usize, catch_up: Duration) -> Self {
        let clock = VirtualClock::new();
        let (told, _keep) = mpsc::unbounded_channel();
        let term = Term::new(TermParts {
            bucket: BucketSet::universal().bucket(0),
            token: None,
            deadline: Deadline::never(),
            clock: clock.shared(),
            saved: None,
        });
        term.checkpoint().store(&position::format(clock.wall())).expect("current");
        let around = Surroundings {
            aware: Arc::new(Nothing),
            clock: clock.shared(),
            observer: Arc::new(|_: &_| {}),
            on_fatal: Arc::new(|why| panic!("{why}")),
            told,
        };
        let limits = Limits { promote: S, drain_timeout: S, lease_duration: HOUR, renew_deadline: HOUR };
        let tenure = Tenure::begin(term.clone(), limits, around);
        assert!(term.opened().await);
        let (catalog, seen) = watch::channel(Some(Arc::default()));
        let bounds = Bounds { catch_up, at_once };
        tokio::spawn(run(seen, term.clone(), clock.shared(), bounds));
        tokio::time::sleep(S).await;
        Self { clock, term, catalog, fired: Arc::default(), _tenure: tenure }
    }

    fn source(&self, key: &'static str, period: Duration, answers: Option<&Arc<Notify>>) -> Arc<Every> {
        let period = i64::try_from(period.as_secs()).expect("short");
        Arc::new(Every { key, period, fired: Arc::clone(&self.fired), answers: answers.cloned() })
    }

    fn publish(&self, sources: &[&Arc<Every>]) {
        let catalog = sources.iter().map(|s| (s.key.to_owned(), Arc::clone(s))).collect();
        self.catalog.send_replace(Some(Arc::new(catalog)));
    }

    /// What has fired: the source, and the seconds of its tick since `from`.
    fn fired(&self, from: Timestamp) -> Vec<(&'static str, i64)> {
        self.fired.lock().expect("whole").iter().map(|(k, at)| (*k, at.as_second() - from.as_second())).collect()
    }

    fn answered_before(&self) -> Timestamp {
        position::parse(&self.term.checkpoint().load().expect("stored")).expect("ours")
    }
}

/// Ticks that wait for their turn are fired although the catalog changes meanwhile, and the checkpoint waits for them.
#[tokio::test(start_paused = true)]
async fn a_changed_catalog_drops_no_tick_that_is_due() {
    let rig = Rig::new(1, HOUR).await;
    let from = rig.clock.wall();
    let from = Timestamp::from_second(from.as_second() / 60 * 60).expect("valid");
    let answers = Arc::new(Notify::new());
    let (a, b) = (rig.source("a", MINUTE, Some(&answers)), rig.source("b", MINUTE, None));
    rig.publish(&[&a, &b]);
    tokio::time::sleep(61 * S).await;
    assert_eq!(rig.fired(from), [("a", 60)], "one at once");
    // A new source, and b edited while its tick waits.
    let (b, c) = (rig.source("b", 2 * MINUTE, None), rig.source("c", HOUR, None));
    rig.publish(&[&a, &b, &c]);
    tokio::time::sleep(S).await;
    assert_eq!(rig.answered_before().as_second() - from.as_second(), 60, "two ticks of the minute are not answered");
    answers.notify_one();
    tokio::time::sleep(S).await;
    assert_eq!(rig.fired(from), [("a", 60), ("b", 60)]);
    assert!(rig.answered_before() > from + SignedDuration::from_secs(60));
}

/// A source that comes into a bucket that had none is not caught up from before it was there.
#[tokio::test(start_paused = true)]
async fn a_source_new_in_an_empty_bucket_counts_from_now() {
    let rig = Rig::new(8, HOUR).await;
    let from = rig.clock.wall();
    tokio::time::sleep(10 * MINUTE).await;
    let a = rig.source("a", MINUTE, None);
    rig.publish(&[&a]);
    tokio::time::sleep(S).await;
    assert_eq!(rig.fired(from), [], "ticks from before it was there");
    tokio::time::sleep(MINUTE).await;
    assert_eq!(rig.fired(from).len(), 1);
}

/// The wall clock shows another day for a while, and no tick is near: those of today are still fired.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_was_ahead_for_a_while_loses_no_tick() {
    let rig = Rig::new(8, MINUTE).await;
    let a = rig.source("a", HOUR, None);
    rig.publish(&[&a]);
    tokio::time::sleep(S).await;
    let right = rig.clock.wall();
    let from = Timestamp::from_second(right.as_second() / 3600 * 3600).expect("valid");
    rig.clock.set_wall(right + SignedDuration::from_hours(24) + SignedDuration::from_mins(30));
    tokio::time::sleep(5 * S).await;
    rig.clock.set_wall(right + SignedDuration::from_secs(5));
    tokio::time::sleep(HOUR).await;
    assert_eq!(rig.fired(from), [("a", 3600)]);
}
