//! Each rule catches a history that breaks it, and finds nothing in one that does not.

use super::storm::STORM;
use super::version::{Cut, LayoutRef, LayoutView, Vouch};
use super::*;

const S: Duration = Duration::from_secs(1);
const LEASE: Write = Write::Took { duration: Duration::from_secs(15) };
const RENEWED: Write = Write::Renewed { duration: Duration::from_secs(15) };

fn judged(all: &[(u64, &str, What)]) -> Vec<&'static str> {
    let history = History::default();
    for (at, replica, what) in all {
        let mut what = what.clone();
        if let What::Act { given, .. } = &mut what {
            *given = *at as u32 * S;
        }
        history.add(*at as u32 * S, replica, what);
    }
    history.violations().iter().map(|v| v.0).collect()
}

fn born(at: u64, replica: &str) -> (u64, &str, What) {
    let wants = Cut { buckets: 1, hash: "knative".into() };
    (at, replica, What::Born { wants, timing: crate::world::timing(15, 10, 2) })
}

fn act(until: u64) -> What {
    act_in(None, until)
}

fn act_in(token: Option<FencingToken>, until: u64) -> What {
    // Given when it began: `judged` sets it.
    What::Act {
        bucket: "b".into(),
        key: "k".into(),
        token,
        given: Duration::MAX,
        until: until as u32 * S,
        stubborn: false,
    }
}

fn wrote(arrived: u64, write: Write) -> What {
    What::Wrote(Wrote {
        bucket: "b".into(),
        arrived: arrived as u32 * S,
        write,
        revision: 5,
        before: None,
        after: None,
    })
}

fn changed(revision: u64, write: Write, before: Version, after: Version) -> What {
    let (before, after) = (Some(Arc::new(before)), Some(Arc::new(after)));
    What::Wrote(Wrote { bucket: "b".into(), arrived: Duration::ZERO, write, revision, before, after })
}

/// The same, sent when it landed.
fn at(second: u64, what: What) -> What {
    let What::Wrote(w) = what else { return what };
    What::Wrote(Wrote { arrived: second as u32 * S, ..w })
}

fn held_by(holder: &str, renewed: u64) -> Version {
    let layout = LayoutRef("l".into(), 1);
    Version {
        name: "b".into(),
        uid: "u".into(),
        holder: holder.into(),
        renewed: format!("{renewed:03}"),
        spec_duration: 15 * S,
        longest: 15 * S,
        vouch: Some(Vouch { duration: 15 * S, layout }),
        ..Version::default()
    }
}

fn empty() -> Version {
    Version { holder: String::new(), vouch: None, spec_duration: S, ..held_by("", 0) }
}

fn foreign(holder: &str) -> Version {
    Version { vouch: None, ..held_by(holder, 0) }
}

fn layout_lease(generation: u64, open: bool) -> Version {
    let id = LayoutRef("l".into(), generation);
    let cut = Cut { buckets: 1, hash: "knative".into() };
    let layout = LayoutView { id, open, cut, era: 0, longest: 15 * S };
    Version { name: "q".into(), uid: "l".into(), layout: Some(layout), ..Version::default() }
}

/// A write of the layout Lease "q".
fn cut(generation: u64) -> What {
    let What::Wrote(w) = changed(1, Write::Other, layout_lease(generation - 1, true), layout_lease(generation, true))
    else {
        unreachable!()
    };
    What::Wrote(Wrote { bucket: "q".into(), ..w })
}

fn token(revision: u64) -> Option<FencingToken> {
    Some(FencingToken::new(0, revision))
}

fn begun(revision: u64) -> What {
    What::Begun { bucket: "b".into(), token: token(revision) }
}

fn promoted() -> What {
    What::Promoted { bucket: "b".into() }
}

fn shut() -> What {
    What::Shut { bucket: "b".into() }
}

fn ended(revision: u64) -> What {
    What::Ended { bucket: "b".into(), token: token(revision), reason: Reason::Lost }
}

fn aware(call: Call) -> What {
    What::Aware { bucket: "b".into(), call }
}

fn asked(number: u64, kind: Kind) -> What {
    What::Asked(Asked { number, kind, lease: Some("b".into()) })
}

fn answered(number: u64, code: Option<u16>) -> What {
    What::Answered { number, code }
}

const PUT: Kind = Kind::Put { releases: false };
const RELEASE: Kind = Kind::Put { releases: true };

#[test]
fn a_good_history_passes() {
    let good = [
        born(0, "a"),
        (1, "a", asked(0, PUT)),
        (1, "a", wrote(1, LEASE)),
        (1, "a", answered(0, Some(200))),
        (1, "a", begun(5)),
        (1, "a", aware(Call::Promote)),
        (1, "a", aware(Call::PromoteDone(true))),
        (1, "a", promoted()),
        (2, "a", act_in(token(5), 4)),
        (3, "a", wrote(3, RENEWED)),
        (5, "a", wrote(5, RENEWED)),
        (6, "a", act_in(token(5), 14)),
        (14, "a", shut()),
        (14, "a", aware(Call::Demote)),
        (14, "a", aware(Call::DemoteDone)),
        (14, "a", ended(5)),
        (14, "a", asked(1, RELEASE)),
        (14, "a", wrote(14, Write::Released)),
        (14, "a", answered(1, Some(200))),
        (15, "b", act(16)),
    ];
    assert!(judged(&good).is_empty(), "{:?}", judged(&good));
}

#[test]
fn s1_two_at_one_time_and_outside_of_a_term() {
    assert_eq!(judged(&[(1, "a", act(3)), (2, "b", act(4))]), ["S1"]);
    // A short act after a long one hides neither.
    assert_eq!(judged(&[(1, "a", act(9)), (2, "a", act(3)), (4, "b", act(5))]), ["S1"]);
    assert!(judged(&[(1, "a", act(3)), (1, "a", What::Died), (2, "b", act(4))]).is_empty());
    let early = [(1, "a", begun(5)), (2, "a", act_in(token(5), 3)), (3, "a", promoted())];
    assert_eq!(judged(&early), ["S1"]);
    let late = [(1, "a", begun(5)), (1, "a", promoted()), (2, "a", shut()), (3, "a", act_in(token(5), 4))];
    assert_eq!(judged(&late), ["S1"]);
}

#[test]
fn s2_and_s7_no_write_covers_it() {
    let late = [born(0, "a"), (1, "a", wrote(1, LEASE)), (12, "a", act(13))];
    assert_eq!(judged(&late), ["S2"]);
    let renewed_by_another = [born(0, "a"), (1, "b", wrote(1, LEASE)), (2, "a", act(3))];
    assert_eq!(judged(&renewed_by_another), ["S2"]);
    let goes_on = [born(0, "a"), (1, "a", wrote(1, LEASE)), (2, "a", act(12))];
    assert_eq!(judged(&goes_on), ["S7"]);
    let prolonged = [born(0, "a"), (1, "a", wrote(1, LEASE)), (2, "a", act(12)), (4, "a", wrote(4, RENEWED))];
    assert_eq!(judged(&prolonged), ["S6"], "only that no term was told of");
}

#[test]
fn s3_wrong_writes() {
    assert_eq!(judged(&[(1, "r1", wrote(1, Write::Made { bare: false }))]), ["S3"]);
    assert_eq!(judged(&[(1, "r1", wrote(1, Write::Remade))]), ["S3"]);
    assert_eq!(judged(&[(1, "r1", What::Sent { wrong: "a PUT without uid".into() })]), ["S3"]);
    assert_eq!(judged(&[(1, "r1", asked(0, PUT)), (1, "r1", asked(1, PUT))]), ["S3"]);
    // Of no token: of a take nothing is told here (S5).
    let term = (0, "r1", What::Begun { bucket: "b".into(), token: None });
    let back = (1, "r1", at(1, changed(5, RENEWED, held_by("r1_1", 7), held_by("r1_1", 7))));
    assert_eq!(judged(&[term.clone(), back]), ["S3"]);
    let on = (1, "r1", at(1, changed(5, RENEWED, held_by("r1_1", 7), held_by("r1_1", 8))));
    assert!(judged(&[term, on]).is_empty());
}

#[test]
fn s4_taken_too_early() {
    let took = |before: Version, second| at(second, changed(9, LEASE, before, held_by("r2_1", 99)));
    let made = |by: Version| (0, "r1", changed(2, Write::Other, empty(), by));
    let of_ours =
        |second| judged(&[born(0, "r2"), made(held_by("r1_1", 1)), (second, "r2", took(held_by("r1_1", 1), second))]);
    assert_eq!(of_ours(14), ["S4"]);
    assert!(of_ours(15).is_empty());
    // A foreign one: 15 s, and the grace of 10 s.
    let of_go = |second| judged(&[born(0, "r2"), made(foreign("go")), (second, "r2", took(foreign("go"), second))]);
    assert_eq!(of_go(24), ["S4"]);
    assert!(of_go(25).is_empty());
    // Emptied by hand after a foreign holder: likewise.
    let emptied = |second| {
        let by_hand = (1, "person", at(1, changed(3, Write::Other, foreign("go"), empty())));
        judged(&[born(0, "r2"), made(foreign("go")), by_hand, (second, "r2", took(empty(), second))])
    };
    assert_eq!(emptied(25), ["S4"]);
    assert!(emptied(26).is_empty());
    // Released: at once.
    let released = Version { released: true, ..empty() };
    assert!(judged(&[born(0, "r2"), made(released.clone()), (1, "r2", took(released, 1))]).is_empty());
    // A label proves no life.
    let label = (10, "person", at(10, changed(3, Write::Other, held_by("r1_1", 1), held_by("r1_1", 1))));
    let labelled = [born(0, "r2"), made(held_by("r1_1", 1)), label, (15, "r2", took(held_by("r1_1", 1), 15))];
    assert!(judged(&labelled).is_empty());
}

#[test]
fn s5_written_blindly_and_begun_by_reading() {
    let lost = |code| [(1, "r1", asked(0, PUT)), (2, "r1", answered(0, code)), (3, "r1", asked(1, PUT))];
    for code in [None, Some(409), Some(500)] {
        assert_eq!(judged(&lost(code)), ["S5"], "{code:?}");
    }
    assert!(judged(&lost(Some(200))).is_empty());
    let read = |sent| {
        [
            (1, "r1", asked(0, PUT)),
            (sent, "r1", asked(1, Kind::Get)),
            (3, "r1", answered(0, None)),
            (4, "r1", asked(1, Kind::Get)),
            (5, "r1", answered(1, Some(200))),
            (6, "r1", asked(2, PUT)),
        ]
    };
    assert!(judged(&read(4)).is_empty());
    let before = [
        (1, "r1", asked(0, PUT)),
        (2, "r1", asked(1, Kind::Get)),
        (3, "r1", answered(0, None)),
        (4, "r1", answered(1, Some(200))),
        (5, "r1", asked(2, PUT)),
    ];
    assert_eq!(judged(&before), ["S5"], "read before the outcome was known");
    let by_reading =
        [(1, "r1", asked(0, PUT)), (1, "r1", wrote(1, LEASE)), (2, "r1", answered(0, None)), (3, "r1", begun(5))];
    assert_eq!(judged(&by_reading), ["S5"]);
}

#[test]
fn s6_out_of_order() {
    let after_loss = [(1, "a", begun(5)), (2, "a", aware(Call::Promote)), (2, "a", aware(Call::PromoteDone(true)))];
    let after_loss =
        [&after_loss[..], &[(2, "a", aware(Call::Demote)), (4, "a", aware(Call::DemoteDone)), (4, "a", ended(5))]];
    let with = |second| [&after_loss.concat()[..], &[(second, "a", wrote(second, RENEWED))]].concat();
    assert_eq!(judged(&with(3)), ["S6"], "renewed after it was lost");
    assert_eq!(judged(&[(1, "a", act(5)), (3, "a", wrote(3, Write::Released))]), ["S6"], "under a guard");
    assert_eq!(judged(&[(1, "a", act(5)), (3, "a", asked(0, RELEASE))]), ["S6"], "sent is enough");
    let acts_on =
        [(1, "a", begun(5)), (1, "a", promoted()), (2, "a", asked(0, RELEASE)), (3, "a", act_in(token(5), 4))];
    assert_eq!(judged(&acts_on), ["S6"]);
    let ok = [(1, "a", aware(Call::Promote)), (1, "a", aware(Call::PromoteDone(true)))];
    let undemoted = [&ok[..], &[(2, "a", asked(0, RELEASE))]].concat();
    assert_eq!(judged(&undemoted), ["S6"], "released before demote");
    let again = [&ok[..], &[(2, "a", aware(Call::Demote)), (3, "a", aware(Call::Promote))]].concat();
    assert_eq!(judged(&again), ["S6"], "promoted before demote has returned");
    assert_eq!(judged(&[(1, "a", begun(5)), (2, "a", begun(6))]), ["pairs"]);
    assert_eq!(judged(&[(1, "a", ended(5))]), ["pairs"]);
}

#[test]
fn s8_two_layouts() {
    let under = |generation| Version {
        vouch: Some(Vouch { duration: 15 * S, layout: LayoutRef("l".into(), generation) }),
        ..held_by("a_1", 1)
    };
    let took = |replica: &'static str, second, revision, generation| {
        let released = Version { released: true, ..empty() };
        (second, replica, at(second, changed(revision, LEASE, released, under(generation))))
    };
    let acts = |second, revision, until| {
        let what = What::Act {
            bucket: "b".into(),
            key: format!("k{revision}"),
            token: token(revision),
            given: Duration::MAX,
            until: until as u32 * S,
            stubborn: false,
        };
        (second, "a", what)
    };
    let term = |second, revision| [(second, "a", begun(revision)), (second, "a", promoted())];
    let all = |second| {
        let mut all = vec![(0, "q", cut(1)), took("a", 1, 5, 1)];
        all.extend(term(1, 5));
        all.extend([
            acts(2, 5, 6),
            (6, "a", shut()),
            (6, "a", ended(5)),
            (4, "q", at(4, cut(2))),
            took("a", second, 7, 2),
        ]);
        all.extend([(second, "a", begun(7)), (second, "a", promoted()), acts(second, 7, 9)]);
        judged(&all)
    };
    assert!(all(7).is_empty(), "{:?}", all(7));
    assert!(all(5).contains(&"S8"), "{:?}", all(5));
    let gone = [(0, "q", cut(1)), (2, "q", at(2, cut(2))), took("a", 3, 5, 1), (4, "a", begun(5))];
    assert_eq!(judged(&gone), ["S8"], "not in force any more when it was taken");
    let (_, _, landed_late) = took("a", 1, 5, 1);
    let late = [(0, "q", cut(1)), (2, "q", at(2, cut(2))), (3, "a", landed_late), (4, "a", begun(5))];
    assert_eq!(judged(&late), ["S8"], "in force when its take was sent, not when it landed: the read would have told");
}

#[test]
fn s9_a_token_that_falls() {
    assert_eq!(judged(&[(1, "a", begun(5)), (2, "a", ended(5)), (3, "b", begun(4))]), ["S9"]);
    let other = [(1, "a", wrote(1, LEASE)), (2, "a", begun(6))];
    assert_eq!(judged(&other), ["S9"], "not the revision of the take");
}

#[test]
fn a_storm() {
    let storm: Vec<_> =
        (0..=STORM as u64).map(|n| (1, "a", What::Asked(Asked { number: n, kind: Kind::List, lease: None }))).collect();
    assert_eq!(judged(&storm), ["storm"]);
}

#[test]
fn liveness() {
    let name = "q.00-of-01";
    let lease = |what: What| match what {
        What::Wrote(w) => What::Wrote(Wrote { bucket: name.into(), ..w }),
        What::Promoted { .. } => What::Promoted { bucket: name.into() },
        What::Begun { token, .. } => What::Begun { bucket: name.into(), token },
        other => other,
    };
    // The world is well from 10 s on: within 15 s and a little it has a holder.
    let all = |before: Version, taken: Option<u64>| {
        let mut all =
            vec![born(0, "r1"), (0, "q", cut(1)), (1, "r9", lease(changed(2, Write::Other, empty(), before)))];
        all.push((10, "world", What::Calm));
        if let Some(second) = taken {
            all.extend([
                (second, "r1", lease(What::Begun { bucket: String::new(), token: None })),
                (second, "r1", lease(promoted())),
            ]);
        }
        all.push((60, "world", What::Trouble));
        judged(&all)
    };
    assert_eq!(all(held_by("r9_1", 1), None), ["live"]);
    assert_eq!(all(held_by("r9_1", 1), Some(27)), ["live"]);
    assert!(all(held_by("r9_1", 1), Some(26)).is_empty());
    // Nobody knows who held it last: a grace of 10 s more.
    assert_eq!(all(foreign("go"), Some(37)), ["live"]);
    assert!(all(foreign("go"), Some(36)).is_empty());
    // Nothing is asked where a person writes all the time.
    let mut written = vec![born(0, "r1"), (0, "q", cut(1)), (1, "world", What::Calm)];
    for second in (5..60).step_by(10) {
        written.push((second, "person", lease(at(second, changed(2, Write::Other, empty(), empty())))));
    }
    assert!(judged(&written).is_empty());
}
