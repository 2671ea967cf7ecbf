use serde_json::{Map, Value, json};

use super::decode::{Report, decode};
use super::{builtin, parse, structural, validate};

fn decoded(name: &str, mut value: Value) -> (Value, Report) {
    let mut report = Report::default();
    decode(&mut value, builtin::schema(name), &mut report);
    (value, report)
}

#[test]
fn built_in_kinds_are_decoded_as_go_does() {
    let (value, report) = decoded(
        builtin::LEASE,
        json!({
            "metadata": {"name": "l", "labels": null, "creationTimestamp": null},
            "spec": {"holderIdentity": "a", "renewTime": "2024-01-01T01:00:00.000000+01:00", "odd": 1},
            "extra": true,
        }),
    );
    assert_eq!(report.error, None);
    let mut unknown = report.unknown;
    unknown.sort();
    assert_eq!(unknown, ["extra", "spec.odd"]);
    assert_eq!(
        value,
        json!({
            "metadata": {"name": "l"},
            "spec": {"holderIdentity": "a", "renewTime": "2024-01-01T00:00:00.000000Z"},
        })
    );
}

#[test]
fn type_errors_are_in_gos_words() {
    for (spec, wanted) in [
        (
            json!({"leaseDurationSeconds": "15"}),
            "json: cannot unmarshal string into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            json!({"leaseDurationSeconds": 2_147_483_648_u64}),
            "json: cannot unmarshal number 2147483648 into Go struct field LeaseSpec.spec.leaseDurationSeconds of \
             type int32",
        ),
        (
            json!({"leaseDurationSeconds": 1.5}),
            "json: cannot unmarshal number 1.5 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            json!({"holderIdentity": 5}),
            "json: cannot unmarshal number into Go struct field LeaseSpec.spec.holderIdentity of type string",
        ),
        (
            json!({"renewTime": "2024-01-01T00:00:00Z"}),
            "parsing time \"2024-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \
             \".000000\"",
        ),
    ] {
        let (_, report) = decoded(builtin::LEASE, json!({"metadata": {"name": "l"}, "spec": spec}));
        assert_eq!(report.error.as_deref(), Some(wanted));
    }
}

fn widget() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "name": {"type": "string", "pattern": "^x", "maxLength": 3},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "x-kubernetes-list-type": "set"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "port": {"x-kubernetes-int-or-string": true},
                "at": {"type": "string", "format": "date-time"},
                "maybe": {"type": "string", "nullable": true},
            },
        }},
    })
}

fn errors(spec: &Value) -> Vec<String> {
    let schema = parse(&widget(), &Map::new());
    let mut out = Vec::new();
    validate::validate(&json!({"spec": spec}), &schema, "", &mut out);
    out.into_iter().map(|e| format!("{}: {}", e.field, e.message)).collect()
}

#[test]
fn custom_resources_are_validated_in_kube_openapis_words() {
    assert!(errors(&json!({"size": 1, "port": "http", "map": {"a": 1}, "maybe": null})).is_empty());
    for (spec, wanted) in [
        (json!({}), "spec.size: Required value"),
        (json!({"size": 0}), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (json!({"size": 1, "mode": "c"}), "spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\""),
        (json!({"size": 1, "name": "y"}), "spec.name: Invalid value: \"y\": spec.name in body should match '^x'"),
        (json!({"size": 1, "name": "xxxx"}), "spec.name: Too long: may not be more than 3 bytes"),
        (json!({"size": 1, "tags": ["a", "b", "c"]}), "spec.tags: Too many: 3: must have at most 2 items"),
        (json!({"size": 1, "tags": ["a", "a"]}), "spec.tags[1]: Duplicate value: \"a\""),
        (
            json!({"size": 1, "map": {"a": "b"}}),
            "spec.map.a: Invalid value: \"string\": spec.map.a in body must be of type integer: \"string\"",
        ),
        (
            json!({"size": 1, "at": "now"}),
            "spec.at: Invalid value: \"now\": spec.at in body must be of type date-time: \"now\"",
        ),
        (
            json!({"size": null}),
            "spec.size: Invalid value: \"null\": spec.size in body must be of type integer: \"null\"",
        ),
    ] {
        assert_eq!(errors(&spec), [wanted], "{spec}");
    }
}

#[test]
fn custom_resources_are_pruned_and_defaulted() {
    let schema = parse(&widget(), &Map::new());
    let mut value = json!({
        "apiVersion": "x/v1", "kind": "Widget", "metadata": {"anything": 1},
        "spec": {"size": 1, "odd": 1, "free": {"a": {"b": 1}}, "map": {"k": 1}, "mode": null},
        "other": 1,
    });
    let mut unknown = Vec::new();
    structural::prune(&mut value, &schema, true, "", &mut unknown);
    structural::default(&mut value, &schema);
    unknown.sort();
    assert_eq!(unknown, ["other", "spec.odd"]);
    assert_eq!(
        value,
        json!({
            "apiVersion": "x/v1", "kind": "Widget", "metadata": {"anything": 1},
            "spec": {"size": 1, "mode": "a", "free": {"a": {"b": 1}}, "map": {"k": 1}},
        })
    );
}

#[test]
fn combinations() {
    let schema = |s: Value| parse(&s, &Map::new());
    let count = |s: &super::Schema, v: Value| {
        let mut out = Vec::new();
        validate::validate(&v, s, "x", &mut out);
        out.len()
    };
    let one = schema(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    assert_eq!(count(&one, json!({"a": 1})), 0);
    assert_eq!(count(&one, json!({"a": 1, "b": 1})), 1);
    assert_eq!(count(&one, json!({})), 1);
    let any = schema(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
    assert_eq!((count(&any, json!("a")), count(&any, json!(true))), (0, 1));
    let not = schema(json!({"not": {"enum": ["a"]}}));
    assert_eq!((count(&not, json!("a")), count(&not, json!("b"))), (1, 0));
}

#[test]
fn a_schema_must_be_structural() {
    let found = |s: Value| {
        let mut out = Vec::new();
        structural::check(&s, "schema", &mut out);
        out.into_iter().map(|e| e.field).collect::<Vec<_>>()
    };
    assert!(found(widget()).is_empty(), "{:?}", found(widget()));
    assert_eq!(found(Value::Null), ["schema"]);
    assert_eq!(found(json!({})), ["schema.type"]);
    assert_eq!(found(json!({"type": "object", "properties": {"a": {}}})), ["schema.properties[a].type"]);
    assert_eq!(
        found(json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "x"}}})),
        ["schema.properties[a].items", "schema.properties[b].type"]
    );
    assert_eq!(
        found(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}})),
        ["schema.properties[a].pattern"]
    );
    let mut deep = json!({"type": "object"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert_eq!(found(deep).len(), 1, "no overflow");
}
