//! Dynamo's standalone KV indexer (`python -m dynamo.indexer`): its list of workers (`GET /workers`) and the blocks that it holds of
//! each (`GET /dump`). Seen with 1.6.1 and 1.7.0.dev20261026, which answer alike.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::envelope::Format;
use super::error::DecodeError;
use super::kv_event::{KvData, KvEvents};
use super::typed::{self, Bounded, Text};
use super::wire::{Fault, InField, Json, Wire, once, required};
use radixscope_model::id::{BlockHash, Worker, WorkerId};
use radixscope_model::record::Topic;

/// Most workers that are read of a list.
pub const MAX_WORKERS: usize = 16_384;
/// Longest address or status that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// A worker's rank as an indexer lists it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listener {
    /// Where the indexer listens to it, `tcp://HOST:PORT`; empty: not reported.
    pub endpoint: String,
    /// How that goes: `active`, `pending`, `paused`, `failed`; empty: not reported.
    pub status: String,
}

/// What an indexer knows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index {
    /// The ranks that it lists.
    pub listeners: BTreeMap<Worker, Listener>,
    /// Names of the blocks in device memory, sorted, each once.
    pub blocks: BTreeMap<Worker, Vec<BlockHash>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    instance_id: u64,
    status: Option<Text<'a>>,
    #[serde(borrow, default)]
    endpoints: BTreeMap<Cow<'a, str>, Text<'a>>,
    #[serde(borrow, default)]
    listeners: BTreeMap<Cow<'a, str>, EntryListener<'a>>,
}

#[derive(Deserialize)]
struct EntryListener<'a> {
    #[serde(borrow)]
    endpoint: Option<Text<'a>>,
    status: Option<Text<'a>>,
}

/// Reads the bodies of `GET /workers` and `GET /dump`.
///
/// # Errors
/// The first thing that was not understood: of half an index nothing follows.
pub fn decode(workers: &[u8], dump: &[u8]) -> Result<Index, DecodeError> {
    let topic = Topic::Indexer.as_str();
    let Bounded(entries): Bounded<Entry<'_>, MAX_WORKERS> = typed::decode(topic, workers, Format::Json)?;
    let mut index = Index::default();
    for entry in &entries {
        entry.read(&mut index.listeners);
    }
    index.blocks = blocks(&mut Json::new(dump)).map_err(|fault| fault.into_error(topic))?;
    Ok(index)
}

impl Entry<'_> {
    /// Its ranks. Of one without any the rank 0 is listed, so that it does not go missing.
    fn read(&self, to: &mut BTreeMap<Worker, Listener>) {
        let own_status = self.status.as_ref().map_or("", |Text(status)| status);
        let ranks = self.endpoints.keys().chain(self.listeners.keys());
        let mut ranks: Vec<u32> = ranks.filter_map(|rank| rank.parse().ok()).collect();
        ranks.sort_unstable();
        ranks.dedup();
        if ranks.is_empty() {
            ranks.push(0);
        }
        for dp_rank in ranks.into_iter().take(MAX_WORKERS.saturating_sub(to.len())) {
            let key = dp_rank.to_string();
            let listener = self.listeners.get(key.as_str());
            let endpoint = listener.and_then(|of| of.endpoint.as_ref()).or(self.endpoints.get(key.as_str()));
            let status = listener.and_then(|of| of.status.as_ref()).map_or(own_status, |Text(status)| status);
            let listener = Listener {
                endpoint: kept(endpoint.map_or("", |Text(endpoint)| endpoint)),
                status: kept(status),
            };
            to.insert(Worker { id: WorkerId(self.instance_id), dp_rank }, listener);
        }
    }
}

fn kept(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

/// `{"MODEL:GROUP": {"block_size": 16, "events": […]}, …}`: blocks of all groups, by worker.
fn blocks<'a>(wire: &mut Json<'a>) -> Result<BTreeMap<Worker, Vec<BlockHash>>, Fault> {
    let mut events = KvEvents::default();
    let mut left = wire.map()?;
    while wire.next_key(&mut left)?.is_some() {
        group(wire, &mut events)?;
    }
    wire.end()?;
    let mut blocks: BTreeMap<Worker, Vec<BlockHash>> = BTreeMap::new();
    for event in events.events.iter().filter(|event| event.is_in_device_memory()) {
        if let KvData::Stored { blocks: stored, .. } = &event.data {
            let names = events.blocks_of(stored).iter().map(|block| block.block_hash);
            blocks.entry(event.worker).or_default().extend(names);
        }
    }
    for names in blocks.values_mut() {
        names.sort_unstable();
        names.dedup();
    }
    Ok(blocks)
}

fn group<'a>(wire: &mut Json<'a>, events: &mut KvEvents) -> Result<(), Fault> {
    let start = wire.at();
    let mut has_events = None;
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"events" => once(&mut has_events, events.read_whole(wire).field("events")?, "events", at)?,
            _ => wire.skip()?,
        }
    }
    required(has_events, "events", start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    const WORKERS: &[u8] = include_bytes!("../tests/fixtures/indexer/workers.json");
    const DUMP: &[u8] = include_bytes!("../tests/fixtures/indexer/dump.json");

    fn worker(id: u64, dp_rank: u32) -> Worker {
        Worker { id: WorkerId(id), dp_rank }
    }

    #[test]
    fn an_index_is_read_worker_by_worker() {
        let index = decode(WORKERS, DUMP).unwrap();
        let listener =
            |port: u16| Listener { endpoint: format!("tcp://127.0.0.1:{port}"), status: "active".to_owned() };
        let expected = BTreeMap::from([(worker(1, 0), listener(8091)), (worker(2, 0), listener(8092))]);
        assert_eq!(index.listeners, expected);
        let held: Vec<_> = index.blocks.iter().map(|(&worker, names)| (worker, names.len())).collect();
        // Counted by another program.
        assert_eq!(held, [(worker(1, 0), 69), (worker(2, 0), 70)]);
        assert!(index.blocks[&worker(1, 0)].contains(&BlockHash(18_261_575_695_418_107_162)));
        let names = &index.blocks[&worker(1, 0)];
        assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn an_indexer_without_workers_holds_nothing() {
        assert_eq!(decode(b"[]", b"{}"), Ok(Index::default()));
        let bare = br#"[{"instance_id":7}]"#;
        assert_eq!(decode(bare, b"{}").unwrap().listeners, [(worker(7, 0), Listener::default())].into());
        let long = format!(r#"[{{"instance_id":7,"status":"{}"}}]"#, "é".repeat(400));
        let listeners = decode(long.as_bytes(), b"{}").unwrap().listeners;
        assert_eq!(listeners[&worker(7, 0)].status.len(), MAX_TEXT_BYTES);
    }

    #[test]
    fn half_an_index_is_no_index() {
        let reason = |workers: &[u8], dump: &[u8]| decode(workers, dump).unwrap_err().reason;
        assert_eq!(reason(&WORKERS[..WORKERS.len() - 3], DUMP), Reason::Truncated);
        assert_eq!(reason(WORKERS, &DUMP[..DUMP.len() - 3]), Reason::Truncated);
        assert_eq!(reason(b"{}", DUMP), Reason::WrongType);
        assert_eq!(reason(b"[{}]", DUMP), Reason::MissingField);
        assert_eq!(reason(b"[]", br#"{"m:g":{"error":"busy"}}"#), Reason::MissingField);
        assert_eq!(reason(b"[]", br#"{"m:g":{"events":[{}]}}"#), Reason::MissingField);
        let many = vec![r#"{"instance_id":1}"#; MAX_WORKERS + 1].join(",");
        assert_eq!(reason(format!("[{many}]").as_bytes(), b"{}"), Reason::TooLarge);
    }
}
