//! Objects as Kubernetes' API gives them, and what no API gives.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::discovery::{DiscoveryEntry, decode};

/// As Dynamo 1.2 writes one, with white space that `kubectl get -o json` adds.
const RESOURCE: &str = r#"{
  "apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoWorkerMetadata",
  "metadata": {"name": "agg-worker-0", "uid": "c-1", "resourceVersion": "71", "managedFields": [{"manager": "dynamo-worker"}],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "agg-worker-0", "uid": "p-1", "controller": true}]},
  "spec": {"data": {
    "endpoints": {"dynamo/backend/generate/2a": {"type": "Endpoint", "namespace": "dynamo", "component": "backend",
      "endpoint": "generate", "instance_id": 42, "transport": {"tcp": "10.0.0.7:4711/2a/generate"}}},
    "model_cards": null,
    "event_channels": {"dynamo//kv_metrics/2a": {"type": "EventChannel", "namespace": "dynamo", "component": "",
      "topic": "kv_metrics", "instance_id": 42, "transport": {"kind": "Zmq", "config": {"endpoint": "tcp://10.0.0.7:5557"}}}},
    "unknown": [1]
  }}
}"#;

#[test]
fn a_resource_holds_entries_under_the_keys_of_etcd() {
    let meta = meta(RESOURCE.as_bytes()).unwrap();
    let pod = Pod { name: "agg-worker-0".into(), uid: "p-1".into() };
    assert_eq!((&*meta.name, &*meta.uid, meta.owner), ("agg-worker-0", "c-1", Some(pod)));
    assert_eq!(version(RESOURCE.as_bytes()).as_deref(), Ok("71"));
    let read = worker_metadata(RESOURCE.as_bytes()).unwrap();
    assert_eq!(read.instance_id, Some(42));
    let keys: Vec<&str> = read.entries.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, ["v1/instances/dynamo/backend/generate/2a", "v1/event_channels/dynamo//kv_metrics/2a"]);
    for (key, value) in &read.entries {
        let entry = decode(key, value).unwrap();
        assert!(matches!(entry, DiscoveryEntry::Instance(_) | DiscoveryEntry::EventChannel(_)), "{entry:?}");
    }
}

#[test]
fn a_resource_without_data_is_distinguished_from_one_without_entries() {
    let of = |spec: Value| {
        worker_metadata(json!({"spec": spec}).to_string().as_bytes()).map(|read| read.entries.len())
    };
    for spec in [json!({}), json!(null), json!({"data": null})] {
        assert!(of(spec.clone()).unwrap_err().detail.contains("spec.data"), "{spec}");
    }
    for data in [json!({}), json!({"endpoints": {}}), json!({"endpoints": null, "event_sources": null})] {
        assert_eq!(of(json!({ "data": data })), Ok(0));
    }
}

#[test]
fn only_pods_that_are_ready_count() {
    let endpoint = |name: &str, ready: Value| {
        json!({"addresses": ["10.0.0.7"], "conditions": {"ready": ready, "serving": true},
            "targetRef": {"kind": "Pod", "name": name, "uid": "u", "namespace": "n"}})
    };
    let slice = json!({"metadata": {"name": "s"}, "endpoints": [endpoint("a", json!(true)), endpoint("b", json!(false)),
        endpoint("c", json!(null)), {"conditions": {"ready": true}},
        {"conditions": {"ready": true}, "targetRef": {"kind": "Node", "name": "d"}}, {"targetRef": null, "conditions": null}]});
    assert_eq!(ready_pods(slice.to_string().as_bytes()), Ok(vec![Pod { name: "a".into(), uid: "u".into() }]));
    assert_eq!(ready_pods(br#"{"endpoints":null}"#), Ok(vec![]));
}

#[test]
fn lists_and_watches_hand_over_objects_as_they_are() {
    let list = br#"{"kind":"List","metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":1},"items":[ {"a":1} ,{}]}"#;
    let page_of = page(list).unwrap();
    assert_eq!((&*page_of.version, &*page_of.next), ("7", "abc"));
    assert_eq!(page_of.objects, [&br#"{"a":1}"#[..], b"{}"]);
    assert_eq!(page(br#"{"metadata":{"resourceVersion":"7"},"items":null}"#).unwrap().objects.len(), 0);
    assert_eq!(change(br#"{"type":"MODIFIED","object":{"a":1}}"#), Ok(WatchEvent::Put(br#"{"a":1}"#)));
    assert_eq!(change(br#"{"type":"DELETED","object":{}}"#), Ok(WatchEvent::End(b"{}")));
    let gone = change(br#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#);
    assert_eq!(gone, Ok(WatchEvent::Failed(Status { code: 410, message: "too old".into() })));
}

#[test]
fn of_what_is_too_large_the_front_says_the_name() {
    let line = format!(r#"{{"type":"MODIFIED","object":{RESOURCE}}}"#);
    let object = object_in_front(&line.as_bytes()[..line.len() - 200]).unwrap();
    assert_eq!(name_in_front(object).as_deref(), Some("agg-worker-0"));
    let nameless = [&RESOURCE.as_bytes()[..80], b"{}", b"[", br#"{"metadata":{"name":"half"#];
    assert_eq!(nameless.map(name_in_front), [const { None }; 4]);
    assert_eq!(object_in_front(br#"{"type":"ADDED""#), None);
}

#[test]
fn what_is_not_of_kubernetes_is_refused_with_a_reason() {
    for (bytes, word) in [
        (&b"<html>"[..], "no JSON"),
        (br#"{"items":[]}"#, "resourceVersion"),
        (br#"{"metadata":{"resourceVersion":"7"}}"#, "items"),
        (br#"{"metadata":{"resourceVersion":7},"items":[]}"#, "expected text"),
        (b"[]", "expected a map"),
        (b"", "ends here"),
    ] {
        let error = page(bytes).unwrap_err();
        assert!(error.detail.contains(word), "{error}");
    }
    assert!(change(br#"{"type":"MOVED","object":{}}"#).unwrap_err().detail.contains("watch"));
    assert!(meta(br#"{"metadata":{"name":""}}"#).unwrap_err().detail.contains("metadata.name"));
    for data in [
        &br#"{"spec":{"data":7}}"#[..],
        br#"{"spec":{"data":{"endpoints":[1]}}}"#,
        b"{\"spec\":{\"data\":{\"endpoints\":{\"\xff\":1}}}}",
    ] {
        assert!(worker_metadata(data).is_err());
    }
    assert_eq!(status(b"404 page not found"), Status::default());
}

#[test]
fn depth_and_numbers_from_outside_are_bounded() {
    let deep =
        format!(r#"{{"metadata":{{"name":"a"}},"spec":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(worker_metadata(deep.as_bytes()).is_err());
    assert_eq!(meta(deep.as_bytes()).unwrap().name, "a");
    let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{deep},{{"a":"]}}\\"}}]}}"#);
    let objects = page(list.as_bytes()).unwrap().objects;
    assert_eq!(objects, [deep.as_bytes(), br#"{"a":"]}\\"}"#], "the others are read");
    let many = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{}1]}}"#, "1,".repeat(MAX_ITEMS));
    assert_eq!(page(many.as_bytes()).unwrap_err().reason, Reason::TooLarge);
    let long = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "a".repeat(MAX_TEXT_BYTES + 1));
    assert_eq!(meta(long.as_bytes()).unwrap_err().reason, Reason::TooLarge);
}

/// JSON that is near to an object of Kubernetes.
fn near() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[a-z/\\\\\"é]{0,6}".prop_map(Value::from),
    ];
    let keys = "metadata|name|uid|ownerReferences|spec|data|endpoints|model_cards|event_channels|items|conditions|ready\
        |targetRef|kind|type|object|resourceVersion|instance_id|a/b/c/1";
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn read_all(bytes: &[u8]) {
    let _ = (
        page(bytes).is_ok(),
        change(bytes).is_ok(),
        meta(bytes).is_ok(),
        version(bytes).is_ok(),
        status(bytes),
    );
    let _ = (worker_metadata(bytes).is_ok(), ready_pods(bytes).is_ok());
}

proptest! {
    #[test]
    fn nothing_panics(bytes: Vec<u8>, near in near(), cut in 0..2_000usize) {
        read_all(&bytes);
        let text = near.to_string();
        read_all(text.as_bytes());
        read_all(&text.as_bytes()[..cut.min(text.len())]);
        read_all(&RESOURCE.as_bytes()[..cut.min(RESOURCE.len())]);
    }

    #[test]
    fn every_entry_comes_out_as_it_went_in(
        values in prop::collection::btree_map("[a-z_-]{1,8}/[a-z]{0,8}/[a-z]{1,8}/[0-9a-f]{1,16}", near(), 0..8),
        is_null: bool,
    ) {
        let maps = if is_null { json!({"endpoints": null, "event_channels": values}) } else { json!({ "event_channels": values }) };
        let object = json!({"metadata": {"name": "a"}, "spec": {"data": maps}}).to_string();
        let read = worker_metadata(object.as_bytes()).unwrap();
        let back = read.entries.iter().map(|(key, value)| {
            let path = key.strip_prefix("v1/event_channels/").unwrap().to_owned();
            (path, serde_json::from_slice(value).unwrap())
        });
        prop_assert_eq!(back.collect::<std::collections::BTreeMap<String, Value>>(), values);
    }
}
