//! `leasehold init`: a person's word that nothing runs, so that nothing waits whichever replica starts first (design 5.1).
//!
//! # Guarantees
//! - The same layout already in force: nothing is done, and it succeeds.
//! - A bucket that is held, or another layout in force: nothing is changed, and it says which.
//! - The layout Lease is opened last: stopped half-way, it leaves a queue that opens by itself, in time.

use super::client::{Failure, LeaseClient};
use super::notes::{Cut, LayoutNote, VERSION};
use super::record::Record;
use super::write::{Draft, Times};
use crate::bucket;
use crate::clock::SharedClock;
use std::collections::BTreeMap;
use std::time::Duration;

/// The queue that is to be made ready.
#[derive(Debug, Clone)]
pub struct Init {
    /// The name of its layout Lease.
    pub layout: String,
    /// How it is cut.
    pub cut: Cut,
    /// Its lease-duration.
    pub lease_duration: Duration,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The same layout was in force already.
    AlreadyInForce,
    /// The layout is in force now; so many buckets were written.
    Opened {
        /// Leases made or given a release record.
        written: usize,
    },
}

/// Why nothing was done, or not all of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// A bucket is held: something runs.
    #[error(
        "held, so something runs (or died less than its lease-duration ago): {0}. Nothing was changed. Stop it, or leave init out: replicas start without it, after a wait"
    )]
    Held(String),
    /// Another layout is in force.
    #[error(
        "another layout is in force: {found} (generation {generation}), not {wanted}. Nothing was changed. Configure all alike, or delete the queue's Leases when nothing runs"
    )]
    Other {
        /// The one in force.
        found: Box<Cut>,
        /// Its generation.
        generation: u64,
        /// The one that was asked for.
        wanted: Box<Cut>,
    },
    /// Written by a later version.
    #[error("the layout Lease {name:?} was written by a later version (format {v}): use that version's init")]
    Later {
        /// Its name.
        name: String,
        /// Its format version.
        v: u64,
    },
    /// The API server did not do as asked.
    #[error("{doing} {name:?}: {failure}")]
    Api {
        /// What was tried.
        doing: &'static str,
        /// The Lease.
        name: String,
        /// What came of it.
        failure: Failure,
    },
    /// A name that no Lease may have.
    #[error("{0}")]
    Name(#[from] bucket::NameError),
    /// Somebody else kept writing.
    #[error("the Leases of the queue kept changing while init ran: something runs. Run init again when nothing does")]
    Busy,
}

impl Init {
    /// Makes the queue ready. `bound` is for each request; safe to run again, also after being cancelled.
    ///
    /// # Errors
    /// See [`InitError`].
    pub async fn run(&self, client: &LeaseClient, clock: &SharedClock, bound: Duration) -> Result<Done, InitError> {
        bucket::check_lease_name(&self.layout)?;
        for i in 0..self.cut.buckets {
            bucket::check_lease_name(&bucket::lease_name(&self.cut.prefix, i, self.cut.buckets))?;
        }
        // A replica that starts meanwhile makes the same Leases, empty: its writes and ours may collide a few times.
        for _ in 0..10 {
            if let Some(done) = self.attempt(client, clock, bound).await? {
                return Ok(done);
            }
        }
        Err(InitError::Busy)
    }

    /// None: something changed under it; begin again.
    async fn attempt(
        &self,
        client: &LeaseClient,
        clock: &SharedClock,
        bound: Duration,
    ) -> Result<Option<Done>, InitError> {
        let api = |doing, name: &str| {
            let name = name.to_owned();
            move |failure| InitError::Api { doing, name, failure }
        };
        let (_, records) = client.list(bound).await.map_err(api("listing the Leases of", client.namespace()))?;
        let all: BTreeMap<&str, &Record> = records.iter().map(|r| (r.name.as_str(), r)).collect();
        let layout = all.get(self.layout.as_str()).copied();
        if let Some(done) = self.in_force(layout)? {
            return Ok(Some(done));
        }
        let ours = |r: &&&Record| bucket::parse_lease_name(&self.cut.prefix, &r.name).is_some();
        let held: Vec<String> = all
            .values()
            .filter(ours)
            .filter(|r| r.is_held() && r.retired().is_none())
            .map(|r| format!("{} by {:?}", r.name, r.spec.holder))
            .collect();
        if !held.is_empty() {
            return Err(InitError::Held(held.join(", ")));
        }
        let retired = all.values().filter(ours).filter_map(|r| r.retired()).max().unwrap_or(0);
        let note = LayoutNote {
            v: VERSION,
            cut: self.cut.clone(),
            generation: retired.saturating_add(1),
            open: false,
            settled: None,
            era: 0,
            lease_duration_seconds: u32::try_from(self.lease_duration.as_secs()).unwrap_or(u32::MAX),
            before: Vec::new(),
        };
        let times = Times { wall: clock.wall() };
        let Some(layout) = settle(match layout {
            None => made(client.create(&Draft::make_layout(&self.layout, &note), bound).await),
            Some(record) => Ok(record.clone()),
        })
        .map_err(api("making the layout Lease", &self.layout))?
        else {
            return Ok(None);
        };
        let mut written = 0;
        for i in 0..self.cut.buckets {
            let name = bucket::lease_name(&self.cut.prefix, i, self.cut.buckets);
            let result = match all.get(name.as_str()) {
                Some(record) if record.released().is_some() => continue,
                Some(record) => {
                    client
                        .replace(&Draft::release(record, self.lease_duration.max(record.longest()), None, times), bound)
                        .await
                }
                None => made(client.create(&Draft::init(&name, self.lease_duration, times), bound).await),
            };
            if settle(result).map_err(api("writing the bucket", &name))?.is_none() {
                return Ok(None);
            }
            written += 1;
        }
        let base = layout.layout_note.known().cloned().unwrap_or_else(|| note.clone());
        let open = LayoutNote {
            open: true,
            cut: self.cut.clone(),
            // Unopened, so nobody has taken under it; another cut is another layout all the same.
            generation: base.generation.max(note.generation).saturating_add(u64::from(base.cut != self.cut)),
            lease_duration_seconds: base.lease_duration_seconds.max(note.lease_duration_seconds),
            ..base
        };
        let opened = client.replace(&Draft::change_layout(&layout, &open), bound).await;
        Ok(settle(opened).map_err(api("opening the layout Lease", &self.layout))?.map(|_| Done::Opened { written }))
    }

    fn in_force(&self, layout: Option<&Record>) -> Result<Option<Done>, InitError> {
        let Some(record) = layout else { return Ok(None) };
        match &record.layout_note {
            super::Note::Later { v, .. } => Err(InitError::Later { name: self.layout.clone(), v: *v }),
            super::Note::Known(note) if note.open && note.cut == self.cut => Ok(Some(Done::AlreadyInForce)),
            super::Note::Known(note) if note.open => Err(InitError::Other {
                found: Box::new(note.cut.clone()),
                generation: note.generation,
                wanted: Box::new(self.cut.clone()),
            }),
            super::Note::None | super::Note::Known(_) => Ok(None),
        }
    }
}

/// To a create, "not found" means the namespace.
fn made(result: Result<Record, Failure>) -> Result<Record, Failure> {
    result.map_err(|failure| match failure {
        Failure::NotFound => Failure::Refused {
            code: 404,
            message: "the namespace does not exist: create it, or mend SYSTEM_NAMESPACE".to_owned(),
        },
        other => other,
    })
}

/// None: somebody else wrote first.
fn settle(result: Result<Record, Failure>) -> Result<Option<Record>, Failure> {
    match result {
        Ok(record) => Ok(Some(record)),
        Err(Failure::Conflict(_) | Failure::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}
