//! Decisions: what routers, workers and logs say of requests, joined and completed with what the tree holds.
//!
//! Stateful but pure. It reads the state and never changes it: what it finds out becomes records. Prompts stay here,
//! because they are large and only counterfactuals need them.
//!
//! # How it works
//!
//! What topics, logs and traces say of one request becomes one decision with a running id. A request id joins pieces:
//! the router's, or that of the HTTP span around it, which text of 1.1 and 1.2 names alone and other lines name
//! beside the router's. Where none is reported (`kv-hit-rate`, logs up to 1.0, choices of 1.3) worker, overlap, prompt
//! length and the router's own clock do. A request's end tells its length, which with the block size gives blocks,
//! share and outcome; it waits ten seconds for a decision that is read later, and then counts among the latencies
//! alone. A length waits for the block size. A query that runs nothing is decided but not dispatched: its end says
//! so, and it is left out of hit rates, as routers leave it out. The first piece is recorded at once; a later one with
//! the same id completes it in the fold, the best of each source, so that nothing waits for a log. Where a source
//! reports the prompt's hashes, every worker's cost is computed from the tree, by the deployed version's overlap rule,
//! and from the requests that run: *reconstructed*, as against *all candidates*, which the router wrote itself, and
//! *chosen only*. That happens before the record is made: prompts stay in the server (the last ten thousand, shared
//! prefixes once), and the log, every viewer and every recording hold the finished decision.
//!
//! A log is read later than it was written, and a message may arrive after the line of a later decision. So a
//! decision is weighed against the state *as of its own time*, by the router's clock:
//! - `waiting`: it is recorded at once with what is known of the chosen worker; its costs follow when the publishers'
//!   clocks have passed its time, or half a second later. Words of other sources are held against it for two seconds.
//! - `changes`, `past`: three seconds of what workers stored and dropped lie in a flat ring beside the tree, seen
//!   before the fold. The tree of then is the tree of now less what is in the ring since, found by worker, by the
//!   name of the block before and by tokens, so that it is exact where the tree has lost the node. The ring is empty
//!   until somebody tells prompts: 56 bytes and one look-up for each block stored or dropped, at most 2^18 of them.
//!   What was cleared, and what lies before the ring, is not known.
//! - `active`: the same for loads: steps of the last three seconds, undone. `early` keeps first tokens and ends of
//!   requests whose decision is read only later.
//! - `reconstruct`: the router applies an event a little after it was published. Of the states within 50 ms before
//!   and 20 ms after the decision the nearest that agrees with everything the router reported (overlap, cost, and
//!   where possible the choice) is taken; nothing else is fitted. Where none agrees, the costs are not shown, and the
//!   decision says what is missing: block size, the state at that time, an overlap or a cost that differs.
//!
//! The fold keeps the invariant: costs that contradict what the router reported of the chosen worker are never called
//! reconstructed, whatever order the pieces came in. Recorded traffic of routers that also log what they computed
//! shows how exact it is: all requests of ten 1.6 and 1.7 recordings with the log up to 500 ms late or the messages
//! up to 200 ms, all candidates of a 0.9.1 recording.

mod below;
mod changes;
mod departures;
mod early;
mod endings;
mod halves;
mod in_flight;
mod joiner;
mod lines;
mod nameless;
mod pairs;
mod past;
mod paths;
mod reconstruct;
mod waiting;

#[cfg(test)]
mod tests;

use crate::ingest::{FRESH_MS, Published, RequestObservation, RequestSignal};
use radixscope_dynamo::active_sequence::{ActiveSequence, AddRequest, RouterId, SequenceChange};
use radixscope_dynamo::trace::RequestTrace;
use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::record::{
    Completeness, Decision, DecisionSource, Entry, NotReconstructed, Progress, Record, Role, RoleEvidence,
};
use radixscope_router::{Formula, RouterSettings};
use radixscope_state::cluster::{Cluster, TierBlocks};

use below::Below;
use changes::Changes;
use departures::Departures;
pub(crate) use departures::{is_known, returns};
use early::{Early, Steps};
use endings::Endings;
use halves::{Half, Halves};
use in_flight::InFlight;
use joiner::{CorrelationKey, Joiner, Parts, Placed};
use lines::{Lines, LoggedChoice};
use nameless::Nameless;
use pairs::{Pairs, PrefillChoice};
use radixscope_model::moment::Moment;
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::{ActiveSequences, Arrivals, Prompt};
use reconstruct::{Ground, Reconstructor};
use waiting::{ChoiceReport, Kept, Reconstruction, Waiting};

/// Lines and messages that are further apart than this are not of the same moment: a log that is read from its
/// beginning tells of times whose tree is gone.
const SAME_MOMENT_MS: u64 = 5_000;

/// Longest name of an adapter that is kept, in characters.
const MAX_ADAPTER_CHARS: usize = 128;

/// Joins pieces to decisions.
#[derive(Default)]
pub struct Routing {
    joiner: Joiner,
    active: ActiveSequences,
    arrivals: Arrivals,
    lines: Lines,
    endings: Endings,
    departures: Departures,
    in_flight: InFlight,
    reconstructor: Reconstructor,
    changes: Changes,
    waiting: Waiting,
    nameless: Nameless<LoggedChoice<'static>>,
    early: Early,
    halves: Halves,
    pairs: Pairs,
    below: Below,
    /// Decisions that turned out to be one of two of their request.
    linked: Vec<Record<'static>>,
    /// Workers that a router reported to count load for.
    counted: PerWorker<bool>,
    /// Steps that were reported before their decisions, which are known now.
    caught_up: Vec<(DecisionId, Steps)>,
    /// Whether workers publish under their own ids, as they do up to Dynamo 1.2.
    own_ids: bool,
    /// Latest time that a publisher reported.
    clock: Option<Millis>,
}

impl Routing {
    /// Goes on from a state that was kept: requests that had not ended go on to be its decisions'.
    pub(crate) fn resume(&mut self, cluster: &Cluster) {
        let decisions = cluster.decisions();
        let last = decisions.newest_first().map(|known| known.decision.id).max();
        self.joiner.resume(last.unwrap_or(DecisionId(0)));
        for known in decisions.newest_first().rev().filter(|known| known.progress.ended_ms.is_none()) {
            let &Decision { id, worker, ref request_id, .. } = &known.decision;
            let placed = cluster.pool_of(worker).map(|pool| Placed { id, worker, pool });
            if let (Some(request_id), Some(placed)) = (request_id, placed) {
                self.joiner.name(request_id, placed);
            }
        }
    }

    /// Takes something observed of a request; gives the records that follow from it.
    pub(crate) fn observe(
        &mut self,
        observed: &RequestObservation<'_>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        self.pass_time(observed.published_ms, observed.at_ms);
        let mut records = self.take(observed, cluster);
        self.give_up_names(observed.at_ms, cluster, &mut records);
        let is_decision = |record: &Record<'_>| matches!(record, Record::Decision(_));
        if self.endings.are_waiting() && records.iter().any(is_decision) {
            self.join_endings(&mut records, cluster);
        }
        for (decision, steps) in std::mem::take(&mut self.caught_up) {
            records.push(self.take_steps(decision, &steps));
        }
        records.append(&mut self.linked);
        records.append(&mut self.settle(observed.at_ms, cluster));
        records
    }

    /// A record passes on its way to `cluster`, with what its message reported of its publisher.
    pub(crate) fn see(&mut self, entry: &Entry<'_>, by: Published, cluster: &Cluster) {
        self.pass_time(by.at_ms, entry.at_ms);
        self.own_ids = by.is_own_id.unwrap_or(self.own_ids);
        let published_ms = by.at_ms.filter(|at| is_plausible(*at, entry.at_ms));
        self.changes.see(Moment::of(published_ms.unwrap_or(entry.at_ms)), &entry.record, cluster);
    }

    /// Says what became known of decisions by the records that passed until `at_ms`.
    pub(crate) fn settle(&mut self, at_ms: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        if !self.waiting.is_open() {
            return Vec::new();
        }
        let formula = if self.own_ids { Formula::B } else { Formula::E };
        let mut records = Vec::new();
        let Self { waiting, reconstructor, active, changes, departures, counted, lines, .. } = self;
        let ground = Ground { cluster, changes, active, counted };
        waiting.settle(at_ms, |case, is_last| {
            let settings = |formula| settings(cluster, lines, formula, case.report().worker);
            let Some(asked) = case.asked(formula, settings) else {
                return Reconstruction::Not(NotReconstructed::State);
            };
            let mut decision =
                Decision::new(asked.report.decision, asked.report.worker, case.report().source);
            decision.overlap_blocks = asked.report.overlap_blocks;
            decision.logit = asked.report.logit;
            let decided_ms = asked.report.at.millis();
            let found = reconstructor.weigh(ground, &asked, |worker| {
                departures.is_gone(worker, cluster) || departures.is_out(worker, decided_ms)
            });
            let verdict = match found {
                Ok(found) => {
                    decision.completeness = Completeness::Reconstructed;
                    decision.formula = Some(found.formula);
                    decision.prefill_factor = Some(found.prefill_factor);
                    decision.path = found.path;
                    let chosen =
                        found.candidates.iter().find(|candidate| candidate.worker == asked.report.worker);
                    let (overlap, cost) = chosen.map_or((0, f64::NAN), |c| (c.overlap_blocks, c.cost));
                    decision.candidates = found.candidates;
                    Reconstruction::Found { overlap_blocks: overlap.into(), cost }
                }
                Err(missing) if is_last => {
                    decision.not_reconstructed = Some(missing);
                    decision.path =
                        reconstructor.path_end(cluster.tree_of(asked.report.worker), asked.prompt);
                    Reconstruction::Not(missing)
                }
                Err(missing) => return Reconstruction::Not(missing),
            };
            records.push(Record::Decision(decision));
            verdict
        });
        records
    }

    /// Steps of a request whose decision is known.
    fn take_steps(&mut self, decision: DecisionId, steps: &Steps) -> Record<'static> {
        if let Some(at) = steps.first_token {
            self.active.prefill_completed(at, decision);
        }
        if let Some((at, worker)) = steps.freed {
            self.active.free(at, decision);
            self.in_flight.end(decision, Some(worker));
        }
        let progress = Progress {
            first_token_ms: steps.first_token.map(Moment::millis),
            ended_ms: steps.freed.map(|(at, _)| at.millis()),
            ..Progress::default()
        };
        Record::Progress { decision, progress }
    }

    fn pass_time(&mut self, published: Option<Millis>, received: Millis) {
        let published = published.filter(|published| is_plausible(*published, received));
        self.clock = self.clock.max(published);
        if let Some(published) = published {
            self.waiting.pass(Moment::of(published));
        }
    }

    fn take(&mut self, observed: &RequestObservation<'_>, cluster: &Cluster) -> Vec<Record<'static>> {
        let at = observed.published_ms.unwrap_or(observed.at_ms);
        match &observed.signal {
            RequestSignal::HitRate { worker, router, isl_blocks, overlap_blocks } => {
                let mut decision = self.piece(&CorrelationKey {
                    source: DecisionSource::KvHitRate,
                    at_ms: at,
                    is_received: observed.published_ms.is_none(),
                    is_query: false,
                    worker: *worker,
                    pool: cluster.pool_of(*worker).unwrap_or_default(),
                    request_id: None,
                    http_id: None,
                    overlap_blocks: Some(*overlap_blocks),
                    isl_blocks: Some(*isl_blocks),
                });
                decision.decided_ms = observed.published_ms;
                decision.router = *router;
                let other = self.pair(&decision, at, *isl_blocks, cluster);
                decision.other_part = decision.other_part.or(other);
                vec![Record::Decision(decision)]
            }
            RequestSignal::Sequence { worker, step } => self.sequence(observed, *worker, step, cluster),
            RequestSignal::Log { log, record, worker } => self.line(observed, log, record, *worker, cluster),
            RequestSignal::Trace { trace, worker, decode } => worker.map_or_else(Vec::new, |worker| {
                self.trace(observed.at_ms, trace, (worker, *decode), cluster)
            }),
        }
    }

    /// The other choice for the request of a decision whose messages name no request, if it is unambiguous.
    fn pair(
        &mut self,
        decision: &Decision,
        at_ms: Millis,
        isl_blocks: u64,
        cluster: &Cluster,
    ) -> Option<DecisionId> {
        let (id, worker) = (decision.id, decision.worker);
        match cluster.role(cluster.pool_of(worker)?)?.0 {
            Role::Prefill => {
                self.pairs.prefill(PrefillChoice { id, worker, at_ms, isl_blocks });
                None
            }
            Role::Decode => {
                let prefill = self.pairs.decode(at_ms, isl_blocks)?;
                let mut first = Decision::new(prefill.id, prefill.worker, decision.source);
                first.other_part = Some(id);
                self.linked.push(Record::Decision(first));
                Some(prefill.id)
            }
            Role::Aggregated => None,
        }
    }

    /// Requests that run now.
    pub fn active(&self) -> &ActiveSequences {
        &self.active
    }

    /// Says what was gathered since the last call: workers that left or are there again, and requests in flight. Call
    /// it about once a second. `now_ms` is the present of those who speak, see [`crate::ingest::Ingest::now`].
    pub(crate) fn flush(&mut self, at_ms: Millis, now_ms: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        let mut records = Vec::new();
        self.give_up_names(at_ms, cluster, &mut records);
        records.append(&mut self.settle(at_ms, cluster));
        records.append(&mut self.departures.flush(now_ms, cluster));
        self.in_flight.flush(at_ms, |worker| self.departures.is_gone(worker, cluster), &mut records);
        self.flush_endings(at_ms, cluster, &mut records);
        records
    }

    /// Other workers take these places, see [`Record::WorkersReclaimed`].
    pub(crate) fn reclaim(&mut self, workers: &[WorkerIx]) {
        // Every field by name: whoever adds one has to say here whether it knows workers.
        let Self {
            joiner,
            active,
            lines,
            endings,
            departures,
            in_flight,
            changes,
            waiting,
            nameless,
            early,
            halves,
            pairs,
            counted,
            linked: _,
            arrivals: _,
            reconstructor: _,
            caught_up: _,
            own_ids: _,
            clock: _,
            below: _,
        } = self;
        joiner.reclaim(workers);
        active.reclaim(workers);
        lines.reclaim(workers);
        endings.reclaim(workers);
        departures.reclaim(workers);
        in_flight.reclaim(workers);
        changes.reclaim(workers);
        waiting.reclaim(workers);
        nameless.reclaim(workers);
        early.reclaim(workers);
        halves.reclaim(workers);
        pairs.reclaim(workers);
        counted.reclaim(workers);
    }

    /// The latest requests with their prompts.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// A piece of the decision that its key leads to.
    fn piece(&mut self, key: &CorrelationKey<'_>) -> Decision {
        let before = self.joiner.parts(key.request_id, key.http_id);
        let mut decision = Decision::new(self.joiner.decision(key), key.worker, key.source);
        let in_span = || key.http_id.and_then(|http_id| self.joiner.request_in(http_id));
        decision.request_id = key.request_id.or_else(in_span).map(str::to_owned);
        if let Some(steps) = decision.request_id.as_deref().and_then(|id| self.early.take(id, key.pool)) {
            self.caught_up.push((decision.id, steps));
        }
        decision.other_part = before.iter().find(|other| other.id != decision.id).map(|other| other.id);
        if before.iter().all(|known| known.id != decision.id) {
            // A new part: the one before learns of it.
            self.linked.extend(before.iter().take(1).map(|other| {
                let mut first = Decision::new(other.id, other.worker, key.source);
                first.other_part = Some(decision.id);
                Record::Decision(first)
            }));
        }
        decision.overlap_blocks = key.overlap_blocks;
        decision.isl_blocks = key.isl_blocks;
        decision
    }

    fn sequence(
        &mut self,
        observed: &RequestObservation<'_>,
        worker: WorkerIx,
        sequence: &ActiveSequence<'_>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let at = Moment::of(observed.published_ms.unwrap_or(observed.at_ms));
        let steps = match &sequence.step {
            SequenceChange::Added(request) => {
                return self.added(observed, worker, sequence, request, cluster);
            }
            SequenceChange::PrefillCompleted => {
                if sequence.by_worker {
                    self.active.worker_reports();
                }
                Steps { first_token: Some(at), ..Steps::default() }
            }
            SequenceChange::Freed => Steps { freed: Some((at, worker)), ..Steps::default() },
        };
        let pool = cluster.pool_of(worker).unwrap_or_default();
        match self.joiner.parts(Some(&sequence.request_id), None).part(worker, pool) {
            Some(part) => vec![self.take_steps(part.id, &steps)],
            None => {
                self.early.fill(&sequence.request_id, pool, observed.at_ms, steps);
                Vec::new()
            }
        }
    }

    fn added(
        &mut self,
        observed: &RequestObservation<'_>,
        worker: WorkerIx,
        sequence: &ActiveSequence<'_>,
        request: &AddRequest,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let at = observed.published_ms.unwrap_or(observed.at_ms);
        let pool = cluster.pool_of(worker).unwrap_or_default();
        let key = CorrelationKey {
            source: DecisionSource::ActiveSequences,
            at_ms: at,
            is_received: observed.published_ms.is_none(),
            is_query: false,
            worker,
            pool,
            request_id: Some(&sequence.request_id),
            http_id: None,
            overlap_blocks: None,
            isl_blocks: None,
        };
        let mut records: Vec<Record<'static>> =
            self.role_shown(worker, request, cluster).into_iter().collect();
        let length = self.length(request, worker, cluster);
        let key =
            CorrelationKey { overlap_blocks: length.overlap_blocks, isl_blocks: length.isl_blocks(), ..key };
        let mut decision = self.piece(&key);
        if cluster.has_tiers(pool) {
            self.below.keep(decision.id, request, &length);
        }
        decision.decided_ms = observed.published_ms;
        decision.adapter =
            sequence.lora_name.as_deref().map(|name| name.chars().take(MAX_ADAPTER_CHARS).collect());
        decision.router = match sequence.router {
            RouterId::Number(id) => Some(id),
            RouterId::Text => None,
        };
        let chain = request.token_sequence.as_deref().unwrap_or_default();
        let prefill_tokens = length.prefill_tokens.unwrap_or(0);
        let waiting_tokens = self.active.load(worker).prefill_tokens;
        self.active.add(Moment::of(at), decision.id, worker, chain, prefill_tokens);
        self.active.reported(decision.id);
        self.in_flight.begin(observed.at_ms, decision.id, worker);
        let half = Half {
            placed: Placed { id: decision.id, worker, pool },
            at: Moment::of(at),
            received_ms: observed.at_ms,
            waiting_tokens,
            request: request.clone(),
        };
        if request.token_sequence.is_some() && length.isl_tokens.is_some() && !self.is_apart(pool, cluster) {
            self.known_length(&mut decision, &half, chain, length, cluster);
            records.push(Record::Decision(decision));
            return records;
        }
        (decision.isl_tokens, decision.block_size_tokens) = (length.isl_tokens, length.block_size_tokens);
        records.push(Record::Decision(decision));
        if let Some(other) = self.halves.take(&sequence.request_id, &half) {
            records.extend(self.joined(&half, &other, cluster));
        } else if request.token_sequence.is_some() {
            let mut alone = Decision::new(half.placed.id, worker, DecisionSource::ActiveSequences);
            self.known_length(&mut alone, &half, chain, length, cluster);
            records.push(Record::Decision(alone));
        }
        records
    }

    /// Whether another pool computes the prompts of this one, so that a second message about each request is to come.
    fn is_apart(&self, pool: PoolIx, cluster: &Cluster) -> bool {
        cluster.role(pool).is_some_and(|(role, _)| role == Role::Decode)
    }

    /// What the form of a message shows of the pool's role.
    fn role_shown(
        &self,
        worker: WorkerIx,
        request: &AddRequest,
        cluster: &Cluster,
    ) -> Option<Record<'static>> {
        role_sign(cluster, worker, request.role_sign()?, RoleEvidence::Wire)
    }

    /// Both choices of a request, of which the messages have come: each gets what the other one's message tells.
    fn joined(&mut self, one: &Half, other: &Half, cluster: &Cluster) -> Vec<Record<'static>> {
        let (prefill, decode) =
            if one.request.token_sequence.is_some() { (other, one) } else { (one, other) };
        let Some(chain) = decode.request.token_sequence.clone() else { return Vec::new() };
        let whole = AddRequest { token_sequence: Some(chain.clone()), ..prefill.request.clone() };
        let length = self.length(&whole, prefill.placed.worker, cluster);
        let size = length.block_size_tokens.or_else(|| Some(cluster.block_size(decode.placed.worker)?.value));
        let of_decode =
            Length { overlap_blocks: None, prefill_tokens: None, block_size_tokens: size, ..length };
        [(prefill, length), (decode, of_decode)]
            .into_iter()
            .map(|(half, length)| {
                let Placed { id, worker, .. } = half.placed;
                let mut decision = Decision::new(id, worker, DecisionSource::ActiveSequences);
                if half.placed.id == prefill.placed.id {
                    decision.chosen_cost = self.prefill_cost(half, &length, cluster);
                }
                self.known_length(&mut decision, half, &chain, length, cluster);
                Record::Decision(decision)
            })
            .collect()
    }

    /// What the chosen prefill worker cost in blocks, by the router's own messages: what waited there and what of this prompt
    /// it does not hold. It needs no tree.
    fn prefill_cost(&self, half: &Half, length: &Length, cluster: &Cluster) -> Option<f64> {
        let size = length.block_size_tokens.filter(|&size| size > 0)?;
        let formula = if half.request.isl.is_some() { Formula::A } else { Formula::E };
        let factor = settings(cluster, &self.lines, formula, half.placed.worker).prefill_factor();
        let tokens = half.waiting_tokens.saturating_add(length.prefill_tokens?);
        Some(factor * tokens as f64 / f64::from(size))
    }

    /// Completes a decision whose prompt is known, and lets its costs be computed.
    fn known_length(
        &mut self,
        decision: &mut Decision,
        half: &Half,
        chain: &[u64],
        length: Length,
        cluster: &Cluster,
    ) {
        let ignores_cache = self.is_apart(half.placed.pool, cluster);
        decision.isl_tokens = length.isl_tokens;
        decision.isl_blocks = length.isl_blocks();
        decision.block_size_tokens = length.block_size_tokens;
        decision.overlap_blocks = length.overlap_blocks.filter(|_| !ignores_cache);
        decision.lower_tier_blocks = length.lower_tier_blocks.filter(|_| !ignores_cache);
        // Routers that are not to expect that blocks are used again, as decode routers are not, name them at random.
        let is_named = ignores_cache
            || half.request.token_sequence.is_some()
            || self.reconstructor.path_end(cluster.tree_of(decision.worker), Prompt::Chain(chain)).is_some();
        if !is_named {
            decision.not_reconstructed = Some(NotReconstructed::Prompt);
            return;
        }
        let report = ChoiceReport {
            decision: decision.id,
            worker: decision.worker,
            source: DecisionSource::ActiveSequences,
            at: half.at,
            received_ms: half.received_ms,
            prompt: Some(Kept::Chain(chain.into())),
            length,
            // Dynamo 0.8 to 1.1 tells the length here, later versions do not.
            formula: half.request.isl.map(|_| Formula::A),
            overlap_blocks: decision.overlap_blocks,
            lower_tier_blocks: None,
            logit: None,
            is_whole: true,
        };
        self.wait(decision, report, half.received_ms, cluster);
        if !ignores_cache {
            self.arrived(decision.id, half.received_ms, &length, chain);
        }
    }

    /// Length of a request that is added; what it shows of the block size counts where no other source knows it.
    fn length(&mut self, request: &AddRequest, worker: WorkerIx, cluster: &Cluster) -> Length {
        let chain = request.token_sequence.as_deref();
        let mut block_size = cluster.block_size(worker).map(|size| size.value);
        let pool = cluster.pool_of(worker).unwrap_or_default();
        let mut below = TierBlocks::default();
        if let (Some(to_prefill), Some(chain)) = (request.initial_effective_prefill_tokens, chain)
            && (block_size.is_none() || cluster.has_tiers(pool))
        {
            let (held, lower) = self.reconstructor.overlap(cluster, Prompt::Chain(chain), worker);
            below = lower;
            if block_size.is_none() {
                // What is to prefill begins at a block's first token, so that its full blocks give the size away.
                let full = (chain.len() as u64).saturating_sub(held.into());
                block_size = self::block_size(to_prefill, full).and_then(|size| u32::try_from(size).ok());
            }
        }
        let credit =
            RouterSettings::default().tier_credit(below.host, below.disk.saturating_add(below.external));
        let credited_tokens = (credit * f64::from(block_size.unwrap_or(0))).round() as u64;
        let lower = u64::from(below.host) + u64::from(below.disk) + u64::from(below.external);
        let length = Length::of(request, chain, block_size, credited_tokens);
        Length { lower_tier_blocks: (lower > 0).then_some(lower), ..length }
    }

    /// Lets a decision wait until the state at its time is known, or says at once that it never will be.
    fn wait(&mut self, decision: &mut Decision, report: ChoiceReport, received: Millis, cluster: &Cluster) {
        self.changes.need();
        let length = &report.length;
        if !self.is_now(report.at.millis(), received) {
            decision.not_reconstructed = Some(NotReconstructed::State);
        } else if length.isl_tokens.is_none() || length.block_size_tokens.is_none() {
            decision.not_reconstructed = Some(NotReconstructed::BlockSize);
            if let Some(kept) = &report.prompt {
                decision.path = self.reconstructor.path_end(cluster.tree_of(report.worker), kept.prompt());
            }
        } else {
            self.waiting.take(report);
        }
    }

    fn arrived(&mut self, id: DecisionId, at_ms: Millis, length: &Length, chain: &[u64]) {
        self.arrivals.push(id, at_ms, length.isl_tokens, chain);
    }

    fn trace(
        &mut self,
        received_at: Millis,
        trace: &RequestTrace<'_>,
        (worker, decode): (WorkerIx, Option<WorkerIx>),
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let isl_tokens = trace.input_tokens.or(trace.input_length_tokens);
        let block_size = trace.trace_block_size_tokens.and_then(|b| u32::try_from(b).ok()).filter(|&b| b > 0);
        let length = Length { isl_tokens, block_size_tokens: block_size, ..Length::default() };
        let isl_blocks = length.isl_blocks();
        let share = trace.kv_hit_rate.filter(|share| (0.0..=1.0).contains(share));
        let (received_ms, ended_ms) =
            (trace.request_received_ms.map(Millis), trace.event_time_ms.map(Millis));
        let at_ms = received_ms.or(ended_ms).unwrap_or(received_at);
        let overlap_blocks = isl_blocks.zip(share).map(|(isl, share)| (isl as f64 * share).round() as u64);
        let key = CorrelationKey {
            source: DecisionSource::RequestTrace,
            at_ms,
            is_received: received_ms.or(ended_ms).is_none(),
            is_query: false,
            worker,
            pool: cluster.pool_of(worker).unwrap_or_default(),
            request_id: Some(&trace.request_id),
            http_id: None,
            overlap_blocks,
            isl_blocks,
        };
        let mut decision = self.piece(&key);
        decision.decided_ms = received_ms;
        decision.isl_tokens = isl_tokens;
        decision.block_size_tokens = block_size;
        let id = decision.id;
        if let (Some(chain), Some(block_size), Some(isl)) =
            (&trace.input_sequence_hashes, block_size, isl_tokens)
        {
            // The last hash may be of a part of a block, which is never matched.
            let full = usize::try_from(isl / u64::from(block_size)).unwrap_or(usize::MAX);
            self.arrived(id, at_ms, &length, &chain[..full.min(chain.len())]);
        }
        if let Some(tokens) = trace.output_tokens {
            self.arrivals.finished(id, tokens);
        }
        let progress = Progress {
            ended_ms,
            ttft_us: trace.ttft_ms.and_then(micros),
            queue_us: trace.prefill_wait_time_ms.and_then(micros),
            prefill_us: trace.prefill_time_ms.and_then(micros),
            itl_us: trace.avg_itl_ms.and_then(micros),
            output_tokens: trace.output_tokens,
            ..Progress::default()
        };
        let cached = Progress { cached_tokens: trace.cached_tokens, ..Progress::default() };
        let ended = Moment::of(ended_ms.unwrap_or(received_at));
        let mut records = vec![Record::Decision(decision)];
        let answering = decode.filter(|decode| *decode != worker).map(|decode| {
            let pool = cluster.pool_of(decode).unwrap_or_default();
            let mut part = self.piece(&CorrelationKey { worker: decode, pool, overlap_blocks: None, ..key });
            (part.isl_tokens, part.block_size_tokens) = (isl_tokens, block_size);
            let id = part.id;
            records.push(Record::Decision(part));
            id
        });
        for id in std::iter::once(id).chain(answering) {
            self.active.free(ended, id);
            self.in_flight.end(id, None);
        }
        // The prompt was found where it was computed, the answer came from where it was generated.
        match answering {
            Some(answering) => records.extend([
                Record::Progress { decision: id, progress: cached },
                Record::Progress { decision: answering, progress },
            ]),
            None => {
                let progress = Progress { cached_tokens: trace.cached_tokens, ..progress };
                records.push(Record::Progress { decision: id, progress });
            }
        }
        records
    }

    /// The part of a request that its answer comes from: where prefill and decode are apart, the choice among decode
    /// workers; else the first one.
    fn answering(&self, parts: &Parts, cluster: &Cluster) -> Option<Placed> {
        let role = |placed: &Placed| cluster.role(placed.pool).map(|(role, _)| role);
        let decode = parts.iter().find(|placed| role(placed) == Some(Role::Decode));
        let other = || parts.iter().find(|placed| role(placed) != Some(Role::Prefill));
        decode.or_else(other).or_else(|| parts.iter().next())
    }

    /// Whether something that was written at `at` is of the present, not read long after it was written.
    fn is_now(&self, at: Millis, received: Millis) -> bool {
        self.clock.unwrap_or(received).since(at) <= SAME_MOMENT_MS
    }
}

/// A sign of what the pool of `worker` does, if it is news.
fn role_sign(
    cluster: &Cluster,
    worker: WorkerIx,
    role: Role,
    evidence: RoleEvidence,
) -> Option<Record<'static>> {
    let pool = cluster.pool(cluster.pool_of(worker)?)?;
    (!pool.says(evidence, role)).then_some(Record::Role { worker, role, evidence })
}

/// What the router of the pool of `worker` runs with, as far as its log tells the factor of the prefill term.
fn settings(cluster: &Cluster, lines: &Lines, formula: Formula, worker: WorkerIx) -> RouterSettings {
    let pool = cluster.pool_of(worker).unwrap_or_default();
    let role = cluster.role(pool).map_or(Role::Aggregated, |(role, _)| role);
    // A decode router of formula A weighs the prompt by 0 where one from B on leaves it out.
    let is_unweighed = role == Role::Decode && formula == Formula::A;
    let factor = lines.weight(pool).unwrap_or(if is_unweighed { 0.0 } else { 1.0 });
    let mut settings = RouterSettings::new(formula);
    settings.set_prefill_factor(factor);
    settings.in_role(role)
}

/// A clock that is ahead of ours by more than clocks are says nothing of the present.
fn is_plausible(published: Millis, received: Millis) -> bool {
    published.since(received) <= FRESH_MS
}

/// Microseconds of a measured duration; nothing for what is no duration.
fn micros(ms: f64) -> Option<u64> {
    (ms.is_finite() && (0.0..1e12).contains(&ms)).then(|| (ms * 1_000.0).round() as u64)
}

/// What a request's length is known to be.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Length {
    isl_tokens: Option<u64>,
    block_size_tokens: Option<u32>,
    /// By the router's own count.
    overlap_blocks: Option<u64>,
    /// In lower tiers, by the trees of those.
    lower_tier_blocks: Option<u64>,
    /// Tokens that the chosen worker has to prefill, by the router's own count.
    prefill_tokens: Option<u64>,
}

impl Length {
    /// Takes what another source tells beyond what is known.
    fn fill(&mut self, more: Self) {
        self.isl_tokens = self.isl_tokens.or(more.isl_tokens);
        self.block_size_tokens = self.block_size_tokens.or(more.block_size_tokens);
        self.overlap_blocks = self.overlap_blocks.or(more.overlap_blocks);
        self.lower_tier_blocks = self.lower_tier_blocks.or(more.lower_tier_blocks);
        self.prefill_tokens = self.prefill_tokens.or(more.prefill_tokens);
    }

    /// From what a router says when it adds a request. From 1.2 on that is the tokens to prefill and the full blocks,
    /// which together give the rest: both lengths leave the same remainder after full blocks.
    /// `credited_tokens`: what the lower tiers of the chosen worker took off them.
    fn of(
        request: &AddRequest,
        chain: Option<&[u64]>,
        block_size_tokens: Option<u32>,
        credited_tokens: u64,
    ) -> Self {
        let full = chain.map(|chain| chain.len() as u64);
        let block_size = block_size_tokens
            .map(u64::from)
            .filter(|&size| size > 0)
            .or_else(|| block_size(request.isl?, full?))
            .filter(|&size| u32::try_from(size).is_ok());
        let to_prefill = request.initial_effective_prefill_tokens;
        let derived = || Some(Self::to_prefill(to_prefill?, full?, block_size?, credited_tokens));
        let derived = derived().unwrap_or_default();
        let isl_tokens = request.isl.or(derived.isl_tokens);
        let overlap_blocks = request.overlap.or(derived.overlap_blocks);
        let prefill_tokens = to_prefill
            .or_else(|| Some(isl_tokens?.saturating_sub(overlap_blocks?.saturating_mul(block_size?))));
        Self {
            isl_tokens,
            block_size_tokens: block_size.and_then(|size| u32::try_from(size).ok()),
            overlap_blocks,
            lower_tier_blocks: None,
            prefill_tokens,
        }
    }

    /// From tokens to prefill and full blocks alone.
    fn to_prefill(tokens: u64, full_blocks: u64, block_size: u64, credited_tokens: u64) -> Self {
        let not_on_device = tokens.saturating_add(credited_tokens);
        let isl_tokens = || {
            let isl =
                full_blocks.checked_mul(block_size)?.checked_add(not_on_device.checked_rem(block_size)?)?;
            (isl >= not_on_device).then_some(isl)
        };
        let isl_tokens = isl_tokens();
        let overlap_blocks = isl_tokens.and_then(|isl| (isl - not_on_device).checked_div(block_size));
        Self { isl_tokens, overlap_blocks, prefill_tokens: Some(tokens), ..Self::default() }
    }

    /// Rounded up.
    fn isl_blocks(&self) -> Option<u64> {
        Some(self.isl_tokens?.div_ceil(u64::from(self.block_size_tokens?)))
    }
}

/// The block size with which a prompt of `isl_tokens` has `full` whole blocks, if only one power of two fits; Dynamo's
/// engines use no other.
fn block_size(isl_tokens: u64, full: u64) -> Option<u64> {
    let mut fitting = (0..=12).map(|bits| 1_u64 << bits).filter(|size| isl_tokens / size == full);
    let size = fitting.next()?;
    (full > 0 && fitting.next().is_none()).then_some(size)
}
