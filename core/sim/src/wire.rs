//! Says what happens in one pool of the simulated cluster in Dynamo's own bytes, 0.9 or 1.6: who publishes what where,
//! numbered as Dynamo numbers it (reference §2, §3). Must not know why anything happens.

use serde::Serialize;

use super::config::{Config, EventLine};
use super::fault::{Delivery, Fault, HashSeeds};
pub(super) use super::shape::ActiveSequenceEventData as Step;
use super::shape::{
    ActiveLoad, ActiveSequenceEvent, Envelope, KvCacheEvent, KvCacheEventData, KvHitRateEvent, ModelEntry,
    RouterEvent, StoredBlocks, WorkerWithDpRank,
};
use super::tokens::mix;
use super::topology::{Pool, Release};
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
}

/// Who receives the messages.
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

/// Who tells of a step in the life of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Teller {
    Router,
    /// The worker that runs it (≥ 1.5).
    Worker,
}

#[derive(Debug)]
struct WorkerLine {
    id: u64,
    line: EventLine,
    event_id: Sequence,
    events: Sequence,
    metrics: Sequence,
    sequences: Sequence,
}

/// A KV event that waits for the others of its moment (1.6).
#[derive(Debug)]
struct Pending {
    event_id: u64,
    tier: Tier,
    change: Change,
}

#[derive(Debug)]
enum Change {
    Stored { parent_hash: Option<u64>, start_position: Option<u32>, blocks: Vec<Block> },
    Removed { block_hashes: Vec<u64> },
}

impl Pending {
    fn of(&self, worker_id: u64) -> RouterEvent<'_> {
        let data = match &self.change {
            &Change::Stored { parent_hash, start_position, ref blocks } => KvCacheEventData::Stored {
                parent_hash,
                start_position: Some(start_position),
                blocks: StoredBlocks(blocks),
            },
            Change::Removed { block_hashes } => KvCacheEventData::Removed { block_hashes },
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
struct RouterLine {
    id: u64,
    hits: Sequence,
    metrics: Sequence,
    sequences: Sequence,
}

impl RouterLine {
    fn new(id: u64) -> Self {
        Self { id, hits: Sequence::default(), metrics: Sequence::default(), sequences: Sequence::default() }
    }
}

/// The publishers of all workers of a pool and of its router.
#[derive(Debug)]
pub(super) struct Wire {
    release: Release,
    workers: Vec<WorkerLine>,
    /// By frontend.
    routers: Vec<RouterLine>,
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
        out: Out<'_>,
    ) {
        let publisher_id = topic.publisher(instance);
        pack(&mut self.payload, event);
        pack(&mut self.message, &Envelope::new(publisher_id, sequence, at_ms, topic.name, &self.payload));
        out(WireMessage { at_ms, channel: Channel::Nats, name: &topic.subject, payload: &self.message });
    }

    /// Gives out a value as JSON.
    fn json(&mut self, at_ms: Millis, channel: Channel, name: &str, value: &impl Serialize, out: Out<'_>) {
        self.payload.clear();
        written(serde_json::to_writer(&mut self.payload, value));
        out(WireMessage { at_ms, channel, name, payload: &self.payload });
    }
}

/// From one lease to the next that is taken at the same time.
const LEASE_STEP: u64 = 6;
/// From the lease of a process to that of its next life.
const RESTART_STEP: u64 = 0x100;

const KV_EVENTS: &str = "kv-events";

impl Wire {
    pub(super) fn new(pool: &Pool) -> Self {
        let (config, release) = (&pool.config, pool.release());
        let Config { namespace, component, .. } = config;
        let (workers, router_id) = instance_ids(pool);
        let line = |(worker, &id)| WorkerLine {
            id,
            line: config.event_line(worker),
            // The event plane numbers from 1.
            event_id: Sequence((config.event_line(worker) == EventLine::EventPlane).into()),
            events: Sequence::default(),
            metrics: Sequence::default(),
            sequences: Sequence::default(),
        };
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
                .map(|at| RouterLine::new(router_id + at * LEASE_STEP))
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
            *router = RouterLine::new(router.id + RESTART_STEP);
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
    pub(super) fn model_cards(&mut self, pool: &Pool, at_ms: Millis, out: Out<'_>) {
        for (at, worker) in (0..).zip(&self.workers) {
            let card = ModelEntry::new(pool, at, worker.id);
            let (namespace, component) = (&pool.config.namespace, &pool.config.component);
            let key = format!("v1/mdc/{namespace}/{component}/generate/{:x}", worker.id);
            self.buffers.json(at_ms, Channel::Discovery, &key, &card, out);
        }
    }

    /// A worker stored `blocks` below `parent`, the first of them at the place `from` of its prompt.
    pub(super) fn stored(
        &mut self,
        (at_ms, worker, tier): (Millis, u16, Tier),
        (parent, from, blocks): (Option<BlockHash>, u32, &[Block]),
        delivery: Delivery,
        out: Out<'_>,
    ) {
        let parent_hash = parent.map(|hash| self.own_hash(worker, hash).0);
        let own = |block: &Block| Block { block_hash: self.own_hash(worker, block.block_hash), ..*block };
        let own: Vec<Block> = if self.seeded { blocks.iter().map(own).collect() } else { Vec::new() };
        let blocks = match delivery {
            Delivery::Emptied => &[],
            _ if self.seeded => own.as_slice(),
            _ => blocks,
        };
        if self.line(worker) == EventLine::EventPlane {
            let start_position = (tier == Tier::Host).then_some(from);
            let change = Change::Stored { parent_hash, start_position, blocks: blocks.to_vec() };
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
        out: Out<'_>,
    ) {
        let block_hashes = [self.own_hash(worker, hash).0];
        if self.line(worker) == EventLine::EventPlane {
            let change = Change::Removed { block_hashes: block_hashes.to_vec() };
            return self.waits(at_ms, worker, (tier, change), delivery, out);
        }
        let data = KvCacheEventData::Removed { block_hashes: &block_hashes };
        self.kv_event(at_ms, worker, data, delivery, out);
    }

    fn line(&self, worker: u16) -> EventLine {
        self.workers[usize::from(worker)].line
    }

    /// Publishes an event by itself, as 0.9 does.
    fn kv_event(
        &mut self,
        at_ms: Millis,
        worker: u16,
        data: KvCacheEventData<'_>,
        delivery: Delivery,
        out: Out<'_>,
    ) {
        if delivery == Delivery::Unpublished {
            return;
        }
        // What is lost on the way has its number all the same.
        let nobody: Out<'_> = &mut |_| {};
        let out = if delivery == Delivery::Lost { nobody } else { out };
        let line = &mut self.workers[usize::from(worker)];
        let event = KvCacheEvent { event_id: line.event_id.next(), data, dp_rank: 0 };
        let event = RouterEvent { worker_id: line.id, storage_tier: None, residency_domain: None, event };
        match line.line {
            EventLine::JetStream => {
                self.buffers.json(at_ms, Channel::Nats, &self.stream_subject, &event, out);
            }
            EventLine::LocalIndexer | EventLine::EventPlane => {
                self.buffers.publish(&self.events, (line.id, line.events.next()), at_ms, &event, out);
            }
        }
    }

    /// Keeps an event until [`Wire::flush`]; neighbouring removals become one.
    fn waits(
        &mut self,
        at_ms: Millis,
        worker: u16,
        (tier, change): (Tier, Change),
        delivery: Delivery,
        out: Out<'_>,
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
        if let (Change::Removed { block_hashes: more }, Some(last)) = (&change, self.pending.last_mut())
            && let (true, Change::Removed { block_hashes }) = (last.tier == tier, &mut last.change)
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

    /// Publishes what waits, as one batch.
    pub(super) fn flush(&mut self, at_ms: Millis, worker: u16, out: Out<'_>) {
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
        out: Out<'_>,
    ) {
        if !self.routers_publish {
            return;
        }
        let event =
            KvHitRateEvent { worker_id: self.worker_id(worker), dp_rank: 0, isl_blocks, overlap_blocks };
        let router = &mut self.routers[usize::from(frontend)];
        self.buffers.publish(&self.hits, (router.id, router.hits.next()), at_ms, &event, out);
    }

    /// The router tells its replicas of a step in the life of a request, or the worker tells the routers.
    pub(super) fn sequence(
        &mut self,
        at_ms: Millis,
        (teller, worker): (Teller, u16),
        request_id: &str,
        data: Step<'_>,
        out: Out<'_>,
    ) {
        let lora_name = (self.release == Release::V1_6).then_some(());
        let at = &mut self.workers[usize::from(worker)];
        let worker = WorkerWithDpRank { worker_id: at.id, dp_rank: 0 };
        let (router_id, sequence) = match teller {
            Teller::Router => (self.routers[0].id, &mut self.routers[0].sequences),
            Teller::Worker => (at.id, &mut at.sequences),
        };
        let event = ActiveSequenceEvent { request_id, worker, data, router_id, lora_name };
        self.buffers.publish(&self.sequences, (router_id, sequence.next()), at_ms, &event, out);
    }

    /// What the router thinks a worker is doing.
    pub(super) fn router_load(
        &mut self,
        at_ms: Millis,
        frontend: u8,
        worker: u16,
        (decode_blocks, prefill_tokens): (u64, u64),
        out: Out<'_>,
    ) {
        if !self.routers_publish {
            return;
        }
        let router = &mut self.routers[usize::from(frontend)];
        let publisher = (router.id, router.metrics.next());
        self.load(at_ms, publisher, worker, decode_blocks, Some(prefill_tokens), out);
    }

    /// What a worker's engine uses.
    pub(super) fn worker_load(&mut self, at_ms: Millis, worker: u16, used_blocks: u64, out: Out<'_>) {
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
        out: Out<'_>,
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

/// Ids as etcd hands them out: one lease after the other, far above what a JavaScript number holds.
fn instance_ids(pool: &Pool) -> (Vec<u64>, u64) {
    const LEASES: u64 = 0x6a6c_0000_0000_0000;
    let first = LEASES | (pool.config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16 & !0xfff);
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
mod tests {
    use super::super::shape::ChainHashes;
    use super::*;
    use radixscope_model::id::TokensHash;

    const WORKER: u64 = 1099996435276239473;
    const ROUTER: u64 = 0x2897_7750_e0a7_b54f;

    /// The bytes that `say` publishes, with the ids of the messages recorded from a real Dynamo.
    fn published(events: EventLine, say: impl FnOnce(&mut Wire, Out<'_>)) -> (String, Vec<u8>) {
        let config = Config { workers: 1, events, ..Config::default() };
        let mut wire = Wire::new(&config.pools()[0]);
        wire.workers[0].id = WORKER;
        wire.routers[0].id = ROUTER;
        let mut messages = Vec::new();
        say(&mut wire, &mut |m| messages.push((m.name.to_owned(), m.payload.to_owned())));
        assert_eq!(messages.len(), 1);
        messages.remove(0)
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    fn blocks(hashes: [(u64, u64); 2]) -> Vec<Block> {
        let block = |(b, t)| Block { block_hash: BlockHash(b), tokens_hash: TokensHash(t) };
        hashes.into_iter().map(block).collect()
    }

    #[test]
    fn a_decision_equals_the_recorded_bytes() {
        let (subject, bytes) = published(EventLine::JetStream, |wire, out| {
            wire.hit_rate(Millis(0x1a1_fa23_d3dc), 0, 0, 3, 0, out)
        });
        assert_eq!(subject, "namespace.dynamo.kv-hit-rate");
        assert_eq!(
            hex(&bytes),
            "85ac7075626c69736865725f6964cf28977750e0a7b54fa873657175656e636500ac7075626c69736865645f6174cf000001a1\
             fa23d3dca5746f706963ab6b762d6869742d72617465a77061796c6f6164c43984a9776f726b65725f6964cf0f43f8ee0ad612\
             71a764705f72616e6b00aa69736c5f626c6f636b7303ae6f7665726c61705f626c6f636b7300"
        );
    }

    #[test]
    fn a_load_of_the_router_equals_the_recorded_bytes() {
        let (subject, bytes) = published(EventLine::JetStream, |wire, out| {
            wire.router_load(Millis(0x1a1_fa23_d3dd), 0, 0, (2, 42), out)
        });
        assert_eq!(subject, "namespace.dynamo.kv_metrics");
        assert_eq!(
            hex(&bytes),
            "85ac7075626c69736865725f6964cf28977750e0a7b54fa873657175656e636500ac7075626c69736865645f6174cf000001a1\
             fa23d3dda5746f706963aa6b765f6d657472696373a77061796c6f6164c44a84a9776f726b65725f6964cf0f43f8ee0ad61271\
             a764705f72616e6b00b46163746976655f6465636f64655f626c6f636b7302b56163746976655f70726566696c6c5f746f6b65\
             6e732a"
        );
    }

    /// The payload of an envelope: Dynamo's serialiser writes `bin` with its length in one byte, up to 255.
    fn payload_of(bytes: &[u8]) -> &[u8] {
        let key = b"\xa7payload\xc4";
        let at = bytes.windows(key.len()).position(|w| w == key).expect("a payload");
        &bytes[at + key.len() + 1..]
    }

    #[test]
    fn the_life_of_a_request_has_the_fields_of_dynamo_in_its_order() {
        let say = |step: fn(&[Block]) -> Step<'_>| {
            let blocks = blocks([(7585370176810793920, 0), (0x9b3e_eddc_fd32_dfef, 0)]);
            let (subject, bytes) = published(EventLine::JetStream, |wire, out| {
                wire.sequence(Millis(0), (Teller::Router, 0), "e9980da3", step(&blocks), out);
            });
            assert_eq!(subject, "namespace.dynamo.component.backend.active_sequences_events");
            hex(payload_of(&bytes))
        };
        let text = |text: &str| format!("{:02x}{}", 0xa0 + text.len(), hex(text.as_bytes()));
        let around = |data: &str| {
            let worker = format!("82{}cf0f43f8ee0ad61271{}00", text("worker_id"), text("dp_rank"));
            let parts = [
                "84",
                &text("request_id"),
                &text("e9980da3"),
                &text("worker"),
                &worker,
                &text("data"),
                data,
                &text("router_id"),
                "cf28977750e0a7b54f",
            ];
            parts.concat()
        };
        let added = [
            "81",
            &text("AddRequest"),
            "84",
            &text("token_sequence"),
            "92cf6944a5fc9ea63bc0cf9b3eeddcfd32dfef",
            &text("isl"),
            "2a",
            &text("overlap"),
            "01",
            &text("expected_output_tokens"),
            "c0",
        ];
        let bytes = say(|blocks| Step::AddRequest {
            token_sequence: Some(ChainHashes(blocks)),
            isl: 42,
            overlap: 1,
            expected_output_tokens: None,
        });
        assert_eq!(bytes, around(&added.concat()));
        assert_eq!(say(|_| Step::MarkPrefillCompleted), around(&text("MarkPrefillCompleted")));
        assert_eq!(say(|_| Step::Free), around(&text("Free")));
    }

    #[test]
    fn a_stored_event_in_an_envelope_equals_the_recorded_bytes() {
        let blocks = blocks([
            (7585370176810793920, 7585370176810793920),
            (0x9b3e_eddc_fd32_dfef, 0xc1d4_e735_5a1a_9907),
        ]);
        let (subject, bytes) = published(EventLine::LocalIndexer, |wire, out| {
            wire.stored((Millis(1795198014434), 0, Tier::Device), (None, 0, &blocks), Delivery::Whole, out);
        });
        assert_eq!(subject, "namespace.dynamo.component.backend.kv-events");
        assert_eq!(bytes.len(), 276);
        assert_eq!(
            hex(&bytes),
            "85ac7075626c69736865725f6964cf0f43f8ee0ad61271a873657175656e636500ac7075626c69736865645f6174cf000001a1\
             fa23d3e2a5746f706963a96b762d6576656e7473a77061796c6f6164c4c382a9776f726b65725f6964cf0f43f8ee0ad61271a5\
             6576656e7483a86576656e745f696400a46461746181a673746f72656482ab706172656e745f68617368c0a6626c6f636b7392\
             83aa626c6f636b5f68617368cf6944a5fc9ea63bc0ab746f6b656e735f68617368cf6944a5fc9ea63bc0ad6d6d5f6578747261\
             5f696e666fc083aa626c6f636b5f68617368cf9b3eeddcfd32dfefab746f6b656e735f68617368cfc1d4e7355a1a9907ad6d6d\
             5f65787472615f696e666fc0a764705f72616e6b00"
        );
    }

    #[test]
    fn a_stored_event_on_jetstream_equals_the_recorded_text() {
        let blocks =
            blocks([(7585370176810793920, 7585370176810793920), (5214045902298629111, 8781325924315300312)]);
        let (subject, bytes) = published(EventLine::JetStream, |wire, out| {
            wire.stored((Millis(0), 0, Tier::Device), (None, 0, &blocks), Delivery::Whole, out)
        });
        assert_eq!(subject, "namespace-dynamo-component-backend-kv-events.kv-events");
        assert_eq!(
            String::from_utf8(bytes).expect("JSON is UTF-8"),
            r#"{"worker_id":1099996435276239473,"event":{"event_id":0,"data":{"stored":{"parent_hash":null,"blocks":[{"block_hash":7585370176810793920,"tokens_hash":7585370176810793920,"mm_extra_info":null},{"block_hash":5214045902298629111,"tokens_hash":8781325924315300312,"mm_extra_info":null}]}},"dp_rank":0}}"#
        );
    }

    #[test]
    fn a_removed_event_names_one_block() {
        let (_, bytes) = published(EventLine::JetStream, |wire, out| {
            wire.removed((Millis(0), 0, Tier::Device), BlockHash(u64::MAX), Delivery::Whole, out)
        });
        assert_eq!(
            String::from_utf8(bytes).expect("JSON is UTF-8"),
            r#"{"worker_id":1099996435276239473,"event":{"event_id":0,"data":{"removed":{"block_hashes":[18446744073709551615]}},"dp_rank":0}}"#
        );
    }

    #[test]
    fn a_stream_is_named_as_dynamo_names_it() {
        assert_eq!(stream_name("dynamo", "backend"), "namespace-dynamo-component-backend-kv-events");
        assert_eq!(stream_name("My_Team", "pre-fill"), "namespace-my-team-component-pre-fill-kv-events");
    }
}
