//! What is made ready before the first replica starts.

use super::Heard;
use crate::clock::SharedClock;
use crate::dev::fleet::cluster::{Cluster, OwnRequests, prepare, watch_leases};
use crate::dev::fleet::error::{FleetError, local};
use crate::dev::fleet::options::Options;
use crate::dev::fleet::replica::{self, Environment, Pod, Program, Shared};
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// The ConfigMap, and `leasehold init`.
pub(super) async fn make_ready(options: &Options, cluster: &dyn Cluster, shared: &Shared) -> Result<(), FleetError> {
    prepare(cluster, options).await?;
    if options.has_leases() {
        initialise(options, shared).await.map_err(FleetError::Init)?;
    }
    Ok(())
}

/// `leasehold init`: a person's word that nothing runs in this namespace, so that nobody waits at the first start.
async fn initialise(options: &Options, shared: &Shared) -> io::Result<()> {
    let args = ["init", "--component", &options.component, "--queue", &options.queue];
    let program = Program { file: std::env::current_exe()?.into(), args: args.iter().map(Into::into).collect() };
    let pod = Pod { name: "leasehold-init".to_owned(), uid: uuid::Uuid::new_v4().to_string() };
    replica::run_once(&program, &Environment::of_process(shared, &pod, None)).await
}

/// What is run N times.
pub(super) fn program(options: &Options, shared: &Shared) -> Result<Program, FleetError> {
    if let Some((file, args)) = options.command.as_deref().and_then(<[_]>::split_first) {
        return Ok(Program { file: file.clone(), args: args.to_vec() });
    }
    let file = std::env::current_exe().map_err(local("cannot find this program's own file"))?;
    let args = vec!["ping".into(), "--file".into(), shared.sources.clone().into(), "--fence".into()];
    Ok(Program { file: file.into(), args })
}

/// The fleet's own watch, ended when the guard is dropped.
pub(super) fn watching(
    cluster: &dyn Cluster,
    clock: &SharedClock,
    own: &Arc<OwnRequests>,
    tell: &mpsc::UnboundedSender<Heard>,
) -> AbortOnDropHandle<()> {
    let (client, namespace) = (cluster.client(), cluster.namespace().to_owned());
    let (clock, own, tell) = (Arc::clone(clock), Arc::clone(own), tell.clone());
    AbortOnDropHandle::new(tokio::spawn(async move {
        watch_leases(client, &namespace, &*clock, &own, |seen| drop(tell.send(Heard::Lease(seen)))).await;
    }))
}
