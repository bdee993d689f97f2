//! Dynamo's standalone KV indexer (`python -m dynamo.indexer`) and its selection service, which has an index of its own: the list of
//! workers (`GET /workers`), the blocks that it holds of each (`GET /dump`), and what a selection service has reserved on each
//! (`GET /loads`). Seen with the indexer of 1.6.1 and 1.7.0.dev20261026, which answer alike, and the selection service of 1.6.1.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::envelope::Format;
use super::error::DecodeError;
use super::kv_event::{KvData, KvEvents};
use super::typed::{self, Bounded, Text};
use super::wire::{Fault, InField, Json, Wire, once, required};
use radixscope_model::id::{BlockHash, Worker, WorkerId};
use radixscope_model::record::{IndexedLoad, Topic};

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
    /// Where the engine sends recent batches again; empty: not reported.
    pub replay: String,
    /// Name of its model; empty: not reported.
    pub model: String,
    /// Group of its model's workers among which requests are routed; empty: not reported.
    pub group: String,
}

/// What an indexer knows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index {
    /// The ranks that it lists.
    pub listeners: BTreeMap<Worker, Listener>,
    /// Names of the blocks in device memory, sorted, each once.
    pub blocks: BTreeMap<Worker, Vec<BlockHash>>,
    /// What a selection service has reserved; empty: it is none.
    pub loads: BTreeMap<Worker, IndexedLoad>,
}

/// The selection service has other names for the same.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(alias = "worker_id")]
    instance_id: u64,
    #[serde(alias = "lifecycle")]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    kv_events_endpoint: Option<Text<'a>>,
    #[serde(borrow)]
    replay_endpoint: Option<Text<'a>>,
    #[serde(borrow)]
    model_name: Option<Text<'a>>,
    #[serde(borrow)]
    routing_group: Option<Text<'a>>,
    data_parallel_start_rank: Option<u32>,
    #[serde(borrow, default, alias = "kv_events_endpoints")]
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

/// The loads of a model's workers.
#[derive(Deserialize)]
struct ModelLoads {
    loads: Bounded<Load, MAX_WORKERS>,
}

/// What would run on a rank with an empty prompt more: what runs there.
#[derive(Deserialize)]
struct Load {
    worker_id: u64,
    #[serde(default)]
    dp_rank: u32,
    potential_prefill_tokens: u64,
    potential_decode_blocks: u64,
    #[serde(default)]
    active_requests: u64,
}

/// Reads the bodies of `GET /workers`, `GET /dump` and, of a selection service, `GET /loads`.
///
/// # Errors
/// The first thing that was not understood: of half an index nothing follows.
pub fn decode(workers: &[u8], dump: &[u8], loads: Option<&[u8]>) -> Result<Index, DecodeError> {
    let topic = Topic::Indexer.as_str();
    let Bounded(entries): Bounded<Entry<'_>, MAX_WORKERS> = typed::decode(topic, workers, Format::Json)?;
    let mut index = Index::default();
    for entry in &entries {
        entry.read(&mut index.listeners);
    }
    index.blocks = blocks(&mut Json::new(dump)).map_err(|fault| fault.into_error(topic))?;
    if let Some(loads) = loads {
        let Bounded(models): Bounded<ModelLoads, MAX_WORKERS> = typed::decode(topic, loads, Format::Json)?;
        for of in models.into_iter().flat_map(|ModelLoads { loads: Bounded(loads) }| loads) {
            let rank = Worker { id: WorkerId(of.worker_id), dp_rank: of.dp_rank };
            let load = IndexedLoad {
                prefill_tokens: of.potential_prefill_tokens,
                decode_blocks: of.potential_decode_blocks,
                requests: of.active_requests,
            };
            if index.loads.len() < MAX_WORKERS {
                index.loads.insert(rank, load);
            }
        }
    }
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
            ranks.push(self.data_parallel_start_rank.unwrap_or(0));
        }
        // The addresses of the first rank.
        let first = self.kv_events_endpoint.as_ref().filter(|_| ranks.len() == 1);
        let replay = self.replay_endpoint.as_ref().filter(|_| ranks.len() == 1);
        for dp_rank in ranks.into_iter().take(MAX_WORKERS.saturating_sub(to.len())) {
            let key = dp_rank.to_string();
            let listener = self.listeners.get(key.as_str());
            let endpoint =
                listener.and_then(|of| of.endpoint.as_ref()).or(self.endpoints.get(key.as_str())).or(first);
            let status = listener.and_then(|of| of.status.as_ref()).map_or(own_status, |Text(status)| status);
            let listener = Listener {
                endpoint: kept(endpoint),
                status: kept_text(status),
                replay: kept(replay),
                model: kept(self.model_name.as_ref()),
                group: kept(self.routing_group.as_ref()),
            };
            to.insert(Worker { id: WorkerId(self.instance_id), dp_rank }, listener);
        }
    }
}

fn kept(text: Option<&Text<'_>>) -> String {
    kept_text(text.map_or("", |Text(text)| text))
}

fn kept_text(text: &str) -> String {
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
        let index = decode(WORKERS, DUMP, None).unwrap();
        let listener = |port: u16| Listener {
            endpoint: format!("tcp://127.0.0.1:{port}"),
            status: "active".to_owned(),
            replay: String::new(),
            model: "default".to_owned(),
            group: "default".to_owned(),
        };
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
        assert_eq!(decode(b"[]", b"{}", None), Ok(Index::default()));
        let bare = br#"[{"instance_id":7}]"#;
        assert_eq!(
            decode(bare, b"{}", None).unwrap().listeners,
            [(worker(7, 0), Listener::default())].into()
        );
        let long = format!(r#"[{{"instance_id":7,"status":"{}"}}]"#, "é".repeat(400));
        let listeners = decode(long.as_bytes(), b"{}", None).unwrap().listeners;
        assert_eq!(listeners[&worker(7, 0)].status.len(), MAX_TEXT_BYTES);
    }

    #[test]
    fn a_selection_service_is_read_as_an_indexer_and_has_loads() {
        const WORKERS: &[u8] = include_bytes!("../tests/fixtures/selection_service/workers.json");
        const DUMP: &[u8] = include_bytes!("../tests/fixtures/selection_service/dump.json");
        const LOADS: &[u8] = include_bytes!("../tests/fixtures/selection_service/loads.json");
        let index = decode(WORKERS, DUMP, Some(LOADS)).unwrap();
        let listener = |port: u16| Listener {
            endpoint: format!("tcp://127.0.0.1:{port}"),
            status: "schedulable".to_owned(),
            replay: String::new(),
            model: "m".to_owned(),
            group: "default".to_owned(),
        };
        assert_eq!(index.listeners, [(worker(1, 0), listener(8091)), (worker(2, 0), listener(8092))].into());
        let held: Vec<_> = index.blocks.iter().map(|(&worker, names)| (worker, names.len())).collect();
        assert_eq!(held, [(worker(1, 0), 69), (worker(2, 0), 70)]);
        let busy = IndexedLoad { prefill_tokens: 240, decode_blocks: 14, requests: 3 };
        assert_eq!(index.loads, [(worker(1, 0), busy), (worker(2, 0), IndexedLoad::default())].into());
        assert_eq!(decode(WORKERS, DUMP, Some(b"{}")).unwrap_err().reason, Reason::WrongType);
        assert_eq!(decode(WORKERS, DUMP, Some(&LOADS[..99])).unwrap_err().reason, Reason::Truncated);
    }

    #[test]
    fn half_an_index_is_no_index() {
        let reason = |workers: &[u8], dump: &[u8]| decode(workers, dump, None).unwrap_err().reason;
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
