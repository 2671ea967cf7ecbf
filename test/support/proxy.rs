//! A way to the API server that can become a black hole (connections stand, and nothing comes through), be slow, or break.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    _accepting: AbortOnDropHandle<()>,
}

#[allow(dead_code, reason = "each test that shares this needs a part of it")]
impl Proxy {
    /// A proxy to `server` on a free port of loopback.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (weather, watched) = watch::channel(Weather::default());
        let accepted = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(accept(listener, server.to_owned(), watched, Arc::clone(&accepted)));
        Self { address, weather, accepted, _accepting: AbortOnDropHandle::new(accepting) }
    }

    /// From now on nothing comes through, in either direction; or what waited does.
    pub(crate) fn hole(&self, hole: bool) {
        self.weather.send_modify(|w| w.hole = hole);
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

async fn accept(listener: TcpListener, server: String, weather: watch::Receiver<Weather>, accepted: Arc<AtomicUsize>) {
    // Ends with the proxy: the connections are dropped with this set.
    let mut open = tokio::task::JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        accepted.fetch_add(1, Ordering::Relaxed);
        let (server, mut weather) = (server.clone(), weather.clone());
        open.spawn(async move {
            let cuts = weather.borrow().cuts;
            let _ = weather.wait_for(|w| !w.hole).await;
            let Ok(up) = TcpStream::connect(server).await else { return };
            let _ = (client.set_nodelay(true), up.set_nodelay(true));
            let ((cr, cw), (ur, uw)) = (client.into_split(), up.into_split());
            // One side that ends, ends both.
            tokio::select! {
                () = pass(cr, uw, weather.clone()) => {}
                () = pass(ur, cw, weather.clone()) => {}
                _ = weather.wait_for(|w| w.cuts != cuts) => {}
            }
        });
        while open.try_join_next().is_some() {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut weather: watch::Receiver<Weather>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
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
