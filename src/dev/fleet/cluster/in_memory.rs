//! An API server that lives in this process.

use crate::adapter::without_excerpt;
use crate::dev::apiserver::{Counts, Listening, Server};

use super::{Cluster, ClusterError, OwnRequests, Requests};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::path::{Path, PathBuf};

/// What the fleet needs of an API server in this process. Dropping it ends the server.
pub trait Hosted: Send + Sync + 'static {
    /// A kubeconfig that reaches it, as YAML.
    fn kubeconfig(&self) -> String;
    /// How many requests for Leases have come, by verb, over its whole life; a watch counts when it begins.
    fn lease_requests(&self) -> Requests;
}

/// The cluster of a run without `--kubeconfig`.
pub struct InMemory {
    hosted: Box<dyn Hosted>,
    kubeconfig: PathBuf,
    client: kube::Client,
}

impl InMemory {
    /// The namespace of the run: the one that kubectl uses where none is named.
    const NAMESPACE: &'static str = "default";

    /// Writes the server's kubeconfig into `directory`.
    ///
    /// # Errors
    /// The file cannot be written, or the server's kubeconfig cannot be used.
    pub async fn new(hosted: Box<dyn Hosted>, directory: &Path) -> Result<Self, ClusterError> {
        let text = hosted.kubeconfig();
        let path = directory.join("kubeconfig");
        std::fs::write(&path, &text).map_err(|cause| ClusterError::Write { path: path.clone(), cause })?;
        let wrong = |e: KubeconfigError| ClusterError::Kubeconfig { path: path.clone(), cause: without_excerpt(&e) };
        let parsed = Kubeconfig::from_yaml(&text).map_err(wrong)?;
        let mut config =
            kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.map_err(wrong)?;
        // It is in this process: a proxy of the environment would only be in the way.
        config.proxy_url = None;
        let client =
            kube::Client::try_from(config).map_err(super::asked("make a client for the API server in memory"))?;
        Ok(Self { hosted, kubeconfig: path, client })
    }
}

impl Cluster for InMemory {
    fn about(&self) -> String {
        format!("an API server in memory (KUBECONFIG={})", self.kubeconfig.display())
    }

    fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn namespace(&self) -> &str {
        Self::NAMESPACE
    }

    fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    fn lease_requests<'a>(&'a self, own: &'a OwnRequests) -> BoxFuture<'a, Result<Requests, ClusterError>> {
        let requests = self.hosted.lease_requests() - own.counted_at_begin();
        std::future::ready(Ok(requests)).boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), ClusterError>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// The server of [`crate::dev::apiserver`], listening on loopback.
pub struct Loopback {
    server: Server,
    listening: Listening,
}

impl Loopback {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start() -> std::io::Result<Self> {
        let server = Server::default();
        let listening = server.listen((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self { server, listening })
    }
}

impl Hosted for Loopback {
    fn kubeconfig(&self) -> String {
        self.listening.kubeconfig()
    }

    fn lease_requests(&self) -> Requests {
        let Counts { get, list, watch, create, update, patch, delete } = self.server.lease_requests();
        Requests { get, list, watch, create, update, delete, patch }
    }
}
