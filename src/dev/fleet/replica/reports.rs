//! The unix socket on which one process reports.
//!
//! # Guarantees
//! - Each process start has a socket of its own, so that its lines are its own whatever its pid.
//! - Lines are told in the order in which they were written; what a killed process had written is read to its end.

use crate::adapter::report::Line;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The longest line that is read; a report line has a few hundred bytes.
const LONGEST: u64 = 64 << 10;
/// How long what is still connected after the end of a process may go on: a child of its own, perhaps.
const AFTERMATH: Duration = Duration::from_secs(2);

/// Hears of each line, and of each that is none.
pub type Listener = Arc<dyn Fn(Result<Line, String>) + Send + Sync>;

/// A report socket that listens.
#[derive(Debug)]
pub struct Reports {
    path: PathBuf,
    listener: UnixListener,
}

impl Reports {
    /// Binds it, before the process is started.
    ///
    /// # Errors
    /// The path is taken, too long, or not ours to write.
    pub fn bind(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), listener: UnixListener::bind(path)? })
    }

    /// Tells `listener` of every line until the process has `ended` and everything it had written is read.
    pub async fn run(self, ended: CancellationToken, listener: Listener) {
        let mut readers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        readers.spawn(read(stream, Arc::clone(&listener)));
                    }
                    Err(e) => {
                        tracing::warn!("report socket {}: {e}", self.path.display());
                        // Out of descriptors, most likely: not a reason to spin.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                () = ended.cancelled() => break,
            }
        }
        // What connected, wrote and died before anybody looked.
        for stream in waiting(self.listener) {
            readers.spawn(read(stream, Arc::clone(&listener)));
        }
        let all = async { while readers.join_next().await.is_some() {} };
        if tokio::time::timeout(AFTERMATH, all).await.is_err() {
            tracing::warn!(
                "report socket {}: still connected {AFTERMATH:?} after its process ended",
                self.path.display()
            );
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The connections that wait to be accepted, without waiting for more.
fn waiting(listener: UnixListener) -> Vec<UnixStream> {
    // Nonblocking since it was bound.
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    std::iter::from_fn(|| listener.accept().ok())
        .filter_map(|(stream, _)| {
            stream.set_nonblocking(true).ok()?;
            UnixStream::from_std(stream).ok()
        })
        .collect()
}

async fn read(stream: UnixStream, listener: Listener) {
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(0) => return,
            // A last line without its end was cut off by a kill: nothing was promised by it.
            Ok(n) if line.last() != Some(&b'\n') => {
                if n as u64 == LONGEST {
                    listener(Err(format!("a report line is longer than {LONGEST} bytes; the rest of it is not read")));
                }
                return;
            }
            Ok(_) => listener(parse(&line)),
            // A process that was killed resets its connection on some systems.
            Err(e) => {
                tracing::debug!("report connection: {e}");
                return;
            }
        }
    }
}

fn parse(line: &[u8]) -> Result<Line, String> {
    serde_json::from_slice(line).map_err(|e| {
        let shown: String = String::from_utf8_lossy(line).trim_end().chars().take(200).collect();
        format!("a report line that cannot be read ({e}): {shown}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dev::fleet::scratch::Scratch;
    use tokio::io::AsyncWriteExt as _;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn lines_written_before_the_end_are_all_read() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.socket(0);
        let reports = Reports::bind(&path).unwrap();
        let (heard, mut hears) = mpsc::unbounded_channel();
        let ended = CancellationToken::new();
        // Everything is written and closed, and the process is over, before anybody reads.
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let hello = r#"{"event":"hello","pid":1,"identity":"a_b","component":"c","probe_port":null,"metrics_port":null,"at":5}"#;
        stream.write_all(format!("{hello}\nnonsense\n{{\"event\":\"hel").as_bytes()).await.unwrap();
        drop(stream);
        ended.cancel();
        reports.run(ended, Arc::new(move |line| heard.send(line).unwrap())).await;
        assert!(matches!(hears.try_recv().unwrap(), Ok(Line::Hello { pid: 1, at: 5, .. })));
        assert!(hears.try_recv().unwrap().is_err_and(|e| e.contains("nonsense")));
        assert!(hears.try_recv().is_err(), "a line without its end is none");
        assert!(!path.exists());
        scratch.discard();
    }
}
