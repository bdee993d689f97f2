//! Lines of frontends' logs: several make a decision (reference §7.3).
//!
//! Up to 1.3 the lines of one decision follow each other and name no request. From 1.4 on they name it, and lines of
//! several requests mix.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{Kept, Length, Marks, Moment, Prompt, Routing, Words, micros, progress};
use crate::cluster::Cluster;
use crate::dynamo::log_line::{self, Ending, LogLine, RoutingInput, Said as Line, Selected, Terms};
use crate::id::{DecisionId, Millis, SourceIx, WorkerIx};
use crate::ingest::{FRESH_MS, Told};
use crate::record::{Candidate, Completeness, Decision, DecisionSource, Outcome, Progress, Record, Scoring};
use crate::router::Formula;

/// Logs whose lines are kept apart.
const MAX_LOGS: usize = 64;
/// Candidates of a decision whose `Selected worker` has not come.
const MAX_PENDING: usize = 1 << 12;
/// Requests whose hashes were logged and whose choice was not.
const MAX_INPUTS: usize = 1 << 12;

/// Choices that may still turn out to be given to their worker: the two lines follow each other within a millisecond.
const MAX_CHOSEN: usize = 256;

/// What was read and not used up yet.
#[derive(Default)]
pub(super) struct Lines {
    logs: Vec<(SourceIx, Box<str>, OfLog)>,
    /// Oldest first. The choice follows within a millisecond, so that it is found near the end.
    inputs: VecDeque<(Box<str>, Input)>,
    /// Prompts of the latest choices that were not followed by a word that the worker was given them.
    chosen: VecDeque<(DecisionId, Length, Vec<u64>)>,
    weight: Option<f64>,
}

/// Formula lines since the last choice in one log.
#[derive(Default)]
struct OfLog {
    candidates: Vec<Candidate>,
    scoring: Option<Scoring>,
    tied: bool,
}

/// What the router was asked, as logged at DEBUG.
struct Input {
    length: Length,
    local_hashes: Box<[u64]>,
}

impl Lines {
    /// Weight in the latest line that tells one.
    pub(super) fn weight(&self) -> Option<f64> {
        self.weight
    }

    fn log(&mut self, source: SourceIx, name: &str) -> Option<&mut OfLog> {
        let known = self.logs.iter().position(|(of, known, _)| *of == source && **known == *name);
        let at = match known {
            Some(at) => at,
            None if self.logs.len() == MAX_LOGS => return None,
            None => {
                self.logs.push((source, name.into(), OfLog::default()));
                self.logs.len() - 1
            }
        };
        self.logs.get_mut(at).map(|(.., log)| log)
    }

    fn chosen(&mut self, decision: DecisionId, length: Length, chain: Vec<u64>) {
        if self.chosen.len() == MAX_CHOSEN {
            self.chosen.pop_front();
        }
        self.chosen.push_back((decision, length, chain));
    }

    fn dispatched(&mut self, decision: DecisionId) -> Option<(Length, Vec<u64>)> {
        let at = self.chosen.iter().position(|(id, ..)| *id == decision)?;
        let (_, length, chain) = self.chosen.remove(at)?;
        Some((length, chain))
    }

    fn formula(&mut self, (source, log): (SourceIx, &str), worker: WorkerIx, line: &log_line::Formula) {
        let (scoring, prefill_blocks, decode_blocks) = match line.terms {
            Terms::Weighted { weight, prefill_blocks, decode_blocks } => {
                self.weight = Some(weight.value);
                let scoring = Scoring { formula: Formula::A, weight: weight.value };
                (scoring, prefill_blocks.value, decode_blocks.value)
            }
            Terms::Scaled { scale, adjusted_prefill_blocks, decode_blocks, overlap_credit_decay, .. } => {
                self.weight = Some(scale.value);
                // 1.3 began to print the decay; C and D cost the same but for options that these lines name.
                let formula = if overlap_credit_decay.is_some() { Formula::D } else { Formula::B };
                let scoring = Scoring { formula, weight: scale.value };
                (scoring, adjusted_prefill_blocks.value, decode_blocks.value)
            }
            Terms::Decode { decode_blocks, .. } => {
                (Scoring { formula: Formula::D, weight: 0.0 }, 0.0, decode_blocks.value)
            }
        };
        let Some(log) = self.log(source, log) else { return };
        // A candidate that comes again begins another decision: the one before was never chosen.
        if log.candidates.len() == MAX_PENDING || log.candidates.iter().any(|c| c.worker == worker) {
            *log = OfLog::default();
        }
        log.scoring = Some(scoring);
        let overlap_blocks = line.cached_blocks.value as u32;
        log.candidates.push(Candidate {
            worker,
            overlap_blocks,
            prefill_blocks,
            decode_blocks,
            cost: line.logit.value,
            // Without overlap the router counts a tree of 0 blocks; of the others only the chosen one's is logged.
            tree_size: (overlap_blocks == 0 && scoring.formula == Formula::A).then_some(0),
        });
    }

    fn input(&mut self, request_id: &str, input: Input) {
        if self.inputs.len() == MAX_INPUTS {
            self.inputs.pop_front();
        }
        self.inputs.push_back((request_id.into(), input));
    }

    /// Requests whose choice has not come.
    #[cfg(test)]
    pub(super) fn waiting_inputs(&self) -> usize {
        self.inputs.len()
    }

    fn take_input(&mut self, request_id: &str) -> Option<Input> {
        let at = self.inputs.iter().rposition(|(of, _)| **of == *request_id)?;
        self.inputs.remove(at).map(|(_, input)| input)
    }
}

impl Routing {
    /// Takes a line. `worker` is the one it names.
    pub(super) fn line(
        &mut self,
        told: &Told<'_>,
        log: &str,
        line: &LogLine<'_>,
        worker: Option<WorkerIx>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let heard = Heard::of(told, line);
        match (&line.said, worker) {
            (Line::Formula(formula), Some(worker)) => {
                self.lines.formula((told.source, log), worker, formula);
                Vec::new()
            }
            (Line::Tie, _) => {
                if let Some(log) = self.lines.log(told.source, log) {
                    log.tied = true;
                }
                Vec::new()
            }
            (Line::Selected(selected), Some(worker)) => {
                let pending = self.lines.log(told.source, log).map(std::mem::take).unwrap_or_default();
                let decision = self.selected(&heard, pending, selected, worker, cluster);
                if selected.request_id.is_some() && told.now_ms.since(heard.at_ms) <= FRESH_MS {
                    self.in_flight.begin(told.at_ms, decision.id, worker);
                }
                vec![Record::Decision(decision)]
            }
            (Line::RoutingInput(input), _) => {
                self.routing_input(input);
                Vec::new()
            }
            (Line::RoutingBest(best), Some(worker)) => {
                let mut marks = heard.marks(worker, best.request_id.as_deref());
                marks.overlap_blocks = Some(best.overlap_blocks);
                marks.isl_blocks = Some(best.total_blocks);
                let decision = self.piece(&marks);
                self.waiting.tell(decision.id, Some(best.overlap_blocks), true);
                self.dispatched(&heard, &decision);
                vec![Record::Decision(decision)]
            }
            (Line::RouteDone(done), Some(worker)) => {
                let mut marks = heard.marks(worker, Some(&done.request_id));
                marks.overlap_blocks = done.overlap_blocks;
                let decision = self.piece(&marks);
                let id = decision.id;
                self.waiting.tell(id, done.overlap_blocks, true);
                self.active.free(heard.moment, id);
                self.in_flight.end(id, Some(worker));
                let outcome = match done.ending {
                    Ending::Completed => Outcome::Success,
                    Ending::Cancelled => Outcome::Cancelled,
                    Ending::Failed => Outcome::Failed,
                };
                let (ended_ms, outcome) = (Some(heard.at_ms), Some(outcome));
                let progress = Progress { ended_ms, outcome, ..Progress::default() };
                vec![Record::Decision(decision), Record::Progress { decision: id, progress }]
            }
            (Line::RequestDone(done), _) => {
                self.changes.forgo();
                let Some(id) = self.joiner.of_request(&done.request_id) else { return Vec::new() };
                // Also of a query that ran nothing.
                self.in_flight.end(id, None);
                if let Some(tokens) = done.output_tokens {
                    self.arrivals.finished(id, tokens);
                }
                progress(
                    id,
                    Progress {
                        ttft_us: done.ttft_ms.and_then(micros),
                        itl_us: done.avg_itl_ms.and_then(micros),
                        output_tokens: done.output_tokens,
                        ..Progress::default()
                    },
                )
            }
            (Line::WorkerAdded(_), Some(worker)) => {
                self.changes.expect();
                self.departures.said(worker, heard.at_ms, false);
                Vec::new()
            }
            (Line::WorkerRemoved(_), Some(worker)) => {
                self.departures.said(worker, heard.at_ms, true);
                Vec::new()
            }
            (Line::InstanceRemoved(id), _) => {
                let ranks = cluster.workers().iter().enumerate().filter(|(_, worker)| worker.id.id == *id);
                for (ix, _) in ranks {
                    self.departures.said(WorkerIx(ix as u16), heard.at_ms, true);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn routing_input(&mut self, input: &RoutingInput<'_>) {
        let Some(block_size_tokens) = u32::try_from(input.block_size_tokens).ok().filter(|&size| size > 0)
        else {
            return;
        };
        self.changes.need();
        let (isl_tokens, block_size_tokens) = (Some(input.isl_tokens), Some(block_size_tokens));
        let length = Length { isl_tokens, block_size_tokens, ..Length::default() };
        self.lines
            .input(&input.request_id, Input { length, local_hashes: input.local_hashes.as_slice().into() });
    }

    fn selected(
        &mut self,
        heard: &Heard,
        mut pending: OfLog,
        selected: &Selected<'_>,
        worker: WorkerIx,
        cluster: &Cluster,
    ) -> Decision<'static> {
        let chosen = pending.candidates.iter_mut().find(|candidate| candidate.worker == worker);
        let cached = selected.cached_blocks.map(|blocks| blocks.value as u64);
        let cached = cached.or_else(|| chosen.as_ref().map(|candidate| candidate.overlap_blocks.into()));
        if let Some(candidate) = chosen {
            candidate.tree_size = selected.tree_size_blocks.or(candidate.tree_size);
        }
        let input = selected.request_id.as_deref().and_then(|id| self.lines.take_input(id));
        let mut marks = heard.marks(worker, selected.request_id.as_deref());
        marks.overlap_blocks = cached;
        marks.isl_blocks = input.as_ref().and_then(|input| input.length.isl_blocks());
        let mut decision = self.piece(&marks);
        decision.decided_ms = heard.decided_ms;
        decision.logit = Some(selected.logit.value);
        if pending.candidates.iter().any(|candidate| candidate.worker == worker) {
            decision.tied = pending.tied;
            decision.scoring = pending.scoring;
            decision.candidates = Cow::Owned(pending.candidates);
            decision.completeness = Completeness::AllCandidates;
        }
        match input {
            Some(input) => self.completed_from(heard, &mut decision, input, cluster),
            None => {
                self.changes.forgo();
                if decision.completeness < Completeness::AllCandidates {
                    // Another source may tell the prompt.
                    self.waiting.take(heard.words(&decision, Length::default(), None));
                }
            }
        }
        decision
    }

    /// Completes a decision whose request was logged with its hashes.
    fn completed_from(
        &mut self,
        heard: &Heard,
        decision: &mut Decision<'static>,
        input: Input,
        cluster: &Cluster,
    ) {
        decision.isl_tokens = input.length.isl_tokens;
        decision.block_size_tokens = input.length.block_size_tokens;
        let mut chain = Vec::new();
        Prompt::Local(&input.local_hashes).chain(&mut chain);
        if decision.completeness < Completeness::AllCandidates {
            let words = heard.words(decision, input.length, Some(Kept::Local(input.local_hashes)));
            self.wait(decision, words, heard.told_ms, cluster);
        }
        self.arrived(decision.id, heard.told_ms, &input.length, &chain);
        // The request may be a query that runs nothing: only what is logged next tells.
        self.lines.chosen(decision.id, input.length, chain);
    }

    /// The chosen worker was really given the request.
    fn dispatched(&mut self, heard: &Heard, decision: &Decision<'_>) {
        let Some((length, chain)) = self.lines.dispatched(decision.id) else { return };
        let held =
            decision.overlap_blocks.unwrap_or(0).saturating_mul(length.block_size_tokens.unwrap_or(0).into());
        let prefill_tokens = length.isl_tokens.unwrap_or(0).saturating_sub(held);
        // The router adds a request when it places it, and writes this line a little later.
        let placed = self.waiting.placed(decision.id).unwrap_or(heard.moment);
        self.active.add(placed, decision.id, decision.worker, &chain, prefill_tokens);
    }
}

/// When a line was written and read.
struct Heard {
    /// As far as the line tells, else when it was read.
    at_ms: Millis,
    moment: Moment,
    decided_ms: Option<Millis>,
    told_ms: Millis,
}

impl Heard {
    fn of(told: &Told<'_>, line: &LogLine<'_>) -> Self {
        let decided_ms = line.at_ms();
        let at_ms = decided_ms.unwrap_or(told.at_ms);
        let at_us = line.at_us.and_then(|us| u64::try_from(us).ok());
        let moment = at_us.map_or_else(|| Moment::of(at_ms), Moment);
        Self { at_ms, moment, decided_ms, told_ms: told.at_ms }
    }

    /// What a choice tells of its costs; its overlap follows in another line.
    fn words(&self, decision: &Decision<'_>, length: Length, prompt: Option<Kept>) -> Words {
        Words {
            decision: decision.id,
            worker: decision.worker,
            source: DecisionSource::Log,
            at: self.moment,
            heard_ms: self.told_ms,
            prompt,
            length,
            formula: None,
            overlap_blocks: decision.overlap_blocks,
            logit: decision.logit,
            is_whole: false,
        }
    }

    fn marks<'m>(&self, worker: WorkerIx, request_id: Option<&'m str>) -> Marks<'m> {
        let source = DecisionSource::Log;
        Marks { source, at_ms: self.at_ms, worker, request_id, overlap_blocks: None, isl_blocks: None }
    }
}
