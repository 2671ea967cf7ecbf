//! The API server the tests run on: a namespace in it, its Leases as they stand, its count of requests.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A namespace of its own in the cluster of a kubeconfig.
pub(crate) struct Cluster {
    /// The file.
    pub(crate) kubeconfig: PathBuf,
    /// The namespace.
    pub(crate) namespace: String,
    /// `host:port` of the server, as it stands in the kubeconfig.
    pub(crate) server: String,
    client: kube::Client,
}

impl Cluster {
    /// Makes the namespace.
    pub(crate) async fn new(kubeconfig: &Path) -> Self {
        // An error only means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let parsed = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let config =
            kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.expect("a cluster in it");
        let uri = config.cluster_url.clone();
        let server = format!("{}:{}", uri.host().expect("a host"), uri.port_u16().expect("a port"));
        let client = kube::Client::try_from(config).expect("a client");
        let namespace = format!("interop-{:08x}", fastrand::u32(..));
        let meta = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &Namespace { metadata: meta, ..Namespace::default() })
            .await
            .expect("a namespace is made");
        Self { kubeconfig: kubeconfig.to_owned(), namespace, server, client }
    }

    /// The Lease `name`, as the server gives it.
    pub(crate) async fn lease(&self, name: &str) -> Option<Value> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{name}", self.namespace);
        match self.client.request::<Value>(http::Request::get(path).body(Vec::new()).expect("a request")).await {
            Ok(lease) => Some(lease),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(e) => panic!("the Lease {name} cannot be read: {e}"),
        }
    }

    /// A person's hand: what `patch` says is merged into the Lease `name`, whoever holds it.
    pub(crate) async fn edit(&self, name: &str, patch: &Value) {
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let by = PatchParams { field_manager: Some("a-person".into()), ..PatchParams::default() };
        leases.patch(name, &by, &Patch::Merge(patch)).await.unwrap_or_else(|e| panic!("{name} is edited: {e}"));
    }

    /// A person's hand, too.
    pub(crate) async fn delete(&self, name: &str) {
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        leases.delete(name, &DeleteParams::default()).await.unwrap_or_else(|e| panic!("{name} is deleted: {e}"));
    }

    /// Requests for Leases since the server's start, by verb.
    pub(crate) async fn requests(&self) -> BTreeMap<String, u64> {
        let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
        let text = self.client.request_text(request).await.expect("/metrics");
        let mut requests = BTreeMap::new();
        for sample in text.lines().filter_map(|l| l.strip_prefix("apiserver_request_total{")) {
            let label = |name: &str| {
                let (_, rest) = sample.split_once(&format!("{name}=\""))?;
                rest.split_once('"').map(|(value, _)| value)
            };
            if label(",resource") == Some("leases") {
                let count = sample.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).expect("a count");
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
                let count = count as u64;
                *requests.entry(label("verb").unwrap_or_default().to_owned()).or_default() += count;
            }
        }
        requests
    }

    /// Takes the namespace away, as far as a server without a controller for namespaces can.
    pub(crate) async fn close(&self) {
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let _ = leases.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
    }
}

/// A point in time of a Lease's spec, in nanoseconds of CLOCK_BOOTTIME (all replicas of a test share one machine).
pub(crate) fn at(lease: &Value, field: &str) -> Option<u64> {
    use leasehold::clock::{Boottime, Clock};
    let then: jiff::Timestamp = lease["spec"][field].as_str()?.parse().ok()?;
    // The two clocks are not read at once, and on a busy machine much may lie between: the closest of some tries.
    let tries = (0..20).map(|_| {
        let (before, wall, after) = (Boottime.now(), Boottime.wall(), Boottime.now());
        (after.since(before), i128::from(before.as_nanos()) - wall.duration_since(then).as_nanos())
    });
    let (_, at) = tries.min_by_key(|(apart, _)| *apart)?;
    u64::try_from(at).ok()
}
