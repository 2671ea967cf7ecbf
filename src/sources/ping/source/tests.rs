use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

use super::*;

fn definition() -> CustomResourceDefinition {
    serde_yaml::from_str(include_str!("../../../../config/crd-pingsource.yaml")).unwrap()
}

fn version() -> CustomResourceDefinitionVersion {
    let mut versions = definition().spec.versions;
    assert_eq!(versions.len(), 1);
    versions.remove(0)
}

/// A value of each field that a schema has.
fn sample(schema: &JSONSchemaProps) -> Value {
    match (schema.type_.as_deref(), &schema.properties, &schema.additional_properties) {
        (Some("object"), Some(properties), None) => {
            properties.iter().map(|(name, schema)| (name.clone(), sample(schema))).collect()
        }
        (Some("object"), None, Some(JSONSchemaPropsOrBool::Schema(values))) => json!({ "some": sample(values) }),
        (Some("array"), None, None) => match schema.items.as_ref() {
            Some(JSONSchemaPropsOrArray::Schema(items)) => json!([sample(items), sample(items)]),
            other => panic!("an array of what? {other:?}"),
        },
        (Some("integer"), None, None) => json!(7),
        (Some("string"), None, None) => json!("text"),
        other => panic!("a schema that this test does not know: {other:?}"),
    }
}

/// Whether a schema is described all through, as `kubectl explain` shows it.
fn described(schema: &JSONSchemaProps) -> bool {
    schema.properties.iter().flatten().all(|(_, schema)| {
        let items = match schema.items.as_ref() {
            Some(JSONSchemaPropsOrArray::Schema(items)) => described(items),
            _ => true,
        };
        schema.description.is_some() && described(schema) && items
    })
}

#[test]
fn the_definition_has_the_names_of_the_code() {
    let definition = definition();
    assert_eq!(definition.metadata.name.unwrap(), format!("{PLURAL}.{GROUP}"));
    assert_eq!(definition.spec.group, GROUP);
    assert_eq!(definition.spec.scope, "Namespaced");
    assert_eq!((definition.spec.names.kind.as_str(), definition.spec.names.plural.as_str()), (KIND, PLURAL));
    let version = version();
    assert_eq!((version.name.as_str(), version.served, version.storage), (VERSION, true, true));
    assert!(version.subresources.unwrap().status.is_some());
    assert_eq!(API_VERSION, format!("{GROUP}/{VERSION}"));
}

#[test]
fn the_definition_has_the_fields_of_the_code() {
    let schema = version().schema.unwrap().open_api_v3_schema.unwrap();
    assert!(described(&schema));
    let mut object = sample(&schema);
    let source: PingSource = serde_json::from_value(object.clone()).unwrap();
    object["apiVersion"] = json!(API_VERSION);
    object["kind"] = json!(KIND);
    object["metadata"] = json!({});
    // Each field comes back, so the code knows each; and the structs below, which name every field, add none.
    assert_eq!(serde_json::to_value(&source).unwrap(), object);
    let PingSourceSpec { schedule, timezone, content_type, data, data_base64, sink, ce_overrides } = source.spec;
    for text in [schedule, timezone, content_type, data, data_base64] {
        assert_eq!(text, "text");
    }
    let Destination { reference, uri, ca_certs, audience } = sink;
    let Reference { api_version, kind, name, namespace } = reference.unwrap();
    for text in [uri.unwrap(), ca_certs.unwrap(), audience.unwrap(), api_version, kind, name, namespace] {
        assert_eq!(text, "text");
    }
    assert_eq!(ce_overrides.unwrap().extensions["some"], "text");
    let PingSourceStatus {
        observed_generation,
        conditions,
        annotations,
        sink_uri,
        sink_ca_certs,
        sink_audience,
        ce_attributes,
        auth,
    } = source.status.unwrap();
    let AuthStatus { service_account_name, service_account_names } = auth.unwrap();
    assert_eq!((observed_generation, conditions.len(), annotations.len(), ce_attributes.len()), (Some(7), 2, 1, 2));
    assert_eq!(service_account_names, ["text", "text"]);
    for text in [sink_uri, sink_ca_certs, sink_audience, service_account_name] {
        assert_eq!(text.unwrap(), "text");
    }
    let Condition { kind, status, severity, last_transition_time, reason, message } = conditions[0].clone();
    for text in [kind, status, severity, last_transition_time.unwrap(), reason, message] {
        assert_eq!(text, "text");
    }
}

#[test]
fn columns_show_what_the_fields_are_called() {
    let version = version();
    let paths: Vec<(String, String)> =
        version.additional_printer_columns.unwrap().into_iter().map(|column| (column.name, column.json_path)).collect();
    let ready = ".status.conditions[?(@.type=='Ready')]";
    let expected = [
        ("Sink", ".status.sinkUri".to_owned()),
        ("Schedule", ".spec.schedule".to_owned()),
        ("Age", ".metadata.creationTimestamp".to_owned()),
        ("Ready", format!("{ready}.status")),
        ("Reason", format!("{ready}.reason")),
    ];
    assert_eq!(paths, expected.map(|(name, path)| (name.to_owned(), path)));
}

#[test]
fn paths_are_knatives() {
    assert_eq!(PingSource::url_path(&(), Some("ns")), "/apis/sources.knative.dev/v1/namespaces/ns/pingsources");
    assert_eq!(PingSource::url_path(&(), None), "/apis/sources.knative.dev/v1/pingsources");
}

#[test]
fn nulls_and_strangers_do_not_matter() {
    let text = json!({
        "apiVersion": API_VERSION, "kind": KIND, "more": 1,
        "metadata": {"name": "ping", "namespace": null},
        "spec": {
            "schedule": null, "data": null, "sink": {"ref": {"kind": null, "group": "g"}, "uri": null},
            "ceOverrides": {"extensions": {"a": null}}, "later": {},
        },
        "status": {"conditions": [{"type": "Ready", "status": null}], "annotations": null, "ceAttributes": null},
    });
    let source: PingSource = serde_json::from_value(text).unwrap();
    assert_eq!(source.key(), "/ping");
    assert_eq!(source.spec.schedule, "");
    assert_eq!(source.spec.ce_overrides.as_ref().unwrap().extensions["a"], "");
    assert_eq!(source.ready(), Some(false));

    for empty in [json!({}), json!({"metadata": null, "spec": null, "status": null}), json!({"spec": {"sink": null}})] {
        assert_eq!(serde_json::from_value::<PingSource>(empty).unwrap(), PingSource::default());
    }
}

#[test]
fn another_kind_is_said_to_be_one() {
    for (kind, api_version) in [(KIND, "sources.knative.dev/v1beta2"), ("ApiServerSource", API_VERSION)] {
        let object = json!({"apiVersion": api_version, "kind": kind, "spec": {}});
        let error = serde_json::from_value::<PingSource>(object).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("a {kind} of {api_version} where a PingSource of sources.knative.dev/v1 is expected")
        );
    }
}

#[test]
fn the_sink_is_what_was_found_or_else_what_was_given() {
    let read = |spec: Value, status: Value| -> PingSource {
        serde_json::from_value(json!({"spec": {"sink": spec}, "status": status})).unwrap()
    };
    let sink = |spec, status| read(spec, status).sink_uri().map(str::to_owned);
    assert_eq!(sink(json!({"uri": "http://given"}), json!({"sinkUri": "http://found"})).unwrap(), "http://found");
    assert_eq!(sink(json!({"uri": "http://given"}), json!(null)).unwrap(), "http://given");
    assert_eq!(sink(json!({"uri": "http://given"}), json!({"sinkUri": ""})).unwrap(), "http://given");
    // Relative to the object, whose address only a controller finds.
    assert_eq!(sink(json!({"uri": "/path", "ref": {"kind": "Service"}}), json!({})), None);
    assert_eq!(sink(json!({"uri": ""}), json!({})), None);
}

#[test]
fn ready_is_what_the_condition_says() {
    let ready = |status: Value| serde_json::from_value::<PingSource>(json!({ "status": status })).unwrap().ready();
    let condition = |status: &str| json!({"conditions": [{"type": "Other", "status": "True"}, {"type": "Ready", "status": status}]});
    assert_eq!(ready(json!(null)), None);
    assert_eq!(ready(json!({"conditions": []})), None);
    assert_eq!(ready(condition("True")), Some(true));
    assert_eq!(ready(condition("False")), Some(false));
    assert_eq!(ready(condition("Unknown")), Some(false));
}
