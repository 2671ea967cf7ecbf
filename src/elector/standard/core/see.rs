//! What was seen: lists, changes and deletions of the Leases of this queue, in the order of the one watch.

use super::{Core, Now, WENT_BACK};
use crate::elector::known::{How, Known, Look};
use crate::elector::standard::slot::{Basis, Phase};
use crate::lease::{Record, Seen};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

impl Core {
    pub(in crate::elector::standard) fn seen(&mut self, seen: &Seen, now: Now) {
        self.shown = match seen {
            Seen::Listed { revision, .. } => *revision,
            Seen::Changed(record) | Seen::Deleted(record) => self.shown.max(record.revision),
            Seen::WentBack { to, .. } => *to,
        };
        if self.behind.is_some_and(|(revision, _)| self.shown >= revision) {
            self.behind = None;
        }
        match seen {
            Seen::Listed { revision, records } => self.listed(*revision, records, now),
            Seen::Changed(record) => self.look(record, How::Watched, now),
            Seen::Deleted(record) => self.gone(&record.name, record.revision, now),
            Seen::WentBack { from, to } => self.went_back(*from, *to),
        }
    }

    pub(super) fn listed(&mut self, revision: u64, records: &[Arc<Record>], now: Now) {
        if let Some(from) = records.iter().find_map(|r| self.is_back(r, revision)) {
            self.went_back(from, revision);
        }
        let there: HashSet<&str> = records.iter().map(|r| r.name.as_str()).collect();
        let mut missing: Vec<String> = self
            .by_name
            .keys()
            .chain(self.layout.strays.keys())
            .chain([&self.layout.name])
            .filter(|n| !there.contains(n.as_str()))
            .cloned()
            .collect();
        // In an order of their own, not that of a hash map: a simulation repeats itself.
        missing.sort_unstable();
        for name in missing {
            self.gone(&name, revision, now);
        }
        for record in records {
            self.look(record, How::Read, now);
        }
    }

    /// A Lease that a list at `revision` shows as it stood before what is known of it, although that is no newer than the
    /// list: etcd was restored, and its revision has been raised above what it was. The revision that was known.
    fn is_back(&self, record: &Record, revision: u64) -> Option<u64> {
        let known = if record.name == self.layout.name { &self.layout.known } else { self.known(&record.name)? };
        let known = known.revision();
        (record.revision < known && known <= revision).then_some(known)
    }

    /// A version of a Lease of this queue was seen.
    pub(super) fn look(&mut self, record: &Arc<Record>, how: How, now: Now) {
        if record.name == self.layout.name {
            self.layout.look(record, now.at);
            return;
        }
        if let Some(generation) = record.retired() {
            self.layout.generation = self.layout.generation.max(generation);
        }
        if let Some(note) = record.vouched() {
            self.layout.generation = self.layout.generation.max(note.layout.generation);
        }
        let (known, own) = match self.by_name.get(&record.name) {
            Some(&at) => (&self.slots[at].known, true),
            None => (self.layout.strays.entry(record.name.clone()).or_default() as &Known, false),
        };
        let vanished = known.record().is_some_and(|r| r.uid != record.uid && r.revision < record.revision);
        let look = if own {
            let at = self.by_name[&record.name];
            self.slots[at].look(record, how, now.at)
        } else {
            self.layout.strays.entry(record.name.clone()).or_default().look(record, how, now.at)
        };
        // Design 5.1: a bucket that is held, or that vanished, begins the wait of a first start anew.
        if look == Look::New && self.layout.opening.is_some() {
            let waits = self.waits();
            let known = self.known(&record.name);
            let hinders = known.is_some_and(|k| self.layout.hinders(k, own, waits, Duration::ZERO, now.at));
            if (vanished || hinders)
                && let Some(opening) = &mut self.layout.opening
            {
                opening.quiet_since = now.at;
            }
        }
        if let Some(&at) = self.by_name.get(&record.name)
            && look != Look::Stale
        {
            if record.spec.holder != self.me && (record.vouched().is_some() || record.is_of_later_format()) {
                self.is_well(at);
            }
            self.judge(at, now);
        }
    }

    pub(super) fn known(&self, name: &str) -> Option<&Known> {
        match self.by_name.get(name) {
            Some(&at) => Some(&self.slots[at].known),
            None => self.layout.strays.get(name),
        }
    }

    pub(super) fn gone(&mut self, name: &str, revision: u64, now: Now) {
        if name == self.layout.name {
            if self.layout.known.gone(revision) {
                self.layout.since = now.at;
                self.layout.opening = None;
            }
            return;
        }
        let (vanished, news) = match self.by_name.get(name) {
            Some(&at) => {
                let there = self.slots[at].known.record().is_some();
                (there, self.slots[at].known.gone(revision))
            }
            None => (true, self.layout.strays.remove(name).is_some()),
        };
        if vanished
            && news
            && let Some(opening) = &mut self.layout.opening
        {
            opening.quiet_since = now.at;
        }
        if news && let Some(&at) = self.by_name.get(name) {
            self.judge(at, now);
        }
    }

    /// The cluster's revision went back: what is held is lost, nothing known counts, and the era is raised before
    /// anything is taken again (rule S9).
    pub(super) fn went_back(&mut self, from: u64, to: u64) {
        self.epoch += 1;
        for at in 0..self.slots.len() {
            self.lose(at);
            let slot = &mut self.slots[at];
            slot.known = Known::Unknown;
            slot.attempts.clear();
            slot.confirmed = None;
            slot.checkpoint = None;
            slot.basis = Basis::default();
            slot.phase = Phase::Idle;
        }
        // A revision of before may not be reached for days.
        self.behind = None;
        let layout = &mut self.layout;
        layout.known = Known::Unknown;
        layout.strays.clear();
        layout.passed = None;
        layout.settle_on = None;
        layout.opening = None;
        layout.confirmed = None;
        layout.confirming = None;
        layout.says = None;
        layout.era_floor = layout.era_floor.max(layout.era.saturating_add(1));
        self.went_back = true;
        self.notice(
            WENT_BACK,
            format!(
                "the cluster's revision went back from {from} to {to} (etcd was restored?): all terms are ended, the era of the \
                 fencing tokens is raised"
            ),
        );
    }
}
