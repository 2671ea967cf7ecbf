//! What stands between a replica and the server and meddles: an admission webhook, a proxy.

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

/// Sees each request with its body, and may change it.
pub type Meddle = Arc<dyn Fn(&http::request::Parts, &mut Value) + Send + Sync>;

/// A connection through a meddler.
#[derive(Clone)]
pub struct Proxy<S> {
    pub inner: S,
    pub meddle: Option<Meddle>,
}

impl<S> Service<http::Request<Body>> for Proxy<S>
where
    S: Service<http::Request<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self { mut inner, meddle } = self.clone();
        Box::pin(async move {
            let Some(meddle) = meddle else { return inner.call(request).await };
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.expect("in memory").to_bytes();
            let mut value: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            meddle(&parts, &mut value);
            let bytes = if value.is_null() { bytes.to_vec() } else { value.to_string().into_bytes() };
            inner.call(http::Request::from_parts(parts, Body::from(bytes))).await
        })
    }
}
