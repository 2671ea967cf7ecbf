//! The cluster of a kubeconfig, in a namespace of its own.

use super::{Cluster, ClusterError, OwnRequests, Requests, asked, metrics};
use crate::adapter::without_excerpt;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::path::{Path, PathBuf};

/// The cluster of `--kubeconfig`.
pub struct Real {
    kubeconfig: PathBuf,
    client: kube::Client,
    namespace: String,
    server: String,
}

impl Real {
    /// Makes a namespace with a random name in the cluster of `kubeconfig` (its current context).
    ///
    /// # Errors
    /// The file cannot be used, or the cluster does not let us make a namespace.
    pub async fn new(kubeconfig: &Path) -> Result<Self, ClusterError> {
        // Replicas get it by name: it must mean the same wherever they run.
        let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
        let wrong =
            |e: KubeconfigError| ClusterError::Kubeconfig { path: kubeconfig.clone(), cause: without_excerpt(&e) };
        let parsed = Kubeconfig::read_from(&kubeconfig).map_err(wrong)?;
        let config =
            kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.map_err(wrong)?;
        let server = config.cluster_url.to_string();
        let client = kube::Client::try_from(config).map_err(asked(format!("make a client for {server}")))?;
        // Not by the seed: two runs of one seed may be in one cluster.
        let namespace = format!("leasehold-dev-{:08x}", fastrand::u32(..));
        let object = Namespace {
            metadata: ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &object)
            .await
            .map_err(asked(format!("create namespace {namespace} at {server}")))?;
        Ok(Self { kubeconfig, client, namespace, server })
    }

    async fn metrics(&self) -> Result<Requests, ClusterError> {
        let request = http::Request::get("/metrics").body(Vec::new());
        let request = request.map_err(|e| asked("ask for /metrics")(kube::Error::HttpError(e)))?;
        let text = self.client.request_text(request).await.map_err(asked(format!("read {}metrics", self.server)))?;
        metrics::lease_requests(&text).ok_or(ClusterError::NoMetrics)
    }

    async fn remove(&self) -> Result<(), ClusterError> {
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        // Where no controller empties namespaces (a bare kube-apiserver) the objects would stay.
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let leases = leases.delete_collection(&delete, &all).await.map(drop);
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let maps = maps.delete_collection(&delete, &all).await.map(drop);
        let namespace = Api::<Namespace>::all(self.client.clone()).delete(&self.namespace, &delete).await.map(drop);
        // All three are tried; the namespace's failure is the one that matters.
        namespace.and(leases).and(maps).map_err(asked(format!("delete namespace {}", self.namespace)))
    }
}

impl Cluster for Real {
    fn about(&self) -> String {
        format!("{} (namespace {})", self.server, self.namespace)
    }

    fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    fn lease_requests<'a>(&'a self, own: &'a OwnRequests) -> BoxFuture<'a, Result<Requests, ClusterError>> {
        async { Ok(self.metrics().await? - own.counted_at_end()) }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), ClusterError>> {
        self.remove().boxed()
    }
}
