//! What a worker costs, by each of Dynamo's formulas (reference §5.1–5.7), with every term kept. The operations come
//! in Dynamo's order, so that equal inputs give equal bits. Must not know the other workers: what is compared across
//! them comes as [`Common`].

use serde::{Deserialize, Serialize};

use super::settings::{Formula, Role, RouterSettings};
use radixscope_model::record::Candidate;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RoutedRequest {
    /// Length of the prompt.
    pub isl_tokens: u64,
    /// The router's block size, at least 1.
    pub block_size_tokens: u32,
    /// Whether the request prefers workers with certain taints (C–E); without, nothing is multiplied.
    pub prefers_taints: bool,
}

impl RoutedRequest {
    /// A request without preferences.
    pub const fn new(isl_tokens: u64, block_size_tokens: u32) -> Self {
        Self { isl_tokens, block_size_tokens, prefers_taints: false }
    }

    /// `N_req`: blocks of the prompt, the begun one included.
    pub fn blocks(&self) -> u64 {
        self.isl_tokens.div_ceil(self.block_size().into())
    }

    /// A claimed size of 0 must not divide.
    fn block_size(&self) -> u32 {
        self.block_size_tokens.max(1)
    }

    fn in_blocks(&self, tokens: u64) -> f64 {
        tokens as f64 / f64::from(self.block_size())
    }
}

/// What a worker has been given to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    /// `A_w`: tokens of requests whose first token has not come.
    #[serde(rename = "prefill_tokens")]
    pub active_prefill_tokens: u64,
    /// `D_w + N_w`: blocks in use, with those that this request would add.
    pub decode_blocks: u64,
    /// `R_w`: requests not finished.
    pub active_requests: u64,
}

/// What a worker holds of the prompt, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Overlap {
    /// On the device; all that formula A knows.
    pub device: u32,
    /// In host memory, beyond the device.
    pub host: u32,
    /// On disk, beyond those.
    pub disk: u32,
    /// In external storage, beyond those; from C on it earns what disk earns, B counts it as cached only.
    pub external: u32,
    /// In the shared cache, at positions from the rounded device overlap on.
    pub shared_beyond_device: u32,
}

impl Overlap {
    /// Only on the device.
    pub const fn device(blocks: u32) -> Self {
        Self { device: blocks, host: 0, disk: 0, external: 0, shared_beyond_device: 0 }
    }

    /// Blocks that earn the credit of disk: Dynamo adds external storage to them from 1.3 on.
    fn disk_credited(&self, formula: Formula) -> u32 {
        if formula == Formula::B { self.disk } else { self.disk.saturating_add(self.external) }
    }

    /// `eff_w`: device blocks and the weighted lower tiers.
    fn effective(&self, options: &RouterSettings) -> f64 {
        let (h, g) = (options.host_cache_hit_weight, options.disk_cache_hit_weight);
        let host = f64::from(self.host) * h;
        f64::from(self.device) + host + f64::from(self.disk) * g + f64::from(self.external) * g
    }
}

/// A candidate.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerInput {
    /// `None` where the router's load map has no entry for the worker; Dynamo then assumes the defaults of §5.1.
    pub load: Option<Load>,
    /// What it holds of the prompt.
    pub overlap: Overlap,
    /// Sum of the request's weights of those preferred taints that the worker has.
    pub taint_weight: f64,
    /// Blocks of the worker in the router's index; it breaks ties up to 1.1. 0 where the worker has no overlap: the
    /// router does not know it then (reference §5.8).
    pub tree_size_blocks: u64,
}

/// What is compared across all eligible workers before one is scored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Common {
    /// Least `A_w` of all eligible workers; a worker without load entry counts 0.
    pub least_prefill_tokens: u64,
    /// Whether any worker has a match on its device, in host memory or on disk.
    pub has_tier_overlap: bool,
}

impl Common {
    /// Of all eligible workers.
    pub fn of(formula: Formula, inputs: &[WorkerInput]) -> Self {
        let prefill = |w: &WorkerInput| w.load.map_or(0, |load| load.active_prefill_tokens);
        let in_tier = |w: &WorkerInput| {
            w.overlap.device > 0 || w.overlap.host > 0 || w.overlap.disk_credited(formula) > 0
        };
        Self {
            least_prefill_tokens: inputs.iter().map(prefill).min().unwrap_or(0),
            has_tier_overlap: inputs.iter().any(in_tier),
        }
    }
}

/// A cost and what it is made of; all in blocks unless noted.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Terms {
    /// The formula.
    pub formula: Formula,
    /// Prompt tokens to compute on this worker, credit not yet taken, in blocks. In A what the worker holds is already
    /// left out.
    pub raw_prefill_blocks: f64,
    /// Taken off for what lies in caches (B–E).
    pub credit_blocks: f64,
    /// Factor on the device credit because of prefill load (C–E), 1 where nothing decays.
    pub credit_decay: f64,
    /// Prompt blocks to compute after the credit, not below 0.
    pub prefill_blocks: f64,
    /// Weight (A) or scale (B–E).
    pub prefill_factor: f64,
    /// Blocks in use with those of this request.
    pub decode_blocks: f64,
    /// Cost of active requests (D, E).
    pub active_request_blocks: f64,
    /// Factor for preferred taints (C–E), `None` where the request prefers none.
    pub taint_multiplier: Option<f64>,
    /// Whether the credit came off the decode blocks and prefill did not count: decode pools of D and E.
    pub is_decode_only: bool,
    /// The sum; lower wins.
    pub cost: f64,
}

/// The cost of one worker: [`Terms::cost`], without what else [`terms`] shows.
#[inline]
pub(crate) fn cost(
    options: &RouterSettings,
    request: &RoutedRequest,
    common: Common,
    worker: &WorkerInput,
) -> f64 {
    terms(options, request, common, worker).cost
}

/// Scores one worker. `request.block_size_tokens` 0 counts as 1.
#[inline]
pub fn terms(
    options: &RouterSettings,
    request: &RoutedRequest,
    common: Common,
    worker: &WorkerInput,
) -> Terms {
    match options.formula {
        Formula::A => formula_a(options, request, worker),
        _ => with_credits(options, request, common, worker),
    }
}

#[inline]
fn formula_a(options: &RouterSettings, request: &RoutedRequest, worker: &WorkerInput) -> Terms {
    let block_size = u64::from(request.block_size());
    let cached_tokens = u64::from(worker.overlap.device) * block_size;
    let (prefill_tokens, decode_blocks) = match (options.track_prefill_tokens, worker.load) {
        (true, Some(load)) => (
            load.active_prefill_tokens.saturating_add(request.isl_tokens.saturating_sub(cached_tokens)),
            load.decode_blocks,
        ),
        (true, None) => (request.isl_tokens, request.isl_tokens / block_size),
        (false, load) => (0, load.map_or(0, |load| load.decode_blocks)),
    };
    let decode_blocks = if options.router_track_active_blocks { decode_blocks } else { 0 };
    let prefill_blocks = request.in_blocks(prefill_tokens);
    let decode_blocks = decode_blocks as f64;
    Terms {
        formula: Formula::A,
        raw_prefill_blocks: prefill_blocks,
        credit_blocks: 0.0,
        credit_decay: 1.0,
        prefill_blocks,
        prefill_factor: options.overlap_score_weight,
        decode_blocks,
        active_request_blocks: 0.0,
        taint_multiplier: None,
        is_decode_only: false,
        cost: options.overlap_score_weight * prefill_blocks + decode_blocks,
    }
}

#[inline]
fn with_credits(
    options: &RouterSettings,
    request: &RoutedRequest,
    common: Common,
    worker: &WorkerInput,
) -> Terms {
    let formula = options.formula;
    let plain_decode =
        formula == Formula::E && options.role == Role::Decode && !options.conditional_disaggregation;
    let credit =
        if plain_decode && !options.track_prefill_tokens { 0.0 } else { options.overlap_score_credit };
    let uses_cache = formula != Formula::E || (!plain_decode && options.overlap_score_credit != 0.0);
    let overlap = if uses_cache { worker.overlap } else { Overlap::default() };
    let load = worker.load.unwrap_or_default();

    let effective = overlap.effective(options);
    let device = if common.has_tier_overlap { f64::from(overlap.device) } else { effective };
    let credit_decay = decay(options, request, common, load.active_prefill_tokens);
    let shared = options.shared_cache_multiplier * f64::from(overlap.shared_beyond_device);
    let credit_blocks = credit * credit_decay * device
        + options.host_cache_hit_weight * f64::from(overlap.host)
        + options.disk_cache_hit_weight * f64::from(overlap.disk_credited(formula))
        + shared;
    let raw_prefill_tokens = match (options.track_prefill_tokens, worker.load) {
        (false, _) => 0,
        (true, None) => request.isl_tokens,
        (true, Some(load)) => {
            let cached_tokens = rounded(effective * f64::from(request.block_size()));
            load.active_prefill_tokens
                .saturating_add(request.isl_tokens.saturating_sub(cached_tokens))
                .saturating_add(cached_tokens)
        }
    };
    let raw_prefill_blocks = request.in_blocks(raw_prefill_tokens);
    let counts_requests = matches!(formula, Formula::D | Formula::E);
    let active_request_blocks = if counts_requests {
        options.decode_active_request_weight * load.active_requests as f64
    } else {
        0.0
    };
    let is_decode_only = counts_requests
        && options.role.worker_type() == "decode"
        && !options.track_prefill_tokens
        && credit > 0.0;
    let decode_blocks = if options.router_track_active_blocks { load.decode_blocks as f64 } else { 0.0 };
    let prefill_blocks = if is_decode_only { 0.0 } else { (raw_prefill_blocks - credit_blocks).max(0.0) };
    let base = if is_decode_only {
        (decode_blocks - credit_blocks).max(0.0) + active_request_blocks
    } else {
        options.prefill_load_scale * prefill_blocks + decode_blocks + active_request_blocks
    };
    let knows_taints = formula != Formula::B;
    let taint_multiplier =
        (knows_taints && request.prefers_taints).then(|| (-worker.taint_weight.tanh()).exp());
    Terms {
        formula,
        raw_prefill_blocks,
        credit_blocks,
        credit_decay,
        prefill_blocks,
        prefill_factor: options.prefill_load_scale,
        decode_blocks,
        active_request_blocks,
        taint_multiplier,
        is_decode_only,
        cost: taint_multiplier.map_or(base, |multiplier| base * multiplier),
    }
}

/// `tokens` to the nearest whole number, halves up, below 0 and what is no number to 0: `round` without a call into the
/// C library, which it is where the processor's own rounding cannot be assumed.
fn rounded(tokens: f64) -> u64 {
    let whole = tokens as u64;
    whole.saturating_add(u64::from(tokens - whole as f64 >= 0.5))
}

/// How much of the device credit is left under this worker's prefill load.
fn decay(options: &RouterSettings, request: &RoutedRequest, common: Common, prefill_tokens: u64) -> f64 {
    let rate = options.overlap_score_credit_decay;
    if options.formula == Formula::B || !options.track_prefill_tokens || rate <= 0.0 {
        return 1.0;
    }
    let excess_blocks = request.in_blocks(prefill_tokens.saturating_sub(common.least_prefill_tokens));
    // The crate of 1.6 takes an empty prompt for one block; before, that was 0/0.
    let request_blocks =
        if options.formula == Formula::E { request.blocks().max(1) } else { request.blocks() };
    1.0 / (1.0 + rate * (excess_blocks / request_blocks as f64))
}

impl Terms {
    /// A worker with these terms, which held so much of the prompt.
    pub fn candidate<W>(&self, worker: W, overlap: Overlap, tree_size: Option<u64>) -> Candidate<W> {
        let &Self { prefill_blocks, decode_blocks, cost, .. } = self;
        Candidate {
            worker,
            overlap_blocks: overlap.device,
            host_blocks: overlap.host,
            disk_blocks: overlap.disk.saturating_add(overlap.external),
            prefill_blocks,
            decode_blocks,
            cost,
            tree_size,
        }
    }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
pub(crate) mod tests;
