//! A listening server and a kubectl that talks to it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use leasehold::dev::apiserver::{Listening, Match, Options, Server};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// How long any one thing may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Output {
    /// The output, where the command succeeded.
    #[track_caller]
    pub(crate) fn succeeded(self) -> String {
        assert!(self.ok, "kubectl failed: {}\n{}", self.err, self.out);
        self.out
    }

    /// The error output, where the command failed.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert!(!self.ok, "kubectl succeeded: {}", self.out);
        self.err
    }
}

/// A server, and kubectl with a home of its own.
pub(crate) struct Bench {
    pub(crate) server: Server,
    _listening: Listening,
    kubectl: PathBuf,
    home: tempfile::TempDir,
}

fn kubectl() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("kubectl")).find(|p| p.is_file())
}

impl Bench {
    /// None, with a message that the test harness does not swallow, where there is no kubectl.
    pub(crate) async fn new(test: &str) -> Option<Self> {
        let Some(kubectl) = kubectl() else {
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no kubectl on PATH");
            return None;
        };
        let server = Server::new(Options::default());
        let listening = server.listen("127.0.0.1:0").await.expect("a free port");
        let home = tempfile::tempdir().expect("a directory");
        std::fs::write(home.path().join("config"), listening.kubeconfig()).expect("written");
        Some(Self { server, _listening: listening, kubectl, home })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(args)
            .env("KUBECONFIG", self.path("config"))
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[], None).await
    }

    /// With a manifest on its standard input.
    pub(crate) async fn feed(&self, args: &[&str], input: &str) -> Output {
        self.run_with(args, &[], Some(input)).await
    }

    pub(crate) async fn run_with(&self, args: &[&str], env: &[(&str, &str)], input: Option<&str>) -> Output {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().expect("kubectl starts");
        if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(text.as_bytes()).await.expect("kubectl reads");
        }
        let done = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let done = done.unwrap_or_else(|_| panic!("kubectl {args:?} hangs")).expect("kubectl runs");
        Output {
            ok: done.status.success(),
            out: String::from_utf8_lossy(&done.stdout).into_owned(),
            err: String::from_utf8_lossy(&done.stderr).into_owned(),
        }
    }

    /// `kubectl edit` with sed for an editor.
    pub(crate) async fn edit(&self, what: &[&str], sed: &str) -> Output {
        let script = self.path("editor.sed");
        std::fs::write(&script, sed).expect("written");
        let editor = format!("sed -i -f {}", script.display());
        let args: Vec<&str> = ["edit"].iter().chain(what).copied().collect();
        self.run_with(&args, &[("KUBE_EDITOR", &editor)], None).await
    }

    /// A command that goes on, its lines as they come.
    pub(crate) fn follow(&self, args: &[&str]) -> Following {
        let mut child = self.command(args).spawn().expect("kubectl starts");
        let stdout = child.stdout.take().expect("piped");
        let (tx, lines) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut reader = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = reader.next_line().await {
                if tx.send(line).is_err() {
                    return;
                }
            }
        });
        Following { _child: child, lines, seen: Vec::new() }
    }

    /// Waits until this many watches of a resource (by its plural) are open.
    pub(crate) async fn watched(&self, plural: &str, n: usize) {
        let begun = Instant::now();
        let which = Match::any().resource(plural);
        while self.server.faults("*").open_watches(&which) < n {
            assert!(begun.elapsed() < PATIENCE, "no watch was opened");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A command that goes on. Dropping it ends it.
pub(crate) struct Following {
    _child: Child,
    lines: tokio::sync::mpsc::UnboundedReceiver<String>,
    seen: Vec<String>,
}

impl Following {
    /// Waits for a line that contains a text.
    pub(crate) async fn line(&mut self, text: &str) -> String {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.lines.recv()).await;
            match next {
                Ok(Some(line)) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                _ => panic!("no line with {text:?} in {:#?}", self.seen),
            }
        }
    }
}

/// Where a file of the repository is.
pub(crate) fn show(path: &Path) -> String {
    path.display().to_string()
}
