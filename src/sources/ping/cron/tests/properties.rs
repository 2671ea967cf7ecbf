//! What holds for any text, any schedule, any zone and any time.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Zones that change their clocks at midnight, by parts of an hour, twice a year out of step, by a whole day, or never.
const ZONES: [&str; 14] = [
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
];

fn zone() -> impl Strategy<Value = TimeZone> {
    select(ZONES.as_slice()).prop_map(|name| TimeZone::get(name).unwrap())
}

/// 1900 to 2100, with parts of a second, and thick around the changes of clocks of 2025 and those that went wrong.
fn time() -> impl Strategy<Value = Timestamp> {
    let near = select(
        [
            "2025-03-09T07:00:00Z",
            "2025-03-30T00:00:00Z",
            "2025-04-05T14:00:00Z",
            "2025-10-26T01:00:00Z",
            "2011-12-30T10:00:00Z",
        ]
        .as_slice(),
    );
    let any = (-2_208_988_800_i64..4_102_444_800).prop_map(|s| Timestamp::from_second(s).unwrap());
    let close = (near, -200_000_i64..200_000)
        .prop_map(|(near, off)| Timestamp::from_second(at(near).as_second() + off).unwrap());
    (prop_oneof![any, close], 0_i64..1_000_000_000)
        .prop_map(|(time, nanos)| time + jiff::SignedDuration::from_nanos(nanos))
}

/// A field that parses, of values from `min` to `max`.
fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    let value = min..=max;
    let item = prop_oneof![
        3 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        4 => value.clone().prop_map(|v| v.to_string()),
        2 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        2 => (1..=max + 5).prop_map(|step| format!("*/{step}")),
        1 => (value.clone(), 1..=max).prop_map(|(v, step)| format!("{v}/{step}")),
        1 => Just(String::from(",")),
    ];
    vec(item, 1..3).prop_map(|items| items.join(","))
}

fn spec() -> impl Strategy<Value = String> {
    let seconds = prop_oneof![2 => Just(String::new()), 1 => field(0, 59).prop_map(|f| f + " ")];
    (seconds, spec_of_minutes()).prop_map(|(seconds, rest)| seconds + &rest)
}

fn spec_of_minutes() -> impl Strategy<Value = String> {
    (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))
        .prop_map(|(m, h, day, month, weekday)| format!("{m} {h} {day} {month} {weekday}"))
}

fn fields(spec: &str, zone: &TimeZone) -> Fields {
    match Schedule::parse(spec, zone.clone()).unwrap().0 {
        Kind::Fields { fields, .. } => fields,
        Kind::Every { .. } => panic!("{spec} has no fields"),
    }
}

/// Whether the clock on the wall matches every field.
fn matches(fields: &Fields, zone: &TimeZone, second: i64) -> bool {
    let local = civil::local(zone, second).unwrap();
    let has = |set: field::Set, value: i8| set.has(value.unsigned_abs().into());
    has(fields.month, local.month())
        && fields.on(local.date())
        && has(fields.hour, local.hour())
        && has(fields.minute, local.minute())
        && has(fields.second, local.second())
}

proptest! {
    #[test]
    fn next_is_later_whole_and_the_same_again(spec in spec(), zone in zone(), after in time()) {
        let schedule = Schedule::parse(&spec, zone).unwrap();
        let next = schedule.next(after);
        prop_assert_eq!(next, schedule.next(after));
        if let Some(next) = next {
            prop_assert!(next > after);
            prop_assert_eq!(next.subsec_nanosecond(), 0);
            prop_assert!(next.as_second() - after.as_second() < 6 * 366 * 86_400);
        }
    }

    #[test]
    fn times_only_grow(spec in spec(), zone in zone(), after in time()) {
        let schedule = Schedule::parse(&spec, zone).unwrap();
        let times: Vec<Timestamp> = schedule.times(after).take(40).collect();
        prop_assert!(times.is_sorted_by(|a, b| a < b));
    }

    /// The bound that the walk's count of steps stands for, with a wide margin.
    #[test]
    fn work_is_bounded(spec in spec(), zone in zone(), after in time()) {
        let fields = fields(&spec, &zone);
        prop_assume!(!fields.never());
        let (answer, steps) = walk::counted(&fields, &zone, after.as_second());
        prop_assert!(answer == walk::Answer::Stuck || steps < 5_000, "{} steps", steps);
    }

    /// Where clocks never change, robfig's rule and the plain one are the same.
    #[test]
    fn without_changes_the_walk_finds_the_first_match(spec in spec(), after in time()) {
        let fields = fields(&spec, &TimeZone::UTC);
        prop_assume!(!fields.never());
        let walk = match walk::next(&fields, &TimeZone::UTC, after.as_second()) {
            walk::Answer::At(at) => Some(at),
            walk::Answer::Nothing => None,
            walk::Answer::Stuck => return Err(TestCaseError::fail("no end")),
        };
        prop_assert_eq!(walk, search::next(&fields, &TimeZone::UTC, after.as_second()));
    }

    /// The plain rule against looking at each minute of three days.
    #[test]
    fn the_search_finds_the_first_match(spec in spec_of_minutes(), zone in zone(), after in time()) {
        let fields = fields(&spec, &zone);
        let second = after.as_second();
        let minute = (second.div_euclid(60) + 1) * 60;
        // Zones of old had odd seconds.
        prop_assume!(zone.to_offset(after).seconds() % 60 == 0);
        let found = (minute..minute + 3 * 86_400).step_by(60).find(|at| matches(&fields, &zone, *at));
        let next = search::next(&fields, &zone, second);
        match found {
            Some(found) => prop_assert_eq!(next, Some(found)),
            None => prop_assert!(next.is_none_or(|next| next >= minute + 3 * 86_400 && matches(&fields, &zone, next))),
        }
    }

    #[test]
    fn a_zone_beside_the_schedule_is_one_in_it(spec in spec(), name in select(ZONES.as_slice()), after in time()) {
        let beside = Schedule::parse_in(&spec, name, TimeZone::UTC).unwrap();
        let within = Schedule::parse(&format!("CRON_TZ={name} {spec}"), TimeZone::UTC).unwrap();
        prop_assert_eq!(beside.next(after), within.next(after));
    }

    #[test]
    fn an_origin_makes_one_series(seconds in 1_i64..1_000_000, origin in time(), a in time(), ahead in 0_i64..1_000_000) {
        let every = Schedule::parse(&format!("@every {seconds}s"), TimeZone::UTC).unwrap().anchored(origin);
        let next = every.next(a).unwrap();
        prop_assert!(next > a && next.as_second() <= whole_second(a) + seconds);
        prop_assert_eq!((next.as_second() - whole_second(origin)).rem_euclid(seconds), 0);
        // Whoever asks in between hears the same.
        let later = a + jiff::SignedDuration::from_secs(ahead);
        prop_assert_eq!(every.next(later.min(next - jiff::SignedDuration::from_nanos(1))).unwrap(), next);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), zone in ".{0,12}", after in time()) {
        run(&text, &zone, after);
    }

    #[test]
    fn no_text_that_looks_like_a_schedule_panics(
        text in "(TZ=|CRON_TZ=|@every |@)?[A-Za-z/_]{0,12}[ \t]?([0-9]{1,21}|[-*?,/+@.]|[a-zA-Zµİ]{1,3}| ){0,24}",
        after in time(),
    ) {
        run(&text, "", after);
        run(&text, "Pacific/Apia", after);
    }
}

fn run(text: &str, zone: &str, after: Timestamp) {
    match Schedule::parse_in(text, zone, TimeZone::UTC) {
        Ok(schedule) => assert!(schedule.times(after).take(3).all(|time| time > after)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
