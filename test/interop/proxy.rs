//! A way to the API server that can become a black hole: connections stand, and nothing comes through.

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
    _accepting: AbortOnDropHandle<()>,
}

impl Proxy {
    /// A proxy to `server` on a free port of loopback.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (hole, holes) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, server.to_owned(), holes));
        Self { address, hole, _accepting: AbortOnDropHandle::new(accepting) }
    }

    /// From now on nothing comes through, in either direction; or what waited does.
    pub(crate) fn hole(&self, hole: bool) {
        self.hole.send_replace(hole);
    }
}

async fn accept(listener: TcpListener, server: String, hole: watch::Receiver<bool>) {
    // Ends with the proxy: the connections are dropped with this set.
    let mut open = tokio::task::JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let (server, mut hole) = (server.clone(), hole.clone());
        open.spawn(async move {
            let _ = hole.wait_for(|h| !h).await;
            let Ok(up) = TcpStream::connect(server).await else { return };
            let _ = (client.set_nodelay(true), up.set_nodelay(true));
            let ((cr, cw), (ur, uw)) = (client.into_split(), up.into_split());
            // One side that ends, ends both.
            tokio::select! {
                () = pass(cr, uw, hole.clone()) => {}
                () = pass(ur, cw, hole) => {}
            }
        });
        while open.try_join_next().is_some() {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut hole: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        // Looked at after the read: what came meanwhile waits too.
        if hole.wait_for(|h| !h).await.is_err() || to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}
