//! `leasehold dev` as a process: what becomes of its replicas when it is killed.
#![cfg(target_os = "linux")]
#![allow(clippy::pedantic, reason = "a test reads best short")]
#![allow(clippy::disallowed_methods, reason = "processes are watched from outside, in real time")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends it, whatever became of the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The parent and the state of a process; None where it is gone.
fn stat(pid: u32) -> Option<(u32, char)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    let state = rest.next()?.chars().next()?;
    Some((rest.next()?.parse().ok()?, state))
}

fn children(of: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("a /proc").filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(parent, _)| parent == of)).collect()
}

fn until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(t) = holds() {
            return t;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "not yet: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start() -> Ends {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    // Short durations: a replica whose API server is gone gives up after its lease-duration.
    let durations = ["--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "400ms"];
    command.args(["dev", "--for", "10m"]).args(durations).stdout(Stdio::piped()).stderr(Stdio::null());
    Ends(command.spawn().expect("it starts"))
}

/// kill -9, then none of these is left.
fn ends_with_its_fleet(mut fleet: Ends, replicas: &[u32]) {
    fleet.0.kill().expect("it runs");
    fleet.0.wait().expect("it ends");
    // A process that has ended may stay as a zombie where nobody waits for orphans.
    let gone = |pid: &u32| stat(*pid).is_none_or(|(_, state)| state == 'Z');
    until("no replica is left", || replicas.iter().all(gone).then_some(()));
}

#[test]
fn replicas_end_with_a_fleet_that_was_killed() {
    let mut fleet = start();
    let mut told = BufReader::new(fleet.0.stdout.take().expect("piped")).lines();
    told.find(|line| line.as_ref().is_ok_and(|l| l.contains("every bucket is held")))
        .expect("it starts")
        .expect("text");
    let replicas = children(fleet.0.id());
    assert_eq!(replicas.len(), 3);
    ends_with_its_fleet(fleet, &replicas);
}

/// Before they have a configuration, too: what they would wait for is gone.
#[test]
fn replicas_end_with_a_fleet_that_was_killed_at_its_start() {
    let fleet = start();
    let replicas = until("three replicas", || Some(children(fleet.0.id())).filter(|all| all.len() >= 3));
    ends_with_its_fleet(fleet, &replicas);
}
