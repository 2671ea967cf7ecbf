//! Replicas of leasehold and of client-go on one set of Leases, on a real kube-apiserver: what each writes the other reads,
//! each waits as long as it has to for the other, and no two replicas of leasehold are ever on one bucket, whatever client-go
//! does.
//!
//! ```text
//! test/interop/build                                    # client-go's elector, twice
//! export LEASEHOLD_E2E_KUBECONFIG=$(hack/apiserver/up)
//! cargo build --bin leasehold --example interop_replica
//! cargo test --test interop -- --test-threads 30        # they wait more than they work
//! ```
//!
//! Without these the tests say that they are skipped; with LEASEHOLD_E2E=require they fail then. `hack/compare` runs the comparison.
#![allow(missing_docs, unreachable_pub, reason = "a test")]
#![allow(clippy::pedantic, reason = "a test reads best short")]

mod cluster;
mod compare;
mod fleet;
mod log;
#[path = "../support/proxy.rs"]
mod proxy;
mod scenes;

use std::path::{Path, PathBuf};

/// Where test/interop/build puts what it builds.
pub(crate) fn go_programs() -> PathBuf {
    std::env::var_os("LEASEHOLD_INTEROP_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("test/interop/out"), PathBuf::from)
}

/// The kubeconfig, if all that is needed is here. Else says what is missing.
pub(crate) fn kubeconfig() -> Option<PathBuf> {
    let skip = |why: &str| {
        use std::io::Write as _;
        // Past libtest, which shows what a test prints only if it fails.
        let _ = writeln!(std::io::stderr(), "SKIPPED, interop: {why}");
        let required = std::env::var("LEASEHOLD_E2E").is_ok_and(|how| how == "require");
        assert!(!required, "LEASEHOLD_E2E=require, and it was skipped: {why}");
        None
    };
    let Some(kubeconfig) = std::env::var_os("LEASEHOLD_E2E_KUBECONFIG") else {
        return skip(
            "LEASEHOLD_E2E_KUBECONFIG is not set: it names the kubeconfig of an API server (hack/apiserver/up starts one)",
        );
    };
    if ["elector-0.20", "elector-0.32"].iter().any(|p| !go_programs().join(p).exists()) {
        return skip("client-go's electors are not built: test/interop/build does");
    }
    Some(kubeconfig.into())
}
