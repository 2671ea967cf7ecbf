//! A clock that a test or a simulation drives: one per replica, over tokio's timers.
//!
//! # Guarantees
//! - Never goes back, whatever is done to it and from whichever thread; nor does [`VirtualClock::wall`] unless it is set.
//! - On tokio's paused time it is exact and repeatable: it moves only when the timers do, or when it is told to.
//! - Its clones are the same clock.
//!
//! # Assumptions
//! Read inside the runtime whose time it follows: outside of one, tokio answers with the machine's own clock.
//!
//! # Caveats
//! It moves itself, not the timers. That is the point of [`VirtualClock::suspend`], and of a rate that is not one: a
//! timer set for the time that is left wakes early or late, as on a real machine, and whoever woke has to look again.

use super::{Clock, Instant, SharedClock, nanos};
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant as Timer;

/// A rate of one second per second, in parts per million.
pub const TRUE_RATE: u32 = 1_000_000;

/// Where a clock starts unless told otherwise: not at its origin, so that a subtraction that goes below it shows.
const START: Instant = Instant::from_nanos(1_000_000 * 1_000_000_000);

/// 2026-01-01T00:00:00Z.
const WALL_START: i64 = 1_767_225_600;

/// A clock with an offset, a rate and a jump: see the module.
///
/// ```
/// # use leasehold::clock::{Clock, virtual_time::VirtualClock};
/// # use std::time::Duration;
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
/// # runtime.block_on(async {
/// let clock = VirtualClock::new();
/// let before = clock.now();
/// clock.suspend(Duration::from_secs(3600));
/// assert!(clock.now().since(before) >= Duration::from_secs(3600));
/// # });
/// ```
#[derive(Clone)]
pub struct VirtualClock(Arc<Mutex<State>>);

/// The clock is a line through the last point at which anything about it was changed.
#[derive(Debug, Clone, Copy)]
struct State {
    /// tokio's clock at that point.
    timer: Timer,
    /// This clock at that point.
    now: Instant,
    /// Parts per million of tokio's.
    rate: u32,
    /// What the wall clock showed at that point.
    wall: Timestamp,
    wall_stands: bool,
}

impl State {
    /// The same line, with `timer` as the point.
    fn at(self, timer: Timer) -> Self {
        let passed = u128::from(nanos(timer.saturating_duration_since(self.timer)));
        let moved = passed * u128::from(self.rate) / u128::from(TRUE_RATE);
        let moved = Duration::from_nanos(u64::try_from(moved).unwrap_or(u64::MAX));
        Self { timer, now: self.now + moved, ..self }.wall_moved(moved)
    }

    fn jumped(self, by: Duration) -> Self {
        Self { now: self.now + by, ..self }.wall_moved(by)
    }

    fn wall_moved(self, by: Duration) -> Self {
        if self.wall_stands {
            return self;
        }
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        Self { wall: self.wall.saturating_add(by).unwrap_or(Timestamp::MAX), ..self }
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl VirtualClock {
    /// A clock that keeps true time. Its wall clock shows the start of 2026.
    pub fn new() -> Self {
        Self::starting_at(START)
    }

    /// A clock that shows `now`: replicas must not compare theirs (rule S4), so each may have an origin of its own.
    pub fn starting_at(now: Instant) -> Self {
        let wall = Timestamp::from_second(WALL_START).unwrap_or(Timestamp::UNIX_EPOCH);
        Self(Arc::new(Mutex::new(State { timer: Timer::now(), now, rate: TRUE_RATE, wall, wall_stands: false })))
    }

    /// The same clock, running at `parts_per_million` of tokio's from the start.
    #[must_use]
    pub fn with_rate(self, parts_per_million: u32) -> Self {
        self.set_rate(parts_per_million);
        self
    }

    /// As what the runtime takes.
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }

    /// From now on it runs at `parts_per_million` of tokio's clock: 1,010,000 is one percent fast, 0 stands still, as
    /// in a virtual machine whose host stopped its clocks.
    pub fn set_rate(&self, parts_per_million: u32) {
        self.change(|state| State { rate: parts_per_million, ..state });
    }

    /// The machine slept for `slept`: this clock and its wall clock have gone on, the timers have not.
    pub fn suspend(&self, slept: Duration) {
        self.change(|state| state.jumped(slept));
    }

    /// From now on the wall clock shows `wall` and goes on from there; it may jump either way.
    pub fn set_wall(&self, wall: Timestamp) {
        self.change(|state| State { wall, wall_stands: false, ..state });
    }

    /// The wall clock stands still until it is set; the clock that decides goes on.
    pub fn freeze_wall(&self) {
        self.change(|state| State { wall_stands: true, ..state });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(State) -> State) {
        let mut state = self.state();
        *state = change(state.at(Timer::now()));
    }

    fn read(&self) -> State {
        // The timer is read inside the lock: a reader that was overtaken between the two would see an earlier time than
        // the one that overtook it. The point stays where it is: each look would else lose a part of a nanosecond.
        let state = self.state();
        state.at(Timer::now())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        self.read().now
    }

    fn wall(&self) -> Timestamp {
        self.read().wall
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { now, rate, wall, .. } = self.read();
        f.debug_struct("VirtualClock")
            .field("now", &now)
            .field("rate", &rate)
            .field("wall", &wall)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
