//! What is read at the moment of a scrape.

use crate::adapter::terms::Terms;
use crate::clock::{Instant, SharedClock};
use crate::leader::Leadership;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;
use std::sync::Arc;

/// What became of the configuration since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfigCounts {
    /// Edits that took effect.
    pub applied: u64,
    /// Edits that were refused.
    pub refused: u64,
    /// Reads, lists and watches of the ConfigMap that failed.
    pub watch_failures: u64,
}

/// Tells what became of the configuration; asked at each scrape.
pub type Edits = Arc<dyn Fn() -> ConfigCounts + Send + Sync>;

/// Where the present is read from.
#[derive(Clone)]
pub(in crate::adapter) struct Now {
    pub(in crate::adapter) terms: Terms,
    pub(in crate::adapter) leadership: Leadership,
    pub(in crate::adapter) clock: SharedClock,
    pub(in crate::adapter) edits: Option<Edits>,
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Now").finish_non_exhaustive()
    }
}

/// Seconds from `now` to `deadline`; negative where it has passed, infinite where there is none.
fn seconds_to(deadline: Instant, now: Instant) -> f64 {
    if deadline.as_nanos() == u64::MAX {
        f64::INFINITY
    } else if deadline >= now {
        deadline.since(now).as_secs_f64()
    } else {
        -now.since(deadline).as_secs_f64()
    }
}

impl Collector for Now {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name, help, unit, value: Option<f64>| {
            let gauge = ConstGauge::new(value.unwrap_or_default());
            let metric = encoder.encode_descriptor(name, help, unit, gauge.metric_type())?;
            // Without a sample rather than with a wrong one.
            if value.is_some() { gauge.encode(metric) } else { Ok(()) }
        };
        let held = self.leadership.held().len();
        gauge("buckets_held", "Buckets on whose keys this replica may act now.", None, Some(held as f64))?;
        let guards: u64 = self.leadership.terms().iter().map(crate::leader::Term::guards_out).sum();
        gauge("guards_out", "Guards that are out: acts under way.", None, Some(guards as f64))?;
        let now = self.clock.now();
        let nearest = self.terms.all().values().map(|held| seconds_to(held.deadline, now)).reduce(f64::min);
        gauge(
            "deadline",
            "Time to the nearest deadline of a term of this replica; negative where a term is past it and has not ended, +Inf without Leases.",
            Some(&Unit::Seconds),
            nearest,
        )?;
        let counts = self.edits.as_ref().map_or_else(ConfigCounts::default, |edits| edits());
        let ConfigCounts { applied, refused, watch_failures } = counts;
        let kind = ConstCounter::new(applied).metric_type();
        let mut family = encoder.encode_descriptor(
            "config_edits",
            "Edits of the configuration, by whether they took effect.",
            None,
            kind,
        )?;
        for (result, count) in [("applied", applied), ("refused", refused)] {
            let labels = [("result", result)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        let failures = ConstCounter::new(watch_failures);
        let help = "Reads, lists and watches of the ConfigMap that failed.";
        failures.encode(encoder.encode_descriptor("config_watch_failures", help, None, failures.metric_type())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_a_sign_and_an_infinity() {
        let at = Instant::from_nanos;
        let same = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 || a.to_bits() == b.to_bits(), "{a} {b}");
        same(seconds_to(at(3_500_000_000), at(1_000_000_000)), 2.5);
        same(seconds_to(at(1_000_000_000), at(3_500_000_000)), -2.5);
        same(seconds_to(at(u64::MAX), at(1)), f64::INFINITY);
    }
}
