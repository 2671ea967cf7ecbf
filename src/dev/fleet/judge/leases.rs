//! What the Leases said, seen by the fleet's own watch: when a holder's record expired.
//!
//! # Caveats
//! Times are those of the arrival here, so an expiry may be told late by the way from the server, never early.

use crate::clock::Instant;
use std::collections::HashMap;
use std::time::Duration;

/// The leaseDurationSeconds that is no duration (rule S4): such a bucket lives as long as its holder's member Lease.
const NO_DURATION: i32 = i32::MAX;

/// One Lease as the watch showed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Its holder; none where it is empty, absent or the Lease was deleted.
    pub holder: Option<String>,
    /// renewTime, in microseconds since 1970.
    pub renewed: Option<i64>,
    /// acquireTime, in microseconds since 1970.
    pub acquired: Option<i64>,
    /// leaseDurationSeconds.
    pub seconds: Option<i32>,
    /// When it arrived here.
    pub at: Instant,
}

/// A run of records of one Lease under one holder.
#[derive(Debug, Clone)]
struct Holding {
    holder: String,
    acquired: Option<i64>,
    renewed: Option<i64>,
    /// The first record that named the holder.
    first: Instant,
    /// The last one with another renewTime than before.
    last: Instant,
    /// The record has no duration of its own.
    by_member: bool,
    /// The Lease was emptied, deleted or taken since.
    over: bool,
}

/// The holdings of every Lease.
#[derive(Debug)]
pub struct Leases {
    lease_duration: Duration,
    by_name: HashMap<String, Vec<Holding>>,
}

impl Leases {
    /// Nothing seen yet; records last for `lease_duration`.
    pub fn new(lease_duration: Duration) -> Self {
        Self { lease_duration, by_name: HashMap::new() }
    }

    /// The watch showed a Lease.
    pub fn seen(&mut self, seen: Seen) {
        let holdings = self.by_name.entry(seen.name).or_default();
        let Some(holder) = seen.holder.filter(|h| !h.is_empty()) else {
            if let Some(last) = holdings.last_mut() {
                last.over = true;
            }
            return;
        };
        if let Some(last) = holdings.last_mut() {
            let goes_on = !last.over
                && last.holder == holder
                && last.acquired == seen.acquired
                // A record that had run out and is written again by the same holder was taken anew.
                && (last.by_member || seen.at.since(last.last) < self.lease_duration);
            if goes_on {
                if last.renewed != seen.renewed {
                    last.renewed = seen.renewed;
                    last.last = seen.at;
                }
                return;
            }
            last.over = true;
        }
        holdings.push(Holding {
            holder,
            acquired: seen.acquired,
            renewed: seen.renewed,
            first: seen.at,
            last: seen.at,
            by_member: seen.seconds == Some(NO_DURATION),
            over: false,
        });
    }

    /// When the record of `holder` in Lease `name` expired, of the holding that was there at `held_at`: the last
    /// renewal that was seen, plus lease-duration. None where the watch saw no such record.
    ///
    /// A bucket without a duration of its own expires with whatever else its holder renews: its member Lease.
    pub fn expiry(&self, name: &str, holder: &str, held_at: Instant) -> Option<Instant> {
        let of_holder = |h: &&Holding| h.holder == holder && h.first <= held_at;
        let holding = self.by_name.get(name)?.iter().rev().find(of_holder)?;
        let last = if holding.by_member {
            let members = self.by_name.values().flat_map(|all| all.iter().rev().filter(of_holder));
            members.filter(|h| !h.by_member).map(|h| h.last).max()?
        } else {
            holding.last
        };
        Some(last + self.lease_duration)
    }
}
