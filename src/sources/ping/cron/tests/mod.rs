mod properties;
mod vectors;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").expect("bundled")
}

/// The chain of the first times, as text in UTC.
fn chain(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    schedule.times(at(after)).take(count).map(|time| time.to_string()).collect()
}

#[test]
fn the_default_zone_is_that_of_a_schedule_without_one() {
    let after = "2025-06-17T12:00:00Z";
    let plain = Schedule::parse("0 6 * * *", berlin()).unwrap();
    assert_eq!(chain(&plain, after, 1), ["2025-06-18T04:00:00Z"]);
    let local = Schedule::parse("TZ=Local 0 6 * * *", berlin()).unwrap();
    assert_eq!(chain(&local, after, 1), ["2025-06-18T04:00:00Z"]);
    let named = Schedule::parse("TZ=Asia/Tokyo 0 6 * * *", berlin()).unwrap();
    assert_eq!(chain(&named, after, 1), ["2025-06-17T21:00:00Z"]);
    // An empty name is UTC, not the default.
    let empty = Schedule::parse("TZ= 0 6 * * *", berlin()).unwrap();
    assert_eq!(chain(&empty, after, 1), ["2025-06-18T06:00:00Z"]);
    let utc: Schedule = "0 6 * * *".parse().unwrap();
    assert_eq!(chain(&utc, after, 1), ["2025-06-18T06:00:00Z"]);
}

#[test]
fn a_zone_beside_the_schedule() {
    let parse = |spec, zone| Schedule::parse_in(spec, zone, TimeZone::UTC);
    let after = "2025-06-17T12:00:00Z";
    // As behind `CRON_TZ=`, blanks do not matter.
    for (spec, zone) in [("0 6 * * *", "Asia/Tokyo"), (" 0 6 * * *\n", "Asia/Tokyo  ")] {
        assert_eq!(chain(&parse(spec, zone).unwrap(), after, 1), ["2025-06-17T21:00:00Z"]);
    }
    assert_eq!(chain(&parse(" @daily", "Asia/Tokyo").unwrap(), after, 1), ["2025-06-17T15:00:00Z"]);
    // No name: as if there were no such field.
    assert_eq!(chain(&parse("TZ=Asia/Tokyo 0 6 * * *", "").unwrap(), after, 1), ["2025-06-17T21:00:00Z"]);
    assert_eq!(parse("@daily ", "").unwrap_err().to_string(), "unrecognized descriptor: @daily ");

    for (spec, zone, error) in [
        ("* * * * *", "Bad/Zone", "provided bad location Bad/Zone: unknown time zone Bad/Zone"),
        ("* * * *", "UTC 0", "provided bad location UTC 0: unknown time zone UTC 0"),
        ("", "UTC", "expected 5 to 6 fields, found 0: []"),
        (
            "TZ=Europe/Berlin * * * * *",
            "UTC",
            "the time zone is given twice: \"UTC\" beside the schedule, and in the schedule \
             \"TZ=Europe/Berlin * * * * *\": keep one of them",
        ),
        (
            " CRON_TZ=UTC @daily",
            "UTC",
            "the time zone is given twice: \"UTC\" beside the schedule, and in the schedule \"CRON_TZ=UTC @daily\": \
             keep one of them",
        ),
    ] {
        assert_eq!(parse(spec, zone).unwrap_err().to_string(), error);
    }
}

#[test]
fn an_interval_counts_from_the_question_or_from_its_origin() {
    let every: Schedule = "@every 90s".parse().unwrap();
    assert_eq!(chain(&every, "2025-06-17T12:00:00.7Z", 2), ["2025-06-17T12:01:30Z", "2025-06-17T12:03:00Z"]);
    assert_eq!(chain(&every, "1969-12-31T23:59:59.5Z", 1), ["1970-01-01T00:01:29Z"]);

    let anchored = every.anchored(at("2025-06-17T12:00:10.9Z"));
    let series = ["2025-06-17T12:00:10Z", "2025-06-17T12:01:40Z", "2025-06-17T12:03:10Z"];
    assert_eq!(chain(&anchored, "2025-06-17T12:00:00Z", 3), series);
    assert_eq!(chain(&anchored, "2025-06-17T12:00:09.9Z", 3), series);
    assert_eq!(chain(&anchored, "2025-06-17T12:00:10Z", 2), series[1..]);
    assert_eq!(chain(&anchored, "2025-06-17T12:01:40.1Z", 1), series[2..]);
    // One that has local times already is left alone.
    let daily: Schedule = "@daily".parse().unwrap();
    let after = "2025-06-17T12:00:00Z";
    assert_eq!(chain(&daily.clone().anchored(at(after)), after, 2), chain(&daily, after, 2));
}

#[test]
fn the_ends_of_time_are_no_time() {
    for spec in ["* * * * * *", "@every 1s", "@every 2562047h", "@yearly", "0 0 29 2 *"] {
        let schedule: Schedule = spec.parse().unwrap();
        assert_eq!(schedule.next(Timestamp::MAX), None, "{spec}");
        assert!(schedule.next(Timestamp::MIN).is_none_or(|next| next > Timestamp::MIN), "{spec}");
    }
    let anchored = Schedule::parse("@every 2562047h", TimeZone::UTC).unwrap().anchored(Timestamp::MIN);
    assert!(anchored.next(Timestamp::UNIX_EPOCH).is_some_and(|next| next > Timestamp::UNIX_EPOCH));
    assert_eq!(anchored.next(Timestamp::MAX), None);
}
