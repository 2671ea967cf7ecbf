//! When a delivery is tried again, and after how long.
//!
//! As Knative's ping does it: up to five times more, after 100, 200, 400, 800 and 1600 ms, when the network failed or
//! the sink answered 404, 413, 425, 429, 502, 503 or 504. Ours beyond that:
//!
//! - Jitter: up to a quarter is added to each wait, so that replicas that failed together do not return together. No
//!   wait is shorter than Knative's.
//! - `Retry-After`, in seconds or as a date, is waited for where it asks for longer, while the term goes on, up to
//!   [`Retry::retry_after_max`].
//! - 500 and others can be added ([`Retry::also`]).
//! - A time can bound it instead of a number ([`Retry::lasting`]).

use backon::{BackoffBuilder, ConstantBuilder, ExponentialBuilder};
use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};
use jiff::fmt::rfc2822;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// What the CloudEvents SDK for Go retries.
const RETRIED: [u16; 7] = [404, 413, 425, 429, 502, 503, 504];

/// A wait that is repeated is no shorter than this.
const SHORTEST_AGAIN: Duration = Duration::from_millis(100);

/// How the waits of a delivery grow; k counts the retries from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// The period times 2^k, so that the first wait is twice the period; a single wait is at most a minute.
    Exponential(Duration),
    /// The period times k.
    Linear(Duration),
    /// The period.
    Constant(Duration),
}

/// How a delivery is retried. See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    times: u32,
    backoff: Backoff,
    jitter: f64,
    also: BTreeSet<u16>,
    longest: Duration,
    lasting: Option<Duration>,
}

impl Default for Retry {
    /// Five retries, exponential from 50 ms: as mtping.
    fn default() -> Self {
        Self::new(5, Backoff::Exponential(Duration::from_millis(50)))
    }
}

impl Retry {
    /// At most `times` retries after the first attempt.
    pub fn new(times: u32, backoff: Backoff) -> Self {
        Self { times, backoff, jitter: 0.25, also: BTreeSet::new(), longest: Duration::from_hours(1), lasting: None }
    }

    /// One attempt.
    pub fn never() -> Self {
        Self::new(0, Backoff::Constant(Duration::ZERO))
    }

    /// Retries `status` too, such as 500.
    #[must_use]
    pub fn also(mut self, status: u16) -> Self {
        self.also.insert(status);
        self
    }

    /// The part of a wait that is added to it at most; 0.25 by default, 0 for none. Anything else than 0 to 1 is taken
    /// as the nearest of them.
    #[must_use]
    pub fn jitter(mut self, part: f64) -> Self {
        self.jitter = if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) };
        self
    }

    /// The longest `Retry-After` that is waited for, an hour by default. What asks for longer is tried again then: a
    /// sink whose clock is wrong must not hold a bucket's events for years.
    #[must_use]
    pub fn retry_after_max(mut self, max: Duration) -> Self {
        self.longest = max;
        self
    }

    /// Retries until `time` has passed since the first attempt, whatever their number: after the last wait of the number
    /// that it was made with, that wait again and again. An attempt under way is not cut off.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> Self {
        self.lasting = Some(time);
        self
    }

    /// Whether an answer with `status` is retried.
    pub(super) fn retries(&self, status: StatusCode) -> bool {
        RETRIED.contains(&status.as_u16()) || self.also.contains(&status.as_u16())
    }

    /// The waits without jitter, one per retry.
    pub(super) fn waits(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        let times = self.times as usize;
        match self.backoff {
            Backoff::Exponential(period) => Box::new(
                ExponentialBuilder::new()
                    .with_factor(2.0)
                    .with_min_delay(period.saturating_mul(2))
                    .with_max_delay(Duration::from_mins(1))
                    .with_max_times(times)
                    .build()
                    .map(to_ten_micros),
            ),
            Backoff::Linear(period) => Box::new((1..=self.times).map(move |k| period.saturating_mul(k))),
            Backoff::Constant(period) => {
                Box::new(ConstantBuilder::new().with_delay(period).with_max_times(times).build())
            }
        }
    }

    /// The next wait of a delivery that began `passed` ago and waited `last` before; None: it is given up.
    pub(super) fn next(
        &self,
        waits: &mut (dyn Iterator<Item = Duration> + Send),
        last: Duration,
        passed: Duration,
    ) -> Option<Duration> {
        match self.lasting {
            None => waits.next(),
            Some(time) if passed < time => Some(waits.next().unwrap_or(last.max(SHORTEST_AGAIN))),
            Some(_) => None,
        }
    }

    /// `wait` with jitter, or what the sink asked for where that is longer.
    pub(super) fn wait(&self, wait: Duration, retry_after: Option<Duration>) -> Duration {
        let jittered = wait.saturating_add(wait.mul_f64(self.jitter * fastrand::f64()));
        jittered.max(retry_after.unwrap_or_default().min(self.longest))
    }
}

/// backon multiplies in f32, which makes 39.999999 ms of 40.
fn to_ten_micros(wait: Duration) -> Duration {
    const UNIT: u128 = 10_000;
    let units = (wait.as_nanos() + UNIT / 2) / UNIT;
    Duration::from_micros(u64::try_from(units).unwrap_or(u64::MAX).saturating_mul(10))
}

/// What `Retry-After` asks for, seen from `now` (RFC 9110, section 10.2.3). None where it is missing or makes no sense.
pub(super) fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A date with the name of another day is meant all the same; httpdate takes none, jiff only this form of the three.
    let relaxed =
        || rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok().map(SystemTime::from);
    let at = httpdate::parse_http_date(text).ok().or_else(relaxed)?;
    Some(at.duration_since(SystemTime::from(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(retry: &Retry) -> Vec<u128> {
        retry.waits().map(|w| w.as_millis()).collect()
    }

    #[test]
    fn the_waits_are_knatives() {
        let ms = Duration::from_millis;
        assert_eq!(millis(&Retry::default()), [100, 200, 400, 800, 1600]);
        assert_eq!(millis(&Retry::new(7, Backoff::Exponential(ms(10)))), [20, 40, 80, 160, 320, 640, 1280]);
        assert_eq!(millis(&Retry::new(5, Backoff::Linear(ms(50)))), [50, 100, 150, 200, 250]);
        assert_eq!(millis(&Retry::new(5, Backoff::Constant(ms(50)))), [50; 5]);
        assert_eq!(millis(&Retry::new(1, Backoff::Exponential(ms(50)))), [100]);
        assert!(millis(&Retry::never()).is_empty());
        assert!(millis(&Retry::new(0, Backoff::Exponential(ms(50)))).is_empty());
    }

    #[test]
    fn lasting_a_time_goes_on_with_the_last_wait_until_then() {
        let ms = Duration::from_millis;
        let waits = |retry: Retry| {
            let (mut waits, mut last, mut passed, mut all) =
                (retry.waits(), Duration::ZERO, Duration::ZERO, Vec::new());
            while let Some(wait) = retry.next(&mut *waits, last, passed) {
                all.push(wait.as_millis());
                (last, passed) = (wait, passed + wait);
            }
            all
        };
        assert_eq!(waits(Retry::default()), [100, 200, 400, 800, 1600]);
        assert_eq!(waits(Retry::default().lasting(ms(500))), [100, 200, 400]);
        assert_eq!(waits(Retry::default().lasting(ms(5000))), [100, 200, 400, 800, 1600, 1600, 1600]);
        assert_eq!(waits(Retry::never().lasting(ms(250))), [100, 100, 100]);
        assert!(waits(Retry::default().lasting(Duration::ZERO)).is_empty());
    }

    #[test]
    fn a_wait_is_never_shorter_than_asked_and_at_most_a_quarter_longer() {
        let (retry, wait) = (Retry::default(), Duration::from_millis(100));
        for _ in 0..1000 {
            let with = retry.wait(wait, None);
            assert!(with >= wait && with <= wait.mul_f64(1.25), "{with:?}");
        }
        assert_eq!(Retry::default().jitter(0.0).wait(wait, None), wait);
        assert_eq!(Retry::default().jitter(f64::NAN).wait(wait, None), wait);
    }

    #[test]
    fn retry_after_counts_where_it_is_longer_up_to_its_bound() {
        let retry = Retry::default().jitter(0.0).retry_after_max(Duration::from_secs(10));
        let wait = Duration::from_millis(100);
        assert_eq!(retry.wait(wait, Some(Duration::ZERO)), wait);
        assert_eq!(retry.wait(wait, Some(Duration::from_secs(3))), Duration::from_secs(3));
        assert_eq!(retry.wait(wait, Some(Duration::from_mins(50))), Duration::from_secs(10));
    }

    #[test]
    fn retry_after_is_read_in_each_form_that_http_knows() {
        let now: jiff::Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let ask = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(ask("0"), Some(Duration::ZERO));
        assert_eq!(ask(" 120 "), Some(Duration::from_mins(2)));
        assert_eq!(ask("Tue, 01 Dec 2026 00:01:00 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(ask("Tuesday, 01-Dec-26 00:01:00 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(ask("Tue Dec  1 00:01:00 2026"), Some(Duration::from_mins(1)));
        assert_eq!(ask("Mon, 30 Nov 2026 00:00:00 GMT"), Some(Duration::ZERO));
        // A Tuesday.
        assert_eq!(ask("Fri, 01 Dec 2026 00:01:00 GMT"), Some(Duration::from_mins(1)));
        for senseless in ["-1", "1.5", "soon", "", "99999999999999999999999"] {
            assert_eq!(ask(senseless), None, "{senseless:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    proptest! {
        #[test]
        fn no_header_is_too_odd(text in "[ -~]{0,40}", secs in 0i64..4_000_000_000) {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            let _ = retry_after(&headers, jiff::Timestamp::from_second(secs).unwrap());
        }
    }
}
