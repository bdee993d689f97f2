//! Discovery in Kubernetes: the entries in the `spec` of a custom resource `DynamoWorkerMetadata` (reference §8.1). Finds where
//! entries begin and end; what they say is read by [`decode`](super::decode()). How the API is spoken to is no concern here.

use std::fmt;

use radixscope_model::record::Topic;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::MAX_ENTRIES;
use crate::envelope::Format;
use crate::error::{DecodeError, Reason};
use crate::typed::{self, too_large};

/// Longest key of an entry, in bytes. Dynamo's have about a hundred.
const MAX_KEY_BYTES: usize = 4_096;

/// What a process registered.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct WorkerMetadata<'a> {
    /// The process, as its endpoints name it.
    pub instance_id: Option<u64>,
    /// Keys as in etcd, and the JSON of each value.
    pub entries: Vec<(String, &'a str)>,
}

/// Reads what the `spec` of a `DynamoWorkerMetadata` holds.
///
/// # Errors
/// The first thing that was not understood; also a resource without data, which Dynamo writes for a moment.
pub fn worker_metadata(spec: &str) -> Result<WorkerMetadata<'_>, DecodeError> {
    let spec: Option<Spec<'_>> = typed::decode(Topic::Discovery.as_str(), spec.as_bytes(), Format::Json)?;
    let Some(data) = spec.and_then(|spec| spec.data) else {
        return Err(DecodeError::new(Reason::MissingField, "discovery: spec.data is missing"));
    };
    let mut read = WorkerMetadata::default();
    // Each map with the kind that the keys of its entries begin with in etcd.
    for (kind, entries) in [
        ("instances", data.endpoints),
        ("mdc", data.model_cards),
        ("event_channels", data.event_channels),
        ("event_sources", data.event_sources),
    ] {
        for (path, value) in entries.unwrap_or_default().0 {
            if read.instance_id.is_none() && matches!(kind, "instances" | "mdc") {
                read.instance_id = instance_id(value);
            }
            read.entries.push((format!("v1/{kind}/{path}"), value));
        }
    }
    Ok(read)
}

fn instance_id(entry: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Entry {
        instance_id: u64,
    }
    serde_json::from_str(entry).ok().map(|Entry { instance_id }| instance_id)
}

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    endpoints: Option<Entries<'a>>,
    #[serde(borrow)]
    model_cards: Option<Entries<'a>>,
    #[serde(borrow)]
    event_channels: Option<Entries<'a>>,
    #[serde(borrow)]
    event_sources: Option<Entries<'a>>,
}

/// A map of entries, in its order.
#[derive(Default)]
struct Entries<'a>(Vec<(String, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(EntriesVisitor).map(Self)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Vec<(String, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            if entries.len() == MAX_ENTRIES {
                return Err(too_large("more than 40,000 entries"));
            }
            if key.len() > MAX_KEY_BYTES {
                return Err(too_large("a key of more than 4,096 bytes"));
            }
            entries.push((key, value.get()));
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
