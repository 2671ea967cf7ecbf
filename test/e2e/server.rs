//! The API servers that the scenes run on: one that is given, or servers of hack/apiserver that are started when a scene asks
//! for one, and end with this process, however it ends.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::OnceCell;

/// Why a scene did not run.
#[derive(Debug, Clone)]
pub(crate) struct Skipped(String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Skipped {
    /// Whether that is a failure here.
    pub(crate) fn fails(&self) -> bool {
        mode() == Some("require".to_owned())
    }
}

/// LEASEHOLD_E2E: `require` makes a skip a failure, `skip` skips all.
fn mode() -> Option<String> {
    std::env::var("LEASEHOLD_E2E").ok().filter(|m| !m.is_empty())
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether hack/apiserver/up would find a kube-apiserver and an etcd, looking where it looks.
fn can_start() -> bool {
    let both = |folder: &Path| folder.join("kube-apiserver").is_file() && folder.join("etcd").is_file();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let out = std::env::var_os("LEASEHOLD_APISERVER_DIR")
        .map_or_else(|| repository().join("hack/apiserver/out"), PathBuf::from);
    // A folder that is named and has none of them is an error that `up` says, not a reason to skip.
    std::env::var_os("KUBEBUILDER_ASSETS").is_some_and(|f| !f.is_empty())
        || (in_path("kube-apiserver") && in_path("etcd"))
        || both(&out)
}

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    /// Of its administrator.
    pub(crate) kubeconfig: PathBuf,
    reaper: Option<Mutex<Option<Reaper>>>,
}

/// Ends a server when its standard input ends: with this process at the latest.
#[derive(Debug)]
struct Reaper {
    child: Child,
    stdin: ChildStdin,
}

impl Server {
    /// Starts one, with `flags` for the API server.
    async fn start(flags: &str) -> Self {
        let mut up = Command::new(repository().join("hack/apiserver/up"));
        up.env("APISERVER_FLAGS", flags).stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
        let done = up.output().await.expect("hack/apiserver/up can be run");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "hack/apiserver/up: {said}");
        let kubeconfig = PathBuf::from(String::from_utf8_lossy(&done.stdout).trim());
        let mut reaper = Command::new("sh");
        // In a group of its own: an interrupt from the terminal ends this process, and the reaper ends the server.
        reaper.args(["-c", r#"cat > /dev/null; exec "$0" "$1""#]).process_group(0);
        reaper
            .arg(repository().join("hack/apiserver/down"))
            .arg(&kubeconfig)
            .env("GRACE", "0")
            .stdin(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = reaper.spawn().expect("a shell can be run");
        let stdin = child.stdin.take().expect("piped");
        Self { kubeconfig, reaper: Some(Mutex::new(Some(Reaper { child, stdin }))) }
    }

    /// Its state folder.
    pub(crate) fn state(&self) -> &Path {
        self.kubeconfig.parent().expect("the folder it is in")
    }

    /// The process id of `kube-apiserver` or `etcd`.
    pub(crate) fn pid(&self, of: &str) -> rustix::process::Pid {
        let file = self.state().join(match of {
            "etcd" => "etcd.pid",
            _ => "apiserver.pid",
        });
        let pid = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        rustix::process::Pid::from_raw(pid.trim().parse().expect("a number")).expect("a pid")
    }

    /// `host:port` of etcd.
    pub(crate) fn etcd(&self) -> String {
        let ports = std::fs::read_to_string(self.state().join("ports")).expect("the ports");
        format!("127.0.0.1:{}", ports.split_whitespace().nth(1).expect("etcd's"))
    }

    /// Ends both processes and keeps their data; or starts them again.
    pub(crate) async fn down_and_keep(&self) {
        self.script("down", &["--keep"]).await;
    }

    /// After [`Server::down_and_keep`]: the same ports and data.
    pub(crate) async fn up_again(&self, flags: &str) {
        let mut up = Command::new(repository().join("hack/apiserver/up"));
        up.arg(self.state()).env("APISERVER_FLAGS", flags);
        let done = up.stdin(Stdio::null()).output().await.expect("hack/apiserver/up can be run");
        assert!(done.status.success(), "hack/apiserver/up: {}", String::from_utf8_lossy(&done.stderr));
    }

    async fn script(&self, name: &str, arguments: &[&str]) {
        let mut script = Command::new(repository().join("hack/apiserver").join(name));
        script.args(arguments).arg(self.state()).env("GRACE", "0").stdin(Stdio::null());
        let done = script.output().await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Ends it, where it is ours.
    pub(crate) async fn close(&self) {
        let Some(reaper) = &self.reaper else { return };
        let taken = reaper.lock().expect("no panic while it is held").take();
        if let Some(Reaper { mut child, stdin }) = taken {
            drop(stdin);
            let _ = child.wait().await;
        }
    }
}

/// All servers of a run.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    shared: OnceCell<Result<Server, Skipped>>,
    uncached: OnceCell<Result<Server, Skipped>>,
}

impl Servers {
    /// The one for all scenes that leave it as it is.
    pub(crate) async fn shared(&self) -> Result<&Server, Skipped> {
        let server = self.shared.get_or_init(async || {
            let given = std::env::var_os("LEASEHOLD_E2E_KUBECONFIG").filter(|k| !k.is_empty());
            match given {
                Some(kubeconfig) if mode() != Some("skip".to_owned()) => {
                    Ok(Server { kubeconfig: kubeconfig.into(), reaper: None })
                }
                _ => start("").await,
            }
        });
        server.await.as_ref().map_err(Clone::clone)
    }

    /// One that serves watches of Leases from etcd, not from a cache of its own: what etcd has forgotten, it has.
    pub(crate) async fn uncached(&self) -> Result<&Server, Skipped> {
        let flags = "--watch-cache-sizes=leases.coordination.k8s.io#0";
        self.uncached.get_or_init(|| start(flags)).await.as_ref().map_err(Clone::clone)
    }

    /// One for a scene alone, which closes it.
    pub(crate) async fn own(&self, flags: &str) -> Result<Server, Skipped> {
        start(flags).await
    }

    pub(crate) async fn close(&self) {
        for server in [&self.shared, &self.uncached] {
            if let Some(Ok(server)) = server.get() {
                server.close().await;
            }
        }
    }
}

async fn start(flags: &str) -> Result<Server, Skipped> {
    if mode() == Some("skip".to_owned()) {
        return Err(Skipped("LEASEHOLD_E2E=skip".to_owned()));
    }
    if !can_start() {
        return Err(Skipped(
            "no kube-apiserver and etcd here: hack/apiserver/build makes them, KUBEBUILDER_ASSETS names a folder with them; or set \
             LEASEHOLD_E2E_KUBECONFIG"
                .to_owned(),
        ));
    }
    Ok(Server::start(flags).await)
}
