//! A way to the API server that can become a black hole (connections stand, and nothing comes through), be slow, or break.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// How bytes fare.
#[derive(Debug, Clone, Copy, Default)]
struct Weather {
    hole: bool,
    delay: Duration,
    /// Connections made before this cut are dropped.
    cuts: usize,
}

/// Passes bytes on between clients and one server.
pub(crate) struct Proxy {
    /// `host:port` for the clients.
    pub(crate) address: String,
    weather: watch::Sender<Weather>,
    accepted: Arc<AtomicUsize>,
    /// At the how manieth send of a client from now on it becomes a black hole; 0: at none.
    sends_left: Arc<AtomicU32>,
    _accepting: AbortOnDropHandle<()>,
}

#[allow(dead_code, reason = "each test that shares this needs a part of it")]
impl Proxy {
    /// A proxy to `server` on a free port of loopback.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let weather = watch::Sender::new(Weather::default());
        let (accepted, sends_left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU32::new(0)));
        let accepting =
            accept(listener, server.to_owned(), weather.clone(), Arc::clone(&accepted), Arc::clone(&sends_left));
        Self { address, weather, accepted, sends_left, _accepting: AbortOnDropHandle::new(tokio::spawn(accepting)) }
    }

    /// From now on nothing comes through, in either direction; or what waited does.
    pub(crate) fn hole(&self, hole: bool) {
        self.sends_left.store(0, Ordering::SeqCst);
        self.weather.send_modify(|w| w.hole = hole);
    }

    /// The same when a client sends something for the `nth` time from now on: that does not come through any more.
    pub(crate) fn hole_at_send(&self, nth: u32) {
        self.sends_left.store(nth, Ordering::SeqCst);
    }

    /// Whether nothing comes through now.
    pub(crate) fn is_hole(&self) -> bool {
        self.weather.borrow().hole
    }

    /// From now on everything takes so much longer, in each direction.
    pub(crate) fn delay(&self, delay: Duration) {
        self.weather.send_modify(|w| w.delay = delay);
    }

    /// Every connection is dropped; new ones can be made.
    pub(crate) fn cut(&self) {
        self.weather.send_modify(|w| w.cuts += 1);
    }

    /// How many connections there were.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

async fn accept(
    listener: TcpListener,
    server: String,
    weather: watch::Sender<Weather>,
    accepted: Arc<AtomicUsize>,
    sends_left: Arc<AtomicU32>,
) {
    // Ends with the proxy: the connections are dropped with this set.
    let mut open = tokio::task::JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        accepted.fetch_add(1, Ordering::Relaxed);
        let (server, weather, sends_left) = (server.clone(), weather.clone(), Arc::clone(&sends_left));
        let mut watched = weather.subscribe();
        open.spawn(async move {
            let cuts = watched.borrow().cuts;
            let _ = watched.wait_for(|w| !w.hole).await;
            let Ok(up) = TcpStream::connect(server).await else { return };
            let _ = (client.set_nodelay(true), up.set_nodelay(true));
            let ((cr, cw), (ur, uw)) = (client.into_split(), up.into_split());
            let sent = || {
                if sends_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) == Ok(1) {
                    weather.send_modify(|w| w.hole = true);
                }
            };
            // One side that ends, ends both.
            tokio::select! {
                () = pass(cr, uw, weather.subscribe(), sent) => {}
                () = pass(ur, cw, weather.subscribe(), || {}) => {}
                _ = watched.wait_for(|w| w.cuts != cuts) => {}
            }
        });
        while open.try_join_next().is_some() {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    has_read: impl Fn(),
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        has_read();
        // Looked at after the read: what came meanwhile waits too.
        let Ok(delay) = weather.wait_for(|w| !w.hole).await.map(|w| w.delay) else { return };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}
