//! Dynamo's payloads as owned structs that serde reads: an independent witness of what a message says.

use radixscope_dynamo::envelope::Format;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub fn decode<T: DeserializeOwned>(body: &[u8], format: Format) -> Result<T, String> {
    match format {
        Format::Json => serde_json::from_slice(body).map_err(|error| error.to_string()),
        Format::MsgPack => rmp_serde::from_slice(body).map_err(|error| error.to_string()),
    }
}

/// One event up to 1.3, an array from 1.4 on.
#[derive(Debug)]
pub struct Payload(pub Vec<RouterEvent>);

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = Payload;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an event or an array of them")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Payload, A::Error> {
                let event = RouterEvent::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Payload(vec![event]))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Payload, A::Error> {
                let mut events = Vec::new();
                while let Some(event) = seq.next_element()? {
                    events.push(event);
                }
                Ok(Payload(events))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Deserialize, Debug)]
pub struct RouterEvent {
    pub worker_id: u64,
    #[serde(default)]
    pub storage_tier: Tier,
    pub event: CacheEvent,
}

#[derive(Deserialize, Debug, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    #[default]
    Device,
    HostPinned,
    Disk,
    External,
}

#[derive(Deserialize, Debug)]
pub struct CacheEvent {
    pub event_id: u64,
    pub data: Data,
    #[serde(default)]
    pub dp_rank: u32,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    Stored(Stored),
    Removed(Removed),
    Cleared,
}

#[derive(Deserialize, Debug)]
pub struct Stored {
    pub parent_hash: Option<u64>,
    #[serde(default)]
    pub start_position: Option<u32>,
    pub blocks: Vec<Block>,
}

#[derive(Deserialize, Debug)]
pub struct Block {
    pub block_hash: u64,
    pub tokens_hash: u64,
    #[serde(default)]
    #[expect(dead_code, reason = "Dynamo's router reads it as well, so the comparison has to")]
    pub mm_extra_info: Option<MmExtraInfo>,
}

#[derive(Deserialize, Debug)]
pub struct MmExtraInfo {
    #[expect(dead_code, reason = "see above")]
    pub mm_objects: Vec<MmObject>,
}

#[derive(Deserialize, Debug)]
pub struct MmObject {
    #[expect(dead_code, reason = "see above")]
    pub mm_hash: u64,
}

#[derive(Deserialize, Debug)]
pub struct Removed {
    pub block_hashes: Vec<u64>,
}

#[derive(Deserialize, Debug)]
pub struct HitRate {
    pub worker_id: u64,
    #[serde(default)]
    pub dp_rank: u32,
    pub isl_blocks: u64,
    pub overlap_blocks: u32,
}

#[derive(Deserialize, Debug)]
pub struct Load {
    pub worker_id: u64,
    #[serde(default)]
    pub dp_rank: u32,
    #[serde(default)]
    pub active_decode_blocks: Option<u64>,
    #[serde(default)]
    pub active_prefill_tokens: Option<u64>,
    #[serde(default)]
    pub kv_used_blocks: Option<u64>,
}
