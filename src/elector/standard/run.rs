//! Carries out what [`super::core`] decides: requests, terms, timers. One task per queue owns all of its state.

use super::core::{Action, Answer, Ask, Core, Now, Reply, Request, Settings, Target};
use crate::bucket::BucketSet;
use crate::clock::{SharedClock, sleep_until};
use crate::config::Config;
use crate::elector::{Elector, Queue, Stop};
use crate::leader::tenure::{Surroundings, Tenure, Told};
use crate::leader::{DynLeaderAware, observe};
use crate::lease::{Claim, Cut, Failure, LeaseClient, Manager, Seen, Subscription};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

impl Settings {
    fn of(config: &Config) -> Self {
        let timing = config.timing;
        Self {
            lease_duration: timing.lease_duration,
            renew_deadline: timing.renew_deadline,
            retry_period: timing.retry_period,
            foreign_grace: config.foreign_grace.unwrap_or(timing.renew_deadline),
            drain_timeout: config.drain_timeout,
        }
    }
}

/// The elector of one queue.
pub(super) struct Running {
    manager: Manager,
    claim: Claim,
    queue: Queue,
    set: Arc<BucketSet>,
    cut: Cut,
    layout: String,
}

impl Running {
    pub(super) fn new(
        manager: Manager,
        claim: Claim,
        queue: Queue,
        set: Arc<BucketSet>,
        cut: Cut,
        layout: String,
    ) -> Self {
        Self { manager, claim, queue, set, cut, layout }
    }
}

impl Elector for Running {
    fn run(self: Box<Self>, aware: Arc<dyn DynLeaderAware>, stop: Stop) -> BoxFuture<'static, ()> {
        Box::pin(Loop::new(*self, aware).run(stop))
    }
}

/// How many events or answers are taken in before a decision.
const AT_ONCE: usize = 256;

type Asks = FuturesUnordered<BoxFuture<'static, Answer>>;

struct Loop {
    running: Running,
    core: Core,
    around: Surroundings,
    told: mpsc::UnboundedReceiver<Told>,
    tenures: HashMap<usize, Tenure>,
    asks: Asks,
    /// Resolves for a bucket whose checkpoint is to be written at once.
    wanted: FuturesUnordered<BoxFuture<'static, Option<usize>>>,
}

impl Loop {
    fn new(running: Running, aware: Arc<dyn DynLeaderAware>) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let queue = &running.queue;
        let around = Surroundings {
            aware,
            clock: Arc::clone(&queue.clock),
            observer: Arc::clone(&queue.observer),
            on_fatal: Arc::clone(&queue.on_fatal),
            told: tell,
        };
        let settings = Settings::of(&queue.config.borrow());
        // Seeded by the identity: no two replicas alike, and a simulation repeats itself.
        let seed = queue
            .identity
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let core = Core::new(
            queue.identity.clone(),
            &running.set,
            running.cut.clone(),
            running.layout.clone(),
            settings,
            Arc::clone(&queue.clock),
            fastrand::Rng::with_seed(seed),
        );
        Self {
            running,
            core,
            around,
            told,
            tenures: HashMap::new(),
            asks: FuturesUnordered::new(),
            wanted: FuturesUnordered::new(),
        }
    }

    fn clock(&self) -> SharedClock {
        Arc::clone(&self.running.queue.clock)
    }

    fn now(&self) -> Now {
        let clock = &self.running.queue.clock;
        Now { at: clock.now(), wall: clock.wall() }
    }

    async fn run(mut self, stop: Stop) {
        let prefix = self.running.cut.prefix.clone();
        let layout = self.running.layout.clone();
        let mut seen = self
            .running
            .manager
            .subscribe(move |name| name == layout || crate::bucket::parse_lease_name(&prefix, name).is_some());
        let mut trouble = self.running.manager.trouble();
        trouble.mark_changed();
        let mut config = self.running.queue.config.clone();
        let clock = self.clock();
        let mut stopping = false;
        loop {
            let wake = self.step();
            if self.core.is_finished(self.now()) {
                tracing::debug!(queue = %self.running.queue.name, "the elector has given up what it held");
                drop(self.running.claim);
                return;
            }
            let timer = async {
                match wake {
                    Some(at) => sleep_until(&*clock, at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    let now = self.now();
                    self.core.stop(now);
                }
                Some(told) = self.told.recv() => self.on_told(told),
                first = seen.next() => self.on_seen(&first, &mut seen),
                Some(answer) = self.asks.next() => self.on_answered(answer),
                Some(wanted) = self.wanted.next() => {
                    if let Some(at) = wanted {
                        // The next step finds it urgent.
                        self.want(at);
                    }
                }
                Ok(()) = config.changed() => {
                    let settings = Settings::of(&config.borrow_and_update());
                    self.core.configure(settings);
                }
                Ok(()) = trouble.changed() => {
                    let status = &self.running.queue.status;
                    match trouble.borrow_and_update().clone() {
                        Some(text) => status.say("watch", text),
                        None => status.clear("watch"),
                    };
                }
                () = timer => {}
            }
        }
    }

    /// What has been seen since the last step: a decision looks at every bucket, so none is made for each event.
    fn on_seen(&mut self, first: &Seen, more: &mut Subscription) {
        self.core.seen(first, self.now());
        for _ in 0..AT_ONCE {
            let Some(next) = more.next().now_or_never() else { break };
            self.core.seen(&next, self.now());
        }
        // Requests are carried on by being polled: a stream of events must not keep them from it.
        if let Some(Some(answer)) = self.asks.next().now_or_never() {
            self.on_answered(answer);
        }
    }

    fn on_answered(&mut self, first: Answer) {
        self.core.answered(first, self.now());
        for _ in 0..AT_ONCE {
            let Some(Some(next)) = self.asks.next().now_or_never() else { break };
            self.core.answered(next, self.now());
        }
    }

    fn on_told(&mut self, told: Told) {
        let now = self.now();
        match told {
            Told::Promoted(term) => self.core.promoted(term.bucket().index()),
            Told::PromoteFailed(term) => self.core.promote_failed(term.bucket().index(), &term, now),
            Told::Ended(term, ended) => {
                let at = term.bucket().index();
                if self.tenures.get(&at).is_some_and(|t| t.term().is_same(&term)) {
                    self.tenures.remove(&at);
                }
                self.core.ended(at, &term, ended, now);
            }
        }
    }

    /// Decides and carries out; says when to decide again at the latest.
    fn step(&mut self) -> Option<crate::clock::Instant> {
        let (actions, wake) = self.core.decide(self.now());
        for action in actions {
            self.carry_out(action);
        }
        wake
    }

    fn carry_out(&mut self, action: Action) {
        let queue = &self.running.queue;
        match action {
            Action::Ask(ask, request) => {
                let name = match ask.target {
                    Target::Bucket(at) => self.running.set.name(at).to_owned(),
                    Target::Layout | Target::Judge | Target::Queue => self.running.layout.clone(),
                };
                let timing = queue.config.borrow().timing;
                let bound = timing.attempt_timeout().max(Duration::from_millis(200));
                let client = self.running.manager.client().clone();
                let prefix = self.running.cut.prefix.clone();
                self.asks.push(Box::pin(send(client, ask, request, name, prefix, bound)));
            }
            Action::Begin(at, term, limits) => {
                tracing::info!(bucket = %term.bucket(), token = ?term.token().map(|t| t.to_string()), "taken");
                let tenure = Tenure::begin(term, limits, self.around.clone());
                self.tenures.insert(at, tenure);
                self.want(at);
            }
            Action::Limit(at, limits) => {
                if let Some(tenure) = self.tenures.get(&at) {
                    tenure.limit(limits);
                }
            }
            Action::End(at, reason) => {
                if let Some(tenure) = self.tenures.get(&at) {
                    tracing::info!(bucket = %tenure.term().bucket(), reason = reason.as_str(), "the term ends");
                    tenure.end(reason);
                }
            }
            Action::Observe(event) => {
                if let observe::Event::Notice { code, text } = &event {
                    let news = match *code {
                        // A topic of the page says it for as long as it lasts.
                        "first-start" | "standing-by" | "forbidden" | "refused" | "no-namespace" => true,
                        // Repeated while it lasts; news only the first time.
                        "stepped-back" => queue.status.say(code, text.clone()),
                        // It happened once; so the page says when.
                        _ => queue.status.say(code, format!("at {:.0}: {text}", queue.clock.wall())),
                    };
                    if news {
                        tracing::warn!(code, "{text}");
                    } else {
                        return;
                    }
                }
                observe::tell(&*queue.observer, &event);
            }
            Action::Say(topic, Some(text)) => drop(queue.status.say(topic, text)),
            Action::Say(topic, None) => {
                if queue.status.clear(topic) {
                    tracing::info!(topic, "over: no longer on the readiness page");
                }
            }
            Action::Relist => self.running.manager.relist(),
        }
    }

    /// Listens for the checkpoint of a tenure, while there is one.
    fn want(&mut self, at: usize) {
        if let Some(tenure) = self.tenures.get(&at) {
            let term = tenure.term().clone();
            self.wanted.push(Box::pin(async move {
                tokio::select! {
                    () = term.checkpoint().wanted() => Some(at),
                    () = term.draining() => None,
                }
            }));
        }
    }
}

async fn send(
    client: LeaseClient,
    ask: Ask,
    request: Request,
    name: String,
    prefix: String,
    bound: Duration,
) -> Answer {
    let result = match request {
        Request::Get => {
            client.get(&name, bound).await.map(|r| r.map_or(Reply::Missing, |r| Reply::Record(Box::new(r))))
        }
        Request::Create(draft) => client.create(&draft, bound).await.map(|r| Reply::Record(Box::new(r))),
        Request::Replace(draft) => client.replace(&draft, bound).await.map(|r| Reply::Record(Box::new(r))),
        Request::List => client.list(bound).await.map(|(revision, mut records)| {
            records.retain(|r| r.name == name || crate::bucket::parse_lease_name(&prefix, &r.name).is_some());
            Reply::List(revision, records)
        }),
    };
    if let Err(failure @ (Failure::Unknown(_) | Failure::TimedOut(_))) = &result {
        tracing::debug!(lease = %name, %failure, "a Lease request brought no answer");
    }
    Answer { ask, result }
}
