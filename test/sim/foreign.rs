//! A client-go program that competes for the buckets of a queue, by client-go's rules (tools/leaderelection): it polls, it
//! makes a Lease that is gone with itself as the holder, it takes an empty one at once and another's when it has not changed
//! for its own lease-duration, it keeps annotations, and it releases before it stops.

use crate::world::{COMPONENT, NAMESPACE, QUEUE, World};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;
use leasehold::config::Timing;
use std::time::Duration;
use tokio::time::Instant;

/// One that runs for `life`, and then releases, or dies.
pub fn foreign(world: &World, number: usize, life: Duration, releases: bool) {
    let client = kube::Client::new(world.server.client(&format!("go{number}")), NAMESPACE);
    let api: Api<Lease> = Api::namespaced(client, NAMESPACE);
    for i in 0..world.buckets {
        let name = leasehold::bucket::lease_name(&format!("{COMPONENT}.{QUEUE}"), i, world.buckets);
        let go = Go { api: api.clone(), name, me: format!("go-{number}"), timing: world.timing, seen: None };
        tokio::spawn(go.run(life, releases));
    }
}

struct Go {
    api: Api<Lease>,
    name: String,
    me: String,
    timing: Timing,
    /// The spec that was seen, and since when.
    seen: Option<(LeaseSpec, Instant)>,
}

impl Go {
    async fn run(mut self, life: Duration, releases: bool) {
        let ends = Instant::now() + life;
        while Instant::now() < ends {
            let _ = tokio::time::timeout(self.timing.renew_deadline, self.try_once()).await;
            tokio::time::sleep(self.timing.retry_period).await;
        }
        if releases {
            let _ = tokio::time::timeout(self.timing.renew_deadline, self.release()).await;
        }
    }

    async fn try_once(&mut self) -> kube::Result<()> {
        let now = Some(MicroTime(wall()));
        let seconds = i32::try_from(self.timing.lease_duration.as_secs()).ok();
        let mine = |transitions: i32, acquired: Option<MicroTime>| LeaseSpec {
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: seconds,
            lease_transitions: Some(transitions),
            acquire_time: acquired,
            renew_time: now.clone(),
            ..LeaseSpec::default()
        };
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(mine(0, now.clone())) };
            self.api.create(&PostParams::default(), &lease).await?;
            return Ok(());
        };
        let spec = lease.spec.clone().unwrap_or_default();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != spec) {
            self.seen = Some((spec.clone(), Instant::now()));
        }
        let since = self.seen.as_ref().map_or_else(Instant::now, |(_, at)| *at);
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if !holder.is_empty() && holder != self.me && since.elapsed() < self.timing.lease_duration {
            return Ok(());
        }
        let before = spec.lease_transitions.unwrap_or(0);
        lease.spec =
            Some(if holder == self.me { mine(before, spec.acquire_time) } else { mine(before + 1, now.clone()) });
        lease.metadata.managed_fields = None;
        let put = self.api.replace(&self.name, &PostParams::default(), &lease).await?;
        self.seen = Some((put.spec.unwrap_or_default(), Instant::now()));
        Ok(())
    }

    async fn release(&self) -> kube::Result<()> {
        let mut lease = self.api.get(&self.name).await?;
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.me) {
            return Ok(());
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(wall()));
        spec.acquire_time = Some(MicroTime(wall()));
        lease.metadata.managed_fields = None;
        self.api.replace(&self.name, &PostParams::default(), &lease).await?;
        Ok(())
    }
}

/// A wall clock: each look shows a later time.
fn wall() -> k8s_openapi::jiff::Timestamp {
    use std::sync::atomic::{AtomicI64, Ordering};
    static LOOKS: AtomicI64 = AtomicI64::new(0);
    let look = LOOKS.fetch_add(1, Ordering::Relaxed);
    k8s_openapi::jiff::Timestamp::from_microsecond(1_900_000_000_000_000 + look).expect("valid")
}
