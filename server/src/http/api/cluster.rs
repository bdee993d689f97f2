//! `GET /api/v1/cluster`: sources, workers, scraped processes, routers and totals of the tree.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_export::{BlockLifetimesDto, Decimal, TotalsDto};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{ModelFigures, RankFigures};
use radixscope_state::cluster::{Cluster, Line, ProcessState, RouterState, SourceState, WorkerState};

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
    /// Processes whose metrics are scraped.
    processes: Vec<ProcessDto>,
    /// Routers heard of, by their messages, logs or metrics.
    routers: Vec<RouterDto>,
    /// Sums over all decisions ever heard, those of logs included.
    decisions: TotalsDto,
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
    /// Messages known to be lost, each once. More are if `missed_at_least`.
    missed_total: u64,
    /// Whether more may be lost: a count that is a lower bound, or a gap of unknown size.
    missed_at_least: bool,
    missed: Vec<MissedDto>,
    /// Times without connection that cost an unknown number of messages.
    gaps: Vec<GapsDto>,
    rejected: Vec<RejectedDto>,
}

#[derive(Serialize)]
struct MissedDto {
    topic: &'static str,
    cause: &'static str,
    count: u64,
    /// Whether `count` is a lower bound.
    at_least: bool,
    /// Whether it counts, in events, messages that are counted under another cause too: not part of the total.
    counts_again: bool,
    last_ms: u64,
}

#[derive(Serialize)]
struct GapsDto {
    topic: &'static str,
    /// How many gaps.
    gaps: u64,
    /// Always null: how many messages they cost is unknown.
    messages: Option<u64>,
    /// When the first began.
    since_ms: u64,
    /// When the latest ended.
    until_ms: u64,
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
    /// `null`: not reported; else by whom.
    capacity_blocks: Option<u64>,
    capacity_source: Option<&'static str>,
    block_size_tokens: Option<u32>,
    block_size_source: Option<&'static str>,
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
    /// Requests between choice and end; `null`: no source tells when requests end.
    in_flight: Option<u32>,
    /// How its KV events come.
    lines: Vec<LineDto>,
    /// `null`: as far as is known it is there.
    gone: Option<GoneDto>,
    /// How long its blocks live, from a sample; `null`: not known yet.
    block_ages: Option<BlockLifetimesDto>,
}

#[derive(Serialize)]
struct LineDto {
    line: &'static str,
    first_ms: u64,
    /// Publishers count from 0 or 1: a larger one means that listening began later.
    first_event_id: Decimal,
}

#[derive(Serialize)]
struct GoneDto {
    at_ms: u64,
    /// How that is known.
    why: &'static str,
    /// KV events of it and requests sent to it since then.
    events_after: u64,
    choices_after: u64,
}

#[derive(Serialize)]
struct ProcessDto {
    name: String,
    role: &'static str,
    /// Its connection id: a worker's is its worker id, a frontend's its router's id; `null` below Dynamo 1.0.
    instance: Option<Decimal>,
    first_ms: u64,
    /// Last scrape that it answered.
    last_ms: u64,
    restarts: u32,
    restarted_ms: Option<u64>,
    /// What a frontend says of its models.
    models: Vec<ModelDto>,
    /// What a worker's engine says of its ranks.
    ranks: Vec<RankDto>,
}

#[derive(Serialize)]
struct ModelDto {
    name: String,
    block_size_tokens: Option<u32>,
    total_kv_blocks: Option<u64>,
    max_num_seqs: Option<u64>,
    max_num_batched_tokens: Option<u64>,
    context_length: Option<u64>,
}

#[derive(Serialize)]
struct RankDto {
    dp_rank: u32,
    /// 0 to 1.
    kv_usage: Option<f64>,
    used_blocks: Option<u64>,
    total_blocks: Option<u64>,
}

#[derive(Serialize)]
struct RouterDto {
    router_id: Decimal,
    first_ms: u64,
    last_ms: u64,
    /// `null`: there are several routers, and not every decision names its own.
    decisions_total: Option<u64>,
}

#[derive(Serialize)]
struct RouterLoadDto {
    /// `null`: the router's messages do not name it (0.8).
    router_id: Option<Decimal>,
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

/// `resident` and `total` are the sum of `blocks` over the workers, `shown` the part of it in the picture. `copies` are the
/// holders beyond the first of the blocks in `nodes`. All are counts of blocks but for `max_depth`, which is a length in
/// blocks, and `allocated` and `limit`, which count nodes in memory.
#[derive(Serialize)]
struct TreeDto {
    nodes: u64,
    shared: u64,
    copies: u64,
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
        processes: cluster.processes().iter().map(process).collect(),
        routers: cluster.routers().iter().map(|one| router(cluster, one)).collect(),
        decisions: cluster.decisions().totals().into(),
        tree: TreeDto {
            nodes: totals.nodes,
            shared: totals.shared,
            copies: totals.copies(),
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
        missed_total: source.missed_total(),
        missed_at_least: source.is_missed_at_least(),
        gaps: source
            .gaps
            .iter()
            .map(|g| GapsDto {
                topic: g.topic.as_str(),
                gaps: g.count,
                messages: None,
                since_ms: g.since_ms.0,
                until_ms: g.until_ms.0,
            })
            .collect(),
        missed: source
            .missed
            .iter()
            .map(|m| MissedDto {
                topic: m.topic.as_str(),
                cause: m.cause.as_str(),
                count: m.count,
                at_least: m.cause.is_lower_bound(),
                counts_again: m.cause.counts_again(),
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
    let (capacity, size) = (cluster.capacity(ix), cluster.block_size(ix));
    let load = |l: &radixscope_state::cluster::RouterLoad| RouterLoadDto {
        router_id: l.router.map(Decimal),
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
        capacity_blocks: capacity.map(|capacity| capacity.value),
        capacity_source: capacity.map(|capacity| capacity.source.as_str()),
        block_size_tokens: size.map(|size| size.value),
        block_size_source: size.map(|size| size.source.as_str()),
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
        in_flight: w.in_flight.now(),
        lines: w.lines.iter().map(line).collect(),
        gone: w.gone.map(|gone| GoneDto {
            at_ms: gone.at_ms.0,
            why: gone.why.as_str(),
            events_after: w.events_after_gone,
            choices_after: w.choices_after_gone,
        }),
        block_ages: w.lifetimes.as_ref().map(BlockLifetimesDto::from),
    })
}

fn line(line: &Line) -> LineDto {
    LineDto {
        line: line.line.as_str(),
        first_ms: line.first_ms.0,
        first_event_id: Decimal(line.first_event_id),
    }
}

fn process(process: &ProcessState) -> ProcessDto {
    let model = |m: &ModelFigures| ModelDto {
        name: m.name.to_string(),
        block_size_tokens: m.block_size_tokens,
        total_kv_blocks: m.total_kv_blocks,
        max_num_seqs: m.max_num_seqs,
        max_num_batched_tokens: m.max_num_batched_tokens,
        context_length: m.context_length,
    };
    let rank = |r: &RankFigures| RankDto {
        dp_rank: r.dp_rank,
        kv_usage: r.kv_usage,
        used_blocks: r.used_blocks,
        total_blocks: r.total_blocks,
    };
    ProcessDto {
        name: process.name.clone(),
        role: process.role.as_str(),
        instance: process.instance().map(Decimal),
        first_ms: process.first_ms.0,
        last_ms: process.last_ms.0,
        restarts: process.restarts,
        restarted_ms: ms(process.restarted_ms),
        models: process.models().iter().map(model).collect(),
        ranks: process.ranks().iter().map(rank).collect(),
    }
}

fn router(cluster: &Cluster, router: &RouterState) -> RouterDto {
    RouterDto {
        router_id: Decimal(router.id),
        first_ms: router.first_ms.0,
        last_ms: router.last_ms.0,
        decisions_total: cluster.decisions_of(router),
    }
}
