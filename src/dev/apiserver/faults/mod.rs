//! Faults, per client: what a test or a simulator does to requests and watches.
//!
//! A fault is a [`Match`] (which requests) and an [`Effect`] (what happens to them). Before-effects come before the
//! request has changed anything, after-effects when it has. All rules that match a request act on it, in the order in
//! which they were made.
//!
//! # Guarantees
//! - Deterministic: rules count requests in the order of their arrival; chance comes from the server's seed.
//! - A request that is dropped (a timeout on the client's side) before its commit leaves no trace, unless the rule is
//!   [`Effect::LateCommit`]: then it lands all the same.
//! - Delays run on tokio's timers, and so on virtual time where a test pauses it.

mod board;
mod rule;

use std::time::Duration;

pub(crate) use board::{Board, Control, Step, WatchTicket};
pub use board::{Faults, RuleId};
pub use rule::Match;

/// What happens to a request that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It waits before it is carried out. Dropped meanwhile, it never is.
    DelayBefore(Duration),
    /// It is carried out; the answer waits.
    DelayAfter(Duration),
    /// It is never carried out and never answered.
    HangBefore,
    /// It is carried out and never answered.
    HangAfter,
    /// It is never carried out; the connection breaks.
    DropBefore,
    /// It is carried out; the connection breaks instead of an answer.
    DropAfter,
    /// It is not carried out; the answer is this code, with a Retry-After where seconds are given.
    AnswerBefore(u16, Option<u64>),
    /// It is carried out; the answer says this code all the same.
    AnswerAfter(u16, Option<u64>),
    /// It is carried out this much later, whether or not anyone still waits for it; the answer comes then.
    LateCommit(Duration),
    /// A get, list or watch is answered from an older revision.
    Stale(Staleness),
    /// An open watch shows nothing, no bookmark either, and does not end, as long as the rule stands.
    SilentWatch,
    /// An open watch shows each change this much late, as long as the rule stands.
    LagWatch(Duration),
    /// Nothing gets through, as long as the rule stands.
    Outage(Outage),
}

/// How old a stale read is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staleness {
    /// So many revisions behind the newest.
    Behind(u64),
    /// As of this revision.
    At(u64),
}

/// How an outage looks from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Connections break: requests fail at once, and watches end when it begins.
    Refused,
    /// Packets vanish: requests hang, watches are silent.
    BlackHole,
    /// The server answers every request with this code; watches end when it begins.
    Answers(u16),
}

/// How an open watch is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It ends in good order.
    End,
    /// The connection breaks.
    Reset,
    /// An ERROR event with code 410, then the end.
    Gone,
}
