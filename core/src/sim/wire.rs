//! Says what happens in the simulated cluster in Dynamo 0.9's own bytes (reference §2, §3, §8.2): the same struct
//! shapes, serialised by the same libraries. Must not know why anything happens.

use serde::ser::{Serialize, Serializer};

use super::config::{Config, EventLine};
use crate::id::{BlockHash, Millis};
use crate::record::Block;

/// One message of the simulated cluster, as a NATS subscriber or an etcd watcher would get it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireMessage<'a> {
    /// When it was published.
    pub at_ms: Millis,
    /// NATS subject; for a model card the discovery key (`v1/mdc/…`).
    pub subject: &'a str,
    /// Body; for a model card the discovery value.
    pub payload: &'a [u8],
}

/// Who hears the messages.
pub(super) type Out<'a> = &'a mut dyn FnMut(WireMessage<'_>);

/// Numbers the messages of one publisher on one topic.
#[derive(Clone, Copy, Default, Debug)]
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        let now = self.0;
        self.0 += 1;
        now
    }
}

#[derive(Debug)]
struct WorkerLine {
    id: u64,
    event_id: Sequence,
    events: Sequence,
    metrics: Sequence,
}

/// The publishers of all workers and of the router.
#[derive(Debug)]
pub(super) struct Wire {
    line: EventLine,
    workers: Vec<WorkerLine>,
    router_id: u64,
    router_hits: Sequence,
    router_metrics: Sequence,
    events_subject: String,
    hits_subject: String,
    metrics_subject: String,
    payload: Vec<u8>,
    message: Vec<u8>,
}

const KV_EVENTS: &str = "kv-events";
const KV_HIT_RATE: &str = "kv-hit-rate";
const KV_METRICS: &str = "kv_metrics";

impl Wire {
    pub(super) fn new(config: &Config) -> Self {
        let Config { namespace, component, .. } = config;
        let events_subject = match config.events {
            EventLine::JetStream => format!("{}.{KV_EVENTS}", stream_name(namespace, component)),
            EventLine::LocalIndexer => format!("namespace.{namespace}.component.{component}.{KV_EVENTS}"),
        };
        let (workers, router_id) = instance_ids(config);
        let line = |&id: &u64| WorkerLine {
            id,
            event_id: Sequence::default(),
            events: Sequence::default(),
            metrics: Sequence::default(),
        };
        Self {
            line: config.events,
            workers: workers.iter().map(line).collect(),
            router_id,
            router_hits: Sequence::default(),
            router_metrics: Sequence::default(),
            events_subject,
            hits_subject: format!("namespace.{namespace}.{KV_HIT_RATE}"),
            metrics_subject: format!("namespace.{namespace}.{KV_METRICS}"),
            payload: Vec::new(),
            message: Vec::new(),
        }
    }

    /// Discovery instance id of a worker.
    pub(super) fn worker_id(&self, worker: u16) -> u64 {
        self.workers[usize::from(worker)].id
    }

    /// Discovery instance id of the frontend that routes.
    pub(super) fn router_id(&self) -> u64 {
        self.router_id
    }

    /// The model card of each worker, as discovery keys and values.
    pub(super) fn model_cards(&mut self, config: &Config, at_ms: Millis, out: Out<'_>) {
        for worker in &self.workers {
            let card = ModelEntry::new(config, worker.id);
            self.payload.clear();
            written(serde_json::to_writer(&mut self.payload, &card));
            let (namespace, component) = (&config.namespace, &config.component);
            let key = format!("v1/mdc/{namespace}/{component}/generate/{:x}", worker.id);
            out(WireMessage { at_ms, subject: &key, payload: &self.payload });
        }
    }

    /// A worker stored `blocks` below `parent`.
    pub(super) fn stored(
        &mut self,
        at_ms: Millis,
        worker: u16,
        parent: Option<BlockHash>,
        blocks: &[Block],
        out: Out<'_>,
    ) {
        let parent_hash = parent.map(|p| p.0);
        self.kv_event(
            at_ms,
            worker,
            KvCacheEventData::Stored { parent_hash, blocks: StoredBlocks(blocks) },
            out,
        );
    }

    /// A worker evicted a block.
    pub(super) fn removed(&mut self, at_ms: Millis, worker: u16, hash: BlockHash, out: Out<'_>) {
        self.kv_event(at_ms, worker, KvCacheEventData::Removed { block_hashes: [hash.0] }, out);
    }

    fn kv_event(&mut self, at_ms: Millis, worker: u16, data: KvCacheEventData<'_>, out: Out<'_>) {
        let line = &mut self.workers[usize::from(worker)];
        let event = KvCacheEvent { event_id: line.event_id.next(), data, dp_rank: 0 };
        let event = RouterEvent { worker_id: line.id, event };
        self.payload.clear();
        match self.line {
            EventLine::JetStream => {
                written(serde_json::to_writer(&mut self.payload, &event));
                out(WireMessage { at_ms, subject: &self.events_subject, payload: &self.payload });
            }
            EventLine::LocalIndexer => {
                pack(&mut self.payload, &event);
                let sequence = line.events.next();
                let envelope = Envelope::new(line.id, sequence, at_ms, KV_EVENTS, &self.payload);
                send(&mut self.message, &envelope, &self.events_subject, out);
            }
        }
    }

    /// The router chose a worker.
    pub(super) fn hit_rate(
        &mut self,
        at_ms: Millis,
        worker: u16,
        isl_blocks: u32,
        overlap_blocks: u32,
        out: Out<'_>,
    ) {
        let worker_id = self.worker_id(worker);
        self.payload.clear();
        pack(&mut self.payload, &KvHitRateEvent { worker_id, dp_rank: 0, isl_blocks, overlap_blocks });
        let sequence = self.router_hits.next();
        let envelope = Envelope::new(self.router_id, sequence, at_ms, KV_HIT_RATE, &self.payload);
        send(&mut self.message, &envelope, &self.hits_subject, out);
    }

    /// What the router thinks a worker is doing.
    pub(super) fn router_load(
        &mut self,
        at_ms: Millis,
        worker: u16,
        decode_blocks: u64,
        prefill_tokens: u64,
        out: Out<'_>,
    ) {
        let sequence = self.router_metrics.next();
        self.load(at_ms, (self.router_id, sequence), worker, decode_blocks, Some(prefill_tokens), out);
    }

    /// What a worker's engine uses.
    pub(super) fn worker_load(&mut self, at_ms: Millis, worker: u16, used_blocks: u64, out: Out<'_>) {
        let line = &mut self.workers[usize::from(worker)];
        let publisher = (line.id, line.metrics.next());
        self.load(at_ms, publisher, worker, used_blocks, None, out);
    }

    fn load(
        &mut self,
        at_ms: Millis,
        (publisher_id, sequence): (u64, u64),
        worker: u16,
        active_decode_blocks: u64,
        active_prefill_tokens: Option<u64>,
        out: Out<'_>,
    ) {
        let worker_id = self.worker_id(worker);
        let active_decode_blocks = Some(active_decode_blocks);
        self.payload.clear();
        pack(
            &mut self.payload,
            &ActiveLoad { worker_id, dp_rank: 0, active_decode_blocks, active_prefill_tokens },
        );
        let envelope = Envelope::new(publisher_id, sequence, at_ms, KV_METRICS, &self.payload);
        send(&mut self.message, &envelope, &self.metrics_subject, out);
    }
}

/// Dynamo's name of the JetStream stream of a component (reference §2.1).
fn stream_name(namespace: &str, component: &str) -> String {
    let path = format!("namespace.{namespace}.component.{component}").to_ascii_lowercase();
    let slug: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{slug}-{KV_EVENTS}")
}

/// Ids as etcd hands them out: one lease after the other, far above what a JavaScript number holds.
fn instance_ids(config: &Config) -> (Vec<u64>, u64) {
    const LEASES: u64 = 0x6a6c_0000_0000_0000;
    const STEP: u64 = 6;
    let first = LEASES | (config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16 & !0xfff);
    let workers: Vec<u64> = (1..=u64::from(config.workers)).map(|n| first + n * STEP).collect();
    (workers, first + (u64::from(config.workers) + 1) * STEP + 1)
}

#[expect(
    clippy::expect_used,
    reason = "writing integers, strings and sequences of known length to a Vec cannot fail"
)]
fn written<E: std::fmt::Debug>(result: Result<(), E>) {
    result.expect("a Vec takes every byte");
}

fn pack(into: &mut Vec<u8>, value: &impl Serialize) {
    written(value.serialize(&mut rmp_serde::Serializer::new(into).with_struct_map()));
}

fn send(message: &mut Vec<u8>, envelope: &Envelope<'_>, subject: &str, out: Out<'_>) {
    message.clear();
    pack(message, envelope);
    out(WireMessage { at_ms: Millis(envelope.published_at), subject, payload: message });
}

#[derive(serde::Serialize)]
struct Envelope<'a> {
    publisher_id: u64,
    sequence: u64,
    published_at: u64,
    topic: &'static str,
    payload: Bin<'a>,
}

impl<'a> Envelope<'a> {
    fn new(publisher_id: u64, sequence: u64, at: Millis, topic: &'static str, payload: &'a [u8]) -> Self {
        Self { publisher_id, sequence, published_at: at.0, topic, payload: Bin(payload) }
    }
}

/// Bytes as MessagePack `bin`, not as an array of numbers.
struct Bin<'a>(&'a [u8]);

impl Serialize for Bin<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[derive(serde::Serialize)]
struct RouterEvent<'a> {
    worker_id: u64,
    event: KvCacheEvent<'a>,
}

#[derive(serde::Serialize)]
struct KvCacheEvent<'a> {
    event_id: u64,
    data: KvCacheEventData<'a>,
    dp_rank: u32,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum KvCacheEventData<'a> {
    Stored {
        parent_hash: Option<u64>,
        blocks: StoredBlocks<'a>,
    },
    /// Like the mocker: one event for each evicted block.
    Removed {
        block_hashes: [u64; 1],
    },
}

struct StoredBlocks<'a>(&'a [Block]);

#[derive(serde::Serialize)]
struct StoredBlock {
    block_hash: u64,
    tokens_hash: u64,
    mm_extra_info: Option<()>,
}

impl Serialize for StoredBlocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|block| StoredBlock {
            block_hash: block.block_hash.0,
            tokens_hash: block.tokens_hash.0,
            mm_extra_info: None,
        }))
    }
}

#[derive(serde::Serialize)]
struct KvHitRateEvent {
    worker_id: u64,
    dp_rank: u32,
    isl_blocks: u32,
    overlap_blocks: u32,
}

#[derive(serde::Serialize)]
struct ActiveLoad {
    worker_id: u64,
    dp_rank: u32,
    active_decode_blocks: Option<u64>,
    active_prefill_tokens: Option<u64>,
}

/// Discovery value of a model card; what only a tokenizer or a media decoder reads is left out.
#[derive(serde::Serialize)]
struct ModelEntry<'a> {
    r#type: &'static str,
    namespace: &'a str,
    component: &'a str,
    endpoint: &'static str,
    instance_id: u64,
    card_json: ModelCard,
}

#[derive(serde::Serialize)]
struct ModelCard {
    display_name: &'static str,
    slug: &'static str,
    context_length: u64,
    kv_cache_block_size: u32,
    migration_limit: u32,
    model_type: &'static str,
    model_input: &'static str,
    runtime_config: RuntimeConfig,
}

#[derive(serde::Serialize)]
struct RuntimeConfig {
    total_kv_blocks: u32,
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    tool_call_parser: Option<()>,
    reasoning_parser: Option<()>,
    data_parallel_size: u32,
    enable_local_indexer: bool,
}

impl<'a> ModelEntry<'a> {
    fn new(config: &'a Config, instance_id: u64) -> Self {
        Self {
            r#type: "Model",
            namespace: &config.namespace,
            component: &config.component,
            endpoint: "generate",
            instance_id,
            card_json: ModelCard {
                display_name: "simulated/llama-70b-fp8",
                slug: "simulated_llama-70b-fp8",
                context_length: config.workload.longest_request_tokens().next_power_of_two(),
                kv_cache_block_size: config.block_size_tokens,
                migration_limit: 0,
                model_type: "Chat | Completions",
                model_input: "Tokens",
                runtime_config: RuntimeConfig {
                    total_kv_blocks: config.blocks_per_worker,
                    max_num_seqs: config.max_batch,
                    max_num_batched_tokens: config.max_num_tokens,
                    tool_call_parser: None,
                    reasoning_parser: None,
                    data_parallel_size: 1,
                    enable_local_indexer: config.events == EventLine::LocalIndexer,
                },
            },
        }
    }
}
