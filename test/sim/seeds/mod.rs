//! Random worlds: one seed is one run, and repeats itself.
//!
//! `SIM_SEED=17 cargo test --test sim seeds` replays one. `SIM_SEEDS=10000` runs that many, from `SIM_FROM` on, on
//! `SIM_THREADS` threads: `hack/soak` does so with optimised code.

mod mood;
mod trouble;

use crate::world::{Replica, World, timing};
use mood::Mood;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many run where nobody asks for more.
const CI: u64 = 500;
/// So many failures are enough.
const ENOUGH: usize = 8;

fn var(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Past the capture of a test's output: how much was run is worth a line when all is well, too.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[derive(Default)]
struct Tally {
    seeds: u64,
    took: Duration,
    faults: BTreeMap<&'static str, usize>,
    failed: Vec<u64>,
}

#[test]
#[allow(clippy::disallowed_methods, reason = "how fast it runs is real time")]
fn seeds() {
    let one = var("SIM_SEED");
    let from = one.or(var("SIM_FROM")).unwrap_or(0);
    let many = if one.is_some() { 1 } else { var("SIM_SEEDS").unwrap_or(CI) };
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get() as u64);
    let threads = var("SIM_THREADS").unwrap_or(cores).clamp(1, many.max(1));
    let began = std::time::Instant::now();
    let (next, tally) = (AtomicU64::new(from), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + many || tally.lock().expect("whole").failed.len() >= ENOUGH {
                        return;
                    }
                    let result = catch_unwind(|| run(seed));
                    let mut tally = tally.lock().expect("whole");
                    tally.seeds += 1;
                    match result {
                        Ok(run) => {
                            tally.took += run.took;
                            for (kind, n) in run.faults {
                                *tally.faults.entry(kind).or_default() += n;
                            }
                        }
                        Err(_) => tally.failed.push(seed),
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("whole");
    let real = began.elapsed().as_secs_f64();
    say(&format!(
        "sim: {} seeds from {from}, {:.1} virtual hours in {real:.0} s ({:.1} seeds a second)",
        tally.seeds,
        tally.took.as_secs_f64() / 3600.0,
        tally.seeds as f64 / real
    ));
    let kinds: Vec<String> = tally.faults.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    say(&format!("sim: {}", kinds.join(", ")));
    for seed in &tally.failed {
        say(&format!("sim: FAILED; replay with: SIM_SEED={seed} cargo test --test sim seeds"));
    }
    assert!(tally.failed.is_empty(), "{} seeds failed: {:?}", tally.failed.len(), tally.failed);
    if many >= CI {
        let dead: Vec<&&str> = trouble::KINDS.iter().filter(|k| !tally.faults.contains_key(**k)).collect();
        assert!(dead.is_empty(), "faults that never occur: {dead:?}");
    }
}

#[test]
fn a_seed_repeats_itself() {
    for seed in [3, 11, 12, 40] {
        assert_eq!(run(seed).hash, run(seed).hash, "seed {seed}");
    }
}

/// What came of a seed.
struct Done {
    took: Duration,
    faults: BTreeMap<&'static str, usize>,
    hash: u64,
}

/// A runtime of its own, on paused time.
fn run(seed: u64) -> Done {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    // The jitter of pauses is drawn from the thread's own generator.
    fastrand::seed(seed);
    runtime.block_on(one(seed))
}

/// A replica, and how its LeaderAware feels.
struct Member {
    replica: Replica,
    mood: Mood,
}

/// A world under trouble.
struct Story {
    world: World,
    rng: fastrand::Rng,
    fleet: Vec<Member>,
    /// Replicas may have other durations, or want another layout, than the rest.
    mixed_durations: bool,
    mixed_layouts: bool,
    backup: Option<leasehold::dev::apiserver::Snapshot>,
    go: usize,
}

/// Trouble and calm in turn. In a calm every bucket must have a holder in time: the checker says by when.
async fn one(seed: u64) -> Done {
    let mut rng = fastrand::Rng::with_seed(seed);
    let timings = [timing(15, 10, 2), timing(5, 4, 1), timing(60, 40, 10)];
    let buckets = *rng.choice(&[1, 3, 10]).expect("some");
    let world = World::new(seed, buckets, *rng.choice(&timings).expect("some"));
    let (mixed_durations, mixed_layouts) = (rng.u32(0..3) == 0, rng.u32(0..5) == 0);
    let mut story = Story { world, rng, fleet: Vec::new(), mixed_durations, mixed_layouts, backup: None, go: 0 };
    story.latency();
    if story.rng.bool() {
        crate::cases::init(&story.world, buckets).await.expect("opened");
    }
    for _ in 0..story.rng.usize(1..4) {
        story.join();
    }
    let calms = story.rng.usize(1..4);
    for left in (0..calms).rev() {
        for _ in 0..story.rng.usize(3..12) {
            let most = story.world.timing.lease_duration.as_millis() as u64 / 2;
            tokio::time::sleep(Duration::from_millis(story.rng.u64(10..most))).await;
            story.trouble().await;
        }
        story.calm(left == 0).await;
    }
    for member in story.fleet {
        member.replica.stop().await;
    }
    let world = story.world;
    world.judge();
    Done { took: world.truth.now(), faults: world.history.faults(), hash: world.history.hash() }
}
