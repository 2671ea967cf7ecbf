//! What the hot path of the gate costs, over the machine's own clock: `cargo bench --bench gate`.
//!
//! A hit asks for a guard of a key whose bucket is held, and drops it. A miss asks for one whose bucket is held by
//! somebody else. Keys have 20 bytes; `hot` asks for one of them, `mixed` for a new one each time. `threads` is the same
//! from several threads at once: `one_bucket` when all want guards of one term, `many` when each wants its own. An
//! allocation in any of them would show as one (and fails `test/leader_allocations.rs`). No guard is returned to divan,
//! which would drop it after it has stopped its watch.
//!
//! `parts` are what a hit is made of: the bucket of a key, a guard from the term, a look at the clock.

use divan::{AllocProfiler, Bencher, counter::ItemsCount};
use leasehold::bucket::{Bucket, BucketSet, Hash, key, lease_name};
use leasehold::clock::{Boottime, Clock};
use leasehold::leader::observe::Observers;
use leasehold::leader::tenure::{Limits, Surroundings, Tenure, Told};
use leasehold::leader::{Deadline, FencingToken, Leadership, Term, TermParts, fatal};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const DAY: Duration = Duration::from_hours(24);
const BUCKETS: [u32; 3] = [10, 100, 1_000];

fn main() {
    divan::main();
}

fn keys() -> impl Iterator<Item = String> {
    (0..1_000_000_u32).map(|i| key(&format!("team-{:05}", i * 7_919 % 100_000), &format!("feed-{:04}", i % 10_000)))
}

/// A replica that holds every other bucket, through the front door.
struct Replica {
    leadership: Leadership,
    buckets: Arc<BucketSet>,
    /// Dropping them would end the terms, whose tasks are at rest.
    _tenures: Vec<Tenure>,
    _runtime: tokio::runtime::Runtime,
}

impl Replica {
    fn new(hash: Hash, buckets: u32) -> Self {
        let names = (0..buckets).map(|i| lease_name("adapter.q", i, buckets));
        let buckets = BucketSet::new(hash, names).expect("distinct names within bounds");
        let leadership = Leadership::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let tenures = runtime.block_on(async {
            let mut all = Vec::new();
            for bucket in (0..buckets.len()).step_by(2).map(|i| buckets.bucket(i)) {
                all.push(hold(&leadership, bucket).await);
            }
            all
        });
        Self { leadership, buckets, _tenures: tenures, _runtime: runtime }
    }

    fn keys(&self, held: bool) -> Vec<String> {
        keys().filter(|k| self.buckets.owner(k).is_multiple_of(2) == held).take(4_096).collect()
    }
}

async fn hold(leadership: &Leadership, bucket: Bucket) -> Tenure {
    let (told, mut hears) = mpsc::unbounded_channel();
    let term = Term::new(TermParts {
        bucket,
        token: Some(FencingToken::new(0, 1)),
        deadline: Deadline::at(Boottime.now() + DAY),
        clock: Arc::new(Boottime),
        saved: None,
    });
    let limits = Limits { promote: DAY, drain_timeout: DAY, lease_duration: DAY, renew_deadline: DAY };
    let around = Surroundings {
        aware: Arc::new(leadership.clone()),
        clock: Arc::new(Boottime),
        observer: Arc::new(Observers::default()),
        on_fatal: fatal::exits(),
        told,
    };
    let tenure = Tenure::begin(term, limits, around);
    assert!(matches!(hears.recv().await, Some(Told::Promoted(_))));
    tenure
}

fn hot(bencher: Bencher<'_, '_>, hash: Hash, buckets: u32, held: bool) {
    let replica = Replica::new(hash, buckets);
    let key = replica.keys(held).swap_remove(0);
    assert_eq!((key.len(), replica.leadership.guard(&key).is_some()), (20, held));
    bencher.bench_local(|| replica.leadership.guard(black_box(&key)).is_some());
}

fn mixed(bencher: Bencher<'_, '_>, hash: Hash, buckets: u32, held: bool) {
    let replica = Replica::new(hash, buckets);
    let keys = replica.keys(held);
    let at = Cell::new(0);
    bencher.bench_local(|| {
        at.set((at.get() + 1) % keys.len());
        replica.leadership.guard(black_box(&keys[at.get()])).is_some()
    });
}

#[divan::bench_group]
mod hit {
    use super::{BUCKETS, Bencher, Hash, hot, mixed};

    #[divan::bench(args = BUCKETS, sample_size = 1_024)]
    fn knative_hot(bencher: Bencher<'_, '_>, buckets: u32) {
        hot(bencher, Hash::Knative, buckets, true);
    }

    #[divan::bench(args = BUCKETS, sample_size = 1_024)]
    fn ring_hot(bencher: Bencher<'_, '_>, buckets: u32) {
        hot(bencher, Hash::Ring, buckets, true);
    }

    #[divan::bench(args = BUCKETS, sample_size = 1_024)]
    fn ring_mixed(bencher: Bencher<'_, '_>, buckets: u32) {
        mixed(bencher, Hash::Ring, buckets, true);
    }
}

#[divan::bench_group]
mod miss {
    use super::{BUCKETS, Bencher, Hash, hot, mixed};

    #[divan::bench(args = BUCKETS, sample_size = 1_024)]
    fn knative_hot(bencher: Bencher<'_, '_>, buckets: u32) {
        hot(bencher, Hash::Knative, buckets, false);
    }

    #[divan::bench(args = BUCKETS, sample_size = 1_024)]
    fn ring_hot(bencher: Bencher<'_, '_>, buckets: u32) {
        hot(bencher, Hash::Ring, buckets, false);
    }

    #[divan::bench(args = BUCKETS, sample_size = 1_024)]
    fn ring_mixed(bencher: Bencher<'_, '_>, buckets: u32) {
        mixed(bencher, Hash::Ring, buckets, false);
    }
}

/// The time is that of one call in one thread: it stays as it is where threads do not hinder each other.
#[divan::bench_group]
mod threads {
    use super::{AtomicUsize, Bencher, Hash, ItemsCount, Ordering, Replica, black_box};

    const THREADS: [usize; 3] = [1, 2, 4];

    fn each(bencher: Bencher<'_, '_>, held: bool, same: bool) {
        // Each thread takes a number, and with it a key.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed));
        let replica = Replica::new(Hash::Ring, 1_000);
        let keys = replica.keys(held);
        bencher.counter(ItemsCount::new(1_usize)).bench(|| {
            let n = if same { 0 } else { MINE.with(|n| *n) % keys.len() };
            replica.leadership.guard(black_box(&keys[n])).is_some()
        });
    }

    #[divan::bench(threads = THREADS, sample_size = 1_024)]
    fn hit_one_bucket(bencher: Bencher<'_, '_>) {
        each(bencher, true, true);
    }

    #[divan::bench(threads = THREADS, sample_size = 1_024)]
    fn hit_many(bencher: Bencher<'_, '_>) {
        each(bencher, true, false);
    }

    #[divan::bench(threads = THREADS, sample_size = 1_024)]
    fn miss(bencher: Bencher<'_, '_>) {
        each(bencher, false, true);
    }
}

#[divan::bench_group]
mod parts {
    use super::{Bencher, Boottime, Clock, Hash, Replica, black_box};

    #[divan::bench(sample_size = 1_024)]
    fn guard_of_a_term(bencher: Bencher<'_, '_>) {
        let replica = Replica::new(Hash::Knative, 10);
        let term = replica.leadership.terms().swap_remove(0);
        bencher.bench_local(|| black_box(&term).guard().is_some());
    }

    #[divan::bench(sample_size = 1_024)]
    fn clock() -> leasehold::clock::Instant {
        Boottime.now()
    }
}
