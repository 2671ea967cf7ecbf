//! What of a run is shown.

use super::Run;
use crate::clock::Instant;
use crate::dev::fleet::conductor::Phase;
use crate::dev::fleet::options::{Chaos, strategy_name};
use crate::dev::fleet::screen::{BucketRow, ReplicaRow, View};

impl Run<'_> {
    pub(super) fn title(&self) -> String {
        let o = self.options;
        let every = if o.chaos == Chaos::None { String::new() } else { format!(" every {:?}", o.every) };
        format!(
            "{} replicas, {} buckets, {}, {} sources, chaos {}{every}, for {:?}, seed {}",
            o.replicas,
            o.buckets,
            strategy_name(o.strategy),
            o.sources,
            o.chaos,
            o.length,
            o.seed
        )
    }

    /// News at once, the state of things when that is due or `wanted`.
    pub(super) fn show(&mut self, now: Instant, wanted: bool) {
        let said = self.conductor.said();
        for (at, text) in &said[self.said..] {
            self.screen.say(*at, text);
        }
        self.said = said.len();
        self.rates.look(now);
        if wanted || self.screen.due(now) {
            let view = self.view(now);
            self.screen.show(&view, now);
        }
    }

    fn view(&self, now: Instant) -> View {
        let holders = self.conductor.holders();
        let left = |until: Instant| format!("{:.0} s left", until.since(now).as_secs_f64());
        let phase = match (self.conductor.phase(), self.conductor.window()) {
            (Phase::Running, Some((_, until))) => format!("running, {}", left(until)),
            (Phase::Starting | Phase::Running, _) => "starting".to_owned(),
            (Phase::Settling, _) => format!("settling, {} ticks outstanding", self.history.ticks.outstanding()),
            (Phase::Stopping, _) => "stopping".to_owned(),
            (Phase::Done, _) => "stopped".to_owned(),
        };
        let replicas = self.conductor.slots().iter().map(|slot| ReplicaRow {
            name: slot.pod.name.clone(),
            state: slot.state.word(),
            holds: slot.state.process().map_or(0, |process| holders.held_by(process, now)),
        });
        let never = Instant::from_nanos(u64::MAX);
        let buckets = holders.at(now).map(|(name, holding)| BucketRow {
            name: name.to_owned(),
            holder: holding.map(|h| {
                let holder = self.history.process(h.process).map_or_else(String::new, |p| p.name.clone());
                (holder, now.since(h.begun), (h.deadline != never).then(|| h.deadline.since(now)))
            }),
            rate: self.rates.last.get(name).copied().unwrap_or(0.0),
        });
        View {
            title: self.title(),
            phase,
            replicas: replicas.collect(),
            buckets: buckets.collect(),
            rate: self.rates.last_all,
            events: self.history.ticks.total(),
            of: self.options.buckets_to_hold(),
        }
    }
}
