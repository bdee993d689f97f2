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

pub(crate) use instance::instance;

use crate::error::{DecodeError, Reason};
use crate::wire::{Fault, InField, Json, Wire, once, required};
use key::Key;
use radixscope_model::record::Topic;

/// Most entries of a deployment that are retained: ten for each of the 4,096 workers that the state can hold.
pub const MAX_ENTRIES: usize = 40_000;

/// Longest name or address that is read of an entry, in bytes. Dynamo's are below 200.
const MAX_NAME_BYTES: usize = 1_024;

/// An entry of discovery.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    let Some(key) = Key::parse(&key) else { return Ok(DiscoveryEntry::Other) };
    read(&key, value).map_err(|fault| fault.into_error(Topic::Discovery.as_str()))
}

fn read(key: &Key<'_>, value: &[u8]) -> Result<DiscoveryEntry, Fault> {
    // The type may come after what it decides on, so it is read first.
    let wire = &mut Json::new(value);
    Ok(match entry_type(&mut Json::new(value))? {
        b"Endpoint" => DiscoveryEntry::Instance(instance(wire)?),
        b"Model" => DiscoveryEntry::ModelCard(Box::new(model_card::card_value(wire)?)),
        b"EventChannel" => DiscoveryEntry::EventChannel(event_channel::event_channel(key, wire)?),
        b"EventSource" => DiscoveryEntry::EventSource(event_source::event_source(key, wire)?),
        _ => DiscoveryEntry::Other,
    })
}

/// The `type` of an entry.
fn entry_type<'a, W: Wire<'a>>(wire: &mut W) -> Result<&'a [u8], Fault> {
    let mut kind = None;
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"type" => once(&mut kind, wire.word().field("type")?, "type", at)?,
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    required(kind, "type", 0)
}

/// A name or an address.
fn name<'a, W: Wire<'a>>(wire: &mut W, field: &'static str) -> Result<String, Fault> {
    let at = wire.at();
    let name = wire.text().field(field)?;
    if name.len() > MAX_NAME_BYTES {
        return Err(Fault::new(Reason::TooLarge, "a name of more than 1,024 bytes", at)).field(field);
    }
    Ok(name.into_owned())
}

/// What `read` reads, or the default for a form that is not known: it costs no entry.
fn or_nothing<'a, W: Wire<'a>, T: Default>(
    wire: &mut W,
    read: impl FnOnce(&mut W) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mark = wire.mark();
    read(wire).or_else(|_| {
        wire.rewind(mark);
        wire.skip().map(|()| T::default())
    })
}
