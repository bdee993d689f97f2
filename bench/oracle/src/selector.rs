//! Dynamo's own worker selector, asked in our terms. Its costs are read out of its log, where the chosen worker's is
//! written in full. Must not know how our costs come about.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use dynamo_kv_router::indexer::{LowerTierMatchDetails, TieredMatchDetails};
use dynamo_kv_router::protocols::{RoutingConstraints, SharedCacheHits, StorageTier, WorkerWithDpRank};
use dynamo_kv_router::scheduling::overlap::{
    cache_hit_estimates_from_tiered_matches, tier_overlap_blocks_from_tiered_matches,
};
use dynamo_kv_router::scheduling::{OverlapSignals, ScheduleMode};
use dynamo_kv_router::test_utils::SimpleWorkerConfig;
use dynamo_kv_router::{
    DefaultWorkerSelector, KvRouterConfig, SchedulingRequest, WorkerLoadProjection, WorkerSelectionInput,
    WorkerSelector,
};
use radixscope_router::{RoutedRequest, RouterSettings, WorkerInput};
use rustc_hash::FxHashMap;
use tracing::field::{Field, Visit};

/// Preferred taints of a request, each with its weight, and who has which.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Taints {
    /// Weight of each taint the request prefers; empty where it prefers none.
    pub weights: Vec<f32>,
    /// By worker: which of them it has.
    pub has: Vec<Vec<bool>>,
}

/// A decision put to Dynamo's selector. A worker's index is its id.
pub struct Selection {
    workers: HashMap<u64, SimpleWorkerConfig>,
    request: SchedulingRequest,
    config: KvRouterConfig,
    worker_type: &'static str,
    block_size_tokens: u32,
}

impl Selection {
    /// `shared_hits` tells which blocks of the prompt the shared cache holds; of [`WorkerInput`] the sums derived
    /// from it and from `taints` are not read.
    pub fn new(
        options: &RouterSettings,
        request: &RoutedRequest,
        inputs: &[WorkerInput],
        shared_hits: &[bool],
        taints: &Taints,
    ) -> Self {
        let config = KvRouterConfig {
            overlap_score_credit: options.overlap_score_credit,
            overlap_score_credit_decay: options.overlap_score_credit_decay,
            prefill_load_scale: options.prefill_factor(),
            decode_active_request_weight: options.decode_active_request_weight,
            host_cache_hit_weight: options.host_cache_hit_weight,
            disk_cache_hit_weight: options.disk_cache_hit_weight,
            router_temperature: options.router_temperature,
            shared_cache_multiplier: Some(options.shared_cache_multiplier),
            ..KvRouterConfig::default()
        };
        let has = |worker: usize, taint: usize| taints.has.get(worker).is_some_and(|has| has[taint]);
        let worker_config = |worker: usize| SimpleWorkerConfig {
            taints: (0..taints.weights.len()).filter(|&t| has(worker, t)).map(taint_name).collect(),
            ..SimpleWorkerConfig::default()
        };
        let workers = (0..inputs.len()).map(|worker| (worker as u64, worker_config(worker))).collect();
        let weights = taints.weights.iter().enumerate();
        let constraints = RoutingConstraints {
            required_taints: HashSet::new(),
            preferred_taints: weights.map(|(taint, &weight)| (taint_name(taint), weight)).collect(),
        };
        let overlap = overlap(&config, request.block_size_tokens, inputs);
        Self {
            workers,
            request: SchedulingRequest {
                mode: ScheduleMode::QueryOnly { request_id: None },
                token_seq: None,
                isl_tokens: request.isl_tokens as usize,
                lora_name: None,
                expected_output_tokens: None,
                affinity_target: None,
                pinned_worker: None,
                allowed_worker_ids: None,
                routing_constraints: constraints,
                router_config_override: None,
                track_prefill_tokens: options.track_prefill_tokens,
                priority_jump: 0.0,
                strict_priority: 0,
                policy_class: None,
                session_context: None,
                overlap,
                kv_transfer_candidates: None,
                retain_kv_transfer_chain: false,
                shared_cache_hits: (!shared_hits.is_empty()).then(|| SharedCacheHits::from_hits(shared_hits)),
                worker_loads: loads(inputs),
                resp_tx: None,
            },
            config,
            worker_type: options.role.worker_type(),
            block_size_tokens: request.block_size_tokens,
        }
    }

    /// The worker type to select for, where it is not the options' own.
    pub fn with_worker_type(self, worker_type: &'static str) -> Self {
        Self { worker_type, ..self }
    }

    /// The worker that the selector chooses with a generator of this seed, and its cost.
    pub fn choose(&self, temperature: f64, seed: u64) -> Option<(usize, f64)> {
        let config = KvRouterConfig { router_temperature: temperature, ..self.config.clone() };
        let selector = DefaultWorkerSelector::new_seeded(Some(config), self.worker_type, seed);
        COST.set(None);
        let chosen = self.select(&selector)?;
        Some((chosen, COST.get()?))
    }

    /// Every worker's cost, each as logged when that worker is drawn out of all: at an endless temperature all are
    /// equally likely, and the seed decides. `seeds` must be of as many workers.
    pub fn costs(&self, seeds: &Seeds) -> Option<Vec<f64>> {
        let cost = |worker| {
            let (chosen, cost) = self.choose(ENDLESS, seeds.of(self.workers.len(), worker))?;
            (chosen == worker).then_some(cost)
        };
        (0..self.workers.len()).map(cost).collect()
    }

    /// A selector with the generator it has in production.
    pub fn selector(&self) -> DefaultWorkerSelector {
        DefaultWorkerSelector::new(Some(self.config.clone()), self.worker_type)
    }

    /// One selection.
    pub fn select(&self, selector: &DefaultWorkerSelector) -> Option<usize> {
        let eligibility = self.request.eligibility();
        let input = WorkerSelectionInput::configured(
            &self.workers,
            &self.request,
            eligibility,
            self.block_size_tokens,
        );
        selector.select_worker(input).ok().map(|chosen| chosen.worker.worker_id as usize)
    }

    /// Sets the device overlap of every worker, in blocks, as a look-up in the tree found it.
    pub fn set_device_overlap(&mut self, scores: FxHashMap<WorkerWithDpRank, u32>) {
        let mut matches = TieredMatchDetails::default();
        matches.device.overlap_scores.scores = scores;
        self.request.overlap = signals(&self.config, self.block_size_tokens, &matches);
    }
}

/// So high that all workers are equally likely, whatever they cost.
const ENDLESS: f64 = 1e300;

fn taint_name(taint: usize) -> String {
    format!("taint-{taint}")
}

fn loads(inputs: &[WorkerInput]) -> FxHashMap<WorkerWithDpRank, WorkerLoadProjection> {
    let load = |(worker, input): (u64, &WorkerInput)| {
        let load = input.load?;
        let projection = WorkerLoadProjection {
            active_prefill_tokens: load.active_prefill_tokens as usize,
            active_decode_blocks: load.decode_blocks as usize,
            active_requests: load.active_requests as usize,
            additional_active_blocks: 0,
        };
        Some((WorkerWithDpRank::new(worker, 0), projection))
    };
    (0..).zip(inputs).filter_map(load).collect()
}

fn overlap(config: &KvRouterConfig, block_size_tokens: u32, inputs: &[WorkerInput]) -> OverlapSignals {
    let mut matches = TieredMatchDetails::default();
    for (worker, input) in (0..).zip(inputs) {
        let worker = WorkerWithDpRank::new(worker, 0);
        let overlap = input.overlap;
        if overlap.device > 0 {
            matches.device.overlap_scores.scores.insert(worker, overlap.device);
        }
        let tiers = [
            (StorageTier::HostPinned, overlap.host),
            (StorageTier::Disk, overlap.disk),
            (StorageTier::External, overlap.external),
        ];
        for (tier, blocks) in tiers.into_iter().filter(|(_, blocks)| *blocks > 0) {
            let tier: &mut LowerTierMatchDetails = matches.lower_tier.entry(tier).or_default();
            tier.hits.insert(worker, blocks as usize);
        }
    }
    signals(config, block_size_tokens, &matches)
}

fn signals(config: &KvRouterConfig, block_size_tokens: u32, matches: &TieredMatchDetails) -> OverlapSignals {
    let estimates = cache_hit_estimates_from_tiered_matches(config, block_size_tokens, matches);
    OverlapSignals {
        tier_overlap_blocks: tier_overlap_blocks_from_tiered_matches(matches),
        effective_overlap_blocks: estimates.effective_overlap_blocks,
        effective_cached_tokens: estimates.cached_tokens,
    }
}

/// The draw in `[0, 1)` that a seed gives the selector.
pub fn draw_of(seed: u64) -> f64 {
    fastrand::Rng::with_seed(seed).f64()
}

/// Seeds whose draws fall well into each of `n` equal parts.
pub struct Seeds(Vec<Vec<u64>>);

impl Seeds {
    /// For up to `workers` workers.
    pub fn up_to(workers: usize) -> Self {
        let seed = |worker: usize, of: usize| {
            let middle = |seed: &u64| ((draw_of(*seed) * of as f64 - worker as f64) - 0.5).abs() < 0.4;
            (0..).find(middle).unwrap_or_default()
        };
        Self((1..=workers).map(|of| (0..of).map(|worker| seed(worker, of)).collect()).collect())
    }

    fn of(&self, workers: usize, worker: usize) -> u64 {
        self.0[workers - 1][worker]
    }
}

thread_local! {
    static COST: Cell<Option<f64>> = const { Cell::new(None) };
}

/// Listens to the selector's log and keeps the cost of the worker selected last, per thread. To be installed with
/// `tracing::subscriber::with_default`.
pub struct CostLog;

impl tracing::Subscriber for CostLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::INFO && metadata.fields().field("logit").is_some()
    }

    fn event(&self, event: &tracing::Event<'_>) {
        struct Logit;
        impl Visit for Logit {
            fn record_f64(&mut self, field: &Field, value: f64) {
                if field.name() == "logit" {
                    COST.set(Some(value));
                }
            }

            fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
        }
        event.record(&mut Logit);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
