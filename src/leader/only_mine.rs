//! A stream of keyed events, narrowed to what this replica holds.

use super::{Guard, Leadership};
use futures::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// See [`Leadership::only_mine`].
///
/// # Guarantees
/// An item comes out with a guard of a current term for its key, or not at all. Cancel-safe where the source is.
#[must_use = "streams do nothing unless polled"]
pub struct OnlyMine<S, K> {
    leadership: Leadership,
    events: Pin<Box<S>>,
    key: K,
}

impl<S, K> fmt::Debug for OnlyMine<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnlyMine").field("leadership", &self.leadership).finish_non_exhaustive()
    }
}

impl<S, K> OnlyMine<S, K> {
    pub(super) fn new(leadership: Leadership, events: S, key: K) -> Self {
        Self { leadership, events: Box::pin(events), key }
    }
}

impl<S, K> Stream for OnlyMine<S, K>
where
    S: Stream,
    K: for<'a> Fn(&'a S::Item) -> &'a str + Unpin,
{
    type Item = (Guard, S::Item);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        // Bounded: a source that is always ready and never ours must not keep the task.
        for _ in 0..256 {
            match this.events.as_mut().poll_next(cx) {
                Poll::Ready(Some(event)) => {
                    if let Some(guard) = this.leadership.guard((this.key)(&event)) {
                        return Poll::Ready(Some((guard, event)));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
