//! The next time as robfig finds it: a local time stepped up field by field, from the month down to the second, starting
//! over whenever a step carries into a larger unit.
//!
//! The order of the steps, and what each does where clocks change, is the contract (see the module above), so this
//! follows robfig step for step. What is added is an end: a count of steps, and a look for a day that leads to itself.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::civil;
use super::field::Fields;

/// More steps than any search needs that ends: five years are some 2,200 days and 72 months, and what a matching day
/// costs below that is a few dozen steps, spent in vain only where clocks change.
const STEPS: u32 = 20_000;

/// What the walk came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// A second since 1970, not necessarily later than the question.
    At(i64),
    /// Nothing within five years.
    Nothing,
    /// No end: robfig would walk for ever.
    Stuck,
}

/// The next time after the second `after`, which is not in question itself.
pub(super) fn next(fields: &Fields, zone: &TimeZone, after: i64) -> Answer {
    counted(fields, zone, after).0
}

/// [`next`], and the steps it took.
pub(super) fn counted(fields: &Fields, zone: &TimeZone, after: i64) -> (Answer, u32) {
    let mut walk = Walk { fields, zone, at: after, reset: false, steps: 0 };
    // Nothing to say is a year that jiff does not know.
    let answer = walk.run().unwrap_or(Answer::Nothing);
    (answer, walk.steps)
}

struct Walk<'a> {
    fields: &'a Fields,
    zone: &'a TimeZone,
    at: i64,
    /// Whether the units below the one that was stepped are at their least.
    reset: bool,
    steps: u32,
}

/// Whether a unit matches, or was stepped until it carried.
enum Unit {
    Matches,
    Carried,
    Stuck,
}

impl Walk<'_> {
    fn run(&mut self) -> Option<Answer> {
        self.at = self.at.checked_add(1)?;
        let last_year = self.local()?.year() + 5;
        'over: loop {
            if self.local()?.year() > last_year {
                return Some(Answer::Nothing);
            }
            for unit in [Self::month, Self::day, Self::hour, Self::minute, Self::second] {
                match unit(self)? {
                    Unit::Matches => {}
                    Unit::Carried => continue 'over,
                    Unit::Stuck => return Some(Answer::Stuck),
                }
            }
            return Some(Answer::At(self.at));
        }
    }

    fn local(&self) -> Option<DateTime> {
        civil::local(self.zone, self.at)
    }

    /// Sets the local time, once: later steps start from units that are at their least already.
    fn reset_to(&mut self, local: DateTime) -> Option<()> {
        if !self.reset {
            self.reset = true;
            self.at = civil::instant(self.zone, local)?;
        }
        Some(())
    }

    /// Drops what is left of a unit of so many seconds, once. Unlike the larger ones it is counted on the absolute
    /// clock, which in zones of old with odd seconds is not the local one.
    fn truncate(&mut self, unit: i64) {
        if !self.reset {
            self.reset = true;
            self.at -= self.at.rem_euclid(unit);
        }
    }

    /// Counts a step; false when there were too many.
    fn count(&mut self) -> bool {
        self.steps += 1;
        self.steps <= STEPS
    }

    fn month(&mut self) -> Option<Unit> {
        loop {
            let now = self.local()?;
            if self.fields.month.has(now.month().unsigned_abs().into()) {
                return Some(Unit::Matches);
            }
            if !self.count() {
                return Some(Unit::Stuck);
            }
            self.reset_to(now.date().first_of_month().to_datetime(Time::midnight()))?;
            self.at = civil::add_month(self.zone, self.at)?;
            if self.local()?.month() == 1 {
                return Some(Unit::Carried);
            }
        }
    }

    fn day(&mut self) -> Option<Unit> {
        loop {
            let now = self.local()?;
            if self.fields.on(now.date()) {
                return Some(Unit::Matches);
            }
            if !self.count() {
                return Some(Unit::Stuck);
            }
            self.reset_to(now.date().to_datetime(Time::midnight()))?;
            let before = self.at;
            self.at = civil::add_day(self.zone, self.at)?;
            // Where midnight does not exist the clock shows another hour: go to the nearest midnight by the hours shown,
            // which in the east may be that of the day after.
            let hour = i64::from(self.local()?.hour());
            self.at += 3600 * if hour > 12 { 24 - hour } else { -hour };
            if self.local()?.day() == 1 {
                return Some(Unit::Carried);
            }
            if self.at == before {
                return Some(Unit::Stuck);
            }
        }
    }

    fn hour(&mut self) -> Option<Unit> {
        loop {
            let now = self.local()?;
            if self.fields.hour.has(now.hour().unsigned_abs().into()) {
                return Some(Unit::Matches);
            }
            if !self.count() {
                return Some(Unit::Stuck);
            }
            self.reset_to(now.date().at(now.hour(), 0, 0, 0))?;
            self.at = self.at.checked_add(3600)?;
            if self.local()?.hour() == 0 {
                return Some(Unit::Carried);
            }
        }
    }

    fn minute(&mut self) -> Option<Unit> {
        loop {
            let now = self.local()?;
            if self.fields.minute.has(now.minute().unsigned_abs().into()) {
                return Some(Unit::Matches);
            }
            if !self.count() {
                return Some(Unit::Stuck);
            }
            self.truncate(60);
            self.at = self.at.checked_add(60)?;
            if self.local()?.minute() == 0 {
                return Some(Unit::Carried);
            }
        }
    }

    fn second(&mut self) -> Option<Unit> {
        loop {
            let now = self.local()?;
            if self.fields.second.has(now.second().unsigned_abs().into()) {
                return Some(Unit::Matches);
            }
            if !self.count() {
                return Some(Unit::Stuck);
            }
            self.truncate(1);
            self.at = self.at.checked_add(1)?;
            if self.local()?.second() == 0 {
                return Some(Unit::Carried);
            }
        }
    }
}
