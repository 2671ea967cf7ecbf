//! What was answered to the requests of this replica.

use super::{Action, Answer, Ask, Core, Now, Reply, Target};
use crate::clock::Instant;
use crate::elector::known::How;
use crate::elector::standard::layout::{Opening, Standing};
use crate::elector::standard::slot::{Attempt, Basis, Holding, Phase};
use crate::leader::tenure::Limits;
use crate::leader::{Deadline, FencingToken, Term, TermParts};
use crate::lease::{Failure, LayoutId, Record};
use std::sync::Arc;
use std::time::Duration;

impl Core {
    pub(in crate::elector::standard) fn answered(&mut self, answer: Answer, now: Now) {
        let Answer { ask, result } = answer;
        let current = ask.epoch == self.epoch;
        match &result {
            Ok(_) => self.accepted(&ask),
            Err(failure) => self.refused(failure, &ask, now),
        }
        match ask.target {
            Target::Bucket(at) => {
                self.slots[at].busy = false;
                if current {
                    self.bucket_answered(at, &ask, result, now);
                } else {
                    self.slots[at].unsure = true;
                }
            }
            Target::Layout => {
                self.layout.busy = false;
                if current {
                    self.layout_answered(&ask, result, now);
                } else {
                    self.layout.unsure = true;
                }
            }
            Target::Judge => {
                self.layout.judging -= 1;
                self.judge_answered(&ask, current.then_some(result), now);
            }
            Target::Queue => {
                self.layout.listing = false;
                if current {
                    self.queue_listed(&ask, result, now);
                }
            }
        }
    }

    /// A quorum read that is older than what was known when it was sent: the cluster's revision went back.
    /// Until a list has told, it is read no more often than what fails.
    pub(super) fn is_suspect(&mut self, ask: &Ask, revision: u64) -> bool {
        let suspect = !ask.writes && revision < ask.revision;
        if suspect {
            self.out.push(Action::Relist);
        }
        suspect
    }

    pub(super) fn bucket_answered(&mut self, at: usize, ask: &Ask, result: Result<Reply, Failure>, now: Now) {
        match result {
            Ok(Reply::Record(record)) => {
                if self.is_suspect(ask, record.revision) {
                    let pause = self.settings.retry_period;
                    return self.slots[at].failed(now.at, pause);
                }
                self.slots[at].succeeded(ask.writes);
                let record = Arc::new(*record);
                let revision = record.revision;
                if revision > self.shown {
                    self.behind.get_or_insert((revision, now.at));
                }
                self.look(&record, How::Read, now);
                if ask.writes {
                    self.wrote(at, &record, revision, now);
                } else {
                    self.read(at, now);
                }
            }
            Ok(Reply::Missing) => {
                self.slots[at].succeeded(false);
                let name = self.slots[at].bucket.name().to_owned();
                // A read by name says nothing of the revision; it was asked for later than what is known.
                self.gone(&name, ask.revision, now);
                self.read(at, now);
            }
            Ok(Reply::List(..)) => {}
            Err(failure) => {
                if ask.writes {
                    self.write_failed(at, ask, &failure, now);
                } else {
                    let pause = self.pause(&failure, self.slots[at].failures);
                    self.slots[at].failed(now.at, pause);
                }
            }
        }
    }

    /// A write of a bucket failed: it is read before the next one (S5).
    fn write_failed(&mut self, at: usize, ask: &Ask, failure: &Failure, now: Now) {
        let failures = self.slots[at].write_failures;
        let pause = self.pause(failure, failures);
        let slot = &mut self.slots[at];
        // Read at once: after a conflict somebody was faster, or something below us retried; a write that hung has cost
        // its whole bound already. Written at once only the first time: what conflicts again and again would else be
        // sent as fast as it is answered.
        let (read, write) = match failure {
            Failure::TimedOut(_) => (Duration::ZERO, Duration::ZERO),
            Failure::Conflict(_) if failures == 0 => (Duration::ZERO, Duration::ZERO),
            Failure::Conflict(_) => (Duration::ZERO, pause),
            _ => (pause, pause),
        };
        slot.write_failed(now.at, read, write);
        if matches!(failure, Failure::Forbidden(_) | Failure::Refused { .. } | Failure::Throttled(_)) {
            // Not carried out, and it never will be.
            slot.attempts.retain(|a| a.number != ask.number);
        }
        if let Some(holding) = slot.holding_mut() {
            holding.next_renewal = now.at;
        }
    }

    /// A write of this replica was answered with `record`.
    pub(super) fn wrote(&mut self, at: usize, record: &Arc<Record>, revision: u64, now: Now) {
        let slot = &self.slots[at];
        let newest = slot.known.record().is_some_and(|r| r.uid == record.uid && r.revision == revision);
        if !matches!(slot.phase, Phase::Taking) {
            return self.judge(at, now);
        }
        // An answer to a take begins no term if the view has already shown a later version, or another uid (S3, 5.2).
        let Some(attempt) = slot.landed().cloned().filter(|_| newest) else {
            self.slots[at].phase = Phase::Idle;
            return self.judge(at, now);
        };
        let Some(layout) = record.vouched().map(|n| n.layout.clone()) else {
            self.slots[at].phase = Phase::Idle;
            return self.judge(at, now);
        };
        let limits = attempt.limits;
        let deadline = Deadline::at(attempt.sent + limits.renew_deadline);
        self.confirm(at, &attempt);
        self.slots[at].phase = Phase::Judging { taken: revision, deadline, limits, layout, read: None };
    }

    /// `attempt` is known to have landed.
    pub(super) fn confirm(&mut self, at: usize, attempt: &Attempt) {
        let slot = &mut self.slots[at];
        slot.confirmed = Some((attempt.uid.clone(), attempt.spec.clone()));
        slot.attempts.retain(|a| a.base > attempt.base);
    }

    /// The Lease was read after a write of unknown outcome, or to see how it stands.
    pub(super) fn read(&mut self, at: usize, now: Now) {
        if matches!(self.slots[at].phase, Phase::Taking) {
            // Never adopted by reading: a term begins only with the answer to a write (S5). If it is ours, the next
            // step writes it anew.
            self.slots[at].phase = Phase::Idle;
        }
        self.judge(at, now);
    }

    pub(super) fn layout_answered(&mut self, ask: &Ask, result: Result<Reply, Failure>, now: Now) {
        let seen = match result {
            Ok(Reply::Record(record)) => {
                if self.is_suspect(ask, record.revision) {
                    self.layout.retry_at = now.at + self.settings.retry_period;
                    return;
                }
                self.layout.look(&Arc::new(*record), now.at);
                true
            }
            Ok(Reply::Missing) => {
                let name = self.layout.name.clone();
                self.gone(&name, ask.revision, now);
                true
            }
            Ok(Reply::List(..)) => return,
            Err(failure) => {
                let failures = if ask.writes { self.layout.write_failures } else { self.layout.failures };
                let pause = self.pause(&failure, failures);
                let layout = &mut self.layout;
                layout.retry_at = now.at + pause;
                if ask.writes {
                    layout.unsure = true;
                    layout.write_failures = layout.write_failures.saturating_add(1);
                    layout.write_at = now.at + pause;
                    // Read at once; written again after the pause.
                    if matches!(failure, Failure::Conflict(_) | Failure::TimedOut(_)) {
                        layout.retry_at = now.at;
                    }
                } else {
                    layout.failures = layout.failures.saturating_add(1);
                }
                false
            }
        };
        if seen {
            self.layout.failures = 0;
            self.layout.unsure = false;
            self.layout.retry_at = Instant::ORIGIN;
            if ask.writes {
                self.layout.write_failures = 0;
                self.layout.write_at = Instant::ORIGIN;
            }
        }
    }

    /// A read for what was taken was answered, or not: then it is read again, after a pause.
    fn judge_answered(&mut self, ask: &Ask, result: Option<Result<Reply, Failure>>, now: Now) {
        match result {
            Some(Ok(Reply::Record(record))) if !self.is_suspect(ask, record.revision) => {
                self.layout.look(&Arc::new(*record), now.at);
                self.layout.judge_failures = 0;
                return self.judge_taken(ask.number, now);
            }
            Some(Ok(Reply::Missing)) => {
                let name = self.layout.name.clone();
                self.gone(&name, ask.revision, now);
                self.layout.judge_failures = 0;
                return self.judge_taken(ask.number, now);
            }
            Some(_) | None => {}
        }
        let failures = self.layout.judge_failures;
        self.layout.judge_failures = failures.saturating_add(1);
        let pause = self.settings.retry_period.min(Duration::from_millis(25) * 2u32.pow(failures.min(8)));
        self.layout.judge_at = now.at + pause;
        for slot in &mut self.slots {
            if let Phase::Judging { read, .. } = &mut slot.phase
                && *read == Some(ask.number)
            {
                *read = None;
            }
        }
    }

    /// The layout Lease was read from quorum by request `number`: whoever was taken before it was sent may begin its
    /// term, if the layout in force is the one it was taken under; else it is released (6.1).
    pub(super) fn judge_taken(&mut self, number: u64, now: Now) {
        let ours = self.layout.ours();
        let (said, longest) = (self.layout.note().is_some(), self.layout.longest());
        for at in 0..self.slots.len() {
            let Phase::Judging { taken, deadline, limits, layout, read } = &self.slots[at].phase else { continue };
            if *read != Some(number) {
                continue;
            }
            let in_force = ours.as_ref() == Some(layout) && self.layout.passed.as_ref() == Some(layout);
            // What was not known when the take was decided may have let it come too early: another replica had raised
            // the queue's longest duration; or whoever waits may not know how long to wait for this one (S4).
            // Where it says nothing there is nothing to judge by.
            let sound = said && self.slots[at].basis.holds(longest);
            let known = limits.lease_duration <= longest;
            let (taken, deadline, limits, layout) = (*taken, Arc::clone(deadline), *limits, layout.clone());
            if sound {
                self.slots[at].basis = Basis::Sound;
            }
            if in_force && sound && known && self.stopping.is_none() {
                self.begin(at, taken, deadline, limits, layout, now);
            } else {
                self.slots[at].phase = Phase::Releasing { until: now.at + self.settings.lease_duration };
            }
        }
    }

    fn begin(&mut self, at: usize, taken: u64, deadline: Arc<Deadline>, limits: Limits, layout: LayoutId, now: Now) {
        let Some(record) = self.slots[at].known.record().cloned() else { return };
        let era = self.layout.note().map_or(0, |n| n.era);
        let term = Term::new(TermParts {
            bucket: self.slots[at].bucket.clone(),
            token: Some(FencingToken::new(era, taken)),
            deadline: Arc::clone(&deadline),
            clock: Arc::clone(&self.clock),
            saved: record.saved.clone(),
        });
        // A phase of its own, so that the renewals of many buckets and replicas do not line up.
        let next_renewal = now.at + self.settings.retry_period.mul_f64(0.1 + 0.9 * self.rng.f64());
        let holding = Holding { term: term.clone(), deadline, layout, limits, next_renewal, ending: None };
        let slot = &mut self.slots[at];
        slot.phase = Phase::Held(Box::new(holding));
        slot.tenure = true;
        self.is_well(at);
        self.out.push(Action::Begin(at, term, limits));
    }

    pub(super) fn queue_listed(&mut self, ask: &Ask, result: Result<Reply, Failure>, now: Now) {
        let (revision, records) = match result {
            Ok(Reply::List(revision, records)) => (revision, records),
            Ok(_) => return,
            Err(failure) => {
                let pause = self.pause(&failure, 3);
                self.layout.list_at = now.at + pause;
                return;
            }
        };
        if revision < ask.revision {
            self.layout.list_at = now.at + self.settings.retry_period;
            self.out.push(Action::Relist);
            return;
        }
        let records: Vec<Arc<Record>> = records.into_iter().map(Arc::new).collect();
        self.listed(revision, &records, now);
        if self.layout.confirming == Some(ask.number) {
            self.layout.confirming = None;
            self.layout.confirmed = Some(now.at);
            return;
        }
        match self.layout.standing() {
            Standing::Unopened { wanted: true } => {
                // The list was sent after this uid was known, unless the Lease is a newer one.
                if let Some(record) = self.layout.record().filter(|r| r.uid == self.listing_uid(ask, r)) {
                    let uid = record.uid.clone();
                    self.layout.opening = Some(Opening { uid, quiet_since: now.at });
                }
            }
            Standing::Ours(id) => {
                // Only a list that was sent after this layout was seen in force counts (6.2).
                if self.layout.known.revision() != ask.revision {
                    return;
                }
                let waits = self.waits();
                let bars = self.each_known().any(|(k, own)| self.layout.bars(k, own, &id, waits, now.at));
                if bars {
                    self.layout.list_at = now.at + self.settings.retry_period;
                } else {
                    self.layout.passed = Some(id);
                    self.layout.settle_on = Some(ask.revision);
                }
            }
            _ => {}
        }
    }

    /// The uid that the layout Lease had when the list was sent: its present one, if it has not changed since.
    pub(super) fn listing_uid(&self, ask: &Ask, record: &Record) -> String {
        let unchanged = self.layout.known.revision() == ask.revision;
        if unchanged { record.uid.clone() } else { String::new() }
    }
}
