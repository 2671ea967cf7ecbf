//! The three durations of a Lease, which are only ever right together.
//!
//! # Guarantees
//! A [`Timing`] meets client-go's own conditions (k8s.io/client-go, tools/leaderelection) and ours, which come after:
//! - one attempt may take ([`renew_deadline`](Timing::renew_deadline) - [`retry_period`](Timing::retry_period)) / 3,
//!   so that after a failed renewal there is room for two more, and that is at least 200 ms;
//! - `renew_deadline` is at most 0.8 of [`lease_duration`](Timing::lease_duration): what is left is for clocks that
//!   run unlike and for the pause between a look at the clock and a send (rule S2);
//! - `lease_duration` is whole seconds, since a Lease holds no fractions, and at most 24 h.

use std::time::Duration;

use super::duration::Nanos;

/// How long terms last and how often they are renewed. 15 s, 10 s, 2 s where nothing is configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Timing {
    /// How long a Lease holds after its last renewal; whole seconds.
    pub lease_duration: Duration,
    /// How long its holder goes on after sending the last renewal that counts.
    pub renew_deadline: Duration,
    /// How often a holder renews.
    pub retry_period: Duration,
}

/// Which condition the three durations do not meet. The first five are client-go's, in its order and words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// The Lease would end before its holder stops.
    #[error("leaseDuration must be greater than renewDeadline: lease-duration is {lease}, renew-deadline is {renew}")]
    LeaseWithinDeadline {
        /// lease-duration.
        lease: Nanos,
        /// renew-deadline.
        renew: Nanos,
    },
    /// There would be no renewal before the deadline.
    #[error(
        "renewDeadline must be greater than retryPeriod*JitterFactor: renew-deadline is {renew}, retry-period is {retry} \
         and the factor is 1.2"
    )]
    DeadlineWithinRetry {
        /// renew-deadline.
        renew: Nanos,
        /// retry-period.
        retry: Nanos,
    },
    /// lease-duration is not positive.
    #[error("leaseDuration must be greater than zero: lease-duration is {0}")]
    LeaseNotPositive(Nanos),
    /// renew-deadline is not positive.
    #[error("renewDeadline must be greater than zero: renew-deadline is {0}")]
    DeadlineNotPositive(Nanos),
    /// retry-period is not positive.
    #[error("retryPeriod must be greater than zero: retry-period is {0}")]
    RetryNotPositive(Nanos),
    /// A renewal that fails would leave no time for another.
    #[error(
        "one attempt to renew may take (renew-deadline - retry-period) / 3, which must be at least 200ms: \
         renew-deadline {renew} and retry-period {retry} leave {attempt}; raise the one or lower the other"
    )]
    AttemptTooShort {
        /// renew-deadline.
        renew: Nanos,
        /// retry-period.
        retry: Nanos,
        /// What is left for one attempt.
        attempt: Nanos,
    },
    /// The holder would go on too near to the end of the Lease.
    #[error(
        "renew-deadline must be at most 0.8 of lease-duration: renew-deadline is {renew}, lease-duration is {lease} and \
         0.8 of it is {most}; lower the one or raise the other"
    )]
    DeadlineTooLate {
        /// renew-deadline.
        renew: Nanos,
        /// lease-duration.
        lease: Nanos,
        /// 0.8 of lease-duration.
        most: Nanos,
    },
    /// A Lease cannot say the duration.
    #[error("lease-duration must be whole seconds, since a Lease holds no fractions of one: found {0}")]
    LeaseNotWhole(Nanos),
    /// A dead holder would block its buckets for days.
    #[error("lease-duration must be at most 24h (86400s): found {0}")]
    LeaseTooLong(Nanos),
}

const SECOND: i64 = 1_000_000_000;
const LONGEST: i64 = 86_400 * SECOND;
const SHORTEST_ATTEMPT: i64 = SECOND / 5;

impl Timing {
    /// Without any configuration (Knative's adapters): 15 s, 10 s, 2 s.
    pub(super) const WITHOUT_CONFIG_MAP: Raw = Raw::seconds(15, 10, 2);
    /// For the keys that a ConfigMap leaves out (Knative's leaderelection package): 60 s, 40 s, 10 s.
    pub(super) const IN_CONFIG_MAP: Raw = Raw::seconds(60, 40, 10);

    /// The three durations, checked together.
    ///
    /// # Errors
    /// The first condition that is not met, with the numbers.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        Raw { lease: lease_duration.into(), renew: renew_deadline.into(), retry: retry_period.into() }.check()
    }

    /// The longest that one attempt to renew may take: (renew-deadline - retry-period) / 3.
    pub fn attempt_timeout(&self) -> Duration {
        self.renew_deadline.saturating_sub(self.retry_period) / 3
    }

    /// lease-duration as a Lease writes it.
    pub fn lease_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Three durations as they were read: any of them may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Raw {
    pub(super) lease: Nanos,
    pub(super) renew: Nanos,
    pub(super) retry: Nanos,
}

impl Raw {
    const fn seconds(lease: i64, renew: i64, retry: i64) -> Self {
        Self { lease: Nanos(lease * SECOND), renew: Nanos(renew * SECOND), retry: Nanos(retry * SECOND) }
    }

    /// client-go's conditions in its order, then ours.
    pub(super) fn check(self) -> Result<Timing, TimingError> {
        let Self { lease, renew, retry } = self;
        if lease <= renew {
            return Err(TimingError::LeaseWithinDeadline { lease, renew });
        }
        if renew.0 <= jittered(retry.0) {
            return Err(TimingError::DeadlineWithinRetry { renew, retry });
        }
        let lease_duration = positive(lease).ok_or(TimingError::LeaseNotPositive(lease))?;
        let renew_deadline = positive(renew).ok_or(TimingError::DeadlineNotPositive(renew))?;
        let retry_period = positive(retry).ok_or(TimingError::RetryNotPositive(retry))?;

        let attempt = (renew.0 - retry.0) / 3;
        if attempt < SHORTEST_ATTEMPT {
            return Err(TimingError::AttemptTooShort { renew, retry, attempt: Nanos(attempt) });
        }
        let most = lease.0 / 5 * 4 + lease.0 % 5 * 4 / 5;
        if renew.0 > most {
            return Err(TimingError::DeadlineTooLate { renew, lease, most: Nanos(most) });
        }
        if lease.0 % SECOND != 0 {
            return Err(TimingError::LeaseNotWhole(lease));
        }
        if lease.0 > LONGEST {
            return Err(TimingError::LeaseTooLong(lease));
        }
        Ok(Timing { lease_duration, renew_deadline, retry_period })
    }
}

fn positive(nanos: Nanos) -> Option<Duration> {
    u64::try_from(nanos.0).ok().filter(|&n| n > 0).map(Duration::from_nanos)
}

/// The period by client-go's JitterFactor, 1.2, in its own arithmetic; saturating where Go's result is undefined.
#[allow(clippy::cast_possible_truncation, reason = "as in Go; `as` saturates")]
fn jittered(retry: i64) -> i64 {
    (1.2 * retry as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn raw(lease: i64, renew: i64, retry: i64) -> Result<Timing, String> {
        Raw { lease: Nanos(lease), renew: Nanos(renew), retry: Nanos(retry) }.check().map_err(|e| e.to_string())
    }

    fn millis(lease: i64, renew: i64, retry: i64) -> Result<Timing, String> {
        raw(lease * 1_000_000, renew * 1_000_000, retry * 1_000_000)
    }

    #[test]
    fn the_usual_three_pass() {
        for (lease, renew, retry, attempt) in [(15, 10, 2, 2_666), (60, 40, 10, 10_000), (5, 4, 1, 1_000)] {
            let timing = millis(lease * 1000, renew * 1000, retry * 1000).unwrap();
            assert_eq!(i64::from(timing.lease_seconds()), lease);
            assert_eq!(timing.attempt_timeout().as_millis(), attempt);
        }
        assert_eq!(Timing::WITHOUT_CONFIG_MAP.check(), Ok(Timing::default()));
        assert_eq!(Timing::IN_CONFIG_MAP.check().unwrap().lease_duration, Duration::from_mins(1));
        assert_eq!(millis(86_400_000, 69_120_000, 2_000).unwrap().lease_seconds(), 86_400);
    }

    #[test]
    fn client_gos_conditions_come_first_and_in_its_words() {
        for (found, expected) in [
            (
                millis(10_000, 10_000, 0),
                "leaseDuration must be greater than renewDeadline: lease-duration is 10s, renew-deadline is 10s",
            ),
            (
                millis(0, 0, 0),
                "leaseDuration must be greater than renewDeadline: lease-duration is 0ns, renew-deadline is 0ns",
            ),
            (
                millis(15_000, 12_000, 10_000),
                "renewDeadline must be greater than retryPeriod*JitterFactor: renew-deadline is 12s, retry-period is 10s \
                 and the factor is 1.2",
            ),
            (millis(-1_000, -2_000, -3_000), "leaseDuration must be greater than zero: lease-duration is -1s"),
            (millis(15_000, 0, -1_000), "renewDeadline must be greater than zero: renew-deadline is 0ns"),
            (millis(15_000, 10_000, 0), "retryPeriod must be greater than zero: retry-period is 0ns"),
        ] {
            assert_eq!(found.unwrap_err(), expected);
        }
    }

    #[test]
    fn ours_name_the_numbers_and_the_rule() {
        for (found, expected) in [
            (
                millis(5_000, 1_599, 1_000),
                "one attempt to renew may take (renew-deadline - retry-period) / 3, which must be at least 200ms: \
                 renew-deadline 1.599s and retry-period 1s leave 199.666666ms; raise the one or lower the other",
            ),
            (
                raw(15_000_000_000, 12_000_000_001, 2_000_000_000),
                "renew-deadline must be at most 0.8 of lease-duration: renew-deadline is 12.000000001s, lease-duration is \
                 15s and 0.8 of it is 12s; lower the one or raise the other",
            ),
            (
                millis(15_500, 10_000, 2_000),
                "lease-duration must be whole seconds, since a Lease holds no fractions of one: found 15.5s",
            ),
            (millis(86_401_000, 10_000, 2_000), "lease-duration must be at most 24h (86400s): found 86401s"),
        ] {
            assert_eq!(found.unwrap_err(), expected);
        }
        assert!(millis(5_000, 1_600, 1_000).is_ok(), "200 ms is enough");
        assert!(millis(15_000, 12_000, 2_000).is_ok(), "0.8 is allowed");
    }

    #[test]
    fn durations_beyond_the_range_are_refused() {
        assert!(Timing::new(Duration::MAX, Duration::from_secs(10), Duration::from_secs(2)).is_err());
        assert!(Timing::new(Duration::MAX, Duration::MAX, Duration::MAX).is_err());
        assert!(raw(i64::MAX, i64::MIN, i64::MIN).is_err());
        assert!(raw(i64::MAX, i64::MAX - 1, i64::MAX).is_err());
        assert!(raw(i64::MAX, i64::MAX - 1, i64::MIN).is_err());
    }

    proptest! {
        #[test]
        fn whatever_passes_keeps_the_rules(lease in 1_i64..200, renew in 0_i64..200_000, retry in 0_i64..50_000) {
            let (lease, renew, retry) = (lease * SECOND, renew * 1_000_000, retry * 1_000_000);
            if let Ok(t) = raw(lease, renew, retry) {
                prop_assert!(t.attempt_timeout() >= Duration::from_millis(200));
                prop_assert!(t.renew_deadline * 5 <= t.lease_duration * 4);
                prop_assert!(t.retry_period + 3 * t.attempt_timeout() <= t.renew_deadline);
                prop_assert_eq!(Duration::from_secs(t.lease_seconds().unsigned_abs().into()), t.lease_duration);
                prop_assert!(t.lease_duration <= Duration::from_hours(24));
            }
        }
    }
}
