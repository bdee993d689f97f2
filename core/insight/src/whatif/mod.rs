//! What the router would decide now: a request, put to the live state under settings and in a cluster that may differ from
//! it. Server and page use the same code.
//!
//! Inputs as reference §5.12 lists them: overlap from the tree by the version's rule, loads from whichever source reports them.
//! What is not reported is assumed, and every assumption is listed with the response. Reads the state and never changes it.

mod load;
mod prompt;
mod recorded;
mod request;
mod response;

#[cfg(test)]
mod tests;

use crate::completeness;
use radixscope_model::id::{Millis, PoolIx, TokensHash};
use radixscope_model::record::{Decision, Role, SettingsSource};
use radixscope_router::{
    Formula, Load, Overlap, RoutedRequest, RouterSettings, Scores, TieBreak, WorkerInput, example, score,
};
use radixscope_state::cluster::{Cluster, DecisionEntry, SourcedNumber, TierPaths};
use radixscope_state::requests::{ActiveSequences, tree_size_blocks};
use radixscope_state::tree::OverlapRule;

pub use load::LoadFrom;
use load::Loads;
pub use prompt::{Blocks, Hashes};
pub use request::{
    Adjustment, Busy, CandidateRef, MAX_ADDED, MAX_PROMPT_BLOCKS, Prompt, Refused, WhatIfRequest,
    WorkerChanges,
};
pub use response::{RankedCandidate, Versus, WhatIfResponse};

/// The state that a question is about.
#[derive(Clone, Copy)]
pub struct WhatIfState<'a> {
    /// Everything received.
    pub cluster: &'a Cluster,
    /// What is known of requests beyond it: the server has it, a page does not.
    pub active: Option<&'a ActiveSequences>,
    /// The moment that ages are counted from.
    pub now_ms: Millis,
}

/// A candidate of the response, beside its [`WorkerInput`].
#[derive(Clone, Copy, PartialEq, Debug)]
struct CandidateMeta {
    who: CandidateRef,
    load_from: LoadFrom,
    is_changed: bool,
}

/// Evaluates questions; retains only memory to be used again, so that a thousand workers cost no allocation each.
#[derive(Default)]
pub struct WhatIf {
    rows: Vec<CandidateMeta>,
    inputs: Vec<WorkerInput>,
    scores: Scores,
    ranking: Vec<u32>,
    overlaps: Vec<u32>,
    tiers: TierPaths,
    local: Vec<TokensHash>,
    chain: Vec<u64>,
    loads: Loads,
    notes: Vec<String>,
    partial: Option<String>,
}

impl WhatIf {
    /// Evaluates a question.
    ///
    /// # Errors
    /// Why it has no response, and which part of the question is at fault.
    pub fn score(
        &mut self,
        state: WhatIfState<'_>,
        question: &WhatIfRequest,
    ) -> Result<WhatIfResponse<'_>, Refused> {
        question.check()?;
        self.rows.clear();
        self.inputs.clear();
        self.notes.clear();
        self.partial = None;
        let request = match &question.prompt {
            Prompt::Recorded(decision) => self.recorded(state, *decision, question)?,
            Prompt::Example => {
                for (at, input) in (0..).zip(example::workers()) {
                    self.push(CandidateRef::Example(at), LoadFrom::Example, input);
                }
                example::REQUEST
            }
            _ => self.live(state, question)?,
        };
        self.change(question, &request);
        if self.rows.is_empty() {
            return Err(Refused::NoWorker);
        }
        score(&question.options, &request, &self.inputs, &mut self.scores);
        self.scores.rank(&mut self.ranking);
        let is_of_the_state = !matches!(question.prompt, Prompt::Example);
        Ok(WhatIfResponse {
            seq: state.cluster.seq(),
            at_ms: state.now_ms,
            request,
            options: question.options,
            versus: if is_of_the_state { self.versus(state.cluster, question) } else { None },
            rows: &self.rows,
            inputs: &self.inputs,
            scores: &self.scores,
            ranking: &self.ranking,
            notes: &self.notes,
            partial: self.partial.as_deref(),
        })
    }

    fn push(&mut self, who: CandidateRef, load_from: LoadFrom, input: WorkerInput) {
        self.rows.push(CandidateMeta { who, load_from, is_changed: false });
        self.inputs.push(input);
    }

    /// Weighs the workers as they are now.
    fn live(&mut self, state: WhatIfState<'_>, question: &WhatIfRequest) -> Result<RoutedRequest, Refused> {
        let cluster = state.cluster;
        let options = &question.options;
        let pool = pool(cluster, question);
        let found = self.resolve(cluster, pool, question)?;
        cluster.tree(pool).overlap(overlap_rule(options), self.local.iter().copied(), &mut self.overlaps);
        self.tiers.follow(cluster, pool, &self.local);
        let like = cluster.pool(pool);
        self.loads.gather(state, question.router);
        let mut others = 0;
        let mut without_events = 0;
        for (ix, worker) in cluster.workers().indexed() {
            if worker.departure.is_some() {
                continue;
            }
            let own = cluster.pool(worker.pool);
            if worker.pool != pool && own.zip(like).is_some_and(|(own, like)| !own.may_be(like)) {
                others += 1;
                continue;
            }
            without_events += u64::from(worker.last_event_ms.is_none());
            let overlap = self.overlaps.get(ix.slot().at()).copied().unwrap_or(0);
            let below = self.tiers.beyond(cluster, worker.pool, ix, overlap);
            let (mut load, load_from) = self.loads.of(ix);
            load.decode_blocks = load.decode_blocks.saturating_add(match self.loads.sequences(state) {
                // What of the prompt the tree does not know cannot be running either, as far as its hashes are known.
                Some(active) => {
                    let unhashed = found.full_blocks.saturating_sub(self.chain.len() as u64);
                    active.new_blocks(ix, &self.chain) + unhashed
                }
                None => found.full_blocks,
            });
            self.push(
                CandidateRef::Worker(ix),
                load_from,
                WorkerInput {
                    load: Some(load),
                    overlap: Overlap {
                        device: overlap,
                        host: below.host,
                        disk: below.disk,
                        external: below.external,
                        shared_beyond_device: 0,
                    },
                    taint_weight: 0.0,
                    tree_size_blocks: tree_size_blocks(cluster, ix, overlap),
                },
            );
        }
        self.note_workers(others, without_events);
        self.partial = completeness::note(cluster, pool);
        self.loads.note(state, question, found.full_blocks, &mut self.notes);
        self.note_tiers(cluster, options);
        Ok(found.request)
    }

    fn note_workers(&mut self, others: u64, without_events: u64) {
        if others > 0 {
            self.notes.push(format!(
                "{others} workers of other pools are not weighed: a router chooses within one component."
            ));
        }
        if without_events > 0 {
            self.notes.push(format!(
                "No KV event was received from {without_events} of the workers: their caches are taken as empty. vLLM needs \
                 --kv-events-config, TRT-LLM and SGLang --publish-events-and-metrics or --kv-events-config."
            ));
        }
    }

    fn note_tiers(&mut self, cluster: &Cluster, options: &RouterSettings) {
        if options.formula == Formula::A {
            return;
        }
        if cluster.workers().iter().any(|worker| worker.other_tier.stored > 0) {
            self.notes.push(
                "Blocks in shared caches are counted but not followed by prompt: they earn no credit here."
                    .to_owned(),
            );
        }
        if options.shared_cache_multiplier > 0.0 {
            self.notes
                .push("The blocks of a shared cache are not published: it earns no credit here.".to_owned());
        }
    }

    /// The question's changes to the cluster.
    fn change(&mut self, question: &WhatIfRequest, request: &RoutedRequest) {
        let WorkerChanges { left_out, added, busy } = &question.changes;
        if !left_out.is_empty() {
            let mut retained = self.rows.iter().map(|row| !left_out.contains(&row.who));
            self.inputs.retain(|_| retained.next().unwrap_or(true));
            self.rows.retain(|row| !left_out.contains(&row.who));
        }
        let full_blocks = request.isl_tokens / u64::from(request.block_size_tokens.max(1));
        for number in 0..*added {
            let load = Load { decode_blocks: full_blocks, ..Load::default() };
            let input = WorkerInput { load: Some(load), ..WorkerInput::default() };
            self.push(CandidateRef::Added(number), LoadFrom::Added, input);
        }
        for (row, input) in self.rows.iter_mut().zip(&mut self.inputs) {
            let Some((_, busy)) = busy.iter().find(|(who, _)| *who == row.who) else { continue };
            let mut load = input.load.unwrap_or_default();
            busy.apply(&mut load, full_blocks);
            input.load = Some(load);
            row.is_changed = true;
        }
    }
}

/// How the version in question counts overlap: 0.8 and 0.9 count path nodes, all later ones a prefix (reference §6). Only
/// those two have this rule for ties.
pub fn overlap_rule(options: &RouterSettings) -> OverlapRule {
    match (options.formula, options.tie_break) {
        (Formula::A, TieBreak::SmallestTree) => OverlapRule::PathNodes,
        _ => OverlapRule::Prefix,
    }
}

/// The pool that is chosen from: the one that holds the block that the prompt goes on from, the one requested, that of the
/// decision compared with, else that of the latest one.
pub fn pool(cluster: &Cluster, question: &WhatIfRequest) -> PoolIx {
    let decisions = cluster.decisions();
    let held = match question.prompt {
        Prompt::After { worker, .. } => cluster.pool_of(worker),
        _ => None,
    };
    let pool_of = |decided: &DecisionEntry| cluster.pool_of(decided.decision.worker);
    let compared = || question.actual.and_then(|id| pool_of(decisions.get(id)?));
    let latest = || decisions.newest_first().next().and_then(pool_of);
    let requested = || question.pool.filter(|&pool| cluster.pool(pool).is_some());
    held.or_else(requested).or_else(compared).or_else(latest).unwrap_or_else(|| cluster.default_pool())
}

/// What the router of `pool` runs with now: formula and weight of the latest decision that has them, and over it what sources report,
/// everything else as Dynamo's defaults are; the natural options to start from.
pub fn deployed(cluster: &Cluster, pool: PoolIx) -> Option<RouterSettings> {
    let of_pool = |decided: &&DecisionEntry| cluster.pool_of(decided.decision.worker) == Some(pool);
    let mut latest = cluster.decisions().newest_first().filter(of_pool);
    let decided = latest.find_map(|decided| settings_of(cluster, &decided.decision));
    let numbers = cluster.numbers_at(pool, cluster.now_ms()).into_iter().next().unwrap_or_default();
    // What reports settings without a decision came with this formula.
    let reported = || {
        let is_reported =
            SETTINGS_OF_E.iter().any(|&source| cluster.settings_of(pool, source).next().is_some());
        let role = cluster.role(pool).map_or(Role::Aggregated, |(role, _)| role);
        is_reported.then(|| RouterSettings::new(Formula::E).in_role(role))
    };
    decided.or_else(reported).map(|settings| settings.with_numbers(&numbers))
}

/// The numbers of [`deployed`], each with where it is known from.
pub fn deployed_numbers(cluster: &Cluster, pool: PoolIx) -> Vec<SourcedNumber> {
    let Some(settings) = deployed(cluster, pool) else { return Vec::new() };
    let mut all = cluster.sourced_settings(pool, settings.formula);
    let factor = settings.prefill_factor_number();
    for of in all.iter_mut().filter(|of| of.number == factor && of.value != settings.prefill_factor()) {
        // Recordings up to version 13 have the factor of the log in the decisions alone.
        (of.value, of.source) = (settings.prefill_factor(), SettingsSource::Log);
    }
    all
}

/// Sources of settings that routers with formula E alone have.
const SETTINGS_OF_E: [SettingsSource; 4] = [
    SettingsSource::PolicyEndpoint,
    SettingsSource::ModelCard,
    SettingsSource::StartUpLog,
    SettingsSource::PolicyFile,
];

/// The same of one decision, with what Dynamo sets for the role of its pool.
pub fn settings_of(cluster: &Cluster, decision: &Decision) -> Option<RouterSettings> {
    let settings = cluster.settings_of_decision(decision)?;
    let role = cluster.pool_of(decision.worker).and_then(|pool| cluster.role(pool));
    Some(role.map_or(settings, |(role, _)| settings.in_role(role)))
}
