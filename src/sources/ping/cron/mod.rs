//! Cron schedules exactly as `github.com/robfig/cron/v3` v3.0.1 reads them with Knative's ping parser: an optional field
//! of seconds, then minutes, hours, days of the month, months and days of the week; or a descriptor such as `@daily` or
//! `@every 90s`; either may follow `TZ=<zone>` or `CRON_TZ=<zone>` and a blank.
//!
//! The module stands alone on jiff and its bundled time zone data. Of this crate it knows how Go reads a duration
//! ([`crate::config::duration`]), and nothing else.
//!
//! # Guarantees
//! - [`Schedule::next`] is strictly later than the instant it is asked about, a function of its arguments and the time
//!   zone data alone, and bounded in work: some thousands of steps at most, whatever the schedule.
//! - No input panics. A schedule that parses has a next time within five years or none.
//! - Texts of errors are robfig's, so that a message found on the web fits. Where robfig panics, the text is ours.
//! - Zone data is what jiff bundles, so replicas of one build agree on every time, whatever is on their disks.
//!
//! # What a schedule means where clocks change
//! robfig steps a local time through its fields, and what that steps over is part of its contract. With changes of a
//! whole hour, away from midnight, it is simple: a time that is skipped does not happen that day, and one that comes
//! twice happens twice. Elsewhere less so:
//! - where midnight is skipped east of Greenwich (Beirut, Cairo), a search that passes that day may miss it whole;
//! - where clocks move by a part of an hour (Lord Howe, Chatham; Caracas and Pyongyang once), a search that passes the
//!   change may miss the next time, or find the time of a change one part of an hour off.
//!
//! # Where it differs from robfig
//! - Where robfig's answer is not later than the question, so that its scheduler would spin, or where its search never
//!   ends (a day that a zone skipped, as Apia did on 2011-12-30), the answer is the first later instant whose local
//!   reading matches all fields.
//! - A zone without a schedule behind it (`TZ=UTC`), on which robfig panics, is an error.
//! - A zone given beside the schedule as well as in it is an error that says so ([`Schedule::parse_in`]).
//!
//! # Caveats
//! - An answer may depend on where the search starts, in the hours around a change of clocks. Whoever needs one fixed
//!   series asks on from the last answer ([`Schedule::times`]), as robfig's own scheduler does.
//! - `@every` counts from the question unless it is given an origin ([`Schedule::anchored`]).

mod civil;
mod error;
mod field;
mod parse;
mod quote;
mod search;
mod walk;
mod zone;

#[cfg(test)]
mod tests;

pub use crate::config::duration::DurationError;
pub use error::{CronError, IntError, ZoneError};

use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use field::Fields;

/// When something is due: a set of local times in a zone, or a steady interval.
#[derive(Debug, Clone)]
pub struct Schedule(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Local times.
    Fields { fields: Fields, zone: TimeZone },
    /// `@every`: each so many seconds, at least 1, from an origin, or from the second in which one asks.
    Every { seconds: i64, origin: Option<i64> },
}

impl Schedule {
    /// Reads a schedule. `default_zone` is the zone of one that names none (or names `Local`).
    ///
    /// # Errors
    /// What is wrong first, in the order in which robfig looks: the zone, the descriptor or the number of fields, then
    /// each field from the left.
    pub fn parse(spec: &str, default_zone: TimeZone) -> Result<Self, CronError> {
        parse::schedule(spec, default_zone).map(Self)
    }

    /// Reads a schedule whose zone is given beside it by its IANA name, as a PingSource's `timezone` is. An empty name
    /// is none given: this is [`parse`](Self::parse) then.
    ///
    /// Blanks before the schedule and behind the name do not matter here, as they do not when robfig reads
    /// `CRON_TZ=<name> <schedule>`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and [`CronError::TwoZones`] for a schedule that names a zone itself.
    pub fn parse_in(spec: &str, zone_name: &str, default_zone: TimeZone) -> Result<Self, CronError> {
        parse::schedule_in(spec, zone_name, default_zone).map(Self)
    }

    /// Gives `@every` an origin, so that its times are one series whoever asks and whenever: those that lie a multiple
    /// of the interval from the origin's second. Other schedules are such a series already and stay as they are.
    ///
    /// robfig has no origin but the moment at which its scheduler was given the schedule, which no two processes share.
    #[must_use]
    pub fn anchored(self, origin: Timestamp) -> Self {
        match self.0 {
            Kind::Every { seconds, .. } => Self(Kind::Every { seconds, origin: Some(whole_second(origin)) }),
            other @ Kind::Fields { .. } => Self(other),
        }
    }

    /// The first time later than `after`, on a whole second; `None` where there is none up to the end of the fifth year
    /// after its own, or where the
    /// search leaves the years that a [`Timestamp`] can say.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let second = whole_second(after);
        let next = match &self.0 {
            Kind::Every { seconds, origin } => {
                let origin = origin.unwrap_or(second);
                let passed = (second - origin).div_euclid(*seconds);
                origin.checked_add((passed + 1).checked_mul(*seconds)?)?
            }
            Kind::Fields { fields, .. } if fields.never() => return None,
            Kind::Fields { fields, zone } => match walk::next(fields, zone, second) {
                walk::Answer::At(at) if at > second => at,
                walk::Answer::Nothing => return None,
                // Not later than the question, or no end in sight.
                walk::Answer::At(_) | walk::Answer::Stuck => search::next(fields, zone, second)?,
            },
        };
        Timestamp::from_second(next).ok()
    }

    /// The times later than `after`, each asked for from the one before.
    pub fn times(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next(after), |last| self.next(*last))
    }
}

/// The second in which an instant lies. (jiff counts the parts of a second towards 1970, so before that they lie in the
/// second below.)
fn whole_second(at: Timestamp) -> i64 {
    if at.subsec_nanosecond() < 0 { at.as_second() - 1 } else { at.as_second() }
}

/// Reads a schedule in UTC unless it names a zone.
impl FromStr for Schedule {
    type Err = CronError;
    fn from_str(spec: &str) -> Result<Self, CronError> {
        Self::parse(spec, TimeZone::UTC)
    }
}
