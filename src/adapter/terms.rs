//! The terms of this process as its observers were told: for the pages that people and Kubernetes read, not for
//! deciding who acts (a guard does that).

use crate::clock::Instant;
use crate::leader::FencingToken;
use crate::leader::observe::Event;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A term that has begun and not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) token: Option<FencingToken>,
    pub(super) begun: Instant,
    pub(super) deadline: Instant,
    /// The gate has opened.
    pub(super) promoted: bool,
    /// The gate has shut.
    pub(super) closing: Option<Instant>,
}

/// A side of a hand-over that this replica saw from beginning to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handover {
    /// From the take to the opening of the gate.
    Taking(Duration),
    /// From the shutting of the gate to the end of demote.
    Giving(Duration),
}

/// The terms, by bucket. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Terms(Arc<Mutex<BTreeMap<String, Held>>>);

impl Terms {
    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        // Held for a few instructions, never over an await; nothing panics meanwhile.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> BTreeMap<String, Held> {
        self.table().clone()
    }

    /// Takes note of `event`.
    pub(super) fn note(&self, event: &Event) -> Option<Handover> {
        let mut table = self.table();
        match event {
            Event::TermBegun { bucket, token, at, deadline } => {
                let held = Held { token: *token, begun: *at, deadline: *deadline, promoted: false, closing: None };
                table.insert(bucket.name().to_owned(), held);
                None
            }
            Event::Promoted { bucket, at, .. } => {
                let held = table.get_mut(bucket.name())?;
                held.promoted = true;
                Some(Handover::Taking(at.since(held.begun)))
            }
            Event::DeadlineMoved { bucket, deadline, .. } => {
                table.get_mut(bucket.name())?.deadline = *deadline;
                None
            }
            Event::GuardsOut { bucket, at, .. } => {
                table.get_mut(bucket.name())?.closing = Some(*at);
                None
            }
            Event::TermEnded { bucket, at, .. } => {
                let closing = table.remove(bucket.name())?.closing?;
                Some(Handover::Giving(at.since(closing)))
            }
            _ => None,
        }
    }
}
