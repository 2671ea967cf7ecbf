//! Writes a report: tells the judge of a fleet, on the unix socket that LEASEHOLD_REPORT names, what happens here.
//!
//! # Guarantees
//! - A line is handed to the kernel before [`Observer::observe`] returns, unless the reader is behind. So a process that
//!   is killed has said what it did until then: the kernel delivers what it was given.
//! - Nothing is left out: what the reader is behind with is kept, however much it is, and written in order.
//! - The election never waits for the reader.
//!
//! # Caveats
//! A reader that stops reading costs memory. It is a tool for tests and laptops, switched on by hand.
//!
//! A reader that goes away ends the report, once said in the log. What becomes of the replica is its owner's affair
//! ([`Reporter::gone`]): one of a fleet ends with its fleet.

use super::report::Line;
use crate::clock::SharedClock;
use crate::leader::observe::{Event, Observer};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// How long the end of the process waits for a reader that is behind.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An open report. Clones write to the same.
#[derive(Clone)]
pub struct Reporter {
    shared: Arc<Shared>,
    /// Writes what the reader was behind with, until the last clone is gone.
    _rest: Arc<AbortOnDropHandle<()>>,
}

struct Shared {
    stream: UnixStream,
    clock: SharedClock,
    /// What the socket has not taken yet; None once the reader is gone.
    behind: Mutex<Option<VecDeque<u8>>>,
    /// There is something to write again.
    more: Notify,
    /// Nothing is left to write.
    done: Notify,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

impl Reporter {
    /// Connects to the socket.
    ///
    /// # Errors
    /// Nobody listens there.
    pub async fn connect(socket: &Path, clock: SharedClock) -> io::Result<Self> {
        let stream = UnixStream::connect(socket).await?;
        // Until the runtime has seen the socket ready once, it would call every write too early.
        stream.writable().await?;
        let shared = Arc::new(Shared {
            stream,
            clock,
            behind: Mutex::new(Some(VecDeque::new())),
            more: Notify::new(),
            done: Notify::new(),
        });
        let rest = tokio::spawn(write_rest(Arc::clone(&shared)));
        Ok(Self { shared, _rest: Arc::new(AbortOnDropHandle::new(rest)) })
    }

    /// Writes one line.
    pub fn write(&self, line: &Line) {
        let Ok(mut bytes) = serde_json::to_vec(line) else { return };
        bytes.push(b'\n');
        let mut behind = self.shared.behind();
        if let Some(waiting) = behind.as_mut() {
            waiting.extend(bytes);
            self.shared.flush(&mut behind);
            if behind.as_ref().is_some_and(|b| !b.is_empty()) {
                self.shared.more.notify_one();
            }
        }
    }

    /// Resolves when the reader has hung up, or its process has died. Cancel-safe.
    pub async fn gone(&self) {
        // The reader never writes: what can be read is its end.
        let mut byte = [0];
        loop {
            let readable = self.shared.stream.readable().await;
            match readable.and_then(|()| self.shared.stream.try_read(&mut byte)) {
                Ok(1..) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// Waits until the reader has been given all of it, for at most two seconds.
    pub async fn finish(&self) {
        let done = async {
            loop {
                let notified = self.shared.done.notified();
                tokio::pin!(notified);
                notified.as_mut().enable();
                if self.shared.behind().as_ref().is_none_or(VecDeque::is_empty) {
                    return;
                }
                notified.await;
            }
        };
        if tokio::time::timeout(LAST_WORDS, done).await.is_err() {
            tracing::warn!("the reader of the report is behind: its last lines are lost");
        }
    }
}

impl Shared {
    fn behind(&self) -> MutexGuard<'_, Option<VecDeque<u8>>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the socket as much as it takes now.
    fn flush(&self, behind: &mut Option<VecDeque<u8>>) {
        while let Some(waiting) = behind.as_mut().filter(|w| !w.is_empty()) {
            match self.stream.try_write(waiting.as_slices().0) {
                Ok(taken) => drop(waiting.drain(..taken)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!(%error, "the reader of the report is gone: nothing more is reported");
                    *behind = None;
                }
            }
        }
        self.done.notify_waiters();
    }
}

async fn write_rest(shared: Arc<Shared>) {
    loop {
        shared.more.notified().await;
        while shared.behind().as_ref().is_some_and(|b| !b.is_empty()) {
            // An error of the socket shows at the next write.
            let _ = shared.stream.writable().await;
            shared.flush(&mut shared.behind());
        }
    }
}

impl Observer for Reporter {
    fn observe(&self, event: &Event) {
        if let Some(line) = line(event, self.shared.clock.now().as_nanos()) {
            self.write(&line);
        }
    }
}

/// What is reported of `event`; `now` stamps what carries no time of its own. Lease requests are not: who judges counts
/// them at the server.
fn line(event: &Event, now: u64) -> Option<Line> {
    Some(match event {
        Event::TermBegun { bucket, token, at, deadline } => Line::TermBegun {
            bucket: bucket.name().to_owned(),
            token: *token,
            at: at.as_nanos(),
            deadline: deadline.as_nanos(),
        },
        Event::Promoted { bucket, token, at } => {
            Line::Promoted { bucket: bucket.name().to_owned(), token: *token, at: at.as_nanos() }
        }
        Event::PromoteFailed { bucket, why } => {
            Line::PromoteFailed { bucket: bucket.name().to_owned(), why: why.clone(), at: now }
        }
        Event::DeadlineMoved { bucket, token, deadline } => Line::DeadlineMoved {
            bucket: bucket.name().to_owned(),
            token: *token,
            deadline: deadline.as_nanos(),
            at: now,
        },
        Event::GuardsOut { bucket, token, guards, at } => {
            Line::GuardsOut { bucket: bucket.name().to_owned(), token: *token, guards: *guards, at: at.as_nanos() }
        }
        Event::TermEnded { bucket, token, reason, acted_until, at } => Line::TermEnded {
            bucket: bucket.name().to_owned(),
            token: *token,
            reason: *reason,
            acted_until: acted_until.as_nanos(),
            at: at.as_nanos(),
        },
        Event::Notice { code, text } => Line::Notice { code: (*code).to_owned(), text: text.clone(), at: now },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::testing::everything;
    use crate::clock::{Boottime, Clock, Instant};
    use crate::leader::{FencingToken, Reason};
    use std::path::PathBuf;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
    use tokio::net::UnixListener;

    fn socket() -> PathBuf {
        std::env::temp_dir().join(format!("leasehold-{}.sock", uuid::Uuid::new_v4()))
    }

    async fn pair() -> (Reporter, UnixStream) {
        let path = socket();
        let listener = UnixListener::bind(&path).unwrap();
        let reporter = Reporter::connect(&path, Arc::new(Boottime)).await.unwrap();
        std::fs::remove_file(path).unwrap();
        (reporter, listener.accept().await.unwrap().0)
    }

    fn notice(n: usize) -> Event {
        Event::Notice { code: "n", text: format!("{n} {}", "x".repeat(1000)) }
    }

    #[tokio::test]
    async fn each_event_is_a_line_with_its_own_time() {
        let (reporter, stream) = pair().await;
        let (bucket, token) = (everything(), Some(FencingToken::new(1, 2)));
        let at = Instant::from_nanos;
        let before = Boottime.now().as_nanos();
        for event in [
            Event::TermBegun { bucket: bucket.clone(), token, at: at(1), deadline: at(9) },
            Event::Promoted { bucket: bucket.clone(), token, at: at(2) },
            Event::PromoteFailed { bucket: bucket.clone(), why: "w".into() },
            Event::DeadlineMoved { bucket: bucket.clone(), token, deadline: at(19) },
            Event::GuardsOut { bucket: bucket.clone(), token, guards: 3, at: at(4) },
            Event::TermEnded { bucket, token, reason: Reason::Lost, acted_until: at(5), at: at(6) },
            Event::Request { verb: "get", outcome: "ok", took: Duration::ZERO },
            Event::Notice { code: "c", text: "t".into() },
        ] {
            reporter.observe(&event);
        }
        reporter.finish().await;
        drop(reporter);
        let mut lines = Vec::new();
        let mut text = BufReader::new(stream).lines();
        while let Some(line) = text.next_line().await.unwrap() {
            lines.push(serde_json::from_str::<Line>(&line).unwrap());
        }
        let after = Boottime.now().as_nanos();
        let now = |line: &Line| match line {
            Line::PromoteFailed { at, .. } | Line::DeadlineMoved { at, .. } | Line::Notice { at, .. } => {
                assert!((before..=after).contains(at));
                *at
            }
            other => panic!("{other:?}"),
        };
        let bucket = String::new();
        let expected = [
            Line::TermBegun { bucket: bucket.clone(), token, at: 1, deadline: 9 },
            Line::Promoted { bucket: bucket.clone(), token, at: 2 },
            Line::PromoteFailed { bucket: bucket.clone(), why: "w".into(), at: now(&lines[2]) },
            Line::DeadlineMoved { bucket: bucket.clone(), token, deadline: 19, at: now(&lines[3]) },
            Line::GuardsOut { bucket: bucket.clone(), token, guards: 3, at: 4 },
            Line::TermEnded { bucket, token, reason: Reason::Lost, acted_until: 5, at: 6 },
            Line::Notice { code: "c".into(), text: "t".into(), at: now(&lines[6]) },
        ];
        assert_eq!(lines, expected);
    }

    #[tokio::test]
    async fn a_line_is_with_the_kernel_when_observe_returns() {
        let (reporter, stream) = pair().await;
        let stream = stream.into_std().unwrap();
        stream.set_nonblocking(true).unwrap();
        reporter.observe(&notice(0));
        // No await since: nobody but the call itself can have written it.
        let mut buffer = [0; 4096];
        let read = std::io::Read::read(&mut &stream, &mut buffer).unwrap();
        assert!(buffer[..read].ends_with(b"\n"));
    }

    #[tokio::test]
    async fn a_slow_reader_delays_nobody_and_misses_nothing() {
        const LINES: usize = 2000;
        let (reporter, stream) = pair().await;
        for n in 0..LINES {
            reporter.observe(&notice(n));
        }
        assert!(reporter.shared.behind().as_ref().is_some_and(|b| !b.is_empty()), "the socket took 2 MB at once");
        let reading = tokio::spawn(async move {
            let mut text = BufReader::new(stream).lines();
            for n in 0..LINES {
                let line = text.next_line().await.unwrap().unwrap();
                let Line::Notice { text, .. } = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
                assert!(text.starts_with(&format!("{n} ")), "{text}");
            }
        });
        reporter.finish().await;
        drop(reporter);
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_ends_the_report_and_nothing_else() {
        let (reporter, mut stream) = pair().await;
        reporter.observe(&notice(0));
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        drop(stream);
        for n in 0..2000 {
            reporter.observe(&notice(n));
        }
        assert!(reporter.shared.behind().is_none(), "lines are kept for a reader that will never come");
        reporter.finish().await;
    }

    #[tokio::test]
    async fn a_reader_that_is_there_is_not_gone_and_one_that_has_hung_up_is() {
        let (reporter, stream) = pair().await;
        reporter.observe(&notice(0));
        assert!(tokio::time::timeout(Duration::from_millis(50), reporter.gone()).await.is_err());
        drop(stream);
        tokio::time::timeout(Duration::from_mins(1), reporter.gone()).await.unwrap();
    }

    #[tokio::test]
    async fn without_a_reader_there_is_no_report() {
        assert!(Reporter::connect(&socket(), Arc::new(Boottime)).await.is_err());
    }
}
