//! An API server of one ConfigMap: get, list and watch, and the ways in which they fail.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{FutureExt, StreamExt};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};

/// How requests are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    Well,
    Forbids,
    /// Only watches; a list is answered.
    ForbidsWatches,
    Breaks,
    Hangs,
}

#[derive(Clone)]
pub(super) struct ApiServer(Arc<Mutex<State>>);

struct State {
    mood: Mood,
    revision: u64,
    data: Option<BTreeMap<String, String>>,
    /// Every event so far, with its revision.
    events: Vec<(u64, String)>,
    watches: Vec<mpsc::UnboundedSender<Bytes>>,
    requests: Vec<String>,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl ApiServer {
    pub(super) fn new(data: Option<BTreeMap<String, String>>) -> Self {
        let state = State {
            mood: Mood::Well,
            revision: 7,
            data,
            events: Vec::new(),
            watches: Vec::new(),
            requests: Vec::new(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = server.state().answer(&request);
            async move {
                match answer {
                    Some(answer) => Ok::<_, Infallible>(answer),
                    None => std::future::pending().await,
                }
            }
            .boxed()
        });
        kube::Client::new(service, "ns")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    pub(super) fn set_mood(&self, mood: Mood) {
        self.state().mood = mood;
    }

    /// Ends every watch: what comes next meets the present mood.
    pub(super) fn cut(&self) {
        self.state().watches.clear();
    }

    /// Makes or replaces the ConfigMap, or deletes it.
    pub(super) fn put(&self, data: Option<BTreeMap<String, String>>) {
        let mut state = self.state();
        state.revision += 1;
        let kind = match (&state.data, &data) {
            (None, Some(_)) => "ADDED",
            (_, None) => "DELETED",
            (Some(_), Some(_)) => "MODIFIED",
        };
        let object = state.object(data.as_ref().or(state.data.as_ref()));
        state.data = data;
        state.tell(&json!({ "type": kind, "object": object }));
    }

    /// Tells every watch that it is too old.
    pub(super) fn compact(&self) {
        let mut state = self.state();
        let gone = json!({ "type": "ERROR", "object": failure(StatusCode::GONE, "Expired") });
        let line = Bytes::from(format!("{gone}\n"));
        state.watches.drain(..).for_each(|watch| drop(watch.unbounded_send(line.clone())));
    }
}

impl State {
    fn object(&self, data: Option<&BTreeMap<String, String>>) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": { "name": "cm", "namespace": "ns", "uid": "u", "resourceVersion": self.revision.to_string() },
        })
    }

    fn tell(&mut self, event: &Value) {
        let line = format!("{event}\n");
        self.watches.retain(|watch| watch.unbounded_send(Bytes::from(line.clone())).is_ok());
        self.events.push((self.revision, line));
    }

    fn answer(&mut self, request: &Request<Body>) -> Option<Answer> {
        let path = request.uri().path().to_owned();
        let query: BTreeMap<_, _> =
            url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect();
        let watch = query.get("watch").is_some_and(|watch| watch == "true");
        self.requests.push(format!("{}{path}", if watch { "watch " } else { "" }));
        match self.mood {
            Mood::ForbidsWatches if !watch => {}
            Mood::Well => {}
            Mood::Hangs => return None,
            Mood::Forbids | Mood::ForbidsWatches => {
                return Some(whole(StatusCode::FORBIDDEN, &failure(StatusCode::FORBIDDEN, "Forbidden")));
            }
            Mood::Breaks => {
                let code = StatusCode::INTERNAL_SERVER_ERROR;
                return Some(whole(code, &failure(code, "InternalError")));
            }
        }
        Some(match path.as_str() {
            "/api/v1/namespaces/ns/configmaps/cm" => match &self.data {
                Some(data) => whole(StatusCode::OK, &self.object(Some(data))),
                None => whole(StatusCode::NOT_FOUND, &failure(StatusCode::NOT_FOUND, "NotFound")),
            },
            "/api/v1/namespaces/ns/configmaps" => {
                assert_eq!(query.get("fieldSelector").map(String::as_str), Some("metadata.name=cm"));
                if watch { self.watch(&query["resourceVersion"]) } else { self.list() }
            }
            other => panic!("nobody should ask for {other}"),
        })
    }

    fn list(&self) -> Answer {
        let items: Vec<_> = self.data.iter().map(|data| self.object(Some(data))).collect();
        let metadata = json!({ "resourceVersion": self.revision.to_string() });
        whole(
            StatusCode::OK,
            &json!({ "apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items }),
        )
    }

    fn watch(&mut self, since: &str) -> Answer {
        let since: u64 = since.parse().unwrap();
        let (send, receive) = mpsc::unbounded();
        for (_, line) in self.events.iter().filter(|(revision, _)| *revision > since) {
            send.unbounded_send(Bytes::from(line.clone())).unwrap();
        }
        self.watches.push(send);
        let frames = receive.map(|line| Ok(http_body::Frame::data(line)));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }
}

fn failure(code: StatusCode, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "reason": reason, "code": code.as_u16(), "message": format!("the server says {reason}"),
    })
}

fn whole(code: StatusCode, body: &Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body.to_string())).boxed_unsync());
    *answer.status_mut() = code;
    answer
}
