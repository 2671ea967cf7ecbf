//! What a run is asked to do, as plain data.

use crate::config::StrategyKind;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The component of `leasehold ping`: Go's, so that its Leases are the same.
pub const PING_COMPONENT: &str = "pingsource-mt-adapter";
/// The queue of `leasehold ping`: Go's, so that its Leases are the same.
pub const PING_QUEUE: &str = "knative.dev.eventing.pkg.adapter.mtping.Reconciler";

/// Which trouble is made for the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Chaos {
    /// None.
    None,
    /// SIGTERM; replaced a second after its end.
    Term,
    /// SIGKILL; replaced a second after its end.
    Kill,
    /// SIGSTOP for three lease-durations, then SIGCONT.
    Pause,
    /// SIGKILL, and the same Pod (POD_NAME and POD_UID) again at once.
    Restart,
}

impl Chaos {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Term, Self::Kill, Self::Pause, Self::Restart];

    /// The word on the command line and in the report.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Term => "term",
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Restart => "restart",
        }
    }
}

impl fmt::Display for Chaos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Chaos {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|c| c.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no trouble: expected none, term, kill, pause or restart"))
    }
}

/// The word for a strategy on the command line and in the report.
pub const fn strategy_name(strategy: StrategyKind) -> &'static str {
    match strategy {
        StrategyKind::Standard => "standard",
        StrategyKind::Balanced => "balanced",
        StrategyKind::StatefulSet => "statefulset",
        StrategyKind::Unopposed => "unopposed",
    }
}

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many replicas.
    pub replicas: u32,
    /// How many buckets.
    pub buckets: u32,
    /// How they are shared out.
    pub strategy: StrategyKind,
    /// How many sources that tick every second.
    pub sources: u32,
    /// For how long a record is honoured.
    pub lease_duration: Duration,
    /// From the send of a renewal to its deadline.
    pub renew_deadline: Duration,
    /// Between renewals.
    pub retry_period: Duration,
    /// Which trouble.
    pub chaos: Chaos,
    /// From one trouble to the next.
    pub every: Duration,
    /// How long ticks are expected.
    pub length: Duration,
    /// Whom trouble hits.
    pub seed: u64,
    /// What is run N times; none for this program's own `ping`.
    pub command: Option<Vec<OsString>>,
    /// The component whose Leases `leasehold init` makes.
    pub component: String,
    /// The queue whose Leases `leasehold init` makes.
    pub queue: String,
    /// Show what the replicas write.
    pub verbose: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            replicas: 3,
            buckets: 10,
            strategy: StrategyKind::Standard,
            sources: 40,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            chaos: Chaos::None,
            every: Duration::from_secs(5),
            length: Duration::from_mins(1),
            seed: 0,
            command: None,
            component: PING_COMPONENT.to_owned(),
            queue: PING_QUEUE.to_owned(),
            verbose: false,
        }
    }
}

/// What cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A number that must not be zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A duration that must not be zero.
    #[error("{0} must be longer than zero")]
    NoTime(&'static str),
    /// Durations out of order.
    #[error(
        "lease-duration {lease:?} must be longer than renew-deadline {renew:?}, and that longer than retry-period {retry:?}"
    )]
    Order {
        /// lease-duration.
        lease: Duration,
        /// renew-deadline.
        renew: Duration,
        /// retry-period.
        retry: Duration,
    },
    /// Trouble without anybody to take over.
    #[error(
        "strategy statefulset gives bucket i to replica i, so {buckets} buckets need as many replicas, not {replicas}"
    )]
    Ordinals {
        /// How many buckets.
        buckets: u32,
        /// How many replicas.
        replicas: u32,
    },
}

impl Options {
    /// What cannot be run at all. The rules of a configuration (renew-deadline at most 0.8 of lease-duration and the
    /// like) are left to the replicas, who read it from a ConfigMap and say what is wrong.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), OptionsError> {
        for (name, value) in [("--replicas", self.replicas), ("--buckets", self.buckets)] {
            if value == 0 {
                return Err(OptionsError::Zero(name));
            }
        }
        for (name, value) in [("--every", self.every), ("--for", self.length), ("--retry-period", self.retry_period)] {
            if value.is_zero() {
                return Err(OptionsError::NoTime(name));
            }
        }
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        if lease <= renew || renew <= retry {
            return Err(OptionsError::Order { lease, renew, retry });
        }
        if self.strategy == StrategyKind::StatefulSet && self.buckets > self.replicas {
            return Err(OptionsError::Ordinals { buckets: self.buckets, replicas: self.replicas });
        }
        Ok(())
    }

    /// The data of the config-leader-election ConfigMap of the run.
    pub fn config_map(&self) -> BTreeMap<String, String> {
        [
            ("lease-duration", go_duration(self.lease_duration)),
            ("renew-deadline", go_duration(self.renew_deadline)),
            ("retry-period", go_duration(self.retry_period)),
            ("buckets", self.buckets.to_string()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }

    /// How many buckets have to be held before ticks are expected: `unopposed` has one, whatever is asked for.
    pub fn buckets_to_hold(&self) -> usize {
        if self.strategy == StrategyKind::Unopposed { 1 } else { self.buckets as usize }
    }

    /// Whether the strategy keeps Leases, so that `leasehold init` has something to make.
    pub fn has_leases(&self) -> bool {
        matches!(self.strategy, StrategyKind::Standard | StrategyKind::Balanced)
    }
}

/// A duration as Go's `time.ParseDuration` reads it, without loss.
pub fn go_duration(d: Duration) -> String {
    match d.as_nanos() {
        n if n % 1_000_000_000 == 0 => format!("{}s", d.as_secs()),
        n if n % 1_000_000 == 0 => format!("{}ms", d.as_millis()),
        n => format!("{n}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_run() {
        assert_eq!(Options::default().check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_run_is_named() {
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check().map_err(|e| e.to_string())
        };
        assert_eq!(with(|o| o.replicas = 0), Err("--replicas must be at least 1".to_owned()));
        assert_eq!(with(|o| o.buckets = 0), Err("--buckets must be at least 1".to_owned()));
        assert_eq!(with(|o| o.every = Duration::ZERO), Err("--every must be longer than zero".to_owned()));
        assert_eq!(with(|o| o.length = Duration::ZERO), Err("--for must be longer than zero".to_owned()));
        assert!(with(|o| o.renew_deadline = o.lease_duration).is_err_and(|e| e.contains("15s")));
        assert!(with(|o| o.strategy = StrategyKind::StatefulSet).is_err_and(|e| e.contains("10 buckets")));
    }

    #[test]
    fn durations_are_written_as_go_reads_them() {
        let written = |ms| go_duration(Duration::from_millis(ms));
        assert_eq!((written(15_000), written(1_500), written(0)), ("15s".into(), "1500ms".into(), "0s".into()));
        assert_eq!(go_duration(Duration::from_nanos(1)), "1ns");
    }

    #[test]
    fn troubles_are_read_by_their_own_names() {
        for chaos in Chaos::ALL {
            assert_eq!(chaos.as_str().parse(), Ok(chaos));
        }
        assert!("Kill".parse::<Chaos>().is_err_and(|e| e.contains("pause")));
    }
}
