//! The body of an answer: whole, or a watch that goes on.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body::{Body, Frame, SizeHint};

use super::watch::Follower;

/// The connection broke: a fault rule said so, or the server was restored from a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by the API server in memory (a fault rule, or a restore)")]
pub struct Disconnected;

/// The body of an answer.
pub struct ResponseBody(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Watch(BoxStream<'static, Result<Bytes, Disconnected>>),
}

impl ResponseBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes).filter(|b| !b.is_empty())))
    }

    pub(crate) fn watch(follower: Follower) -> Self {
        let stream = futures::stream::unfold(follower, async |mut f| f.next().await.map(|item| (item, f)));
        Self(Inner::Watch(stream.boxed()))
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Inner::Whole(_) => "ResponseBody(whole)",
            Inner::Watch(_) => "ResponseBody(watch)",
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Disconnected;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Inner::Watch(stream) => Pin::new(stream).poll_next(cx).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Inner::Watch(_) => SizeHint::default(),
        }
    }
}
