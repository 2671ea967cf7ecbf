//! A clock per replica: what it shows may be off, fast, or leap; the truth is the runtime's paused time.

use jiff::{SignedDuration, Timestamp};
use leasehold::clock::{Clock, Instant};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// True time since the world began.
#[derive(Debug, Clone, Copy)]
pub struct Truth(tokio::time::Instant);

impl Truth {
    pub fn begin() -> Self {
        Self(tokio::time::Instant::now())
    }

    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }

    pub fn at(&self, instant: tokio::time::Instant) -> Duration {
        instant - self.0
    }
}

/// A replica's own clock.
#[derive(Debug)]
pub struct SkewedClock {
    truth: Truth,
    /// Where it began: clocks of two replicas have nothing in common (rule S4).
    offset: Duration,
    /// Parts per million by which it is fast.
    ppm: i64,
    /// Time slept: it has passed for the clock, not for the timers.
    slept: AtomicU64,
    /// By how much its wall clock is off, in milliseconds.
    wall_off: AtomicI64,
}

impl SkewedClock {
    pub fn new(truth: Truth, offset: Duration, ppm: i64) -> Self {
        Self { truth, offset, ppm, slept: AtomicU64::new(0), wall_off: AtomicI64::new(0) }
    }

    /// The machine slept for `d`: the clock has gone on, the timers have not.
    pub fn sleep(&self, d: Duration) {
        self.slept.fetch_add(u64::try_from(d.as_nanos()).expect("short"), Ordering::Relaxed);
    }

    /// Somebody sets the wall clock.
    pub fn set_wall_off(&self, by: SignedDuration) {
        self.wall_off.store(i64::try_from(by.as_millis()).expect("short"), Ordering::Relaxed);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Instant {
        let t = self.truth.now();
        let skew = i128::try_from(t.as_nanos()).expect("short") * i128::from(self.ppm) / 1_000_000;
        let nanos = i128::try_from((t + self.offset).as_nanos()).expect("short") + skew;
        let slept = self.slept.load(Ordering::Relaxed);
        Instant::from_nanos(u64::try_from(nanos).expect("positive") + slept)
    }

    fn wall(&self) -> Timestamp {
        let off = SignedDuration::from_millis(self.wall_off.load(Ordering::Relaxed));
        let since = SignedDuration::try_from(self.truth.now()).expect("short");
        Timestamp::from_second(1_800_000_000)
            .expect("valid")
            .checked_add(since)
            .and_then(|t| t.checked_add(off))
            .expect("valid")
    }
}
