//! Version 12: an index of a worker was its slot, given again after a record of its own; workers that had given theirs away
//! were named in decisions by indices beyond the slots. A record of a decision or of its progress was a patch, see [`decisions`].
//!
//! The present index of a worker follows from its slot and the time at which it was introduced, so that it is the same from
//! whatever keyframe a reader begins.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use radixscope_model::frame::{Batch, BatchWriter, Digest, FrameError};
use radixscope_model::id::{Millis, PoolIx, Seq, Slot, WorkerIx};
use radixscope_model::record::{
    Counter, DepartureCause, Engine, Finding, Gauge, HistogramKind, LatencyTargets, MissedCause,
    ModelFigures, ProcessRole, RankFigures, Record, RuleStatus, Tier, Topic, WorkerFigures,
};
use radixscope_state::cluster::{
    DecisionTotals, LogSignalState, PoolState, RejectedCount, Requests, RouterState, UnknownGaps, WorkerState,
};
use radixscope_state::tree::TreePart;

use super::v11;
use super::v13::EntryV14;
use decisions::Merged;

mod decisions;

/// Number of the kind of record that was a patch of a decision.
const DECISION: u32 = 22;
/// Number of the kind of record that freed slots.
const RECLAIMED: u32 = 41;
/// Workers that departed had indices from here on, at most two for each slot.
const DEPARTED: u32 = Slot::COUNT as u32;
/// 2025-01-01, before anything was recorded.
const BEGIN_MS: u64 = 1_735_689_600_000;
/// Workers of one slot are introduced further apart than this; all generations of it are four years.
const GENERATION_MS: u64 = 120_000;

/// What is known on the way through a file.
#[derive(Clone, Default)]
pub(super) struct Context {
    /// By slot: who has it.
    slots: Vec<WorkerIx>,
    /// Slots that are free.
    reclaimed: BTreeSet<u32>,
    /// What patches are merged with.
    decisions: Merged,
}

impl Context {
    /// A worker by its former index.
    fn worker(&self, former: WorkerIx) -> WorkerIx {
        match former.0.checked_sub(DEPARTED) {
            None => self.slots.get(former.0 as usize).copied().unwrap_or(former),
            // The first generations, before those of any time.
            Some(departed) => WorkerIx(departed),
        }
    }

    /// A worker is introduced or named: its index, a new one if another worker had the slot.
    fn introduced(&mut self, former: WorkerIx, at: Millis) -> WorkerIx {
        let slot = former.0 as usize;
        let is_free = self.reclaimed.remove(&former.0);
        if slot < self.slots.len() && !is_free {
            return self.slots[slot];
        }
        let by_time = index(former, at);
        if let Some(before) = self.slots.get_mut(slot) {
            *before = before.next().map_or(by_time, |next| next.max(by_time));
            return *before;
        }
        if slot > self.slots.len() {
            return former;
        }
        self.slots.push(by_time);
        by_time
    }

    /// A part of a keyframe in the present form.
    pub(super) fn part(&mut self, version: u8, bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
        let part = match postcard::from_bytes(bytes)? {
            Part::Head(head) => {
                let head = match version {
                    11 => {
                        let head: Head<v11::ProcessV11, v11::FindingsV11> = postcard::from_bytes(&head)?;
                        self.head(head)?
                    }
                    _ => self.head(postcard::from_bytes::<Head<Process, Findings>>(&head)?)?,
                };
                PartV13::Head(head)
            }
            Part::Tree(pool, tier, tree) => PartV13::Tree(pool, tier, tree),
            Part::End { hidden, .. } => PartV13::End { hidden, digest: None },
        };
        Ok(postcard::to_allocvec(&part)?)
    }

    fn head<P: Into<Process>, F: Into<Findings>>(&mut self, head: Head<P, F>) -> postcard::Result<Vec<u8>> {
        let Head { seq, now_ms, sources, workers, pools, reclaimed, departed, decisions, .. } = head;
        let Head { requests, processes, routers, mut signs, findings, limit_nodes, .. } = head;
        self.slots =
            (0..).map(WorkerIx).zip(&workers).map(|(former, of)| index(former, of.first_ms)).collect();
        self.reclaimed = reclaimed.iter().map(|former| former.0).collect();
        let states = workers.into_iter().enumerate().map(|(slot, state)| SlotState {
            ix: self.slots[slot],
            state: (!self.reclaimed.contains(&(slot as u32))).then_some(state),
        });
        let slots: Vec<SlotState> = states.collect();
        let named = (DEPARTED..).map(WorkerIx).zip(departed.workers);
        let named: BTreeMap<WorkerIx, WorkerState> =
            named.filter_map(|(former, state)| Some((self.worker(former), state?))).collect();
        let mut sources = sources;
        for loss in
            sources.iter_mut().flat_map(|source| &mut source.missed).flat_map(|missed| &mut missed.losses)
        {
            loss.worker = loss.worker.map(|worker| self.worker(worker));
        }
        let mut processes: Vec<Process> = processes.into_iter().map(Into::into).collect();
        for figures in processes.iter_mut().flat_map(|process| &mut process.workers) {
            figures.worker = self.worker(figures.worker);
        }
        signs.iter_mut().flat_map(|sign| &mut sign.workers).for_each(|worker| *worker = self.worker(*worker));
        let mut findings: Findings = findings.into();
        for worker in findings.found.iter_mut().flat_map(|finding| &mut finding.workers) {
            *worker = self.worker(*worker);
        }
        let Decisions { latest, totals, per_worker, per_pool } = decisions;
        let mut latest: VecDeque<_> = latest.into_iter().map(decisions::Entry::next).collect();
        for entry in &mut latest {
            entry.decision.each_worker_mut(&mut |worker| *worker = self.worker(*worker));
        }
        self.decisions = Merged::of(&latest);
        let per_worker = PerWorker {
            slots: per_worker.into_iter().zip(&self.slots).map(|(of, &worker)| Some((worker, of))).collect(),
        };
        postcard::to_allocvec(&HeadV13 {
            seq,
            now_ms,
            sources,
            workers: Workers { slots },
            pools,
            departed: DepartedV13 { full: 2 * named.len(), workers: named },
            decisions: DecisionsV13 { latest, totals, per_worker, per_pool },
            requests,
            processes,
            routers,
            signs,
            findings,
            limit_nodes,
            settings: Vec::new(),
            policy_classes: Vec::new(),
            engines: Vec::new(),
            endpoints: Vec::new(),
            indexers: Vec::new(),
            clients: (0, 0, Vec::new()),
            targets: LatencyTargets::default(),
        })
    }

    /// A batch in the present form, as a frame.
    pub(super) fn batch(&mut self, version: u8, batch: &Batch<'_>) -> Result<Vec<u8>, FrameError> {
        let mut writer = BatchWriter::new(batch.first_seq);
        // Renamed before the next one is read: what a record means depends on those before it.
        let entries = batch.entries_by(|at, bytes| {
            let (mut record, rest) = self.record(version, bytes)?;
            self.rename(at, &mut record);
            self.merge(&mut record);
            Ok((record, rest))
        });
        for entry in entries {
            writer.push(&entry?.1)?;
        }
        // The digest is of the former state.
        writer.finish(batch.at_ms, None)
    }

    /// Reads a record as it was written.
    fn record<'b>(&mut self, version: u8, bytes: &'b [u8]) -> postcard::Result<(Record<'b>, &'b [u8])> {
        let (kind, content) = postcard::take_from_bytes::<u32>(bytes)?;
        if kind == RECLAIMED {
            let (workers, rest) = postcard::take_from_bytes::<Vec<WorkerIx>>(content)?;
            let first = workers.first().map_or(WorkerIx(u32::MAX), |first| self.worker(*first));
            self.reclaimed.extend(workers.iter().map(|former| former.0));
            // Each record has a number. What it freed follows from the indices that are given next.
            return Ok((Record::Left { worker: first, why: DepartureCause::Silent }, rest));
        }
        if kind == DECISION {
            let (patch, rest) = postcard::take_from_bytes::<decisions::Decision>(content)?;
            return Ok((Record::Decision(Box::new(patch.patch())), rest));
        }
        let former = if version == 11 { v11::record(kind, content) } else { None };
        former.unwrap_or_else(|| postcard::take_from_bytes(bytes))
    }

    /// Names workers by their present indices.
    fn rename(&mut self, at: Millis, record: &mut Record<'_>) {
        match record {
            Record::Worker(identity) => identity.worker = self.introduced(identity.worker, at),
            // Made of a record that freed slots, and named already.
            Record::Left { why: DepartureCause::Silent, .. } => {}
            record => record.each_worker_mut(&mut |worker| *worker = self.worker(*worker)),
        }
    }

    /// Makes a patch the whole that is known with it.
    fn merge(&mut self, record: &mut Record<'_>) {
        match record {
            Record::Decision(patch) => self.decisions.decision(patch),
            Record::Progress { decision, progress } => self.decisions.progress(*decision, progress),
            _ => {}
        }
    }
}

/// The present index of a worker that was introduced at a time.
fn index(former: WorkerIx, at: Millis) -> WorkerIx {
    // Beyond the generations of workers that had departed.
    let generation = 2 + at.0.saturating_sub(BEGIN_MS) / GENERATION_MS;
    // A time far beyond is damage; what follows from it is some index.
    WorkerIx(((generation as u32) << 12) | (former.0 % DEPARTED))
}

/// A part of a keyframe.
#[derive(Deserialize)]
enum Part {
    Head(Vec<u8>),
    Tree(PoolIx, Option<Tier>, Box<TreePart>),
    End {
        hidden: Vec<(Slot, Option<Tier>, u64)>,
        #[expect(dead_code, reason = "of the former state")]
        #[serde(with = "postcard::fixint::le")]
        digest: u64,
    },
}

/// The state but for its trees. `P`: a process, `F`: what checks found.
#[derive(Deserialize)]
struct Head<P, F> {
    seq: Seq,
    now_ms: Millis,
    sources: Vec<Source>,
    workers: Vec<WorkerState>,
    pools: Vec<PoolState>,
    reclaimed: Vec<WorkerIx>,
    departed: Departed,
    decisions: Decisions,
    requests: Requests,
    processes: Vec<P>,
    routers: Vec<RouterState>,
    signs: Vec<LogSignalState>,
    findings: F,
    limit_nodes: u32,
}

#[derive(Deserialize)]
struct Departed {
    workers: Vec<Option<WorkerState>>,
    #[expect(dead_code, reason = "it stands in the file")]
    count: usize,
}

#[derive(Deserialize)]
struct Decisions {
    latest: VecDeque<decisions::Entry>,
    totals: DecisionTotals,
    per_worker: Vec<DecisionTotals>,
    per_pool: Vec<DecisionTotals>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Source {
    name: String,
    kind: radixscope_model::record::SourceKind,
    state: radixscope_model::record::LinkState,
    detail: String,
    since_ms: Millis,
    first_connected_ms: Option<Millis>,
    connected: VecDeque<(Millis, Option<Millis>)>,
    received: u64,
    last_ms: Option<Millis>,
    lag_ms: Option<i64>,
    missed: Vec<Missed>,
    gaps: Vec<UnknownGaps>,
    rejected: Vec<RejectedCount>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Missed {
    topic: Topic,
    cause: MissedCause,
    count: u64,
    recovered: u64,
    last_ms: Millis,
    losses: VecDeque<Loss>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Loss {
    worker: Option<WorkerIx>,
    at_ms: Millis,
    count: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Findings {
    pub(super) found: Vec<Finding>,
    pub(super) checked: Vec<RuleStatus>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) role: ProcessRole,
    pub(super) engine: Option<Engine>,
    pub(super) first_ms: Millis,
    pub(super) last_ms: Millis,
    pub(super) restarts: u32,
    pub(super) restarted_ms: Option<Millis>,
    pub(super) instance: Option<u64>,
    pub(super) gauges: Vec<(Gauge, f64)>,
    pub(super) models: Vec<ModelFigures>,
    pub(super) workers: Vec<WorkerFigures>,
    pub(super) ranks: Vec<RankFigures>,
    pub(super) bounds: Vec<(HistogramKind, Vec<f64>)>,
    pub(super) first: Sums,
    pub(super) steps: VecDeque<(Millis, Sums)>,
    pub(super) older: VecDeque<(Millis, Sums)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Sums {
    counters: Vec<(Counter, f64)>,
    histograms: Vec<(HistogramKind, Vec<u64>, f64)>,
}

/// A part of a keyframe since version 13.
#[derive(Serialize, Deserialize)]
pub(super) enum PartV13 {
    Head(Vec<u8>),
    Tree(PoolIx, Option<Tier>, Box<TreePart>),
    End { hidden: Vec<(Slot, Option<Tier>, u64)>, digest: Option<Digest> },
}

/// The head since version 13, in which indices of workers are never given twice.
#[derive(Serialize)]
struct HeadV13 {
    seq: Seq,
    now_ms: Millis,
    sources: Vec<Source>,
    workers: Workers,
    pools: Vec<PoolState>,
    departed: DepartedV13,
    decisions: DecisionsV13,
    requests: Requests,
    processes: Vec<Process>,
    routers: Vec<RouterState>,
    signs: Vec<LogSignalState>,
    findings: Findings,
    limit_nodes: u32,
    /// Of routers.
    settings: Vec<()>,
    policy_classes: Vec<()>,
    engines: Vec<()>,
    endpoints: Vec<()>,
    indexers: Vec<()>,
    /// Joined, of no request that is known, and the latest of these.
    clients: (u64, u64, Vec<()>),
    targets: LatencyTargets,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Workers {
    slots: Vec<SlotState>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SlotState {
    ix: WorkerIx,
    state: Option<WorkerState>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DepartedV13 {
    workers: BTreeMap<WorkerIx, WorkerState>,
    full: usize,
}

#[derive(Serialize)]
struct DecisionsV13 {
    latest: VecDeque<EntryV14>,
    totals: DecisionTotals,
    per_worker: PerWorker,
    per_pool: Vec<DecisionTotals>,
}

#[derive(Serialize)]
struct PerWorker {
    slots: Vec<Option<(WorkerIx, DecisionTotals)>>,
}
