//! The layout Lease in its first form: first start, what is in force, and the barrier before the first promotion
//! (design 5.1 and 6.1, 6.2). Changing a layout is not done here.

use crate::clock::Instant;
use crate::elector::known::{Free, Known, Waits};
use crate::lease::{Cut, LayoutId, LayoutNote, Note, Record, VERSION};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The wait of a first start.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    /// The layout Lease whose uid was known before the buckets were listed.
    pub(super) uid: String,
    /// No bucket was seen held or to vanish since.
    pub(super) quiet_since: Instant,
}

/// What stands in the layout Lease, as far as this replica is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not known yet.
    Unknown,
    /// There is none.
    Absent,
    /// It is there, but says no layout: a person's doing.
    Unreadable,
    /// Written by a later version.
    Later(u64),
    /// Made, not opened; as this replica wants it or not.
    Unopened { wanted: bool },
    /// In force, and what this replica wants.
    Ours(LayoutId),
    /// In force, and another than this replica wants.
    Other(LayoutId, Cut),
}

/// The layout Lease and what depends on it.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) name: String,
    /// What this replica wants.
    pub(super) cut: Cut,
    pub(super) known: Known,
    pub(super) since: Instant,
    /// A request for it is out.
    pub(super) busy: bool,
    /// How many reads for what was taken are out.
    pub(super) judging: u32,
    /// The next of them not before.
    pub(super) judge_at: Instant,
    pub(super) judge_failures: u32,
    /// The last write failed: read before the next one.
    pub(super) unsure: bool,
    pub(super) retry_at: Instant,
    pub(super) failures: u32,
    /// Writes that have failed in a row, and when the next may be sent.
    pub(super) write_failures: u32,
    pub(super) write_at: Instant,
    /// A list of the queue's buckets is out.
    pub(super) listing: bool,
    pub(super) list_at: Instant,
    /// The barrier of this layout is passed.
    pub(super) passed: Option<LayoutId>,
    /// The revision of the layout Lease that was read before the list that passed the barrier.
    pub(super) settle_on: Option<u64>,
    pub(super) opening: Option<Opening>,
    /// Buckets of the queue that are none of this layout's.
    pub(super) strays: BTreeMap<String, Known>,
    /// The cluster's revision went back: the era must be at least this before anything is taken (rule S9).
    pub(super) era_floor: u32,
    pub(super) era: u32,
    /// The list that confirms what a view that may be silent has shown: its request, and when it was answered.
    pub(super) confirming: Option<u64>,
    pub(super) confirmed: Option<Instant>,
    /// The highest generation ever seen, retired ones included.
    pub(super) generation: u64,
    /// Since when nothing in the queue says more than this.
    pub(super) says: Option<(Duration, Instant)>,
}

impl Layout {
    pub(super) fn new(name: String, cut: Cut) -> Self {
        Self {
            name,
            cut,
            known: Known::Unknown,
            since: Instant::ORIGIN,
            busy: false,
            judging: 0,
            judge_at: Instant::ORIGIN,
            judge_failures: 0,
            unsure: false,
            retry_at: Instant::ORIGIN,
            failures: 0,
            write_failures: 0,
            write_at: Instant::ORIGIN,
            listing: false,
            list_at: Instant::ORIGIN,
            passed: None,
            settle_on: None,
            opening: None,
            strays: BTreeMap::new(),
            era_floor: 0,
            era: 0,
            confirming: None,
            confirmed: None,
            generation: 0,
            says: None,
        }
    }

    pub(super) fn record(&self) -> Option<&Arc<Record>> {
        self.known.record()
    }

    pub(super) fn note(&self) -> Option<&LayoutNote> {
        self.record()?.layout_note.known()
    }

    pub(super) fn standing(&self) -> Standing {
        let record = match &self.known {
            Known::Unknown => return Standing::Unknown,
            Known::Absent { .. } => return Standing::Absent,
            Known::There(sight) => &sight.record,
        };
        match &record.layout_note {
            Note::None => Standing::Unreadable,
            Note::Later { v, .. } => Standing::Later(*v),
            Note::Known(note) if !note.open => Standing::Unopened { wanted: note.cut == self.cut },
            Note::Known(note) => {
                let id = LayoutId { uid: record.uid.clone(), generation: note.generation };
                if note.cut == self.cut { Standing::Ours(id) } else { Standing::Other(id, note.cut.clone()) }
            }
        }
    }

    /// The layout in force, if it is the one this replica wants.
    pub(super) fn ours(&self) -> Option<LayoutId> {
        match self.standing() {
            Standing::Ours(id) => Some(id),
            _ => None,
        }
    }

    /// The longest lease-duration that the layout Lease says.
    pub(super) fn longest(&self) -> Duration {
        self.note().map_or(Duration::ZERO, LayoutNote::longest)
    }

    /// The layout Lease was read. True if what it says changed.
    pub(super) fn look(&mut self, record: &Arc<Record>, now: Instant) -> bool {
        let before = (self.record().map(|r| r.uid.clone()), self.note().cloned());
        if self.known.look(record, crate::elector::known::How::Read, now) == crate::elector::known::Look::Stale {
            return false;
        }
        if let Some(note) = self.note() {
            let (generation, era) = (note.generation, note.era);
            self.generation = self.generation.max(generation);
            self.era = self.era.max(era);
        }
        let changed = before != (self.record().map(|r| r.uid.clone()), self.note().cloned());
        if changed {
            self.since = now;
        }
        changed
    }

    /// What a layout Lease made anew says: above every generation seen, and in an era that no token has passed.
    pub(super) fn fresh_note(&self, lease: Duration) -> LayoutNote {
        LayoutNote {
            v: VERSION,
            cut: self.cut.clone(),
            generation: self.generation.saturating_add(1),
            open: false,
            settled: None,
            era: self.era.max(self.era_floor),
            lease_duration_seconds: u32::try_from(lease.as_secs()).unwrap_or(u32::MAX),
            before: Vec::new(),
        }
    }

    /// Whether a bucket stands in the way of a first start (design 5.1). `own`: it is one of this layout's names.
    pub(super) fn hinders(&self, known: &Known, own: bool, waits: Waits, longest: Duration, now: Instant) -> bool {
        let Known::There(sight) = known else { return false };
        let record = &sight.record;
        if !record.is_held() || record.retired().is_some() {
            return false;
        }
        if own && record.is_foreign() && self.cut.hash == crate::lease::HashName::Knative {
            return false;
        }
        !is_over(sight.free(waits, longest, 0), now)
    }

    /// Whether a bucket keeps the barrier of the layout in force shut: held under another layout (design 6.2).
    pub(super) fn bars(&self, known: &Known, own: bool, id: &LayoutId, waits: Waits, now: Instant) -> bool {
        let Known::There(sight) = known else { return false };
        let record = &sight.record;
        if !record.is_held() || record.retired().is_some() {
            return false;
        }
        if record.vouched().is_some_and(|n| n.layout == *id) {
            return false;
        }
        if own && record.is_foreign() && self.cut.hash == crate::lease::HashName::Knative {
            return false;
        }
        !is_over(sight.free(waits, Duration::ZERO, id.generation), now)
    }
}

/// The holder's term has run out, or was given up.
fn is_over(free: Free, now: Instant) -> bool {
    match free {
        Free::Released => true,
        Free::At(at) => now >= at,
        Free::Never => false,
    }
}
