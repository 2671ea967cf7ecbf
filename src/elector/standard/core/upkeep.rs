//! What is to be done about the layout Lease: first start, the barrier, and what it must say (design 5.1, 6).

use super::{Action, Core, Now, Request, Target, WENT_BACK};
use crate::clock::Instant;
use crate::elector::standard::layout::Standing;
use crate::elector::standard::slot::Phase;
use crate::lease::{Draft, LayoutId, LayoutNote};
use std::time::Duration;

/// How many reads for what was taken may be out at one time.
const MOST_JUDGING: u32 = 4;

impl Core {
    pub(super) fn decide_layout(&mut self, now: Now) {
        self.say_standing(now);
        if self.stopping.is_some() && !self.slots.iter().any(|s| matches!(s.phase, Phase::Judging { .. })) {
            return;
        }
        self.decide_list(now);
        self.decide_judging(now);
        if self.layout.busy {
            return;
        }
        if now.at < self.layout.retry_at {
            let at = self.layout.retry_at;
            return self.wake_at(at, now);
        }
        if self.layout.unsure {
            self.ask(Target::Layout, Request::Get);
            return;
        }
        if self.stopping.is_none() {
            if now.at < self.layout.write_at {
                let at = self.layout.write_at;
                return self.wake_at(at, now);
            }
            self.decide_layout_write(now);
        }
    }

    /// What was taken and answered is judged by a read of the layout Lease sent after that (6.1).
    fn decide_judging(&mut self, now: Now) {
        let waits = self.slots.iter().any(|s| matches!(s.phase, Phase::Judging { read: None, .. }));
        if !waits || self.layout.judging >= MOST_JUDGING {
            return;
        }
        if now.at < self.layout.judge_at {
            let at = self.layout.judge_at;
            return self.wake_at(at, now);
        }
        let number = self.ask(Target::Judge, Request::Get);
        for slot in &mut self.slots {
            if let Phase::Judging { read: read @ None, .. } = &mut slot.phase {
                *read = Some(number);
            }
        }
    }

    pub(super) fn decide_list(&mut self, now: Now) {
        if self.layout.listing {
            return;
        }
        let wanted = match self.layout.standing() {
            Standing::Unopened { wanted: true } => {
                let uid = self.layout.record().map(|r| r.uid.clone());
                self.layout.opening.as_ref().map(|o| o.uid.clone()) != uid
            }
            Standing::Ours(id) => {
                if self.layout.passed.as_ref() != Some(&id) && self.layout.note().is_some_and(LayoutNote::is_settled) {
                    // Who reads `settled` with the layout in force need not list (6.2).
                    self.layout.passed = Some(id);
                    return;
                }
                self.layout.passed.as_ref() != Some(&id)
            }
            _ => false,
        };
        if wanted && now.at < self.layout.list_at {
            let at = self.layout.list_at;
            self.wake_at(at, now);
        } else if wanted {
            self.ask(Target::Queue, Request::List);
        }
    }

    pub(super) fn decide_layout_write(&mut self, now: Now) {
        let lease = self.settings.lease_duration;
        let fresh = self.layout.fresh_note(lease);
        match self.layout.standing() {
            Standing::Unknown | Standing::Later(_) | Standing::Other(..) => {}
            Standing::Absent => {
                let draft = Draft::make_layout(&self.layout.name, &fresh);
                self.ask(Target::Layout, Request::Create(draft));
            }
            Standing::Unreadable => self.change_layout(&fresh),
            Standing::Unopened { wanted: false } => {
                // Nobody can have taken under it. Whoever wants it opens it within a lease-duration or two; else it is
                // ours to cut.
                let due = self.layout.since + 3 * self.waits().longest;
                if now.at >= due { self.change_layout(&fresh) } else { self.wake_at(due, now) }
            }
            Standing::Unopened { wanted: true } => self.decide_opening(now),
            Standing::Ours(id) => self.decide_upkeep(&id, now),
        }
    }

    pub(super) fn change_layout(&mut self, note: &LayoutNote) {
        let Some(record) = self.layout.record().cloned() else { return };
        let draft = Draft::change_layout(&record, note);
        self.ask(Target::Layout, Request::Replace(draft));
    }

    /// First start: opened once no bucket was seen held, or to vanish, for the longest duration that may bind (5.1).
    pub(super) fn decide_opening(&mut self, now: Now) {
        let Some(record) = self.layout.record().cloned() else { return };
        let Some(opening) = self.layout.opening.clone().filter(|o| o.uid == record.uid) else { return };
        let mut waits = self.waits();
        let seen = self.each_known().filter_map(|(k, _)| k.record()).map(|r| r.longest()).max().unwrap_or_default();
        waits.longest = waits.longest.max(seen);
        let due = opening.quiet_since + waits.longest;
        if now.at < due {
            return self.wake_at(due, now);
        }
        let hindered = self.each_known().any(|(k, own)| self.layout.hinders(k, own, waits, Duration::ZERO, now.at));
        let made = self.slots.iter().all(|s| s.known.record().is_some());
        if hindered || !made {
            // What hinders runs out by time: looked at again soon, since nothing need be seen for that.
            return self.wake_at(now.at + self.settings.retry_period / 4, now);
        }
        // A holder that is silent in a view that is silent may act still, and of its bucket nothing need be left.
        if !self.confirm_by_list(due, now) {
            return;
        }
        let Some(note) = self.layout.note().cloned() else { return };
        let era = note.era.max(self.layout.era_floor);
        self.change_layout(&LayoutNote { open: true, era, ..note });
    }

    /// Whether a list from quorum, sent after `due` and not long ago, has been taken in. If not, it is asked for.
    fn confirm_by_list(&mut self, due: Instant, now: Now) -> bool {
        if self.layout.confirmed.is_some_and(|at| due <= at && now.at < at + self.settings.retry_period) {
            return true;
        }
        if self.layout.listing {
            return false;
        }
        if now.at < self.layout.list_at {
            let at = self.layout.list_at;
            self.wake_at(at, now);
            return false;
        }
        self.layout.confirmed = None;
        self.layout.confirming = Some(self.ask(Target::Queue, Request::List));
        false
    }

    /// The layout in force is ours: `settled`, the era and the longest duration are kept as they must be.
    pub(super) fn decide_upkeep(&mut self, id: &LayoutId, now: Now) {
        let Some(note) = self.layout.note().cloned() else { return };
        if self.went_back && note.era >= self.layout.era_floor && self.layout.passed.as_ref() == Some(id) {
            self.went_back = false;
            self.out.push(Action::Say(WENT_BACK, None));
        }
        let lease = u32::try_from(self.settings.lease_duration.as_secs()).unwrap_or(u32::MAX);
        let mut wanted = note.clone();
        wanted.era = note.era.max(self.layout.era_floor);
        // Raised by whoever is to take: one that stands by would raise again and again what others lower.
        if note.lease_duration_seconds < lease && self.has_use(id, now) {
            wanted.lease_duration_seconds = lease;
        }
        if let Some(on) = self.layout.settle_on {
            // Only on the resourceVersion that was read before the list (6.2).
            if note.is_settled() || on != self.layout.known.revision() {
                self.layout.settle_on = None;
            } else if self.layout.passed.as_ref() == Some(id) {
                wanted.settled = Some(id.generation);
            }
        }
        if wanted == note {
            self.decide_lowering(&note, lease, now);
        } else {
            self.change_layout(&wanted);
        }
    }

    /// The longest duration is lowered by whoever has, for that long, seen nothing in the queue that says more.
    pub(super) fn decide_lowering(&mut self, note: &LayoutNote, lease: u32, now: Now) {
        let longest = note.longest();
        let held = self.each_known().filter_map(|(k, _)| k.record()).filter(|r| r.is_held());
        let says = held.map(|r| r.longest()).max().unwrap_or_default().max(Duration::from_secs(u64::from(lease)));
        if says >= longest {
            self.layout.says = None;
            return;
        }
        let since = match self.layout.says {
            Some((same, since)) if same == says => since,
            _ => now.at,
        };
        self.layout.says = Some((says, since));
        let due = since + longest;
        if now.at < due {
            return self.wake_at(due, now);
        }
        // Who holds for longer may not have been seen: the view may be silent.
        if !self.confirm_by_list(due, now) {
            return;
        }
        self.layout.says = None;
        for slot in &mut self.slots {
            slot.longest = slot.known.record().map_or(Duration::ZERO, |r| r.longest());
        }
        let seconds = u32::try_from(says.as_secs()).unwrap_or(u32::MAX);
        self.change_layout(&LayoutNote { lease_duration_seconds: seconds, ..note.clone() });
    }

    pub(super) fn say_standing(&mut self, now: Now) {
        let standing = self.layout.standing();
        let mut news = None;
        let text = match &standing {
            Standing::Unknown => "not read yet".to_owned(),
            Standing::Absent => "no layout Lease yet: it is being made".to_owned(),
            Standing::Unreadable => {
                news = Some(("standing-by", "unreadable".to_owned()));
                "the layout Lease says no layout (its annotation was removed): it is written anew".to_owned()
            }
            Standing::Later(v) => {
                news = Some(("standing-by", format!("later {v}")));
                format!("standing by: the layout Lease was written by a later version (format {v})")
            }
            Standing::Unopened { wanted: false } => {
                news = Some(("standing-by", "unopened".to_owned()));
                "standing by: a layout that this replica does not want is being opened".to_owned()
            }
            Standing::Unopened { wanted: true } => {
                news = Some(("first-start", "first".to_owned()));
                let left = self
                    .layout
                    .opening
                    .as_ref()
                    .map_or(self.waits().longest, |o| (o.quiet_since + self.waits().longest).since(now.at));
                // A point in time: the page shows it long after it was written.
                let until = jiff::SignedDuration::try_from(left).ok().and_then(|d| now.wall.checked_add(d).ok());
                format!(
                    "first start: nobody knows whether something runs that can't be seen, so nothing is taken before {:.0}; \
                     `leasehold init` says that nothing runs and skips the wait",
                    until.unwrap_or(now.wall)
                )
            }
            Standing::Ours(id) if self.layout.passed.as_ref() == Some(id) => {
                format!("{}, generation {}, in force", self.layout.cut, id.generation)
            }
            Standing::Ours(id) => format!(
                "{}, generation {}, in force; waiting until nothing is held under another",
                self.layout.cut, id.generation
            ),
            Standing::Other(id, cut) => {
                news = Some(("standing-by", format!("other {} {}", id.uid, id.generation)));
                format!(
                    "standing by: in force is {cut} (generation {}), this replica is configured for {}; scale the others to 0 or \
                     configure all alike",
                    id.generation, self.layout.cut
                )
            }
        };
        match news {
            Some((code, key)) if key != self.told => {
                self.told = key;
                self.notice(code, text.clone());
            }
            None if matches!(standing, Standing::Ours(_)) => self.told.clear(),
            _ => {}
        }
        self.out.push(Action::Say("layout", Some(text)));
    }
}
