//! A replica of leasehold for the tests beside client-go's elector, and for the comparison with it: built on the library as
//! an author's adapter is, it does on every bucket it holds what elector.go beside this file does, and says it in the same
//! JSON lines.
//!
//! Configured by K_LEADER_ELECTION_CONFIG, as any adapter. INTEROP_COMPONENT: the component. INTEROP_LINGER_MS: for how long
//! the work on a bucket goes on when it is asked to end.

use leasehold::adapter::{Adapter, Context, Env, run};
use leasehold::clock::{Boottime, Clock};
use leasehold::leader::{BoxError, Term};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Between two acts on a bucket.
const EVERY: Duration = Duration::from_millis(20);

/// One line, in one write: a process that is killed has said what it did until then.
fn say(event: &str, rest: &str) {
    let mut out = std::io::stdout().lock();
    // Read under the lock, so that the times in the output only grow.
    let line = format!("{{\"event\":\"{event}\",{rest}\"at\":{}}}\n", Boottime.now().as_nanos());
    // A reader that is gone has no more use for it.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// Says "stopped" when the work on a bucket is dropped, however it ends.
struct Acting(String);

impl Acting {
    fn on(term: &Term) -> Self {
        // The name of a Lease needs no escapes.
        let acting = Self(format!("\"bucket\":\"{}\",", term.bucket().name()));
        say("started", &acting.0);
        acting
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        say("stopped", &self.0);
    }
}

struct Acts {
    linger: Duration,
}

impl Acts {
    fn from_env(env: &Env) -> Result<Self, BoxError> {
        let linger = env.get("INTEROP_LINGER_MS").map_or(Ok(0), str::parse)?;
        Ok(Self { linger: Duration::from_millis(linger) })
    }
}

impl Adapter for Acts {
    async fn start(&self, ctx: Context) -> Result<(), BoxError> {
        say("hello", &format!("\"identity\":\"{}\",\"pid\":{},", ctx.identity(), std::process::id()));
        let linger = self.linger;
        ctx.per_bucket(move |_, term| work(term, linger)).await;
        Ok(())
    }
}

/// One long act under one guard, which looks at it between any two of its lines.
async fn work(term: Term, linger: Duration) -> Result<(), BoxError> {
    let Some(guard) = term.guard() else { return Ok(()) };
    let acting = Acting::on(&term);
    let mut ends = None;
    while guard.is_valid() && ends.is_none_or(|at| Boottime.now() < at) {
        say("act", &acting.0);
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = term.draining(), if ends.is_none() => ends = Some(Boottime.now() + linger),
        }
    }
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LEASEHOLD_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    // An error only means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let component = std::env::var("INTEROP_COMPONENT").unwrap_or_else(|_| "interop".to_owned());
    run(&component, Acts::from_env).await
}
