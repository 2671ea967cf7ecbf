//! What a new server has in it: the namespaces that every cluster has.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::write::{Tracking, store_new};
use crate::dev::apiserver::request::{Call, Query, Verb};
use crate::dev::apiserver::state::State;

/// Makes the namespaces that every cluster has.
pub(crate) fn bootstrap(state: &mut State) {
    let Some(resource) = state.registry.find("", "v1", "namespaces").cloned() else { return };
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let call = Call {
            client: Arc::from("system:apiserver"),
            manager: "kube-apiserver".into(),
            verb: Verb::Create,
            resource: resource.clone(),
            namespace: None,
            name: None,
            body_name: None,
            sub: None,
            query: Query::default(),
            body: Bytes::new(),
            content_type: String::new(),
            accept: String::new(),
        };
        let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
        // The name is valid and not taken, so there is nothing to be refused.
        let _ = store_new(state, &call, namespace, StatusCode::CREATED, Tracking::Here);
    }
}
