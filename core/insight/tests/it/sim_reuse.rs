//! Where the reuse of prompts is lost, block for block and cause for cause as simulated deployments lost it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use radixscope_captures::Simulated;
use radixscope_dynamo::envelope;
use radixscope_dynamo::kv_event::{KvData, KvEvents, StorageTier};
use radixscope_dynamo::request_plane::Codec;
use radixscope_dynamo::tree_query::{TreeResponse, decode_response};
use radixscope_insight::reuse::{LossCause, PromptReuse};
use radixscope_intake::{Command, Intake, Payload, Received};
use radixscope_model::id::{BlockHash, Millis, Worker};
use radixscope_model::record::{Completeness, GoneReason, NotReconstructed, SourceKind};
use radixscope_router::RouterSettings;
use radixscope_sim::{
    Channel, Config, DecisionRecord, Fault, FaultPlan, RequestRecord, Simulation, Topology, WorkerSelection,
    Workload,
};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::simulated::START;

/// What is simulated, and from when it is watched.
struct Scenario {
    config: Config,
    seconds: u64,
    watched_from_s: u64,
    /// One of so many messages that say of removed blocks is lost on its way to who watches, and workers are asked for their blocks
    /// then.
    lost_every: Option<NonZeroU32>,
}

/// Conversations go on longer than caches hold them.
fn scenario(topology: Topology) -> Scenario {
    let config = Config {
        topology,
        traces: topology != Topology::AggregatedV0_9,
        blocks_per_worker: 1_200,
        block_size_tokens: 16,
        concurrency: 160,
        max_batch: 16,
        max_num_tokens: 1_024,
        workload: Workload { think_ms: (2_000, 20_000), ..Workload::short() },
        ..Config::default()
    };
    Scenario { config, seconds: 120, watched_from_s: 0, lost_every: None }
}

/// When a worker ceased to hold a block, and why; times in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Removal {
    at: u64,
    worker: u64,
    why: GoneReason,
}

/// A block of a pool, which its first worker stands for.
type PoolBlock = (u16, BlockHash);

/// When blocks were first stored, who holds them, and how they ceased to be held by any worker, as the engines' events say.
#[derive(Default)]
struct Blocks {
    /// First worker of each worker's pool.
    pools: HashMap<u64, u16>,
    stored: HashMap<PoolBlock, u64>,
    holders: HashMap<PoolBlock, Vec<(u64, StorageTier)>>,
    gone: HashMap<PoolBlock, Vec<Removal>>,
}

impl Blocks {
    fn new(simulation: &Simulation) -> Self {
        let of_pool = simulation.config().workers;
        let all = 0..simulation.workers();
        let pools = all.map(|worker| (simulation.worker_id(worker), worker / of_pool * of_pool)).collect();
        Self { pools, ..Self::default() }
    }

    /// Events that were received.
    fn apply(&mut self, at: Millis, events: &KvEvents) {
        for event in &events.events {
            let worker = event.worker.id.0;
            let pool = self.pools[&worker];
            match &event.data {
                KvData::Stored { blocks, .. } => {
                    for block in events.blocks_of(blocks) {
                        let block = (pool, block.block_hash);
                        self.stored.entry(block).or_insert(at.0);
                        let holders = self.holders.entry(block).or_default();
                        if !holders.contains(&(worker, event.tier)) {
                            holders.push((worker, event.tier));
                        }
                    }
                }
                KvData::Removed { hashes } => {
                    let removal = Removal { at: at.0, worker, why: GoneReason::Evicted };
                    for &hash in events.removed_of(hashes) {
                        self.remove((pool, hash), removal, |of| of == (worker, event.tier));
                    }
                }
                KvData::Cleared => {
                    let removal = Removal { at: at.0, worker, why: GoneReason::Cleared };
                    self.lose_all(removal, |of| of == (worker, event.tier));
                }
            }
        }
    }

    /// A worker holds nothing any more, or nothing in a tier.
    fn lose_all(&mut self, removal: Removal, is_gone: impl Fn((u64, StorageTier)) -> bool + Copy) {
        let pool = self.pools[&removal.worker];
        let blocks: Vec<PoolBlock> = self.holders.keys().filter(|of| of.0 == pool).copied().collect();
        blocks.into_iter().for_each(|block| self.remove(block, removal, is_gone));
    }

    fn remove(&mut self, block: PoolBlock, removal: Removal, is_gone: impl Fn((u64, StorageTier)) -> bool) {
        let Some(holders) = self.holders.get_mut(&block) else { return };
        let before = holders.len();
        holders.retain(|of| !is_gone(*of));
        if before > 0 && holders.is_empty() {
            self.gone.entry(block).or_default().push(removal);
        }
    }

    /// A worker listed all its blocks: what it does not list it removed, though no event that was received said so.
    fn listed(&mut self, at: Millis, worker: u64, events: &KvEvents) {
        let pool = self.pools[&worker];
        let mut holds: HashSet<(BlockHash, StorageTier)> = HashSet::new();
        for event in &events.events {
            let KvData::Stored { blocks, .. } = &event.data else { panic!("a worker lists what it holds") };
            holds.extend(events.blocks_of(blocks).iter().map(|block| (block.block_hash, event.tier)));
        }
        let removal = Removal { at: at.0, worker, why: GoneReason::NotReported };
        let blocks: Vec<PoolBlock> = self.holders.keys().filter(|of| of.0 == pool).copied().collect();
        for block in blocks {
            self.remove(block, removal, |of| of.0 == worker && !holds.contains(&(block.1, of.1)));
        }
        self.apply(at, events);
    }

    /// How many blocks of a prompt were stored before its decision: what was in the same millisecond may have been or not.
    fn seen(&self, truth: &DecisionRecord) -> RangeInclusive<u32> {
        let seen_by = |before: &dyn Fn(u64) -> bool| {
            let is_seen = |hash: &&BlockHash| {
                self.stored.get(&(truth.first_worker, **hash)).is_some_and(|&at| before(at))
            };
            truth.prompt.iter().take_while(is_seen).count() as u32
        };
        seen_by(&|at| at < truth.at_ms.0)..=seen_by(&|at| at <= truth.at_ms.0)
    }
}

/// What a deployment did, and the state that was made of what it emitted.
struct Run {
    decisions: Vec<DecisionRecord>,
    requests: Vec<RequestRecord>,
    blocks: Blocks,
    cluster: Cluster,
    simulation: Simulation,
    /// Of a worker, from the last message before one that was lost to the list of blocks that it gave afterwards.
    uncertain: Vec<(u64, Range<Millis>)>,
}

/// What is lost on its way, and what was asked for then.
#[derive(Default)]
struct Losses {
    every: Option<NonZeroU32>,
    messages: u32,
    /// When the last message of each publisher was received that was not lost.
    received: HashMap<u64, Millis>,
    /// Since when it is not known what a worker holds, and whether a later message of it has shown that.
    since: HashMap<u64, (Millis, bool)>,
    over: Vec<(u64, Range<Millis>)>,
    /// Workers that published or answered a query.
    met: HashSet<u64>,
}

impl Losses {
    /// The first sign of a worker. Where workers are queried, until then nobody knows whether it holds anything.
    fn meet(&mut self, at: Millis, worker: u64) {
        if self.met.insert(worker) && self.every.is_some() {
            self.over.push((worker, START..Millis(at.0 + 1)));
        }
    }

    /// Whether a message with these events is lost.
    fn takes(&mut self, at: Millis, worker: u64, events: &KvEvents) -> bool {
        let removes = events.events.iter().any(|event| matches!(event.data, KvData::Removed { .. }));
        self.messages += u32::from(removes);
        let is_lost = removes && self.every.is_some_and(|every| self.messages.is_multiple_of(every.get()));
        if is_lost {
            let since = self.received.get(&worker).copied().unwrap_or(START);
            self.since.entry(worker).or_insert((since, false)).1 = false;
        } else {
            self.meet(at, worker);
            self.received.insert(worker, at);
            self.since.entry(worker).and_modify(|(_, is_noticed)| *is_noticed = true);
        }
        is_lost
    }

    /// A worker listed its blocks. A loss that nothing has shown yet will be doubted all the same.
    fn listed(&mut self, at: Millis, worker: u64) {
        self.meet(at, worker);
        if let Some((since, true)) = self.since.get(&worker) {
            self.over.push((worker, *since..Millis(at.0 + 1)));
            self.since.remove(&worker);
        }
    }
}

/// What a frontend lists: where each worker can be asked for its blocks.
fn instances(simulation: &Simulation) -> Payload {
    const ENDPOINT: &str = "worker_kv_indexer_query_dp0";
    let instance = |worker| {
        let (id, component) = (simulation.worker_id(worker), simulation.component(worker));
        serde_json::json!({"component": component, "endpoint": ENDPOINT, "namespace": "dynamo",
            "instance_id": id, "transport": {"tcp": format!("10.0.0.1:1/{id:x}/{ENDPOINT}")}})
    };
    let instances: Vec<_> = (0..simulation.workers()).map(instance).collect();
    let response = serde_json::json!({"status": "healthy", "instances": instances}).to_string().into();
    Payload::Health { frontend: "frontend".into(), response }
}

fn run(scenario: Scenario) -> Run {
    let Scenario { config, seconds, watched_from_s, lost_every } = scenario;
    let mut simulation = Simulation::new(config, START).expect("sound");
    let mut blocks = Blocks::new(&simulation);
    let (mut simulated, mut events) = (Simulated::default(), KvEvents::default());
    let mut losses = Losses { every: lost_every, ..Losses::default() };
    // Queries are answered as soon as they are sent.
    let step_ms: u64 = if lost_every.is_some() { 5 } else { 250 };
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let source = intake.source("simulated", SourceKind::Simulator, START, &mut cluster).expect("sound");
    let mut decisions: Vec<DecisionRecord> = Vec::new();
    let watched_from = Millis(START.0 + watched_from_s * 1_000);
    if lost_every.is_some() {
        let received = Received { source, at_ms: START, payload: instances(&simulation) };
        intake.handle(&received, &mut cluster);
    }
    for step in 1..=seconds * 1_000 / step_ms {
        let until = Millis(START.0 + step * step_ms);
        simulation.run_until(until, &mut |m| {
            if m.channel == Channel::Nats && m.name.ends_with("kv-events") {
                decode(m.payload, &mut events);
                let worker = events.events.first().expect("no message is empty").worker.id.0;
                if losses.takes(m.at_ms, worker, &events) {
                    return;
                }
                blocks.apply(m.at_ms, &events);
            }
            let removed = m.channel == Channel::Log && m.name.starts_with("frontend");
            if let Some(worker) =
                std::str::from_utf8(m.payload).ok().filter(|_| removed).and_then(removed_worker)
            {
                let removal = Removal { at: m.at_ms.0, worker, why: GoneReason::Left };
                blocks.lose_all(removal, |of| of.0 == worker);
            }
            // Discovery is there for everybody who comes.
            if m.at_ms >= watched_from || m.channel == Channel::Discovery {
                let received = Received { source, at_ms: m.at_ms, payload: simulated.payload(&m) };
                intake.handle(&received, &mut cluster);
            }
        });
        let last = decisions.last().map_or((Millis(0), 0), |of| (of.at_ms, of.user));
        let is_new = |of: &&DecisionRecord| (of.at_ms, of.user) > last && of.at_ms > last.0;
        decisions.extend(simulation.report().decisions.iter().filter(is_new).cloned());
        if (step * step_ms).is_multiple_of(1_000) && until >= watched_from {
            intake.flush(until, &mut cluster);
        }
        for command in intake.commands() {
            let Command::Query(query) = command else { continue };
            let (payload, response) = answer(&simulation, query.id, query.endpoint.worker);
            let TreeResponse::TreeDump { events, .. } = response else { panic!("{response:?}") };
            blocks.listed(until, query.endpoint.worker.id.0, &events);
            losses.listed(until, query.endpoint.worker.id.0);
            intake.handle(&Received { source, at_ms: until, payload }, &mut cluster);
        }
    }
    let requests = simulation.report().requests.iter().copied().collect();
    let still = losses.since.into_iter().map(|(worker, (since, _))| (worker, since..Millis(u64::MAX)));
    let uncertain = losses.over.into_iter().chain(still).collect();
    Run { decisions, requests, blocks, cluster, simulation, uncertain }
}

fn decode(message: &[u8], events: &mut KvEvents) {
    let opened = envelope::open(message).expect("sound");
    let (payload, format) = opened.payload();
    events.decode(payload, format).expect("sound");
}

/// What a worker answers to a query for all its blocks.
fn answer(simulation: &Simulation, query: u64, worker: Worker) -> (Payload, TreeResponse) {
    let of_all = (0..simulation.workers()).find(|&of| simulation.worker_id(of) == worker.id.0);
    let item = simulation.tree_dump(of_all.expect("it is simulated"));
    let response = decode_response(&item, Codec::Json, worker).expect("sound").expect("not the last one");
    let outcome = Arc::new(Ok(response.clone()));
    (Payload::TreeResponse { query, outcome, size_bytes: item.len() }, response)
}

/// The worker of a line that says that it left.
fn removed_worker(line: &str) -> Option<u64> {
    let (_, worker) = line.split_once("Removing worker WorkerWithDpRank { worker_id: ")?;
    worker.split_once(',')?.0.parse().ok()
}

/// What was compared.
#[derive(Default)]
struct Compared {
    decisions: usize,
    /// Blocks: of prompts, seen, held, held by the chosen worker.
    blocks: [u64; 4],
    /// Tokens lost for each cause.
    tokens: BTreeMap<LossCause, u64>,
    /// Decisions of which the engine's cached tokens are reported.
    reported: usize,
}

impl Run {
    /// Decisions with the entry of each, where exactly one fits.
    fn pairs(&self) -> impl Iterator<Item = (&DecisionRecord, &DecisionEntry)> {
        let mut entries: HashMap<_, Vec<&DecisionEntry>> = HashMap::new();
        for entry in self.cluster.decisions().newest_first() {
            let decision = &entry.decision;
            entries
                .entry((decision.worker, decision.isl_tokens, entry.decided_ms()))
                .or_default()
                .push(entry);
        }
        self.decisions.iter().filter_map(move |truth| {
            let chosen = self.cluster.worker_ix(Worker::new(self.simulation.worker_id(truth.worker), 0))?;
            match entries.get(&(chosen, Some(truth.isl_tokens.into()), truth.at_ms))?[..] {
                [entry] => Some((truth, entry)),
                _ => None,
            }
        })
    }

    /// Whether it was not known around a decision what a worker of its pool holds. What is computed of it a little later rests on what
    /// is known then.
    fn is_uncertain(&self, truth: &DecisionRecord) -> bool {
        const COMPUTED_WITHIN_MS: u64 = 600;
        let around =
            |of: &Range<Millis>| truth.at_ms < of.end && truth.at_ms.0 + COMPUTED_WITHIN_MS >= of.start.0;
        let is_of_pool = |worker: &u64| self.blocks.pools[worker] == truth.first_worker;
        self.uncertain.iter().any(|(worker, of)| is_of_pool(worker) && around(of))
    }

    /// The request of a decision, once it ended.
    fn request(&self, truth: &DecisionRecord) -> Option<&RequestRecord> {
        let ended_after = |of: &&RequestRecord| {
            let is_there = of.worker == truth.worker || of.prefill_worker == Some(truth.worker);
            is_there
                && of.user == truth.user
                && of.isl_tokens == truth.isl_tokens
                && of.finished_at_ms >= truth.at_ms
        };
        self.requests.iter().find(ended_after)
    }

    /// Compares every decision of which the prompt is known: at least so many of ten.
    fn compare(&self, least: usize) -> Compared {
        let mut compared = Compared::default();
        for (truth, entry) in self.pairs() {
            let Some(reuse) = entry.reuse else { continue };
            if self.is_uncertain(truth) {
                continue;
            }
            compared.decisions += 1;
            let cached = |at: usize| truth.truth[at].cached_blocks;
            let chosen_at = usize::from(truth.worker - truth.first_worker);
            let all = 0..truth.truth.len();
            let could_be_chosen = |at: &usize| *at == chosen_at || truth.truth[*at].is_eligible;
            let held = all.clone().map(cached).max().expect("sound");
            let eligible = all.clone().filter(could_be_chosen).map(cached).max().expect("sound");
            let (chosen, seen) = (cached(chosen_at), self.blocks.seen(truth));
            assert_eq!(reuse.prompt_blocks as usize, truth.prompt.len(), "{truth:?}");
            assert_eq!((reuse.held_blocks, reuse.eligible_blocks), (held, eligible), "{truth:?} {entry:?}");
            assert_eq!(reuse.chosen_blocks, chosen, "{entry:?}");
            assert!(seen.contains(&reuse.seen_blocks), "{} of {seen:?}: {reuse:?}", reuse.seen_blocks);

            let mut expected = BTreeMap::new();
            let size = u64::from(self.simulation.config().block_size_tokens);
            let isl_tokens = u64::from(truth.isl_tokens);
            let mut lose = |cause, tokens: u64| {
                if tokens > 0 {
                    *expected.entry(cause).or_insert(0) += tokens;
                }
            };
            lose(LossCause::BelowBlock, isl_tokens - truth.prompt.len() as u64 * size);
            lose(LossCause::FirstSeen, u64::from(reuse.prompt_blocks - reuse.seen_blocks) * size);
            lose(self.why_gone(truth, entry), u64::from(reuse.seen_blocks - held) * size);
            lose(LossCause::NotEligible, u64::from(held - eligible) * size);
            if eligible > chosen {
                let holder = reuse.holder.expect("a worker held it");
                let holder = self.cluster.worker(holder).expect("sound").id.id.0;
                let of_pool =
                    |at: &usize| self.simulation.worker_id(truth.first_worker + *at as u16) == holder;
                let holder_at = all.clone().find(of_pool).expect("of this pool");
                assert_eq!(cached(holder_at), eligible);
                // What the router's own index had of it, where it says so.
                let indexed = match entry.decision.completeness {
                    Completeness::AllCandidates => {
                        let of = &truth.candidates[holder_at].candidate;
                        (of.overlap_blocks + of.host_blocks).clamp(chosen, eligible)
                    }
                    _ => eligible,
                };
                lose(LossCause::RouterIndex, u64::from(eligible - indexed) * size);
                let cost = |at: usize| truth.candidates[at].candidate.cost;
                let cause = match truth.is_bound {
                    true => LossCause::Affinity,
                    false if self.simulation.config().selection == WorkerSelection::TwoTier => {
                        LossCause::Policy
                    }
                    false if entry.decision.candidates.is_empty() => LossCause::Skipped,
                    false if cost(holder_at) <= cost(chosen_at) => LossCause::Chance,
                    false => LossCause::Load,
                };
                lose(cause, u64::from(indexed - chosen) * size);
            }
            let found = PromptReuse::of(entry).expect("known");
            if found.reused.is_some() {
                let request = self.request(truth).expect("it ended");
                let cached = u64::from(request.cached_tokens);
                assert_eq!(found.reused, Some(cached.min(isl_tokens)), "{truth:?}");
                compared.reported += 1;
                let unused = (u64::from(chosen) * size).saturating_sub(cached);
                let of_last = if u64::from(chosen) * size == isl_tokens { unused.min(size) } else { 0 };
                lose(LossCause::BelowBlock, of_last);
                lose(LossCause::EngineHadLess, unused - of_last);
            }
            let losses: BTreeMap<_, _> = found.losses.iter().copied().collect();
            assert_eq!(losses, expected, "{truth:?} {entry:?}");
            let of = [reuse.prompt_blocks, reuse.seen_blocks, held, chosen];
            compared.blocks.iter_mut().zip(of).for_each(|(sum, of)| *sum += u64::from(of));
            losses
                .into_iter()
                .for_each(|(cause, tokens)| *compared.tokens.entry(cause).or_default() += tokens);
        }
        assert!(
            compared.decisions * 10 >= self.decisions.len() * least,
            "{} of {} decisions",
            compared.decisions,
            self.decisions.len()
        );
        compared
    }

    /// Why the first block that no worker held was not held, by the engines' events; the entry has to name the same worker and time.
    fn why_gone(&self, truth: &DecisionRecord, entry: &DecisionEntry) -> LossCause {
        let reuse = entry.reuse.expect("known");
        let is_scattered = truth.cached_anywhere_blocks > reuse.held_blocks;
        let is_gone = reuse.seen_blocks > reuse.held_blocks && !is_scattered;
        assert_eq!(reuse.gone.is_some(), is_gone, "{truth:?} {reuse:?}");
        let Some(gone) = reuse.gone else { return LossCause::Scattered };
        let hash = truth.prompt[reuse.held_blocks as usize];
        let last = self.blocks.gone[&(truth.first_worker, hash)]
            .iter()
            .rfind(|of| of.at <= truth.at_ms.0)
            .copied()
            .expect("it went before");
        assert_eq!(self.cluster.worker(gone.worker).expect("sound").id.id.0, last.worker, "{reuse:?}");
        assert!(gone.at_ms.0 <= last.at && last.at < gone.at_ms.0 + 100, "{last:?}: {reuse:?}");
        assert_eq!(gone.why, last.why, "{last:?}: {reuse:?}");
        match gone.why {
            GoneReason::Evicted => LossCause::Evicted,
            GoneReason::Cleared => LossCause::Cleared,
            GoneReason::Left => LossCause::WorkerLeft,
            GoneReason::NotReported => LossCause::EventLost,
        }
    }
}

impl Compared {
    /// That these causes took most, and how many decisions report what their engines reused.
    fn expect(&self, name: &str, causes: &[LossCause], reports: bool) {
        println!("{name}: {} decisions, {} reported, {:?}", self.decisions, self.reported, self.tokens);
        for cause in causes {
            let tokens = self.tokens.get(cause).copied().unwrap_or(0);
            assert!(tokens > 1_000, "{name}: {cause:?} {tokens}: {:?}", self.tokens);
        }
        assert!(
            self.reported * 10 >= if reports { self.decisions * 7 } else { 0 },
            "{name}: {}",
            self.reported
        );
    }
}

#[test]
fn what_no_worker_held_was_evicted_and_what_was_skipped_was_on_a_busier_worker() {
    let compared = run(scenario(Topology::AggregatedV0_9)).compare(9);
    assert!(compared.blocks.is_sorted_by(|a, b| a > b), "each step loses some: {:?}", compared.blocks);
    let causes = [LossCause::BelowBlock, LossCause::FirstSeen, LossCause::Evicted, LossCause::Load];
    compared.expect("evicted", &causes, false);
}

#[test]
fn what_a_worker_cleared_was_cleared() {
    let mut scenario = scenario(Topology::AggregatedV0_9);
    scenario.config.cleared_every_ms = NonZeroU32::new(20_000);
    run(scenario).compare(9).expect("cleared", &[LossCause::Cleared, LossCause::Evicted], false);
}

#[test]
fn what_a_worker_held_that_left_went_with_it() {
    let mut scenario = scenario(Topology::AggregatedV0_9);
    scenario.config.fault = Some(FaultPlan { fault: Fault::KillWorker, after_ms: 40_000 });
    run(scenario).compare(9).expect("left", &[LossCause::WorkerLeft, LossCause::Evicted], false);
}

#[test]
fn a_router_that_draws_passes_over_cheaper_workers_by_chance() {
    let mut scenario = scenario(Topology::AggregatedV0_9);
    scenario.config.router = RouterSettings { router_temperature: 0.5, ..scenario.config.router };
    run(scenario).compare(9).expect("chance", &[LossCause::Chance, LossCause::Load], false);
}

#[test]
fn a_session_that_is_bound_stays_with_its_worker_whoever_holds_more() {
    let mut scenario = scenario(Topology::Tiers);
    scenario.config.session_affinity = true;
    // After it cleared its cache, others hold the beginning of its sessions' prompts.
    scenario.config.cleared_every_ms = NonZeroU32::new(20_000);
    run(scenario).compare(9).expect("affinity", &[LossCause::Affinity, LossCause::Cleared], true);
}

#[test]
fn what_an_engine_reused_is_what_it_cached() {
    run(scenario(Topology::Tiers)).compare(9).expect("tiers", &[LossCause::FirstSeen, LossCause::Load], true);
}

/// An engine that looks at blocks alone evicts the beginning of a prompt and keeps what follows it.
#[test]
fn of_what_several_workers_hold_in_pieces_none_holds_all() {
    let mut scenario = scenario(Topology::TwoModels);
    scenario.config.evicts_beginnings = true;
    // So many beginnings and workers that few requests use a beginning on the same worker.
    scenario.config.workload.starters = 40;
    (scenario.config.workers, scenario.config.blocks_per_worker) = (6, 700);
    run(scenario).compare(9).expect("pieces", &[LossCause::Scattered, LossCause::Evicted], true);
}

#[test]
fn another_policy_than_the_cost_passes_over_who_holds_more() {
    let mut scenario = scenario(Topology::Tiers);
    scenario.config.selection = WorkerSelection::TwoTier;
    run(scenario).compare(9).expect("policy", &[LossCause::Policy, LossCause::FirstSeen], true);
}

/// A worker that died is in discovery until its lease ends; its router leaves it out as soon as it cannot reach it.
#[test]
fn what_a_worker_holds_that_cannot_be_reached_is_on_none_that_could_be_chosen() {
    let mut scenario = scenario(Topology::Tiers);
    scenario.config.fault = Some(FaultPlan { fault: Fault::KillWorker, after_ms: 40_000 });
    run(scenario).compare(9).expect("unreachable", &[LossCause::NotEligible, LossCause::WorkerLeft], true);
}

/// Messages are lost on their way, and workers list their blocks then.
#[test]
fn what_a_list_of_blocks_lacks_was_removed_by_an_event_that_was_lost() {
    let mut scenario = scenario(Topology::TwoModels);
    scenario.lost_every = NonZeroU32::new(60);
    run(scenario).compare(4).expect("lost", &[LossCause::EventLost, LossCause::FirstSeen], true);
}

/// A trace comes when its request is over, up to half a minute after its worker was chosen.
#[test]
fn traces_alone_show_what_was_cached_when_a_worker_was_chosen() {
    let mut scenario = scenario(Topology::Tiers);
    scenario.config.replica_sync = false;
    let run = run(scenario);
    let compared = run.compare(8);
    compared.expect("traces", &[LossCause::FirstSeen, LossCause::Skipped], true);
    let unknown =
        run.pairs().filter(|(_, entry)| entry.decision.not_reconstructed == Some(NotReconstructed::Loads));
    assert!(unknown.count() * 10 >= compared.decisions * 9);
}

/// An engine whose removals are lost on the way is believed to hold more than it does.
#[test]
fn where_events_are_lost_engines_reuse_less_than_expected() {
    let mut scenario = scenario(Topology::Tiers);
    scenario.config.fault = Some(FaultPlan { fault: Fault::Gap, after_ms: 0 });
    let run = run(scenario);
    let (mut less, mut reported) = (0, 0);
    for (truth, entry) in run.pairs() {
        let Ok(found) = PromptReuse::of(entry) else { continue };
        let lost: u64 = found.losses.iter().map(|(_, tokens)| tokens).sum();
        let reused = found.reused.unwrap_or(found.steps[4]).min(found.steps[4]);
        assert_eq!(lost + reused, u64::from(truth.isl_tokens), "{found:?}");
        let Some(request) = run.request(truth).filter(|_| found.reused.is_some()) else { continue };
        assert_eq!(found.reused, Some(request.cached_tokens.into()));
        reported += 1;
        less += found.losses.iter().filter(|(cause, _)| *cause == LossCause::EngineHadLess).count();
    }
    println!("lost events: {less} of {reported} decisions reused less");
    assert!(less > 0 && reported > 1_000, "{less} of {reported}");
}

/// Whoever comes late does not know what was cached before: of no block that is not cached now it is said that it is new.
#[test]
fn blocks_of_which_nothing_is_known_are_not_called_new() {
    let mut scenario = scenario(Topology::AggregatedV0_9);
    scenario.watched_from_s = 60;
    let run = run(scenario);
    let size = u64::from(run.simulation.config().block_size_tokens);
    let (mut compared, mut unknown, mut were_cached) = (0, 0, 0);
    for (truth, entry) in run.pairs() {
        let (Some(reuse), Ok(found)) = (entry.reuse, PromptReuse::of(entry)) else { continue };
        compared += 1;
        assert_eq!(reuse.prompt_blocks as usize, truth.prompt.len(), "{truth:?}");
        let tokens_of = |cause| found.losses.iter().find(|of| of.0 == cause).map_or(0, |of| of.1);
        let unseen = u64::from(reuse.prompt_blocks - reuse.seen_blocks) * size;
        assert_eq!(tokens_of(LossCause::NotKnown), unseen, "{entry:?}");
        assert_eq!(tokens_of(LossCause::FirstSeen), 0, "{entry:?}");
        unknown += unseen;
        were_cached += u64::from(run.blocks.seen(truth).start().saturating_sub(reuse.seen_blocks)) * size;
    }
    println!("late: {unknown} tokens in {compared} decisions, of which {were_cached} had been cached");
    assert!(were_cached > 1_000 && unknown > were_cached && compared > 300, "{were_cached} {compared}");
}

/// A router that starts anew does not follow events for a minute.
#[test]
fn what_the_routers_index_lacks_is_named_while_it_is_cold() {
    let mut scenario = scenario(Topology::AggregatedV0_9);
    scenario.config.fault = Some(FaultPlan { fault: Fault::RouterRestart, after_ms: 40_000 });
    let run = run(scenario);
    let is_cold = |at: Millis| (40_000..=100_000).contains(&at.since(START));
    let compared = run.compare(8);
    compared.expect("index", &[LossCause::RouterIndex, LossCause::Evicted], false);
    let (mut while_cold, mut else_where) = (0, 0);
    for (truth, entry) in run.pairs() {
        let Ok(found) = PromptReuse::of(entry) else { continue };
        let lost: u64 = found.losses.iter().filter(|of| of.0 == LossCause::RouterIndex).map(|of| of.1).sum();
        *(if is_cold(truth.at_ms) { &mut while_cold } else { &mut else_where }) += lost;
    }
    println!("index: {while_cold} tokens while cold, {else_where} otherwise");
    assert!(while_cold > 10_000 && else_where == 0, "{while_cold} {else_where}");
}
