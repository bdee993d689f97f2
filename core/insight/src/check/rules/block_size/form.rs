//! Which form of the mismatch it is (reference §9.1), by the signature on the wire and by what logs say.

use super::super::prelude::*;
use crate::check::Totals;
use crate::check::chains::Chains;
use radixscope_model::id::PoolIx;
use radixscope_model::record::{Counter, LogSignal};
use radixscope_state::cluster::ProcessState;

/// Stored or removed events of a worker that make a signature.
const MIN_EVENTS: u64 = 10;
/// Removed blocks that a worker never stored, of its share to be one.
const MIN_UNKNOWN_BLOCKS: u64 = 20;
/// A worker is judged after it was received for so long.
const MIN_AGE_MS: u64 = 8_000;
/// Decisions that make "always 0".
pub(super) const MIN_DECISIONS: u64 = 30;
/// Blocks in the trees before a router can be taken to miss them.
const MIN_RESIDENT: u64 = 100;
/// Times that prompts share a block before they can be taken to share prefixes.
const MIN_SHARED: u64 = 5;
/// A log signal counts for this long.
const SIGN_MS: u64 = 300_000;

/// The forms. E: engine, P: publisher, C: router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MismatchKind {
    /// 1: E above P, TensorRT-LLM: stores are dropped whole.
    Oversize,
    /// 2: E below P, TensorRT-LLM: stores are empty, removals swallowed.
    Partial,
    /// 3: E is not P, vLLM and SGLang: stores are empty, removals come.
    Relay,
    /// 2 or 3: not known yet.
    Emptied,
    /// 4: E is P but not C.
    Router,
    /// Cards of one component differ.
    Cards,
}

impl MismatchKind {
    pub(super) const fn to_text(self) -> &'static str {
        match self {
            MismatchKind::Oversize => "1: E above P, TensorRT-LLM up to 1.5",
            MismatchKind::Partial => "2: E below P, TensorRT-LLM up to 1.5",
            MismatchKind::Relay => "3: E differs from P, vLLM or SGLang",
            MismatchKind::Emptied => {
                "2 or 3: E differs from P; no removal was received that would show which"
            }
            MismatchKind::Router => "4: E and P agree, C differs",
            MismatchKind::Cards => "C differs between workers",
        }
    }
}

/// Overlap of the decisions lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::check::rules) struct Overlap {
    pub(in crate::check::rules) decisions: u64,
    pub(in crate::check::rules) blocks: u64,
    pub(in crate::check::rules) isl_blocks: u64,
}

/// A kind of mismatch and the workers affected.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Diagnosis {
    pub(super) form: MismatchKind,
    pub(super) workers: Vec<WorkerIx>,
    /// Of form 4.
    pub(super) overlap: Option<Overlap>,
    /// Of form 4.
    pub(super) chains: Option<Chains>,
    /// E ÷ C, a power of two; of form 4.
    pub(super) engine_per_router: Option<f64>,
}

impl Diagnosis {
    fn new(form: MismatchKind, workers: Vec<WorkerIx>) -> Self {
        Self { form, workers, overlap: None, chains: None, engine_per_router: None }
    }
}

/// The fault with the most workers, if there is one.
pub(super) fn diagnose(view: &View<'_>) -> Option<Diagnosis> {
    let (mut dropped, mut emptied) = (Vec::new(), Vec::new());
    for worker in view.present() {
        match signature(view, worker) {
            Some(MismatchKind::Oversize) => dropped.push(worker),
            Some(_) => emptied.push(worker),
            None => {}
        }
    }
    if dropped.is_empty() && emptied.is_empty() {
        return router_differs(view).or_else(|| cards_differ(view));
    }
    if dropped.len() > emptied.len() {
        return Some(Diagnosis::new(MismatchKind::Oversize, dropped));
    }
    Some(Diagnosis::new(form_of_empty_stores(view, &emptied), emptied))
}

/// What the KV events of a worker alone say: dropped stores, emptied stores, or neither.
fn signature(view: &View<'_>, worker: WorkerIx) -> Option<MismatchKind> {
    let state = view.worker(worker)?;
    if view.now.since(state.first_ms) < MIN_AGE_MS {
        return None;
    }
    let (totals, _) = view.lately(worker);
    let unknown_removals = totals.unknown_removed >= MIN_UNKNOWN_BLOCKS
        && totals.unknown_removed * 10 >= totals.removed * 9
        && totals.remove_events >= MIN_EVENTS;
    // An engine evicts because it stores: removals alone mean that the stores were dropped on the way.
    if state.store_events_total == 0 && (unknown_removals || logs_dropped_stores(view, worker, totals.chosen))
    {
        return Some(MismatchKind::Oversize);
    }
    let all_empty = totals.store_events >= MIN_EVENTS && totals.empty_stores * 20 >= totals.store_events * 19;
    (all_empty && continues_something(&totals)).then_some(MismatchKind::Emptied)
}

/// Whether a worker's log reports dropped stores, and this worker, which gets requests, stores nothing.
fn logs_dropped_stores(view: &View<'_>, worker: WorkerIx, chosen: u64) -> bool {
    let signs = view.cluster.signs().iter();
    let mut dropped = signs.filter(|state| matches!(state.sign, LogSignal::Oversize { .. }));
    let says = dropped.any(|state| state.workers.is_empty() || state.workers.contains(&worker));
    says && chosen >= MIN_EVENTS
}

/// Prompts shorter than a block also come as empty stores (TensorRT-LLM); those of longer ones continue a block, and
/// their prompts have more than one.
fn continues_something(totals: &Totals) -> bool {
    let with_parent = totals.unknown_parents * 5 >= totals.empty_stores;
    let long_prompts = totals.chosen >= MIN_EVENTS && totals.isl_blocks >= 2 * totals.chosen;
    with_parent || long_prompts
}

fn form_of_empty_stores(view: &View<'_>, workers: &[WorkerIx]) -> MismatchKind {
    let is_logged = |wanted: fn(&LogSignal) -> bool| view.cluster.sign(wanted).is_some();
    if is_logged(|sign| matches!(sign, LogSignal::PublisherSize { .. })) || relays(view) {
        return MismatchKind::Relay;
    }
    let totals = workers.iter().map(|&worker| view.session(worker));
    let all = totals.fold(Totals::default(), Totals::plus);
    if all.unknown_removed >= MIN_UNKNOWN_BLOCKS {
        return MismatchKind::Relay;
    }
    // Every stored event is a new block at least: more than the caches hold and no removal means that they are swallowed.
    let capacities: Option<u64> = workers.iter().map(|&worker| view.capacity_blocks(worker)).sum();
    match capacities {
        Some(capacity) if all.remove_events == 0 && all.store_events > capacity => MismatchKind::Partial,
        _ => MismatchKind::Emptied,
    }
}

/// Whether a worker's metrics say that its publisher relays an engine's ZMQ events and found empty stores.
fn relays(view: &View<'_>) -> bool {
    let suspicious = |p: &ProcessState| p.counter_value(Counter::PublisherSuspicious);
    view.processes().filter_map(suspicious).any(|count| count > 0.0)
}

/// Form 4: a pool's tree is full and prompts share prefixes, yet the overlap is 0, and chains are not as long as prompts.
fn router_differs(view: &View<'_>) -> Option<Diagnosis> {
    view.cluster.pools_in_use().into_iter().find_map(|pool| router_differs_in(view, pool))
}

fn router_differs_in(view: &View<'_>, pool: PoolIx) -> Option<Diagnosis> {
    let overlap = overlap(view, pool);
    let negative = view.cluster.sign(|sign| *sign == LogSignal::NegativePrefill);
    let negative = negative.is_some_and(|state| view.now.since(state.last_ms) <= SIGN_MS);
    let zero = overlap.decisions >= MIN_DECISIONS
        && overlap.blocks == 0
        && overlap.isl_blocks >= 2 * overlap.decisions;
    let is_full = view.cluster.tree(pool).totals().resident >= MIN_RESIDENT;
    if !is_full || !(zero || negative) {
        return None;
    }
    let chains = view.chains_in(pool);
    let repeats =
        chains.shared >= MIN_SHARED || view.cached_tokens(WINDOW_MS).is_some_and(|tokens| tokens > 0);
    let ratio = engine_per_router(view, pool, &chains);
    let differs = ratio.is_some_and(|ratio| ratio != 1.0);
    // The line names no pool: of several it is one whose lengths differ too.
    let negative = negative && (differs || view.cluster.pools_in_use().len() == 1);
    (negative || (repeats && differs)).then(|| Diagnosis {
        overlap: Some(overlap),
        chains: Some(chains),
        engine_per_router: ratio.filter(|&ratio| ratio != 1.0),
        ..Diagnosis::new(MismatchKind::Router, holders(view, pool))
    })
}

fn holders(view: &View<'_>, pool: PoolIx) -> Vec<WorkerIx> {
    let tree = view.cluster.tree(pool);
    view.present_in(pool).filter(|&worker| tree.holdings(worker.slot()).resident > 0).collect()
}

/// Overlap of decisions lately in a pool that report it, and that looked at what workers hold.
pub(in crate::check::rules) fn overlap(view: &View<'_>, pool: PoolIx) -> Overlap {
    let mut sum = Overlap { decisions: 0, blocks: 0, isl_blocks: 0 };
    for decided in view.decisions(WINDOW_MS).filter(|d| d.pool == pool && !d.ignores_cache) {
        if let Some((isl, blocks)) = decided.decision.isl_blocks.zip(decided.overlap_blocks()) {
            sum.decisions += 1;
            sum.blocks += blocks;
            sum.isl_blocks += isl;
        }
    }
    sum
}

/// E ÷ C, rounded to a power of two: the longest prompt in the router's blocks against the longest chain in the
/// engine's. Answers make chains longer, so less than 1 counts only where their lengths are known.
fn engine_per_router(view: &View<'_>, pool: PoolIx, chains: &Chains) -> Option<f64> {
    if chains.longest_blocks == 0 {
        return None;
    }
    let decisions = view.decisions(WINDOW_MS).filter(|decided| decided.pool == pool);
    let longest = decisions.max_by_key(|decided| decided.decision.isl_blocks)?;
    let isl_blocks = longest.decision.isl_blocks? as f64;
    let size = longest.decision.block_size_tokens.map(f64::from);
    let response = longest.progress.output_tokens.zip(size).map(|(tokens, size)| tokens as f64 / size);
    let ratio = (isl_blocks + response.unwrap_or(0.0)) / chains.longest_blocks as f64;
    let rounded = ratio.log2().round().exp2();
    (rounded >= 1.0 || response.is_some()).then_some(rounded)
}

/// Whether workers of one component register different sizes.
fn cards_differ(view: &View<'_>) -> Option<Diagnosis> {
    let of = |worker: WorkerIx| {
        let state = view.worker(worker)?;
        Some((state.pool, state.block_size_tokens?))
    };
    let known: Vec<_> = view.present().filter_map(|worker| Some((worker, of(worker)?))).collect();
    let differs = |pool: PoolIx, size: u32| known.iter().any(|(_, (p, s))| *p == pool && *s != size);
    let workers: Vec<_> =
        known.iter().filter(|(_, (pool, size))| differs(*pool, *size)).map(|(w, _)| *w).collect();
    (!workers.is_empty()).then(|| Diagnosis::new(MismatchKind::Cards, workers))
}
