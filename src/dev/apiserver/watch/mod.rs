//! Open watches: the log of changes, followed from a revision on.
//!
//! # Guarantees
//! - Each change is shown once, in order of revision; a bookmark at revision r comes after every change up to r.
//! - A watch holds no copy of the log: a reader that stalls costs nothing and is told 410 when it has fallen too far
//!   behind.
//! - With a selector, an object that stops matching is shown as DELETED with its last content that matched, one that
//!   begins to match as ADDED, as upstream's watch cache does.
//!
//! # Caveats
//! A bookmark is sent each interval whether or not the revision moved. A real server leaves it out on a cluster in
//! which nothing at all is written.

pub(crate) mod frame;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::body::Disconnected;
use super::core::Core;
use super::faults::{Control, Cut, WatchTicket};
use super::object::Object;
use super::ops::Opened;
use super::render::Form;
use super::request::Call;
use super::status::Status;
use super::store::Change;

/// At most so many changes go into one chunk.
const BATCH: usize = 128;

/// One open watch.
pub(crate) struct Follower {
    core: Arc<Core>,
    call: Call,
    form: Form,
    after: u64,
    incarnation: u64,
    first: Option<Bytes>,
    news: Arc<Notify>,
    control: Receiver<Control>,
    ends: Instant,
    bookmark: Option<(Duration, Instant)>,
    over: bool,
    _ticket: WatchTicket,
}

/// What one look at the log came to.
enum Look {
    /// These bytes go out.
    Frames(Bytes),
    /// Nothing yet; perhaps something at this moment.
    Nothing(Option<Instant>),
    /// These bytes go out and the watch ends.
    Last(Bytes),
    /// The server of this watch is no more.
    Gone,
}

impl Follower {
    pub(crate) fn new(core: Arc<Core>, call: Call, opened: Opened, form: Form, ends: Instant) -> Self {
        let (ticket, control) = core.faults.opened(&call);
        let now = Instant::now();
        let every = core.options.bookmark_every;
        let mut first = BytesMut::new();
        if let Some(oldest) = opened.too_old {
            let text = format!("too old resource version: {} ({oldest})", opened.after);
            first.extend_from_slice(&frame::error(&Status::expired(text)));
        }
        for object in &opened.initial {
            first.extend_from_slice(&form.event("ADDED", &call.resource, object));
        }
        if opened.mark_initial {
            first.extend_from_slice(&form.bookmark(&call.resource, opened.after, true));
        }
        Self {
            core,
            form,
            after: opened.after,
            incarnation: opened.incarnation,
            over: opened.too_old.is_some(),
            first: Some(first.freeze()).filter(|b| !b.is_empty()),
            news: opened.news,
            control,
            ends,
            bookmark: call.query.bookmarks.then_some((every, now + every)),
            call,
            _ticket: ticket,
        }
    }

    /// The next bytes; none when the watch has ended.
    ///
    /// Cancel-safe: what was not returned is returned by the next call.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Disconnected>> {
        loop {
            if self.over && self.first.is_none() {
                return None;
            }
            let control = *self.control.borrow_and_update();
            if let Some(cut) = control.cut {
                self.over = true;
                self.first = None;
                return match cut {
                    Cut::End => None,
                    Cut::Reset => Some(Err(Disconnected)),
                    Cut::Gone => {
                        let text = "The resourceVersion for the provided watch is too old.";
                        Some(Ok(frame::error(&Status::expired(text))))
                    }
                };
            }
            if control.silent {
                // Nothing passes, not even the end.
                if self.control.changed().await.is_err() {
                    return None;
                }
                continue;
            }
            if let Some(first) = self.first.take() {
                return Some(Ok(first));
            }
            if self.over {
                continue;
            }
            // From here on what is committed wakes it: first listened, then looked.
            let news = Arc::clone(&self.news);
            let mut news = std::pin::pin!(news.notified());
            news.as_mut().enable();
            let wake = match self.look(control.lag) {
                Look::Frames(bytes) => return Some(Ok(bytes)),
                Look::Last(bytes) => {
                    self.over = true;
                    return Some(Ok(bytes));
                }
                Look::Gone => {
                    self.over = true;
                    return Some(Err(Disconnected));
                }
                Look::Nothing(wake) => wake,
            };
            let now = Instant::now();
            if now >= self.ends {
                return None;
            }
            if let Some((every, at)) = self.bookmark
                && now >= at
            {
                self.bookmark = Some((every, now + every));
                if let Some(bytes) = self.bookmark_now() {
                    return Some(Ok(bytes));
                }
                continue;
            }
            let until = [wake, self.bookmark.map(|(_, at)| at)].into_iter().flatten().fold(self.ends, std::cmp::min);
            tokio::select! {
                biased;
                () = news => {}
                changed = self.control.changed() => if changed.is_err() { return None },
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Reads the log from where this watch stands.
    fn look(&mut self, lag: Duration) -> Look {
        let state = self.core.state();
        if state.store.incarnation() != self.incarnation {
            return Look::Gone;
        }
        let table = state.store.table(self.call.resource.table);
        if !table.remembers(self.after) {
            let text = format!("too old resource version: {} ({})", self.after, state.store.compacted());
            return Look::Last(frame::error(&Status::expired(text)));
        }
        let now = Instant::now();
        let mut out = BytesMut::new();
        let mut n = 0;
        for change in table.changes_after(self.after) {
            if change.at + lag > now {
                return done(out, Some(change.at + lag));
            }
            if n == BATCH {
                return Look::Frames(out.freeze());
            }
            self.after = change.revision;
            if let Some((kind, object)) = shown(&self.call, change) {
                out.extend_from_slice(&self.form.event(kind, &self.call.resource, &object));
                n += 1;
            }
        }
        // All of this table up to the newest revision has been seen: whatever came since is about other kinds.
        if lag.is_zero() {
            self.after = self.after.max(state.store.revision());
        }
        drop(state);
        done(out, None)
    }

    /// A bookmark at the revision up to which everything has been shown; none before the server has reached the
    /// revision that the watch started from.
    fn bookmark_now(&self) -> Option<Bytes> {
        let current = self.core.state().store.revision();
        (self.after <= current).then(|| self.form.bookmark(&self.call.resource, self.after, false))
    }
}

fn done(out: BytesMut, wake: Option<Instant>) -> Look {
    if out.is_empty() { Look::Nothing(wake) } else { Look::Frames(out.freeze()) }
}

/// What a change looks like through a watch's namespace and selector.
fn shown(call: &Call, change: &Change) -> Option<(&'static str, Arc<Object>)> {
    let selector = &call.query.selector;
    if call.namespace.as_deref().is_some_and(|ns| change.now.namespace() != ns) {
        return None;
    }
    let before = change.prev.as_ref().filter(|o| selector.matches(o.value()));
    let after = !change.deleted && selector.matches(change.now.value());
    match (before, after) {
        (None, true) => Some(("ADDED", change.now.clone())),
        (Some(_), true) => Some(("MODIFIED", change.now.clone())),
        (Some(_), false) if change.deleted => Some(("DELETED", change.now.clone())),
        // It lives on, but not for this watch: its last content that matched, at the revision of the change.
        (Some(before), false) => Some(("DELETED", before.at(change.revision))),
        (None, false) => None,
    }
}
