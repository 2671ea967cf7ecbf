//! A namespace in the cluster of a kubeconfig, for one scene: its Leases, its ConfigMap, and the user that its replicas are.

use crate::server::Server;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The Role of the page that people copy it from: what is shown here holds for what they have.
const PAGE: &str = include_str!("../../SECURITY.md");
const USER: &str = "replica";

pub(crate) struct Space {
    pub(crate) namespace: String,
    /// `host:port` of the server.
    pub(crate) server: String,
    /// Of its administrator.
    pub(crate) client: Client,
    pub(crate) config: kube::Config,
    pub(crate) kubeconfig: PathBuf,
    /// For what replicas write and read.
    pub(crate) scratch: PathBuf,
    parsed: Kubeconfig,
    token: String,
}

/// The Role that SECURITY.md shows.
pub(crate) fn documented_role() -> Role {
    let from = PAGE.find("        apiVersion: rbac").expect("SECURITY.md shows a Role");
    let lines = PAGE[from..].lines().take_while(|l| l.starts_with("        "));
    let text: String = lines.map(|l| format!("{}\n", &l[8..])).collect();
    serde_yaml::from_str(&text).expect("the Role of SECURITY.md can be read")
}

impl Space {
    /// Makes it, with a ServiceAccount that has the documented Role.
    pub(crate) async fn new(server: &Server, name: &str) -> Self {
        let kubeconfig = server.kubeconfig.clone();
        let parsed = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(parsed.clone(), &KubeConfigOptions::default()).await;
        let config = config.expect("a cluster in it");
        let uri = config.cluster_url.clone();
        let server = format!("{}:{}", uri.host().expect("a host"), uri.port_u16().expect("a port"));
        let client = Client::try_from(config.clone()).expect("a client");
        let namespace = format!("e2e-{name}-{:06x}", fastrand::u32(..0x0100_0000)).replace('_', "-");
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&namespace);
        std::fs::create_dir_all(&scratch).expect("a folder for what the replicas say");
        let meta = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        let made = Namespace { metadata: meta, ..Namespace::default() };
        let all = Api::<Namespace>::all(client.clone());
        all.create(&PostParams::default(), &made).await.expect("a namespace is made");
        let mut space = Self { namespace, server, client, config, kubeconfig, scratch, parsed, token: String::new() };
        space.make_user().await;
        space
    }

    async fn make_user(&mut self) {
        let meta = ObjectMeta { name: Some(USER.to_owned()), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata: meta.clone(), ..ServiceAccount::default() };
        self.api::<ServiceAccount>().create(&PostParams::default(), &account).await.expect("a service account");
        self.allow(documented_role()).await;
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": { "name": USER },
            "subjects": [{ "kind": "ServiceAccount", "name": USER, "namespace": self.namespace }],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "leasehold" },
        }))
        .expect("a RoleBinding");
        self.api::<RoleBinding>().create(&PostParams::default(), &binding).await.expect("a role binding");
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{USER}/token", self.namespace);
        let body =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "audiences": [] } });
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        let answer: Value = self.client.request(request).await.expect("a token is made");
        self.token = answer["status"]["token"].as_str().expect("a token").to_owned();
    }

    /// Puts `role` in the place of the user's.
    async fn allow(&self, role: Role) {
        let force = PatchParams::apply("e2e").force();
        let mut role = serde_json::to_value(role).expect("JSON");
        role["kind"] = json!("Role");
        role["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        self.api::<Role>().patch("leasehold", &force, &Patch::Apply(role)).await.expect("the Role is written");
    }

    /// The user may do what SECURITY.md says, and not `verb` on `resource`; waits until the server knows.
    pub(crate) async fn take_away(&self, verb: &str, resource: &str) {
        let mut role = documented_role();
        for rule in role.rules.iter_mut().flatten() {
            if rule.resources.iter().flatten().any(|r| r == resource) {
                assert!(rule.verbs.iter().any(|v| v == verb), "the Role has {verb}");
                rule.verbs.retain(|v| v != verb);
            }
        }
        self.allow(role).await;
        self.until_allowed(verb, resource, false).await;
    }

    /// The user may do again what SECURITY.md says.
    pub(crate) async fn give_back(&self, verb: &str, resource: &str) {
        self.allow(documented_role()).await;
        self.until_allowed(verb, resource, true).await;
    }

    async fn until_allowed(&self, verb: &str, resource: &str, wanted: bool) {
        let name = if resource == "configmaps" { "config-leader-election" } else { "" };
        let group = if resource == "leases" { "coordination.k8s.io" } else { "" };
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{}:{USER}", self.namespace),
                "resourceAttributes": { "namespace": self.namespace, "verb": verb, "group": group, "resource": resource, "name": name },
            },
        });
        let asked = async || {
            let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews");
            let request = request.header("content-type", "application/json").body(review.to_string().into_bytes());
            let answer: Value = self.client.request(request.expect("a request")).await.expect("a review");
            answer["status"]["allowed"] == json!(wanted)
        };
        until(&format!("{verb} {resource} is allowed: {wanted}"), Duration::from_secs(20), asked).await;
    }

    /// A namespaced API of this namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A kubeconfig of the user, for the server at `address`.
    pub(crate) fn user_kubeconfig(&self, address: &str, file: &str) -> PathBuf {
        let mut cluster = serde_json::to_value(&self.parsed.clusters[0].cluster).expect("JSON");
        cluster["server"] = json!(format!("https://{address}"));
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": cluster }],
            "users": [{ "name": "u", "user": { "token": self.token } }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u", "namespace": self.namespace } }],
        });
        let path = self.scratch.join(file);
        std::fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig of its own");
        path
    }

    /// Makes or replaces the ConfigMap that replicas read.
    pub(crate) async fn configure(&self, data: &[(&str, &str)]) {
        let data: BTreeMap<&str, &str> = data.iter().copied().collect();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "config-leader-election" }, "data": data,
        });
        let force = PatchParams::apply("e2e").force();
        let maps = self.api::<ConfigMap>();
        maps.patch("config-leader-election", &force, &Patch::Apply(map)).await.expect("a ConfigMap is written");
    }

    /// The path of the Lease `name`, or of all where it is empty.
    pub(crate) fn leases(&self, name: &str) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{name}", self.namespace)
            .trim_end_matches('/')
            .to_owned()
    }

    /// One request as the administrator: its status and what was answered.
    pub(crate) async fn request(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        let body = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(kube::client::Body::from(body)).expect("a request");
        let answer = self.client.send(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect_bytes().await.expect("a body");
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// The Lease `name`, as the server gives it.
    pub(crate) async fn lease(&self, name: &str) -> Option<Value> {
        match self.request("GET", &self.leases(name), None).await {
            (200, lease) => Some(lease),
            (404, _) => None,
            (code, answer) => panic!("the Lease {name} cannot be read: {code} {answer}"),
        }
    }

    /// Takes the namespace away, as far as a server without a controller for namespaces can.
    pub(crate) async fn close(&self) {
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        let _ = self.api::<Lease>().delete_collection(&delete, &all).await;
        let _ = self.api::<ConfigMap>().delete_collection(&delete, &all).await;
        let _ = Api::<Namespace>::all(self.client.clone()).delete(&self.namespace, &delete).await;
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// Asks until it holds. What does not come in `limit` fails the test.
#[track_caller]
pub(crate) fn until(what: &str, limit: Duration, mut holds: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let at = std::panic::Location::caller();
    async move {
        let asking = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(limit, asking).await.is_err() {
            panic!("{at}: not within {limit:?}: {what}");
        }
    }
}
