//! The next time by the plain rule: the first later instant at which the clock on the wall matches every field.
//!
//! It answers where robfig does not. Between two changes of clocks local time runs evenly, so each such stretch is
//! searched as a calendar, without a zone.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use super::civil;
use super::field::Fields;

/// The next time after the second `after`, within the five years after its own.
pub(super) fn next(fields: &Fields, zone: &TimeZone, after: i64) -> Option<i64> {
    let mut start = after.checked_add(1)?;
    let last_year = civil::local(zone, start)?.year() + 5;
    loop {
        let begin = Timestamp::from_second(start).ok()?;
        let offset = zone.to_offset(begin);
        let local = offset.to_datetime(begin);
        if local.year() > last_year {
            return None;
        }
        let change = zone.following(begin).next().map(|change| change.timestamp());
        let end = change.map_or(DateTime::MAX, |at| offset.to_datetime(at));
        if let Some(found) = first_match(fields, local, end, last_year) {
            return seconds(found, offset);
        }
        start = change?.as_second();
    }
}

fn seconds(local: DateTime, offset: Offset) -> Option<i64> {
    Some(offset.to_timestamp(local).ok()?.as_second())
}

/// The first reading from `from` on, before `end`, that matches.
fn first_match(fields: &Fields, from: DateTime, end: DateTime, last_year: i16) -> Option<DateTime> {
    let mut date = from.date();
    while date.year() <= last_year && date <= end.date() {
        if fields.month.has(date.month().unsigned_abs().into()) && fields.on(date) {
            let least = if date == from.date() { from } else { date.to_datetime(jiff::civil::Time::midnight()) };
            if let Some(found) = first_match_of_day(fields, least) {
                return Some(found).filter(|found| *found < end);
            }
        }
        date = date.tomorrow().ok()?;
    }
    None
}

/// The first reading from `from` on, on its day, that matches the fields below the day.
fn first_match_of_day(fields: &Fields, from: DateTime) -> Option<DateTime> {
    let (from_hour, from_minute, from_second) =
        (from.hour().unsigned_abs().into(), from.minute().unsigned_abs().into(), from.second().unsigned_abs().into());
    let mut hour = fields.hour.at_least(from_hour)?;
    let (mut least_minute, mut least_second) = if hour == from_hour { (from_minute, from_second) } else { (0, 0) };
    loop {
        if let Some(minute) = fields.minute.at_least(least_minute) {
            if minute != least_minute {
                least_second = 0;
            }
            if let Some(second) = fields.second.at_least(least_second) {
                return reading(from, hour, minute, second);
            }
            // The minute is over: the same hour from the next minute on.
            (least_minute, least_second) = (minute + 1, 0);
        } else {
            hour = fields.hour.at_least(hour + 1)?;
            (least_minute, least_second) = (0, 0);
        }
    }
}

fn reading(day: DateTime, hour: u32, minute: u32, second: u32) -> Option<DateTime> {
    let [hour, minute, second] = [hour, minute, second].map(|value| i8::try_from(value).unwrap_or(i8::MAX));
    let time = jiff::civil::Time::new(hour, minute, second, 0).ok()?;
    Some(day.date().to_datetime(time))
}
