//! leasehold on a real kube-apiserver: what the server does with Leases, what a replica makes of it, and what becomes of a fleet
//! when permissions, connections or the server itself go away and come back (docs/real-server.md).
//!
//! ```text
//! cargo test --test e2e                              # with a kube-apiserver and etcd of KUBEBUILDER_ASSETS, PATH or hack/apiserver/build
//! LEASEHOLD_E2E=require cargo test --test e2e        # fails where there are none
//! ```
//!
//! LEASEHOLD_E2E_KUBECONFIG names a server to use instead of starting one. The replicas are this program, run again.
#![allow(missing_docs, unreachable_pub, reason = "a test")]
#![allow(clippy::pedantic, reason = "a test reads best short")]

mod chaos;
mod fleet;
mod harness;
mod leases;
#[path = "../interop/log.rs"]
#[allow(dead_code, reason = "interop needs more of it")]
mod log;
mod network;
mod outage;
mod plain;
#[path = "../support/proxy.rs"]
mod proxy;
mod rbac;
#[path = "../interop/replica.rs"]
mod replica;
mod server;
mod space;
mod validation;

use harness::{Scene, scenes};
use std::process::ExitCode;

/// The longest first.
const SCENES: &[Scene] = scenes! {
    outage { server_stopped_and_started, server_hangs }
    chaos { pause, kill, restart, term, none }
    rbac { list, get, create, update, watch, config_map_watch, config_map_list, config_map_get, init }
    network { black_hole, compaction, cut, delay }
    leases {
        facts,
        paths,
        a_write_that_changes_nothing_is_no_renewal,
        a_lease_made_anew_is_a_loss,
    }
    validation { names, names_before_any_request, durations, transitions, checkpoints, a_duration_that_is_none }
};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(fleet::REPLICA) {
        // However the tests end, their replicas end with them. (Linux looks at the thread that started them: the main one.)
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        return replica::main();
    }
    // An error only means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(tokio::task::LocalSet::new().run_until(harness::run(SCENES)))
}
