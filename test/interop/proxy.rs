//! A way to the API server that can become a black hole: connections stand, and nothing comes through.
#![allow(dead_code, reason = "shared by tests that need some of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// Passes bytes on between clients and one server.
pub(crate) struct Proxy {
    /// `host:port` for the clients.
    pub(crate) address: String,
    hole: watch::Sender<bool>,
    /// How many more pieces come through from the clients before nothing does; 0: no end is set.
    left: Arc<AtomicU32>,
    _accepting: AbortOnDropHandle<()>,
}

impl Proxy {
    /// A proxy to `server` on a free port of loopback.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (hole, left) = (watch::Sender::new(false), Arc::new(AtomicU32::new(0)));
        let accepting = tokio::spawn(accept(listener, server.to_owned(), hole.clone(), Arc::clone(&left)));
        Self { address, hole, left, _accepting: AbortOnDropHandle::new(accepting) }
    }

    /// From now on nothing comes through, in either direction; or what waited does.
    pub(crate) fn hole(&self, hole: bool) {
        self.left.store(0, SeqCst);
        self.hole.send_replace(hole);
    }

    /// The same as soon as a client sends something for the `nth` time from now on: what it sends then is swallowed first.
    pub(crate) fn hole_at_send(&self, nth: u32) {
        self.left.store(nth, SeqCst);
    }

    /// Whether nothing comes through now.
    pub(crate) fn is_hole(&self) -> bool {
        *self.hole.borrow()
    }
}

async fn accept(listener: TcpListener, server: String, hole: watch::Sender<bool>, left: Arc<AtomicU32>) {
    // Ends with the proxy: the connections are dropped with this set.
    let mut open = tokio::task::JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let (server, hole, left) = (server.clone(), hole.clone(), Arc::clone(&left));
        open.spawn(async move {
            let _ = hole.subscribe().wait_for(|h| !h).await;
            let Ok(up) = TcpStream::connect(server).await else { return };
            let _ = (client.set_nodelay(true), up.set_nodelay(true));
            let ((cr, cw), (ur, uw)) = (client.into_split(), up.into_split());
            // One side that ends, ends both.
            tokio::select! {
                () = pass(cr, uw, hole.subscribe(), || {
                    if left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)) == Ok(1) {
                        hole.send_replace(true);
                    }
                }) => {}
                () = pass(ur, cw, hole.subscribe(), || {}) => {}
            }
        });
        while open.try_join_next().is_some() {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut hole: watch::Receiver<bool>,
    mut has_read: impl FnMut(),
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        has_read();
        // Looked at after the read: what came meanwhile waits too.
        if hole.wait_for(|h| !h).await.is_err() || to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}
