//! What every worker would have cost a request, computed from the tree and the active requests as they were when the
//! router weighed it, and held against what the router itself reported.
//!
//! The router applies an event some milliseconds after it was published, and its own steps some before they are
//! written. So several states are possible within a small window around a decision: the one nearest to it that agrees
//! with the router's words, and in which its choice was the cheapest, is taken. Nothing else is fitted to them: where no
//! such state is known, or an input is not, nothing is computed.

use super::book::TracedCosts;
use super::changes::TreeChanges;
use super::past::Past;
use super::stores::{EvictionWindow, Starts};
use radixscope_model::id::{BlockHash, DecisionId, TokensHash, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{
    Candidate, DisplacedBy, GoneReason, NotReconstructed, PathEnd, Reuse, same_cost,
};
use radixscope_router::cost::{self, Common, Load, Overlap, RoutedRequest, WorkerInput};
use radixscope_router::hash::chain_hash;
use radixscope_router::{Formula, RouterSettings};
use radixscope_state::cluster::{Cluster, TierBlocks, TierPaths, is_peer};
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::{ActiveSequences, LoadTime, PastLoad, Prompt};
use radixscope_state::tree::OverlapRule;

/// More candidates than this are not reconstructed: one decision would outweigh all others kept.
const MAX_CANDIDATES: usize = 1 << 12;
/// How long before a decision something may have been published that the router did not know yet when it decided: the
/// way from a worker over the broker into its tree, under load.
const BEFORE_MS: u64 = 50;
/// How long after a decision something may be reported that the router knew already: clocks of two machines, and words
/// that are written after the deed.
pub(super) const AFTER_MS: u64 = 20;
/// Most hashes that are computed to find blocks of one prompt among those that were removed since its choice: some milliseconds.
const MOST_COMPARISONS: usize = 1 << 20;

/// Times tried of each kind. Within the window more changes concern one prompt or its workers only under a load at
/// which neighbouring states hardly differ.
const MAX_TIMES: usize = 16;
/// Agreeing states whose whole field is worked out to find one in which the choice was the cheapest.
const MAX_AGREEING: usize = 8;

/// All that is reported of a choice, as far as its costs depend on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct RouterReport {
    pub(super) decision: DecisionId,
    pub(super) worker: WorkerIx,
    /// When the router decided, by its clock.
    pub(super) at: Micros,
    /// When it looked up what workers hold: earlier where the request waited in its queue afterwards.
    pub(super) looked_up: Micros,
    /// Whether its log gave that time.
    pub(super) is_logged: bool,
    pub(super) isl_tokens: Option<u64>,
    pub(super) block_size_tokens: Option<u32>,
    /// Blocks that the chosen worker held.
    pub(super) overlap_blocks: Option<u64>,
    /// Blocks beyond those that it held below its device, where the log contains them.
    pub(super) lower_tier_blocks: Option<u64>,
    /// What it cost.
    pub(super) logit: Option<f64>,
    /// As a report shows it.
    pub(super) formula: Option<Formula>,
    /// Whether the lowest cost decided, as far as is known: else another worker may have cost less.
    pub(super) is_by_cost: bool,
    /// Whether only the request's trace shows its prompt: then the requests of that time are not known.
    pub(super) is_traced: bool,
    /// Whether the router counts blocks that it expects as cached.
    pub(super) predicts: bool,
    /// Whether the cost contains blocks of a shared cache.
    pub(super) has_shared_cache: bool,
    /// How many candidates' costs the router's trace has.
    pub(super) traced_costs: usize,
    /// Whether the prompt's hashes are those of its blocks: decode routers name blocks at random where they do not expect that
    /// blocks are used again.
    pub(super) is_named: bool,
}

impl RouterReport {
    /// Whether only what the router reported of the chosen worker is different.
    pub(super) fn differs_only_in_reports(&self, other: &Self) -> bool {
        let Self { overlap_blocks, logit, .. } = *other;
        Self { overlap_blocks, logit, ..*self } == *other
    }
}

/// A choice to be weighed again.
#[derive(Clone, Copy)]
pub(super) struct WeighedChoice<'a> {
    pub(super) report: &'a RouterReport,
    pub(super) prompt: Prompt<'a>,
    /// What loads name its blocks by, where that is something else.
    pub(super) tracked: Option<&'a [u64]>,
    /// What its candidates cost, by the router's trace.
    pub(super) traced_costs: Option<&'a TracedCosts>,
    /// What the router runs with.
    pub(super) settings: RouterSettings,
}

/// All that is needed to weigh a request.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) changes: &'a TreeChanges,
    pub(super) active: &'a ActiveSequences,
    /// Workers that a router reported to count load for.
    pub(super) counted: &'a PerWorker<bool>,
}

/// Every worker's cost, by worker index.
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    pub(super) formula: Formula,
    pub(super) prefill_factor: f64,
    pub(super) path: Option<PathEnd>,
    /// The state of the trees that agreed.
    pub(super) at: Micros,
}

/// Memory to be used again.
#[derive(Default)]
pub(super) struct Reconstructor {
    past: Past,
    tiers: TierPaths,
    chain: Vec<u64>,
    local: Vec<TokensHash>,
    overlaps: Vec<u32>,
    /// Overlaps a millisecond before, where the router reported less.
    earlier: Vec<u32>,
    workers: Vec<WorkerIx>,
    /// Whether the prompt that was weighed last is in `past`.
    is_loaded: bool,
    /// Hashes of its blocks, each with everything before it.
    blocks: Vec<u64>,
    /// Whether any worker held each of them.
    are_held: Vec<bool>,
    /// Tokens of blocks that were removed since.
    removed_since: Vec<TokensHash>,
    /// By slot: whether the router could choose the worker.
    is_eligible: Vec<bool>,
    inputs: Vec<WorkerInput>,
    /// The deepest block of the latest prompt that any worker held at one of the times tried, if any was.
    depth: Option<u32>,
    /// Times tried, of the tree and of the loads.
    tree_times: Vec<Micros>,
    load_times: Vec<Micros>,
}

impl WeighedChoice<'_> {
    /// Loads at that time, as far as the order of choices does not tell more.
    fn when(&self, at: Micros) -> LoadTime {
        LoadTime { at, decided: self.report.at, is_logged: self.report.is_logged }
    }
}

impl Ground<'_> {
    /// Whether loads and what these workers held are known at a time.
    fn knows(&self, at: Micros, workers: &[WorkerIx]) -> bool {
        self.active.knows(at) && workers.iter().all(|&worker| self.changes.knows(worker, at))
    }

    fn counts(&self, worker: WorkerIx) -> bool {
        self.counted.get(worker).is_some_and(|&counted| counted)
    }
}

impl Reconstructor {
    /// Blocks of `prompt` that `worker` holds now, by the rule of Dynamo from 1.0 on: on its device, and beyond that below.
    pub(super) fn overlap(
        &mut self,
        cluster: &Cluster,
        prompt: Prompt<'_>,
        worker: WorkerIx,
    ) -> (u32, TierBlocks) {
        let pool = cluster.pool_of(worker).unwrap_or_default();
        prompt.local_in(cluster.trees_in(pool), &mut self.local);
        cluster.tree(pool).overlap(OverlapRule::Prefix, self.local.iter().copied(), &mut self.overlaps);
        let device = self.overlaps.get(worker.slot().at()).copied().unwrap_or(0);
        self.tiers.follow(cluster, pool, &self.local);
        (device, self.tiers.beyond(cluster, pool, worker, device))
    }

    /// Where the part of `prompt` ends that any worker of the pool of `worker` holds now.
    pub(super) fn path_end(
        &mut self,
        cluster: &Cluster,
        worker: WorkerIx,
        prompt: Prompt<'_>,
    ) -> Option<PathEnd> {
        let pool = cluster.pool_of(worker)?;
        prompt.local(cluster.tree(pool), &mut self.local);
        super::paths::path_end(cluster, pool, &self.local)
    }

    /// How deep any worker held the prompt that was weighed last, in blocks, at one of the times around the choice. `None`: what
    /// workers held then is not known.
    pub(super) fn depth(&self) -> Option<u32> {
        self.depth
    }

    /// Weighs all workers that the router could have chosen: those of the chosen one's component that are not known to
    /// be gone.
    ///
    /// Of several `possible` settings those count with which it agrees with everything that the router reported. If the costs
    /// still depend on which they were, none are known.
    pub(super) fn weigh(
        &mut self,
        ground: Ground<'_>,
        choice: &WeighedChoice<'_>,
        possible: &[RouterSettings],
        departed: impl Fn(WorkerIx) -> bool,
    ) -> Result<Found, NotReconstructed> {
        let mut all = possible
            .iter()
            .map(|&settings| self.weigh_with(ground, &WeighedChoice { settings, ..*choice }, &departed));
        let mut best = all.next().unwrap_or(Err(NotReconstructed::Cost));
        for other in all {
            best = match (best, other) {
                (Ok(one), Ok(other)) if one.candidates != other.candidates => {
                    return Err(NotReconstructed::Cost);
                }
                (Ok(found), _) | (Err(_), Ok(found)) => Ok(found),
                (Err(missing), Err(_)) => Err(missing),
            };
        }
        best
    }

    /// What was found of the prompt before is of another one.
    fn forget(&mut self) {
        (self.is_loaded, self.depth) = (false, None);
    }

    /// Looks back to what workers held around a choice, for [`Self::reuse`] and [`Self::search`].
    pub(super) fn look_back(
        &mut self,
        ground: Ground<'_>,
        choice: &WeighedChoice<'_>,
        departed: &impl Fn(WorkerIx) -> bool,
    ) -> Result<(), NotReconstructed> {
        self.forget();
        let Ground { cluster, changes, .. } = ground;
        let like = cluster.workers().get(choice.report.worker).ok_or(NotReconstructed::State)?;
        self.workers.clear();
        let peers = cluster.workers().indexed().filter(|(_, worker)| is_peer(cluster, worker, like));
        let peers = peers.take(MAX_CANDIDATES).map(|(ix, _)| ix);
        self.workers.extend(peers.filter(|&worker| worker == choice.report.worker || !departed(worker)));
        let looked_up = choice.report.looked_up;
        let is_known = |worker| changes.knows(worker, choice.report.at) && changes.knows(worker, looked_up);
        if !self.workers.iter().all(|&worker| is_known(worker)) {
            return Err(NotReconstructed::State);
        }
        let pool = like.pool;
        let (looked_from, looked_to) = (looked_up.minus_ms(BEFORE_MS), looked_up.plus_ms(AFTER_MS));
        self.past.load(cluster, pool, changes, choice.prompt, looked_from.before());
        self.tiers.follow(cluster, pool, self.past.prompt());
        let tree = cluster.tree_of(choice.report.worker);
        let rule_of = rule(choice.settings.formula);
        if !choice.report.is_named && self.past.overlap(tree, rule_of, looked_up, &mut self.overlaps) == 0 {
            return Err(NotReconstructed::Prompt);
        }
        self.is_loaded = true;
        nearest(
            &mut self.tree_times,
            looked_up,
            self.past.times().filter(|at| (looked_from..=looked_to).contains(at)),
        );
        Ok(())
    }

    /// The same with the settings of `choice`.
    fn weigh_with(
        &mut self,
        ground: Ground<'_>,
        choice: &WeighedChoice<'_>,
        departed: &impl Fn(WorkerIx) -> bool,
    ) -> Result<Found, NotReconstructed> {
        self.forget();
        let lengths = (choice.report.isl_tokens, choice.report.block_size_tokens);
        let (Some(isl_tokens), Some(block_size)) = lengths else {
            return Err(NotReconstructed::BlockSize);
        };
        let request = RoutedRequest::new(isl_tokens, block_size);
        let active = ground.active;
        if !active.knows(choice.report.at) {
            return Err(NotReconstructed::State);
        }
        self.look_back(ground, choice, departed)?;
        if choice.report.has_shared_cache {
            return Err(NotReconstructed::SharedCache);
        }
        match choice.tracked {
            Some(tracked) => tracked.clone_into(&mut self.chain),
            None => choice.prompt.chain(&mut self.chain),
        }
        let (from, to) = (choice.report.at.minus_ms(BEFORE_MS), choice.report.at.plus_ms(AFTER_MS));
        nearest(&mut self.load_times, choice.report.at, active.times(from, to, choice.report.is_logged));
        self.load_times.retain(|&at| active.knows(at));
        let is_listed = |&worker: &WorkerIx| {
            let past = active.load_at(worker, choice.when(choice.report.at), choice.report.decision, &[]);
            past.was_used || ground.counts(worker)
        };
        // Of 1.2 a worker has an entry in the load map when the router says that it counts load for it, or from its
        // first request on. Where neither was received, the entries of all such workers were made together or not at all.
        if choice.settings.formula != Formula::B || self.workers.iter().all(is_listed) {
            return self.search(ground, choice, &request, true);
        }
        match (self.search(ground, choice, &request, true), self.search(ground, choice, &request, false)) {
            (Ok(_), Ok(_)) => Err(NotReconstructed::State),
            (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
            (Err(missing), Err(_)) => Err(missing),
        }
    }

    /// How much of the prompt that was weighed last was cached where: as of the state that `found` agrees with, else as of the
    /// decision's own time. What the router itself reported of its candidates, `logged`, counts where the trees have less, and
    /// where they have more only by what was stored in the same millisecond. `None`: the prompt or the state is not known. Adds to
    /// `starts` where the prompt goes on.
    pub(super) fn reuse(
        &mut self,
        ground: Ground<'_>,
        choice: &WeighedChoice<'_>,
        (found, logged): (Option<&Found>, &[Candidate]),
        starts: &mut Starts,
    ) -> Option<Reuse> {
        let Ground { cluster, changes, .. } = ground;
        let gone = changes.gone();
        if !self.is_loaded || !gone.is_on() {
            return None;
        }
        let pool = cluster.pool_of(choice.report.worker)?;
        let device_of =
            |overlaps: &[u32], worker: WorkerIx| overlaps.get(worker.slot().at()).copied().unwrap_or(0);
        let mut held_at = |at: Micros| {
            let anywhere = self.past.overlap(cluster.tree(pool), OverlapRule::Prefix, at, &mut self.overlaps);
            (anywhere, device_of(&self.overlaps, choice.report.worker))
        };
        let mut at = found.map_or(choice.report.looked_up, |found| found.at);
        let (mut anywhere, mut ours) = held_at(at);
        let reported = choice.report.overlap_blocks.filter(|_| found.is_none() && logged.is_empty());
        // What is expected counts beside what is held.
        let is_other = |ours: u32| {
            let ours = u64::from(ours);
            reported.is_some_and(|blocks| if choice.report.predicts { blocks < ours } else { blocks != ours })
        };
        if is_other(ours) {
            // Another state around the choice may be the one that the router saw; if none is, what workers held was not what it is
            // taken for here.
            at = self.tree_times.iter().copied().find(|&at| !is_other(held_at(at).1))?;
            (anywhere, ours) = held_at(at);
        }
        self.past.held(cluster.tree(pool), &mut self.are_held);
        self.past.load_tiers(cluster, pool, &self.tiers, at);
        self.is_eligible.clear();
        for slot in self.workers.iter().map(|worker| worker.slot().at()) {
            self.is_eligible.resize(self.is_eligible.len().max(slot + 1), false);
            self.is_eligible[slot] = true;
        }
        self.earlier.clear();
        let (mut held, mut eligible, mut chosen, mut holder) = (0, 0, 0, None);
        for (worker, _) in cluster.workers().indexed().filter(|(_, state)| state.pool == pool) {
            let slot = worker.slot();
            let device = device_of(&self.overlaps, worker);
            let was = |tier, at| self.past.was_in_tier(tier, slot, at);
            let below = self.tiers.beyond_at(cluster, pool, worker, device, was);
            let mut blocks = device + below.host + below.disk + below.external;
            if let Some(of) = logged.iter().find(|of| of.worker == worker) {
                let reported = of.overlap_blocks + of.host_blocks + of.disk_blocks;
                if reported < blocks && self.earlier.is_empty() {
                    let before = Micros(at.0.saturating_sub(1_000));
                    self.past.overlap(cluster.tree(pool), OverlapRule::Prefix, before, &mut self.earlier);
                }
                let stored_just_then = || device_of(&self.earlier, worker) <= of.overlap_blocks;
                if reported > blocks || (reported < blocks && stored_just_then()) {
                    blocks = reported;
                }
            }
            let is_chosen = worker == choice.report.worker;
            held = held.max(blocks);
            if is_chosen {
                chosen = blocks;
            }
            let is_eligible = is_chosen || self.is_eligible.get(slot.at()).is_some_and(|&is| is);
            if is_eligible && blocks > 0 && (blocks > eligible || (blocks == eligible && is_chosen)) {
                (eligible, holder) = (blocks, Some(worker));
            }
        }
        // Loads may be counted by keyed hashes; blocks are known by the public ones.
        choice.prompt.chain(&mut self.blocks);
        let find = |block: u32| {
            let chain = self.blocks.get(block as usize)?;
            gone.find(pool, BlockHash(*chain), at)
        };
        let prompt_blocks = choice.prompt.len() as u32;
        if let Some(&first) = self.blocks.get(ours as usize) {
            starts.add(choice.report.worker, first, choice.report.decision);
        }
        // Workers may hold what follows a block that all of them removed, and may have removed it since. Names do not lead to it, so that
        // it is found by what its tokens make of the hash of all before it.
        let mut comparisons = MOST_COMPARISONS;
        let mut is_listed = false;
        let mut was_cached = |block: u32| {
            let position = block as usize;
            let Some(chain) = self.blocks.get(position).copied().map(BlockHash) else { return false };
            if self.are_held.get(position).is_some_and(|&is_held| is_held) {
                return true;
            }
            let Some(went) = gone.latest(pool, chain) else { return false };
            if went.at_ms <= at.millis() {
                return true;
            }
            if !std::mem::replace(&mut is_listed, true) {
                let is_in_pool = |worker| cluster.pool_of(worker) == Some(pool);
                changes.removed_since(at, is_in_pool, &mut self.removed_since);
            }
            let above = position.checked_sub(1).and_then(|above| self.blocks.get(above).copied());
            let left = comparisons;
            comparisons = left.saturating_sub(self.removed_since.len());
            self.removed_since
                .iter()
                .take(left)
                .any(|&tokens| chain_hash(above.map(BlockHash), tokens) == chain)
        };
        let mut seen = held.max(anywhere);
        while seen < prompt_blocks && was_cached(seen) {
            seen += 1;
        }
        // Where another worker holds the next block, none of it is gone: workers hold pieces.
        let gone_block = if anywhere > held { None } else { find(held) };
        let displaced_by = gone_block.filter(|gone| gone.why == GoneReason::Evicted).and_then(|gone| {
            let window = changes.stores().around(gone.at_ms, gone.worker)?;
            let EvictionWindow { stored_blocks, run_blocks, .. } = window;
            let decision = starts.find(gone.worker, &window);
            Some(DisplacedBy { stored_blocks, decision, decision_blocks: run_blocks })
        });
        Some(Reuse {
            decision: choice.report.decision,
            prompt_blocks,
            seen_blocks: seen,
            held_blocks: held,
            eligible_blocks: eligible,
            chosen_blocks: chosen,
            holder,
            gone: gone_block,
            known_since_ms: gone.known_since(),
            lacked_blocks: cluster.was_incomplete(pool, at.millis()),
            displaced_by,
        })
    }

    /// The state nearest to the decision that agrees with what the router reported. `are_listed`: whether workers have
    /// an entry in the load map of 1.2 that were not reported to have one.
    fn search(
        &mut self,
        ground: Ground<'_>,
        choice: &WeighedChoice<'_>,
        request: &RoutedRequest,
        are_listed: bool,
    ) -> Result<Found, NotReconstructed> {
        let Ground { cluster, active, .. } = ground;
        let tree = cluster.tree_of(choice.report.worker);
        let (mut held_so, mut is_uncertain, mut tried) = (false, false, 0);
        let mut last: Vec<u32> = Vec::new();
        let load_at = |worker, at, chain: &[u64]| {
            active.load_at(worker, choice.when(at), choice.report.decision, chain)
        };
        let loads = self.load_times.iter().map(|&at| (at, load_at(choice.report.worker, at, &self.chain)));
        let loads: Vec<(Micros, PastLoad)> = loads.collect();
        for n in 0..self.tree_times.len() {
            let state = self.tree_times[n];
            if !ground.knows(state, &self.workers) {
                continue;
            }
            let depth = self.past.overlap(tree, rule(choice.settings.formula), state, &mut self.overlaps);
            self.depth = self.depth.max(Some(depth));
            let ours = self.overlaps.get(choice.report.worker.slot().at()).copied().unwrap_or(0);
            if choice.report.overlap_blocks.is_some_and(|reported| reported != u64::from(ours)) {
                continue;
            }
            held_so = true;
            // Neighbouring times often show the same.
            if n > 0 && last == self.overlaps && !self.past.has_tier_changes() {
                continue;
            }
            last.clone_from(&self.overlaps);
            let pool = cluster.pool_of(choice.report.worker).unwrap_or_default();
            self.past.load_tiers(cluster, pool, &self.tiers, state);
            for &(at, chosens) in &loads {
                if tried == MAX_AGREEING {
                    break;
                }
                let alone = [self.input(ground, choice, choice.report.worker, state, (chosens, are_listed))];
                let alone = weighed(choice, request, &[choice.report.worker], &alone);
                if choice
                    .report
                    .logit
                    .is_some_and(|reported| !alone.first().is_some_and(|c| same_cost(c.cost, reported)))
                {
                    is_uncertain |= chosens.is_uncertain;
                    continue;
                }
                tried += 1;
                self.inputs.clear();
                let mut is_sure = true;
                for ix in 0..self.workers.len() {
                    let worker = self.workers[ix];
                    let load = load_at(worker, at, &self.chain);
                    is_sure &= !load.is_uncertain;
                    self.inputs.push(self.input(ground, choice, worker, state, (load, are_listed)));
                }
                is_uncertain |= !is_sure;
                let candidates = weighed(choice, request, &self.workers, &self.inputs);
                // Routers choose the cheapest worker unless they are known to draw, so that an input differs where another one is. A
                // choice that something else decided needs no such agreement.
                let is_free = !choice.report.is_by_cost || choice.settings.router_temperature > 0.0;
                let agrees = match choice.traced_costs {
                    Some(traced) if traced.is_whole => traced.agrees(&candidates),
                    Some(traced) => is_sure && traced.agrees(&candidates),
                    None => is_sure && (is_free || is_cheapest(&candidates, choice.report.worker)),
                };
                if agrees {
                    let pool = cluster.pool_of(choice.report.worker).unwrap_or_default();
                    let path = self.past.end(cluster, pool, depth);
                    return Ok(Found {
                        candidates,
                        formula: choice.settings.formula,
                        prefill_factor: choice.settings.prefill_factor(),
                        path,
                        at: state,
                    });
                }
            }
        }
        let ours = self.overlaps.get(choice.report.worker.slot().at()).copied().unwrap_or(0);
        let counts_more = choice.report.overlap_blocks.is_some_and(|reported| reported > u64::from(ours));
        Err(match (is_uncertain, held_so) {
            // Of the times that were tried the last one stands for all: they are few milliseconds apart.
            (_, false) if choice.report.predicts && counts_more => NotReconstructed::Predicted,
            (_, true) if choice.report.predicts => NotReconstructed::Predicted,
            (true, _) => NotReconstructed::State,
            (false, true) => NotReconstructed::Cost,
            (false, false) => NotReconstructed::Overlap,
        })
    }

    /// A worker with the tree as of `state`, which lies in `overlaps`, and its load.
    fn input(
        &self,
        ground: Ground<'_>,
        choice: &WeighedChoice<'_>,
        worker: WorkerIx,
        state: Micros,
        (past, are_listed): (PastLoad, bool),
    ) -> WorkerInput {
        let overlap_blocks = self.overlaps.get(worker.slot().at()).copied().unwrap_or(0);
        let load = Load {
            active_prefill_tokens: past.load.prefill_tokens,
            decode_blocks: past.load.blocks + past.new_blocks,
            active_requests: past.load.requests.into(),
        };
        let pool = ground.cluster.pool_of(worker).unwrap_or_default();
        let was = |tier, at| self.past.was_in_tier(tier, worker.slot(), at);
        let mut below = self.tiers.beyond_at(ground.cluster, pool, worker, overlap_blocks, was);
        let reported = choice.report.lower_tier_blocks.filter(|_| worker == choice.report.worker);
        if let Some(host) = reported.and_then(|reported| u32::try_from(reported).ok())
            && below.disk == 0
            && below.external == 0
        {
            // Of the chosen one the log tells how they were.
            below.host = host;
        }
        let is_listed =
            choice.settings.formula != Formula::B || past.was_used || ground.counts(worker) || are_listed;
        WorkerInput {
            load: is_listed.then_some(load),
            overlap: Overlap {
                device: overlap_blocks,
                host: below.host,
                disk: below.disk,
                external: below.external,
                shared_beyond_device: 0,
            },
            taint_weight: 0.0,
            tree_size_blocks: match choice.settings.formula {
                Formula::A => tree_size_at(ground, worker, overlap_blocks, state),
                _ => 0,
            },
        }
    }
}

/// The decision's own time and those of changes around it, each as what had happened until then: nearest first.
fn nearest(times: &mut Vec<Micros>, at: Micros, changes: impl Iterator<Item = Micros>) {
    times.clear();
    // What changed before may not have reached the router, what changed after may have.
    times.extend(changes.map(|change| if change <= at { change.before() } else { change }));
    times.push(at);
    times.sort_unstable_by_key(|time| (time.apart(at), *time));
    times.dedup();
    times.truncate(MAX_TIMES);
}

fn weighed(
    choice: &WeighedChoice<'_>,
    request: &RoutedRequest,
    workers: &[WorkerIx],
    inputs: &[WorkerInput],
) -> Vec<Candidate> {
    let (options, common) = (choice.settings, Common::of(choice.settings.formula, inputs));
    let of = |(&worker, input): (&WorkerIx, &WorkerInput)| {
        let tree_size = (choice.settings.formula == Formula::A).then_some(input.tree_size_blocks);
        cost::terms(&options, request, common, input).candidate(worker, input.overlap, tree_size)
    };
    workers.iter().zip(inputs).map(of).collect()
}

fn is_cheapest(candidates: &[Candidate], chosen: WorkerIx) -> bool {
    let least = candidates.iter().map(|candidate| candidate.cost).fold(f64::INFINITY, f64::min);
    candidates.iter().any(|candidate| candidate.worker == chosen && candidate.cost <= least)
}

/// How the deployed router counts overlap (reference §6).
fn rule(formula: Formula) -> OverlapRule {
    match formula {
        Formula::A => OverlapRule::PathNodes,
        _ => OverlapRule::Prefix,
    }
}

/// [`tree_size_blocks`] at a time.
fn tree_size_at(ground: Ground<'_>, worker: WorkerIx, overlap_blocks: u32, at: Micros) -> u64 {
    if overlap_blocks == 0 {
        return 0;
    }
    let changes =
        ground.changes.after(at).filter(|(change, _)| change.worker == worker && change.tier.is_none());
    let changed = changes.flat_map(|(_, blocks)| blocks);
    let more: i64 = changed.map(|block| if block.was_held { 1 } else { -1 }).sum();
    ground.cluster.blocks(worker).unwrap_or(0).saturating_add_signed(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_that_cannot_be_weighed_has_nothing_of_the_one_before() {
        let (cluster, changes) = (Cluster::default(), TreeChanges::default());
        let (active, counted) = (ActiveSequences::default(), PerWorker::default());
        let ground = Ground { cluster: &cluster, changes: &changes, active: &active, counted: &counted };
        let report = RouterReport {
            decision: DecisionId(1),
            worker: WorkerIx(0),
            at: Micros(1),
            looked_up: Micros(1),
            is_logged: true,
            isl_tokens: None,
            block_size_tokens: None,
            overlap_blocks: None,
            lower_tier_blocks: None,
            logit: None,
            formula: None,
            is_by_cost: true,
            is_traced: false,
            predicts: false,
            has_shared_cache: false,
            traced_costs: 0,
            is_named: true,
        };
        let settings = RouterSettings::new(Formula::E);
        let choice = WeighedChoice {
            report: &report,
            prompt: Prompt::Chain(&[]),
            tracked: None,
            traced_costs: None,
            settings,
        };
        let mut reconstructor = Reconstructor { is_loaded: true, depth: Some(4), ..Reconstructor::default() };
        let found = reconstructor.weigh(ground, &choice, &[settings], |_| false);
        assert_eq!(found.err(), Some(NotReconstructed::BlockSize));
        assert_eq!((reconstructor.is_loaded, reconstructor.depth()), (false, None));
    }
}
