//! Version 13: a decision had no session, did not say what decided it and not how much of the prompt was cached where.
//!
//! What else a keyframe contains has not changed, so its bytes are copied as they are.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use radixscope_model::formula::Formula;
use radixscope_model::frame::{Batch, BatchWriter, FrameError};
use radixscope_model::id::{DecisionId, Millis, PoolIx, Seq, WorkerIx};
use radixscope_model::record::{
    self, Arithmetic, Candidate, Completeness, DecisionSource, DecisionSources, LatencyTargets,
    NotReconstructed, PathEnd, Progress, Record, RoutingMode,
};
use radixscope_state::cluster::PoolState;

use super::v12::{DepartedV13, PartV13, Source, Workers};

/// Number of the kind of record that is a decision.
const DECISION: u32 = 22;

/// A part of a keyframe in the present form.
pub(super) fn part(bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
    let part = match postcard::from_bytes(bytes)? {
        PartV13::Head(head) => PartV13::Head(self::head(&head)?),
        PartV13::End { hidden, .. } => PartV13::End { hidden, digest: None },
        tree @ PartV13::Tree(..) => tree,
    };
    Ok(postcard::to_allocvec(&part)?)
}

/// The state but for its trees: the decisions that it retained are written anew.
fn head(bytes: &[u8]) -> postcard::Result<Vec<u8>> {
    let (_, rest) = postcard::take_from_bytes::<BeforeDecisions>(bytes)?;
    let before = bytes.len() - rest.len();
    let (latest, after) = postcard::take_from_bytes::<VecDeque<Entry>>(rest)?;
    let latest: VecDeque<EntryV14> = latest.into_iter().map(Entry::next).collect();
    let mut head = postcard::to_extend(&latest, bytes[..before].to_vec())?;
    head.extend_from_slice(after);
    // No settings of routers, no classes of policy, no engines of their own, no endpoints and no indexers: empty lists. No results
    // of clients: two counts and an empty list. The default targets.
    head.extend([0, 0, 0, 0, 0, 0, 0, 0]);
    postcard::to_extend(&LatencyTargets::default(), head)
}

/// A batch in the present form, as a frame.
pub(super) fn batch(batch: &Batch<'_>) -> Result<Vec<u8>, FrameError> {
    let mut writer = BatchWriter::new(batch.first_seq);
    let entries = batch.entries_by(|_, bytes| {
        let (kind, content) = postcard::take_from_bytes::<u32>(bytes)?;
        if kind == DECISION {
            let (decision, rest) = postcard::take_from_bytes::<Decision>(content)?;
            return Ok((Record::Decision(Box::new(decision.next())), rest));
        }
        postcard::take_from_bytes::<Record<'_>>(bytes)
    });
    for entry in entries {
        writer.push(&entry?.1)?;
    }
    // The digest is of the former state.
    writer.finish(batch.at_ms, None)
}

/// What a head begins with.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only where it ends is of use")]
struct BeforeDecisions {
    seq: Seq,
    now_ms: Millis,
    sources: Vec<Source>,
    workers: Workers,
    pools: Vec<PoolState>,
    departed: DepartedV13,
}

/// A decision as a state retained it.
#[derive(Deserialize)]
struct Entry {
    seq: Seq,
    at_ms: Millis,
    decision: Decision,
    progress: Progress,
    pool: PoolIx,
    ignores_cache: bool,
    partial: bool,
    forgotten: bool,
}

impl Entry {
    fn next(self) -> EntryV14 {
        let Self { seq, at_ms, decision, progress, pool, ignores_cache, partial, forgotten } = self;
        let decision = decision.next();
        EntryV14 {
            seq,
            at_ms,
            decision,
            progress,
            pool,
            ignores_cache,
            reuse: None,
            client: None,
            partial,
            forgotten,
        }
    }
}

/// The same in version 14.
#[derive(Serialize)]
pub(super) struct EntryV14 {
    pub(super) seq: Seq,
    pub(super) at_ms: Millis,
    pub(super) decision: record::Decision,
    pub(super) progress: Progress,
    pub(super) pool: PoolIx,
    pub(super) ignores_cache: bool,
    pub(super) reuse: Option<record::Reuse>,
    pub(super) client: Option<record::ClientMeasured>,
    pub(super) partial: bool,
    pub(super) forgotten: bool,
}

/// A decision without its session and what decided it.
#[derive(Deserialize)]
struct Decision {
    id: DecisionId,
    worker: WorkerIx,
    source: DecisionSource,
    sources: DecisionSources,
    decided_ms: Option<Millis>,
    router: Option<u64>,
    request_id: Option<String>,
    isl_tokens: Option<u64>,
    isl_blocks: Option<u64>,
    block_size_tokens: Option<u32>,
    overlap_blocks: Option<u64>,
    lower_tier_blocks: Option<u64>,
    logit: Option<f64>,
    chosen_cost: Option<f64>,
    formula: Option<Formula>,
    prefill_factor: Option<f64>,
    tied: bool,
    candidates: Vec<Candidate>,
    completeness: Completeness,
    not_reconstructed: Option<NotReconstructed>,
    path: Option<PathEnd>,
    dispatched: Option<bool>,
    adapter: Option<String>,
    other_part: Option<DecisionId>,
    mode: Option<RoutingMode>,
}

impl Decision {
    fn next(self) -> record::Decision {
        let Self { id, worker, source, sources, decided_ms, router, request_id, isl_tokens, .. } = self;
        let Self { isl_blocks, block_size_tokens, overlap_blocks, lower_tier_blocks, logit, .. } = self;
        let Self { chosen_cost, formula, prefill_factor, tied, candidates, completeness, .. } = self;
        let Self { not_reconstructed, path, dispatched, adapter, other_part, mode, .. } = self;
        record::Decision {
            id,
            worker,
            source,
            sources,
            decided_ms,
            router,
            request_id,
            isl_tokens,
            isl_blocks,
            block_size_tokens,
            overlap_blocks,
            lower_tier_blocks,
            logit,
            chosen_cost,
            formula,
            prefill_factor,
            tied,
            candidates,
            completeness,
            not_reconstructed,
            path,
            dispatched,
            adapter,
            other_part,
            mode,
            session: None,
            trace_id: None,
            decided_by: None,
            prefill_bypassed: None,
            arithmetic: Arithmetic::Dynamo,
            scores: None,
        }
    }
}
