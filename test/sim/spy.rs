//! What reaches the server, and what comes of it, told to the history.

use crate::clock::Truth;
use crate::history::{History, What, Write};
use http_body_util::BodyExt;
use kube::client::Body;
use leasehold::dev::apiserver::{Commit, Object, Server, Verb};
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::Service;

/// When each write was sent: by client, Lease and renewTime, which no two writes of a replica share.
type Sends = Arc<Mutex<HashMap<(String, String, String), Duration>>>;

/// A connection whose requests are looked at on their way: rule S3 is about what a write carries.
#[derive(Clone)]
pub struct Spy<S> {
    inner: S,
    client: String,
    eyes: Eyes,
}

/// What all spies of a world share.
#[derive(Clone)]
pub struct Eyes {
    truth: Truth,
    history: History,
    sends: Sends,
}

impl Eyes {
    /// Tells `history` of every bucket that is written.
    pub fn open(server: &Server, truth: Truth, history: &History) -> Self {
        let eyes = Self { truth, history: history.clone(), sends: Sends::default() };
        let seen = eyes.clone();
        server.on_commit(move |commit| {
            // Only replicas keep these rules: a person, `leasehold init` and client-go have their own.
            let replica = commit.client.strip_prefix('r').is_some_and(|n| n.parse::<u32>().is_ok());
            if commit.resource == "leases" && replica {
                seen.committed(commit);
            }
        });
        eyes
    }

    pub fn spy<S>(&self, inner: S, client: &str) -> Spy<S> {
        Spy { inner, client: client.to_owned(), eyes: self.clone() }
    }

    fn committed(&self, commit: &Commit) {
        let Some((bucket, write)) = write(commit) else { return };
        let now = self.truth.now();
        let renew = commit.after.as_deref().map(|o| field(o, "/spec/renewTime")).unwrap_or_default();
        let key = (commit.client.to_string(), bucket.clone(), renew);
        // One that stays under way may land at any time.
        let arrived = self.sends.lock().expect("whole").get(&key).copied().unwrap_or(now);
        self.history.add(now, &commit.client, What::Wrote { bucket, arrived, write });
    }

    fn sent(&self, client: &str, parts: &http::request::Parts, body: &[u8]) {
        let now = self.truth.now();
        self.history.add(now, client, What::Asked);
        let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        if let Some(wrong) = wrong(parts, &body) {
            self.history.add(now, client, What::Sent { wrong });
        }
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if parts.method == "PUT" {
            // Of two that are the same the first counts.
            let key = (client.to_owned(), text("/metadata/name"), text("/spec/renewTime"));
            self.sends.lock().expect("whole").entry(key).or_insert(now);
        }
    }
}

impl<S> Service<http::Request<Body>> for Spy<S>
where
    S: Service<http::Request<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self { mut inner, client, eyes } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.expect("in memory").to_bytes();
            eyes.sent(&client, &parts, &bytes);
            inner.call(http::Request::from_parts(parts, Body::from(bytes.to_vec()))).await
        })
    }
}

/// What is wrong with a request, by rule S3.
fn wrong(parts: &http::request::Parts, body: &Value) -> Option<String> {
    let given = |object: &Value, key: &str| object[key].as_str().is_some_and(|v| !v.is_empty());
    let path = parts.uri.path();
    match parts.method.as_str() {
        "GET" => {
            let query = parts.uri.query().unwrap_or_default();
            let cached = query.contains("resourceVersion=") && !query.contains("watch=true");
            cached.then(|| format!("a read of {path} that a cache may answer: {query}"))
        }
        "PUT" => {
            let meta = &body["metadata"];
            let conditional = given(meta, "uid") && given(meta, "resourceVersion");
            (!conditional).then(|| format!("a PUT of {path} without uid or resourceVersion"))
        }
        "DELETE" => {
            let on = &body["preconditions"];
            let conditional = given(on, "uid") && given(on, "resourceVersion");
            (!conditional).then(|| format!("a DELETE of {path} without preconditions"))
        }
        "POST" => given(&body["spec"], "holderIdentity").then(|| format!("a POST of a held Lease to {path}")),
        other => Some(format!("{other} {path}")),
    }
}

fn field(object: &Object, pointer: &str) -> String {
    let value = object.value();
    value.pointer(pointer).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).unwrap_or_default()
}

fn write(commit: &Commit) -> Option<(String, Write)> {
    let after = commit.after.as_deref()?;
    let name = field(after, "/metadata/name");
    let holder = |o: &Object| field(o, "/spec/holderIdentity");
    let duration = || Duration::from_secs(field(after, "/spec/leaseDurationSeconds").parse().unwrap_or(0));
    let write = match (commit.before.as_deref(), commit.verb) {
        (None, Verb::Create) => {
            let bare =
                holder(after).is_empty() && !field(after, "/metadata/annotations").contains("leasehold.dev/release");
            Write::Made { bare }
        }
        (None, _) => Write::Remade,
        (Some(before), _) => {
            // An identity is the client's name and a number.
            let mine = |o: &Object| holder(o).starts_with(&format!("{}_", commit.client));
            let acquired = |o: &Object| field(o, "/spec/acquireTime");
            match (mine(before), mine(after)) {
                (true, true) if acquired(before) == acquired(after) => Write::Renewed { duration: duration() },
                (_, true) => Write::Took { duration: duration() },
                (true, false) if holder(after).is_empty() => Write::Released,
                _ => Write::Other,
            }
        }
    };
    Some((name, write))
}
