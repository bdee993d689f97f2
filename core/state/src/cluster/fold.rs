//! `state' = fold(state, record)`: the one place where the state changes.

use super::decisions::is_computed;
use super::process::ProcessState;
use super::router::Routers;
use super::settings::SettingsReports;
use super::workers::Admission;
use super::{
    Cluster, Head, LogSignalState, MAX_PROCESSES, MAX_SOURCES, RouterLoad, SourceState, UnknownGaps,
    WorkerState,
};
use crate::tree::{HIT_WINDOW, NodeId, StoreOutcome, Tree};
use radixscope_model::id::{BlockHash, Millis, PoolIx, Seq, WorkerIx};
use radixscope_model::record::{
    Block, ClientResult, Completeness, Decision, DepartureCause, Entry, LogSignal, PolicyClasses, Record,
    Scrape, SequenceStep, WorkerIdentity,
};

/// Resolution of "last touched" in the tree: four bytes then last for thirteen years.
pub const TOUCH_MS: u64 = 100;
const _: () = assert!(HIT_WINDOW as u64 * TOUCH_MS == 15 * 60_000, "hits are kept for 15 minutes");
/// Most kinds of signs kept apart; sizes that a log names make more than one of a kind.
const MAX_SIGNS: usize = 64;
/// Unix time at which touches begin, 2020-01-01: four bytes reach 2033.
const TOUCH_EPOCH_MS: u64 = 1_577_836_800_000;

/// A time as the tree keeps it, in steps of [`TOUCH_MS`].
pub fn touch(at: Millis) -> u32 {
    u32::try_from(at.0.saturating_sub(TOUCH_EPOCH_MS) / TOUCH_MS).unwrap_or(u32::MAX)
}

/// Unix time of a touch.
pub fn touched_ms(touched: u32) -> Millis {
    Millis(TOUCH_EPOCH_MS + u64::from(touched) * TOUCH_MS)
}

/// Whether the decision contains the position where the prompt's cached prefix ended, or that no worker held its first block.
fn has_prompt(decision: &Decision) -> bool {
    decision.path.is_some() || decision.completeness == Completeness::Reconstructed
}

impl Cluster {
    /// Folds one record in. `seq` is its place in the log; a record already folded is ignored, so that a resumed
    /// stream may begin early.
    ///
    /// A record about a worker or source that was never introduced changes nothing but `seq`.
    pub fn fold(&mut self, seq: Seq, entry: &Entry<'_>) {
        if seq <= self.head.seq {
            return;
        }
        self.head.seq = seq;
        let at = entry.at_ms;
        self.pass_time(at);
        match &entry.record {
            Record::Stored { worker, parent, blocks } => self.fold_stored(at, *worker, *parent, blocks),
            Record::Removed { worker, hashes } => self.fold_removed(at, *worker, hashes),
            _ => self.fold_other(seq, entry),
        }
    }

    /// A record that is not of blocks stored or removed, as nearly all are. Apart, so that those do not pay for the room that
    /// all others need on the stack.
    #[inline(never)]
    fn fold_other(&mut self, seq: Seq, entry: &Entry<'_>) {
        let at = entry.at_ms;
        match &entry.record {
            Record::Source { source, name, kind } => {
                if source.at() == self.head.sources.len() && source.at() < MAX_SOURCES {
                    self.head.sources.push(SourceState::new(name.to_string(), *kind, at));
                }
            }
            Record::SourceState { source, state, detail } => {
                if let Some(s) = self.source_mut(*source) {
                    s.link(*state, detail.to_string(), at);
                }
            }
            Record::Traffic { source, received, lag_ms } => {
                if let Some(s) = self.source_mut(*source) {
                    s.received = *received;
                    s.lag_ms = *lag_ms;
                    s.last_ms = Some(at);
                }
            }
            Record::Missed { source, worker, topic, cause, count } => {
                let worker = worker.filter(|&worker| self.head.workers.get(worker).is_some());
                if let Some(s) = self.source_mut(*source) {
                    s.miss(worker, (*topic, *cause), *count, at);
                }
                if let Some(w) = worker.and_then(|worker| self.worker_mut(worker)) {
                    w.missed_total = w.missed_total.saturating_add(*count);
                }
            }
            Record::Recovered { source, worker, topic, cause, count } => {
                if let Some(s) = self.source_mut(*source) {
                    s.recover(*worker, *topic, *cause, *count);
                }
                if let Some(w) = self.worker_mut(*worker) {
                    // What was lost of a publisher may not have been counted as its worker's.
                    w.recovered_total = w.recovered_total.saturating_add(*count).min(w.missed_total);
                }
            }
            Record::TreeDumpBegan { .. } | Record::TreeDumpStored { .. } | Record::TreeDumpRemoved { .. } => {
                self.fold_dump(&entry.record);
            }
            Record::Gaps { source, topic, count, since_ms, until_ms } => {
                if let Some(s) = self.source_mut(*source) {
                    let (topic, count, since_ms, until_ms) = (*topic, *count, *since_ms, *until_ms);
                    s.note_gaps(UnknownGaps { topic, count, since_ms, until_ms });
                }
            }
            Record::Rejected { source, topic, reason, count, sample } => {
                if let Some(s) = self.source_mut(*source) {
                    s.reject(*topic, *reason, *count, sample, at);
                }
            }
            Record::Decision(decision) => {
                if self.worker(decision.worker).is_some() {
                    self.fold_decision(seq, at, decision);
                }
            }
            Record::Progress { decision, progress } => self.head.decisions.progress(*decision, progress),
            Record::Reuse(reuse) => self.head.decisions.reuse(reuse),
            Record::Request(ended) => self.head.requests.push(ended),
            Record::Scrape(scrape) => self.fold_scrape(at, scrape),
            Record::LogSignal { worker, sign, count } => {
                let worker = worker.filter(|&worker| self.head.workers.get(worker).is_some());
                self.fold_sign(at, worker, *sign, *count);
            }
            Record::Finding(finding) => self.head.findings.found(finding),
            Record::Checked(rules) => self.head.findings.checked(rules),
            Record::Settings(reported) => self.head.settings.reported(at, reported),
            Record::PolicyClasses(reported) => self.fold_policy_classes(reported),
            Record::EngineFeed(feed) => self.fold_engine(feed),
            Record::Indexer(report) => self.fold_indexer(at, report),
            Record::ClientResult(result) => self.fold_client(result),
            Record::Targets(targets) => self.head.targets = *targets,
            Record::Worker(identity) => self.fold_introduced(at, identity),
            Record::Left { worker, why } => self.fold_left(at, *worker, *why),
            Record::Rejoined { worker } => self.head.workers.rejoin(*worker, at),
            about_worker => self.fold_worker(at, about_worker),
        }
    }

    /// What is of a decision that is no longer retained is counted as joined when it was recorded so.
    fn fold_client(&mut self, result: &ClientResult) {
        let Head { decisions, clients, .. } = &mut self.head;
        match result.decision {
            None => clients.push_unknown(&result.measured),
            Some(id) if decisions.client(id, &result.measured) != Some(false) => clients.join(),
            Some(_) => {}
        }
    }

    /// Only of processes whose metrics are known, so that there are no more of them.
    fn fold_policy_classes(&mut self, reported: &PolicyClasses) {
        let Head { processes, policy_classes, .. } = &mut self.head;
        policy_classes.retain(|known| known.process != reported.process);
        if !reported.classes.is_empty() && processes.iter().any(|process| process.name == reported.process) {
            policy_classes.push(reported.clone());
        }
    }

    #[inline]
    fn pass_time(&mut self, at: Millis) {
        if at > self.head.now_ms {
            self.advance_time(at);
        }
    }

    fn advance_time(&mut self, at: Millis) {
        let before = touch(self.head.now_ms);
        self.head.now_ms = at;
        if touch(at) > before {
            self.trees.iter_mut().for_each(|tree| tree.expire_hits(touch(at)));
        }
    }

    fn fold_decision(&mut self, seq: Seq, at: Millis, decision: &Decision) {
        let before = self.head.decisions.totals().count;
        let known = self.head.decisions.get(decision.id);
        let was_judged = known.is_some_and(|known| has_prompt(&known.decision));
        let had_router = known.is_some_and(|known| known.decision.router.is_some());
        let Some(pool) = self.pool_of(decision.worker) else { return };
        let ignores_cache = self.pool(pool).is_some_and(|pool| pool.ignores_cache);
        let is_partial =
            is_computed(decision) && self.was_incomplete(pool, decision.decided_ms.unwrap_or(at));
        self.head.decisions.put(seq, at, decision, (pool, ignores_cache), is_partial);
        if !was_judged && has_prompt(decision) {
            self.judge(decision);
        }
        let is_new = self.head.decisions.totals().count > before;
        // Whichever source comes first: it is a decision of this router from when its name is known. Later records of it are no
        // sign of the router.
        if let Some(router) = decision.router.filter(|_| !had_router) {
            let is_retained = self.head.decisions.get(decision.id).is_some();
            self.head.routers.received(router, at, is_retained);
        }
        if let Some(departed) = self.worker_mut(decision.worker).filter(|w| is_new && w.departure.is_some()) {
            departed.choices_after_departure += 1;
        }
    }

    /// Notes where what the chosen worker held of the prompt ended, as the tree shows it.
    fn judge(&mut self, new: &Decision) {
        let Self { head, trees, .. } = self;
        let Some(decided) = head.decisions.get(new.id) else { return };
        let worker = decided.decision.worker;
        let Some(pool) = head.workers.get(worker).map(|state| state.pool) else { return };
        let Some(tree) = trees.get_mut(pool.at()) else { return };
        // Figures computed from the tree take precedence over the router's: its blocks may be of another size.
        let ours = new.candidates.iter().find(|candidate| candidate.worker == worker);
        let known = ours.or_else(|| decided.chosen()).map(|candidate| u64::from(candidate.overlap_blocks));
        let Some(held_blocks) = known.or(decided.decision.overlap_blocks) else { return };
        let end = new.path.filter(|_| held_blocks > 0);
        let found = end.and_then(|end| {
            head.workers.get(end.worker)?;
            tree.find(end.worker.slot(), end.block_hash)
        });
        let node = found.unwrap_or(NodeId::ROOT);
        let beyond = end.map_or(0, |end| u64::from(end.blocks).saturating_sub(held_blocks));
        let mut above = std::iter::successors(Some(node), |&node| tree.parent(node)).skip(beyond as usize);
        let held = above.find(|&node| tree.owners(node).contains(worker.slot()));
        tree.hit(held.unwrap_or(NodeId::ROOT), touch(head.now_ms));
    }

    fn fold_scrape(&mut self, at: Millis, scrape: &Scrape) {
        let processes = &mut self.head.processes;
        let known = processes.iter().position(|process| process.name == scrape.process);
        let ix = known.unwrap_or(processes.len());
        if ix == processes.len() {
            if ix == MAX_PROCESSES {
                return;
            }
            processes.push(ProcessState::new(at, scrape));
        } else {
            processes[ix].scraped(at, scrape);
        }
    }

    fn fold_sign(&mut self, at: Millis, worker: Option<WorkerIx>, sign: LogSignal, count: u64) {
        let signs = &mut self.head.signs;
        let known = signs.iter().position(|state| state.sign == sign);
        let ix = known.unwrap_or(signs.len());
        if ix == signs.len() {
            if ix == MAX_SIGNS {
                return;
            }
            signs.push(LogSignalState::new(sign, at));
        }
        signs[ix].add(at, worker, count);
    }

    /// A worker is introduced, or more is known of its name. With a new index the worker that had the slot before is over.
    fn fold_introduced(&mut self, at: Millis, identity: &WorkerIdentity<'_>) {
        let &WorkerIdentity { worker: ix, id, ref namespace, ref component } = identity;
        match self.head.workers.admission(ix) {
            Admission::Invalid => return,
            Admission::New(before) => {
                if let Some(before) = before {
                    self.leave(at, before, DepartureCause::Silent);
                    self.forget(before);
                }
                let pool = self.pool_named(namespace, component, at);
                self.head.workers.insert(ix, WorkerState::new(id, pool, at));
            }
            Admission::Known => {
                let pool =
                    self.worker(ix).filter(|known| known.id == id).and_then(|known| self.pool(known.pool));
                let Some(known) = pool else { return self.update_roles() };
                // First seen through a message without a component, now through one with it, or with its real name.
                let of =
                    |known: &str, new: &str| if new.is_empty() { known.to_owned() } else { new.to_owned() };
                let (namespace, component) =
                    (of(&known.namespace, namespace), of(&known.component, component));
                let pool = self.pool_named(&namespace, &component, at);
                self.move_to(ix, pool);
            }
        }
        self.update_roles();
    }

    fn fold_left(&mut self, at: Millis, worker: WorkerIx, why: DepartureCause) {
        self.leave(at, worker, why);
        for surplus in self.head.workers.surplus() {
            self.forget(surplus);
        }
    }

    fn leave(&mut self, at: Millis, worker: WorkerIx, why: DepartureCause) {
        let Some(pool) = self.head.workers.get(worker).map(|state| state.pool) else { return };
        self.head.workers.leave(worker, at, why);
        let own = self.all_trees_mut().filter(|((of, _), _)| *of == pool);
        own.for_each(|(_, tree)| {
            tree.clear(worker.slot());
        });
    }

    /// Forgets a worker that left, but for who it was as long as decisions name it. Everything else that may name a worker of
    /// the state is here.
    fn forget(&mut self, worker: WorkerIx) {
        let Head { workers, departed, decisions, sources, processes, signs, findings, engines, .. } =
            &mut self.head;
        let Some(state) = workers.remove(worker) else { return };
        departed.add(worker, &state, |each| decisions.each_worker(each));
        sources.iter_mut().for_each(|source| source.forget_worker(worker));
        processes.iter_mut().for_each(|process| process.forget_worker(worker));
        signs.iter_mut().for_each(|sign| sign.workers.retain(|of| *of != worker));
        findings.forget_worker(worker);
        engines.iter_mut().for_each(|feed| feed.worker = feed.worker.filter(|of| *of != worker));
    }

    fn fold_worker(&mut self, at: Millis, record: &Record<'_>) {
        let Some(ix) = record.worker() else { return };
        let Some(pool) = self.head.workers.get(ix).map(|worker| worker.pool) else { return };
        let slot = ix.slot();
        let limit = match record {
            Record::TierStored { tier, .. } => Some(self.share_of_limit(pool, Some(*tier))),
            _ => None,
        };
        let Self { head, trees, tiers, follow, changed } = self;
        let limit_nodes = head.limit_nodes;
        let Some(w) = head.workers.get_mut(ix) else { return };
        let Some(tree) = trees.get_mut(pool.at()) else { return };
        match record {
            Record::Cleared { all_ranks, .. } => self.fold_cleared(at, ix, *all_ranks),
            Record::TierStored { tier, parent, blocks, .. } => {
                w.received_event(at);
                w.tiers[*tier as usize].stored += blocks.len() as u64;
                if w.departure.is_none() {
                    let device = &*tree;
                    let tree =
                        tiers.entry((pool, *tier)).or_insert_with(|| Self::new_tree(limit_nodes, *follow));
                    tree.set_limit(limit.unwrap_or(limit_nodes));
                    tree.store_below(device, slot, *parent, blocks, touch(at));
                    *changed = Some((head.seq, pool, Some(*tier)));
                }
            }
            Record::MultimodalInputs { count, .. } => w.multimodal_inputs_total += u64::from(*count),
            Record::TierRemoved { tier, hashes, .. } => {
                w.received_event(at);
                w.tiers[*tier as usize].removed += hashes.len() as u64;
                if let Some(tree) = tiers.get_mut(&(pool, *tier)) {
                    let unknown = tree.remove_all(slot, hashes);
                    *changed = Some((head.seq, pool, Some(*tier)));
                    w.unknown_removed(unknown);
                }
            }
            Record::TierCleared { tier, .. } => {
                w.received_event(at);
                if let Some(tree) = tiers.get_mut(&(pool, *tier)) {
                    tree.clear(slot);
                }
            }
            Record::SkippedEvent { stored, removed, .. } => w.skipped_event(at, *stored, *removed),
            Record::Knowledge { knowledge, why, .. } => {
                w.knowledge.know(*knowledge, *why, w.unknown_removed_total, at);
            }
            Record::QueryState { state, detail, .. } => w.knowledge.set_query_state(*state, detail, at),
            Record::Divergence { drift, .. } => w.knowledge.diverged(*drift, at),
            Record::OtherTier { stored, removed, .. } => {
                w.received(at);
                w.other_tier.stored += u64::from(*stored);
                w.other_tier.removed += u64::from(*removed);
            }
            Record::EngineLoad { used_blocks, .. } => {
                w.received(at);
                w.engine_used_blocks = Some(*used_blocks);
                w.engine_used_ms = Some(at);
            }
            Record::RouterLoad { router, decode_blocks, prefill_tokens, .. } => {
                w.estimate(RouterLoad {
                    router: *router,
                    at_ms: at,
                    decode_blocks: *decode_blocks,
                    prefill_tokens: *prefill_tokens,
                });
                if let Some(router) = router {
                    head.routers.received(*router, at, false);
                }
            }
            Record::Sequence { step, by_worker, .. } => {
                if *by_worker {
                    w.received(at);
                }
                match (step, by_worker) {
                    (SequenceStep::Added, _) => w.sequences.added += 1,
                    // With replica sync the router repeats what the worker reported (reference §3.3).
                    (SequenceStep::PrefillCompleted, true) => w.sequences.prefilled += 1,
                    (SequenceStep::PrefillCompleted, false) => {}
                    (SequenceStep::Freed, _) => w.sequences.freed += 1,
                }
            }
            Record::EventTransport { line, first_event_id, .. } => {
                w.add_transport(*line, *first_event_id, at)
            }
            Record::InFlight { now, most, .. } => w.in_flight.set(at, *now, *most),
            Record::BlockResidency { lifetimes, .. } => w.lifetimes = Some(**lifetimes),
            Record::ModelCard { total_kv_blocks, block_size_tokens, publishes_events, .. } => {
                w.capacity_blocks = *total_kv_blocks;
                w.block_size_tokens = *block_size_tokens;
                w.publishes_events = *publishes_events;
            }
            Record::Model { name, .. } => w.model = name.to_string(),
            Record::Endpoint { name, .. } => self.fold_endpoint(ix, name),
            Record::Role { role, evidence, .. }
                if head.pools.get_mut(pool.at()).is_some_and(|pool| pool.learn(*evidence, *role)) =>
            {
                self.update_roles();
            }
            _ => {}
        }
    }

    fn fold_stored(&mut self, at: Millis, ix: WorkerIx, parent: Option<BlockHash>, blocks: &[Block]) {
        let Some(pool) = self.head.workers.get(ix).map(|worker| worker.pool) else { return };
        self.limit_tree(pool, blocks.len());
        let Self { head, trees, changed, .. } = self;
        let (Some(w), Some(tree)) = (head.workers.get_mut(ix), trees.get_mut(pool.at())) else { return };
        // Events of a worker that left are late until it rejoined: its blocks are unusable.
        let is_late = w.departure.is_some();
        let outcome = match is_late {
            true => StoreOutcome::default(),
            false => {
                *changed = Some((head.seq, pool, None));
                tree.store(ix.slot(), parent, blocks, touch(at))
            }
        };
        w.received_event(at);
        w.store_events_total += 1;
        w.stored_total += blocks.len() as u64;
        w.empty_stores_total += u64::from(blocks.is_empty());
        w.unknown_parents_total += u64::from(outcome.parent_unknown && !w.knowledge.is_joining());
        w.hashes_compared_total += u64::from(outcome.compared);
        w.hashes_differing_total += u64::from(outcome.differing);
        w.rates.add(at, blocks.len() as u32, 0);
    }

    fn fold_removed(&mut self, at: Millis, ix: WorkerIx, hashes: &[BlockHash]) {
        let Self { head, trees, changed, .. } = self;
        let Some(w) = head.workers.get_mut(ix) else { return };
        let Some(tree) = trees.get_mut(w.pool.at()) else { return };
        let unknown = if w.departure.is_some() {
            0
        } else {
            *changed = Some((head.seq, w.pool, None));
            tree.remove_all(ix.slot(), hashes)
        };
        w.received_event(at);
        w.remove_events_total += 1;
        w.removed_total += hashes.len() as u64;
        w.unknown_removed(unknown);
        w.rates.add(at, 0, hashes.len() as u32);
    }

    /// Gives the tree of devices of `pool`, which is about to store so many blocks, its share of the limit. While it stays below
    /// the least that its share can be, that is enough.
    #[inline]
    fn limit_tree(&mut self, pool: PoolIx, blocks: usize) {
        let trees = self.trees.len() + self.tiers.len();
        if trees <= 1 {
            return;
        }
        let least = self.head.limit_nodes / trees as u32;
        let Some(tree) = self.trees.get(pool.at()) else { return };
        // One more: a missing parent becomes a node too.
        let is_within = tree.allocated() as usize + blocks < least as usize;
        let limit = if is_within { least } else { self.share_of_limit(pool, None) };
        if let Some(tree) = self.trees.get_mut(pool.at()) {
            tree.set_limit(limit);
        }
    }

    fn fold_cleared(&mut self, at: Millis, worker: WorkerIx, all_ranks: bool) {
        let Some(id) = self.worker(worker).map(|w| w.id) else { return };
        for (ix, w) in self.head.workers.iter_mut() {
            if w.id == id || (all_ranks && w.id.id == id.id) {
                if let Some(tree) = self.trees.get_mut(w.pool.at()) {
                    tree.clear(ix.slot());
                }
                w.cleared_total += 1;
                w.received_event(at);
            }
        }
    }

    /// A worker's response about its blocks: no event, so nothing is counted.
    fn fold_dump(&mut self, record: &Record<'_>) {
        let (Record::TreeDumpBegan { worker }
        | Record::TreeDumpStored { worker, .. }
        | Record::TreeDumpRemoved { worker, .. }) = record
        else {
            return;
        };
        let Some(state) = self.head.workers.get(*worker).filter(|state| state.departure.is_none()) else {
            return;
        };
        let (pool, slot) = (state.pool, worker.slot());
        match record {
            Record::TreeDumpBegan { .. } => {
                let own = self.all_trees_mut().filter(|((of, _), _)| *of == pool);
                own.for_each(|(_, tree)| tree.forget_hidden(slot));
            }
            Record::TreeDumpStored { tier, parent, blocks, .. } => {
                let limit = self.share_of_limit(pool, *tier);
                let Self { trees, tiers, follow, .. } = self;
                let Some(device) = trees.get_mut(pool.at()) else { return };
                match tier {
                    None => {
                        device.set_limit(limit);
                        device.store(slot, *parent, blocks, Tree::TIME_UNKNOWN);
                    }
                    Some(tier) => {
                        let tree =
                            tiers.entry((pool, *tier)).or_insert_with(|| Self::new_tree(limit, *follow));
                        tree.set_limit(limit);
                        tree.store_below(device, slot, *parent, blocks, Tree::TIME_UNKNOWN);
                    }
                }
            }
            Record::TreeDumpRemoved { tier, hashes, .. } => {
                let tree = match tier {
                    None => self.trees.get_mut(pool.at()),
                    Some(tier) => self.tiers.get_mut(&(pool, *tier)),
                };
                let Some(tree) = tree else { return };
                tree.remove_all(slot, hashes);
            }
            _ => {}
        }
    }
}
