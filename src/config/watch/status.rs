//! What is in force, and what became of the edits so far.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::config::{Config, Parsed, Warning};

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The variable K_LEADER_ELECTION_CONFIG.
    Variable,
    /// The program itself.
    Code,
    /// A ConfigMap, whether it is there or not.
    ConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable => f.write_str("K_LEADER_ELECTION_CONFIG"),
            Self::Code => f.write_str("the program"),
            Self::ConfigMap { namespace, name } => write!(f, "ConfigMap {namespace}/{name}"),
        }
    }
}

/// What metrics and /readyz?verbose show of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Where it comes from.
    pub origin: Origin,
    /// Whether the ConfigMap is there; false for another origin too.
    pub present: bool,
    /// Grows by one each time another configuration comes into force; 1 at the start.
    pub generation: u64,
    /// Edits of which at least a part came into force.
    pub applied: u64,
    /// Edits of which at least a part was refused.
    pub refused: u64,
    /// Why the ConfigMap as it stands now is not in force, or not all of it; None while it is.
    pub refusal: Option<String>,
    /// Why the ConfigMap cannot be watched; None while it can.
    pub watch_error: Option<String>,
    /// How often reading, listing or watching it failed.
    pub watch_failures: u64,
    /// What in the ConfigMap as it stands now has no effect.
    pub warnings: Vec<Warning>,
}

/// The configuration in force, and its [`Status`]. Clones share it.
#[derive(Clone, Debug)]
pub struct ConfigWatch(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: watch::Sender<Arc<Config>>,
    status: watch::Sender<Arc<Status>>,
}

impl ConfigWatch {
    /// A configuration made in code, which never changes.
    pub fn fixed(config: Config) -> Self {
        Self::begin(Parsed { config, warnings: Vec::new() }, Origin::Code, false)
    }

    pub(super) fn begin(parsed: Parsed, origin: Origin, present: bool) -> Self {
        let status = Status {
            origin,
            present,
            generation: 1,
            applied: 0,
            refused: 0,
            refusal: None,
            watch_error: None,
            watch_failures: 0,
            warnings: parsed.warnings,
        };
        Self(Arc::new(Shared {
            config: watch::Sender::new(Arc::new(parsed.config)),
            status: watch::Sender::new(Arc::new(status)),
        }))
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.0.config.borrow().clone()
    }

    /// Follows the configuration in force. The receiver's `changed` fails only once every ConfigWatch and its
    /// [`Watching`](super::Watching) is gone.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Config>> {
        self.0.config.subscribe()
    }

    /// How it came to that.
    pub fn status(&self) -> Arc<Status> {
        self.0.status.borrow().clone()
    }

    /// Follows the status.
    pub fn subscribe_status(&self) -> watch::Receiver<Arc<Status>> {
        self.0.status.subscribe()
    }

    pub(super) fn put_in_force(&self, config: Config) {
        self.0.config.send_replace(Arc::new(config));
    }

    /// Changes the status; who follows it is woken only if that made a difference.
    pub(super) fn note(&self, change: impl FnOnce(&mut Status)) {
        self.0.status.send_if_modified(|status| {
            let mut new = Status::clone(status);
            change(&mut new);
            let differs = new != **status;
            if differs {
                *status = Arc::new(new);
            }
            differs
        });
    }
}
