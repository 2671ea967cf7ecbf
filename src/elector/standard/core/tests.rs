//! Schedules with hand-made inputs: each is one that the simulator meets rarely, or can't order so.

use super::{Action, Answer, Ask, Core, Now, Reply, Request, Settings, Target};
use crate::bucket::{BucketSet, Hash, lease_name};
use crate::clock::{Clock, Instant, SharedClock};
use crate::elector::standard::slot::Phase;
use crate::leader::observe::Event;
use crate::leader::tenure::{Ended, Limits};
use crate::leader::{Reason, Term};
use crate::lease::{Cut, Draft, Failure, HashName, LAYOUT, Record, Seen};
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ME: &str = "me_1";
const S: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("valid")
    }
}

fn settings(lease: u32, deadline: u32, retry: u32) -> Settings {
    Settings {
        lease_duration: lease * S,
        renew_deadline: deadline * S,
        retry_period: retry * S,
        foreign_grace: deadline * S,
        drain_timeout: 10 * S,
    }
}

/// A replica whose every input is made by hand. Its wall clock stands still.
struct Bench {
    core: Core,
    clock: Arc<Hand>,
    revision: u64,
    /// What the last step wanted done, requests apart.
    did: Vec<Action>,
}

fn name(i: u32) -> String {
    lease_name("c.q", i, 2)
}

fn cut() -> Cut {
    Cut { strategy: "standard".into(), hash: HashName::Knative, buckets: 2, prefix: "c.q".into() }
}

fn record(name: &str, uid: &str, revision: u64, annotations: &Value, spec: &Value) -> Record {
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "d", "uid": uid, "resourceVersion": revision.to_string(), "annotations": annotations},
        "spec": spec,
    });
    Record::of(serde_json::from_value::<DynamicObject>(object).expect("an object"))
}

fn layout(revision: u64, lease: u32) -> Record {
    let mut note = serde_json::to_value(cut()).expect("plain");
    let more = json!({"v": 1, "generation": 1, "open": true, "settled": 1, "era": 0, "leaseDurationSeconds": lease});
    note.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
    record("c.q", "layout-1", revision, &json!({LAYOUT: note.to_string()}), &json!({}))
}

fn released(i: u32, revision: u64) -> Record {
    let at = "2026-01-01T00:00:00.000000Z";
    let note = json!({"v": 1, "leaseTransitions": 3, "renewTime": at, "leaseDurationSeconds": 15});
    let spec = json!({"holderIdentity": "", "leaseTransitions": 3, "renewTime": at, "leaseDurationSeconds": 1});
    record(&name(i), &format!("bucket-{i}"), revision, &json!({"leasehold.dev/release": note.to_string()}), &spec)
}

/// Made by one of us, empty, and held by nobody since: free by time.
fn fresh(i: u32, revision: u64) -> Record {
    let note = json!({"v": 1, "leaseDurationSeconds": 15});
    record(&name(i), &format!("bucket-{i}"), revision, &json!({"leasehold.dev/made": note.to_string()}), &json!({}))
}

/// Held by a client-go program, as it writes it.
fn foreign(i: u32, revision: u64) -> Record {
    let at = "2026-01-01T00:00:00.000000Z";
    let spec = json!({"holderIdentity": "go-1", "leaseTransitions": 4, "renewTime": at, "leaseDurationSeconds": 15});
    record(&name(i), &format!("bucket-{i}"), revision, &json!({}), &spec)
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let clock = Arc::new(Hand(AtomicU64::new(1_000_000_000_000)));
        let shared: SharedClock = clock.clone();
        let set = BucketSet::new(Hash::Knative, (0..2).map(name)).expect("two");
        let rng = fastrand::Rng::with_seed(1);
        let core = Core::new(ME.into(), &set, cut(), "c.q".into(), settings, shared, rng);
        Self { core, clock, revision: 100, did: Vec::new() }
    }

    /// Both buckets released, the layout in force and settled.
    fn seeded(lease: u32, deadline: u32, retry: u32) -> Self {
        let mut bench = Self::new(settings(lease, deadline, retry));
        bench.listed(vec![layout(10, lease), released(0, 11), released(1, 12)]);
        bench
    }

    /// Both buckets fresh, and waited for.
    fn waited(lease: u32, deadline: u32, retry: u32) -> Self {
        let mut bench = Self::new(settings(lease, deadline, retry));
        bench.listed(vec![layout(10, lease), fresh(0, 11), fresh(1, 12)]);
        bench.step();
        bench.pass(lease * S);
        bench
    }

    fn now(&self) -> Now {
        Now { at: self.clock.now(), wall: self.clock.wall() }
    }

    fn pass(&mut self, time: Duration) {
        self.clock.0.fetch_add(u64::try_from(time.as_nanos()).expect("short"), Ordering::Relaxed);
    }

    fn listed(&mut self, records: Vec<Record>) {
        let records = records.into_iter().map(Arc::new).collect();
        let now = self.now();
        self.core.seen(&Seen::Listed { revision: self.revision, records }, now);
    }

    /// The requests of the next step; the rest is kept in `did`.
    fn step(&mut self) -> Vec<(Ask, Request)> {
        let now = self.now();
        let (actions, _) = self.core.decide(now);
        self.did.clear();
        let mut asked = Vec::new();
        for action in actions {
            match action {
                Action::Ask(ask, request) => asked.push((ask, request)),
                other => self.did.push(other),
            }
        }
        asked
    }

    fn answer(&mut self, ask: Ask, result: Result<Reply, Failure>) {
        let now = self.now();
        self.core.answered(Answer { ask, result }, now);
    }

    /// The write is carried out and answered. What stands in the Lease then.
    fn lands(&mut self, ask: Ask, draft: &Draft) -> Record {
        self.revision += 1;
        let record = landed(draft, self.revision);
        self.answer(ask, Ok(Reply::Record(Box::new(record.clone()))));
        record
    }

    /// The one request of the next step about this bucket.
    fn asked(&mut self, at: usize) -> (Ask, Request) {
        let mut all = self.step();
        let i = all.iter().position(|(a, _)| a.target == Target::Bucket(at)).expect("a request about the bucket");
        all.swap_remove(i)
    }

    /// Takes bucket 0, judges and begins its term; bucket 1 is left to a foreign holder.
    fn hold(lease: u32, deadline: u32, retry: u32) -> (Self, Record, Term) {
        let mut bench = Self::new(settings(lease, deadline, retry));
        bench.listed(vec![layout(10, lease), released(0, 11), foreign(1, 12)]);
        let (ask, request) = bench.asked(0);
        let Request::Replace(draft) = request else { panic!("a take") };
        let stands = bench.lands(ask, &draft);
        bench.judged(layout(10, lease));
        let term = bench.begun();
        (bench, stands, term)
    }

    /// The layout Lease is read, as `record`.
    fn judged(&mut self, record: Record) {
        let mut all = self.step();
        let i = all
            .iter()
            .position(|(a, _)| matches!(a.target, Target::Layout | Target::Judge))
            .expect("a read of the layout");
        let (ask, request) = all.swap_remove(i);
        assert!(matches!(request, Request::Get), "{request:?}");
        self.answer(ask, Ok(Reply::Record(Box::new(record))));
    }

    fn begun(&mut self) -> Term {
        self.step();
        let begun = self.did.iter().find_map(|a| match a {
            Action::Begin(0, term, _) => Some(term.clone()),
            _ => None,
        });
        begun.unwrap_or_else(|| panic!("no term: {:?}", self.did))
    }

    /// The next write empties bucket 0 without a record, and no term has begun.
    fn given_back(&mut self) {
        let (_, draft) = replace(self.asked(0));
        let record = landed(&draft, 500);
        assert!(!record.is_held() && record.released().is_none(), "{record:?}");
        assert!(record.longest() >= 60 * S, "it says for how long: {record:?}");
        assert!(self.did.iter().all(|a| !matches!(a, Action::Begin(..))), "{:?}", self.did);
    }

    fn lost(&self) -> bool {
        self.did.iter().any(|a| matches!(a, Action::End(0, Reason::Lost)))
    }

    fn asks_for_lists(&mut self) -> usize {
        self.step();
        self.did.iter().filter(|a| matches!(a, Action::Relist)).count()
    }
}

fn landed(draft: &Draft, revision: u64) -> Record {
    let mut object = (*draft.object).clone();
    object.metadata.resource_version = Some(revision.to_string());
    object.metadata.uid.get_or_insert_with(|| format!("made-{revision}"));
    Record::of(object)
}

fn replace(asked: (Ask, Request)) -> (Ask, Draft) {
    match asked {
        (ask, Request::Replace(draft)) => (ask, draft),
        (_, other) => panic!("not a write: {other:?}"),
    }
}

fn conflict() -> Failure {
    Failure::Conflict("the object has been modified".into())
}

/// R8, W6: the take lands, the Lease is deleted, and the view shows both before the answer comes.
#[test]
fn s5_an_answer_older_than_the_view_begins_no_term() {
    let mut bench = Bench::seeded(15, 10, 2);
    let (ask, draft) = replace(bench.asked(0));
    let stands = landed(&draft, 101);
    let now = bench.now();
    bench.core.seen(&Seen::Changed(Arc::new(stands.clone())), now);
    let gone = landed(&draft, 102);
    bench.core.seen(&Seen::Deleted(Arc::new(gone)), now);
    bench.answer(ask, Ok(Reply::Record(Box::new(stands))));
    assert!(matches!(bench.core.slots[0].phase, Phase::Idle), "{:?}", bench.core.slots[0].phase);
}

/// L8: a take is answered while the layout is being read for another one: that read was sent too early for it.
#[test]
fn s8_6_1_second_read_after_the_answer() {
    let mut bench = Bench::seeded(15, 10, 2);
    let mut takes: Vec<(Ask, Draft)> = Vec::new();
    while takes.len() < 2 {
        takes.extend(bench.step().into_iter().filter(|(a, _)| matches!(a.target, Target::Bucket(_))).map(replace));
        bench.pass(S / 10);
    }
    let (ask, draft) = takes.remove(0);
    bench.lands(ask, &draft);
    let (early, _) = bench.step().into_iter().find(|(a, _)| a.target == Target::Judge).expect("a read for the first");
    let (ask, draft) = takes.remove(0);
    let second = match ask.target {
        Target::Bucket(at) => at,
        other => panic!("{other:?}"),
    };
    bench.lands(ask, &draft);
    let late = bench.step().into_iter().find(|(a, _)| a.target == Target::Judge).expect("another for the second").0;
    bench.answer(early, Ok(Reply::Record(Box::new(layout(10, 15)))));
    assert!(matches!(bench.core.slots[1 - second].phase, Phase::Held(_)));
    assert!(
        matches!(bench.core.slots[second].phase, Phase::Judging { .. }),
        "by a read sent before its take had landed"
    );
    // Between the two the layout was changed.
    let note = layout(50, 15).object.metadata.annotations.clone().expect("ours")[LAYOUT].clone();
    let mut note: Value = serde_json::from_str(&note).expect("JSON");
    note["generation"] = json!(2);
    let swapped = record("c.q", "layout-1", 50, &json!({LAYOUT: note.to_string()}), &json!({}));
    bench.answer(late, Ok(Reply::Record(Box::new(swapped))));
    assert!(matches!(bench.core.slots[second].phase, Phase::Releasing { .. }), "{:?}", bench.core.slots[second].phase);
}

/// S3: an answer with another uid is a loss.
#[test]
fn s3_an_answer_with_another_uid_is_a_loss() {
    let (mut bench, _, _) = Bench::hold(15, 10, 2);
    bench.pass(2 * S);
    let (ask, draft) = replace(bench.asked(0));
    let mut object = (*draft.object).clone();
    object.metadata.uid = Some("another".into());
    object.metadata.resource_version = Some("130".into());
    bench.answer(ask, Ok(Reply::Record(Box::new(Record::of(object)))));
    bench.step();
    assert!(bench.lost(), "{:?}", bench.did);
}

/// B8: two renewals that write the same, since the wall clock stands: what is found counts from the first.
#[test]
fn s5_count_from_the_first_send() {
    let (mut bench, _, term) = Bench::hold(15, 10, 2);
    bench.pass(2 * S);
    let (ask, first) = replace(bench.asked(0));
    let sent = bench.now().at;
    bench.answer(ask, Err(Failure::Unknown("reset".into())));
    bench.pass(S);
    let (ask, _) = bench.asked(0);
    let unchanged = bench.core.slots[0].known.record().cloned().expect("there");
    bench.answer(ask, Ok(Reply::Record(Box::new((*unchanged).clone()))));
    bench.pass(S);
    let (ask, second) = replace(bench.asked(0));
    assert_eq!(first.spec, second.spec, "the wall clock stands");
    bench.answer(ask, Err(Failure::TimedOut(S)));
    let (ask, _) = bench.asked(0);
    bench.answer(ask, Ok(Reply::Record(Box::new(landed(&first, 140)))));
    assert_eq!(term.deadline(), sent + 10 * S);
}

/// A read that succeeds between two writes that do not must not hasten the next: a refusal that lasts (a webhook, a
/// broken proxy) would be met as fast as it is answered.
#[test]
fn what_fails_to_write_again_and_again_is_written_slowly() {
    for failure in [conflict(), Failure::Unknown("500".into()), Failure::Forbidden("no".into())] {
        let mut bench = Bench::seeded(15, 10, 2);
        let began = bench.now().at;
        let mut writes = 0;
        while bench.now().at < began + 60 * S {
            for (ask, request) in bench.step() {
                let Target::Bucket(at) = ask.target else { continue };
                if matches!(request, Request::Get) {
                    let known = bench.core.slots[at].known.record().cloned().expect("there");
                    bench.answer(ask, Ok(Reply::Record(Box::new((*known).clone()))));
                } else {
                    writes += 1;
                    bench.answer(ask, Err(failure.clone()));
                }
            }
            bench.pass(Duration::from_millis(5));
        }
        assert!((20..=2 * 90).contains(&writes), "{failure}: {writes} writes of two buckets in a minute");
        let attempts = bench.core.slots[0].attempts.len();
        let most = if matches!(failure, Failure::Forbidden(_)) { 0 } else { 64 };
        assert!(attempts <= most, "{failure}: {attempts} attempts kept");
    }
}

/// The server names the Lease in its message, and refuses each bucket's: one verb is one piece of news, on the page for as long
/// as it lasts.
#[test]
fn what_is_refused_is_said_once_for_a_verb() {
    let mut bench = Bench::seeded(15, 10, 2);
    let (mut said, mut page) = (Vec::new(), None);
    let mut forbidden = true;
    let began = bench.now().at;
    while bench.now().at < began + 60 * S {
        forbidden &= bench.now().at < began + 30 * S;
        for (ask, request) in bench.step() {
            let known = match ask.target {
                Target::Bucket(at) => bench.core.slots[at].known.record().cloned().expect("there"),
                _ => Arc::new(layout(10, 15)),
            };
            match request {
                Request::Replace(_) if forbidden => {
                    bench.answer(ask, Err(Failure::Forbidden(format!("{} cannot be updated", known.name))));
                }
                Request::Replace(draft) => drop(bench.lands(ask, &draft)),
                _ => bench.answer(ask, Ok(Reply::Record(Box::new((*known).clone())))),
            }
        }
        for action in &bench.did {
            match action {
                Action::Observe(Event::Notice { code, text }) => said.push((*code, text.clone())),
                Action::Say("forbidden", sentence) => page.clone_from(sentence),
                _ => {}
            }
        }
        assert!(!forbidden || said.is_empty() == page.is_none(), "the page says it for as long as it lasts");
        bench.pass(Duration::from_millis(50));
    }
    assert_eq!(said.iter().filter(|(code, _)| *code == "forbidden").count(), 1, "{said:?}");
    assert!(said[0].1.contains("forbids to update"), "{said:?}");
    assert_eq!(page, None, "a write that succeeds ends it");
}

/// What is not asked for any more is no trouble any more: another replica has made the Lease.
#[test]
fn a_refusal_is_forgotten_when_nothing_is_asked() {
    let mut bench = Bench::new(settings(15, 10, 2));
    bench.listed(vec![layout(10, 15), foreign(1, 12)]);
    let (ask, request) = bench.asked(0);
    assert!(matches!(request, Request::Create(_)));
    bench.answer(ask, Err(Failure::Forbidden("no".into())));
    bench.step();
    assert!(bench.did.iter().any(|a| matches!(a, Action::Say("forbidden", Some(text)) if text.contains("create"))));
    bench.revision += 1;
    bench.listed(vec![layout(10, 15), foreign(0, 13), foreign(1, 12)]);
    bench.pass(19 * S);
    bench.step();
    assert!(!bench.did.iter().any(|a| matches!(a, Action::Say("forbidden", None))));
    bench.pass(S);
    bench.step();
    assert!(bench.did.iter().any(|a| matches!(a, Action::Say("forbidden", None))), "{:?}", bench.did);
}

/// Section 7: what a term left to be released with is never written over what a later holder has stored.
#[test]
fn a_checkpoint_of_a_former_term_is_not_released_later() {
    let (mut bench, stands, term) = Bench::hold(15, 10, 2);
    term.checkpoint().store("old").expect("current");
    let now = bench.now();
    bench.core.stopping = None;
    bench.core.promote_failed(0, &term, now);
    // The release never gets through, and is given up after a lease-duration.
    for _ in 0..200 {
        for (ask, _) in bench.step() {
            if ask.target == Target::Bucket(0) {
                bench.answer(ask, Err(Failure::Unknown("reset".into())));
            }
        }
        bench.pass(S / 10);
    }
    let ended = Ended { reason: Reason::Released, clean: true };
    bench.core.ended(0, &term, ended, now);
    // Another one has it for a while, stores, and releases.
    let at = "2026-02-01T00:00:00.000000Z";
    let note = json!({"v": 1, "leaseTransitions": 9, "renewTime": at, "leaseDurationSeconds": 15});
    let saved = json!({"v": 1, "position": "new"});
    let notes = json!({"leasehold.dev/release": note.to_string(), "leasehold.dev/checkpoint": saved.to_string()});
    let spec = json!({"holderIdentity": "", "leaseTransitions": 9, "renewTime": at});
    bench.revision = 200;
    let now = bench.now();
    bench.core.seen(&Seen::Changed(Arc::new(record(&name(0), &stands.uid, 200, &notes, &spec))), now);
    bench.pass(600 * S);
    // Taken again, and given back before its term begins.
    let mut drafts = Vec::new();
    for _ in 0..20 {
        for (ask, request) in bench.step() {
            match (ask.target, request) {
                (Target::Bucket(0), Request::Replace(draft)) => {
                    drafts.push(draft.clone());
                    bench.lands(ask, &draft);
                    let now = bench.now();
                    bench.core.stop(now);
                }
                (Target::Bucket(0), Request::Get) => {
                    let known = bench.core.slots[0].known.record().cloned().expect("there");
                    bench.answer(ask, Ok(Reply::Record(Box::new((*known).clone()))));
                }
                (Target::Layout | Target::Judge, Request::Get) => {
                    bench.answer(ask, Ok(Reply::Record(Box::new(layout(10, 15)))));
                }
                _ => {}
            }
        }
        bench.pass(S / 10);
    }
    assert_eq!(drafts.len(), 2, "a take and a release");
    let position = |d: &Draft| landed(d, 1).saved.map(|s| s.position);
    assert_eq!(position(&drafts[1]).as_deref(), Some("new"));
}

/// Section 6: the queue's longest duration is raised before anything longer is written: whoever never saw the longer
/// one in a bucket that is then deleted waits by the layout Lease.
#[test]
fn s4_a_longer_duration_is_written_after_the_layout_says_it() {
    let (mut bench, _, term) = Bench::hold(15, 10, 2);
    bench.core.configure(settings(60, 40, 2));
    bench.pass(2 * S);
    let all = bench.step();
    let mut raised = false;
    for (ask, request) in all {
        let Request::Replace(draft) = request else { panic!("{request:?}") };
        if let Target::Bucket(_) = ask.target {
            assert_eq!(draft.spec.duration, Some(15), "written before the layout Lease says it");
        } else {
            raised = true;
        }
        bench.lands(ask, &draft);
    }
    assert!(raised, "the layout Lease is raised at once");
    assert!(!bench.did.iter().any(|a| matches!(a, Action::Limit(..))), "{:?}", bench.did);
    bench.pass(2 * S);
    let sent = bench.now().at;
    let (ask, draft) = replace(bench.asked(0));
    assert_eq!(draft.spec.duration, Some(60));
    assert!(term.deadline() < sent + 10 * S);
    // The tenure hears of it when it counts: what can't be stopped is measured by what has been promised to others.
    bench.lands(ask, &draft);
    assert_eq!(term.deadline(), sent + 40 * S);
    bench.step();
    let told = |a: &Action| matches!(a, Action::Limit(0, Limits { lease_duration, .. }) if *lease_duration == 60 * S);
    assert!(bench.did.iter().any(told), "{:?}", bench.did);
}

/// A shorter duration binds from the moment its renewal is sent: the deadline, and when what can't be stopped is ended.
#[test]
fn s4_a_shorter_duration_counts_from_its_sending() {
    let (mut bench, _, term) = Bench::hold(60, 40, 2);
    bench.core.configure(settings(5, 4, 1));
    bench.pass(2 * S);
    let sent = bench.now().at;
    let (ask, draft) = replace(bench.asked(0));
    assert_eq!(draft.spec.duration, Some(5));
    assert_eq!(term.deadline(), sent + 4 * S);
    let told = |a: &Action| matches!(a, Action::Limit(0, Limits { lease_duration, .. }) if *lease_duration == 5 * S);
    assert!(bench.did.iter().any(told), "{:?}", bench.did);
    // It may have landed.
    bench.answer(ask, Err(Failure::TimedOut(S)));
    bench.pass(4 * S);
    bench.step();
    assert!(bench.lost(), "{:?}", bench.did);
}

/// T2: taken after one's own duration, while the layout Lease says, unseen, that others may act for longer. Given back
/// without a release record: whoever takes next must wait for those others too.
#[test]
fn s4_a_take_that_waited_too_short_is_given_back() {
    let mut bench = Bench::waited(15, 10, 2);
    let (ask, draft) = replace(bench.asked(0));
    bench.lands(ask, &draft);
    bench.judged(layout(90, 60));
    bench.given_back();
}

/// The same where the take's answer was lost, and the longer duration seen before it was found and adopted: by then
/// nobody has waited any longer.
#[test]
fn s4_an_adoption_has_not_waited_again() {
    let mut bench = Bench::waited(15, 10, 2);
    let (ask, draft) = replace(bench.asked(0));
    bench.answer(ask, Err(Failure::TimedOut(S)));
    let now = bench.now();
    bench.core.seen(&Seen::Changed(Arc::new(layout(101, 60))), now);
    bench.revision = 102;
    let (ask, request) = bench.asked(0);
    assert!(matches!(request, Request::Get));
    bench.answer(ask, Ok(Reply::Record(Box::new(landed(&draft, 102)))));
    let (ask, adoption) = replace(bench.asked(0));
    assert_eq!(adoption.spec.holder, ME);
    bench.lands(ask, &adoption);
    bench.judged(layout(101, 60));
    bench.given_back();
}

/// A label between a take and the read that judges it (seed 3281): the token is the take's revision, not the label's.
#[test]
fn s9_the_token_is_the_revision_of_the_take() {
    let mut bench = Bench::seeded(15, 10, 2);
    let (ask, draft) = replace(bench.asked(0));
    let taken = bench.lands(ask, &draft);
    let now = bench.now();
    bench.core.seen(&Seen::Changed(Arc::new(landed(&draft, taken.revision + 7))), now);
    bench.judged(layout(90, 15));
    assert_eq!(bench.begun().token().map(crate::leader::FencingToken::revision), Some(taken.revision));
}

/// What was released by a record is nobody else's, whatever the queue's longest duration has become meanwhile.
#[test]
fn s4_what_was_released_is_held_after_a_raise() {
    let mut bench = Bench::seeded(15, 10, 2);
    let (ask, draft) = replace(bench.asked(0));
    bench.lands(ask, &draft);
    bench.judged(layout(90, 60));
    bench.begun();
}

/// The queue's longest duration is raised by who is to take, not by who stands by: what others lower it would raise for
/// ever, and what they take in between would be given back.
#[test]
fn s4_who_only_stands_by_raises_nothing() {
    let mut bench = Bench::new(settings(60, 40, 10));
    bench.listed(vec![layout(10, 15), foreign(0, 11), foreign(1, 12)]);
    assert!(bench.step().is_empty());
    // The longest that binds, its own, and the grace: now it may take.
    bench.pass(100 * S);
    let asked = bench.step();
    let [(ask, Request::Replace(draft))] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(ask.target, Target::Layout);
    let raised = bench.lands(ask.clone(), draft);
    assert_eq!(raised.layout_note.known().map(crate::lease::LayoutNote::longest), Some(60 * S));
    assert_eq!(replace(bench.asked(0)).1.spec.holder, ME);
}

/// What was held by a term is nobody else's, however long a duration is raised: adopted after a missed deadline.
#[test]
fn s4_what_was_held_is_adopted_after_a_raise() {
    let (mut bench, _, _) = Bench::hold(15, 10, 2);
    bench.pass(11 * S);
    bench.step();
    assert!(bench.lost());
    let now = bench.now();
    bench.core.slots[0].tenure = false;
    bench.core.seen(&Seen::Changed(Arc::new(layout(120, 60))), now);
    bench.revision = 121;
    for _ in 0..3 {
        for (ask, request) in bench.step() {
            match (ask.target, request) {
                (Target::Bucket(0), Request::Get) => {
                    let known = bench.core.slots[0].known.record().cloned().expect("there");
                    bench.answer(ask, Ok(Reply::Record(Box::new((*known).clone()))));
                }
                (Target::Bucket(0), Request::Replace(draft)) => drop(bench.lands(ask, &draft)),
                (Target::Judge, _) => bench.answer(ask, Ok(Reply::Record(Box::new(layout(120, 60))))),
                _ => {}
            }
        }
    }
    assert!(matches!(bench.core.slots[0].phase, Phase::Held(_)), "{:?}", bench.core.slots[0].phase);
}

/// A restored etcd whose revision was raised above what it had been (`--bump-revision`, as our own docs advise): the
/// Leases are older than what is known of them, and no revision has gone back.
#[test]
fn leases_that_are_older_than_known_in_a_newer_list_are_a_restore() {
    let (mut bench, _, _) = Bench::hold(15, 10, 2);
    for _ in 0..3 {
        bench.pass(2 * S);
        let (ask, draft) = replace(bench.asked(0));
        bench.lands(ask, &draft);
    }
    bench.revision = 5000;
    bench.listed(vec![layout(10, 15), released(0, 11), released(1, 12)]);
    bench.step();
    assert!(bench.lost(), "held on what is not there any more: {:?}", bench.did);
    assert_eq!(bench.core.slots[0].known.revision(), 11, "what is there is known");
    // A list that was sent before our own last write is no such thing.
    let (mut bench, _, _) = Bench::hold(15, 10, 2);
    bench.revision -= 1;
    bench.listed(vec![layout(10, 15), released(0, 11), foreign(1, 12)]);
    bench.step();
    assert!(!bench.lost(), "{:?}", bench.did);
}

/// After a restore a revision of before may not be reached for days: nobody waits for the view to show it.
#[test]
fn nobody_waits_for_a_revision_of_before_a_restore() {
    let (mut bench, _, _) = Bench::hold(15, 10, 2);
    let now = bench.now();
    bench.core.seen(&Seen::WentBack { from: bench.revision, to: 20 }, now);
    bench.revision = 20;
    bench.listed(vec![layout(10, 15), foreign(0, 11), foreign(1, 12)]);
    let mut lists = 0;
    for _ in 0..100 {
        lists += bench.asks_for_lists();
        bench.pass(S / 2);
    }
    assert_eq!(lists, 0, "relisted for ever");
}

/// A read that is older than what is known asks for a list, and is not repeated as fast as it is answered.
#[test]
fn stale_reads_are_no_storm() {
    let mut bench = Bench::seeded(15, 10, 2);
    let (ask, _) = bench.asked(0);
    bench.answer(ask, Err(conflict()));
    let mut reads = 0;
    for _ in 0..1000 {
        for (ask, request) in bench.step() {
            if ask.target == Target::Bucket(0) && matches!(request, Request::Get) {
                reads += 1;
                bench.answer(ask, Ok(Reply::Record(Box::new(released(0, 5)))));
            }
        }
        bench.pass(S / 100);
    }
    assert!(reads <= 6, "{reads} reads in 10 s");
}

/// What a person types into a Lease neither stops a queue for years nor ends the process.
#[test]
fn absurd_numbers_are_survived() {
    let mut bench = Bench::new(settings(15, 10, 2));
    let spec = json!({"holderIdentity": format!("retired-{}", u64::MAX)});
    bench.listed(vec![record(&name(0), "u", 20, &json!({}), &spec)]);
    assert!(bench.step().iter().any(|(a, r)| a.target == Target::Layout && matches!(r, Request::Create(_))));
    let mut bench = Bench::new(settings(15, 10, 2));
    bench.listed(vec![layout(10, 4_000_000_000), foreign(0, 11), foreign(1, 12)]);
    bench.step();
    bench.pass(Duration::from_hours(24) + 11 * S);
    bench.step();
    assert!(bench.core.slots.iter().any(|s| matches!(s.phase, Phase::Taking)), "no duration binds longer than a day");
    let mut full = foreign(0, 11);
    full.spec.transitions = i64::from(i32::MAX);
    let layout = crate::lease::LayoutId { uid: "u".into(), generation: 1 };
    let times = crate::lease::Times { wall: bench.now().wall };
    let draft = Draft::take(&full, ME, 15 * S, &layout, times);
    assert_eq!(draft.spec.transitions, i64::from(i32::MAX), "an int32 in Kubernetes");
}
