//! A frontend's router of one pool: Dynamo's index, load bookkeeping, cost (formula A of 0.9 or E of 1.6) and choice
//! (reference §5.1, §5.3, §5.7, §5.8, §6.1), or plain round-robin. Must not know engines, users or the wire; it hears
//! stored and removed blocks and the life of requests.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashMap;

use super::config::{Fleet, WorkerSelection};
use super::fault::ForcedWorker;
use super::holders::BlockHolders;
use super::predicted::Predicted;
use radixscope_model::id::{BlockHash, WorkerIx};
use radixscope_model::record::{Block, Candidate};
use radixscope_router::cost::terms;
use radixscope_router::{
    Common, Formula, Load, Overlap, Role, RoutedRequest, RouterMode, RouterSettings, Terms, WorkerInput, pick,
};

/// A router reads the list of workers again at least this often, counted from its last change.
const RELISTED_EVERY_US: u64 = 5_000_000;
/// Parameters of `dynamo-two-tier-cost-fn`: by how many requests, and by which factor, workers have to differ for load to decide
/// (`balance_abs_threshold`, `balance_rel_threshold`), and above which share of a prompt its holder is chosen (`cache_threshold`).
const BALANCE_REQUESTS: u32 = 32;
const BALANCE_FACTOR: f64 = 1.1;
const CACHE_SHARE: f64 = 0.5;

/// What the router knew of one worker when it decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimulatedCandidate {
    /// What it was weighed by, in formula A `k · (A_w + isl − overlap · B) / B + D_w + N_w`; lower wins.
    pub candidate: Candidate,
    /// Tokens routed to the worker whose first token has not come (`A_w`).
    pub prefill_tokens: u64,
    /// Distinct full blocks of the prompts active on the worker (`D_w`); 0 in a pool that only prefills.
    pub decode_blocks: u64,
    /// Full blocks of this prompt not active there (`N_w`); 0 in a pool that only prefills.
    pub new_blocks: u64,
}

impl SimulatedCandidate {
    /// Works out what it costs to send a prompt of `isl_tokens` there. `tree_blocks`: blocks of the worker in the router's
    /// index, which counts only those that hold something of the prompt.
    fn weigh(&mut self, isl_tokens: u32, block_size_tokens: u32, prefill_factor: f64, tree_blocks: u64) {
        let candidate = &mut self.candidate;
        let cached = u64::from(candidate.overlap_blocks) * u64::from(block_size_tokens);
        let tokens = self.prefill_tokens + u64::from(isl_tokens).saturating_sub(cached);
        candidate.prefill_blocks = tokens as f64 / f64::from(block_size_tokens);
        candidate.decode_blocks = (self.decode_blocks + self.new_blocks) as f64;
        candidate.cost = prefill_factor * candidate.prefill_blocks + candidate.decode_blocks;
        candidate.tree_size = Some(if candidate.overlap_blocks > 0 { tree_blocks } else { 0 });
    }

    /// The same as the formulas of 1.2 and later see it.
    fn input(&self) -> WorkerInput {
        let load = Load {
            active_prefill_tokens: self.prefill_tokens,
            decode_blocks: self.decode_blocks + self.new_blocks,
            active_requests: 0,
        };
        let overlap =
            Overlap { host: self.candidate.host_blocks, ..Overlap::device(self.candidate.overlap_blocks) };
        WorkerInput { load: Some(load), overlap, ..WorkerInput::default() }
    }
}

/// Where a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub(super) worker: u16,
    pub(super) overlap_blocks: u32,
    /// Blocks found in the worker's host memory beyond those.
    pub(super) host_blocks: u32,
}

/// The load a router has put on one worker.
#[derive(Debug, Default)]
struct Active {
    /// Requests using each full block of an active prompt.
    blocks: FxHashMap<BlockHash, u32>,
    prefill_tokens: u64,
    in_flight: u32,
}

/// The router of the simulated frontend.
#[derive(Debug)]
pub(super) struct Router {
    settings: RouterSettings,
    role: Role,
    block_size_tokens: u32,
    holders: BlockHolders,
    /// Who holds which block in host memory.
    host_holders: BlockHolders,
    tree_blocks: Vec<u64>,
    /// By frontend and worker.
    active: Vec<Vec<Active>>,
    /// Workers in discovery, ascending.
    workers: Vec<u16>,
    /// When they changed last.
    listed_us: u64,
    /// Until when a worker is left out, because it could not be reached, by worker. `None`: such workers are not left out.
    out_until_us: Option<Vec<u64>>,
    /// Of those in discovery, the ones that could be chosen last, and those of them that were allowed to be.
    candidates_at: Vec<u16>,
    eligible: Vec<u16>,
    selection: WorkerSelection,
    /// What stands in for events, where the router does without them.
    predicted: Option<Predicted>,
    /// Blocks that it no longer predicts.
    expired_total: u64,
    next_in_turn: u16,
    candidates: Vec<SimulatedCandidate>,
    costs: Vec<f64>,
    chances: Vec<f64>,
    rng: Pcg64Mcg,
}

impl Router {
    pub(super) fn new(fleet: &Fleet, rng: Pcg64Mcg) -> Self {
        let workers = usize::from(fleet.workers);
        Self {
            settings: fleet.router,
            role: fleet.role,
            block_size_tokens: fleet.router_block_size_tokens,
            holders: BlockHolders::new(workers),
            host_holders: BlockHolders::new(workers),
            tree_blocks: vec![0; workers],
            active: idle(fleet.frontends, workers),
            workers: (0..fleet.workers).collect(),
            listed_us: 0,
            out_until_us: fleet.leaves_out_unreachable.then(|| vec![0; workers]),
            candidates_at: Vec::with_capacity(workers),
            eligible: Vec::with_capacity(workers),
            selection: fleet.selection,
            // One that only looks where decode is has no use for what lies in caches.
            predicted: (fleet.predicts && fleet.role != Role::Decode).then(Predicted::default),
            expired_total: 0,
            next_in_turn: 0,
            candidates: Vec::with_capacity(workers),
            costs: Vec::with_capacity(workers),
            chances: Vec::with_capacity(workers),
            rng,
        }
    }

    /// Tokens per block as it counts them.
    pub(super) fn block_size_tokens(&self) -> u32 {
        self.block_size_tokens
    }

    /// Whether it predicts what workers hold, instead of receiving their events.
    pub(super) fn predicts(&self) -> bool {
        self.predicted.is_some()
    }

    /// Blocks that it predicted and no longer does.
    pub(super) fn expired_total(&self) -> u64 {
        self.expired_total
    }

    /// Whether requests are routed by cost.
    pub(super) fn is_kv(&self) -> bool {
        self.settings.router_mode == RouterMode::Kv
    }

    /// A worker stored blocks below one of its own. Returns whether it was known to have that one: otherwise the blocks
    /// are passed over.
    pub(super) fn stored(&mut self, worker: u16, parent: Option<BlockHash>, blocks: &[Block]) -> bool {
        if !self.settings.keeps_index() {
            return true;
        }
        if parent.is_some_and(|parent| !self.holders.holds(worker, parent)) {
            return false;
        }
        self.learn(worker, blocks.iter().map(|block| block.block_hash));
        true
    }

    /// A worker holds blocks, whatever is above them.
    pub(super) fn learn(&mut self, worker: u16, blocks: impl Iterator<Item = BlockHash>) {
        for hash in blocks {
            let is_new = self.holders.insert(worker, hash);
            self.tree_blocks[usize::from(worker)] += u64::from(is_new);
        }
    }

    /// A worker removed a block. Returns whether it was known to have it.
    pub(super) fn removed(&mut self, worker: u16, hash: BlockHash) -> bool {
        let held = self.holders.remove(worker, hash);
        self.tree_blocks[usize::from(worker)] -= u64::from(held);
        held || !self.settings.keeps_index()
    }

    /// A worker copied blocks to host memory.
    pub(super) fn host_stored(&mut self, worker: u16, blocks: impl Iterator<Item = BlockHash>) {
        if self.settings.keeps_index() {
            for hash in blocks {
                self.host_holders.insert(worker, hash);
            }
        }
    }

    /// A worker dropped a copy in host memory.
    pub(super) fn host_removed(&mut self, worker: u16, hash: BlockHash) {
        self.host_holders.remove(worker, hash);
    }

    /// Nothing is known of what a worker holds any more.
    pub(super) fn forget(&mut self, worker: u16) {
        self.holders.forget(worker);
        self.host_holders.forget(worker);
        self.tree_blocks[usize::from(worker)] = 0;
    }

    /// A worker left discovery.
    pub(super) fn leave(&mut self, worker: u16, now_us: u64) {
        self.workers.retain(|&at| at != worker);
        self.relist(now_us);
        self.forget(worker);
    }

    /// A worker came to discovery.
    pub(super) fn join(&mut self, worker: u16, now_us: u64) {
        self.forget(worker);
        if let Err(at) = self.workers.binary_search(&worker) {
            self.workers.insert(at, worker);
        }
        self.relist(now_us);
    }

    /// It begins anew with these settings.
    pub(super) fn restart_with(&mut self, settings: RouterSettings, now_us: u64) {
        self.settings = settings;
        self.restart(now_us);
    }

    /// The list of workers changed: whoever is on it is tried again.
    fn relist(&mut self, now_us: u64) {
        self.listed_us = now_us;
        self.out_until_us.iter_mut().flatten().for_each(|until_us| *until_us = 0);
    }

    /// A worker could not be reached for a request. It is left out until the list is read again, which happens every few seconds,
    /// counted from its last change.
    pub(super) fn unreachable(&mut self, worker: u16, now_us: u64) {
        let Some(out_until_us) = &mut self.out_until_us else { return };
        let until_us = now_us + RELISTED_EVERY_US - (now_us - self.listed_us) % RELISTED_EVERY_US;
        out_until_us[usize::from(worker)] = until_us;
    }

    /// Whether a worker could be chosen last.
    pub(super) fn was_candidate(&self, worker: u16) -> bool {
        self.candidates_at.contains(&worker)
    }

    /// Workers in discovery, ascending.
    pub(super) fn workers(&self) -> &[u16] {
        &self.workers
    }

    /// The router begins anew: without index or load.
    pub(super) fn restart(&mut self, now_us: u64) {
        self.relist(now_us);
        for worker in 0..self.tree_blocks.len() as u16 {
            self.forget(worker);
        }
        self.active = idle(self.active.len() as u8, self.tree_blocks.len());
        self.next_in_turn = 0;
    }

    /// Chooses a worker for a prompt of `isl_tokens` whose full blocks are `prompt`, as `frontend` sees the load at a time.
    pub(super) fn choose(
        &mut self,
        (frontend, now_us): (u8, u64),
        isl_tokens: u32,
        prompt: &[Block],
        steer: ForcedWorker,
    ) -> Choice {
        match self.settings.router_mode {
            RouterMode::RoundRobin => {
                let turn = usize::from(self.next_in_turn) % self.workers.len();
                self.next_in_turn = (turn + 1) as u16;
                let turn = self.workers[turn];
                let other = self.workers.iter().copied().find(|&worker| steer.allows(worker));
                let worker = if steer.allows(turn) { turn } else { other.unwrap_or(turn) };
                Choice { worker, overlap_blocks: 0, host_blocks: 0 }
            }
            RouterMode::Kv => {
                self.score(frontend, isl_tokens, prompt);
                self.list_candidates(now_us, steer);
                let draw = self.rng.random();
                let worker = match self.selection {
                    WorkerSelection::Cost => self.pick(self.settings.router_temperature, draw),
                    WorkerSelection::TwoTier => self.pick_by_tiers(frontend, prompt.len() as u32),
                };
                let candidate = self.candidates[usize::from(worker)].candidate;
                let (overlap_blocks, host_blocks) = (candidate.overlap_blocks, candidate.host_blocks);
                Choice { worker, overlap_blocks, host_blocks }
            }
        }
    }

    /// Tokens of a prompt that a chosen worker has to compute, as the router counts them: what lies in host memory counts
    /// by its credit. None where the KV comes from elsewhere.
    pub(super) fn prefill_tokens(&self, isl_tokens: u32, choice: Choice) -> u64 {
        if self.role == Role::Decode {
            return 0;
        }
        let host = f64::from(choice.host_blocks) * self.settings.host_cache_hit_weight;
        let cached = (f64::from(choice.overlap_blocks) + host) * f64::from(self.block_size_tokens);
        u64::from(isl_tokens).saturating_sub(cached.round() as u64)
    }

    /// A router without events estimates that a worker now holds what was sent to it, and no longer what was sent long
    /// ago.
    pub(super) fn predict(&mut self, now_us: u64, worker: u16, prompt: &[Block]) {
        let Some(mut predicted) = self.predicted.take() else { return };
        predicted.sent(now_us, worker, prompt);
        self.learn(worker, prompt.iter().map(|block| block.block_hash));
        while let Some((worker, hash)) = predicted.expired(now_us) {
            self.expired_total += 1;
            self.removed(worker, hash);
        }
        self.predicted = Some(predicted);
    }

    /// What the last choice was made from, by worker; empty in round-robin.
    pub(super) fn candidates(&self) -> &[SimulatedCandidate] {
        &self.candidates
    }

    fn score(&mut self, frontend: u8, isl_tokens: u32, prompt: &[Block]) {
        self.candidates.clear();
        let active = (0..).map(WorkerIx).zip(&self.active[usize::from(frontend)]);
        self.candidates.extend(active.map(|(worker, active)| SimulatedCandidate {
            candidate: Terms::default().candidate(worker, Overlap::default(), None),
            prefill_tokens: active.prefill_tokens,
            decode_blocks: active.blocks.len() as u64,
            new_blocks: (prompt.len() - active.prefix_len(prompt)) as u64,
        }));
        if self.settings.formula != Formula::A {
            self.holders.count_prefixes(prompt, &mut self.candidates);
            return self.score_with_credits(isl_tokens, prompt);
        }
        self.holders.count(prompt, &mut self.candidates);
        let factor = self.settings.prefill_factor();
        for (candidate, &tree_blocks) in self.candidates.iter_mut().zip(&self.tree_blocks) {
            candidate.weigh(isl_tokens, self.block_size_tokens, factor, tree_blocks);
        }
    }

    /// As 1.6 does: hits in host memory go on where those on the device end, and a pool that only prefills does not know
    /// the blocks of running requests (reference §5.7).
    fn score_with_credits(&mut self, isl_tokens: u32, prompt: &[Block]) {
        let Self { settings, role, host_holders, candidates, .. } = self;
        for candidate in candidates.iter_mut() {
            let SimulatedCandidate { candidate: Candidate { worker, overlap_blocks, .. }, .. } = *candidate;
            let beyond = &prompt[overlap_blocks as usize..];
            let held =
                beyond.iter().take_while(|block| host_holders.holds(worker.slot().0, block.block_hash));
            candidate.candidate.host_blocks = held.count() as u32;
            if *role == Role::Prefill {
                candidate.new_blocks = 0;
            }
        }
        let inputs: Vec<WorkerInput> = candidates.iter().map(SimulatedCandidate::input).collect();
        let common = Common::of(settings.formula, &inputs);
        let request = RoutedRequest::new(isl_tokens.into(), self.block_size_tokens);
        for (candidate, input) in candidates.iter_mut().zip(&inputs) {
            let worker = candidate.candidate.worker;
            candidate.candidate =
                terms(settings, &request, common, input).candidate(worker, input.overlap, None);
        }
    }

    /// Works out which workers can be chosen now, and which of them may be.
    fn list_candidates(&mut self, now_us: u64, steer: ForcedWorker) {
        let Self { workers, out_until_us, candidates_at, eligible, .. } = self;
        let is_out = |worker: u16| {
            let until_us = out_until_us.as_ref().map_or(0, |until_us| until_us[usize::from(worker)]);
            now_us < until_us
        };
        candidates_at.clear();
        candidates_at.extend(workers.iter().filter(|&&worker| !is_out(worker)));
        if candidates_at.is_empty() {
            candidates_at.extend_from_slice(workers);
        }
        eligible.clear();
        eligible.extend(candidates_at.iter().filter(|&&worker| steer.allows(worker)));
        if eligible.is_empty() {
            eligible.extend_from_slice(candidates_at);
        }
    }

    /// The candidate of `dynamo-two-tier-cost-fn`: the one with the fewest requests, unless they are near each other and one holds
    /// enough of the prompt on its device.
    fn pick_by_tiers(&self, frontend: u8, prompt_blocks: u32) -> u16 {
        let in_flight = |worker: u16| self.active[usize::from(frontend)][usize::from(worker)].in_flight;
        let overlap = |worker: u16| self.candidates[usize::from(worker)].candidate.overlap_blocks;
        let of_eligible = || self.eligible.iter().copied();
        // Of equals the first.
        let idlest = of_eligible().min_by_key(|&worker| in_flight(worker)).unwrap_or_default();
        let best = of_eligible().rev().max_by_key(|&worker| overlap(worker)).unwrap_or_default();
        let (least, most) = (in_flight(idlest), of_eligible().map(in_flight).max().unwrap_or_default());
        let are_far_apart =
            most - least > BALANCE_REQUESTS && f64::from(most) > BALANCE_FACTOR * f64::from(least);
        let is_enough = f64::from(overlap(best)) > CACHE_SHARE * f64::from(prompt_blocks);
        if is_enough && !are_far_apart { best } else { idlest }
    }

    /// The candidate that a draw in [0, 1) takes. Where Dynamo takes whichever its hash map yields first, the draw
    /// stands for that.
    fn pick(&mut self, temperature: f64, draw: f64) -> u16 {
        let Self { settings, candidates, costs, chances, eligible, .. } = self;
        let candidate = |at: usize| &candidates[usize::from(eligible[at])].candidate;
        costs.clear();
        costs.extend((0..eligible.len()).map(|at| candidate(at).cost));
        chances.resize(costs.len(), 0.0);
        pick::probabilities(
            costs,
            temperature,
            settings.tie_break,
            |at| candidate(at).tree_size.unwrap_or(0),
            chances,
        );
        eligible[pick::draw(chances, draw).unwrap_or(0)]
    }

    /// A request was sent to `worker`; `prefill_tokens` of its prompt are not cached there.
    pub(super) fn add(&mut self, frontend: u8, worker: u16, prompt: &[Block], prefill_tokens: u64) {
        let (kv, role) = (self.is_kv(), self.role);
        let active = &mut self.active[usize::from(frontend)][usize::from(worker)];
        active.in_flight += 1;
        if kv {
            active.prefill_tokens += prefill_tokens;
            // With `router_track_active_blocks` off, as Dynamo sets it for the router of a prefill pool.
            let tracked = if role == Role::Prefill { &[] } else { prompt };
            for block in tracked {
                *active.blocks.entry(block.block_hash).or_default() += 1;
            }
        }
    }

    /// The first token of a request came from `worker`.
    pub(super) fn prefill_completed(&mut self, frontend: u8, worker: u16, prefill_tokens: u64) {
        let active = &mut self.active[usize::from(frontend)][usize::from(worker)];
        active.prefill_tokens = active.prefill_tokens.saturating_sub(prefill_tokens);
    }

    /// A request on `worker` finished.
    pub(super) fn free(&mut self, frontend: u8, worker: u16, prompt: &[Block]) {
        let active = &mut self.active[usize::from(frontend)][usize::from(worker)];
        active.in_flight -= 1;
        for block in prompt {
            if let Some(uses) = active.blocks.get_mut(&block.block_hash) {
                *uses -= 1;
                if *uses == 0 {
                    active.blocks.remove(&block.block_hash);
                }
            }
        }
    }

    /// `D_w` and `A_w` of a worker, as `frontend` sees them.
    pub(super) fn load(&self, frontend: u8, worker: u16) -> (u64, u64) {
        let active = &self.active[usize::from(frontend)][usize::from(worker)];
        (active.blocks.len() as u64, active.prefill_tokens)
    }

    /// Requests routed to each worker and not finished.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.tree_blocks.len()).map(|worker| self.active.iter().map(|of| of[worker].in_flight).sum())
    }
}

fn idle(frontends: u8, workers: usize) -> Vec<Vec<Active>> {
    (0..frontends).map(|_| (0..workers).map(|_| Active::default()).collect()).collect()
}

impl Active {
    /// Blocks of `prompt` that are active. Every active request adds its whole prompt, so the active blocks of a
    /// path are its beginning.
    fn prefix_len(&self, prompt: &[Block]) -> usize {
        prompt.partition_point(|b| self.blocks.contains_key(&b.block_hash))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::config::Config;
    use radixscope_model::id::TokensHash;

    fn router(workers: u16, settings: RouterSettings) -> Router {
        let config = Config { workers, block_size_tokens: 16, router: settings, ..Config::default() };
        Router::new(&config.fleet(), Pcg64Mcg::seed_from_u64(1))
    }

    fn kv(overlap_score_weight: f64) -> RouterSettings {
        RouterSettings { overlap_score_weight, ..RouterSettings::default() }
    }

    fn prompt(isl: u32) -> Vec<Block> {
        let block = |n| Block { block_hash: BlockHash(u64::from(n)), tokens_hash: TokensHash(0) };
        (0..isl / 16).map(block).collect()
    }

    #[test]
    fn costs_equal_those_a_real_dynamo_logged() {
        let mut router = router(1, kv(1.0));
        for (isl, cost) in [(122, 14.625), (42, 4.625), (3858, 482.125)] {
            router.choose((0, 0), isl, &prompt(isl), ForcedWorker::Free);
            assert_eq!(router.candidates()[0].candidate.cost, cost);
        }
        router.stored(0, None, &prompt(122));
        router.choose((0, 0), 122, &prompt(122), ForcedWorker::Free);
        assert_eq!(router.candidates()[0].candidate.cost, 7.625);
    }

    #[test]
    fn a_request_loads_its_worker_from_choice_to_end() {
        let mut router = router(2, kv(1.0));
        let prompt = prompt(122);
        router.add(0, 1, &prompt, 122);
        assert_eq!(router.load(0, 1), (7, 122));
        router.add(0, 1, &prompt, 122);
        assert_eq!(router.load(0, 1), (7, 244), "equal blocks count once");
        router.prefill_completed(0, 1, 122);
        router.free(0, 1, &prompt);
        assert_eq!(router.load(0, 1), (7, 122));
        router.prefill_completed(0, 1, 122);
        router.free(0, 1, &prompt);
        assert_eq!(router.load(0, 1), (0, 0));
    }

    #[test]
    fn a_tie_goes_to_the_worker_with_the_smaller_tree() {
        let mut router = router(2, kv(1.0));
        let prompt = prompt(32);
        router.stored(0, None, &prompt);
        router.stored(1, None, &prompt[..1]);
        router.add(0, 0, &[Block { block_hash: BlockHash(99), tokens_hash: TokensHash(0) }], 0);
        let choice = router.choose((0, 0), 32, &prompt, ForcedWorker::Free);
        assert_eq!(router.candidates()[0].candidate.cost, router.candidates()[1].candidate.cost);
        assert_eq!(choice, Choice { worker: 1, overlap_blocks: 1, host_blocks: 0 });
    }

    #[test]
    fn any_number_of_workers_is_distinguishable() {
        for workers in [64, 65, 256, 257, 1_024] {
            let mut router = router(workers, kv(1.0));
            let (last, prompt) = (workers - 1, prompt(64));
            router.stored(0, None, &prompt[..1]);
            router.stored(last, None, &prompt);
            assert_eq!(
                router.choose((0, 0), 64, &prompt, ForcedWorker::Free),
                Choice { worker: last, overlap_blocks: 4, host_blocks: 0 }
            );
            router.removed(last, prompt[3].block_hash);
            assert_eq!(router.choose((0, 0), 64, &prompt, ForcedWorker::Free).overlap_blocks, 3);
            assert_eq!(router.candidates()[0].candidate.overlap_blocks, 1);
            assert_eq!(router.candidates().iter().filter(|c| c.candidate.overlap_blocks > 0).count(), 2);
            assert_eq!(router.candidates()[usize::from(last)].candidate.tree_size, Some(3));
        }
    }

    #[test]
    fn weight_0_and_round_robin_keep_no_index() {
        for settings in [kv(0.0), RouterSettings::round_robin()] {
            let mut router = router(3, settings);
            router.stored(0, None, &prompt(64));
            assert!(router.holders.is_empty());
        }
    }

    #[test]
    fn round_robin_goes_round() {
        let mut router = router(3, RouterSettings::round_robin());
        let workers: Vec<u16> =
            (0..4).map(|_| router.choose((0, 0), 64, &prompt(64), ForcedWorker::Free).worker).collect();
        assert_eq!(workers, [0, 1, 2, 0]);
    }
}
