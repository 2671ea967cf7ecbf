//! The directory of a run: sockets, the sources, what the replicas write.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The longest path of a unix socket on Linux, its final NUL not counted.
const LONGEST_SOCKET: usize = 107;

/// A directory of its own, open to this user only. Removed when dropped, unless it is to be kept.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    /// Makes one under the system's directory for temporary files (TMPDIR). It is kept until [`Scratch::discard`] says
    /// otherwise: what a failed or panicked run wrote is what its reader needs.
    ///
    /// # Errors
    /// It cannot be made, or a unix socket in it would have too long a path.
    pub fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("leasehold-dev-{:016x}", fastrand::u64(..)));
        let socket = path.join(socket_name(u32::MAX));
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let text = format!(
                "{} is too long for a unix socket (at most {LONGEST_SOCKET} bytes): set TMPDIR to a shorter path",
                socket.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, text));
        }
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, keep: true })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The report socket of a process.
    pub fn socket(&self, process: u32) -> PathBuf {
        self.path.join(socket_name(process))
    }

    /// Where what a Pod's replica writes goes.
    pub fn output(&self, pod: &str) -> PathBuf {
        self.path.join(format!("{pod}.log"))
    }

    /// Whether any replica has written anything.
    pub fn has_output(&self) -> bool {
        let mut entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let wrote = |entry: std::fs::DirEntry| {
            entry.path().extension().is_some_and(|e| e == "log") && entry.metadata().is_ok_and(|m| m.len() > 0)
        };
        entries.any(wrote)
    }

    /// Nothing in it is needed any more.
    pub fn discard(mut self) {
        self.keep = false;
    }
}

fn socket_name(process: u32) -> String {
    format!("report-{process}.sock")
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is in the system's care.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_unless_discarded() {
        let kept = Scratch::new().unwrap();
        let path = kept.path().to_owned();
        std::fs::write(path.join("kubeconfig"), "x").unwrap();
        std::fs::write(kept.output("silent"), "").unwrap();
        assert!(!kept.has_output());
        std::fs::write(kept.output("pod"), "x").unwrap();
        assert!(kept.has_output());
        drop(kept);
        assert!(path.join("pod.log").exists());
        std::fs::remove_dir_all(&path).unwrap();

        let gone = Scratch::new().unwrap();
        let path = gone.path().to_owned();
        gone.discard();
        assert!(!path.exists());
    }
}
