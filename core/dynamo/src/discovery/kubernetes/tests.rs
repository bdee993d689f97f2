//! Custom resources as Dynamo writes them, and what nobody writes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::discovery::{DiscoveryEntry, decode};

/// As Dynamo 1.2 writes one, with white space that `kubectl get -o json` adds.
const SPEC: &str = r#"{"data": {
    "endpoints": {"dynamo/backend/generate/2a": {"type": "Endpoint", "namespace": "dynamo", "component": "backend",
      "endpoint": "generate", "instance_id": 42, "transport": {"tcp": "10.0.0.7:4711/2a/generate"}}},
    "model_cards": null,
    "event_channels": {"dynamo//kv_metrics/2a": {"type": "EventChannel", "namespace": "dynamo", "component": "",
      "topic": "kv_metrics", "instance_id": 42, "transport": {"kind": "Zmq", "config": {"endpoint": "tcp://10.0.0.7:5557"}}}},
    "unknown": [1]
  }}"#;

#[test]
fn a_resource_holds_entries_under_the_keys_of_etcd() {
    let read = worker_metadata(SPEC).unwrap();
    assert_eq!(read.instance_id, Some(42));
    let keys: Vec<&str> = read.entries.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, ["v1/instances/dynamo/backend/generate/2a", "v1/event_channels/dynamo//kv_metrics/2a"]);
    for (key, value) in &read.entries {
        let entry = decode(key, value.as_bytes()).unwrap();
        assert!(matches!(entry, DiscoveryEntry::Instance(_) | DiscoveryEntry::EventChannel(_)), "{entry:?}");
    }
}

#[test]
fn a_resource_without_data_is_distinguished_from_one_without_entries() {
    let of = |spec: Value| worker_metadata(&spec.to_string()).map(|read| read.entries.len());
    for spec in [json!({}), json!(null), json!({"data": null})] {
        assert!(of(spec.clone()).unwrap_err().detail.contains("spec.data"), "{spec}");
    }
    for data in [json!({}), json!({"endpoints": {}}), json!({"endpoints": null, "event_sources": null})] {
        assert_eq!(of(json!({ "data": data })), Ok(0));
    }
}

#[test]
fn ids_are_exact() {
    let spec = format!(r#"{{"data":{{"endpoints":{{"a/b/c/1":{{"instance_id":{}}}}}}}}}"#, u64::MAX - 1);
    assert_eq!(worker_metadata(&spec).unwrap().instance_id, Some(u64::MAX - 1));
}

#[test]
fn what_is_no_metadata_is_refused_with_a_reason() {
    for (spec, word) in [
        ("7", "expected"),
        (r#"{"data":7}"#, "data"),
        (r#"{"data":{"endpoints":[1]}}"#, "a map of entries"),
        (r#"{"data":{"endpoints":{"a""#, "ends here"),
    ] {
        let error = worker_metadata(spec).unwrap_err();
        assert!(error.detail.contains(word), "{spec}: {error}");
    }
}

#[test]
fn depth_and_lengths_from_outside_are_bounded() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(worker_metadata(&deep).is_err());
    // Beside the entries and within one: the entry's own fault.
    let around =
        format!(r#"{{"other":{deep},"data":{{"endpoints":{{"a":{deep},"b":{{"instance_id":1}}}}}}}}"#);
    assert_eq!(worker_metadata(&around).unwrap().entries.len(), 2);
    let many: serde_json::Map<String, Value> =
        (0..=MAX_ENTRIES).map(|n| (n.to_string(), Value::Null)).collect();
    for entries in [Value::from(many), json!({"a".repeat(MAX_KEY_BYTES + 1): 1})] {
        let error = worker_metadata(&json!({"data": {"endpoints": entries}}).to_string()).unwrap_err();
        assert_eq!(error.reason, Reason::TooLarge);
    }
}

/// JSON that is near to a `spec`.
fn near() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[a-z/\\\\\"é]{0,6}".prop_map(Value::from),
    ];
    let keys = "data|endpoints|model_cards|event_channels|event_sources|instance_id|a/b/c/1";
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn anything_is_read_or_refused(spec in near(), cut in 0usize..400) {
        let text = spec.to_string();
        let _ = worker_metadata(&text);
        let end = text.char_indices().map(|(at, _)| at).take(cut).last().unwrap_or(0);
        let _ = worker_metadata(&text[..end]);
    }

    #[test]
    fn every_entry_keeps_its_value(values in prop::collection::btree_map("[a-z/]{1,9}", near(), 0..6)) {
        let spec = json!({"data": {"model_cards": values}}).to_string();
        let read = worker_metadata(&spec).unwrap();
        let found: Vec<(String, Value)> = read.entries.iter()
            .map(|(key, value)| (key.clone(), serde_json::from_str(value).unwrap())).collect();
        let expected: Vec<(String, Value)> =
            values.into_iter().map(|(key, value)| (format!("v1/mdc/{key}"), value)).collect();
        prop_assert_eq!(found, expected);
    }
}
