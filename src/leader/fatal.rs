//! What cannot be stopped ends the process (rule S6): work that goes on past its Lease would break rule S1.

use crate::bucket::Bucket;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The exit code of a process that ended itself because something could not be stopped. Nothing else uses it.
pub const EXIT_CANNOT_STOP: i32 = 86;

/// What did not stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// A guard is still out although its Lease is about to expire.
    #[error(
        "bucket {bucket}: {guards} guard(s) still out {silent:?} after the last renewal that counts, and cancelled: another \
         replica may act soon, so this process ends now. Work under a guard must end when it is cancelled: run it with \
         Guard::run, and keep blocking calls out of it"
    )]
    GuardOut {
        /// The bucket.
        bucket: Bucket,
        /// How many.
        guards: u64,
        /// Time since the last renewal that counts was sent.
        silent: Duration,
    },
    /// A guard has not ended twice drain-timeout after it should have.
    #[error(
        "bucket {bucket}: {guards} guard(s) not ended {waited:?} after being cancelled: the process ends, so that the bucket gets a holder again"
    )]
    GuardHangs {
        /// The bucket.
        bucket: Bucket,
        /// How many.
        guards: u64,
        /// Time since they were cancelled.
        waited: Duration,
    },
    /// A demote has not returned twice drain-timeout after it should have.
    #[error(
        "bucket {bucket}: demote has not returned after {waited:?}: the process ends, so that the bucket gets a holder again"
    )]
    DemoteHangs {
        /// The bucket.
        bucket: Bucket,
        /// Time since it was called.
        waited: Duration,
    },
}

/// Called with what could not be stopped. The default, [`exit`], does not return; a test may record it instead.
pub type OnFatal = Arc<dyn Fn(Fatal) + Send + Sync>;

/// How long saying why may take before the process ends unsaid. A log that nobody reads blocks whoever writes to it,
/// and may be the very thing that the guard hangs in.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Says why on standard error and in the log, and ends the process with [`EXIT_CANNOT_STOP`].
pub fn exit(why: &Fatal) -> ! {
    // Where not even a thread can be had, the words have to do without a bound.
    let _ = std::thread::Builder::new().name("last-words".to_owned()).spawn(|| {
        let (_never, silence) = std::sync::mpsc::channel::<()>();
        let _ = silence.recv_timeout(LAST_WORDS);
        end();
    });
    // Not eprintln: it panics where standard error is gone.
    let _ = writeln!(std::io::stderr(), "leasehold: {why}");
    tracing::error!(code = EXIT_CANNOT_STOP, "{why}");
    end()
}

#[allow(clippy::disallowed_methods, reason = "the one place that ends the process: nothing may run on")]
fn end() -> ! {
    std::process::exit(EXIT_CANNOT_STOP)
}

/// The default hook.
pub fn exits() -> OnFatal {
    Arc::new(|why| exit(&why))
}
