//! Time as the protocol needs it: intervals on a clock that runs on through suspend, read at every decision.
//!
//! # Guarantees
//! - [`Boottime`] is CLOCK_BOOTTIME: it never goes back and counts the time a machine sleeps (rule S2).
//! - Nothing in this crate reads a clock except through [`Clock`], so tests give each replica its own.
//!
//! # Caveats
//! tokio's timers are CLOCK_MONOTONIC and stop in suspend. They only wake; whoever wakes reads the clock again.

#[cfg(any(test, feature = "dev"))]
pub mod virtual_time;

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::Duration;

/// A point on one process's own clock, in nanoseconds since an origin that means nothing elsewhere (rule S4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const ORIGIN: Self = Self(0);

    /// The instant `nanos` after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to here; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Nanoseconds of a duration, at most `u64::MAX` (584 years).
fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(nanos(d)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(d)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// A source of time. One per process; one per replica in a simulation.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Now, on the clock that decides.
    fn now(&self) -> Instant;
    /// Now, on the wall clock: only ever for people, and for the times that a Lease shows (rule S4).
    fn wall(&self) -> jiff::Timestamp;
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock: CLOCK_BOOTTIME for decisions, CLOCK_REALTIME for people.
#[derive(Debug, Clone, Copy, Default)]
pub struct Boottime;

impl Clock for Boottime {
    fn now(&self) -> Instant {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let id = rustix::time::ClockId::Boottime;
        // Elsewhere the monotonic clock has to do; what it does in suspend is the platform's affair.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let id = rustix::time::ClockId::Monotonic;
        let t = rustix::time::clock_gettime(id);
        let secs = u64::try_from(t.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(t.tv_nsec).unwrap_or(0);
        Instant(secs.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    #[allow(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// Sleeps until `clock` says `at`, whatever the timers did meanwhile: each wake reads the clock again.
///
/// Cancel-safe. A suspended machine wakes it late by at most one timer of a second, not by the time it slept.
pub async fn sleep_until(clock: &dyn Clock, at: Instant) {
    loop {
        let left = at.since(clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}
