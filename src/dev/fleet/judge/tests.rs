//! Hand-made histories: each kind of failure is found, and what is right is let pass.

use super::*;
use crate::clock::Instant;
use crate::dev::fleet::options::{Chaos, Options};
use crate::leader::{FencingToken, Reason};
use std::time::Duration;

/// Milliseconds after the run began.
fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_000_000_000_000 + ms * 1_000_000)
}

/// The run began when the wall clock said so.
const WALL: i64 = 1_800_000_000;

/// The Unix second that is so many seconds after the run began.
fn second(s: i64) -> i64 {
    WALL + s
}

fn token(n: u64) -> FencingToken {
    FencingToken::new(0, n)
}

/// A run with two sources, 15/10/2, in which ticks of the seconds 2 to 5 are expected.
struct Books(History);

impl Books {
    fn new() -> Self {
        let mut history = History::new(Setup {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            sources: 2,
            began: at(0),
            began_wall: WALL,
        });
        history.ticks.expect(Window { first: second(2), end: second(6) });
        Self(history)
    }

    fn process(&mut self, name: &str) -> ProcessId {
        let process = self.0.started(name, at(0));
        self.0.named(process, &format!("{name}_id"));
        process
    }

    /// A promoted term from `from`, with a deadline at `deadline`.
    fn term(&mut self, process: ProcessId, bucket: &str, n: u64, from: u64, deadline: u64) {
        self.0.terms.begun(process, bucket, Some(token(n)), at(from), at(deadline));
        self.0.terms.promoted(process, bucket, Some(token(n)), at(from + 1));
    }

    fn end(&mut self, process: ProcessId, bucket: &str, n: u64, reason: Reason, acted_until: u64, ended: u64) {
        let end = Ended { reason, acted_until: at(acted_until), at: at(ended) };
        self.0.terms.ended(process, bucket, Some(token(n)), end);
    }

    /// An event of `source` for `sec`, which arrives `ms` after the beginning, under the term of bucket and token.
    fn event(&mut self, source: u32, sec: i64, id: u64, ms: u64, under: Option<(&str, u64)>) {
        let key = under.map(|(bucket, n)| self.0.terms.key(bucket, token(n)));
        self.0.ticks.arrived(source, second(sec), Arrival { id, at: at(ms), key });
    }

    /// Every expected tick, on time, once.
    fn all_ticks(&mut self, under: Option<(&str, u64)>) {
        for source in 0..2 {
            for sec in 2..6_u32 {
                let id = u64::from(source * 100 + sec);
                self.event(source, i64::from(sec), id, u64::from(sec) * 1000 + 5, under);
            }
        }
    }

    fn renewed(&mut self, name: &str, holder: &str, renewed: i64, ms: u64) {
        self.0.leases.seen(Seen {
            name: name.to_owned(),
            holder: Some(holder.to_owned()),
            renewed: Some(renewed),
            acquired: Some(1),
            seconds: Some(15),
            at: at(ms),
        });
    }

    fn trouble(&mut self, kind: Chaos, process: ProcessId, ms: u64) -> &mut Trouble {
        self.0.troubles.push(Trouble { kind, process, at: at(ms), resumed: None, successor: None });
        self.0.troubles.last_mut().unwrap()
    }

    fn judge(&self, chaos: Chaos) -> Report {
        judge(&Options { chaos, seed: 7, ..Options::default() }, &self.0, Circumstances::default())
    }

    /// The failures, by their first words.
    fn failures(&self, chaos: Chaos) -> Vec<String> {
        let first = |f: &String| f.split(':').next().unwrap_or_default().to_owned();
        self.judge(chaos).failures.iter().map(first).collect()
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_quiet_run_passes() {
    let mut books = Books::new();
    let a = books.process("a");
    books.term(a, "b0", 1, 100, 60_000);
    books.all_ticks(Some(("b0", 1)));
    let report = books.judge(Chaos::None);
    assert_eq!(report.failures, NOTHING);
    assert!(report.passed() && report.verdict == "passed");
    let e = report.events;
    assert_eq!((e.expected, e.received, e.missed, e.doubled, e.redelivered, e.late), (8, 8, 0, 0, 0, 0));
    assert_eq!((e.outside, e.other, e.untold), (0, 0, 0));
}

#[test]
fn a_hand_over_in_good_order_is_no_overlap() {
    let mut books = Books::new();
    let (a, b) = (books.process("a"), books.process("b"));
    books.term(a, "b0", 1, 100, 12_000);
    books.end(a, "b0", 1, Reason::Shutdown, 3_000, 3_010);
    books.term(b, "b0", 2, 3_020, 13_000);
    books.all_ticks(None);
    assert_eq!(books.failures(Chaos::Term), NOTHING);
}

#[test]
fn two_terms_in_force_at_one_instant_overlap() {
    let mut books = Books::new();
    let (a, b) = (books.process("a"), books.process("b"));
    // Told of no end: in force to its last deadline, which moved.
    books.term(a, "b0", 1, 100, 3_000);
    books.0.terms.moved(a, "b0", Some(token(1)), at(4_000));
    books.0.terms.moved(a, "b0", Some(token(1)), at(3_500));
    books.term(b, "b0", 2, 3_900, 13_000);
    // Another bucket at the same time is none of it.
    books.term(b, "b1", 3, 100, 13_000);
    books.all_ticks(None);
    let report = books.judge(Chaos::Pause);
    assert_eq!(books.failures(Chaos::Pause), ["1 overlaps"]);
    assert_eq!(report.overlaps, 1);
    assert!(
        report.notes[0].contains("overlap of 100ms in b0: a_id (token 00000000000000000000000001) and b_id"),
        "{:?}",
        report.notes
    );
}

#[test]
fn a_term_ends_at_what_came_first() {
    // (told acted until, deadline, death of the process, begin of the next) and whether that overlaps.
    for (acted, deadline, death, next, overlaps) in [
        (Some(3_000), 9_000, None, 3_000, 0),
        (Some(3_000), 9_000, None, 2_999, 1),
        // Never later than its deadline, whatever is told.
        (Some(9_000), 3_000, None, 3_000, 0),
        (None, 3_000, None, 3_000, 0),
        (None, 3_000, None, 2_999, 1),
        (None, 9_000, Some(3_000), 3_000, 0),
        (None, 9_000, Some(3_000), 2_999, 1),
        (Some(2_000), 9_000, Some(3_000), 2_500, 0),
        (None, 9_000, None, 50, 1),
    ] {
        let mut books = Books::new();
        let (a, b) = (books.process("a"), books.process("b"));
        books.term(a, "b0", 1, 100, deadline);
        if let Some(acted) = acted {
            books.end(a, "b0", 1, Reason::Lost, acted, acted + 5);
        }
        if let Some(death) = death {
            books.0.died(a, at(death));
        }
        books.term(b, "b0", 2, next, 20_000);
        let found = super::overlaps(&books.0).len();
        assert_eq!(found, overlaps, "acted {acted:?}, deadline {deadline}, death {death:?}, next {next}");
    }
}

#[test]
fn every_pair_counts() {
    let mut books = Books::new();
    let (a, b, c) = (books.process("a"), books.process("b"), books.process("c"));
    books.term(a, "b0", 1, 100, 9_000);
    books.term(b, "b0", 2, 200, 9_000);
    books.term(c, "b0", 3, 300, 9_000);
    // Two terms of one process are two terms.
    books.term(c, "b0", 4, 400, 9_000);
    assert_eq!(super::overlaps(&books.0).len(), 6);
}

#[test]
fn terms_without_tokens_are_told_apart_by_their_process() {
    let mut books = Books::new();
    let (a, b) = (books.process("a"), books.process("b"));
    let never = Instant::from_nanos(u64::MAX);
    for process in [a, b] {
        books.0.terms.begun(process, "", None, at(100), never);
        books.0.terms.promoted(process, "", None, at(101));
    }
    books.all_ticks(None);
    assert_eq!(books.failures(Chaos::None), ["1 overlaps"], "two replicas, unopposed");
}

#[test]
fn a_tick_without_an_event_is_missed() {
    let mut books = Books::new();
    books.all_ticks(None);
    books.0.ticks.expect(Window { first: second(2), end: second(8) });
    assert_eq!(books.0.ticks.outstanding(), 4);
    books.event(0, 6, 106, 6_000, None);
    assert_eq!(books.0.ticks.outstanding(), 3);
    let report = books.judge(Chaos::None);
    assert_eq!(books.failures(Chaos::None), ["3 missed"]);
    assert_eq!((report.events.expected, report.events.received, report.events.missed), (12, 9, 3));
    let note = report.notes.iter().find(|n| n.starts_with("missed")).unwrap();
    assert!(note.contains("source 0 at 2027-01-15T08:00:07Z"), "{note}");
}

#[test]
fn no_event_at_all_is_all_missed() {
    assert_eq!(Books::new().failures(Chaos::Kill), ["8 missed"]);
}

#[test]
fn different_ids_for_one_tick_are_doubled() {
    let mut books = Books::new();
    books.all_ticks(None);
    books.event(1, 3, 9_999, 3_500, None);
    assert_eq!(books.failures(Chaos::Kill), ["1 doubled"]);
    // A third is the same tick doubled.
    books.event(1, 3, 9_998, 3_600, None);
    assert_eq!(books.failures(Chaos::None), ["1 doubled"]);
    assert_eq!(books.judge(Chaos::None).events.received, 10);
}

#[test]
fn the_same_id_under_overlapping_terms_is_doubled_too() {
    let mut books = Books::new();
    let (a, b) = (books.process("a"), books.process("b"));
    books.term(a, "b0", 1, 100, 9_000);
    books.term(b, "b0", 2, 2_000, 9_000);
    books.all_ticks(Some(("b0", 1)));
    books.event(0, 2, 2, 2_500, Some(("b0", 2)));
    assert_eq!(books.failures(Chaos::Kill), ["1 overlaps", "1 doubled"]);
    assert_eq!(books.judge(Chaos::Kill).events.redelivered, 1);
}

#[test]
fn the_same_id_again_is_redelivered_and_fails_only_without_crashes() {
    let mut books = Books::new();
    let (a, b) = (books.process("a"), books.process("b"));
    books.term(a, "b0", 1, 100, 3_000);
    books.term(b, "b0", 2, 3_000, 30_000);
    books.all_ticks(Some(("b0", 2)));
    // Once under each of two terms that do not overlap, and once more.
    books.event(0, 2, 2, 2_100, Some(("b0", 1)));
    books.event(0, 2, 2, 2_200, Some(("b0", 1)));
    for chaos in [Chaos::Kill, Chaos::Pause, Chaos::Restart] {
        assert_eq!(books.failures(chaos), NOTHING, "{chaos}");
    }
    for chaos in [Chaos::None, Chaos::Term] {
        assert_eq!(books.failures(chaos), ["2 redelivered"], "{chaos}");
    }
    assert_eq!(books.judge(Chaos::Kill).events.received, 10);
}

#[test]
fn an_id_used_for_another_second_is_the_same_id_again() {
    let mut books = Books::new();
    books.all_ticks(None);
    books.event(0, 6, 5, 6_000, None);
    assert_eq!(books.failures(Chaos::None), ["1 redelivered"]);
}

#[test]
fn what_comes_outside_the_window_is_judged_but_not_expected() {
    let mut books = Books::new();
    books.all_ticks(None);
    books.event(0, 1, 1, 1_000, None);
    books.event(0, 6, 106, 6_000, None);
    let events = books.judge(Chaos::None).events;
    assert_eq!((events.received, events.outside), (8, 2));
    assert_eq!(books.failures(Chaos::None), NOTHING);
    books.event(0, 1, 77, 1_100, None);
    assert_eq!(books.failures(Chaos::None), ["1 doubled"]);
}

#[test]
fn an_event_long_after_the_end_of_its_term_is_late() {
    // Lease-duration less renew-deadline is 5 s.
    for (arrives, late) in [(8_000, 0), (8_001, 1)] {
        let mut books = Books::new();
        let a = books.process("a");
        books.term(a, "b0", 1, 100, 3_000);
        books.all_ticks(None);
        books.event(0, 6, 106, arrives, Some(("b0", 1)));
        assert_eq!(books.judge(Chaos::Pause).events.late, late, "{arrives}");
        let expected: &[&str] = if late > 0 { &["1 late"] } else { &[] };
        assert_eq!(books.failures(Chaos::Pause), expected);
    }
}

#[test]
fn late_is_counted_from_the_told_end_and_for_events_of_all_kinds() {
    let mut books = Books::new();
    let a = books.process("a");
    books.term(a, "b0", 1, 100, 60_000);
    books.end(a, "b0", 1, Reason::Released, 1_000, 1_001);
    books.all_ticks(None);
    let key = books.0.terms.key("b0", token(1));
    books.0.ticks.other(at(6_001), Some(key));
    books.event(0, 5, 5, 6_002, Some(("b0", 1)));
    let events = books.judge(Chaos::Kill).events;
    assert_eq!((events.late, events.other), (2, 1));
}

#[test]
fn an_event_may_be_heard_of_before_its_term() {
    let mut books = Books::new();
    books.all_ticks(Some(("b0", 1)));
    assert_eq!(books.judge(Chaos::None).events.untold, 8);
    let a = books.process("a");
    books.term(a, "b0", 1, 100, 60_000);
    assert_eq!(books.judge(Chaos::None).events.untold, 0);
}

#[test]
fn ticks_of_another_age_are_counted_not_kept() {
    let mut books = Books::new();
    books.all_ticks(None);
    for sec in [-100_000, 100_000, i64::MIN / 2, i64::MAX / 2] {
        books.0.ticks.arrived(0, sec, Arrival { id: 1, at: at(3_000), key: None });
    }
    books.event(9, 3, 1, 3_000, None);
    let events = books.judge(Chaos::None).events;
    assert_eq!((events.other, events.outside), (5, 0));
}

#[test]
fn lines_about_terms_that_never_began_are_noted() {
    let mut books = Books::new();
    let a = books.process("a");
    books.all_ticks(None);
    books.0.terms.moved(a, "b0", Some(token(1)), at(5_000));
    assert!(books.judge(Chaos::None).notes[0].starts_with("1 report lines"));
}

#[test]
fn a_window_has_the_seconds_that_begin_in_it() {
    let s = 1_000_000_000_i128;
    assert_eq!(Window::between(10 * s, 70 * s), Window { first: 10, end: 70 });
    assert_eq!(Window::between(10 * s + 1, 70 * s + 1), Window { first: 11, end: 71 });
    assert_eq!(Window::between(10 * s + 1, 10 * s + 2).seconds(), 0);
    assert_eq!(Window::between(70 * s, 10 * s).seconds(), 0);
    // Sixty seconds have sixty ticks, wherever they begin.
    assert!((0..20).all(|n| Window::between(n * s / 7, n * s / 7 + 60 * s).seconds() == 60));
}

mod hand_overs {
    use super::*;

    fn millis(books: &Books, kind: Chaos) -> (Vec<i64>, u64) {
        let found = handovers(&books.0, kind);
        (found.nanos.iter().map(|n| n / 1_000_000).collect(), found.unfinished)
    }

    #[test]
    fn term_counts_from_the_return_of_the_old_demote() {
        let mut books = Books::new();
        let (a, b) = (books.process("a"), books.process("b"));
        for (n, bucket) in [(1, "b0"), (2, "b1"), (3, "b2")] {
            books.term(a, bucket, n, 100, 30_000);
        }
        // Given away before the trouble, so not by it.
        books.end(a, "b2", 3, Reason::Released, 4_000, 4_001);
        books.trouble(Chaos::Term, a, 5_000);
        books.end(a, "b0", 1, Reason::Shutdown, 5_010, 5_020);
        books.end(a, "b1", 2, Reason::Shutdown, 5_010, 5_030);
        books.term(b, "b0", 4, 5_039, 30_000);
        books.term(b, "b2", 5, 5_100, 30_000);
        assert_eq!(millis(&books, Chaos::Term), (vec![20], 1));
        // What the next holder does not promote is no hand-over yet.
        books.0.terms.begun(b, "b1", Some(token(6)), at(5_100), at(30_000));
        assert_eq!(millis(&books, Chaos::Term), (vec![20], 1));
        books.term(b, "b1", 7, 5_229, 30_000);
        assert_eq!(millis(&books, Chaos::Term), (vec![20, 200], 0));
        assert_eq!(millis(&books, Chaos::Kill), (vec![], 0));
    }

    #[test]
    fn kill_counts_from_the_expiry_of_the_record() {
        let mut books = Books::new();
        let (a, b) = (books.process("a"), books.process("b"));
        books.term(a, "b0", 1, 100, 12_000);
        books.renewed("b0", "a_id", 1, 100);
        books.renewed("b0", "a_id", 2, 2_000);
        // A label proves no life.
        books.renewed("b0", "a_id", 2, 4_000);
        books.trouble(Chaos::Kill, a, 3_000);
        books.0.died(a, at(3_001));
        books.renewed("b0", "b_id", 3, 17_020);
        books.term(b, "b0", 2, 17_029, 30_000);
        assert_eq!(millis(&books, Chaos::Kill), (vec![30], 0));
    }

    #[test]
    fn a_take_before_the_expiry_is_negative() {
        let mut books = Books::new();
        let (a, b) = (books.process("a"), books.process("b"));
        books.term(a, "b0", 1, 100, 12_000);
        books.renewed("b0", "a_id", 1, 2_000);
        books.trouble(Chaos::Kill, a, 3_000);
        books.0.died(a, at(3_001));
        books.term(b, "b0", 2, 16_999, 30_000);
        books.term(b, "b1", 3, 100, 30_000);
        assert_eq!(millis(&books, Chaos::Kill), (vec![0], 0));
        let mut books_early = Books::new();
        let (a, b) = (books_early.process("a"), books_early.process("b"));
        books_early.term(a, "b0", 1, 100, 12_000);
        books_early.renewed("b0", "a_id", 1, 2_000);
        books_early.trouble(Chaos::Kill, a, 3_000);
        books_early.0.died(a, at(3_001));
        books_early.term(b, "b0", 2, 16_989, 30_000);
        assert_eq!(millis(&books_early, Chaos::Kill), (vec![-10], 0));
    }

    #[test]
    fn without_a_record_the_deadline_tells_when_it_expired() {
        let mut books = Books::new();
        let (a, b) = (books.process("a"), books.process("b"));
        books.term(a, "b0", 1, 100, 12_000);
        books.trouble(Chaos::Kill, a, 3_000);
        books.0.died(a, at(3_001));
        books.term(b, "b0", 2, 17_049, 30_000);
        assert_eq!(millis(&books, Chaos::Kill), (vec![50], 0));
    }

    #[test]
    fn a_bucket_without_a_duration_expires_with_its_member() {
        let mut books = Books::new();
        let (a, b) = (books.process("a"), books.process("b"));
        books.term(a, "b0", 1, 100, 12_000);
        books.0.leases.seen(Seen {
            name: "b0".to_owned(),
            holder: Some("a_id".to_owned()),
            renewed: Some(1),
            acquired: Some(1),
            seconds: Some(i32::MAX),
            at: at(100),
        });
        books.renewed("component.member.x", "a_id", 1, 50);
        books.renewed("component.member.x", "a_id", 2, 2_500);
        books.trouble(Chaos::Kill, a, 3_000);
        books.0.died(a, at(3_001));
        books.term(b, "b0", 2, 17_539, 30_000);
        assert_eq!(millis(&books, Chaos::Kill), (vec![40], 0));
    }

    #[test]
    fn pause_counts_what_it_ended() {
        let mut books = Books::new();
        let (a, b) = (books.process("a"), books.process("b"));
        books.term(a, "b0", 1, 100, 12_000);
        books.renewed("b0", "a_id", 1, 2_000);
        books.trouble(Chaos::Pause, a, 3_000).resumed = Some(at(48_000));
        books.term(b, "b0", 2, 17_009, 90_000);
        books.end(a, "b0", 1, Reason::Lost, 12_000, 48_005);
        assert_eq!(millis(&books, Chaos::Pause), (vec![10], 0));
        // Let on before its deadline, a term goes on.
        books.0.troubles[0].resumed = Some(at(11_999));
        assert_eq!(millis(&books, Chaos::Pause), (vec![], 0));
    }

    #[test]
    fn one_who_takes_its_own_bucket_again_hands_over_to_itself() {
        let mut books = Books::new();
        let a = books.process("a");
        books.term(a, "b0", 1, 100, 12_000);
        books.renewed("b0", "a_id", 1, 2_000);
        books.trouble(Chaos::Pause, a, 3_000).resumed = Some(at(48_000));
        // The same holder writes again, long after its record had run out.
        books.renewed("b0", "a_id", 2, 48_010);
        books.term(a, "b0", 2, 48_019, 90_000);
        assert_eq!(millis(&books, Chaos::Pause), (vec![48_020 - 17_000], 0));
    }

    #[test]
    fn restart_counts_from_the_start_of_the_new_process() {
        let mut books = Books::new();
        let a = books.process("a");
        books.term(a, "b0", 1, 100, 12_000);
        books.trouble(Chaos::Restart, a, 3_000);
        books.0.died(a, at(3_001));
        assert_eq!(millis(&books, Chaos::Restart), (vec![], 1), "nobody was started");
        let next = books.0.started("a", at(3_010));
        books.0.troubles[0].successor = Some(next);
        books.term(next, "b0", 2, 3_509, 30_000);
        assert_eq!(millis(&books, Chaos::Restart), (vec![500], 0));
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let of = |nanos: Vec<i64>, percent| Handovers { nanos, unfinished: 0 }.percentile(percent);
        assert_eq!(of(vec![], 50), None);
        assert_eq!((of(vec![5], 50), of(vec![5], 99), of(vec![5], 100)), (Some(5), Some(5), Some(5)));
        let hundred: Vec<i64> = (1..=100).collect();
        assert_eq!(
            (of(hundred.clone(), 50), of(hundred.clone(), 99), of(hundred, 100)),
            (Some(50), Some(99), Some(100))
        );
        assert_eq!(of(vec![1, 2, 3], 50), Some(2));
    }
}

#[test]
fn the_report_as_json() {
    let mut books = Books::new();
    let (a, b) = (books.process("a"), books.process("b"));
    books.term(a, "b0", 1, 100, 12_000);
    books.trouble(Chaos::Term, a, 2_500);
    books.end(a, "b0", 1, Reason::Shutdown, 2_600, 2_610);
    books.term(b, "b0", 2, 2_622, 30_000);
    books.0.died(a, at(2_700));
    books.all_ticks(None);
    books.event(0, 2, 2, 2_500, Some(("b0", 1)));
    let requests = crate::dev::fleet::cluster::Requests { update: 71, get: 3, list: 3, watch: 3, ..Default::default() };
    let around = Circumstances {
        held: [(b, 10)].into(),
        requests: Some(requests),
        seconds: 60.0,
        notes: vec!["a note".to_owned()],
        ..Circumstances::default()
    };
    let report = judge(&Options { chaos: Chaos::Term, seed: 7, ..Options::default() }, &books.0, around);
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap(), @r#"
    {
      "replicas": 3,
      "buckets": 10,
      "strategy": "standard",
      "seconds": 60.0,
      "events": {
        "expected": 8,
        "received": 9,
        "missed": 0,
        "doubled": 0,
        "redelivered": 1,
        "late": 0,
        "outside": 0,
        "other": 0,
        "untold": 0
      },
      "overlaps": 0,
      "handovers": {
        "term": {
          "count": 1,
          "p50_ms": 13.0,
          "p99_ms": 13.0,
          "max_ms": 13.0,
          "unfinished": 0
        },
        "kill": {
          "count": 0,
          "p50_ms": null,
          "p99_ms": null,
          "max_ms": null,
          "unfinished": 0
        },
        "pause": {
          "count": 0,
          "p50_ms": null,
          "p99_ms": null,
          "max_ms": null,
          "unfinished": 0
        },
        "restart": {
          "count": 0,
          "p50_ms": null,
          "p99_ms": null,
          "max_ms": null,
          "unfinished": 0
        }
      },
      "held": {
        "b_id": 10
      },
      "lease_requests": {
        "get": 3,
        "list": 3,
        "watch": 3,
        "create": 0,
        "update": 71,
        "delete": 0,
        "patch": 0
      },
      "lease_requests_in_window": null,
      "chaos": "term",
      "troubles": 1,
      "seed": 7,
      "unasked_exits": 0,
      "interrupted": false,
      "verdict": "failed",
      "failures": [
        "1 redelivered: an id came again although every hand-over was in good order"
      ],
      "notes": [
        "a note"
      ]
    }
    "#);
    insta::assert_snapshot!(crate::dev::fleet::summary(&report), @r"
    events     8 expected, 9 received, 0 missed, 0 doubled, 1 redelivered, 0 late
    overlaps   0
    hand-over  term: 1 times, p50 13.0 ms, p99 13.0 ms, max 13.0 ms
    held       b_id 10
    requests   3 get, 3 list, 3 watch, 0 create, 71 update, 0 delete
    note       a note
    FAILED: 1 redelivered: an id came again although every hand-over was in good order (60.0 s, chaos term, 1 troubles, seed 7)
    ");
}
