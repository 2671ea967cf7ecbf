//! robfig's own answers, row for row, and ours where they differ on purpose.

use std::collections::BTreeMap;

use jiff::ToSpan as _;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Vectors {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    spec: String,
    from: String,
    tz: String,
    error: Option<String>,
    next: Option<Vec<String>>,
    panic: Option<String>,
    #[serde(default)]
    hang: bool,
}

/// How many times a row tells at most.
const TIMES: usize = 10;

/// What robfig says where there is no next time.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// A chain of next times, `None` at its end if it ended.
type Chain = Vec<Option<Timestamp>>;

/// A chain, or an error's text.
type Answer = Result<Chain, String>;

fn rows() -> Vec<Row> {
    serde_json::from_str::<Vectors>(include_str!("../../../../../test/vectors/cron.json")).unwrap().rows
}

fn ours(row: &Row) -> Answer {
    let zone = match row.tz.as_str() {
        "fixed" => jiff::fmt::temporal::Pieces::parse(&row.from).unwrap().to_numeric_offset().unwrap().to_time_zone(),
        name => TimeZone::get(name).unwrap(),
    };
    let schedule = Schedule::parse(&row.spec, zone).map_err(|error| error.to_string())?;
    let chain = schedule.times(at(&row.from)).map(Some).chain([None]);
    Ok(chain.take(TIMES).collect())
}

fn theirs(row: &Row) -> Option<Answer> {
    match (&row.error, &row.next) {
        (Some(error), _) => Some(Err(error.clone())),
        (None, Some(next)) => Some(Ok(next.iter().map(|time| (time != NEVER).then(|| at(time))).collect())),
        (None, None) => None,
    }
}

/// Times of ours, the last of which repeats each day.
fn daily(times: &[&str]) -> Chain {
    stepped(times, |last| last + 24.hours())
}

/// Times of ours, the last of which repeats each week.
fn weekly(times: &[&str]) -> Chain {
    stepped(times, |last| last + (7 * 24).hours())
}

fn stepped(times: &[&str], step: impl Fn(Timestamp) -> Timestamp) -> Chain {
    let (last, first) = times.split_last().expect("at least one time");
    let rest = std::iter::successors(Some(at(last)), |last| Some(step(*last)));
    first.iter().map(|time| at(time)).chain(rest).take(TIMES).map(Some).collect()
}

fn all(times: [&str; TIMES]) -> Chain {
    times.iter().map(|time| Some(at(time))).collect()
}

/// The rows on which we differ on purpose, and our answer.
///
/// None differs for the sake of the time zone data: robfig's answers were made with tzdata 2026c, and nothing that
/// changed between that and the release that jiff bundles (2026f as this is written) touches a row.
fn differences() -> BTreeMap<(&'static str, &'static str), Answer> {
    let mut list: Vec<(&str, &str, Answer)> = Vec::new();

    // robfig panics.
    for spec in
        ["TZ=UTC", "CRON_TZ=UTC", "TZ=", "CRON_TZ=", "CRON_TZ=Bad/Zone", "CRON_TZ=UTC\t0\t0\t*\t*\t*", "TZ=UTC\n0"]
    {
        let quoted = format!("{spec:?}");
        let error = format!(
            "no schedule in {quoted}: write the time zone, a blank, then the schedule, as in \
             \"CRON_TZ=Europe/Berlin 0 6 * * *\""
        );
        list.push((spec, "2025-06-17T12:34:56Z", Err(error)));
    }

    let mut differ = |spec, from, times: Chain| list.push((spec, from, Ok(times)));

    // robfig never comes back: it cannot step over the 30th, which Apia skipped.
    let from = "2011-12-29T22:30:00-10:00";
    let sundays = weekly(&["2012-01-01T00:00:00+14:00"]);
    differ("0 0 * * 0", from, sundays.clone());
    differ("CRON_TZ=Pacific/Apia 0 0 * * 0", "2011-12-30T08:30:00Z", sundays);
    differ("0 0 * * 6", from, weekly(&["2011-12-31T00:00:00+14:00"]));
    differ(
        "0 0 1,30,31 * *",
        from,
        all([
            "2011-12-31T00:00:00+14:00",
            "2012-01-01T00:00:00+14:00",
            "2012-01-30T00:00:00+14:00",
            "2012-01-31T00:00:00+14:00",
            "2012-02-01T00:00:00+14:00",
            "2012-03-01T00:00:00+14:00",
            "2012-03-30T00:00:00+14:00",
            "2012-03-31T00:00:00+14:00",
            "2012-04-01T00:00:00+14:00",
            // Summer time ended that April.
            "2012-04-30T00:00:00+13:00",
        ]),
    );
    differ(
        "0 0 31 12 *",
        from,
        all([
            "2011-12-31T00:00:00+14:00",
            "2012-12-31T00:00:00+14:00",
            "2013-12-31T00:00:00+14:00",
            "2014-12-31T00:00:00+14:00",
            "2015-12-31T00:00:00+14:00",
            "2016-12-31T00:00:00+14:00",
            "2017-12-31T00:00:00+14:00",
            "2018-12-31T00:00:00+14:00",
            "2019-12-31T00:00:00+14:00",
            "2020-12-31T00:00:00+14:00",
        ]),
    );

    // robfig answers with the same time for ever. St John's: from 00:01 back to 23:01.
    let stuck = "2005-10-29T23:30:00-03:30";
    differ("30 0 * * *", "2005-10-29T22:30:00-02:30", daily(&[stuck, "2005-10-30T00:30:00-03:30"]));

    // Chatham: from 03:45 back to 02:45. robfig steps from 03:44 to a 45th or 50th minute of what has become the hour of 2,
    // and from there returns to it. Its first such answer is later than the question, and so ours too.
    let (stuck_45, then_45) = ("2025-04-06T02:45:00+12:45", "2025-04-06T03:45:00+12:45");
    let (stuck_50, then_50) = ("2025-04-06T02:50:00+12:45", "2025-04-06T03:50:00+12:45");
    let day_before = "2025-04-05T03:45:00+13:45";
    differ("45 3 * * *", day_before, daily(&[stuck_45, then_45]));
    differ("50 3 * * *", day_before, daily(&["2025-04-05T03:50:00+13:45", stuck_50, then_50]));
    for from in ["2025-04-06T02:30:00+13:45", "2025-04-06T02:45:00+13:45", "2025-04-06T03:30:00+13:45"] {
        differ("45 3 * * *", from, daily(&[stuck_45, then_45]));
        differ("50 3 * * *", from, daily(&[stuck_50, then_50]));
    }
    // Asked after the change, robfig answers with times before it.
    for from in [
        "2025-04-06T02:45:00+12:45",
        "2025-04-06T02:45:00.5+12:45",
        "2025-04-06T02:45:01+12:45",
        "2025-04-06T02:46:00+12:45",
    ] {
        differ("0 3 * * *", from, daily(&["2025-04-06T03:00:00+12:45"]));
        differ("30 3 * * *", from, daily(&["2025-04-06T03:30:00+12:45"]));
        differ("45 3 * * *", from, daily(&[then_45]));
        differ("50 3 * * *", from, daily(&[stuck_50, then_50]));
    }

    let count = list.len();
    let map: BTreeMap<_, _> = list.into_iter().map(|(spec, from, answer)| ((spec, from), answer)).collect();
    assert_eq!(map.len(), count, "a row is listed twice");
    map
}

/// Whether robfig's answer is one that nobody can live with: a panic, no end, or a chain that does not advance.
fn broken(row: &Row) -> bool {
    let Some(Ok(times)) = theirs(row) else {
        return row.panic.is_some() || row.hang;
    };
    let mut last = at(&row.from);
    times.into_iter().flatten().any(|time| std::mem::replace(&mut last, time) >= time)
}

#[test]
fn every_row_is_robfigs_answer_or_a_listed_one_of_ours() {
    let differences = differences();
    let (mut wrong, mut used) = (Vec::new(), 0);
    for (index, row) in rows().iter().enumerate() {
        let listed = differences.get(&(row.spec.as_str(), row.from.as_str()));
        assert_eq!(listed.is_some(), broken(row), "row {index}, {:?}: only what is broken may differ", row.spec);
        used += usize::from(listed.is_some());
        let expected = listed.cloned().or_else(|| theirs(row)).expect("robfig's answer or ours");
        let ours = ours(row);
        if ours != expected {
            wrong.push(format!("row {index}: {:?} from {}\n  ours {ours:?}\n  not  {expected:?}", row.spec, row.from));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(used, differences.len(), "a difference is listed for a row that is not there");
}

#[test]
fn the_vectors_are_all_there() {
    // Guards the test above against a file cut short.
    let rows = rows();
    assert_eq!(rows.len(), 2038);
    assert_eq!(rows.iter().filter(|row| row.panic.is_some()).count(), 7);
    assert_eq!(rows.iter().filter(|row| row.hang).count(), 5);
}
