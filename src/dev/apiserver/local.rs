//! The face for programs in the same process: a `tower::Service` without sockets, on the runtime's (virtual) time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tower::Service;

use super::body::{Disconnected, ResponseBody};
use super::core::{Core, refusal};
use super::status::Status;

/// A connection of one named client. Give it to `kube::Client::new`.
///
/// Clones are the same client. A dropped request is a cancelled one: what was not committed by then never is, unless
/// a rule says otherwise ([`super::Effect::LateCommit`]).
#[derive(Debug, Clone)]
pub struct Local {
    core: Arc<Core>,
    client: Arc<str>,
}

impl Local {
    pub(crate) fn new(core: Arc<Core>, client: &str) -> Self {
        Self { core, client: client.into() }
    }

    /// A `kube::Client` over this connection.
    ///
    /// # Panics
    /// Outside a tokio runtime, as `kube::Client::new` does.
    pub fn kube(self, namespace: &str) -> kube::Client {
        kube::Client::new(self, namespace)
    }
}

/// Reads a body up to the limit and answers the request.
pub(crate) async fn answer<B>(
    core: Arc<Core>,
    client: Arc<str>,
    request: Request<B>,
) -> Result<Response<ResponseBody>, Disconnected>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let limit = core.options.max_body;
    let body = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(e) if e.is::<LengthLimitError>() => return Ok(refusal(&Status::too_large(limit))),
        // The client went away in the middle of its body.
        Err(_) => return Err(Disconnected),
    };
    core.answer(client, &head, body).await
}

impl Service<Request<kube::client::Body>> for Local {
    type Response = Response<ResponseBody>;
    type Error = Disconnected;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(answer(self.core.clone(), self.client.clone(), request))
    }
}
