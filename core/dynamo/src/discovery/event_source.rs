//! Event sources: whose KV events a publisher sends (reference §8.2, ≥ 1.4).

use super::Name;
use super::instance::Instance;
use super::key::EntryKey;
use crate::request_plane::QueryEndpoint;
use crate::subject::{Subject, Transport};
use crate::typed::or_default;
use radixscope_model::id::Worker;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Whose events a publisher sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventSource {
    /// Publisher id.
    pub publisher_id: u64,
    /// What its messages are about.
    pub subject: Subject,
    /// The worker. `None`: the entry names none, as that of a cache that several workers share.
    pub worker: Option<Worker>,
    /// Who answers for events that were missed.
    pub recovery: Option<QueryEndpoint>,
}

/// The entry as it is filed.
#[derive(Deserialize)]
pub(super) struct SourceEntry<'a> {
    publisher_id: u64,
    topic: Option<Name>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Metadata<'a> {
    worker: Option<WorkerFields>,
    #[serde(borrow)]
    recovery_target: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WorkerFields {
    worker_id: u64,
    dp_rank: u32,
}

impl EventSource {
    pub(super) fn of(key: &EntryKey<'_>, entry: SourceEntry<'_>) -> Self {
        let SourceEntry { publisher_id, topic, metadata } = entry;
        let metadata: Metadata<'_> = or_default(metadata);
        let worker = metadata.worker.map(|worker| Worker::new(worker.worker_id, worker.dp_rank));
        let recovery: Option<Instance> = or_default(metadata.recovery_target);
        // A target that answers for another process than the source's does not have this worker's blocks.
        let recovery = worker.zip(recovery).and_then(|(worker, instance)| {
            let endpoint = instance.query_endpoint().filter(|_| instance.instance_id == worker.id)?;
            let publisher_id = endpoint.publisher_id.or(Some(publisher_id));
            Some(QueryEndpoint { worker, is_rank_known: true, publisher_id, ..endpoint })
        });
        let topic = topic.map_or_else(|| key.topic.to_owned(), |Name(topic)| topic);
        // Its channel contains the transport.
        Self { publisher_id, subject: key.subject(&topic, Transport::Core), worker, recovery }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DiscoveryEntry, decode};
    use super::*;
    use crate::request_plane::{Codec, RequestTransport};
    use radixscope_model::record::Topic;

    const KEY: &str = "v1/event_sources/namespace%2Fdynamo%2Fcomponent%2Fbackend%2Fendpoint%2Fgenerate%2Ftopic%2Fkv%2Devents%2F6dba096152088";
    const VALUE: &str = r#"{"type":"EventSource","scope":{"kind":"endpoint","endpoint":{"namespace":"dynamo","component":"backend","name":"generate"}},"topic":"kv-events","publisher_id":1930332619481224,"metadata":{"kv_state_endpoint":{"namespace":"dynamo","component":"backend","name":"generate"},"worker":{"worker_id":3719937578334966251,"dp_rank":1},"publisher_id":1930332619481224,"recovery_target":{"component":"backend","endpoint":"worker_kv_query_source_6dba096152088","namespace":"dynamo","instance_id":3719937578334966251,"transport":{"tcp":"127.0.0.1:35601/339fdf84b74851eb/dynamo/backend/worker_kv_query_source_6dba096152088"},"device_type":"cuda","request_plane_codec":"msgpack"}}}"#;

    fn source(value: &str) -> EventSource {
        match decode(KEY, value.as_bytes()) {
            Ok(DiscoveryEntry::EventSource(source)) => source,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_publisher_leads_to_its_worker_and_to_who_answers_for_it() {
        let source = source(VALUE);
        let worker = Worker::new(3_719_937_578_334_966_251, 1);
        assert_eq!((source.publisher_id, source.worker), (0x6_dba0_9615_2088, Some(worker)));
        assert_eq!((source.subject.topic, &*source.subject.endpoint), (Topic::KvEvents, "generate"));
        let recovery = source.recovery.expect("a recovery target");
        assert_eq!((recovery.worker, recovery.is_rank_known), (worker, true));
        assert_eq!((recovery.codec, recovery.publisher_id), (Codec::MsgPack, Some(0x6_dba0_9615_2088)));
        let path = "339fdf84b74851eb/dynamo/backend/worker_kv_query_source_6dba096152088".to_owned();
        assert_eq!(recovery.transport, RequestTransport::Tcp { address: "127.0.0.1:35601".into(), path });
    }

    #[test]
    fn what_is_not_of_one_worker_leads_nowhere() {
        let shared = source(&VALUE.replace(r#""worker":{"worker_id":3719937578334966251,"dp_rank":1},"#, ""));
        assert_eq!((shared.worker, shared.recovery), (None, None));
        let odd = source(&VALUE.replace(r#""metadata":{"#, r#""metadata":7,"x":{"#));
        assert_eq!((odd.worker, odd.recovery), (None, None));
        let other = source(&VALUE.replace(r#""worker_id":3719937578334966251"#, r#""worker_id":5"#));
        assert_eq!((other.worker, other.recovery), (Some(Worker::new(5, 1)), None));
    }
}
