//! What is known of one Lease, and when it would be free: pure functions over what was seen and a time.
//!
//! # Guarantees
//! - Silence is how long since this replica first saw this uid and spec, on its own clock (rule S4): a stranger's label
//!   or annotation proves no life, and no point in time in a Lease is trusted.
//! - Something older than what is known changes nothing.

use crate::clock::Instant;
use crate::lease::Record;
use std::sync::Arc;
use std::time::Duration;

/// A Lease as seen, and since when its uid and spec have stood so.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    pub(crate) record: Arc<Record>,
    /// This uid and spec were first seen then.
    pub(crate) since: Instant,
    /// Nobody holds it, and the last who did is known to have been one of us.
    ours_last: bool,
}

/// What is known of a Lease.
#[derive(Debug, Clone, Default)]
pub(crate) enum Known {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It is not there.
    Absent {
        /// The revision at which it was seen so.
        revision: u64,
    },
    There(Sight),
}

/// What a look changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Older than what is known, or the same.
    Stale,
    /// The uid and spec stand; something else changed.
    Touched,
    /// Another uid or spec.
    New,
}

/// How a version came to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// By an event of the watch, which leaves none out.
    Watched,
    /// By a list or a read: there may have been others since the last look.
    Read,
}

impl Known {
    pub(crate) fn record(&self) -> Option<&Arc<Record>> {
        match self {
            Self::There(sight) => Some(&sight.record),
            Self::Unknown | Self::Absent { .. } => None,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Absent { revision } => *revision,
            Self::There(sight) => sight.record.revision,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }

    /// A version of the Lease was seen.
    pub(crate) fn look(&mut self, record: &Arc<Record>, how: How, now: Instant) -> Look {
        let first = matches!(self, Self::Unknown);
        if !first && record.revision <= self.revision() {
            return Look::Stale;
        }
        let before = match self {
            Self::There(sight) if sight.record.uid == record.uid => Some(&*sight),
            _ => None,
        };
        let same = before.is_some_and(|b| b.record.spec == record.spec);
        // What was read says nothing of the versions between. One empty spec is like another: it may have been taken, and
        // blanked by a person, since the last look.
        let whole = how == How::Watched || record.is_held();
        let since = before.filter(|_| same && whole).map_or(now, |b| b.since);
        let ours_last = !record.is_held()
            && before.is_some_and(|b| {
                // Nobody in between that was not seen: a take raises leaseTransitions.
                b.record.spec.transitions == record.spec.transitions
                    && if b.record.is_held() { b.record.vouched().is_some() } else { b.ours_last }
            });
        *self = Self::There(Sight { record: Arc::clone(record), since, ours_last });
        if same { Look::Touched } else { Look::New }
    }

    /// It is not there, as of `revision`. True if that is news.
    pub(crate) fn gone(&mut self, revision: u64) -> bool {
        if self.is_absent() || (!matches!(self, Self::Unknown) && revision < self.revision()) {
            return false;
        }
        *self = Self::Absent { revision };
        true
    }
}

/// The durations that bind whoever waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// The longest of one's own lease-duration and the layout Lease's.
    pub(crate) longest: Duration,
    /// Added where the last holder is not known to be one of us (client-go may still be acting).
    pub(crate) grace: Duration,
}

/// When a Lease may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Free {
    /// From then on.
    At(Instant),
    /// Released in good order: at once.
    Released,
    /// Not by time.
    Never,
}

impl Sight {
    /// When it is free by design 5.1, given the longest duration that has bound in it and the generation in force.
    pub(crate) fn free(&self, waits: Waits, bound: Duration, generation: u64) -> Free {
        let record = &*self.record;
        if let Some(retired) = record.retired() {
            return if generation > retired { Free::Released } else { Free::Never };
        }
        if record.released().is_some() {
            return Free::Released;
        }
        if !record.is_held() {
            let ours = self.ours_last || record.is_fresh();
            let wait = waits.longest.max(bound).max(record.longest());
            return Free::At(self.since + wait + if ours { Duration::ZERO } else { waits.grace });
        }
        if record.is_of_later_format() {
            return Free::Never;
        }
        match record.vouched() {
            // Judged by its member Lease alone, which this strategy does not know.
            Some(note) if note.member.is_some() => Free::Never,
            // The annotation's duration binds, not the spec's.
            Some(note) => Free::At(self.since + waits.longest.max(note.duration())),
            None => Free::At(self.since + waits.longest.max(record.spec.foreign_duration()) + waits.grace),
        }
    }
}

#[cfg(test)]
mod tests;
