//! Which requests a rule is about.

use std::fmt;
use std::sync::Arc;

use crate::dev::apiserver::request::{Call, Verb};

type NameFn = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A predicate over requests, with counting. Conditions are joined by "and".
///
/// First the request itself is looked at, then its number among those that matched so far ([`nth`](Self::nth),
/// [`every`](Self::every)), then chance, then how often the rule has acted already ([`times`](Self::times)).
#[derive(Clone, Default)]
pub struct Match {
    verbs: Vec<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<NameFn>,
    cached: bool,
    nth: Option<u64>,
    every: Option<u64>,
    probability: Option<f64>,
    times: Option<u64>,
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Match")
            .field("verbs", &self.verbs)
            .field("resource", &self.resource)
            .field("namespace", &self.namespace)
            .field("named", &self.name.is_some())
            .field("cached", &self.cached)
            .field("nth", &self.nth)
            .field("every", &self.every)
            .field("probability", &self.probability)
            .field("times", &self.times)
            .finish()
    }
}

impl Match {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests of one verb.
    pub fn verb(verb: Verb) -> Self {
        Self { verbs: vec![verb], ..Self::default() }
    }

    /// Requests of any of these verbs.
    pub fn verbs(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self { verbs: verbs.into_iter().collect(), ..Self::default() }
    }

    /// Requests that may change something.
    pub fn writes() -> Self {
        Self::verbs([Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection])
    }

    /// Gets, lists and watches.
    pub fn reads() -> Self {
        Self::verbs([Verb::Get, Verb::List, Verb::Watch])
    }

    /// Gets, lists and watches that allow any revision (`resourceVersion=0`): the ones a real server may answer from
    /// a stale cache.
    pub fn cached_reads() -> Self {
        Self { cached: true, ..Self::reads() }
    }

    /// Of this resource only, by its plural (`leases`).
    #[must_use]
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.resource = Some(plural.into());
        self
    }

    /// In this namespace only.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// For the object of this name only. Lists and watches have no name.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.name_where(move |n| n == name)
    }

    /// For objects whose name satisfies this. Lists and watches have no name and do not match.
    #[must_use]
    pub fn name_where(mut self, predicate: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.name = Some(Arc::new(predicate));
        self
    }

    /// Only the n-th request that matches; 1 is the first.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.nth = Some(n);
        self
    }

    /// Only each k-th request that matches.
    #[must_use]
    pub fn every(mut self, k: u64) -> Self {
        self.every = Some(k.max(1));
        self
    }

    /// With this probability, drawn from the server's seed; at most 1.
    #[must_use]
    pub fn probability(mut self, p: f64) -> Self {
        self.probability = Some(p);
        self
    }

    /// At most so many times.
    #[must_use]
    pub fn times(mut self, n: u64) -> Self {
        self.times = Some(n);
        self
    }

    /// Whether the request is one of those meant, counting aside.
    pub(super) fn covers(&self, call: &Call, name: Option<&str>) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && self.resource.as_ref().is_none_or(|r| *r == call.resource.plural)
            && self.namespace.as_deref().is_none_or(|ns| call.namespace.as_deref() == Some(ns))
            && (!self.cached || call.query.resource_version == Some(0))
            && self.name.as_ref().is_none_or(|is| name.is_some_and(|n| is(n)))
    }

    /// Whether the rule acts on the request, which is the `seen`-th that it covers (from 1) after it has acted on
    /// `fired`.
    pub(super) fn fires(&self, seen: u64, fired: u64, rng: &mut fastrand::Rng) -> bool {
        self.nth.is_none_or(|n| n == seen)
            && self.every.is_none_or(|k| seen.is_multiple_of(k))
            && self.times.is_none_or(|n| fired < n)
            && self.probability.is_none_or(|p| rng.f64() < p)
    }
}
