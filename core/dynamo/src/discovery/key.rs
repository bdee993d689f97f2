//! Keys of discovery: `v1/{kind}/…`, with ids in hexadecimal (reference §8.1).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::subject::{Subject, Transport};
use radixscope_model::record::Topic;

/// A key as etcd has it: the file store escapes what is no letter or digit.
pub fn plain_key(key: &str) -> Cow<'_, str> {
    if key.contains('%') { percent_decode_str(key).decode_utf8_lossy() } else { Cow::Borrowed(key) }
}

/// The Dynamo namespace that a plain key is of. `None`: it is of none of the kinds that are read, or names none.
pub fn namespace_of(key: &str) -> Option<&str> {
    EntryKey::parse(key).map(|key| key.namespace).filter(|namespace| !namespace.is_empty())
}

/// The contents of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct EntryKey<'k> {
    /// "" if the key names none.
    pub(super) namespace: &'k str,
    /// "" if the key names none.
    pub(super) component: &'k str,
    /// "" if the key names none.
    pub(super) endpoint: &'k str,
    /// Of an event channel or source; "" elsewhere.
    pub(super) topic: &'k str,
}

impl<'k> EntryKey<'k> {
    /// `None`: it is of none of Dynamo's kinds of entries that are read here.
    pub(super) fn parse(key: &'k str) -> Option<Self> {
        let (kind, rest) = key.strip_prefix("v1/")?.split_once('/')?;
        match kind {
            "instances" | "mdc" => {
                let mut parts = rest.split('/');
                let mut next = || parts.next().unwrap_or_default();
                Some(Self { namespace: next(), component: next(), endpoint: next(), topic: "" })
            }
            "event_channels" | "event_sources" => Some(Self::of_events(rest)),
            _ => None,
        }
    }

    /// Up to 1.3 `{ns}/{comp or empty}/{topic}/{id}`, later `namespace/{ns}[/component/{c}[/endpoint/{e}]]/topic/{topic}/{id}`.
    fn of_events(rest: &'k str) -> Self {
        let parts = rest.split('/');
        if parts.clone().count() == 4 {
            let mut parts = parts;
            let mut next = || parts.next().unwrap_or_default();
            return Self { namespace: next(), component: next(), endpoint: "", topic: next() };
        }
        let mut parts = parts;
        let mut key = Self::default();
        while let (Some(level), Some(name)) = (parts.next(), parts.next()) {
            match level {
                "namespace" => key.namespace = name,
                "component" => key.component = name,
                "endpoint" => key.endpoint = name,
                "topic" => key.topic = name,
                _ => {}
            }
        }
        key
    }

    /// What messages of an event channel or source are about.
    pub(super) fn subject(&self, topic: &str, transport: Transport) -> Subject {
        let topic = match topic {
            "kv-events" => Topic::KvEvents,
            "kv-hit-rate" => Topic::KvHitRate,
            "kv_metrics" => Topic::KvMetrics,
            "active_sequences_events" => Topic::ActiveSequences,
            "session_affinity_events" => Topic::SessionAffinity,
            _ => Topic::Other,
        };
        let [namespace, component, endpoint] = [self.namespace, self.component, self.endpoint].map(Box::from);
        Subject { topic, namespace, component, endpoint, transport }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_version_are_taken_apart() {
        for (key, expected) in [
            ("v1/instances/dynamo/backend/generate/6a6c", Some(["dynamo", "backend", "generate", ""])),
            ("v1/mdc/dynamo/backend/generate/6a6c/lora", Some(["dynamo", "backend", "generate", ""])),
            ("v1/event_channels/dynamo//kv_metrics/6a6c", Some(["dynamo", "", "", "kv_metrics"])),
            ("v1/event_channels/dynamo/backend/kv-events/6a6c", Some(["dynamo", "backend", "", "kv-events"])),
            (
                "v1/event_sources/namespace/d/component/b/endpoint/generate/topic/kv-events/1e75",
                Some(["d", "b", "generate", "kv-events"]),
            ),
            ("v1/event_channels/namespace/d/topic/kv_metrics/1e75", Some(["d", "", "", "kv_metrics"])),
            ("v1/instances/", Some(["", "", "", ""])),
            ("v1/locks/dynamo", None),
            ("v2/mdc/dynamo", None),
            ("", None),
        ] {
            let read =
                EntryKey::parse(key).map(|key| [key.namespace, key.component, key.endpoint, key.topic]);
            assert_eq!(read, expected, "{key}");
        }
    }

    #[test]
    fn a_key_of_the_file_store_reads_as_in_etcd() {
        assert_eq!(
            plain_key("v1/event_channels/dynamo%2F%2Fkv%5Fmetrics%2F7078"),
            "v1/event_channels/dynamo//kv_metrics/7078"
        );
        assert_eq!(plain_key("v1/mdc/%ff%2"), "v1/mdc/\u{fffd}%2");
    }
}
