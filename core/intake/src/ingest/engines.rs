//! KV events of engines that are listened to directly, without Dynamo: of whom they are, and what is known of each publisher.
//!
//! An engine's rank is a worker of a pool that the operator names. Its blocks are named by its own hashes and placed by the router's hash of
//! their tokens, which is computed here, so that what several engines hold of a prompt is one path. Everything else is as with Dynamo's
//! events: numbers show losses, and how much is known of each worker's blocks is followed in `attach`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use radixscope_dynamo::engine::{CacheGroups, EngineBatch, EngineEvent, TokensHasher};
use radixscope_dynamo::envelope::Envelope;
use radixscope_dynamo::error::{DecodeError, Faults, Reason};
use radixscope_dynamo::kv_event::{KvData, KvEvent, KvEvents, ResidencyDomain};
use radixscope_dynamo::subject::Subject;
use radixscope_model::id::{BlockHash, Millis, TokensHash, Worker, WorkerId, WorkerIx};
use radixscope_model::record::{
    Block, DepartureCause, Engine, EngineFeed, Entry, EventTransport, LinkState, Record, Tier,
};
use radixscope_router::hash::{Hasher, Seed, multimodal_hash};
use radixscope_state::cluster::{Cluster, MAX_ENGINES};
use radixscope_state::tree::{NodeId, Tree};

use super::{Context, Ingest, Sink, kv_record, lower_tier, within_bounds};
use crate::payload::{EngineInput, EnginePublisher, Received};

/// How often the number of a publisher's latest batch is recorded if nothing else changed.
const SEQUENCE_EVERY_MS: u64 = 5_000;
/// Most ranks of an engine; beyond it a rank is nonsense.
pub(super) const MAX_RANK: u32 = 1_024;
/// A batch that is sent again counts for the time at which it was made, unless that is longer ago.
const MAX_AGE_MS: u64 = 24 * 60 * 60 * 1_000;

/// The publishers.
#[derive(Default)]
pub(super) struct Engines {
    /// By [`EnginePublisher::key`], in the order in which they were first seen.
    of: IndexMap<u64, EngineState, hashbrown::DefaultHashBuilder>,
    /// Worker of each engine and its pool, by its name.
    workers: BTreeMap<Box<str>, (WorkerId, Arc<Subject>)>,
    /// How often one was added or removed.
    changes: u64,
    /// Key of the publisher that sends under a publisher id.
    senders: BTreeMap<u64, u64>,
    scratch: Option<Box<(EngineBatch, RouterHasher)>>,
    /// Those of a state that was gone on from, until it is certain which of them are still there.
    kept: Vec<EngineFeed>,
}

struct EngineState {
    /// Its engine, as [`EnginePublisher::engine_name`].
    engine_name: Box<str>,
    /// As in its first batch.
    rank: Option<u32>,
    /// What its batches are numbered under now.
    publisher_id: u64,
    groups: CacheGroups,
    feed: EngineFeed,
    recorded: Option<EngineFeed>,
    recorded_ms: Millis,
}

impl EngineState {
    fn new(publisher: &EnginePublisher) -> Self {
        Self {
            engine_name: publisher.engine_name.clone(),
            rank: publisher.rank,
            publisher_id: publisher.publisher_id(0),
            groups: CacheGroups::default(),
            feed: EngineFeed::new(&*publisher.name, publisher.engine),
            recorded: None,
            recorded_ms: Millis(0),
        }
    }

    fn reject(&mut self, faults: &Faults, at: Millis) {
        self.feed.rejected_ms = Some(at);
        self.feed.rejected = self.feed.rejected.saturating_add(faults.total());
        if let Some((last, _)) = faults.iter().last() {
            self.feed.rejected_sample.clone_from(&last.detail);
        }
    }

    /// Whether there is something to record.
    fn is_due(&self, at: Millis) -> bool {
        let Some(recorded) = &self.recorded else { return true };
        if *recorded == self.feed {
            return false;
        }
        let EngineFeed { last_sequence, received, .. } = recorded;
        let but_for_counts =
            EngineFeed { last_sequence: *last_sequence, received: *received, ..self.feed.clone() };
        *recorded != but_for_counts || at.since(self.recorded_ms) >= SEQUENCE_EVERY_MS
    }
}

impl Engines {
    /// The worker whose batches are numbered under a publisher id.
    pub(super) fn worker_of(&self, publisher_id: u64) -> Option<WorkerIx> {
        let key = self.senders.get(&publisher_id)?;
        self.of.get(key)?.feed.worker
    }

    /// The id of an engine's workers, by its name.
    pub(super) fn worker_id(&self, engine_name: &str) -> Option<WorkerId> {
        self.workers.get(engine_name).map(|(id, _)| *id)
    }

    /// The only engine at a host, of several the one at this port; with its pool.
    pub(super) fn at(&self, host: &str, port: Option<&str>) -> Option<(WorkerId, Arc<Subject>)> {
        let at_host = self.workers.iter().filter_map(|(name, of)| {
            let (own_host, own_port) = host_and_port(name)?;
            (own_host == host).then_some((own_port, of))
        });
        let found: Vec<_> = at_host.collect();
        let at_port: Vec<_> = found.iter().filter(|(own_port, _)| Some(*own_port) == port).collect();
        match (&found[..], &at_port[..]) {
            ([(_, only)], _) | (_, [(_, only)]) => Some((*only).clone()),
            _ => None,
        }
    }

    /// How often engines came or went: another engine may be at a host then.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Goes on from a state that was kept.
    pub(super) fn resume(&mut self, cluster: &Cluster) {
        self.kept = cluster.engines().to_vec();
    }

    /// Those that were there before, and of which nothing was heard since. Given once.
    pub(super) fn take_gone(&mut self) -> Vec<EngineFeed> {
        let kept = std::mem::take(&mut self.kept).into_iter();
        kept.filter(|kept| self.of.values().all(|of| of.feed.name != kept.name)).collect()
    }

    /// Records what has become known.
    pub(super) fn flush(&mut self, at: Millis, out: &mut dyn FnMut(Record<'_>)) {
        for state in self.of.values_mut().filter(|state| state.is_due(at)) {
            out(Record::EngineFeed(Box::new(state.feed.clone())));
            state.recorded = Some(state.feed.clone());
            state.recorded_ms = at;
        }
    }

    /// The state of a publisher. `None`: there are too many.
    fn state(&mut self, publisher: &EnginePublisher) -> Option<&mut EngineState> {
        if self.of.len() >= MAX_ENGINES && !self.of.contains_key(&publisher.key) {
            return None;
        }
        let Self { workers, changes, .. } = self;
        Some(self.of.entry(publisher.key).or_insert_with(|| {
            let of = (publisher.worker_id, Arc::clone(&publisher.subject));
            workers.insert(publisher.engine_name.clone(), of);
            *changes += 1;
            EngineState::new(publisher)
        }))
    }
}

/// Host and port of an engine, by its name: `tcp://HOST:PORT`, `http://HOST:PORT`, or, of one that connects to here, its topic
/// (`kv@HOST:PORT@MODEL`, with or without the port) or its address.
fn host_and_port(name: &str) -> Option<(&str, &str)> {
    let place = match name.split_once("://") {
        Some((_, rest)) => rest.split('/').next()?,
        None => name.split('@').nth(1).unwrap_or(name),
    };
    if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return Some((host, port.strip_prefix(':').unwrap_or_default()));
    }
    Some(place.split_once(':').unwrap_or((place, "")))
}

/// Dynamo's hash of tokens.
#[derive(Default)]
struct RouterHasher {
    hasher: Hasher,
    seed: Option<Seed>,
    multimodal: Vec<u64>,
}

impl TokensHasher for RouterHasher {
    fn begin(&mut self, lora_name: Option<&str>, cache_salt: Option<&str>) {
        self.seed = Some(Seed::of(lora_name, cache_salt));
    }

    fn block(&mut self, tokens: &[u32], multimodal: &[&[u8]]) -> TokensHash {
        self.multimodal.clear();
        self.multimodal.extend(multimodal.iter().map(|name| multimodal_hash(name)));
        self.hasher.block(self.seed.unwrap_or(Seed::PLAIN), tokens.iter().copied(), &self.multimodal)
    }
}

impl Ingest {
    /// Takes what came from or of an engine's publisher.
    pub(super) fn engine<S: Sink>(
        &mut self,
        received: &Received,
        publisher: &EnginePublisher,
        input: &EngineInput,
        out: &mut S,
    ) -> Result<(), Faults> {
        if matches!(input, EngineInput::Link { state: LinkState::Ended, .. }) {
            self.engine_ended(received, publisher, out);
            return Ok(());
        }
        let Some(state) = self.engines.state(publisher) else {
            let text = format!("more than {MAX_ENGINES} publishers of engines");
            return Err(DecodeError::new(Reason::TooLarge, text).into());
        };
        match input {
            EngineInput::Link { state: link, detail } => {
                state.feed.link = *link;
                state.feed.detail.clear();
                state.feed.detail.push_str(detail);
                Ok(())
            }
            EngineInput::Replay(replay) => {
                state.feed.replay = *replay;
                Ok(())
            }
            EngineInput::Unreadable { error, .. } => {
                let faults = Faults::from((**error).clone());
                state.reject(&faults, received.at_ms);
                Err(faults)
            }
            EngineInput::Batch { run, sequence, is_replayed, body } => {
                let understood =
                    self.engine_batch(received, publisher, (*run, *sequence, *is_replayed), body, out);
                if let (Err(faults), Some(state)) = (&understood, self.engines.state(publisher)) {
                    state.reject(faults, received.at_ms);
                }
                understood
            }
        }
    }

    /// A publisher is gone for good, and its worker with it.
    fn engine_ended<S: Sink>(&mut self, received: &Received, publisher: &EnginePublisher, out: &mut S) {
        let Engines { of, senders, workers, changes, .. } = &mut self.engines;
        let Some(EngineState { publisher_id, feed, .. }) = of.shift_remove(&publisher.key) else { return };
        senders.remove(&publisher_id);
        // Other ranks of the engine may still be there.
        if of.values().all(|other| other.engine_name != publisher.engine_name) {
            workers.remove(&publisher.engine_name);
            *changes += 1;
        }
        record_end(received.at_ms, feed, out);
    }

    fn engine_batch<S: Sink>(
        &mut self,
        received: &Received,
        publisher: &EnginePublisher,
        (run, sequence, is_replayed): (u32, u64, bool),
        body: &[u8],
        out: &mut S,
    ) -> Result<(), Faults> {
        within_bounds(body)?;
        // The scratch leaves `self` while records borrow from it.
        let mut scratch = self.engines.scratch.take().unwrap_or_default();
        let understood =
            self.engine_batch_by(&mut scratch, received, publisher, (run, sequence, is_replayed), body, out);
        self.engines.scratch = Some(scratch);
        understood
    }

    fn engine_batch_by<S: Sink>(
        &mut self,
        (batch, hasher): &mut (EngineBatch, RouterHasher),
        received: &Received,
        publisher: &EnginePublisher,
        (run, sequence, is_replayed): (u32, u64, bool),
        body: &[u8],
        out: &mut S,
    ) -> Result<(), Faults> {
        let publisher_id = publisher.publisher_id(run);
        let Some(state) = self.engines.of.get_mut(&publisher.key) else { return Ok(()) };
        if state.publisher_id != publisher_id {
            self.engines.senders.remove(&state.publisher_id);
            (state.publisher_id, state.groups) = (publisher_id, CacheGroups::default());
        }
        self.engines.senders.entry(publisher_id).or_insert(publisher.key);
        let understood = batch.decode(body, &mut state.groups, hasher);
        let feed = &mut state.feed;
        feed.received += 1;
        feed.replayed += u64::from(is_replayed);
        feed.last_sequence = Some(sequence);
        feed.restarts = run.into();
        feed.block_size_tokens = batch.block_size_tokens.or(feed.block_size_tokens);
        feed.batch_form = batch.form.or(feed.batch_form);
        feed.event_form = batch.event_form.or(feed.event_form);
        feed.hash_form = batch.hash_form.or(feed.hash_form);
        feed.other_groups = feed.other_groups.saturating_add(batch.other_groups.into());
        // A publisher is of one rank.
        let rank = batch.rank.or(state.rank).unwrap_or(0);
        let own_rank = *state.rank.get_or_insert(if rank < MAX_RANK { rank } else { 0 });
        let worker = Worker { id: publisher.worker_id, dp_rank: own_rank };
        batch.assign(worker, sequence);
        // What is sent again happened when it was made.
        let made_ms = batch.at_ms.filter(|made| {
            is_replayed && *made <= received.at_ms && received.at_ms.since(*made) <= MAX_AGE_MS
        });
        let earlier = made_ms.map(|at_ms| Received { at_ms, ..received.clone() });
        let received = earlier.as_ref().unwrap_or(received);
        let envelope = Envelope {
            publisher_id,
            sequence,
            published_at: batch.at_ms.unwrap_or(received.at_ms),
            topic: b"",
            payload: body,
        };
        let context = Context::published(received, &publisher.subject, None, Some(&envelope));
        self.follow(&context, Some(worker), out);
        if rank != own_rank {
            let text =
                format!("engine's KV events: batch of rank {rank} from the publisher of rank {own_rank}");
            return Err(DecodeError::new(Reason::Malformed, text).into());
        }
        let ix = self.worker(&context, worker, out);
        for event in &batch.events {
            match event {
                EngineEvent::Kv(event) => {
                    self.engine_event(&context, publisher.engine, event, &batch.kv, out)
                }
                EngineEvent::Copied { tier, hashes } => {
                    // Only its tier and its worker count.
                    let (domain, data) =
                        (ResidencyDomain::Worker, KvData::Removed { hashes: hashes.clone() });
                    let of = KvEvent { worker, event_id: sequence, tier: *tier, domain, data };
                    if let Some(ix) = self.applicable(&context, &of, &batch.kv, EventTransport::Engine, out) {
                        copied(&context, (ix, lower_tier(&of)), batch.kv.removed_of(hashes), out);
                    }
                }
            }
        }
        if let (Some(ix), Some(state)) = (ix, self.engines.of.get_mut(&publisher.key)) {
            state.feed.worker = Some(ix);
        }
        understood
    }

    fn engine_event<S: Sink>(
        &mut self,
        context: &Context<'_>,
        engine: Option<Engine>,
        event: &KvEvent,
        kv: &KvEvents,
        out: &mut S,
    ) {
        let Some(ix) = self.applicable(context, event, kv, EventTransport::Engine, out) else { return };
        let by = context.published_by(event.worker);
        if let (Some(tier), KvData::Removed { hashes }) = (lower_tier(event), &event.data) {
            return removed_below(context, (ix, tier), kv.removed_of(hashes), out);
        }
        // SGLang empties its copies in host memory too, and says so once.
        let has_copies = || out.cluster().pool_of(ix).map(|pool| out.cluster().tier_tree(pool, Tier::Host));
        if engine == Some(Engine::Sglang)
            && matches!(event.data, KvData::Cleared)
            && has_copies().is_some_and(|tree| tree.holdings(ix.slot()).resident > 0)
        {
            out.published(&context.entry(Record::TierCleared { worker: ix, tier: Tier::Host }), by);
        }
        if matches!(event.data, KvData::Cleared) && event.is_in_device_memory() {
            return out.published(&context.entry(Record::Cleared { worker: ix, all_ranks: false }), by);
        }
        out.published(&context.entry(kv_record(ix, event, kv)), by);
        if let KvData::Stored { multimodal_inputs: count @ 1.., .. } = event.data {
            out.record(context.entry(Record::MultimodalInputs { worker: ix, count: count.into() }));
        }
    }
}

/// Records that a publisher is gone, and its worker with it.
pub(super) fn record_end(at_ms: Millis, mut feed: EngineFeed, out: &mut dyn Sink) {
    let is_there =
        |worker: &WorkerIx| out.cluster().worker(*worker).is_some_and(|state| state.departure.is_none());
    let left = feed.worker.filter(is_there);
    feed.link = LinkState::Ended;
    out.record(Entry { at_ms, record: Record::EngineFeed(Box::new(feed)) });
    if let Some(worker) = left {
        out.record(Entry { at_ms, record: Record::Left { worker, why: DepartureCause::Discovery } });
    }
}

/// Blocks that were copied to a lower tier and are only named: they are what the worker has, or had, under these names in device memory.
/// Those of which that is not known are counted.
fn copied(
    context: &Context<'_>,
    (ix, tier): (WorkerIx, Option<Tier>),
    hashes: &[BlockHash],
    out: &mut dyn Sink,
) {
    let mut runs: Vec<(Option<BlockHash>, Vec<Block>)> = Vec::new();
    let mut unknown = 0;
    for &hash in hashes {
        let Some((parent, block)) = tier.and_then(|_| described(out.cluster(), ix, hash)) else {
            unknown += 1;
            continue;
        };
        match runs.last_mut() {
            Some((_, blocks)) if blocks.last().map(|last| last.block_hash) == parent => blocks.push(block),
            _ => runs.push((parent, vec![block])),
        }
    }
    if let Some(tier) = tier {
        for (parent, blocks) in runs {
            let blocks = Cow::Owned(blocks);
            out.record(context.entry(Record::TierStored { worker: ix, tier, parent, blocks }));
        }
    }
    if unknown > 0 {
        out.record(context.entry(Record::OtherTier { worker: ix, stored: unknown, removed: 0 }));
    }
}

/// A block of a worker's device memory, and the one before it. `None`: it is not there, or what is before it is not.
fn described(cluster: &Cluster, ix: WorkerIx, hash: BlockHash) -> Option<(Option<BlockHash>, Block)> {
    let (node, slot) = (cluster.find(ix, hash)?, cluster.slot(ix)?);
    let tree: &Tree = cluster.tree_of(ix);
    let parent = match tree.parent(node)? {
        NodeId::ROOT => None,
        above if tree.owners(above).contains(slot) => Some(tree.block_hash_by(above, slot)),
        _ => return None,
    };
    Some((parent, Block { block_hash: hash, tokens_hash: tree.tokens_hash(node) }))
}

/// Blocks that left a lower tier. Those that were only counted when they came are only counted as they go.
fn removed_below(
    context: &Context<'_>,
    (ix, tier): (WorkerIx, Tier),
    hashes: &[BlockHash],
    out: &mut dyn Sink,
) {
    let cluster = out.cluster();
    let is_there = |hash: &BlockHash| {
        let tree = cluster.pool_of(ix).map(|pool| cluster.tier_tree(pool, tier));
        tree.zip(cluster.slot(ix)).is_some_and(|(tree, slot)| tree.find(slot, *hash).is_some())
    };
    let (known, unknown): (Vec<BlockHash>, Vec<BlockHash>) = hashes.iter().partition(|hash| is_there(hash));
    if !known.is_empty() {
        let hashes = known.into();
        out.record(context.entry(Record::TierRemoved { worker: ix, tier, hashes }));
    }
    if !unknown.is_empty() {
        out.record(context.entry(Record::OtherTier { worker: ix, stored: 0, removed: unknown.len() as u32 }));
    }
}
