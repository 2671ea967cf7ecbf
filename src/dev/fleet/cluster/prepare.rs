//! What is put into the namespace before the first replica starts.

use super::{Cluster, ClusterError, asked};
use crate::dev::fleet::options::Options;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

/// The name under which replicas look for it where the environment names no other (Knative's).
const CONFIG_MAP: &str = "config-leader-election";

/// Makes the config-leader-election ConfigMap: durations and buckets reach replicas the way they do in production.
///
/// # Errors
/// The server refuses it.
pub async fn prepare(cluster: &dyn Cluster, options: &Options) -> Result<(), ClusterError> {
    let object = ConfigMap {
        metadata: ObjectMeta { name: Some(CONFIG_MAP.to_owned()), ..ObjectMeta::default() },
        data: Some(options.config_map()),
        ..ConfigMap::default()
    };
    let api = Api::<ConfigMap>::namespaced(cluster.client(), cluster.namespace());
    api.create(&PostParams::default(), &object)
        .await
        .map(drop)
        .map_err(asked(format!("create ConfigMap {}/{CONFIG_MAP}", cluster.namespace())))
}
