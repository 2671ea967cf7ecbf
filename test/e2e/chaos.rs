//! `leasehold dev` on the real server, with each of its troubles: its own judge finds nothing.

use crate::harness::{Verdict, World};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// Runs it for `length`. hack/chaos runs the same for minutes.
async fn run(world: World, chaos: &str, length: &str) -> Verdict {
    let server = world.shared().await?;
    let report = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{chaos}-{}.json", std::process::id()));
    let mut dev = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    dev.args(["dev", "--replicas", "3", "--buckets", "4", "--sources", "8", "--every", "2s", "--chaos", chaos]);
    // Between the deadline and the end of the lease is what an event may be late on a busy machine.
    dev.args(["--lease-duration", "4s", "--renew-deadline", "2s", "--retry-period", "400ms", "--for", length]);
    dev.arg("--kubeconfig").arg(&server.kubeconfig).arg("--report").arg(&report);
    let done = dev.stdin(Stdio::null()).kill_on_drop(true).output().await.expect("leasehold starts");
    let said = format!("{}\n{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{said}");
    let judged: Value = serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("JSON");
    for zero in ["missed", "doubled", "late", "untold"] {
        // A line that a process had not written when it was killed is lost.
        if zero != "untold" || matches!(chaos, "none" | "term") {
            assert_eq!(judged["events"][zero], json!(0), "{zero}: {said}\n{judged:#}");
        }
    }
    assert_eq!((&judged["overlaps"], &judged["unasked_exits"]), (&json!(0), &json!(0)), "{judged:#}");
    assert_eq!(judged["verdict"], json!("passed"));
    assert!(judged["events"]["expected"].as_u64().is_some_and(|n| n > 0), "{judged:#}");
    let troubles = judged["troubles"].as_u64().expect("a number");
    assert_eq!(troubles > 0, chaos != "none", "{judged:#}");
    let _ = std::fs::remove_file(&report);
    Ok(())
}

pub(crate) async fn none(world: World) -> Verdict {
    run(world, "none", "8s").await
}

pub(crate) async fn term(world: World) -> Verdict {
    run(world, "term", "10s").await
}

pub(crate) async fn kill(world: World) -> Verdict {
    run(world, "kill", "14s").await
}

pub(crate) async fn restart(world: World) -> Verdict {
    run(world, "restart", "14s").await
}

pub(crate) async fn pause(world: World) -> Verdict {
    run(world, "pause", "18s").await
}
