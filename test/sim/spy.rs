//! What reaches the server, and what comes of it, told to the history.

use crate::clock::Truth;
use crate::history::version::Version;
use crate::history::{Asked, History, Kind, What, Write, Wrote};
use crate::world::Ice;
use http_body_util::BodyExt;
use kube::client::Body;
use leasehold::dev::apiserver::{Commit, Server, Verb};
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::Service;

/// When each write was sent: by client, Lease, and the times and the resourceVersion in it.
type Sends = Arc<Mutex<HashMap<(String, String, String, u64), Duration>>>;

/// A connection whose requests are looked at on their way: rules S3 and S5 are about what is sent, and after what.
#[derive(Clone)]
pub struct Spy<S> {
    inner: S,
    client: String,
    eyes: Eyes,
    /// A process that is suspended neither sends nor hears.
    process: Ice,
}

/// What all spies of a world share.
#[derive(Clone)]
pub struct Eyes {
    truth: Truth,
    history: History,
    sends: Sends,
    number: Arc<AtomicU64>,
    /// Under which identity each client writes.
    identities: Arc<Mutex<HashMap<String, String>>>,
}

impl Eyes {
    /// Tells `history` of every Lease that is written.
    pub fn open(server: &Server, truth: Truth, history: &History) -> Self {
        let eyes = Self {
            truth,
            history: history.clone(),
            sends: Sends::default(),
            number: Arc::default(),
            identities: Arc::default(),
        };
        let seen = eyes.clone();
        server.on_commit(move |commit| {
            if commit.resource == "leases" {
                seen.committed(commit);
            }
        });
        eyes
    }

    /// `client` writes as `identity`.
    pub fn spy<S>(&self, inner: S, client: &str, identity: &str, process: Ice) -> Spy<S> {
        self.identities.lock().expect("whole").insert(client.to_owned(), identity.to_owned());
        Spy { inner, client: client.to_owned(), eyes: self.clone(), process }
    }

    fn committed(&self, commit: &Commit) {
        let version = |o: &Arc<leasehold::dev::apiserver::Object>| Arc::new(Version::of(o.value()));
        let (before, after) = (commit.before.as_ref().map(version), commit.after.as_ref().map(version));
        let Some(any) = after.as_ref().or(before.as_ref()) else { return };
        let now = self.truth.now();
        let bucket = any.name.clone();
        let identity = self.identities.lock().expect("whole").get(&*commit.client).cloned();
        let write = write(commit, identity.as_deref(), before.as_deref(), after.as_deref());
        let base = before.as_ref().map_or(0, |v| v.revision);
        let key = (commit.client.to_string(), bucket.clone(), format!("{} {}", any.acquired, any.renewed), base);
        // One that stays under way may land at any time.
        let sent = if after.is_some() { self.sends.lock().expect("whole").get(&key).copied() } else { None };
        let arrived = sent.unwrap_or(now);
        let wrote = Wrote { bucket, arrived, write, revision: commit.revision, before, after };
        self.history.add(now, &commit.client, What::Wrote(wrote));
    }

    fn sent(&self, client: &str, parts: &http::request::Parts, body: &[u8]) -> Answering {
        let now = self.truth.now();
        let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        if let Some(wrong) = wrong(parts, &body) {
            self.history.add(now, client, What::Sent { wrong });
        }
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if parts.method == "PUT" {
            // Of two that are the same the first counts.
            let base = text("/metadata/resourceVersion").parse().unwrap_or(0);
            let times = format!("{} {}", text("/spec/acquireTime"), text("/spec/renewTime"));
            let key = (client.to_owned(), text("/metadata/name"), times, base);
            self.sends.lock().expect("whole").entry(key).or_insert(now);
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let releases = || {
            body.pointer("/metadata/annotations/leasehold.dev~1release").is_some()
                && text("/spec/holderIdentity").is_empty()
        };
        let watches = || parts.uri.query().unwrap_or_default().contains("watch=");
        let in_path = parts.uri.path().split("/leases/").nth(1);
        let kind = match parts.method.as_str() {
            "PUT" => Kind::Put { releases: releases() },
            "POST" => Kind::Create,
            "DELETE" => Kind::Delete,
            _ if watches() => Kind::Watch,
            _ if in_path.is_some() => Kind::Get,
            _ => Kind::List,
        };
        let name = if kind == Kind::Create { Some(text("/metadata/name")) } else { in_path.map(str::to_owned) };
        self.history.add(now, client, What::Asked(Asked { number, kind, lease: name.map(Into::into) }));
        Answering { eyes: self.clone(), client: client.to_owned(), number, code: None }
    }
}

/// A request that is out; dropped, it was answered, or given up.
struct Answering {
    eyes: Eyes,
    client: String,
    number: u64,
    code: Option<u16>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        let what = What::Answered { number: self.number, code: self.code };
        self.eyes.history.add(self.eyes.truth.now(), &self.client, what);
    }
}

impl<S, B> Service<http::Request<Body>> for Spy<S>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self { mut inner, client, eyes, process } = self.clone();
        Box::pin(process.freezes(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.expect("in memory").to_bytes();
            let mut answering = eyes.sent(&client, &parts, &bytes);
            let answer = inner.call(http::Request::from_parts(parts, Body::from(bytes.to_vec()))).await;
            answering.code = answer.as_ref().ok().map(|a| a.status().as_u16());
            answer
        }))
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

fn write(commit: &Commit, identity: Option<&str>, before: Option<&Version>, after: Option<&Version>) -> Write {
    let Some(after) = after else { return Write::Deleted };
    let Some(before) = before else {
        return if commit.verb == Verb::Create {
            Write::Made { bare: after.holder.is_empty() && !after.released }
        } else {
            Write::Remade
        };
    };
    let mine = |v: &Version| identity == Some(v.holder.as_str());
    let duration = after.spec_duration;
    match (mine(before), mine(after)) {
        (true, true) if before.acquired == after.acquired => Write::Renewed { duration },
        (_, true) => Write::Took { duration },
        (true, false) if after.holder.is_empty() => Write::Released,
        _ => Write::Other,
    }
}
