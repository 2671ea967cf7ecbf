//! Local time in a zone, as Go's package `time` computes it, over seconds since 1970.
//!
//! jiff and Go agree on every instant's local time. They do not agree on the instant of a local time that happens twice
//! or not at all, and robfig's answers depend on Go's choice.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan as _};

/// The local time at an instant; `None` beyond the years that jiff knows.
pub(super) fn local(zone: &TimeZone, second: i64) -> Option<DateTime> {
    Some(zone.to_datetime(Timestamp::from_second(second).ok()?))
}

/// The instant of a local time, as Go's `time.Date` chooses it: with the offset that holds at the same reading in UTC,
/// or, if that is not in force at the instant it leads to, the one that is. So one of two in a repeated hour, and a
/// reading before or behind a skipped one.
pub(super) fn instant(zone: &TimeZone, local: DateTime) -> Option<i64> {
    let reading = Offset::UTC.to_timestamp(local).ok()?.as_second();
    match offset(zone, reading)? {
        // UTC as it happens to be read: Go asks no further.
        0 => Some(reading),
        first => Some(reading - offset(zone, reading - first)?),
    }
}

/// The instant a month later on the clock. A day that the month does not have runs over into the next.
pub(super) fn add_month(zone: &TimeZone, second: i64) -> Option<i64> {
    let now = local(zone, second)?;
    let first = now.date().first_of_month().checked_add(1.month()).ok()?;
    let date = first.checked_add((now.day() - 1).days()).ok()?;
    instant(zone, date.to_datetime(now.time()))
}

/// The instant a day later on the clock.
pub(super) fn add_day(zone: &TimeZone, second: i64) -> Option<i64> {
    let now = local(zone, second)?;
    instant(zone, now.date().tomorrow().ok()?.to_datetime(now.time()))
}

/// Seconds east of Greenwich at an instant.
fn offset(zone: &TimeZone, second: i64) -> Option<i64> {
    Some(zone.to_offset(Timestamp::from_second(second).ok()?).seconds().into())
}
