//! The face for other programs: HTTP/1.1 and HTTP/2 (with prior knowledge) on a socket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::core::Core;
use super::local;
use super::server::Server;

/// The header by which a client names itself; see [`Server::listen`].
pub const CLIENT_HEADER: &str = "x-leasehold-client";

/// How long to wait after the system could not give a connection (out of files, say) before asking again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that listens. Dropping it ends it.
#[derive(Debug)]
pub struct Listening {
    local_addr: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Listening {
    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// A kubeconfig for a client that names itself by its User-Agent.
    pub fn kubeconfig(&self) -> String {
        kubeconfig(self.local_addr, None)
    }

    /// A kubeconfig for a client of this name.
    pub fn kubeconfig_for(&self, client: &str) -> String {
        kubeconfig(self.local_addr, Some(client))
    }

    /// Stops listening, breaks what is open, and waits until all of it has ended.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A kubeconfig for a server at an address; with a name, the client is known by it.
pub fn kubeconfig(addr: SocketAddr, client: Option<&str>) -> String {
    let user = match client {
        // A JSON string is a YAML string.
        Some(name) => serde_json::json!({ "token": name }).to_string(),
        None => "{}".to_owned(),
    };
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: leasehold\n  cluster:\n    server: http://{addr}\nusers:\n- \
         name: leasehold\n  user: {user}\ncontexts:\n- name: leasehold\n  context:\n    cluster: leasehold\n    \
         namespace: default\n    user: leasehold\ncurrent-context: leasehold\n"
    )
}

/// Who asks: the header, else the bearer token, else the program in the User-Agent.
fn client(headers: &HeaderMap) -> Arc<str> {
    let text = |key: &str| headers.get(key).and_then(|v| v.to_str().ok()).map(str::trim).filter(|t| !t.is_empty());
    let token = text(AUTHORIZATION.as_str()).and_then(|t| t.strip_prefix("Bearer "));
    let agent = text(USER_AGENT.as_str()).and_then(|a| a.split(['/', ' ']).next());
    text(CLIENT_HEADER).or(token).or(agent).unwrap_or("anonymous").into()
}

impl Server {
    /// Listens for HTTP. Must run inside a tokio runtime.
    ///
    /// A client is known by the header [`CLIENT_HEADER`], else by its bearer token, else by the program that its
    /// User-Agent names; nothing is checked.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub async fn listen(&self, addr: impl ToSocketAddrs) -> io::Result<Listening> {
        let listener = TcpListener::bind(addr).await?;
        let local_addr = listener.local_addr()?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(accept(listener, self.core.clone(), stop.clone(), tasks.clone()));
        Ok(Listening { local_addr, stop, tasks })
    }
}

async fn accept(listener: TcpListener, core: Arc<Core>, stop: CancellationToken, tasks: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                // Small answers must not wait for more to send.
                if let Err(e) = stream.set_nodelay(true) {
                    tracing::debug!("a connection that cannot be set up is let go: {e}");
                    continue;
                }
                let (core, stop) = (core.clone(), stop.clone());
                tasks.spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        local::answer(core.clone(), client(request.headers()), request)
                    });
                    let builder = Builder::new(TokioExecutor::new());
                    let connection = builder.serve_connection(TokioIo::new(stream), service);
                    tokio::select! {
                        () = stop.cancelled() => {}
                        ended = connection => {
                            if let Err(e) = ended {
                                tracing::debug!("a connection broke: {e}");
                            }
                        }
                    }
                });
            }
            Err(e) => {
                tracing::warn!("cannot accept a connection, asking again in {ACCEPT_PAUSE:?}: {e}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_named() {
        let mut headers = HeaderMap::new();
        assert_eq!(&*client(&headers), "anonymous");
        headers.insert(USER_AGENT, "kubectl/v1.32 (linux)".parse().expect("a value"));
        assert_eq!(&*client(&headers), "kubectl");
        headers.insert(AUTHORIZATION, "Bearer replica-1".parse().expect("a value"));
        assert_eq!(&*client(&headers), "replica-1");
        headers.insert(CLIENT_HEADER, "named".parse().expect("a value"));
        assert_eq!(&*client(&headers), "named");
    }

    #[test]
    fn a_kubeconfig_is_yaml() {
        let addr = "127.0.0.1:1234".parse().expect("an address");
        let odd = kubeconfig(addr, Some("a\"b: c"));
        let v = crate::manifest::document(odd.as_bytes()).expect("YAML");
        assert_eq!(v["users"][0]["user"]["token"], "a\"b: c");
        assert_eq!(v["clusters"][0]["cluster"]["server"], "http://127.0.0.1:1234");
        assert!(crate::manifest::document(kubeconfig(addr, None).as_bytes()).is_ok());
    }
}
