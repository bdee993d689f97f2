//! Event channels: how to subscribe to a publisher of events (reference §8.2, §2.9).

use super::Name;
use super::key::EntryKey;
use crate::subject::{Subject, Transport};
use crate::typed::{Bounded, or_default};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Most addresses that are read of one broker.
pub const MAX_BROKERS: usize = 16;

/// The address and topic of a publisher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventChannel {
    /// Publisher id; up to 1.3 that of the process.
    pub publisher_id: u64,
    /// What its messages are about; the topic is [`Topic::Other`](radixscope_model::record::Topic::Other) if it is none that is
    /// decoded.
    pub subject: Subject,
    /// The topic as Dynamo calls it.
    pub topic: String,
    /// Its transport.
    pub transport: ChannelTransport,
}

/// The transport of a publisher.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ChannelTransport {
    /// It has a ZeroMQ socket of its own.
    Zmq {
        /// `tcp://HOST:PORT`.
        endpoint: String,
    },
    /// It is a broker between publishers and subscribers.
    ZmqBroker {
        /// Where subscribers connect, `tcp://HOST:PORT` each; several are replicas.
        xpub: Vec<String>,
    },
    /// It publishes over NATS.
    Nats {
        /// The subject is this, a dot and the topic.
        subject_prefix: String,
    },
    /// In a way that is not known here.
    #[default]
    Other,
}

/// The entry as it is filed.
#[derive(Deserialize)]
pub(super) struct ChannelEntry<'a> {
    instance_id: u64,
    topic: Option<Name>,
    #[serde(borrow)]
    transport: Option<&'a RawValue>,
}

impl EventChannel {
    pub(super) fn of(key: &EntryKey<'_>, entry: ChannelEntry<'_>) -> Self {
        let topic = entry.topic.map_or_else(|| key.topic.to_owned(), |Name(topic)| topic);
        let transport = or_default(entry.transport);
        let by = match transport {
            ChannelTransport::Zmq { .. } | ChannelTransport::ZmqBroker { .. } => Transport::Zmq,
            ChannelTransport::Nats { .. } | ChannelTransport::Other => Transport::Core,
        };
        Self { publisher_id: entry.instance_id, subject: key.subject(&topic, by), topic, transport }
    }
}

/// `{"kind":"Zmq","config":{"endpoint":"tcp://…"}}` and its like. The fields of the kinds have different names, so all are
/// read and the kind decides which count.
impl<'de> Deserialize<'de> for ChannelTransport {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            kind: String,
            #[serde(default)]
            config: Config,
        }
        #[derive(Deserialize, Default)]
        struct Config {
            endpoint: Option<Name>,
            #[serde(default)]
            xpub_endpoints: Bounded<Name, MAX_BROKERS>,
            subject_prefix: Option<Name>,
        }
        let Fields { kind, config } = Fields::deserialize(from)?;
        Ok(match (&*kind, config) {
            ("Zmq", Config { endpoint: Some(Name(endpoint)), .. }) => Self::Zmq { endpoint },
            ("ZmqBroker", Config { xpub_endpoints: Bounded(xpub), .. }) if !xpub.is_empty() => {
                Self::ZmqBroker { xpub: xpub.into_iter().map(|Name(address)| address).collect() }
            }
            ("Nats", Config { subject_prefix: Some(Name(subject_prefix)), .. }) => {
                Self::Nats { subject_prefix }
            }
            _ => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DiscoveryEntry, decode};
    use super::*;
    use radixscope_model::record::Topic;

    fn channel(key: &str, value: &str) -> EventChannel {
        match decode(key, value.as_bytes()) {
            Ok(DiscoveryEntry::EventChannel(channel)) => channel,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_socket_of_its_own_and_a_subject() {
        let zmq = channel(
            "v1/event_channels/namespace/dynamo/component/backend/endpoint/generate/topic/kv-events/6dba096152088",
            r#"{"type":"EventChannel","scope":{"kind":"endpoint","endpoint":{"namespace":"dynamo","component":"backend","name":"generate"}},"topic":"kv-events","instance_id":1930332619481224,"transport":{"kind":"Zmq","config":{"endpoint":"tcp://127.0.0.1:46773"}}}"#,
        );
        assert_eq!(zmq.transport, ChannelTransport::Zmq { endpoint: "tcp://127.0.0.1:46773".into() });
        assert_eq!((zmq.publisher_id, zmq.subject.topic), (1_930_332_619_481_224, Topic::KvEvents));
        let Subject { namespace, component, endpoint, transport, .. } = zmq.subject;
        assert_eq!((&*namespace, &*component, &*endpoint), ("dynamo", "backend", "generate"));
        assert_eq!(transport, Transport::Zmq);
        let nats = channel(
            "v1/event_channels/dynamo//kv_metrics/6a6ca1fa1fafec06",
            r#"{"type":"EventChannel","namespace":"dynamo","component":"","topic":"kv_metrics","instance_id":7668682361150630918,"transport":{"kind":"Nats","config":{"subject_prefix":"namespace.dynamo"}}}"#,
        );
        assert_eq!(nats.transport, ChannelTransport::Nats { subject_prefix: "namespace.dynamo".into() });
        assert_eq!((nats.subject.topic, nats.subject.transport), (Topic::KvMetrics, Transport::Core));
    }

    #[test]
    fn a_broker_and_what_is_not_known() {
        let of = |transport: &str| {
            channel(
                "v1/event_channels/namespace/d/component/zmq_broker/topic/broker/1",
                &format!(
                    r#"{{"transport":{transport},"instance_id":1,"topic":"broker","type":"EventChannel"}}"#
                ),
            )
            .transport
        };
        assert_eq!(
            of(
                r#"{"kind":"ZmqBroker","config":{"xsub_endpoints":["tcp://b:1"],"xpub_endpoints":["tcp://b:2","tcp://c:2"]}}"#
            ),
            ChannelTransport::ZmqBroker { xpub: vec!["tcp://b:2".into(), "tcp://c:2".into()] }
        );
        let many =
            format!(r#"{{"kind":"ZmqBroker","config":{{"xpub_endpoints":[{}"b"]}}}}"#, r#""a","#.repeat(16));
        for unknown in ["7", "{}", r#"{"kind":"Zmq"}"#, r#"{"kind":"Quic","config":{"endpoint":"x"}}"#, &many]
        {
            assert_eq!(of(unknown), ChannelTransport::Other, "{unknown}");
        }
    }
}
