//! One replica: a child process, its report socket, and what it writes.
//!
//! # Guarantees
//! - A signal goes to the child's own pid, and only while the child has not been waited for: never to a stranger that
//!   got the same pid.
//! - Dropping a [`Replica`] kills its process, stopped or not.
//!
//! # Assumptions
//! CMD is the replica itself: what a shell around it starts would hear no signal.

mod env;
mod reports;

pub use env::{Environment, Shared};
pub use reports::{Listener, Reports};

use crate::clock::{Instant, SharedClock};
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Who a replica thinks it is: kept over a restart in place, new for a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// POD_NAME.
    pub name: String,
    /// POD_UID.
    pub uid: String,
}

/// What is run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The file.
    pub file: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// What a replica is started with.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What is run.
    pub program: &'a Program,
    /// Its environment.
    pub environment: &'a Environment,
    /// What its lines on the screen begin with.
    pub name: &'a str,
    /// Where what it writes goes.
    pub output: &'a Path,
    /// Show what it writes, too.
    pub verbose: bool,
}

/// A running replica.
#[derive(Debug)]
pub struct Replica {
    signals: mpsc::UnboundedSender<Signal>,
}

impl Replica {
    /// Starts one. `ended` hears of its end, once, when its report is complete.
    ///
    /// # Errors
    /// The program or its files cannot be opened; the message names which.
    pub fn start(
        launch: &Launch<'_>,
        reports: Reports,
        listener: Listener,
        clock: SharedClock,
        ended: impl FnOnce(io::Result<ExitStatus>, Instant) + Send + 'static,
    ) -> io::Result<Self> {
        let mut child = spawn(launch)?;
        if launch.verbose {
            show(launch, child.stdout.take());
            show(launch, child.stderr.take());
        }
        let over = CancellationToken::new();
        let reading = tokio::spawn(reports.run(over.clone(), listener));
        let (signals, inbox) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            // Should this task be dropped, the child is killed, and its reports end.
            let _over = over.clone().drop_guard();
            let status = attend(&mut child, inbox).await;
            let at = clock.now();
            over.cancel();
            let _ = reading.await;
            ended(status, at);
        });
        Ok(Self { signals })
    }

    /// Sends a signal; nothing where the process has ended.
    pub fn signal(&self, signal: Signal) {
        // Its task is gone: so is the process.
        let _ = self.signals.send(signal);
    }
}

/// Delivers signals until the child has ended; kills it where nobody can send one any more.
async fn attend(child: &mut Child, mut inbox: mpsc::UnboundedReceiver<Signal>) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return status,
            signal = inbox.recv() => {
                let Some(signal) = signal else {
                    // An error means that it has ended by itself meanwhile.
                    let _ = child.start_kill();
                    return child.wait().await;
                };
                deliver(child, signal);
            }
        }
    }
}

fn deliver(child: &Child, signal: Signal) {
    // No id: it has been waited for, and its pid may be somebody else's by now.
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let Some(pid) = pid else { return };
    if let Err(e) = rustix::process::kill_process(pid, signal) {
        tracing::warn!(pid = pid.as_raw_nonzero(), ?signal, "signal not sent: {e}");
    }
}

fn spawn(launch: &Launch<'_>) -> io::Result<Child> {
    let named = |what: &Path| {
        let what = what.display().to_string();
        move |e: io::Error| io::Error::new(e.kind(), format!("{what}: {e}"))
    };
    let mut command = Command::new(&launch.program.file);
    command.args(&launch.program.args).stdin(Stdio::null()).kill_on_drop(true);
    launch.environment.apply(&mut command);
    // A group of its own: Ctrl-C in the terminal is the fleet's to answer, in its own order.
    command.process_group(0);
    if launch.verbose {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    } else {
        let open = |path: &Path| std::fs::OpenOptions::new().create(true).append(true).open(path);
        let file = open(launch.output).map_err(named(launch.output))?;
        command.stderr(file.try_clone()?).stdout(file);
    }
    command.spawn().map_err(named(Path::new(&launch.program.file)))
}

/// Copies what a replica writes to the screen, each line with its name, and into its file.
fn show(launch: &Launch<'_>, from: Option<impl AsyncRead + Unpin + Send + 'static>) {
    let Some(from) = from else { return };
    let (name, path) = (launch.name.to_owned(), launch.output.to_owned());
    tokio::spawn(async move {
        let mut file = tokio::fs::OpenOptions::new().create(true).append(true).open(&path).await.ok();
        let mut lines = BufReader::new(from).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let text = format!("{name} | {}\n", String::from_utf8_lossy(&line));
            // A closed terminal is no reason to end a run.
            let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), text.as_bytes());
            if let Some(file) = &mut file {
                let _ = file.write_all(&[line.as_slice(), b"\n"].concat()).await;
                let _ = file.flush().await;
            }
        }
    });
}

/// Runs a program to its end with a replica's environment, for what has to be done once. Cancelled, it is killed.
///
/// # Errors
/// It cannot be started, or it fails: the message is what it wrote to standard error.
pub async fn run_once(program: &Program, environment: &Environment) -> io::Result<()> {
    let mut command = Command::new(&program.file);
    command.args(&program.args).stdin(Stdio::null()).kill_on_drop(true);
    environment.apply(&mut command);
    command.process_group(0);
    let output = command.output().await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: {}", output.status, said.trim())))
}

/// The end of what a replica wrote, for a message.
pub fn tail(path: &PathBuf, lines: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    // What was written last is at the end, whatever came before.
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(16 << 10)..]).into_owned();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Boottime;
    use crate::dev::fleet::scratch::Scratch;
    use std::os::unix::process::ExitStatusExt as _;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    fn shell(script: &str) -> Program {
        Program { file: "/bin/sh".into(), args: vec!["-c".into(), script.into()] }
    }

    fn start(
        scratch: &Scratch,
        script: &str,
    ) -> (Replica, oneshot::Receiver<(io::Result<ExitStatus>, Instant)>, PathBuf) {
        let output = scratch.path().join("out");
        let program = shell(script);
        let environment = Environment::default();
        let launch =
            Launch { program: &program, environment: &environment, name: "r", output: &output, verbose: false };
        let (ended, end) = oneshot::channel();
        let replica = Replica::start(
            &launch,
            Reports::bind(&scratch.socket(0)).unwrap(),
            Arc::new(|_| {}),
            Arc::new(Boottime),
            move |status, at| drop(ended.send((status, at))),
        );
        (replica.unwrap(), end, output)
    }

    #[tokio::test]
    async fn a_signal_reaches_the_process_and_its_end_is_told() {
        let scratch = Scratch::new().unwrap();
        let (replica, end, _) = start(&scratch, "exec sleep 600");
        replica.signal(Signal::TERM);
        let (status, _) = end.await.unwrap();
        assert_eq!(status.unwrap().signal(), Some(15));
        // To nobody: it has ended.
        replica.signal(Signal::KILL);
        scratch.discard();
    }

    #[tokio::test]
    async fn dropping_a_replica_kills_it_even_when_stopped() {
        let scratch = Scratch::new().unwrap();
        let (replica, end, _) = start(&scratch, "exec sleep 600");
        replica.signal(Signal::STOP);
        drop(replica);
        let (status, _) = end.await.unwrap();
        assert_eq!(status.unwrap().signal(), Some(9));
        scratch.discard();
    }

    #[tokio::test]
    async fn what_it_writes_is_kept() {
        let scratch = Scratch::new().unwrap();
        let (_replica, end, output) = start(&scratch, "echo one; echo two >&2; exit 3");
        let (status, _) = end.await.unwrap();
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(tail(&output, 9), "one\ntwo");
        assert_eq!(tail(&output, 1), "two");
        scratch.discard();
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let scratch = Scratch::new().unwrap();
        let program = Program { file: "/nonexistent/adapter".into(), args: Vec::new() };
        let error = run_once(&program, &Environment::default()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let output = scratch.path().join("out");
        let environment = Environment::default();
        let launch =
            Launch { program: &program, environment: &environment, name: "r", output: &output, verbose: false };
        let error = spawn(&launch).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/adapter"), "{error}");
        scratch.discard();
    }

    #[tokio::test]
    async fn a_failure_of_something_done_once_says_what_it_wrote() {
        assert!(run_once(&shell("exit 0"), &Environment::default()).await.is_ok());
        let error = run_once(&shell("echo held >&2; exit 1"), &Environment::default()).await.unwrap_err();
        assert!(error.to_string().contains("held"), "{error}");
    }
}
