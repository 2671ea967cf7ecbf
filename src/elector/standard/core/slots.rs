//! What is to be done about each bucket: take, renew, release, adopt.

use super::{Action, Core, Now, Request, Target};
use crate::clock::Instant;
use crate::elector::known::{Free, Known, Waits};
use crate::elector::standard::layout::Standing;
use crate::elector::standard::slot::{Attempt, Basis, Phase};
use crate::leader::Reason;
use crate::leader::tenure::Limits;
use crate::lease::{Draft, LayoutId, Record, Times};
use std::time::Duration;

impl Core {
    /// A term whose deadline has come is over, whoever else has noticed (S2).
    pub(super) fn expire(&mut self, at: usize, now: Now) {
        match &self.slots[at].phase {
            Phase::Held(holding) => {
                let deadline = holding.deadline.get();
                if now.at >= deadline {
                    let text = format!(
                        "bucket {}: no renewal counted for renew-deadline: the term ends",
                        self.slots[at].bucket
                    );
                    self.notice_of(at, "deadline", text);
                    self.lose(at);
                } else {
                    self.wake_at(deadline, now);
                }
            }
            Phase::Judging { deadline, .. } => {
                let deadline = deadline.get();
                if now.at >= deadline {
                    // Given back, and left to others first: who can read the layout Lease may hold it. Adopted anew it
                    // would never have a holder that acts.
                    let rest = self.waits().longest + self.settings.retry_period.mul_f64(1.0 + self.rng.f64() * 0.2);
                    let slot = &mut self.slots[at];
                    slot.resting_until = now.at + rest;
                    slot.phase = Phase::Releasing { until: now.at + self.settings.lease_duration };
                    let text = format!(
                        "bucket {}: taken, but the layout Lease {} could not be read for renew-deadline: given back",
                        self.slots[at].bucket, self.layout.name
                    );
                    self.notice_of(at, "unjudged", text);
                } else {
                    self.wake_at(deadline, now);
                }
            }
            Phase::Releasing { until } => {
                let until = *until;
                if now.at >= until {
                    self.slots[at].phase = if self.stopping.is_some() { Phase::Left } else { Phase::Idle };
                } else {
                    self.wake_at(until, now);
                }
            }
            Phase::Idle | Phase::Taking | Phase::Left => {}
        }
    }

    /// Whether anything may be taken: the layout in force is ours, its barrier passed, its era and duration no less than
    /// they must be.
    pub(super) fn may_take(&self) -> Option<LayoutId> {
        if self.stopping.is_some() {
            return None;
        }
        let id = self.layout.ours()?;
        let note = self.layout.note()?;
        let long_enough = self.layout.longest() >= self.settings.lease_duration;
        (self.layout.passed.as_ref() == Some(&id) && note.era >= self.layout.era_floor && long_enough).then_some(id)
    }

    pub(super) fn decide_slot(&mut self, at: usize, now: Now) {
        self.end_where_due(at);
        let slot = &self.slots[at];
        if slot.busy {
            return;
        }
        if now.at < slot.retry_at && !matches!(slot.phase, Phase::Judging { .. }) {
            let retry_at = slot.retry_at;
            return self.wake_at(retry_at, now);
        }
        if slot.unsure {
            self.ask(Target::Bucket(at), Request::Get);
            return;
        }
        match &slot.phase {
            // Its outcome is not known any more: an answer came, or the request is gone.
            Phase::Taking => drop(self.ask(Target::Bucket(at), Request::Get)),
            Phase::Judging { .. } | Phase::Left => {}
            Phase::Held(_) => self.decide_renewal(at, now),
            Phase::Releasing { .. } => self.decide_release(at, now),
            Phase::Idle => self.decide_idle(at, now),
        }
    }

    /// A stop, or another layout in force, ends what is held in good order (S6, 6.1).
    pub(super) fn end_where_due(&mut self, at: usize) {
        let ours = self.layout.ours();
        let unknown = self.layout.standing() == Standing::Unknown;
        let stopping = self.stopping.is_some();
        let Some(holding) = self.slots[at].holding_mut() else { return };
        if holding.ending.is_some() {
            return;
        }
        let reason = if stopping {
            Reason::Shutdown
        } else if !unknown && ours.as_ref() != Some(&holding.layout) {
            Reason::Resharded
        } else {
            return;
        };
        holding.ending = Some(reason);
        self.out.push(Action::End(at, reason));
    }

    pub(super) fn decide_renewal(&mut self, at: usize, now: Now) {
        let slot = &mut self.slots[at];
        let Phase::Held(holding) = &mut slot.phase else { return };
        // What was stored before the gate drained goes with the release: no need to hurry while ending.
        let urgent = holding.ending.is_none() && holding.term.checkpoint().is_urgent();
        if now.at < holding.next_renewal && !urgent {
            let at = holding.next_renewal;
            return self.wake_at(at, now);
        }
        // What failed for all at one time (an outage) works again at one time: a new phase for each, or they would line up.
        let (least, spread) = if slot.write_failures > 0 { (0.1, 0.9) } else { (0.97, 0.03) };
        let period = self.settings.retry_period.mul_f64(least + spread * self.rng.f64());
        holding.next_renewal = now.at + period;
        let pending = holding.term.checkpoint().pending();
        let (number, saved) = pending.map_or((None, None), |(n, s)| (Some(n), Some(s)));
        let layout = holding.layout.clone();
        let Some(record) = slot.known.record().cloned() else { return };
        // A longer duration is written only when the layout Lease says it: others wait by that (section 6).
        let raised = self.layout.longest() >= self.settings.lease_duration;
        let limits = if raised { self.settings.limits() } else { holding.limits };
        if record.vouched().is_some_and(|n| n.duration() > limits.lease_duration) {
            // It will say a shorter duration than the one before: others may count by it as soon as it lands.
            holding.deadline.lower(now.at + limits.renew_deadline);
            // So does what can't be stopped.
            if std::mem::replace(&mut holding.limits, limits) != limits {
                self.out.push(Action::Limit(at, limits));
            }
        }
        let draft = Draft::renew(&record, limits.lease_duration, &layout, saved, Times { wall: now.wall });
        self.write(at, &record, draft, limits, number, now);
    }

    fn write(&mut self, at: usize, base: &Record, draft: Draft, limits: Limits, checkpoint: Option<u64>, now: Now) {
        let spec = draft.spec.clone();
        let number = self.ask(Target::Bucket(at), Request::Replace(draft));
        let (uid, base) = (base.uid.clone(), base.revision);
        self.slots[at].attempt(Attempt { sent: now.at, limits, spec, uid, base, checkpoint, number });
    }

    pub(super) fn decide_release(&mut self, at: usize, now: Now) {
        let slot = &self.slots[at];
        let Some(record) = slot.known.record().cloned().filter(|r| r.spec.holder == self.me && slot.is_own_write())
        else {
            self.slots[at].phase = Phase::Idle;
            return;
        };
        let (number, saved) = slot.checkpoint.clone().map_or((None, None), |(n, s)| (Some(n), Some(s)));
        let longest = slot.longest.max(self.settings.lease_duration);
        let times = Times { wall: now.wall };
        let draft = if slot.basis == Basis::Sound {
            Draft::release(&record, longest, saved, times)
        } else {
            // Taken too early, or nobody knows: whoever may act still must be waited for by the next one too.
            Draft::vacate(&record, longest.max(self.waits().longest), times)
        };
        self.write(at, &record, draft, self.settings.limits(), number, now);
    }

    pub(super) fn decide_idle(&mut self, at: usize, now: Now) {
        let slot = &self.slots[at];
        match &slot.known {
            // Who wants it makes it, empty, at once (5.1); also before the layout is opened.
            Known::Absent { .. } if self.stopping.is_none() => {
                if matches!(self.layout.standing(), Standing::Ours(_) | Standing::Unopened { wanted: true }) {
                    let longest = slot.longest.max(self.waits().longest);
                    let draft = Draft::make(slot.bucket.name(), longest, slot.saved.clone());
                    self.ask(Target::Bucket(at), Request::Create(draft));
                }
            }
            // The holder without a term: adopted by a write, or released (S5); not before its demote has returned (S6).
            Known::There(_) if slot.names(&self.me) && slot.is_own_write() && !slot.tenure => {
                let resting = now.at < slot.resting_until;
                if let Some(layout) = self.may_take().filter(|_| !resting) {
                    self.take(at, &layout, now);
                } else {
                    self.slots[at].phase = Phase::Releasing { until: now.at + self.settings.lease_duration };
                    self.decide_release(at, now);
                }
            }
            _ => {}
        }
    }

    pub(super) fn take(&mut self, at: usize, layout: &LayoutId, now: Now) {
        let Some(record) = self.slots[at].known.record().cloned() else { return };
        let draft = Draft::take(&record, &self.me, self.settings.lease_duration, layout, Times { wall: now.wall });
        let waited = self.waits().longest;
        let adopted = record.spec.holder == self.me && self.slots[at].is_own_write();
        // Whoever wrote a record that counts had ended: nothing was waited for, whatever anybody's duration.
        let released = record.released().is_some();
        let slot = &mut self.slots[at];
        slot.phase = Phase::Taking;
        if !adopted {
            slot.basis = if released { Basis::Sound } else { Basis::Waited(waited) };
        }
        // What a former term left to be released with is of that term: another holder may have gone on since.
        slot.checkpoint = None;
        self.write(at, &record, draft, self.settings.limits(), None, now);
    }

    /// When what is free may be taken by this replica, were it not for others of its own: never, where this is None.
    fn due(&self, at: usize, waits: Waits, layout: &LayoutId) -> Option<Instant> {
        let slot = &self.slots[at];
        if !matches!(slot.phase, Phase::Idle) || slot.busy || slot.unsure || slot.tenure {
            return None;
        }
        let Known::There(sight) = &slot.known else { return None };
        if slot.names(&self.me) && slot.is_own_write() {
            return None;
        }
        let free = match sight.free(waits, slot.longest, layout.generation) {
            Free::Never => return None,
            Free::Released => sight.since,
            Free::At(at) => at,
        };
        Some(free.max(slot.retry_at).max(slot.resting_until))
    }

    /// Whether this replica has a use for its own lease-duration: it holds something, or there is something that it may
    /// take. Who only stands by has none.
    pub(super) fn has_use(&mut self, layout: &LayoutId, now: Now) -> bool {
        if self.slots.iter().any(|s| s.counts() || s.names(&self.me) && s.is_own_write()) {
            return true;
        }
        if self.layout.passed.as_ref() != Some(layout) {
            return false;
        }
        let waits = self.waits();
        let Some(due) = (0..self.slots.len()).filter_map(|at| self.due(at, waits, layout)).min() else { return false };
        self.wake_at(due, now);
        now.at >= due
    }

    /// Takes what is free, in this replica's own order; one that holds some waits a little (5.1).
    pub(super) fn decide_takes(&mut self, now: Now) {
        let Some(layout) = self.may_take() else { return };
        let waits = self.waits();
        let all = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        // Counted once: this runs at every event, and there may be thousands of buckets.
        let mut held = u32::try_from(self.slots.iter().filter(|s| s.counts()).count()).unwrap_or(all);
        for i in 0..self.order.len() {
            let at = self.order[i];
            let Some(due) = self.due(at, waits, &layout) else { continue };
            let politeness = Duration::from_millis(50) * held / all;
            let due = due + politeness;
            if now.at < due {
                self.wake_at(due, now);
                continue;
            }
            self.take(at, &layout, now);
            held = held.saturating_add(1);
        }
    }

    /// What was answered two retry-periods ago and has not been seen: the watch is silent, and begun anew.
    pub(super) fn decide_view(&mut self, now: Now) {
        let Some((revision, since)) = self.behind else { return };
        let due = since + 2 * self.settings.retry_period;
        if now.at < due {
            return self.wake_at(due, now);
        }
        self.behind = Some((revision, now.at));
        self.out.push(Action::Relist);
    }
}
