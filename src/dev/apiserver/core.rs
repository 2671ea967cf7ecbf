//! One request from its bytes to its answer: read, counted, faulted, carried out, rendered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use tokio::time::Instant;

use super::audit::{Audit, Pending};
use super::body::{Disconnected, ResponseBody};
use super::faults::{Board, Staleness, Step};
use super::meta;
use super::object::to_bytes;
use super::ops::{self, Outcome};
use super::options::Options;
use super::render::Form;
use super::request::path::{self, Path, ResourcePath};
use super::request::{Call, Query, Sub, Verb};
use super::state::State;
use super::status::Status;
use super::watch::Follower;

/// The server behind all its faces.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) faults: Board,
    pub(crate) audit: Audit,
    state: Mutex<State>,
}

/// What a request is about.
enum Asked {
    /// A resource.
    Resource(Box<Call>),
    /// Something about the server; the parts of the path.
    Other(Vec<String>),
}

/// A request that was carried out, before its answer is rendered.
struct Done {
    outcome: Result<Outcome, Status>,
    warnings: Vec<String>,
}

impl Core {
    pub(crate) fn new(options: Options) -> Arc<Self> {
        let mut state = State::new(&options);
        ops::bootstrap(&mut state);
        Arc::new(Self {
            faults: Board::new(options.seed),
            audit: Audit::new(options.audit),
            state: Mutex::new(state),
            options,
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock can only come from a test's observer; the data is whole all the same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request whose body has been read. `Err` means that the connection breaks.
    ///
    /// Cancel-safe: dropped before its commit, a request leaves no trace (but see [`super::Effect::LateCommit`]).
    pub(crate) async fn answer(
        self: &Arc<Self>,
        client: Arc<str>,
        head: &Parts,
        body: Bytes,
    ) -> Result<Response<ResponseBody>, Disconnected> {
        match self.understand(client, head, body) {
            Ok(Asked::Resource(call)) => self.resource(*call).await,
            Ok(Asked::Other(parts)) => Ok(meta::answer(self, head, &parts)),
            Err(status) => Ok(refusal(&status)),
        }
    }

    /// What a request is about.
    fn understand(&self, client: Arc<str>, head: &Parts, body: Bytes) -> Result<Asked, Status> {
        let at = match path::parse(head.uri.path()) {
            None => return Err(Status::no_such_path()),
            Some(Path::Other(parts)) => return Ok(Asked::Other(parts)),
            Some(Path::Resource(at)) => at,
        };
        let mut query = Query::parse(head.uri.query())?;
        let resource =
            self.state().registry.find(&at.group, &at.version, &at.plural).cloned().ok_or_else(Status::no_such_path)?;
        let ResourcePath { namespace, name, sub, .. } = at;
        if (namespace.is_some() && !resource.namespaced)
            || (name.is_some() && resource.namespaced && namespace.is_none())
        {
            return Err(Status::no_such_path());
        }
        let verb = verb(&head.method, name.is_some(), query.watch)?;
        let sub = match sub.as_deref() {
            None => None,
            Some("status") if resource.status && verb != Verb::Create => Some(Sub::Status),
            Some("token") if resource.plural == "serviceaccounts" && verb == Verb::Create => Some(Sub::Token),
            Some(_) => return Err(Status::no_such_path()),
        };
        query.selector.resolve(|path| resource.selectable(path))?;
        if let (Verb::Watch, Some(name)) = (verb, &name) {
            query.selector.only(name);
        }
        let header = |key: http::header::HeaderName| {
            head.headers.get(key).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
        };
        let agent = header(http::header::USER_AGENT);
        let agent = agent.split('/').next().unwrap_or_default();
        let manager = if agent.is_empty() { client.to_string() } else { agent.to_owned() };
        Ok(Asked::Resource(Box::new(Call {
            manager,
            client,
            verb,
            resource,
            namespace,
            name,
            body_name: None,
            sub,
            query,
            body,
            content_type: header(CONTENT_TYPE),
            accept: header(http::header::ACCEPT),
        })))
    }

    /// A request for a resource, with the faults that are meant for it.
    async fn resource(self: &Arc<Self>, mut call: Call) -> Result<Response<ResponseBody>, Disconnected> {
        if matches!(call.verb, Verb::Create) && call.name.is_none() {
            // Rules that look at names want the name; it stands in the body only.
            call.body_name = peek_name(&call.body);
        }
        let plan = self.faults.plan(&call);
        let mut pending = Pending::new(self.clone(), &call);
        for step in plan.before {
            match run(step).await? {
                None => {}
                Some(status) => {
                    pending.done(status.code().as_u16(), None, None);
                    return Ok(refusal(&status));
                }
            }
        }
        let done = match plan.late {
            None => self.carry_out(&call, plan.stale, pending),
            Some(late) => {
                let (core, call, stale) = (self.clone(), call.clone(), plan.stale);
                // On a task of its own it lands, and is recorded, whether or not anybody waits for it.
                let task = tokio::spawn(async move {
                    tokio::time::sleep(late).await;
                    core.carry_out(&call, stale, pending)
                });
                task.await.map_err(|_| Disconnected)?
            }
        };
        for step in plan.after {
            if let Some(status) = run(step).await? {
                return Ok(refusal(&status));
            }
        }
        Ok(self.render(call, done))
    }

    fn carry_out(&self, call: &Call, stale: Option<Staleness>, mut pending: Pending) -> Done {
        let mut state = self.state();
        let before = state.store.revision();
        let stale = stale.map(|s| match s {
            Staleness::Behind(n) => before.saturating_sub(n),
            Staleness::At(revision) => revision,
        });
        let outcome = ops::perform(&mut state, call, stale);
        let after = state.store.revision();
        let (code, name) = match &outcome {
            Ok(Outcome::Object(code, object)) => (*code, Some(object.name().to_owned())),
            Ok(Outcome::Draft(code, _) | Outcome::Status(code, _)) => (*code, None),
            Ok(Outcome::List(_) | Outcome::Watch(_)) => (StatusCode::OK, None),
            Err(status) => (status.code(), None),
        };
        let warnings = std::mem::take(&mut state.warnings);
        drop(state);
        pending.done(code.as_u16(), (after > before).then_some(after), name);
        Done { outcome, warnings }
    }

    fn render(self: &Arc<Self>, call: Call, done: Done) -> Response<ResponseBody> {
        let form = Form::of(&call, &self.options.clock);
        let resource = &call.resource;
        let mut response = match done.outcome {
            Err(status) => refusal(&status),
            Ok(Outcome::Object(code, object)) => json(code, form.object(resource, &object)),
            Ok(Outcome::Status(code, value)) => json(code, to_bytes(&value)),
            Ok(Outcome::Draft(code, value)) => json(code, form.value(resource, &value)),
            Ok(Outcome::List(page)) => json(StatusCode::OK, form.page(resource, &page)),
            Ok(Outcome::Watch(opened)) => {
                let longest = self.options.watch_timeout;
                let lasts = call
                    .query
                    .timeout_seconds
                    .map_or_else(|| longest.mul_f64(0.5 + 0.5 * self.state().rng.f64()), Duration::from_secs);
                // Beyond a month no watch lasts anyhow, and a sum of times must not overflow.
                let ends = Instant::now() + lasts.min(Duration::from_hours(24 * 30));
                let follower = Follower::new(self.clone(), call, opened, form, ends);
                respond(StatusCode::OK, ResponseBody::watch(follower))
            }
        };
        for text in done.warnings {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
    }
}

/// The name in the body of a create, where there is one.
fn peek_name(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        metadata: Option<Meta>,
    }
    #[derive(serde::Deserialize)]
    struct Meta {
        name: Option<String>,
    }
    serde_json::from_slice::<Named>(body).ok()?.metadata?.name
}

/// Does what a rule says: goes on, breaks the connection, or answers in the server's place.
async fn run(step: Step) -> Result<Option<Status>, Disconnected> {
    match step {
        Step::Delay(d) => tokio::time::sleep(d).await,
        Step::Hang => std::future::pending().await,
        Step::Drop => return Err(Disconnected),
        Step::Answer(status) => return Ok(Some(status)),
    }
    Ok(None)
}

fn verb(method: &Method, named: bool, watch: bool) -> Result<Verb, Status> {
    Ok(match (method, named) {
        (&Method::GET, _) if watch => Verb::Watch,
        (&Method::GET, true) => Verb::Get,
        (&Method::GET, false) => Verb::List,
        (&Method::POST, _) => Verb::Create,
        (&Method::PUT, _) => Verb::Update,
        (&Method::PATCH, _) => Verb::Patch,
        (&Method::DELETE, true) => Verb::Delete,
        (&Method::DELETE, false) => Verb::DeleteCollection,
        _ => return Err(Status::method_not_allowed()),
    })
}

/// An error as an answer.
pub(crate) fn refusal(status: &Status) -> Response<ResponseBody> {
    let mut response = json(status.code(), to_bytes(&status.to_value()));
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Bytes of JSON as an answer.
pub(crate) fn json(code: StatusCode, bytes: Bytes) -> Response<ResponseBody> {
    respond(code, ResponseBody::whole(bytes))
}

fn respond(code: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
