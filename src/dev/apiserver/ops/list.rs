//! Lists, whole and in pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Outcome, Staleness};
use crate::dev::apiserver::object::{Key, Object};
use crate::dev::apiserver::request::Call;
use crate::dev::apiserver::request::query::Match;
use crate::dev::apiserver::state::State;
use crate::dev::apiserver::status::Status;

/// A page of a collection, all of it as of one revision.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Object>>,
    /// Where the next page begins.
    pub(crate) continue_token: Option<String>,
    /// How many are left after this page, where that is known.
    pub(crate) remaining: Option<usize>,
}

/// Where a list goes on.
struct Continue {
    /// None in a token that goes on from the newest revision instead of the first page's.
    revision: Option<u64>,
    after: Key,
}

impl Continue {
    fn encode(&self) -> String {
        let rv = self.revision.map_or(-1, |r| i64::try_from(r).unwrap_or(i64::MAX));
        let token = json!({"v": "meta.k8s.io/v1", "rv": rv, "start": [&*self.after.namespace, &*self.after.name]});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(token: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).ok()?;
        let v: Value = serde_json::from_slice(&bytes).ok()?;
        let rv = v.get("rv")?.as_i64()?;
        let start = v.get("start")?;
        Some(Self {
            revision: if rv < 0 { None } else { Some(rv.unsigned_abs()) },
            after: Key::new(start.get(0)?.as_str()?, start.get(1)?.as_str()?),
        })
    }
}

/// Lists a collection.
///
/// Without a resourceVersion the list is of the newest revision. `resourceVersion=0` may be stale and, as a real
/// server's watch cache does, ignores the limit. Any other is a lower bound, or with `Exact` the revision itself.
pub(super) fn list(state: &State, call: &Call, stale: Staleness) -> Result<Outcome, Status> {
    let q = &call.query;
    let store = &state.store;
    let current = store.revision();
    let wanted = q.resource_version;
    if wanted.is_none() && q.version_match.is_some() && q.continue_token.is_none() {
        return Err(Status::bad_request(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ));
    }
    if let Some(w) = wanted.filter(|w| *w > current) {
        return Err(Status::too_large_revision(w, current));
    }
    // With a limit, a revision without further words is meant to the letter; without one it is a lower bound.
    let exact = q.version_match == Some(Match::Exact)
        || (q.version_match.is_none() && q.limit.is_some() && wanted.is_some_and(|w| w > 0));
    let (at, after) = match &q.continue_token {
        Some(_) if wanted.is_some_and(|w| w > 0) || q.version_match.is_some() => {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        Some(token) => {
            let from = Continue::decode(token)
                .ok_or_else(|| Status::bad_request("continue key is not valid: it was not made by this server"))?;
            if let Some(at) = from.revision
                && (at > current || store.readable(at).is_err())
            {
                let onward = Continue { revision: None, after: from.after };
                return Err(Status::expired_continue(onward.encode()));
            }
            (from.revision, Some(from.after))
        }
        None if exact => {
            let at = wanted.filter(|w| *w > 0).ok_or_else(|| {
                Status::bad_request(
                    "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \
                     \"0\"",
                )
            })?;
            if let Err(compacted) = store.readable(at) {
                return Err(Status::expired(format!(
                    "The provided resource version is too old to display a consistent list result: {at} ({})",
                    compacted.oldest
                )));
            }
            (Some(at), None)
        }
        None => (stale.map(|s| s.clamp(store.compacted(), current)), None),
    };
    let limit = q.limit.filter(|_| wanted != Some(0));
    let revision = at.unwrap_or(current);
    let page = if revision == current {
        let range = store.table(call.resource.table).range(call.namespace.as_deref(), after.as_ref());
        select(call, range, limit, revision)
    } else {
        let then = store.table(call.resource.table).at(revision);
        select(call, in_range(&then, call.namespace.as_deref(), after.as_ref()), limit, revision)
    };
    Ok(Outcome::List(page))
}

fn in_range<'a>(
    all: &'a BTreeMap<Key, Arc<Object>>,
    namespace: Option<&'a str>,
    after: Option<&'a Key>,
) -> impl Iterator<Item = &'a Arc<Object>> {
    all.iter()
        .filter(move |(k, _)| namespace.is_none_or(|ns| &*k.namespace == ns) && after.is_none_or(|a| *k > a))
        .map(|(_, o)| o)
}

fn select<'a>(
    call: &Call,
    objects: impl Iterator<Item = &'a Arc<Object>>,
    limit: Option<usize>,
    revision: u64,
) -> Page {
    let selector = &call.query.selector;
    let mut selected = objects.filter(|o| selector.matches(o.value()));
    let Some(limit) = limit else {
        return Page { revision, items: selected.cloned().collect(), continue_token: None, remaining: None };
    };
    let items: Vec<Arc<Object>> = selected.by_ref().take(limit).cloned().collect();
    let left = selected.count();
    let last = items.last().filter(|_| left > 0);
    Page {
        revision,
        continue_token: last.map(|o| Continue { revision: Some(revision), after: o.key().clone() }.encode()),
        // A real server does not count what a selector would still have to look at.
        remaining: last.and_then(|_| selector.is_everything().then_some(left)),
        items,
    }
}
