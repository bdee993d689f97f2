//! `GET /api/v1/cluster`: sources, workers and totals of the tree.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_core::cluster::{Cluster, SourceState, WorkerState};
use radixscope_core::export::Decimal;
use radixscope_core::id::WorkerIx;

use super::json::ms;
use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::{Hub, View};

/// The answer.
#[derive(Serialize)]
pub(super) struct ClusterDto {
    /// The last record folded.
    seq: u64,
    at_ms: u64,
    digest: Decimal,
    sources: Vec<SourceDto>,
    workers: Vec<WorkerDto>,
    tree: TreeDto,
}

#[derive(Serialize)]
struct SourceDto {
    name: String,
    kind: &'static str,
    state: &'static str,
    detail: String,
    since_ms: u64,
    received: u64,
    /// Messages lost on our side.
    dropped: u64,
    last_ms: Option<u64>,
    lag_ms: Option<i64>,
    missed: Vec<MissedDto>,
    rejected: Vec<RejectedDto>,
}

#[derive(Serialize)]
struct MissedDto {
    topic: &'static str,
    cause: &'static str,
    count: u64,
    last_ms: u64,
}

#[derive(Serialize)]
struct RejectedDto {
    topic: &'static str,
    reason: &'static str,
    count: u64,
    last_ms: u64,
    sample: String,
}

#[derive(Serialize)]
struct WorkerDto {
    worker_id: Decimal,
    dp_rank: u32,
    namespace: String,
    component: String,
    state: &'static str,
    /// `null`: no KV event of it was ever heard.
    blocks: Option<u64>,
    unattached_blocks: u64,
    hidden_blocks: u64,
    capacity_blocks: Option<u64>,
    block_size_tokens: Option<u32>,
    used_blocks: Option<u64>,
    stored_total: u64,
    removed_total: u64,
    cleared_total: u64,
    store_events_total: u64,
    remove_events_total: u64,
    empty_stores_total: u64,
    unknown_parents_total: u64,
    unknown_removed_total: u64,
    missed: u64,
    other_tier_stored_total: u64,
    other_tier_removed_total: u64,
    first_ms: u64,
    last_event_ms: Option<u64>,
    last_sign_ms: Option<u64>,
    router_loads: Vec<RouterLoadDto>,
    requests: RequestsDto,
    decisions_total: u64,
}

#[derive(Serialize)]
struct RouterLoadDto {
    router_id: Decimal,
    at_ms: u64,
    decode_blocks: Option<u64>,
    prefill_tokens: Option<u64>,
}

#[derive(Serialize)]
struct RequestsDto {
    added_total: u64,
    prefilled_total: u64,
    freed_total: u64,
}

/// `resident` and `total` are the sum of `blocks` over the workers, `shown` the part of it in the picture. All are
/// counts of blocks but for `max_depth`, which is a length in blocks, and `allocated` and `limit`, which
/// count nodes in memory.
#[derive(Serialize)]
struct TreeDto {
    nodes: u64,
    shared: u64,
    resident: u64,
    unattached: u64,
    max_depth: u32,
    shown: u64,
    total: u64,
    allocated: u32,
    limit: u32,
}

pub(super) async fn cluster(State(hub): State<Hub>, uri: Uri) -> Result<Json<ClusterDto>, ApiError> {
    Params::of(&uri, &[])?;
    Ok(Json(hub.read(of).await?))
}

fn of(view: &mut View<'_>) -> ClusterDto {
    let max_depth = view.max_depth();
    let cluster = view.cluster;
    let totals = cluster.tree().totals();
    ClusterDto {
        seq: cluster.seq().0,
        at_ms: view.at_ms.0,
        digest: Decimal(cluster.digest()),
        sources: cluster.sources().iter().map(source).collect(),
        workers: cluster.workers_by_id().into_iter().filter_map(|ix| worker(cluster, ix)).collect(),
        tree: TreeDto {
            nodes: totals.nodes,
            shared: totals.shared,
            resident: totals.resident,
            unattached: totals.unattached,
            max_depth,
            shown: totals.resident - totals.hidden,
            total: totals.resident,
            allocated: cluster.tree().allocated(),
            limit: cluster.tree().limit(),
        },
    }
}

fn source(source: &SourceState) -> SourceDto {
    SourceDto {
        name: source.name.clone(),
        kind: source.kind.as_str(),
        state: source.state.as_str(),
        detail: source.detail.clone(),
        since_ms: source.since_ms.0,
        received: source.received,
        dropped: source.dropped_total(),
        last_ms: ms(source.last_ms),
        lag_ms: source.lag_ms,
        missed: source
            .missed
            .iter()
            .map(|m| MissedDto {
                topic: m.topic.as_str(),
                cause: m.cause.as_str(),
                count: m.count,
                last_ms: m.last_ms.0,
            })
            .collect(),
        rejected: source
            .rejected
            .iter()
            .map(|r| RejectedDto {
                topic: r.topic.as_str(),
                reason: r.reason.as_str(),
                count: r.count,
                last_ms: r.last_ms.0,
                sample: r.sample.clone(),
            })
            .collect(),
    }
}

fn worker(cluster: &Cluster, ix: WorkerIx) -> Option<WorkerDto> {
    let w: &WorkerState = cluster.worker(ix)?;
    let held = cluster.tree().holdings(ix);
    let load = |l: &radixscope_core::cluster::RouterLoad| RouterLoadDto {
        router_id: Decimal(l.router),
        at_ms: l.at_ms.0,
        decode_blocks: l.decode_blocks,
        prefill_tokens: l.prefill_tokens,
    };
    Some(WorkerDto {
        worker_id: Decimal(w.id.id.0),
        dp_rank: w.id.dp_rank,
        namespace: w.namespace.clone(),
        component: w.component.clone(),
        state: w.sign(cluster.now_ms()).as_str(),
        blocks: cluster.blocks(ix),
        unattached_blocks: held.unattached,
        hidden_blocks: held.hidden,
        capacity_blocks: w.capacity_blocks,
        block_size_tokens: w.block_size_tokens,
        used_blocks: w.engine_used_blocks,
        stored_total: w.stored_total,
        removed_total: w.removed_total,
        cleared_total: w.cleared_total,
        store_events_total: w.store_events_total,
        remove_events_total: w.remove_events_total,
        empty_stores_total: w.empty_stores_total,
        unknown_parents_total: w.unknown_parents_total,
        unknown_removed_total: w.unknown_removed_total,
        missed: w.missed_total,
        other_tier_stored_total: w.other_tier.0,
        other_tier_removed_total: w.other_tier.1,
        first_ms: w.first_ms.0,
        last_event_ms: ms(w.last_event_ms),
        last_sign_ms: ms(w.last_sign_ms),
        router_loads: w.router_loads.iter().map(load).collect(),
        requests: RequestsDto {
            added_total: w.sequences.added,
            prefilled_total: w.sequences.prefilled,
            freed_total: w.sequences.freed,
        },
        decisions_total: cluster.decisions().totals_of(ix).count,
    })
}
