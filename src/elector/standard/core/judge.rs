//! What stands in a Lease, held against what this replica believes it holds.

use super::{Action, Core, Now};
use crate::elector::standard::slot::{Attempt, Phase};
use crate::leader::observe::Event;

impl Core {
    /// Compares what stands in the Lease with what this replica believes it holds.
    pub(super) fn judge(&mut self, at: usize, now: Now) {
        let slot = &self.slots[at];
        match &slot.phase {
            Phase::Taking | Phase::Left => {}
            Phase::Idle => {
                // Its own identity with a spec it did not write: not ours (S5).
                if slot.names(&self.me) && !slot.is_own_write() {
                    self.step_back(at);
                }
            }
            Phase::Judging { .. } => {
                if !slot.is_own_write() {
                    self.slots[at].phase = Phase::Idle;
                    self.judge(at, now);
                }
            }
            Phase::Held(_) => self.judge_held(at, now),
            Phase::Releasing { .. } => {
                // The release landed, or somebody else has written: nothing more to give up.
                if !slot.names(&self.me) {
                    let released = slot.landed().cloned();
                    if let Some(attempt) = released {
                        self.mark_checkpoint(at, &attempt);
                    }
                    let slot = &mut self.slots[at];
                    slot.phase = Phase::Idle;
                    slot.checkpoint = None;
                    slot.confirmed = None;
                }
            }
        }
    }

    pub(super) fn judge_held(&mut self, at: usize, now: Now) {
        let slot = &self.slots[at];
        let Some(record) = slot.known.record().cloned() else {
            self.notice_of(
                at,
                "lease-gone",
                format!("bucket {}: its Lease was deleted while held: the term ends", slot.bucket),
            );
            return self.lose(at);
        };
        let Some((uid, spec)) = &slot.confirmed else { return self.lose(at) };
        if *uid == record.uid && *spec == record.spec {
            // A stranger's label or annotation. Who finds its own annotation missing ends the term (5.1).
            if record.vouched().is_none() {
                self.notice_of(
                    at,
                    "annotation-gone",
                    format!("bucket {}: our annotation was taken from its Lease: the term ends, since others now see a foreign holder", slot.bucket),
                );
                self.lose(at);
            }
            return;
        }
        if let Some(attempt) = slot.landed().cloned() {
            self.renewed(at, &attempt, now);
            return;
        }
        let text = if record.spec.holder == self.me {
            format!("bucket {}: its Lease names this replica with a spec it did not write: it steps back", slot.bucket)
        } else if record.is_held() {
            format!("bucket {}: held by {:?} now: the term ends", slot.bucket, record.spec.holder)
        } else {
            format!("bucket {}: its holder was taken out of the Lease: the term ends", slot.bucket)
        };
        let code = if record.is_foreign() { "foreign-holder" } else { "lost" };
        self.notice_of(at, code, text);
        self.lose(at);
        self.judge(at, now);
    }

    /// A renewal of the term counts: it moves the deadline, if that has not come (S2).
    pub(super) fn renewed(&mut self, at: usize, attempt: &Attempt, now: Now) {
        self.confirm(at, attempt);
        self.mark_checkpoint(at, attempt);
        let Some(holding) = self.slots[at].holding_mut() else { return };
        if now.at >= holding.deadline.get() {
            return self.lose(at);
        }
        holding.deadline.extend(attempt.sent + attempt.limits.renew_deadline);
        let changed = std::mem::replace(&mut holding.limits, attempt.limits) != attempt.limits;
        let event = Event::DeadlineMoved {
            bucket: holding.term.bucket().clone(),
            token: holding.term.token(),
            deadline: holding.deadline.get(),
        };
        self.out.push(Action::Observe(event));
        if changed {
            self.out.push(Action::Limit(at, attempt.limits));
        }
    }

    pub(super) fn mark_checkpoint(&mut self, at: usize, attempt: &Attempt) {
        let Some(number) = attempt.checkpoint else { return };
        if let Some(holding) = self.slots[at].holding() {
            holding.term.checkpoint().mark_written(number);
        }
    }

    pub(super) fn step_back(&mut self, at: usize) {
        let text = format!(
            "bucket {}: its Lease names this replica, which did not write it so: left alone until it expires. Two processes \
             with one identity, or a person?",
            self.slots[at].bucket
        );
        self.notice_of(at, "stepped-back", text);
    }
}
