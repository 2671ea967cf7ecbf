//! When the next trouble is due, and whom it hits.
//!
//! The order in which replicas are tried is drawn from the seed, so a seed makes the same draws in every run; of that
//! order the first who holds a bucket is hit, since trouble for a standby tests little. Who holds what depends on the
//! run.

use crate::clock::Instant;
use crate::dev::fleet::options::Chaos;
use std::time::Duration;

/// The troubles of a run.
#[derive(Debug)]
pub struct Scheduler {
    kind: Chaos,
    every: Duration,
    rng: fastrand::Rng,
    due: Option<Instant>,
}

impl Scheduler {
    /// Trouble of one kind, from one to the next `every`, drawn from `seed`.
    pub fn new(kind: Chaos, every: Duration, seed: u64) -> Self {
        Self { kind, every, rng: fastrand::Rng::with_seed(seed), due: None }
    }

    /// From here on time counts: the first trouble comes `every` later.
    pub fn begin(&mut self, now: Instant) {
        self.due = (self.kind != Chaos::None).then_some(now + self.every);
    }

    /// No more trouble.
    pub fn end(&mut self) {
        self.due = None;
    }

    /// Which of so many replicas is hit now, if one is: `calm` says that the last trouble is over, `holds` how many
    /// buckets each holds.
    pub fn next(&mut self, now: Instant, calm: bool, holds: &[usize]) -> Option<(Chaos, usize)> {
        if !calm || self.due.is_none_or(|due| now < due) {
            return None;
        }
        let mut order: Vec<usize> = (0..holds.len()).collect();
        self.rng.shuffle(&mut order);
        let victim = order.iter().copied().find(|&n| holds[n] > 0).or_else(|| order.first().copied())?;
        self.due = Some(now + self.every);
        Some((self.kind, victim))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn scheduler(kind: Chaos, seed: u64) -> Scheduler {
        let mut scheduler = Scheduler::new(kind, Duration::from_secs(5), seed);
        scheduler.begin(at(100));
        scheduler
    }

    #[test]
    fn one_trouble_at_a_time() {
        let mut s = scheduler(Chaos::Kill, 1);
        assert_eq!(s.next(at(104), true, &[1, 1, 1]), None, "not due");
        assert_eq!(s.next(at(106), false, &[1, 1, 1]), None, "due, but the last is not over");
        assert!(s.next(at(107), true, &[1, 1, 1]).is_some_and(|(kind, _)| kind == Chaos::Kill));
        assert_eq!(s.next(at(111), true, &[1, 1, 1]), None, "five seconds after the last, not after the first");
        assert!(s.next(at(112), true, &[1, 1, 1]).is_some());
        s.end();
        assert_eq!(s.next(at(200), true, &[1, 1, 1]), None);
    }

    #[test]
    fn no_trouble_unless_asked() {
        assert_eq!(scheduler(Chaos::None, 1).next(at(500), true, &[1]), None);
        assert_eq!(Scheduler::new(Chaos::Kill, Duration::ZERO, 1).next(at(500), true, &[1]), None, "not begun");
    }

    #[test]
    fn a_seed_makes_the_same_draws_and_others_make_others() {
        let victims = |seed| {
            let mut s = scheduler(Chaos::Term, seed);
            (0..40).filter_map(|n| s.next(at(105 + 5 * n), true, &[1; 5])).map(|(_, v)| v).collect::<Vec<_>>()
        };
        assert_eq!(victims(7), victims(7));
        assert_ne!(victims(7), victims(8));
        assert!((0..5).all(|n| victims(7).contains(&n)), "everybody's turn comes");
    }

    #[test]
    fn holders_are_hit_first() {
        let mut s = scheduler(Chaos::Term, 3);
        for n in 0..20 {
            assert_eq!(s.next(at(105 + 5 * n), true, &[0, 4, 0]), Some((Chaos::Term, 1)));
        }
        assert!(s.next(at(500), true, &[0, 0, 0]).is_some(), "somebody, where nobody holds any");
        assert_eq!(s.next(at(600), true, &[]), None);
    }
}
