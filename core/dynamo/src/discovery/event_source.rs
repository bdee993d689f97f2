//! Event sources: whose KV events a publisher sends (reference §8.2, ≥ 1.4).

use super::instance::{Instance, instance};
use super::key::Key;
use super::{name, or_nothing};
use crate::request_plane::QueryEndpoint;
use crate::subject::{Subject, Transport};
use crate::wire::{Fault, InField, Wire, once, required};
use radixscope_model::id::{Worker, WorkerId};

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

pub(super) fn event_source<'a, W: Wire<'a>>(key: &Key<'_>, wire: &mut W) -> Result<EventSource, Fault> {
    let (mut publisher_id, mut topic, mut metadata) = (None, None, Metadata::default());
    let mut left = wire.map()?;
    while let Some(field) = wire.next_key(&mut left)? {
        let at = wire.at();
        match field {
            b"publisher_id" => {
                once(&mut publisher_id, wire.u64().field("publisher_id")?, "publisher_id", at)?
            }
            b"topic" => once(&mut topic, name(wire, "topic")?, "topic", at)?,
            b"metadata" => metadata = or_nothing(wire, Metadata::read)?,
            _ => wire.skip()?,
        }
    }
    let publisher_id = required(publisher_id, "publisher_id", 0)?;
    let Metadata { worker, recovery } = metadata;
    // A target that answers for another process than the source's does not have this worker's blocks.
    let recovery = worker.zip(recovery).and_then(|(worker, instance)| {
        let endpoint = instance.query_endpoint().filter(|_| instance.instance_id == worker.id)?;
        let publisher_id = endpoint.publisher_id.or(Some(publisher_id));
        Some(QueryEndpoint { worker, is_rank_known: true, publisher_id, ..endpoint })
    });
    let topic = topic.unwrap_or_else(|| key.topic.to_owned());
    // Its channel contains the transport.
    Ok(EventSource { publisher_id, subject: key.subject(&topic, Transport::Core), worker, recovery })
}

#[derive(Default)]
struct Metadata {
    worker: Option<Worker>,
    recovery: Option<Instance>,
}

impl Metadata {
    fn read<'a, W: Wire<'a>>(wire: &mut W) -> Result<Self, Fault> {
        let mut metadata = Self::default();
        let mut left = wire.map()?;
        while let Some(key) = wire.next_key(&mut left)? {
            match key {
                b"worker" => metadata.worker = wire.optional(worker)?,
                b"recovery_target" => {
                    metadata.recovery = or_nothing(wire, |wire| wire.optional(instance))?;
                }
                _ => wire.skip()?,
            }
        }
        Ok(metadata)
    }
}

fn worker<'a, W: Wire<'a>>(wire: &mut W) -> Result<Worker, Fault> {
    let (mut id, mut dp_rank) = (None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"worker_id" => id = Some(wire.u64().field("worker_id")?),
            b"dp_rank" => dp_rank = Some(wire.u32().field("dp_rank")?),
            _ => wire.skip()?,
        }
    }
    let (id, dp_rank) = (required(id, "worker_id", 0)?, required(dp_rank, "dp_rank", 0)?);
    Ok(Worker { id: WorkerId(id), dp_rank })
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
