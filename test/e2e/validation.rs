//! What the server accepts in a Lease, held against what leasehold accepts before it sends anything.

use crate::fleet::{Fleet, SLACK, Timing};
use crate::harness::{Verdict, World};
use crate::leases::{BOUND, body, client, layout, now};
use crate::proxy::Proxy;
use crate::space::Space;
use leasehold::bucket::{BucketSet, Hash, check_lease_name};
use leasehold::clock::{Boottime, Clock};
use leasehold::leader::{CheckpointError, Deadline, FencingToken, MAX_CHECKPOINT, Saved, Term, TermParts};
use leasehold::lease::Draft;
use serde_json::json;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;

const SECOND: Duration = Duration::from_secs(1);

/// A name is refused here exactly where the server refuses it.
pub(crate) async fn names(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "names").await;
    let (longest, too_long) = ("a".repeat(253), "a".repeat(254));
    let long_label = format!("{}.b", "a".repeat(64));
    let names = [
        "a",
        "0",
        "a-b",
        "a.b",
        "a.0-of-1",
        "A",
        "a_b",
        "-a",
        "a-",
        ".a",
        "a.",
        "a..b",
        "a.-b",
        "a b",
        "a/b",
        "ä",
        "",
        " ",
        "a\n",
        "a:b",
        &longest,
        &too_long,
        &long_label,
    ];
    for name in names {
        let ours = check_lease_name(name);
        let path = format!("{}?dryRun=All", space.leases(""));
        let (code, answer) = space.request("POST", &path, Some(&body(name, json!({})))).await;
        assert_eq!(ours.is_ok(), code == 201, "{name:?}: here {ours:?}, there {code} {answer}");
    }
    space.close().await;
    Ok(())
}

/// A component whose Leases could not be named: the process says so and ends, and has sent nothing.
pub(crate) async fn names_before_any_request(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "long").await;
    let proxy = Proxy::to(&space.server).await;
    let kubeconfig = space.user_kubeconfig(&proxy.address, "kubeconfig");
    let component = "c".repeat(240);
    let own = std::env::current_exe().expect("this program has a path");
    let leasehold = env!("CARGO_BIN_EXE_leasehold").into();
    for (program, arguments) in
        [(leasehold, vec!["init", "--queue", "adapter", "--component", &component]), (own, vec![crate::fleet::REPLICA])]
    {
        let mut command = Command::new(&program);
        let config =
            r#"{"Buckets":2,"LeaseDuration":15000000000,"RenewDeadline":10000000000,"RetryPeriod":2000000000}"#;
        command.args(&arguments).env("KUBECONFIG", &kubeconfig).env("SYSTEM_NAMESPACE", &space.namespace);
        command.env("K_LEADER_ELECTION_CONFIG", config).env("INTEROP_COMPONENT", &component);
        command.env("LEASEHOLD_PROBE_PORT", "0").env("LEASEHOLD_METRICS_PORT", "0").stdin(Stdio::null());
        let done = tokio::time::timeout(SLACK, command.kill_on_drop(true).output()).await.expect("it ends");
        let done = done.expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("253"), "{arguments:?}: {said}");
    }
    assert_eq!(proxy.accepted(), 0, "nothing was sent");
    space.close().await;
    Ok(())
}

/// leaseDurationSeconds: from 1 to 2147483647 there; from a second to a day here.
pub(crate) async fn durations(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "durations").await;
    let path = format!("{}?dryRun=All", space.leases(""));
    for (seconds, accepted) in [(0, false), (-1, false), (1, true), (2_147_483_647, true), (2_147_483_648_i64, false)] {
        let lease = body("d", json!({ "holderIdentity": "a", "leaseDurationSeconds": seconds }));
        let (code, answer) = space.request("POST", &path, Some(&lease)).await;
        assert_eq!(code == 201, accepted, "{seconds}: {code} {answer}");
    }
    // What can be configured is accepted there.
    let leases = client(&space);
    let mut stands = leases.create(&Draft::make("b", SECOND, None), BOUND).await.expect("made");
    for lease in [SECOND, Duration::from_hours(24), Duration::from_millis(1_500)] {
        let take = Draft::take(&stands, &format!("me_{}", lease.as_millis()), lease, &layout(), now());
        stands = leases.replace(&take, BOUND).await.expect("taken");
        let rounded_up = i64::try_from(lease.as_millis().div_ceil(1000)).expect("small");
        assert_eq!(stands.spec.duration, Some(rounded_up));
    }
    // What cannot be written into a Lease cannot be configured; nothing is made.
    for wrong in ["0s", "-1s", "2147483647s", "25h", "500ms"] {
        space.configure(&[("lease-duration", wrong), ("renew-deadline", "800ms"), ("retry-period", "100ms")]).await;
        let mut init = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        init.args(["init", "--queue", "adapter", "--component", "refused"]).env("KUBECONFIG", &space.kubeconfig);
        init.env("SYSTEM_NAMESPACE", &space.namespace).env_remove("K_LEADER_ELECTION_CONFIG").stdin(Stdio::null());
        let done = init.output().await.expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{wrong}: {said}");
        assert!(said.contains("lease-duration"), "{wrong}: {said}");
    }
    assert!(space.lease("refused.adapter").await.is_none());
    space.close().await;
    Ok(())
}

/// leaseTransitions is an int32: at its end it stands, and takes go on.
pub(crate) async fn transitions(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "transitions").await;
    let path = format!("{}?dryRun=All", space.leases(""));
    let above = body("t", json!({ "leaseTransitions": 2_147_483_648_i64 }));
    assert_ne!(space.request("POST", &path, Some(&above)).await.0, 201, "above int32");
    let most = body("t", json!({ "holderIdentity": "x", "leaseDurationSeconds": 1, "leaseTransitions": i32::MAX }));
    assert_eq!(space.request("POST", &space.leases(""), Some(&most)).await.0, 201);
    let leases = client(&space);
    let stands = leases.get("t", BOUND).await.expect("read").expect("it stands");
    let taken = leases.replace(&Draft::take(&stands, "me_1", SECOND, &layout(), now()), BOUND).await.expect("taken");
    assert_eq!(taken.spec.transitions, i64::from(i32::MAX));
    let released = leases.replace(&Draft::release(&taken, SECOND, None, now()), BOUND).await.expect("released");
    assert!(released.released().is_some(), "its release record counts");
    space.close().await;
    Ok(())
}

/// A checkpoint of 16 KiB rides on a renewal and on a release, whatever its bytes; a larger one is refused before any request.
pub(crate) async fn checkpoints(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "checkpoints").await;
    let leases = client(&space);
    let made = leases.create(&Draft::make("b", SECOND, None), BOUND).await.expect("made");
    let mut stands = leases.replace(&Draft::take(&made, "me_1", SECOND, &layout(), now()), BOUND).await.expect("taken");
    let token = Some(FencingToken::new(0, stands.revision));
    // Escaped twice, a quote or a control character is several bytes on the wire.
    for fill in ["x", "\"", "\\", "\u{1}", "ä"] {
        let position = fill.repeat(MAX_CHECKPOINT / fill.len());
        let saved = Saved { position, token };
        let renewal = Draft::renew(&stands, SECOND, &layout(), Some(saved.clone()), now());
        stands = leases.replace(&renewal, BOUND).await.unwrap_or_else(|e| panic!("{fill:?}: {e}"));
        assert_eq!(stands.saved.as_ref(), Some(&saved));
        assert_eq!(leases.get("b", BOUND).await.expect("read").expect("it stands").saved, Some(saved));
    }
    let saved = Some(Saved { position: "\u{1}".repeat(MAX_CHECKPOINT), token });
    leases.replace(&Draft::release(&stands, SECOND, saved, now()), BOUND).await.expect("released");

    let set = BucketSet::new(Hash::Knative, vec!["b".to_owned()]).expect("a bucket");
    let deadline = Deadline::at(Boottime.now() + SECOND);
    let parts = TermParts { bucket: set.bucket(0), token, deadline, clock: Arc::new(Boottime), saved: None };
    let term = Term::new(parts);
    assert_eq!(term.checkpoint().store(&"x".repeat(MAX_CHECKPOINT)), Ok(()));
    let over = MAX_CHECKPOINT + 1;
    assert_eq!(term.checkpoint().store(&"y".repeat(over)), Err(CheckpointError::TooLarge(over)));
    let pending = term.checkpoint().pending().expect("the one before");
    assert!(pending.1.position.starts_with('x'), "what was refused is not sent");
    space.close().await;
    Ok(())
}

/// A foreign holder whose record says 2147483647: that is no duration (rule S4), one's own and the grace are waited out.
pub(crate) async fn a_duration_that_is_none(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "forever").await;
    let mut fleet = Fleet::new(space, 1, Timing::SHORT).await;
    let name = fleet.buckets[0].clone();
    let mut held = fleet.lease(&name).await.expect("it stands");
    held["spec"]["holderIdentity"] = json!("go-1");
    held["spec"]["leaseDurationSeconds"] = json!(i32::MAX);
    held["spec"]["renewTime"] = json!("2026-01-01T00:00:00.000000Z");
    assert_eq!(fleet.request("PUT", &fleet.leases(&name), Some(&held)).await.0, 200);
    let from = Boottime.now().as_nanos();
    let one = fleet.start().await;
    let wait = Timing::SHORT.lease + Timing::SHORT.renew;
    fleet.all_acted_on(&[one], wait + SLACK).await;
    let acted = fleet.replicas[one].log().terms[0].from;
    let waited = Duration::from_nanos(acted.saturating_sub(from));
    assert!(waited >= wait, "acted after {waited:?}, and {wait:?} was due");
    fleet.close().await;
    Ok(())
}
