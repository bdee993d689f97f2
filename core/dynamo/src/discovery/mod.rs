//! Entries of discovery: instances of endpoints, model cards, event channels and event sources (reference §8). How
//! discovery is reached is no concern here: etcd, files and custom resources hold the same entries.

mod event_channel;
mod event_source;
mod instance;
mod key;
pub mod kubernetes;
mod model_card;
pub mod pieces;

pub use event_channel::{ChannelTransport, EventChannel, MAX_BROKERS};
pub use event_source::EventSource;
pub use instance::Instance;
pub use key::{namespace_of, plain_key};
pub use model_card::{ModelCard, RuntimeConfig};

use std::borrow::Cow;

use crate::envelope::Format;
use crate::error::DecodeError;
use crate::typed::{self, Text};
use key::EntryKey;
use radixscope_model::record::Topic;
use serde::{Deserialize, Deserializer};

/// Most entries of a deployment that are retained: ten for each of the 4,096 workers that the state can hold.
pub const MAX_ENTRIES: usize = 40_000;

/// Longest name or address that is read of an entry, in bytes. Dynamo's are below 200.
const MAX_NAME_BYTES: usize = 1_024;

/// An entry of discovery.
#[derive(Clone, PartialEq, Debug)]
pub enum DiscoveryEntry {
    /// An endpoint of a process.
    Instance(Instance),
    /// What a worker serves.
    ModelCard(Box<ModelCard>),
    /// How to subscribe to a publisher of events (≥ 0.9).
    EventChannel(EventChannel),
    /// Whose KV events a publisher sends, and who answers for those that were missed (≥ 1.4).
    EventSource(EventSource),
    /// What is not needed here.
    Other,
}

/// Reads an entry. What is filed under another kind of key than those of Dynamo's four kinds is not opened.
///
/// # Errors
/// The first thing that was not understood.
pub fn decode(key: &str, value: &[u8]) -> Result<DiscoveryEntry, DecodeError> {
    let key = plain_key(key);
    let Some(key) = EntryKey::parse(&key) else { return Ok(DiscoveryEntry::Other) };
    read(&key, value)
}

fn read(key: &EntryKey<'_>, value: &[u8]) -> Result<DiscoveryEntry, DecodeError> {
    // The type may come after what it decides on, so it is read first.
    Ok(match &*entry_type(value)? {
        "Endpoint" => DiscoveryEntry::Instance(read_value(value)?),
        "Model" => DiscoveryEntry::ModelCard(Box::new(read_value(value)?)),
        "EventChannel" => DiscoveryEntry::EventChannel(EventChannel::of(key, read_value(value)?)),
        "EventSource" => DiscoveryEntry::EventSource(EventSource::of(key, read_value(value)?)),
        _ => DiscoveryEntry::Other,
    })
}

/// A value of discovery as the type that it names.
fn read_value<'a, T: Deserialize<'a>>(value: &'a [u8]) -> Result<T, DecodeError> {
    typed::decode(Topic::Discovery.as_str(), value, Format::Json)
}

/// The `type` of an entry.
fn entry_type(value: &[u8]) -> Result<Cow<'_, str>, DecodeError> {
    #[derive(Deserialize)]
    struct Entry<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    read_value::<Entry<'_>>(value).map(|entry| entry.kind)
}

/// A name or an address, of at most [`MAX_NAME_BYTES`].
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Text(name) = Text::deserialize(from)?;
        if name.len() > MAX_NAME_BYTES {
            return Err(typed::too_large("a name of more than 1,024 bytes"));
        }
        Ok(Self(name.into_owned()))
    }
}
