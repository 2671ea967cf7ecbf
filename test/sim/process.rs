//! What a process is in a world: something that can be frozen, that works under guards, and that ends.

use crate::clock::Truth;
use crate::history::{History, What};
use leasehold::dev::apiserver::{Effect, Faults, Match, Outage};
use leasehold::leader::{Guard, Leadership};
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Stops futures from being polled for a while: what comes to them meanwhile, timers too, they find when it is over.
#[derive(Clone, Default)]
pub struct Ice(Arc<Frost>);

#[derive(Default)]
struct Frost {
    frozen: AtomicBool,
    /// When it has frozen.
    times: Mutex<Vec<tokio::time::Instant>>,
    waiting: Mutex<Vec<Waker>>,
}

impl Ice {
    pub fn freeze(&self) {
        if !self.0.frozen.swap(true, Ordering::Relaxed) {
            self.0.times.lock().expect("whole").push(tokio::time::Instant::now());
        }
    }

    pub fn thaw(&self) {
        self.0.frozen.store(false, Ordering::Relaxed);
        self.0.waiting.lock().expect("whole").drain(..).for_each(Waker::wake);
    }

    fn times(&self) -> usize {
        self.0.times.lock().expect("whole").len()
    }

    fn time(&self, n: usize) -> Option<tokio::time::Instant> {
        self.0.times.lock().expect("whole").get(n).copied()
    }

    pub async fn freezes<F: Future>(self, inner: F) -> F::Output {
        let mut inner = std::pin::pin!(inner);
        poll_fn(|cx| {
            if self.0.frozen.load(Ordering::Relaxed) {
                self.0.waiting.lock().expect("whole").push(cx.waker().clone());
                return Poll::Pending;
            }
            inner.as_mut().poll(cx)
        })
        .await
    }
}

/// What ends with a process.
#[derive(Clone)]
pub struct Life {
    pub name: String,
    pub truth: Truth,
    pub history: History,
    pub faults: Faults,
    pub tasks: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Life {
    /// Nothing of it reaches the server any more, what it was doing does not count.
    pub fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("whole"));
        if tasks.is_empty() {
            return;
        }
        self.history.add(self.truth.now(), &self.name, What::Died);
        self.faults.inject(Match::any(), Effect::Outage(Outage::BlackHole));
        tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Acts on random keys as often as it may.
#[derive(Clone)]
pub struct Work {
    pub leadership: Leadership,
    pub truth: Truth,
    pub history: History,
    pub replica: String,
    pub process: Ice,
    pub long: bool,
    pub let_go: Arc<Notify>,
}

impl Work {
    pub async fn run(self, mut rng: fastrand::Rng) {
        loop {
            tokio::time::sleep(Duration::from_millis(rng.u64(5..60))).await;
            let key = format!("ns/{}", rng.u32(0..40));
            let Some(guard) = self.leadership.guard(&key) else { continue };
            let length = match rng.u32(0..200) {
                0 if self.long => rng.u64(0..90_000),
                0..10 => rng.u64(0..4000),
                _ => rng.u64(1..80),
            };
            tokio::spawn(self.process.clone().freezes(self.clone().act(guard, key, Duration::from_millis(length))));
        }
    }

    /// While it is suspended it does nothing; if it is polled again afterwards it acts again.
    async fn act(self, guard: Guard, key: String, length: Duration) {
        let given = self.truth.now();
        let note = |from, until| self.note(&guard, &key, given, (from, until), false);
        let mut sleep = std::pin::pin!(tokio::time::sleep(length));
        let (mut began, mut times) = (given, self.process.times());
        let frozen = |times| self.process.time(times).map(|at| self.truth.at(at));
        let work = poll_fn(|cx| {
            if let Some(at) = frozen(times) {
                note(began, at);
                (began, times) = (self.truth.now(), self.process.times());
            }
            sleep.as_mut().poll(cx)
        });
        let _ = guard.run(work).await;
        note(began, frozen(times).unwrap_or_else(|| self.truth.now()));
    }

    /// Work that heeds no cancelling.
    pub async fn hold(self, guard: Guard, key: String, length: Duration) {
        let began = self.truth.now();
        let times = self.process.times();
        tokio::select! {
            biased;
            () = self.let_go.notified() => {}
            () = tokio::time::sleep(length) => {}
        }
        let frozen = self.process.time(times).map(|at| self.truth.at(at));
        let until = frozen.unwrap_or_else(|| self.truth.now());
        self.note(&guard, &key, began, (began, until), true);
    }

    fn note(&self, guard: &Guard, key: &str, given: Duration, (from, until): (Duration, Duration), stubborn: bool) {
        let (bucket, token) = (guard.bucket().name().to_owned(), guard.token());
        let what = What::Act { bucket, key: key.to_owned(), token, given, until, stubborn };
        self.history.add(from, &self.replica, what);
    }
}
