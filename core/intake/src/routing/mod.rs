//! Decisions: what routers, workers and logs report of requests, joined and completed with what the tree holds.
//!
//! Stateful but pure. It reads the state and never changes it: what it finds out becomes records. Prompts stay here,
//! because they are large and only counterfactuals need them.
//!
//! # How it works
//!
//! `RequestBook` is the one home of a request: every report fills a slot of a part of a request, and `resolve` makes one decision
//! of all slots. This module turns observations into slots (`lines` those of logs), and what changed into records. A record
//! carries the whole and replaces the one before it, so that nothing waits for a log and nothing is merged later.
//!
//! A length that is reported in tokens waits for the block size. A query that runs nothing is decided but not dispatched: its
//! end shows it, and it is left out of hit rates, as routers leave it out. Where a source reports the prompt's hashes, every
//! worker's cost is computed from the tree, by the deployed version's overlap rule, and from the requests that run:
//! *reconstructed*, as against *all candidates*, which the router wrote itself, and *chosen only*. That happens before the
//! record is made: prompts stay in the server (the last ten thousand, shared prefixes once), and the log, every viewer and every
//! recording hold the finished decision.
//!
//! A log is read later than it was written, and a message may arrive after the line of a later decision, or a backlog of minutes
//! at once. So a decision is weighed against the state *as of its own time*, by the router's clock:
//! - `costs`: when. Once the publishers' clocks have passed its time, or half a second later, and once more if they pass it then.
//! - `changes`, `past`: what workers stored and removed during the last twelve seconds of the publishers' clocks and of ours lies
//!   in a flat ring beside the tree, seen before the fold. The tree of then is the tree of now less what is in the ring
//!   since, found by worker, by the name of the block before and by tokens, so that it is exact where the tree has lost the
//!   node. The ring is empty until a source that may report prompts is there: 56 bytes and one look-up for each block stored or
//!   removed, at most 2^18 of them. What a worker held that left or was cleared is in it too, unless that was very much. What
//!   lies before the ring is not known.
//! - `active`: the same for loads: steps of the last twelve seconds, undone.
//! - `departures`: whether a worker was there and could be reached, by the times in the routers' logs. Entries of discovery have no
//!   time: without a line in a log a worker is there from when it was first named until it is known to have left.
//! - `reconstruct`: the router applies an event a little after it was published. Of the states within 50 ms before
//!   and 20 ms after the decision the nearest that agrees with everything the router reported (overlap, cost, and, unless something
//!   else than the cost decided, the choice) is taken; nothing else is fitted. Where none agrees, the costs are not shown, and the
//!   decision says what is missing: block size, the state at that time, an overlap or a cost that differs.
//!
//! A request that waited in its router's queue is weighed with what workers held when the router looked it up, and with the loads of the
//! moment of the choice. Where a router looks at both pools before it chooses (conditional disaggregation), the log's lines of these
//! looks give way to those of the choices (`RequestBook::pass_look`).
//! What decided is a fact like others: `resolve` names it where reports show it, with what `sessions` knows of bindings. `tracking`
//! recognises routers whose messages name prompts by keyed hashes.
//! What the router ran with at that time is asked of the state (`Cluster::settings_at`). Where several settings are possible, each is
//! tried, and settings that become known later are tried on the decisions that they may have applied to.
//!
//! Messages without a time (all of 0.8, KV events over JetStream in 0.9) are taken to be as late as the last message that had one.
//!
//! Recorded traffic of routers that also log what they computed shows how exact it is: all requests of ten 1.6 and 1.7
//! recordings with the log up to 500 ms late or the messages up to 200 ms, all candidates of a 0.9.1 recording.

mod book;
mod changes;
mod clients;
mod costs;
mod departures;
mod gone;
mod in_flight;
mod lines;
mod past;
mod paths;
mod pickers;
mod reconstruct;
mod sessions;
mod stores;
mod tracking;
mod unidentified;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ingest::{FRESH_MS, Published, RequestObservation, RequestSignal};
use radixscope_dynamo::active_sequence::{ActiveSequence, AddRequest, RouterId, SequenceChange};
use radixscope_dynamo::client_result::ClientRecord;
use radixscope_dynamo::trace::{RequestTrace, TracedSelection};
use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{
    ClientResult, Decision, DecisionSource, DepartureCause, Entry, NotReconstructed, Progress, Record,
    ReportedSettings, Role, RoleEvidence, Scores, SettingsSource,
};
use radixscope_router::{Formula, RouterSettings};
use radixscope_state::cluster::{Cluster, DecisionEntry, Follow};
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::{ActiveSequences, Arrivals, Prompt};

use book::{
    CorrelationKey, HeldBlocks, HitRate, Length, PartContext, PromptHashes, ReportTime, RequestBook,
    RequestPart, Sequence, Session, SessionContext, Steps, Trace, TracedCosts,
};
use changes::TreeChanges;
use clients::Clients;
use costs::{Attempt, Costs};
use departures::Departures;
pub(crate) use departures::{is_known, returns, said_ms};
use in_flight::InFlight;
use lines::Lines;
use pickers::Pickers;
use reconstruct::{Ground, Reconstructor, WeighedChoice};
use sessions::{Binding, Sessions};
use stores::Starts;
use tracking::TrackingHashes;
use unidentified::Unidentified;

/// Longest name of an adapter that is retained, in characters.
const MAX_ADAPTER_CHARS: usize = 128;
/// Choices whose length waits for a block size: as many as decisions are retained.
const MAX_UNSIZED: usize = radixscope_state::cluster::MAX_DECISIONS;

/// Joins reports to decisions.
#[derive(Default)]
pub struct Routing {
    book: RequestBook,
    costs: Costs,
    active: ActiveSequences,
    arrivals: Arrivals,
    lines: Lines,
    pickers: Pickers,
    sessions: Sessions,
    tracking: TrackingHashes,
    unidentified: Unidentified<lines::ReadChoice<'static>>,
    departures: Departures,
    in_flight: InFlight,
    reconstructor: Reconstructor,
    starts: Starts,
    changes: TreeChanges,
    clients: Clients,
    /// Workers that a router reported to count load for.
    counted: PerWorker<bool>,
    /// Whether workers publish under their own ids, as they do up to Dynamo 1.2.
    own_ids: bool,
    /// How late the last message with a time was, in milliseconds.
    delay_ms: u64,
    /// Whether a worker turned out to be in another pool since the last look.
    has_moved: bool,
    /// From when on choices may have been made with settings that were reported since the last look.
    settings_since: Option<Millis>,
    /// Whether settings are read from a frontend, a while after they changed.
    reads_settings: bool,
    /// The latest time of a decision of which costs were computed.
    weighed_until: Millis,
    /// Since when a worker had left that trees still held at the last look.
    left_since: Option<Millis>,
    /// Whether a line since the last look said of a time before that who the candidates were.
    has_relisted: bool,
    /// What pools do, and whether their workers ever held blocks in lower tiers, as choices were last resolved with.
    pools: BTreeMap<PoolIx, (Option<Role>, bool)>,
    /// Choices whose length in tokens waits for a block size.
    unsized_choices: BTreeSet<DecisionId>,
}

impl Routing {
    /// Goes on from a state that was kept: requests that had not ended go on to be its decisions'.
    pub(crate) fn resume(&mut self, cluster: &Cluster) {
        let decisions = cluster.decisions();
        let last = decisions.newest_first().map(|known| known.decision.id).max();
        self.book.resume(last.unwrap_or(DecisionId(0)));
        for known in decisions.newest_first().rev().filter(|known| known.progress.ended_ms.is_none()) {
            if let Some(pool) = cluster.pool_of(known.decision.worker) {
                self.book.restore(&known.decision, known.progress, pool, known.at_ms);
            }
        }
    }

    /// A source of logs was announced: prompts may be reported.
    pub(crate) fn expect_logs(&mut self) {
        self.changes.expect();
    }

    /// Once prompts are visible it is remembered from `now` on what became of blocks.
    #[inline]
    pub(crate) fn begin_to_remember(&mut self, now: Millis) {
        self.changes.begin_gone(now);
    }

    /// What trees have to note for the past.
    #[inline]
    pub(crate) const fn follow(&self) -> Follow {
        self.changes.follow()
    }

    /// Handles something observed of a request; gives the records that follow from it.
    pub(crate) fn observe(
        &mut self,
        observed: &RequestObservation<'_>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        self.pass_time(observed.published_ms, observed.at_ms);
        self.changes.pass_received(observed.at_ms);
        self.active.pass_received(observed.at_ms);
        let mut records = self.handle(observed, cluster);
        self.release_unidentified(observed.at_ms, cluster, &mut records);
        self.resolve_costs(observed.at_ms, cluster);
        records.append(&mut self.publish(observed.at_ms, cluster));
        // They are part of the state only when the next message is observed.
        for record in &records {
            if let Record::Settings(news) = record {
                self.observe_settings(news);
            }
        }
        records
    }

    /// A record passes on its way to `cluster`, with what its message reported of its publisher.
    #[inline]
    pub(crate) fn observe_record(&mut self, entry: &Entry<'_>, by: Published, cluster: &Cluster) {
        let published_ms = self.pass_time(by.at_ms, entry.at_ms);
        self.own_ids = by.is_own_id.unwrap_or(self.own_ids);
        let at_ms = published_ms.unwrap_or(Millis(entry.at_ms.0.saturating_sub(self.delay_ms)));
        let at_ms = match entry.record {
            Record::Stored { worker, .. } | Record::Removed { worker, .. } => {
                self.departures.published(worker, at_ms);
                at_ms
            }
            _ => self.observe_rare(&entry.record, at_ms, cluster),
        };
        self.changes.pass_received(entry.at_ms);
        self.changes.observe(Micros::of(at_ms), &entry.record, cluster);
    }

    /// The same of what is no event of a worker's own blocks. Gives when it happened.
    fn observe_rare(&mut self, record: &Record<'_>, at_ms: Millis, cluster: &Cluster) -> Millis {
        match record {
            // A worker that a log named first is in a pool without a name, until a message names it.
            Record::Worker(identity) => self.has_moved |= cluster.worker(identity.worker).is_some(),
            Record::Settings(news) => self.observe_settings(news),
            // A line is a record only at the next flush: decisions in between did not meet the worker any more.
            Record::Left { worker, why: DepartureCause::Log } => {
                let left_ms =
                    self.departures.left_ms(*worker).map_or(at_ms, |written_ms| written_ms.min(at_ms));
                self.left_since = Some(self.left_since.map_or(left_ms, |since| since.min(left_ms)));
                return left_ms;
            }
            _ => {}
        }
        at_ms
    }

    /// The record that passed last is folded.
    #[inline]
    pub(crate) fn observe_folded(&mut self, record: &Record<'_>, cluster: &Cluster) {
        self.changes.folded(record, cluster);
    }

    /// A worker that left showed at `said_ms` that it is there again.
    pub(crate) fn returned(&mut self, worker: WorkerIx, said_ms: Millis) {
        self.departures.returned(worker, said_ms);
    }

    /// A router wrote at `written_ms` that it removed the worker (`left`) or added it.
    fn listed(&mut self, worker: WorkerIx, written_ms: Millis, left: bool) {
        self.departures.logged(worker, written_ms, left);
        self.has_relisted |= written_ms <= self.weighed_until;
    }

    /// Settings were reported: they may have applied since the report before.
    fn observe_settings(&mut self, news: &ReportedSettings) {
        self.reads_settings |= news.source == SettingsSource::PolicyEndpoint;
        let since = news.after_ms.unwrap_or_default();
        self.settings_since = Some(self.settings_since.map_or(since, |known| known.min(since)));
    }

    /// Gives what became known of decisions by the records that passed until `at_ms`.
    pub(crate) fn resolve_due(&mut self, at_ms: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        let is_reopened =
            self.has_moved || self.has_relisted || self.left_since.is_some() || self.settings_since.is_some();
        if !is_reopened && !self.costs.is_due(at_ms) {
            return Vec::new();
        }
        self.resolve_costs(at_ms, cluster);
        self.publish(at_ms, cluster)
    }

    /// Settings that applied to choices already made became known: those are computed once more. What was computed with other
    /// settings and cannot be again, because its prompt is gone, does not stand unless the router reported that very cost.
    fn reopen_of_settings(&mut self, cluster: &Cluster) {
        let Some(since) = self.settings_since.take() else { return };
        self.book.change_where(|part| book::decided_ms(&part.slots).is_none_or(|at| at >= since));
        self.costs.reopen(&self.book, Micros::of(since));
        let is_doubtful = |part: &RequestPart| {
            let (Some(report), None) = (&part.computed_from, &part.prompt) else { return false };
            let reconstruction = part.slots.reconstruction.as_ref();
            let Some(Ok(computed)) = reconstruction.map(|of| &of.outcome) else { return false };
            let at = report.at.millis();
            let differs = |of: &RouterSettings| of.prefill_factor() != computed.prefill_factor;
            let possible = cluster.settings_at(part.pool, computed.formula, at);
            report.logit.is_none() && at >= since && (possible.len() > 1 || possible.iter().any(differs))
        };
        for id in self.book.ids_where(is_doubtful) {
            if let Some(of) = self.book.change(id).and_then(|part| part.slots.reconstruction.as_mut()) {
                of.outcome = Err(NotReconstructed::Cost);
            }
        }
    }

    fn resolve_costs(&mut self, at_ms: Millis, cluster: &Cluster) {
        if std::mem::take(&mut self.has_moved) {
            self.book.move_parts(|worker| cluster.pool_of(worker));
            self.costs.reopen(&self.book, Micros::default());
            self.pair_all(cluster);
        }
        if std::mem::take(&mut self.has_relisted) {
            self.costs.reopen(&self.book, Micros::default());
        }
        if let Some(since) = self.left_since.take() {
            self.costs.reopen(&self.book, Micros::of(since));
        }
        let formula = if self.own_ids { Formula::B } else { Formula::E };
        self.reopen_of_settings(cluster);
        self.count_requests(cluster);
        let Self {
            book,
            costs,
            reconstructor,
            starts,
            active,
            changes,
            departures,
            counted,
            sessions,
            tracking,
            ..
        } = self;
        let weighed_until = &mut self.weighed_until;
        let mut keyed: Vec<PoolIx> = Vec::new();
        let ground = Ground { cluster, changes, active, counted };
        costs.resolve_due(at_ms, book, |book, id, is_final| {
            let part = book.part(id)?;
            let prompt = part.prompt.as_ref()?;
            let context = context(book, part, sessions, cluster);
            let decision = book::resolve(&part.slots, &context);
            let are_keyed = tracking.are_keyed(part.pool);
            let report = costs::report(&part.slots, prompt, &decision, (&context, are_keyed), cluster)?;
            let formula = report.formula.unwrap_or(formula);
            let decided_ms = report.at.millis();
            *weighed_until = decided_ms.max(*weighed_until);
            let mut possible = cluster.settings_at(part.pool, formula, decided_ms);
            if context.is_bypassed {
                possible.iter_mut().for_each(|settings| *settings = computing_prompts(*settings));
            }
            let choice = WeighedChoice {
                report: &report,
                prompt: prompt.prompt(),
                tracked: part.tracked.as_deref(),
                traced_costs: context.traced_costs,
                settings: possible.first().copied().unwrap_or_else(|| RouterSettings::new(formula)),
            };
            let departed = |worker| {
                departures.had_left(worker, decided_ms, cluster)
                    || departures.is_out(worker, decided_ms, cluster)
            };
            // Of a prompt that its trace alone names loads are unknown, unless those known here give every candidate's cost.
            let is_checked = context.traced_costs.is_some_and(|costs| costs.is_whole);
            let weighed = (!report.is_traced || is_checked)
                .then(|| reconstructor.weigh(ground, &choice, &possible, departed));
            let mut outcome = match weighed {
                Some(outcome) if outcome.is_ok() || !report.is_traced => outcome,
                _ => {
                    // Whether the state of then is known is for its reuse alone.
                    let _ = reconstructor.look_back(ground, &choice, &departed);
                    Err(NotReconstructed::Loads)
                }
            };
            if !prompt.are_public() && !context.ignores_cache {
                let depth = reconstructor.depth();
                let counted = report.overlap_blocks.is_some_and(|blocks| blocks > 0);
                if depth.is_some_and(|depth| depth > 0) {
                    tracking.matched(part.pool);
                } else if depth == Some(0) && counted && cluster.incomplete_in(part.pool).is_empty() {
                    if tracking.unmatched(part.pool, id) {
                        keyed.push(part.pool);
                    }
                    if tracking.are_keyed(part.pool) {
                        outcome = Err(NotReconstructed::Prompt);
                    }
                }
            }
            let path = match &outcome {
                Ok(found) => found.path,
                Err(_) if is_final => reconstructor.path_end(cluster, part.worker, prompt.prompt()),
                Err(_) => None,
            };
            let found = outcome.as_ref().ok();
            let is_visible =
                !context.ignores_cache && outcome.as_ref().err() != Some(&NotReconstructed::Prompt);
            let logged = part.slots.costs.as_ref().map_or(&[][..], |costs| costs.candidates.here());
            let reuse =
                is_visible.then(|| reconstructor.reuse(ground, &choice, (found, logged), starts)).flatten();
            Some(Attempt { report, path, outcome, reuse })
        });
        for pool in keyed {
            book.change_where(|part| part.pool == pool && part.prompt.is_some());
        }
    }

    /// Decisions and progress that differ from what the state has.
    fn publish(&mut self, now: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        self.count_requests(cluster);
        for id in self.book.take_caught_up() {
            if let Some(steps) = self.book.part(id).map(|part| part.slots.steps) {
                self.apply(id, &steps);
            }
            if let (_, Some(end)) = self.book.request_of(id) {
                let output_tokens = end.ended.progress.output_tokens;
                self.completed(id, output_tokens);
            }
        }
        let newest = cluster.decisions().newest(0).map(|known| known.decision.id);
        let mut records = Vec::new();
        for id in self.book.take_changed() {
            let Some(part) = self.book.part(id) else { continue };
            self.pools.entry(part.pool).or_insert_with(|| facts_of(part.pool, cluster));
            let context = context(&self.book, part, &self.sessions, cluster);
            let slots = &part.slots;
            let (decision, progress) = (book::resolve(slots, &context), book::progress(slots, &context));
            let is_unsized = decision.isl_blocks.is_none()
                && (slots.sequence.is_some()
                    || context.completed.is_some_and(|of| of.ended.isl_tokens.is_some()));
            let prompt = part.prompt.as_ref();
            let are_keyed = self.tracking.are_keyed(part.pool);
            let report =
                prompt.and_then(|of| costs::report(slots, of, &decision, (&context, are_keyed), cluster));
            if is_unsized && self.unsized_choices.len() < MAX_UNSIZED {
                self.unsized_choices.insert(id);
            } else {
                self.unsized_choices.remove(&id);
            }
            if let Some(report) = report {
                self.costs.changed(&self.book, &decision, report, now);
            }
            let known = cluster.decisions().get(id);
            let is_forgotten = known.is_none() && newest.is_some_and(|newest| id <= newest);
            let client =
                self.book.client_of(id).filter(|_| responding(self.book.siblings(id), cluster) == Some(id));
            let client = client.filter(|(measured, is_recorded)| match known {
                Some(known) => known.client != Some(*measured),
                None => !is_recorded,
            });
            let client = client.map(|(measured, _)| ClientResult { decision: Some(id), measured });
            if is_forgotten {
                // Only that its client's result is joined still counts.
                if let Some(result) = client {
                    records.push(Record::ClientResult(Box::new(result)));
                    self.book.client_recorded(id);
                }
                continue;
            }
            if known.is_none_or(|known| differs(known, &decision)) {
                records.push(Record::Decision(Box::new(decision)));
            }
            if progress != known.map(|known| known.progress).unwrap_or_default() {
                records.push(Record::Progress { decision: id, progress: Box::new(progress) });
            }
            let reuse = part.slots.reconstruction.as_ref().and_then(|computed| computed.reuse);
            if let Some(reuse) = reuse.filter(|_| reuse != known.and_then(|known| known.reuse)) {
                records.push(Record::Reuse(Box::new(reuse)));
            }
            if let Some(result) = client {
                records.push(Record::ClientResult(Box::new(result)));
                self.book.client_recorded(id);
            }
        }
        records
    }

    /// Tells the loads from when they count the requests that changed.
    fn count_requests(&mut self, cluster: &Cluster) {
        for (id, (from, is_logged)) in self.book.take_counts(|pool| is_decode(pool, cluster)) {
            self.active.count_from(from, is_logged, id);
        }
    }

    /// Applies steps of a request whose choice is known to the loads.
    fn apply(&mut self, decision: DecisionId, steps: &Steps) {
        if let Some(at) = steps.first_token {
            self.active.prefill_completed(at, decision);
        }
        if let Some((at, worker)) = steps.freed {
            self.active.free(at, decision);
            self.in_flight.end(decision, Some(worker));
        }
    }

    /// A publisher reported its time. Gives it if it can be true.
    #[inline]
    fn pass_time(&mut self, published: Option<Millis>, received: Millis) -> Option<Millis> {
        let published = published.filter(|published| is_plausible(*published, received))?;
        self.delay_ms = received.since(published);
        self.costs.pass(Micros::of(published));
        Some(published)
    }

    fn handle(&mut self, observed: &RequestObservation<'_>, cluster: &Cluster) -> Vec<Record<'static>> {
        match &observed.signal {
            &RequestSignal::HitRate { worker, router, isl_blocks, overlap_blocks } => {
                let time = time_of(observed);
                let of = HitRate { time, router, isl_blocks, overlap_blocks };
                self.hit_rate(observed.at_ms, worker, of, cluster);
                Vec::new()
            }
            RequestSignal::Sequence { worker, step } => self.sequence(observed, *worker, step, cluster),
            RequestSignal::SessionAffinity { worker, affinity } => {
                let number = (affinity.writer_id, affinity.sequence);
                let binding = Binding { worker: *worker, number, first: time_of(observed).at };
                if self.sessions.observe(&affinity.session_id, binding) {
                    // From now on what agrees with the cost formula may have been bound all the same.
                    self.book.change_where(|_| true);
                }
                Vec::new()
            }
            RequestSignal::Log { log, record, worker } => {
                let records = self.line(observed, log, record, *worker, cluster);
                if let Some(client_id) = record.client_id.as_deref() {
                    self.name_client(client_id, record.event.request_ids(), observed.at_ms);
                }
                records
            }
            RequestSignal::ClientResult { result } => {
                self.client_result(result, observed.at_ms);
                Vec::new()
            }
            RequestSignal::RouteSpan { span, record, worker } => {
                self.route_span(observed, span, record, *worker, cluster)
            }
            RequestSignal::Picker { log, record, line, endpoints } => {
                self.picker_line(observed, log, (record, line), endpoints, cluster);
                Vec::new()
            }
            RequestSignal::GatewayChoice { record, choice, worker } => {
                self.gateway_choice(observed, (record, choice), *worker, cluster);
                Vec::new()
            }
            RequestSignal::TracedSelection { selection, candidates } => {
                self.traced_selection(observed.at_ms, selection, candidates);
                Vec::new()
            }
            RequestSignal::Trace { trace, worker, decode } => {
                if let Some(worker) = *worker {
                    self.trace(observed.at_ms, trace, (worker, *decode), cluster);
                }
                if let Some(client_id) = trace.x_request_id.as_deref() {
                    self.name_client(client_id, (Some(&trace.request_id), None), observed.at_ms);
                }
                Vec::new()
            }
        }
    }

    /// Which request it is that a client gave this id.
    fn name_client(&mut self, client_id: &str, ids: (Option<&str>, Option<&str>), received_ms: Millis) {
        if let Some(measured) = self.clients.name(client_id, ids) {
            self.book.set_client(ids, measured, received_ms);
        }
    }

    fn client_result(&mut self, result: &ClientRecord<'_>, received_ms: Millis) {
        let known = self.clients.measured(result.x_request_id.as_deref(), result.measured, received_ms);
        if let Some((router, http)) = known {
            self.book.set_client((router.as_deref(), http.as_deref()), result.measured, received_ms);
        }
    }

    fn hit_rate(&mut self, received_ms: Millis, worker: WorkerIx, of: HitRate, cluster: &Cluster) {
        let key = CorrelationKey {
            source: DecisionSource::KvHitRate,
            time: of.time,
            is_query: false,
            worker,
            pool: cluster.pool_of(worker).unwrap_or_default(),
            role: None,
            request_id: None,
            http_id: None,
            overlap_blocks: Some(of.overlap_blocks),
            isl_blocks: Some(of.isl_blocks),
        };
        let id = self.book.join(&key, received_ms);
        if let Some(part) = self.book.change(id) {
            part.slots.hit_rate.get_or_insert(of);
        }
        match cluster.role(key.pool) {
            Some((Role::Prefill, _)) => self.book.pair(id, false),
            Some((Role::Decode, _)) => self.book.pair(id, true),
            _ => {}
        }
    }

    /// Requests that run now.
    pub fn active(&self) -> &ActiveSequences {
        &self.active
    }

    /// Gives what was gathered since the last call: workers that left or are there again, and requests in flight. Call
    /// it about once a second. `now_ms` is the present of the deployment, see [`crate::ingest::Ingest::now`].
    pub(crate) fn flush(&mut self, at_ms: Millis, now_ms: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        let mut records = Vec::new();
        self.release_unidentified(at_ms, cluster, &mut records);
        self.resolve_anew(cluster);
        self.resolve_costs(at_ms, cluster);
        records.append(&mut self.publish(at_ms, cluster));
        records.append(&mut self.departures.flush(now_ms, cluster));
        self.in_flight.flush(at_ms, |worker| self.departures.has_left(worker, cluster), &mut records);
        let linger_ms = if self.reads_settings { book::LINGER_FOR_SETTINGS_MS } else { book::LINGER_MS };
        let ends = self.book.expire(at_ms, Micros::of(now_ms), linger_ms, |id| self.costs.waits(id));
        let counted = ends.into_iter().filter(|end| !end.is_query);
        records.extend(counted.map(|end| Record::Request(Box::new(end.ended))));
        let unknown = self.clients.take_unknown(at_ms).into_iter().chain(self.book.take_without_choice());
        records.extend(
            unknown.map(|measured| Record::ClientResult(Box::new(ClientResult { decision: None, measured }))),
        );
        records
    }

    /// Choices whose block size or role is known by now.
    fn resolve_anew(&mut self, cluster: &Cluster) {
        let mut sizes: BTreeMap<WorkerIx, bool> = BTreeMap::new();
        let book = &mut self.book;
        self.unsized_choices.retain(|&id| {
            let Some(worker) = book.part(id).map(|part| part.worker) else { return false };
            if *sizes.entry(worker).or_insert_with(|| cluster.block_size(worker).is_some()) {
                book.change(id);
            }
            true
        });
        let mut is_news = false;
        for (&pool, known) in &mut self.pools {
            let (role, has_tiers) = facts_of(pool, cluster);
            let facts = (role, has_tiers || known.1);
            if *known != facts {
                is_news |= known.0 != facts.0;
                *known = facts;
                book.change_where(|part| part.pool == pool);
            }
        }
        if is_news {
            self.pair_all(cluster);
            // Lines that looked like choices may be of looks now.
            self.costs.reopen(&self.book, Micros::default());
        }
    }

    /// Links choices whose messages name no request, once it is known what their pools do.
    fn pair_all(&mut self, cluster: &Cluster) {
        self.book.pair_all(|pool| match cluster.role(pool)?.0 {
            Role::Decode => Some(true),
            Role::Prefill => Some(false),
            Role::Aggregated => None,
        });
    }

    /// The latest requests with their prompts.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    fn sequence(
        &mut self,
        observed: &RequestObservation<'_>,
        worker: WorkerIx,
        sequence: &ActiveSequence<'_>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let at = time_of(observed).at;
        let steps = match &sequence.step {
            SequenceChange::Added(request) => {
                return self.added(observed, worker, sequence, request, cluster).into_iter().collect();
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
        if let Some(id) = self.book.step(&sequence.request_id, (worker, pool), steps, observed.at_ms) {
            self.apply(id, &steps);
        }
        Vec::new()
    }

    fn added(
        &mut self,
        observed: &RequestObservation<'_>,
        worker: WorkerIx,
        sequence: &ActiveSequence<'_>,
        request: &AddRequest,
        cluster: &Cluster,
    ) -> Option<Record<'static>> {
        let (time, received_ms) = (time_of(observed), observed.at_ms);
        let pool = cluster.pool_of(worker).unwrap_or_default();
        let chain = request.token_sequence.as_deref();
        let adapter = sequence.lora_name.as_deref();
        let slot = Sequence {
            time,
            router: match sequence.router {
                RouterId::Number(id) => Some(id),
                RouterId::Text => None,
            },
            adapter: adapter.map(|name| name.chars().take(MAX_ADAPTER_CHARS).collect::<String>().into()),
            full_blocks: chain.map(|chain| chain.len() as u64),
            isl_tokens: request.isl,
            overlap_blocks: request.overlap,
            prefill_tokens: request.initial_effective_prefill_tokens,
            tracks_prefill: request.track_prefill_tokens,
            waiting_tokens: self.active.load(worker).prefill_tokens,
            held: chain.map_or_else(HeldBlocks::default, |chain| {
                self.held(request.initial_effective_prefill_tokens, chain, worker, cluster)
            }),
        };
        let block_size = cluster.block_size(worker).map(|size| size.value);
        let settings = settings(cluster, Formula::E, worker, time.at.millis());
        let length = Length::of_message(&slot, block_size, &settings);
        let key = CorrelationKey {
            source: DecisionSource::ActiveSequences,
            time,
            is_query: false,
            worker,
            pool,
            role: None,
            request_id: Some(&sequence.request_id),
            http_id: None,
            overlap_blocks: length.overlap_blocks,
            isl_blocks: length.isl_blocks(),
        };
        let id = self.book.join(&key, received_ms);
        if let Some(part) = self.book.change(id) {
            part.slots.sequence.get_or_insert(slot);
        }
        let blocks = chain.unwrap_or_default();
        self.active.add(time.at, id, worker, blocks, length.prefill_tokens.unwrap_or(0));
        self.active.name_blocks(id, blocks);
        self.active.reported(id);
        self.in_flight.begin(received_ms, id, worker);
        if let Some(chain) = chain {
            self.changes.need();
            self.set_prompt(id, PromptHashes::Chain(chain.into()), received_ms);
            if !is_decode(pool, cluster) {
                self.arrivals.push(id, received_ms, length.isl_tokens, chain);
            }
        }
        self.share_prompt(id, received_ms, cluster);
        // What the form of a message shows of the pool's role.
        role_sign(cluster, worker, request.role_sign()?, RoleEvidence::Wire)
    }

    /// Where prefill and decode are apart, the message about decode names the prompt's blocks for the choice of the prefill worker
    /// too.
    fn share_prompt(&mut self, id: DecisionId, received_ms: Millis, cluster: &Cluster) {
        let chain_of = |part: &RequestPart| match &part.prompt {
            Some(PromptHashes::Chain(chain)) if part.slots.sequence.is_some() => Some(chain.clone()),
            _ => None,
        };
        let is_without =
            |part: &RequestPart| part.slots.sequence.as_ref().is_some_and(|of| of.full_blocks.is_none());
        let (Some(one), Some(other)) = (self.book.part(id), self.book.other(id)) else { return };
        let shared = match (chain_of(one), chain_of(other)) {
            (Some(chain), None) if is_without(other) => (other, chain),
            (None, Some(chain)) if is_without(one) => (one, chain),
            _ => return,
        };
        let (part, chain): (&RequestPart, Arc<[u64]>) = shared;
        let (prefill, worker) = (part.id, part.worker);
        let tokens = part.slots.sequence.as_ref().and_then(|of| of.prefill_tokens);
        let held = self.held(tokens, &chain, worker, cluster);
        if let Some(sequence) = self.book.change(prefill).and_then(|part| part.slots.sequence.as_mut()) {
            sequence.held = held;
        }
        self.set_prompt(prefill, PromptHashes::Chain(chain.clone()), received_ms);
        // Routers that are not to expect that blocks are used again, as decode routers are not, name them at random.
        let path = self.reconstructor.path_end(cluster, worker, Prompt::Chain(&chain));
        if let (Some(_), Some(part)) = (path, self.book.part(prefill)) {
            let context = context(&self.book, part, &self.sessions, cluster);
            let isl_tokens = Length::of(&part.slots, &context).isl_tokens;
            self.arrivals.push(prefill, received_ms, isl_tokens, &chain);
        }
    }

    /// What a worker holds of a prompt, as far as a message about it cannot be read without.
    fn held(
        &mut self,
        prefill_tokens: Option<u64>,
        chain: &[u64],
        worker: WorkerIx,
        cluster: &Cluster,
    ) -> HeldBlocks {
        let pool = cluster.pool_of(worker).unwrap_or_default();
        let is_needed = cluster.block_size(worker).is_none() || cluster.has_tiers(pool);
        if prefill_tokens.is_none() || !is_needed {
            return HeldBlocks::default();
        }
        let (device, below) = self.reconstructor.overlap(cluster, Prompt::Chain(chain), worker);
        HeldBlocks {
            device: device.into(),
            host: below.host,
            disk_or_external: below.disk.saturating_add(below.external),
        }
    }

    /// What each candidate of a choice cost. The record does not say which was chosen: other reports do.
    fn traced_selection(
        &mut self,
        received_at: Millis,
        selection: &TracedSelection<'_>,
        candidates: &[(WorkerIx, f64)],
    ) {
        if candidates.is_empty() {
            return;
        }
        let at_ms = selection.event_time_ms.map(Millis);
        let time = ReportTime { at: Micros::of(at_ms.unwrap_or(received_at)), is_received: at_ms.is_none() };
        let costs = TracedCosts {
            time,
            is_pinned: selection.is_pinned,
            is_whole: selection.candidate_count == candidates.len() as u64,
            candidates: candidates.into(),
        };
        self.book.add_traced_costs(&selection.request_id, costs, received_at);
    }

    fn trace(
        &mut self,
        received_at: Millis,
        trace: &RequestTrace<'_>,
        (worker, decode): (WorkerIx, Option<WorkerIx>),
        cluster: &Cluster,
    ) {
        let isl_tokens = trace.input_tokens.or(trace.input_length_tokens);
        let block_size = trace.trace_block_size_tokens.and_then(|b| u32::try_from(b).ok()).filter(|&b| b > 0);
        let isl_blocks =
            Length { isl_tokens, block_size_tokens: block_size, ..Length::default() }.isl_blocks();
        let share = trace.kv_hit_rate.filter(|share| (0.0..=1.0).contains(share));
        let (received_ms, ended_ms) =
            (trace.request_received_ms.map(Millis), trace.event_time_ms.map(Millis));
        let at_ms = received_ms.or(ended_ms).unwrap_or(received_at);
        let overlap_blocks = isl_blocks.zip(share).map(|(isl, share)| (isl as f64 * share).round() as u64);
        let time = ReportTime { at: Micros::of(at_ms), is_received: received_ms.or(ended_ms).is_none() };
        let key = CorrelationKey {
            source: DecisionSource::RequestTrace,
            time,
            is_query: false,
            worker,
            pool: cluster.pool_of(worker).unwrap_or_default(),
            role: None,
            request_id: Some(&trace.request_id),
            http_id: None,
            overlap_blocks,
            isl_blocks,
        };
        let progress = Progress {
            ended_ms,
            ttft_us: trace.ttft_ms.and_then(micros),
            queue_us: trace.prefill_wait_time_ms.and_then(micros),
            prefill_us: trace.prefill_time_ms.and_then(micros),
            itl_us: trace.avg_itl_ms.and_then(micros),
            output_tokens: trace.output_tokens,
            ..Progress::default()
        };
        let cached_tokens = trace.cached_tokens;
        let whole = Trace {
            received_ms,
            isl_tokens,
            block_size_tokens: block_size,
            overlap_blocks,
            progress: Progress { cached_tokens, ..progress },
            is_without_prefill: trace.prefill_worker.is_none() && trace.decode_worker.is_some(),
        };
        let id = self.book.join(&key, received_at);
        if let Some(name) = trace.session_id.as_deref() {
            let session = Session { name: name.into(), found: None };
            self.book.set_session((Some(&trace.request_id), None), session, received_at);
        }
        let responding = decode.filter(|decode| *decode != worker).map(|decode| {
            let pool = cluster.pool_of(decode).unwrap_or_default();
            let key = CorrelationKey { worker: decode, pool, overlap_blocks: None, ..key };
            self.book.join(&key, received_at)
        });
        // The prompt was found where it was computed, the response came from where it was generated.
        let slots = match responding {
            None => vec![(id, whole)],
            Some(responding) => vec![
                (id, Trace { progress: Progress { cached_tokens, ..Progress::default() }, ..whole }),
                (responding, Trace { received_ms: None, overlap_blocks: None, progress, ..whole }),
            ],
        };
        let ended = Micros::of(ended_ms.unwrap_or(received_at));
        for (id, slot) in slots {
            if let Some(part) = self.book.change(id) {
                part.slots.trace.get_or_insert(slot);
            }
            self.active.free_logged(ended, id);
            self.in_flight.end(id, None);
        }
        if let (Some(chain), Some(block_size), Some(isl)) =
            (&trace.input_sequence_hashes, block_size, isl_tokens)
        {
            // The last hash may be of a part of a block, which is never matched.
            let full = usize::try_from(isl / u64::from(block_size)).unwrap_or(usize::MAX);
            let chain = &chain[..full.min(chain.len())];
            let is_of_message = |part: &RequestPart| matches!(part.prompt, Some(PromptHashes::Chain(_)));
            let is_new = self.book.part(id).is_some_and(|part| part.prompt.is_none() && !part.was_named);
            if is_new {
                self.changes.need_for_traces();
            }
            if is_new || self.book.part(id).is_some_and(is_of_message) {
                self.set_prompt(id, PromptHashes::Public(chain.into()), received_at);
            }
            self.arrivals.push(id, at_ms, isl_tokens, chain);
        }
        if let Some(tokens) = trace.output_tokens {
            self.arrivals.finished(id, tokens);
        }
    }
}

impl Routing {
    /// Keeps a prompt, and notes if the router's messages name it by other hashes than those of its blocks.
    fn set_prompt(&mut self, id: DecisionId, prompt: PromptHashes, received_ms: Millis) {
        let differs = self.book.set_prompt(id, prompt, received_ms);
        if differs
            && let Some(pool) = self.book.part(id).map(|part| part.pool)
            && self.tracking.differs(pool)
        {
            self.book.change_where(|part| part.pool == pool && part.prompt.is_some());
        }
    }
}

/// When something was observed: by its publisher's clock if reported.
fn time_of(observed: &RequestObservation<'_>) -> ReportTime {
    let at = Micros::of(observed.published_ms.unwrap_or(observed.at_ms));
    ReportTime { at, is_received: observed.published_ms.is_none() }
}

/// What the decision of a part depends on beside its own reports.
fn context<'a>(
    book: &'a RequestBook,
    part: &'a RequestPart,
    sessions: &'a Sessions,
    cluster: &'a Cluster,
) -> PartContext<'a> {
    let (request_id, completed) = book.request_of(part.id);
    let siblings = book.siblings(part.id);
    let responding = completed.and_then(|_| responding(siblings, cluster));
    let known = cluster.decisions().get(part.id);
    let decided_ms = book::decided_ms(&part.slots).unwrap_or(cluster.now_ms());
    let (way, other) = (book.way_of(part.id), book.other(part.id));
    // Until messages name pools, the log's lines alone tell both choices apart.
    let is_decode = is_decode(part.pool, cluster) || (way.is_bypassed && part.role() == Some(Role::Decode));
    let is_bypassed = way.is_bypassed || (is_decode && other.is_none() && computes_prompt(part));
    let settings = settings(cluster, Formula::E, part.worker, decided_ms);
    PartContext {
        id: part.id,
        worker: part.worker,
        source: part.source(),
        request_id,
        other: other.filter(|_| !is_bypassed).map(|other| (other.id, &other.slots)),
        way,
        is_decode,
        is_bypassed,
        completed,
        is_responding: responding == Some(part.id),
        traced_costs: book
            .traced_costs(part.id, book::chosen_ms(&part.slots), |worker| cluster.pool_of(worker)),
        block_size_tokens: cluster.block_size(part.worker).map(|size| size.value),
        ignores_cache: is_decode && !is_bypassed,
        has_tiers: cluster.has_tiers(part.pool),
        settings: if is_bypassed { computing_prompts(settings) } else { settings },
        was_named: part.was_named,
        in_state: known.map_or(&[][..], |known| known.decision.candidates.as_slice()),
        scores_in_state: known.and_then(|known| known.decision.scores.as_deref()),
        trace_id: book.trace_id_of(part.id),
        session: book
            .session_of(part.id)
            .map(|session| SessionContext { session, bindings: sessions.of(&session.name) }),
        may_be_bound: sessions.are_bound() && !(sessions.are_hard() && part.slots.choice.is_some()),
    }
}

/// Whether reports of the choice of a decode worker show that it computes the prompt.
fn computes_prompt(part: &RequestPart) -> bool {
    let counts_prompt = |of: &Sequence| {
        of.tracks_prefill == Some(true) && of.full_blocks.is_some() && of.prefill_tokens.is_some()
    };
    part.slots.sequence.as_ref().is_some_and(counts_prompt)
        || part.slots.trace.is_some_and(|trace| trace.is_without_prefill)
}

/// The settings of a decode router, as it weighs a request that skips the prefill pool.
fn computing_prompts(settings: RouterSettings) -> RouterSettings {
    RouterSettings { track_prefill_tokens: true, conditional_disaggregation: true, ..settings }
}

/// What a pool does, and whether its workers hold blocks in lower tiers.
fn facts_of(pool: PoolIx, cluster: &Cluster) -> (Option<Role>, bool) {
    (cluster.role(pool).map(|(role, _)| role), cluster.has_tiers(pool))
}

/// The part of a request that its response comes from: where prefill and decode are apart, the choice among decode
/// workers; else the first one.
fn responding(parts: &[RequestPart], cluster: &Cluster) -> Option<DecisionId> {
    let role = |part: &&RequestPart| cluster.role(part.pool).map(|(role, _)| role);
    let decode = parts.iter().find(|part| role(part) == Some(Role::Decode));
    let other = || parts.iter().find(|part| role(part) != Some(Role::Prefill));
    decode.or_else(other).or(parts.first()).map(|part| part.id)
}

/// Whether another pool computes the prompts of this one.
fn is_decode(pool: PoolIx, cluster: &Cluster) -> bool {
    cluster.role(pool).is_some_and(|(role, _)| role == Role::Decode)
}

/// Whether a decision differs from what the state has of it. Candidates that the state has forgotten stay forgotten.
fn differs(known: &DecisionEntry, decision: &Decision) -> bool {
    if !known.candidates_forgotten() {
        return known.decision != *decision;
    }
    let (overlap_blocks, lower_tier_blocks) =
        (known.decision.overlap_blocks, known.decision.lower_tier_blocks);
    let forgotten = Decision {
        candidates: Vec::new(),
        scores: decision.scores.clone().map(|scores| Box::new(Scores { candidates: Vec::new(), ..*scores })),
        overlap_blocks: decision.overlap_blocks.or(overlap_blocks),
        lower_tier_blocks: decision.lower_tier_blocks.or(lower_tier_blocks),
        ..decision.clone()
    };
    known.decision != forgotten
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

/// What the router of the pool of `worker` most likely ran with at a time.
fn settings(cluster: &Cluster, formula: Formula, worker: WorkerIx, at: Millis) -> RouterSettings {
    let pool = cluster.pool_of(worker).unwrap_or_default();
    // At least one is possible.
    cluster.settings_at(pool, formula, at).into_iter().next().unwrap_or(RouterSettings::new(formula))
}

/// A clock that is ahead of ours by more than clocks are says nothing of the present.
fn is_plausible(published: Millis, received: Millis) -> bool {
    published.since(received) <= FRESH_MS
}

/// Microseconds of a measured duration; nothing for what is no duration.
fn micros(ms: f64) -> Option<u64> {
    (ms.is_finite() && (0.0..1e12).contains(&ms)).then(|| (ms * 1_000.0).round() as u64)
}
