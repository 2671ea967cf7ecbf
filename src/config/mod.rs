//! Configuration (placeholder of the agreed shape until the real module is merged).
#![allow(missing_docs, clippy::all, clippy::pedantic)]
use std::collections::BTreeMap;
use std::time::Duration;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrategyKind {
    Standard,
    Balanced,
    StatefulSet,
    Unopposed,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    pub lease_duration: Duration,
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}
impl Timing {
    pub fn attempt_timeout(&self) -> Duration {
        (self.renew_deadline - self.retry_period) / 3
    }
    pub fn lease_seconds(&self) -> i32 {
        self.lease_duration.as_secs() as i32
    }
}
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub timing: Timing,
    pub buckets: u32,
    pub hash: crate::bucket::Hash,
    pub strategy: StrategyKind,
    pub prefix_map: BTreeMap<String, String>,
    pub identity: Option<String>,
    pub rebalance_delay: Duration,
    pub drain_timeout: Duration,
    pub foreign_grace: Option<Duration>,
    pub checkpoint_interval: Option<Duration>,
    pub fixed: bool,
}
impl Config {
    pub fn prefix(&self, component: &str, queue: &str) -> String {
        let p = format!("{component}.{queue}");
        self.prefix_map.get(&p).cloned().unwrap_or(p)
    }
}
