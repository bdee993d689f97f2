//! Encodes the events of one pool of the simulated cluster in Dynamo's own bytes, 0.9 or 1.6: who publishes what where,
//! numbered as Dynamo numbers it (reference §2, §3). Must not know why anything happens.

use serde::Serialize;

use super::config::{Config, EventTransport};
use super::engine::Engine;
use super::fault::{Delivery, Fault, HashSeeds};
pub(super) use super::shape::ActiveSequenceEventData as Step;
use super::shape::{
    ActiveLoad, ActiveSequenceEvent, Envelope, KvCacheEvent, KvCacheEventData, KvHitRateEvent, ModelEntry,
    RouterEvent, SessionAffinityEvent, StoredBlocks, TreeDump, TreeQueryItem, TreeQueryResponse,
    WorkerWithDpRank,
};
use super::tokens::mix;
use super::topology::{Pool, Release};
use super::trace::{self, RequestTrace};
use radixscope_model::id::{BlockHash, Millis};
use radixscope_model::record::Block;

/// One message of the simulated cluster, as a NATS subscriber, an etcd watcher or a reader of the
/// frontend's log would get it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireMessage<'a> {
    /// When it was published.
    pub at_ms: Millis,
    /// How it travels.
    pub channel: Channel,
    /// The NATS subject, the discovery key, or the name of the process whose log or metrics it is.
    pub name: &'a str,
    /// Body; for a model card the discovery value, for a line of a log the line without its end.
    pub payload: &'a [u8],
}

/// How a message of the simulated cluster travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Channel {
    /// Published over NATS.
    Nats,
    /// Stored in discovery: a model card.
    Discovery,
    /// Written to a process's log.
    Log,
    /// Answered to a scrape of a process's metrics.
    Metrics,
    /// Deleted from discovery; the body is empty.
    Deletion,
}

/// Who receives the messages.
pub(super) type WireOut<'a> = &'a mut dyn FnMut(WireMessage<'_>);

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

/// Where a worker keeps blocks, as Dynamo names it from 1.1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tier {
    Device,
    Host,
}

impl Tier {
    const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Host => "host_pinned",
        }
    }
}

/// Who reports a step in the life of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reporter {
    Router,
    /// The worker that runs it (≥ 1.5).
    Worker,
}

#[derive(Debug)]
struct WorkerPublisher {
    id: u64,
    line: EventTransport,
    event_id: Sequence,
    events: Sequence,
    metrics: Sequence,
    sequences: Sequence,
}

impl WorkerPublisher {
    fn new(id: u64, line: EventTransport) -> Self {
        let [events, metrics, sequences] = Default::default();
        // The event plane numbers from 1.
        let event_id = Sequence((line == EventTransport::EventPlane).into());
        Self { id, line, event_id, events, metrics, sequences }
    }
}

/// A KV event that waits for the others of its moment (1.6).
#[derive(Debug)]
struct Pending {
    event_id: u64,
    tier: Tier,
    change: KvEventData,
}

#[derive(Debug)]
enum KvEventData {
    Stored { parent_hash: Option<u64>, start_position: Option<u32>, blocks: Vec<Block> },
    Removed { block_hashes: Vec<u64> },
    Cleared,
}

impl Pending {
    fn of(&self, worker_id: u64) -> RouterEvent<'_> {
        let data = match &self.change {
            &KvEventData::Stored { parent_hash, start_position, ref blocks } => KvCacheEventData::Stored {
                parent_hash,
                start_position: Some(start_position),
                blocks: StoredBlocks(blocks),
            },
            KvEventData::Removed { block_hashes } => KvCacheEventData::Removed { block_hashes },
            KvEventData::Cleared => KvCacheEventData::Cleared,
        };
        RouterEvent {
            worker_id,
            storage_tier: Some(self.tier.name()),
            residency_domain: Some("worker"),
            event: KvCacheEvent { event_id: self.event_id, data, dp_rank: 0 },
        }
    }
}

/// Most events of one batch (1.6).
const MOST_EVENTS: usize = 128;
/// Most blocks of a removal that neighbours are put together in (1.6, reference §2.6).
const MOST_REMOVED: usize = 128;

#[derive(Debug)]
struct RouterPublisher {
    id: u64,
    hits: Sequence,
    metrics: Sequence,
    sequences: Sequence,
    sessions: Sequence,
}

impl RouterPublisher {
    fn new(id: u64) -> Self {
        let [hits, metrics, sequences, sessions] = Default::default();
        Self { id, hits, metrics, sequences, sessions }
    }
}

/// The publishers of all workers of a pool and of its router.
#[derive(Debug)]
pub(super) struct Wire {
    release: Release,
    workers: Vec<WorkerPublisher>,
    /// By frontend.
    routers: Vec<RouterPublisher>,
    /// Whether routers publish what they choose and estimate, which from 1.0 on they do not.
    routers_publish: bool,
    /// Whether workers publish KV events.
    workers_publish: bool,
    /// Events of a worker at this moment (1.6).
    pending: Vec<Pending>,
    /// Whether every engine hashes with a seed of its own.
    seeded: bool,
    stream_subject: String,
    events: Topic,
    hits: Topic,
    metrics: Topic,
    sequences: Topic,
    sessions: Topic,
    buffers: Buffers,
}

/// What envelopes are published on.
#[derive(Debug)]
struct Topic {
    name: &'static str,
    subject: String,
    release: Release,
}

impl Topic {
    /// Id of a process as publisher of this topic: its own in 0.9; from 1.4 on any number below 2⁵³.
    fn publisher(&self, instance: u64) -> u64 {
        match self.release {
            Release::V0_9 => instance,
            Release::V1_6 => {
                let of_topic = self.subject.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
                mix(instance ^ of_topic) >> 11
            }
        }
    }
}

/// Memory of messages, to be used again.
#[derive(Debug, Default)]
struct Buffers {
    payload: Vec<u8>,
    message: Vec<u8>,
}

impl Buffers {
    /// Publishes an event in an envelope: MessagePack in MessagePack.
    fn publish(
        &mut self,
        topic: &Topic,
        (instance, sequence): (u64, u64),
        at_ms: Millis,
        event: &impl Serialize,
        out: WireOut<'_>,
    ) {
        let publisher_id = topic.publisher(instance);
        pack(&mut self.payload, event);
        pack(&mut self.message, &Envelope::new(publisher_id, sequence, at_ms, topic.name, &self.payload));
        out(WireMessage { at_ms, channel: Channel::Nats, name: &topic.subject, payload: &self.message });
    }

    /// Gives out a value as JSON.
    fn json(
        &mut self,
        at_ms: Millis,
        channel: Channel,
        name: &str,
        value: &impl Serialize,
        out: WireOut<'_>,
    ) {
        self.payload.clear();
        written(serde_json::to_writer(&mut self.payload, value));
        out(WireMessage { at_ms, channel, name, payload: &self.payload });
    }
}

/// From one lease to the next that is taken at the same time.
const LEASE_STEP: u64 = 6;
/// From the lease of a frontend to that of its next life.
const RESTART_STEP: u64 = 0x100;
/// The same of a worker: beyond the leases of all others.
const RETURN_STEP: u64 = 0x1_0000;
/// From the leases of a deployment to those of the next one.
const DEPLOYMENT_STEP: u64 = 0x100_0000;

const KV_EVENTS: &str = "kv-events";

impl Wire {
    pub(super) fn new(pool: &Pool) -> Self {
        let (config, release) = (&pool.config, pool.release());
        let Config { namespace, component, .. } = config;
        let (workers, router_id) = instance_ids(pool);
        let line = |(worker, &id)| WorkerPublisher::new(id, config.event_transport(worker));
        let of_namespace =
            |name| Topic { name, subject: format!("namespace.{namespace}.{name}"), release: Release::V0_9 };
        let of_component = |name| {
            let component = format!("namespace.{namespace}.component.{component}");
            let subject = match release {
                Release::V0_9 => format!("{component}.{name}"),
                Release::V1_6 => format!("{component}.endpoint.generate.{name}"),
            };
            Topic { name, subject, release }
        };
        Self {
            release,
            workers: (0..).zip(&workers).map(line).collect(),
            routers: (0..u64::from(config.frontends()))
                .map(|at| RouterPublisher::new(router_id + at * LEASE_STEP))
                .collect(),
            routers_publish: release == Release::V0_9 && !config.has(Fault::Approximate),
            workers_publish: pool.publishes_events(),
            pending: Vec::new(),
            seeded: config.has(Fault::HashSeed),
            stream_subject: format!("{}.{KV_EVENTS}", stream_name(namespace, component)),
            events: of_component(KV_EVENTS),
            hits: of_namespace("kv-hit-rate"),
            metrics: match release {
                Release::V0_9 => of_namespace("kv_metrics"),
                Release::V1_6 => of_component("kv_metrics"),
            },
            sequences: of_component("active_sequences_events"),
            sessions: of_component("session_affinity_events"),
            buffers: Buffers::default(),
        }
    }

    /// Discovery instance id of a worker.
    pub(super) fn worker_id(&self, worker: u16) -> u64 {
        self.workers[usize::from(worker)].id
    }

    /// Discovery instance id of a frontend that routes.
    pub(super) fn frontend_id(&self, frontend: u8) -> u64 {
        self.routers[usize::from(frontend)].id
    }

    /// The frontends begin anew, each with a new id.
    pub(super) fn restart_routers(&mut self) {
        for router in &mut self.routers {
            *router = RouterPublisher::new(router.id + RESTART_STEP);
        }
    }

    /// Number of a worker's last event.
    pub(super) fn last_event_id(&self, worker: u16) -> u64 {
        self.workers[usize::from(worker)].event_id.0.saturating_sub(1)
    }

    /// What a worker's engine calls a block.
    pub(super) fn own_hash(&self, worker: u16, hash: BlockHash) -> BlockHash {
        if self.seeded { HashSeeds::seeded(worker, hash) } else { hash }
    }

    /// The model card of each worker, as discovery keys and values.
    pub(super) fn model_cards(&mut self, pool: &Pool, at_ms: Millis, out: WireOut<'_>) {
        for worker in 0..pool.config.workers {
            self.model_card((pool, worker), at_ms, out);
        }
    }

    fn model_card(&mut self, (pool, worker): (&Pool, u16), at_ms: Millis, out: WireOut<'_>) {
        let id = self.worker_id(worker);
        let card = ModelEntry::new(pool, worker, id);
        self.buffers.json(at_ms, Channel::Discovery, &card_key(pool, id), &card, out);
    }

    /// The lease of a worker is over: its model card is gone.
    pub(super) fn lease_ended(&self, (pool, worker): (&Pool, u16), at_ms: Millis, out: WireOut<'_>) {
        let name = &card_key(pool, self.worker_id(worker));
        out(WireMessage { at_ms, channel: Channel::Deletion, name, payload: &[] });
    }

    /// A worker begins anew: under another id, with numbers from the start.
    pub(super) fn worker_returns(&mut self, (pool, worker): (&Pool, u16), at_ms: Millis, out: WireOut<'_>) {
        let of = &mut self.workers[usize::from(worker)];
        *of = WorkerPublisher::new(of.id + RETURN_STEP, of.line);
        self.model_card((pool, worker), at_ms, out);
    }

    /// A worker stored `blocks` below `parent`, the first of them at the place `from` of its prompt.
    pub(super) fn stored(
        &mut self,
        (at_ms, worker, tier): (Millis, u16, Tier),
        (parent, from, blocks): (Option<BlockHash>, u32, &[Block]),
        delivery: Delivery,
        out: WireOut<'_>,
    ) {
        let parent_hash = parent.map(|hash| self.own_hash(worker, hash).0);
        let own = |block: &Block| Block { block_hash: self.own_hash(worker, block.block_hash), ..*block };
        let own: Vec<Block> = if self.seeded { blocks.iter().map(own).collect() } else { Vec::new() };
        let blocks = match delivery {
            Delivery::Emptied => &[],
            _ if self.seeded => own.as_slice(),
            _ => blocks,
        };
        if self.line(worker) == EventTransport::EventPlane {
            let start_position = (tier == Tier::Host).then_some(from);
            let change = KvEventData::Stored { parent_hash, start_position, blocks: blocks.to_vec() };
            return self.waits(at_ms, worker, (tier, change), delivery, out);
        }
        let data =
            KvCacheEventData::Stored { parent_hash, start_position: None, blocks: StoredBlocks(blocks) };
        self.kv_event(at_ms, worker, data, delivery, out);
    }

    /// A worker evicted a block.
    pub(super) fn removed(
        &mut self,
        (at_ms, worker, tier): (Millis, u16, Tier),
        hash: BlockHash,
        delivery: Delivery,
        out: WireOut<'_>,
    ) {
        let block_hashes = [self.own_hash(worker, hash).0];
        if self.line(worker) == EventTransport::EventPlane {
            let change = KvEventData::Removed { block_hashes: block_hashes.to_vec() };
            return self.waits(at_ms, worker, (tier, change), delivery, out);
        }
        let data = KvCacheEventData::Removed { block_hashes: &block_hashes };
        self.kv_event(at_ms, worker, data, delivery, out);
    }

    /// A worker cleared a tier of its cache.
    pub(super) fn cleared(&mut self, (at_ms, worker, tier): (Millis, u16, Tier), out: WireOut<'_>) {
        if self.line(worker) == EventTransport::EventPlane {
            return self.waits(at_ms, worker, (tier, KvEventData::Cleared), Delivery::Whole, out);
        }
        self.kv_event(at_ms, worker, KvCacheEventData::Cleared, Delivery::Whole, out);
    }

    fn line(&self, worker: u16) -> EventTransport {
        self.workers[usize::from(worker)].line
    }

    /// Publishes an event by itself, as 0.9 does.
    fn kv_event(
        &mut self,
        at_ms: Millis,
        worker: u16,
        data: KvCacheEventData<'_>,
        delivery: Delivery,
        out: WireOut<'_>,
    ) {
        if delivery == Delivery::Unpublished {
            return;
        }
        // What is lost on the way has its number all the same.
        let discard: WireOut<'_> = &mut |_| {};
        let out = if delivery == Delivery::Lost { discard } else { out };
        let line = &mut self.workers[usize::from(worker)];
        let event = KvCacheEvent { event_id: line.event_id.next(), data, dp_rank: 0 };
        let event = RouterEvent { worker_id: line.id, storage_tier: None, residency_domain: None, event };
        match line.line {
            EventTransport::JetStream => {
                self.buffers.json(at_ms, Channel::Nats, &self.stream_subject, &event, out);
            }
            EventTransport::LocalIndexer | EventTransport::EventPlane => {
                self.buffers.publish(&self.events, (line.id, line.events.next()), at_ms, &event, out);
            }
        }
    }

    /// Keeps an event until [`Wire::flush`]; neighbouring removals become one.
    fn waits(
        &mut self,
        at_ms: Millis,
        worker: u16,
        (tier, change): (Tier, KvEventData),
        delivery: Delivery,
        out: WireOut<'_>,
    ) {
        if delivery == Delivery::Unpublished || !self.workers_publish {
            return;
        }
        if delivery == Delivery::Lost {
            self.flush(at_ms, worker, out);
            let line = &mut self.workers[usize::from(worker)];
            line.event_id.next();
            line.events.next();
            return;
        }
        if let (KvEventData::Removed { block_hashes: more }, Some(last)) = (&change, self.pending.last_mut())
            && let (true, KvEventData::Removed { block_hashes }) = (last.tier == tier, &mut last.change)
            && block_hashes.len() < MOST_REMOVED
        {
            block_hashes.extend(more);
            return;
        }
        if self.pending.len() == MOST_EVENTS {
            self.flush(at_ms, worker, out);
        }
        let event_id = self.workers[usize::from(worker)].event_id.next();
        self.pending.push(Pending { event_id, tier, change });
    }

    /// What a worker answers to a query for all its blocks (1.6).
    pub(super) fn tree_dump(&self, worker: u16, engine: &Engine) -> Vec<u8> {
        let worker_id = self.worker_id(worker);
        let tiers = [(Tier::Device, engine.cache()), (Tier::Host, engine.host())];
        let blocks: Vec<(Tier, Option<BlockHash>, Block)> = tiers
            .into_iter()
            .flat_map(|(tier, cache)| {
                cache.tree().into_iter().map(move |(above, block)| (tier, above, block))
            })
            .map(|(tier, above, block)| {
                let block_hash = self.own_hash(worker, block.block_hash);
                (tier, above.map(|above| self.own_hash(worker, above)), Block { block_hash, ..block })
            })
            .collect();
        let events = (0..).zip(&blocks).map(|(event_id, (tier, above, block))| {
            let data = KvCacheEventData::Stored {
                parent_hash: above.map(|above| above.0),
                start_position: None,
                blocks: StoredBlocks(std::slice::from_ref(block)),
            };
            let event = KvCacheEvent { event_id, data, dp_rank: 0 };
            RouterEvent {
                worker_id,
                storage_tier: Some(tier.name()),
                residency_domain: Some("worker"),
                event,
            }
        });
        let dump = TreeDump {
            events: events.collect(),
            last_event_id: self.last_event_id(worker),
            reset_scope: "all",
        };
        let response = TreeQueryItem { data: TreeQueryResponse::TreeDump(dump), complete_final: false };
        let mut item = Vec::new();
        written(serde_json::to_writer(&mut item, &response));
        item
    }

    /// Publishes what waits, as one batch.
    pub(super) fn flush(&mut self, at_ms: Millis, worker: u16, out: WireOut<'_>) {
        if self.pending.is_empty() {
            return;
        }
        let line = &mut self.workers[usize::from(worker)];
        let worker_id = line.id;
        let batch: Vec<RouterEvent<'_>> = self.pending.iter().map(|event| event.of(worker_id)).collect();
        self.buffers.publish(&self.events, (line.id, line.events.next()), at_ms, &batch, out);
        self.pending.clear();
    }

    /// The router chose a worker.
    pub(super) fn hit_rate(
        &mut self,
        at_ms: Millis,
        frontend: u8,
        worker: u16,
        isl_blocks: u32,
        overlap_blocks: u32,
        out: WireOut<'_>,
    ) {
        if !self.routers_publish {
            return;
        }
        let event =
            KvHitRateEvent { worker_id: self.worker_id(worker), dp_rank: 0, isl_blocks, overlap_blocks };
        let router = &mut self.routers[usize::from(frontend)];
        self.buffers.publish(&self.hits, (router.id, router.hits.next()), at_ms, &event, out);
    }

    /// The router publishes a step of a request to its replicas, or the worker publishes it to the routers.
    pub(super) fn sequence(
        &mut self,
        at_ms: Millis,
        (reporter, worker): (Reporter, u16),
        request_id: &str,
        data: Step<'_>,
        out: WireOut<'_>,
    ) {
        let lora_name = (self.release == Release::V1_6).then_some(());
        let at = &mut self.workers[usize::from(worker)];
        let worker = WorkerWithDpRank { worker_id: at.id, dp_rank: 0 };
        let (router_id, sequence) = match reporter {
            Reporter::Router => (self.routers[0].id, &mut self.routers[0].sequences),
            Reporter::Worker => (at.id, &mut at.sequences),
        };
        let event = ActiveSequenceEvent { request_id, worker, data, router_id, lora_name };
        self.buffers.publish(&self.sequences, (router_id, sequence.next()), at_ms, &event, out);
    }

    /// The router gave a request of a session to the worker that the session is bound to, or that request ended.
    pub(super) fn session(
        &mut self,
        (at_ms, frontend): (Millis, u8),
        (session_id, worker, number): (&str, u16, u64),
        out: WireOut<'_>,
    ) {
        let worker_id = self.worker_id(worker);
        let router = &mut self.routers[usize::from(frontend)];
        let event = SessionAffinityEvent {
            session_id,
            worker_id,
            dp_rank: 0,
            sequence: number,
            writer_id: router.id,
        };
        self.buffers.publish(&self.sessions, (router.id, router.sessions.next()), at_ms, &event, out);
    }

    /// The frontend publishes what became of a request.
    pub(super) fn trace(&mut self, at_ms: Millis, trace: &RequestTrace<'_>, out: WireOut<'_>) {
        self.buffers.json(at_ms, Channel::Nats, trace::SUBJECT, trace, out);
    }

    /// What the router thinks a worker is doing.
    pub(super) fn router_load(
        &mut self,
        at_ms: Millis,
        frontend: u8,
        worker: u16,
        (decode_blocks, prefill_tokens): (u64, u64),
        out: WireOut<'_>,
    ) {
        if !self.routers_publish {
            return;
        }
        let router = &mut self.routers[usize::from(frontend)];
        let publisher = (router.id, router.metrics.next());
        self.load(at_ms, publisher, worker, decode_blocks, Some(prefill_tokens), out);
    }

    /// What a worker's engine uses.
    pub(super) fn worker_load(&mut self, at_ms: Millis, worker: u16, used_blocks: u64, out: WireOut<'_>) {
        let line = &mut self.workers[usize::from(worker)];
        let publisher = (line.id, line.metrics.next());
        match self.release {
            Release::V0_9 => self.load(at_ms, publisher, worker, used_blocks, None, out),
            Release::V1_6 => {
                let event = ActiveLoad {
                    worker_id: line.id,
                    dp_rank: 0,
                    active_decode_blocks: None,
                    active_prefill_tokens: None,
                    kv_used_blocks: Some(used_blocks),
                };
                self.buffers.publish(&self.metrics, publisher, at_ms, &event, out);
            }
        }
    }

    fn load(
        &mut self,
        at_ms: Millis,
        publisher: (u64, u64),
        worker: u16,
        active_decode_blocks: u64,
        active_prefill_tokens: Option<u64>,
        out: WireOut<'_>,
    ) {
        let (worker_id, active_decode_blocks) = (self.worker_id(worker), Some(active_decode_blocks));
        let event = ActiveLoad {
            worker_id,
            dp_rank: 0,
            active_decode_blocks,
            active_prefill_tokens,
            kv_used_blocks: None,
        };
        self.buffers.publish(&self.metrics, publisher, at_ms, &event, out);
    }
}

/// Dynamo's name of the JetStream stream of a component (reference §2.1).
fn stream_name(namespace: &str, component: &str) -> String {
    let path = format!("namespace.{namespace}.component.{component}").to_ascii_lowercase();
    let slug: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{slug}-{KV_EVENTS}")
}

/// Discovery key of a worker's model card.
fn card_key(pool: &Pool, worker_id: u64) -> String {
    let (namespace, component) = (&pool.config.namespace, &pool.config.component);
    format!("v1/mdc/{namespace}/{component}/generate/{worker_id:x}")
}

/// Ids as etcd hands them out: one lease after the other, far above what a JavaScript number holds.
fn instance_ids(pool: &Pool) -> (Vec<u64>, u64) {
    const LEASES: u64 = 0x6a6c_0000_0000_0000;
    let of_seed = pool.config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16 & !0xfff;
    let first = LEASES + of_seed + u64::from(pool.life) * DEPLOYMENT_STEP;
    let id = |worker: u16| first + (u64::from(pool.worker(worker)) + 1) * LEASE_STEP;
    let workers: Vec<u64> = (0..pool.config.workers).map(id).collect();
    (workers, first + (u64::from(pool.workers_of_all) + 1) * LEASE_STEP + 1)
}

#[expect(
    clippy::expect_used,
    reason = "writing integers, strings and sequences of known length to a Vec cannot fail"
)]
fn written<E: std::fmt::Debug>(result: Result<(), E>) {
    result.expect("a Vec takes every byte");
}

/// Writes a value as MessagePack in place of what was there.
fn pack(into: &mut Vec<u8>, value: &impl Serialize) {
    into.clear();
    written(value.serialize(&mut rmp_serde::Serializer::new(into).with_struct_map()));
}

#[cfg(test)]
#[path = "wire_recorded.rs"]
mod recorded;

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
