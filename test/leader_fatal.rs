//! What cannot be stopped ends the process, with an exit code of its own, also where saying so is not possible.
//!
//! Each test starts this program again as a child that holds a term, keeps a guard in blocking code and loses the term.

use leasehold::bucket::{BucketSet, Hash};
use leasehold::clock::{Boottime, Clock};
use leasehold::leader::fatal::{EXIT_CANNOT_STOP, exits};
use leasehold::leader::observe::Observers;
use leasehold::leader::tenure::{Limits, Surroundings, Tenure, Told};
use leasehold::leader::{Deadline, Leadership, Reason, Term, TermParts};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const ROLE: &str = "LEASEHOLD_TEST_CHILD";

fn start(role: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the child starts")
}

/// How the child ended, in at most half a minute; it is killed after that.
fn ended(mut child: Child) -> ExitStatus {
    let (send, status) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let pid = rustix::process::Pid::from_child(&child);
        scope.spawn(move || {
            if status.recv_timeout(Duration::from_secs(30)).is_err() {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        });
        let status = child.wait().expect("the child can be waited for");
        let _ = send.send(());
        status
    })
}

#[test]
fn a_guard_that_cannot_be_stopped_ends_the_process_and_says_so() {
    let mut child = start("plain");
    let mut stderr = child.stderr.take().expect("piped");
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).map(|_| said)
    });
    assert_eq!(ended(child).code(), Some(EXIT_CANNOT_STOP));
    let said = said.join().expect("read").expect("text");
    assert!(said.contains("leasehold: bucket feeds.adapter.00-of-01: 1 guard(s) still out"), "{said}");
}

/// Whoever hangs may hang in writing the log: then nobody else can write either.
#[test]
fn it_ends_though_standard_error_is_stuck() {
    assert_eq!(ended(start("stuck")).code(), Some(EXIT_CANNOT_STOP));
}

#[test]
fn it_ends_though_standard_error_is_gone() {
    let mut child = start("gone");
    drop(child.stderr.take());
    assert_eq!(ended(child).code(), Some(EXIT_CANNOT_STOP));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the tests above; alone it does nothing"]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let renew_deadline = Duration::from_millis(300);
    let term = Term::new(TermParts {
        bucket: BucketSet::new(Hash::Knative, ["feeds.adapter.00-of-01"]).expect("one name").bucket(0),
        token: None,
        deadline: Deadline::at(Boottime.now() + renew_deadline),
        clock: Arc::new(Boottime),
        saved: None,
    });
    let limits = Limits {
        promote: renew_deadline,
        drain_timeout: Duration::from_hours(1),
        lease_duration: Duration::from_millis(400),
        renew_deadline,
    };
    let around = Surroundings {
        aware: Arc::new(Leadership::new()),
        clock: Arc::new(Boottime),
        observer: Arc::new(Observers::default()),
        on_fatal: exits(),
        told,
    };
    let tenure = Tenure::begin(term, limits, around);
    assert!(matches!(hears.recv().await, Some(Told::Promoted(_))));
    let guard = tenure.term().guard().expect("the term is current");
    let stuck = role == "stuck";
    let (send, holds) = mpsc::channel();
    std::thread::spawn(move || {
        let _guard = guard;
        let _writes = stuck.then(|| std::io::stderr().lock());
        send.send(()).expect("somebody waits");
        loop {
            std::thread::park();
        }
    });
    holds.recv().expect("it holds on");
    tenure.end(Reason::Lost);
    std::future::pending::<()>().await;
}
