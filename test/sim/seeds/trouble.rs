//! What is done to a fleet, and how it is left alone again.

use super::mood::{Feeling, Mood};
use super::{Member, Story};
use crate::foreign::foreign;
use crate::history::What;
use crate::world::{COMPONENT, Character, NAMESPACE, QUEUE, timing};
use jiff::SignedDuration;
use leasehold::bucket::Hash;
use leasehold::dev::apiserver::{Cut, Effect, Faults, Match, Outage, Verb};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Every kind of trouble: the seeds of CI have each.
pub const KINDS: [&str; 39] = [
    "api-away-for-all",
    "api-away-for-one",
    "client-go",
    "clock-set",
    "compacted",
    "conflict-hides-a-success",
    "demote-hangs",
    "denied",
    "durations-changed",
    "edited-bucket",
    "edited-layout",
    "deleted-bucket",
    "deleted-layout",
    "deleted-unseen",
    "ends-itself",
    "error-hides-a-success",
    "frozen-election",
    "guard-hangs",
    "hangs-after",
    "hangs-before",
    "joined",
    "killed",
    "late-commit",
    "lost-answer",
    "other-buckets",
    "other-hash",
    "promote-fails",
    "promote-hangs",
    "refused",
    "restarted",
    "restored",
    "slow-answer",
    "slow-request",
    "stopped",
    "suspended",
    "slow-then-away",
    "watch-cut",
    "watch-late",
    "watch-silent",
];

const VERBS: [Verb; 5] = [Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Update];

impl Story {
    pub fn fault(&self, kind: &'static str) {
        self.world.history.add(self.world.truth.now(), "world", What::Fault(kind));
    }

    /// Every request takes a little.
    pub fn latency(&mut self) {
        let (before, after) = (self.rng.u64(0..10), self.rng.u64(0..10));
        let all = self.world.server.faults("*");
        all.inject(Match::any(), Effect::DelayBefore(Duration::from_millis(before)));
        all.inject(Match::any(), Effect::DelayAfter(Duration::from_millis(after)));
    }

    /// One more replica.
    pub fn join(&mut self) {
        let rng = &mut self.rng;
        let mood = Mood::default();
        let mut character = Character {
            clock_offset: Duration::from_secs(rng.u64(0..100_000)),
            // Two clocks are unlike by at most a hundredth.
            clock_ppm: rng.i64(-4900..=4900),
            aware: Some(Arc::new(mood.clone())),
            exits: true,
            long_work: true,
            ..Character::default()
        };
        if self.mixed_durations && rng.bool() {
            character.timing =
                Some(*rng.choice(&[timing(15, 10, 2), timing(5, 4, 1), timing(30, 20, 5)]).expect("some"));
        }
        if self.mixed_layouts && rng.u32(0..3) == 0 {
            if rng.bool() {
                character.buckets = Some(self.world.buckets + 2);
                self.fault("other-buckets");
            } else {
                character.hash = Some(Hash::Ring);
                self.fault("other-hash");
            }
        }
        let replica = self.world.replica(character);
        self.fleet.push(Member { replica, mood });
    }

    /// The faults of one of the fleet, or of all.
    fn one(&mut self) -> Faults {
        let all = self.fleet.len();
        match self.rng.usize(0..=all + all.min(1)) {
            n if n < all => self.fleet[n].replica.faults.clone(),
            _ => self.world.server.faults("*"),
        }
    }

    fn member(&mut self) -> Option<&Member> {
        self.rng.choice(&self.fleet)
    }

    fn bucket(&mut self) -> String {
        let n = self.world.buckets;
        leasehold::bucket::lease_name(&format!("{COMPONENT}.{QUEUE}"), self.rng.u32(0..n), n)
    }

    /// All is as it should be, for a while; for long enough that every bucket must have a holder, if it is the last one.
    pub async fn calm(&mut self, last: bool) {
        self.bury();
        while self.fleet.len() < 2 && last || self.fleet.is_empty() {
            self.join();
        }
        self.world.server.faults("*").clear();
        self.latency();
        for Member { replica, mood } in &self.fleet {
            replica.faults.clear();
            replica.thaws()(true, true);
            replica.let_go();
            mood.is(Feeling::default());
            for verb in VERBS {
                self.world.server.allow(&replica.name, Some(verb), "leases");
            }
        }
        let (history, truth) = (self.world.history.clone(), self.world.truth);
        history.add(truth.now(), "world", What::Calm);
        let long = last || self.rng.bool();
        let began = truth.now();
        loop {
            let waited = truth.now() - began;
            assert!(waited < Duration::from_mins(30), "not well after {waited:?}: {}", history.pending());
            let left = history.due(truth.now()).saturating_sub(truth.now());
            if left.is_zero() {
                break;
            }
            if !long {
                tokio::time::sleep(left.mul_f64(self.rng.f64())).await;
                break;
            }
            tokio::time::sleep(left).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        history.add(truth.now(), "world", What::Trouble);
    }

    /// Those that have ended themselves.
    fn bury(&mut self) {
        let before = self.fleet.len();
        self.fleet.retain(|m| m.replica.is_alive());
        if self.fleet.len() < before {
            self.fault("ends-itself");
        }
    }

    pub async fn trouble(&mut self) {
        self.bury();
        let leases = Match::any().resource("leases");
        let short = Duration::from_millis(self.rng.u64(1..20_000));
        let few = leases.clone().times(self.rng.u64(1..6));
        match self.rng.u32(0..60) {
            0..4 if self.fleet.len() < 5 => {
                self.fault("joined");
                self.join();
            }
            0..8 => self.leave(),
            8 | 9 => self.request("hangs-before", few, Effect::HangBefore),
            10 | 11 => self.request("hangs-after", few, Effect::HangAfter),
            12 | 13 => self.request("lost-answer", few, Effect::DropAfter),
            14 => self.request("error-hides-a-success", few, Effect::AnswerAfter(500, None)),
            15 => self.request("conflict-hides-a-success", few, Effect::AnswerAfter(409, None)),
            16 => {
                let code = *self.rng.choice(&[409, 422, 429, 500, 503, 504]).expect("some");
                self.request("refused", few, Effect::AnswerBefore(code, None));
            }
            17..20 => {
                // Each kind of write in turn: what makes a Lease is a POST, all others are a PUT.
                let verb = *self.rng.choice(&[Verb::Create, Verb::Update, Verb::Update]).expect("some");
                let write = Match::verb(verb).resource("leases").times(self.rng.u64(1..3));
                self.request("late-commit", write, Effect::LateCommit(short));
            }
            20 | 21 => self.request("slow-answer", few, Effect::DelayAfter(short / 2)),
            22 => self.request("slow-request", few, Effect::DelayBefore(short / 2)),
            23 | 24 => self.request("watch-silent", Match::verb(Verb::Watch).times(2), Effect::SilentWatch),
            25 => self.request("watch-late", Match::verb(Verb::Watch), Effect::LagWatch(short / 4)),
            26 => {
                self.fault("watch-cut");
                let how = *self.rng.choice(&[Cut::Reset, Cut::End, Cut::Gone]).expect("some");
                self.world.server.cut_watches(&Match::any(), how);
            }
            27..30 => {
                let outage =
                    *self.rng.choice(&[Outage::Refused, Outage::BlackHole, Outage::Answers(503)]).expect("some");
                let Some(faults) = self.member().map(|m| m.replica.faults.clone()) else { return };
                self.fault("api-away-for-one");
                let rule = faults.inject(Match::any(), Effect::Outage(outage));
                tokio::spawn(async move {
                    tokio::time::sleep(2 * short).await;
                    faults.remove(rule);
                });
            }
            30 => {
                let outage =
                    *self.rng.choice(&[Outage::Refused, Outage::BlackHole, Outage::Answers(503)]).expect("some");
                self.fault("api-away-for-all");
                let all = self.world.server.faults("*");
                let rule = all.inject(Match::any(), Effect::Outage(outage));
                tokio::time::sleep(2 * short).await;
                all.remove(rule);
            }
            31 | 32 => {
                self.fault("deleted-bucket");
                let name = self.bucket();
                self.delete(&name).await;
            }
            33 => {
                self.fault("deleted-layout");
                self.delete(&format!("{COMPONENT}.{QUEUE}")).await;
            }
            // A deletion that nobody sees: what the views show is over.
            34 | 35 => {
                self.fault("deleted-unseen");
                let faults = self.one();
                let silent = faults.inject(Match::verb(Verb::Watch), Effect::SilentWatch);
                let name = self.bucket();
                self.delete(&name).await;
                tokio::time::sleep(short).await;
                faults.remove(silent);
            }
            36..39 => {
                self.fault("edited-bucket");
                let name = self.bucket();
                let edit = self.edit();
                self.patch(&name, edit).await;
            }
            39 => {
                self.fault("edited-layout");
                let edits = [
                    json!({"metadata": {"annotations": {"leasehold.dev/layout": null}}}),
                    json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 10}}),
                    json!({"metadata": {"labels": {"n": "1"}}}),
                ];
                let edit = self.rng.choice(&edits).expect("some").clone();
                self.patch(&format!("{COMPONENT}.{QUEUE}"), edit).await;
            }
            40..43 => {
                let Some((ice, thaw)) = self.member().map(|m| (m.replica.ice.clone(), m.replica.thaws())) else {
                    return;
                };
                self.fault("frozen-election");
                ice.freeze();
                tokio::spawn(async move {
                    tokio::time::sleep(2 * short).await;
                    thaw(true, false);
                });
            }
            43..46 => self.suspend(2 * short),
            46 => {
                self.fault("client-go");
                let releases = self.rng.bool();
                self.go += 1;
                foreign(&self.world, self.go, 2 * short, releases);
            }
            47 if self.mixed_durations && !self.fleet.is_empty() => {
                self.fault("durations-changed");
                let timing = *self.rng.choice(&[timing(15, 10, 2), timing(5, 4, 1), timing(30, 20, 5)]).expect("some");
                let at = self.rng.usize(0..self.fleet.len());
                self.fleet[at].replica.configure(&self.world, timing);
            }
            48 => {
                let hours = self.rng.i64(-3..=3);
                let Some(clock) = self.member().map(|m| m.replica.clock.clone()) else { return };
                self.fault("clock-set");
                clock.set_wall_off(SignedDuration::from_hours(hours));
            }
            49 => {
                self.fault("compacted");
                self.world.server.compact(self.world.server.revision());
            }
            50 => self.feel("promote-fails", Feeling { promote_fails: true, ..Feeling::default() }),
            51 => self.feel("promote-hangs", Feeling { promote_hangs: true, ..Feeling::default() }),
            52 => self.feel("demote-hangs", Feeling { demote_hangs: true, ..Feeling::default() }),
            53 | 54 => {
                let key = format!("ns/{}", self.rng.u32(0..40));
                if self.member().is_some_and(|m| m.replica.hold(key, 3 * short)) {
                    self.fault("guard-hangs");
                }
            }
            55 => {
                let verb = *self.rng.choice(&VERBS).expect("some");
                let Some(name) = self.member().map(|m| m.replica.name.clone()) else { return };
                self.fault("denied");
                let server = self.world.server.clone();
                server.deny(&name, Some(verb), "leases");
                tokio::spawn(async move {
                    tokio::time::sleep(short).await;
                    server.allow(&name, Some(verb), "leases");
                });
            }
            56 => match self.backup.take() {
                Some(backup) => {
                    self.fault("restored");
                    self.world.restore(&backup);
                }
                None => self.backup = Some(self.world.server.snapshot()),
            },
            // What lands late counts from its sending: to be seen at the last renewal before an outage.
            57 | 58 => {
                let Some(faults) = self.member().map(|m| m.replica.faults.clone()) else { return };
                self.fault("slow-then-away");
                let timing = self.world.timing;
                let writes = Match::writes().resource("leases");
                faults.inject(writes, Effect::DelayBefore(timing.attempt_timeout().mul_f64(0.8)));
                tokio::time::sleep(2 * timing.retry_period).await;
                let rule = faults.inject(Match::any(), Effect::Outage(Outage::BlackHole));
                tokio::time::sleep(timing.lease_duration).await;
                faults.remove(rule);
            }
            _ => {}
        }
    }

    fn request(&mut self, kind: &'static str, which: Match, effect: Effect) {
        self.fault(kind);
        self.one().inject(which, effect);
    }

    /// One ends, well or not; half of them are followed by another.
    fn leave(&mut self) {
        if self.fleet.is_empty() {
            return;
        }
        let gone = self.fleet.swap_remove(self.rng.usize(0..self.fleet.len())).replica;
        if self.rng.bool() {
            self.fault("killed");
            gone.kill();
        } else {
            self.fault("stopped");
            gone.tell_to_stop();
            tokio::spawn(gone.stop());
        }
        if self.rng.bool() {
            self.fault("restarted");
            self.join();
        }
    }

    /// It sleeps; awake again, its work goes on sooner or later than its election.
    fn suspend(&mut self, length: Duration) {
        let late = [0, 1].map(|_| Duration::from_millis(self.rng.u64(0..1000)));
        let Some(member) = self.member() else { return };
        member.replica.suspend();
        let thaws = [true, false].map(|election| (election, member.replica.thaws()));
        self.fault("suspended");
        for ((election, thaw), late) in thaws.into_iter().zip(late) {
            tokio::spawn(async move {
                tokio::time::sleep(length + late).await;
                thaw(election, !election);
            });
        }
    }

    fn feel(&mut self, kind: &'static str, feeling: Feeling) {
        let Some(mood) = self.member().map(|m| m.mood.clone()) else { return };
        self.fault(kind);
        mood.is(feeling);
    }

    /// What people do to Leases with kubectl.
    fn edit(&mut self) -> Value {
        let edits = [
            json!({"spec": {"holderIdentity": ""}}),
            json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 10}}),
            json!({"spec": null}),
            json!({"spec": {"renewTime": null}}),
            json!({"metadata": {"annotations": {"leasehold.dev/holder": null}}}),
            json!({"metadata": {"annotations": {"leasehold.dev/release": null, "leasehold.dev/made": null}}}),
            json!({"metadata": {"labels": {"n": self.rng.u32(..).to_string()}}}),
        ];
        self.rng.choice(&edits).expect("some").clone()
    }

    fn person(&self) -> kube::Api<k8s_openapi::api::coordination::v1::Lease> {
        kube::Api::namespaced(kube::Client::new(self.world.server.client("person"), NAMESPACE), NAMESPACE)
    }

    async fn delete(&self, name: &str) {
        let (api, params) = (self.person(), kube::api::DeleteParams::default());
        // A fault for all may hit the person too.
        let _ = tokio::time::timeout(Duration::from_secs(5), api.delete(name, &params)).await;
    }

    async fn patch(&self, name: &str, edit: Value) {
        let (api, params) = (self.person(), kube::api::PatchParams::default());
        let patch = kube::api::Patch::Merge(edit);
        let _ = tokio::time::timeout(Duration::from_secs(5), api.patch(name, &params, &patch)).await;
    }
}
