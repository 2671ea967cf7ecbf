//! What happened in a run, in true time, and the rules it is judged by: one file for each rule of the design.
//!
//! Everything is recorded where it cannot be argued with: what reached the server and what it committed, what a replica's
//! work did, what its LeaderAware was told. Only begin and end of a term are taken from the election's own events. What is
//! read in a Lease is read here anew, by [`version`], not by the code that is judged.

mod deadline;
mod fencing;
mod layout;
mod live;
mod order;
mod overlap;
mod run;
mod silence;
mod storm;
#[cfg(test)]
mod tests;
mod unknown;
pub mod version;
mod writes;

use leasehold::config::Timing;
use leasehold::leader::{FencingToken, Reason};
use run::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use version::{Cut, Version};

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum What {
    /// A process began, and wants this layout.
    Born {
        wants: Cut,
        timing: Timing,
    },
    /// It goes by other durations from here on.
    Configured {
        timing: Timing,
    },
    /// It was told to stop.
    Told,
    /// Its election has returned.
    Stopped,
    /// It was killed, or ended itself.
    Died,
    /// Work was done under a guard, from here on until then; while a process is suspended it does none. The guard was
    /// `given` then; `stubborn` work
    /// did not run under [`Guard::run`](leasehold::leader::Guard::run), and heeds nothing.
    Act {
        bucket: String,
        key: String,
        token: Option<FencingToken>,
        given: Duration,
        until: Duration,
        stubborn: bool,
    },
    /// A write of a Lease was carried out.
    Wrote(Wrote),
    /// A request that must not be sent.
    Sent {
        wrong: String,
    },
    /// A request reached the server.
    Asked(Asked),
    /// It was answered with this status; None: it was given up, or its connection broke.
    Answered {
        number: u64,
        code: Option<u16>,
    },
    /// A term began.
    Begun {
        bucket: String,
        token: Option<FencingToken>,
    },
    /// Its gate has opened.
    Promoted {
        bucket: String,
    },
    /// Its gate has shut.
    Shut {
        bucket: String,
    },
    /// Its promote failed, or hung.
    PromoteFailed {
        bucket: String,
    },
    /// It ended.
    Ended {
        bucket: String,
        token: Option<FencingToken>,
        reason: Reason,
    },
    /// The LeaderAware was called, and has returned.
    Aware {
        bucket: String,
        call: Call,
    },
    /// The world did this to the fleet.
    Fault(&'static str),
    /// A process that was frozen, or suspended, goes on: what it had decided to send goes out now.
    Woke,
    /// From here on nothing is being done to anybody, until [`What::Trouble`].
    Calm,
    Trouble,
    /// etcd was restored: what stands in it now.
    Restored {
        leases: Vec<Arc<Version>>,
    },
    /// Something a person should know: its code, a colon, the sentence.
    Notice(String),
}

/// A call of a LeaderAware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Promote,
    /// It returned Ok, or not.
    PromoteDone(bool),
    Demote,
    DemoteDone,
}

/// A request on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Counts up within a world.
    pub number: u64,
    pub kind: Kind,
    /// The Lease it names; none for a list or a watch.
    pub lease: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Get,
    List,
    Watch,
    Create,
    /// A PUT; of a bucket that names nobody and says that it was released.
    Put {
        releases: bool,
    },
    Delete,
}

impl Kind {
    pub fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Put { .. } | Self::Delete)
    }
}

/// A write that was carried out.
#[derive(Debug, Clone)]
pub struct Wrote {
    pub bucket: String,
    /// When the request reached the server: no sooner than it was sent, and here at once.
    pub arrived: Duration,
    pub write: Write,
    pub revision: u64,
    pub before: Option<Arc<Version>>,
    pub after: Option<Arc<Version>>,
}

/// What a write did, as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A Lease was made: empty and without a release record, or not.
    Made {
        bare: bool,
    },
    /// A PUT made a Lease anew.
    Remade,
    /// It names the writer, with another acquireTime than before.
    Took {
        duration: Duration,
    },
    /// It names the writer, as before.
    Renewed {
        duration: Duration,
    },
    /// It named the writer, and names nobody.
    Released,
    /// It is gone.
    Deleted,
    Other,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub at: Duration,
    pub replica: Arc<str>,
    pub what: What,
}

/// Shared by all of a world.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Vec<Entry>>>);

impl History {
    pub fn add(&self, at: Duration, replica: &str, what: What) {
        self.0.lock().expect("whole").push(Entry { at, replica: replica.into(), what });
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.0.lock().expect("whole").clone()
    }

    /// Everything that breaks a rule of the design.
    pub fn violations(&self) -> Vec<Violation> {
        let entries = self.0.lock().expect("whole");
        let run = Run::of(&entries);
        let rules: [fn(&Run<'_>) -> Vec<Violation>; 10] = [
            overlap::check,
            deadline::check,
            writes::check,
            silence::check,
            unknown::check,
            order::check,
            layout::check,
            fencing::check,
            live::check,
            storm::check,
        ];
        rules.iter().flat_map(|rule| rule(&run)).collect()
    }

    /// When every bucket must have a holder, if from here on the world is left alone.
    pub fn due(&self, now: Duration) -> Duration {
        live::due(&self.0.lock().expect("whole"), now)
    }

    pub fn pending(&self) -> String {
        live::pending(&self.0.lock().expect("whole"))
    }

    /// What was done to the fleet.
    pub fn faults(&self) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for e in self.0.lock().expect("whole").iter() {
            if let What::Fault(kind) = e.what {
                *kinds.entry(kind).or_default() += 1;
            }
        }
        kinds
    }

    /// The names of all Leases that were ever written.
    pub fn leases(&self) -> BTreeSet<String> {
        let entries = self.0.lock().expect("whole");
        let name = |e: &Entry| if let What::Wrote(w) = &e.what { Some(w.bucket.clone()) } else { None };
        entries.iter().filter_map(name).collect()
    }

    /// The same for two runs in which the same happened at the same times.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for e in self.0.lock().expect("whole").iter() {
            format!("{e:?}").hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// A rule that was broken.
#[derive(Debug, Clone)]
pub struct Violation(pub &'static str, pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}
