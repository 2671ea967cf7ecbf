//! The kinds that are served, each with what the tests do to it.

/// One kind.
pub(crate) struct Kind {
    /// As kubectl is told it.
    pub(crate) resource: &'static str,
    pub(crate) name: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) manifest: &'static str,
    /// A merge patch, and what is then found in the object's YAML.
    pub(crate) patch: (&'static str, &'static str),
    /// What sed does to its YAML in `kubectl edit`, and what is then found in it.
    pub(crate) edit: (&'static str, &'static str),
    /// What `kubectl describe` says of it, blanks aside.
    pub(crate) described: &'static str,
    /// A column that `kubectl get` shows beside the name.
    pub(crate) column: &'static str,
}

pub(crate) const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, description: "How large it is."}
              mode: {type: string, enum: [fast, slow], default: slow}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

pub(crate) const LEASE: &str = r#"
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l1, namespace: default}
spec:
  holderIdentity: a
  leaseDurationSeconds: 15
  leaseTransitions: 0
  acquireTime: "2024-01-01T00:00:00.000000Z"
  renewTime: "2024-01-01T00:00:00.000000Z"
"#;

pub(crate) const WIDGET: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: w1, namespace: default}
spec: {size: 3}
";

/// All kinds. The CRD is made first and deleted last, since one of the others is its.
pub(crate) const ALL: [Kind; 10] = [
    Kind {
        resource: "customresourcedefinitions",
        name: "widgets.example.com",
        namespaced: false,
        manifest: CRD,
        patch: (r#"{"metadata":{"labels":{"a":"b"}}}"#, "a: b"),
        edit: ("s/^    - wd$/    - wdg/", "- wdg"),
        described: "Scope: Namespaced",
        column: "CREATED AT",
    },
    Kind {
        resource: "leases",
        name: "l1",
        namespaced: true,
        manifest: LEASE,
        patch: (r#"{"spec":{"holderIdentity":"b"}}"#, "holderIdentity: b"),
        edit: ("s/leaseDurationSeconds: 15/leaseDurationSeconds: 16/", "leaseDurationSeconds: 16"),
        described: "Lease Duration Seconds: 16",
        column: "HOLDER",
    },
    Kind {
        resource: "configmaps",
        name: "c1",
        namespaced: true,
        manifest: "
apiVersion: v1
kind: ConfigMap
metadata: {name: c1, namespace: default}
data: {k: v}
",
        patch: (r#"{"data":{"k":"w"}}"#, "k: w"),
        edit: ("s/^data:/data:\\n  more: text/", "more: text"),
        described: "more:",
        column: "DATA",
    },
    Kind {
        resource: "secrets",
        name: "s1",
        namespaced: true,
        manifest: "
apiVersion: v1
kind: Secret
metadata: {name: s1, namespace: default}
data: {k: dg==}
",
        patch: (r#"{"stringData":{"k":"w"}}"#, "k: dw=="),
        edit: ("s/^data:/data:\\n  more: eA==/", "more: eA=="),
        described: "Type: Opaque",
        column: "TYPE",
    },
    Kind {
        resource: "serviceaccounts",
        name: "sa1",
        namespaced: true,
        manifest: "
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa1, namespace: default}
",
        patch: (r#"{"automountServiceAccountToken":false}"#, "automountServiceAccountToken: false"),
        edit: ("s/^metadata:/secrets: [{name: x}]\\nmetadata:/", "- name: x"),
        described: "Mountable secrets:",
        column: "SECRETS",
    },
    Kind {
        resource: "namespaces",
        name: "n1",
        namespaced: false,
        manifest: "
apiVersion: v1
kind: Namespace
metadata: {name: n1}
",
        patch: (r#"{"metadata":{"labels":{"a":"b"}}}"#, "a: b"),
        edit: ("s/^  name: n1/  name: n1\\n  annotations: {note: words}/", "note: words"),
        described: "Status: Active",
        column: "STATUS",
    },
    Kind {
        resource: "pods",
        name: "p1",
        namespaced: true,
        manifest: "
apiVersion: v1
kind: Pod
metadata: {name: p1, namespace: default}
spec: {containers: [{name: a, image: i}]}
",
        patch: (r#"{"spec":{"nodeName":"node-1"}}"#, "nodeName: node-1"),
        edit: ("s/image: i/image: j/", "image: j"),
        described: "Image: j",
        column: "READY",
    },
    Kind {
        resource: "events.v1.",
        name: "e1",
        namespaced: true,
        manifest: r#"
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: default}
involvedObject: {apiVersion: v1, kind: ConfigMap, name: c1, namespace: default}
reason: Tested
message: hello
type: Normal
firstTimestamp: "2024-01-01T00:00:00Z"
lastTimestamp: "2024-01-01T00:00:00Z"
count: 1
source: {component: test}
"#,
        patch: (r#"{"message":"bye"}"#, "message: bye"),
        edit: ("s/reason: Tested/reason: Edited/", "reason: Edited"),
        described: "Reason: Edited",
        column: "LAST SEEN",
    },
    Kind {
        resource: "events.events.k8s.io",
        name: "e2",
        namespaced: true,
        manifest: r#"
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: e2, namespace: default}
eventTime: "2024-01-01T00:00:00.000000Z"
reportingController: example.com/ctl
reportingInstance: ctl-0
action: Test
reason: Tested
type: Normal
regarding: {apiVersion: v1, kind: ConfigMap, name: c1, namespace: default}
note: hello
"#,
        patch: (r#"{"note":"bye"}"#, "note: bye"),
        edit: ("s/reason: Tested/reason: Edited/", "reason: Edited"),
        described: "Reporting Controller: example.com/ctl",
        column: "LAST SEEN",
    },
    Kind {
        resource: "widgets.example.com",
        name: "w1",
        namespaced: true,
        manifest: WIDGET,
        patch: (r#"{"spec":{"size":4}}"#, "size: 4"),
        edit: ("s/mode: slow/mode: fast/", "mode: fast"),
        described: "Mode: fast",
        column: "SIZE",
    },
];
