//! Runs scenes at one time, as many as there are: most of each is waiting. libtest runs as many as the machine has cores.
//!
//! Takes libtest's arguments, as far as they make sense here; the others are passed over, since `cargo test -- ARGS` gives them
//! to every test program.

use crate::server::{Servers, Skipped};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// What a scene is given.
pub(crate) type World = Arc<Servers>;
/// Ok: it passed. What fails panics.
pub(crate) type Verdict = Result<(), Skipped>;

/// A named test.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) run: fn(World) -> LocalBoxFuture<'static, Verdict>,
}

/// The scenes of the paths given, each an `async fn(World) -> Verdict`.
macro_rules! scenes {
    ($($module:ident { $($scene:ident),+ $(,)? })+) => {
        &[$($(crate::harness::Scene {
            name: concat!(stringify!($module), "::", stringify!($scene)),
            run: |world| Box::pin($module::$scene(world)),
        }),+),+]
    };
}
pub(crate) use scenes;

/// At most so many at one time: each has some processes, and two cores are the least that this is to run on.
const AT_ONCE: usize = 8;
/// A scene that has not ended by then never does.
const PATIENCE: Duration = Duration::from_secs(180);

#[derive(Debug, Default, Clone)]
struct Arguments {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    /// None of these scenes is.
    ignored: bool,
    at_once: Option<usize>,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Self {
        let mut read = Self::default();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (word.clone(), None),
            };
            match name.as_str() {
                "--exact" => read.exact = true,
                "--list" => read.list = true,
                "--ignored" => read.ignored = true,
                "--skip" => read.skip.extend(value.or_else(|| words.next())),
                "--test-threads" => read.at_once = value.or_else(|| words.next()).and_then(|n| n.parse().ok()),
                "--color" | "--format" | "--logfile" | "-Z" | "--shuffle-seed" if value.is_none() => drop(words.next()),
                other if other.starts_with('-') => {}
                _ => read.filters.push(word),
            }
        }
        read
    }

    fn wants(&self, name: &str) -> bool {
        let meets = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        !self.ignored && (self.filters.is_empty() || self.filters.iter().any(meets)) && !self.skip.iter().any(meets)
    }
}

tokio::task_local! {
    static NAME: &'static str;
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs what the command line asks for. Scenes share a thread (in a `LocalSet`); what carries bytes has the others.
pub(crate) async fn run(scenes: &'static [Scene]) -> ExitCode {
    let arguments = Arguments::read(std::env::args().skip(1));
    let wanted: Vec<&Scene> = scenes.iter().filter(|s| arguments.wants(s.name)).collect();
    if arguments.list {
        for scene in &wanted {
            let _ = writeln!(std::io::stdout(), "{}: test", scene.name);
        }
        return ExitCode::SUCCESS;
    }
    if wanted.is_empty()
        && !arguments.filters.is_empty()
        && std::env::var("LEASEHOLD_E2E").is_ok_and(|how| how == "require")
    {
        say("LEASEHOLD_E2E=require, and no scene has such a name");
        return ExitCode::FAILURE;
    }
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = NAME.try_with(|name| say(&format!("in {name}:")));
        usual(panic);
    }));
    say(&format!("running {} scenes on a real API server", wanted.len()));
    let began = tokio::time::Instant::now();
    let servers = Arc::new(Servers::default());
    let room = Arc::new(Semaphore::new(arguments.at_once.unwrap_or(AT_ONCE).max(1)));
    let mut running = tokio::task::JoinSet::new();
    for scene in wanted {
        let (servers, room) = (Arc::clone(&servers), Arc::clone(&room));
        running.spawn_local(NAME.scope(scene.name, async move {
            let _room = room.acquire_owned().await.expect("never closed");
            let began = tokio::time::Instant::now();
            let scene_run = std::panic::AssertUnwindSafe((scene.run)(servers)).catch_unwind();
            let outcome = tokio::time::timeout(PATIENCE, scene_run).await;
            (scene.name, outcome, began.elapsed())
        }));
    }
    let (mut passed, mut failed, mut skipped) = (0, Vec::new(), 0);
    while let Some(done) = running.join_next().await {
        let (name, outcome, took) = done.expect("panics are caught");
        let word = match outcome {
            Ok(Ok(Ok(()))) => {
                passed += 1;
                "ok".to_owned()
            }
            Ok(Ok(Err(why))) if !why.fails() => {
                skipped += 1;
                format!("SKIPPED: {why}")
            }
            Ok(Ok(Err(why))) => {
                failed.push(name);
                format!("FAILED: LEASEHOLD_E2E=require, and {why}")
            }
            Ok(Err(_)) => {
                failed.push(name);
                "FAILED".to_owned()
            }
            Err(_) => {
                failed.push(name);
                format!("FAILED: not done within {PATIENCE:?}")
            }
        };
        say(&format!("scene {name} ... {word} ({:.1}s)", took.as_secs_f64()));
    }
    servers.close().await;
    let took = began.elapsed().as_secs_f64();
    say(&format!("{passed} passed, {} failed, {skipped} skipped, in {took:.1}s", failed.len()));
    for name in &failed {
        say(&format!("failed: {name}"));
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
