//! From the text of a schedule to its parts.

use jiff::tz::TimeZone;

use super::error::CronError;
use super::field::{self, DAYS, Fields, HOURS, MINUTES, MONTHS, SECONDS, Set, WEEKDAYS};
use super::{Kind, zone};
use crate::config::duration;

/// Reads a schedule, with the zone it may name in front.
pub(super) fn schedule(spec: &str, default_zone: TimeZone) -> Result<Kind, CronError> {
    if spec.is_empty() {
        return Err(CronError::Empty);
    }
    match zone_and_rest(spec) {
        None => body(spec, default_zone),
        // Only a blank ends the name; any other white space is part of it.
        Some(behind) => match behind.split_once(' ') {
            Some((name, rest)) => body(rest.trim(), zone::named(name, default_zone)?),
            None => Err(CronError::NoSchedule { spec: spec.to_owned() }),
        },
    }
}

/// Reads a schedule whose zone is given beside it.
pub(super) fn schedule_in(spec: &str, zone_name: &str, default_zone: TimeZone) -> Result<Kind, CronError> {
    if zone_name.is_empty() {
        return schedule(spec, default_zone);
    }
    let zone = zone::named(zone_name.trim_end_matches(' '), default_zone)?;
    let spec = spec.trim();
    if zone_and_rest(spec).is_some() {
        return Err(CronError::TwoZones { beside: zone_name.to_owned(), spec: spec.to_owned() });
    }
    body(spec, zone)
}

/// What stands behind `TZ=` or `CRON_TZ=` at the very front, where that is there.
fn zone_and_rest(spec: &str) -> Option<&str> {
    spec.strip_prefix("TZ=").or_else(|| spec.strip_prefix("CRON_TZ="))
}

/// Reads what is left without the zone.
fn body(spec: &str, zone: TimeZone) -> Result<Kind, CronError> {
    if spec.starts_with('@') {
        return descriptor(spec, zone);
    }
    let texts: Vec<&str> = spec.split_whitespace().collect();
    let (seconds, texts) = match *texts {
        [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
        [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday]),
        _ => {
            let fields = texts.into_iter().map(str::to_owned).collect();
            return Err(CronError::FieldCount { fields });
        }
    };
    let [minute, hour, day, month, weekday] = texts;
    let fields = Fields {
        second: field::parse(seconds, &SECONDS)?,
        minute: field::parse(minute, &MINUTES)?,
        hour: field::parse(hour, &HOURS)?,
        day: field::parse(day, &DAYS)?,
        month: field::parse(month, &MONTHS)?,
        weekday: field::parse(weekday, &WEEKDAYS)?,
    };
    Ok(Kind::Fields { fields, zone })
}

/// Reads a descriptor, whose case and blanks count.
fn descriptor(text: &str, zone: TimeZone) -> Result<Kind, CronError> {
    let hourly = Fields {
        second: Set::only(0),
        minute: Set::only(0),
        hour: Set::all(&HOURS),
        day: Set::all(&DAYS),
        month: Set::all(&MONTHS),
        weekday: Set::all(&WEEKDAYS),
    };
    let daily = Fields { hour: Set::only(0), ..hourly.clone() };
    let fields = match text {
        "@yearly" | "@annually" => Fields { day: Set::only(1), month: Set::only(1), ..daily },
        "@monthly" => Fields { day: Set::only(1), ..daily },
        "@weekly" => Fields { weekday: Set::only(0), ..daily },
        "@daily" | "@midnight" => daily,
        "@hourly" => hourly,
        _ => {
            let descriptor = text.to_owned();
            let Some(text) = text.strip_prefix("@every ") else {
                return Err(CronError::Descriptor { descriptor });
            };
            let nanos = duration::parse(text).map_err(|reason| CronError::Every { descriptor, reason })?;
            // Whole seconds, and never less than one: a negative interval is one second too.
            return Ok(Kind::Every { seconds: (nanos / 1_000_000_000).max(1), origin: None });
        }
    };
    Ok(Kind::Fields { fields, zone })
}
