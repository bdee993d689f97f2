//! `GET /api/v1/cluster`: sources, workers, scraped processes, routers and totals of the tree. Types of the state are
//! serialised directly where possible; the rows here add computed fields.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_export::Totals;
use radixscope_export::engines::EngineRow;
use radixscope_export::indexers::IndexerRow;
use radixscope_export::other_routers::OtherRouterRow;
use radixscope_insight::whatif;
use radixscope_model::id::{Decimal, Millis, PoolIx, Seq, Worker, WorkerIx};
use radixscope_model::record::{
    BlockResidency, LinkState, ModelFigures, PolicyClasses, ProcessRole, RankFigures, Role, RoleEvidence,
    SourceKind, Tier,
};
use radixscope_replay::Retention;
use radixscope_router::RouterSettings;
use radixscope_state::cluster::{
    Cluster, Departure, MissedCount, ProcessState, RejectedCount, RouterLoad, RouterState, Sequences,
    SourceState, TierCounts, UnknownGaps, WorkerState, WorkerTransport,
};

use super::knowledge::{PoolKnowledge, WorkerKnowledge};
use super::params::Params;
use super::settings::{NumberRow, SettingsRow};
use crate::http::error::ApiError;
use crate::hub::{Hub, RefusedCount, View};
use crate::recording::RecordingStatus;

/// The response.
#[derive(Serialize)]
pub(super) struct ClusterResponse {
    /// The last record folded.
    seq: Seq,
    at_ms: Millis,
    digest: Decimal,
    sources: Vec<SourceRow>,
    workers: Vec<WorkerRow>,
    /// The pools that workers are in.
    pools: Vec<PoolRow>,
    /// Processes whose metrics are scraped.
    processes: Vec<ProcessRow>,
    /// Routers known from messages, logs or metrics.
    routers: Vec<RouterRow>,
    /// What sources report of routers' settings.
    router_settings: Vec<SettingsRow>,
    /// Classes of policy of routers' queues, by frontends' metrics.
    policy_classes: Vec<PolicyClassRow>,
    /// Engines that are listened to without Dynamo.
    engines: Vec<EngineRow>,
    /// Standalone KV indexers whose indexes are compared with the trees.
    indexers: Vec<IndexerRow>,
    /// What routers other than Dynamo's count, by their metrics.
    other_routers: Vec<OtherRouterRow>,
    /// Totals of all decisions received, including those from logs.
    decisions: Totals,
    tree: TreeRow,
    /// History in memory; `null`: disabled.
    history: Option<Retention>,
    /// Status of the recording; `null`: disabled.
    recording: Option<RecordingStatus>,
    /// Requests that were not sent, and responses that were not read, because the target or origin is not Dynamo's.
    refused: Vec<RefusedCount>,
}

/// A class of policy of a frontend's router queues. `null`: not reported.
#[derive(Serialize)]
struct PolicyClassRow {
    /// The frontend.
    process: String,
    class: String,
    /// For workers of which role; `decode` also where workers do both.
    role: Option<Role>,
    queued_requests: Option<u64>,
    queued_tokens: Option<u64>,
    /// Requests since the frontend started.
    received: Option<u64>,
    refused: Option<u64>,
}

impl PolicyClassRow {
    fn all_of(of: &PolicyClasses) -> impl Iterator<Item = Self> + '_ {
        of.classes.iter().map(|class| Self {
            process: of.process.clone(),
            class: class.class.clone(),
            role: class.role,
            queued_requests: class.queued_requests,
            queued_tokens: class.queued_tokens,
            received: class.received,
            refused: class.refused,
        })
    }
}

#[derive(Serialize)]
struct SourceRow {
    name: String,
    kind: SourceKind,
    state: LinkState,
    detail: String,
    since_ms: Millis,
    received: u64,
    /// Messages that Radixscope dropped.
    dropped: u64,
    last_ms: Option<Millis>,
    lag_ms: Option<i64>,
    /// Messages known to be lost, each counted once. A lower bound if `missed_at_least`.
    missed_total: u64,
    /// Of those, the ones recovered by queries to workers.
    recovered_total: u64,
    /// Whether more may be lost: a cause is a lower bound, or a connection was lost, so that workers may have joined or left
    /// unnoticed.
    missed_at_least: bool,
    missed: Vec<MissedRow>,
    /// Connection losses with an unknown number of lost messages.
    gaps: Vec<GapsRow>,
    rejected: Vec<RejectedCount>,
}

#[derive(Serialize)]
struct MissedRow {
    #[serde(flatten)]
    known: MissedCount,
    /// Whether `count` is a lower bound.
    at_least: bool,
    /// Whether it counts events of messages that are also counted under another cause, so that it is not part of the total.
    counts_again: bool,
}

#[derive(Serialize)]
struct GapsRow {
    #[serde(flatten)]
    known: UnknownGaps,
    /// Always null: the number is unknown.
    messages: (),
}

#[derive(Serialize)]
struct WorkerRow {
    #[serde(flatten)]
    worker: Worker,
    namespace: String,
    component: String,
    /// Both, as `pools` names it.
    pool: String,
    role: Option<Role>,
    /// `null`: not reported.
    model: Option<String>,
    /// How another router than Dynamo's names it; `null`: none does.
    endpoint: Option<String>,
    state: &'static str,
    /// `null`: no KV event of it was received.
    blocks: Option<u64>,
    unattached_blocks: u64,
    hidden_blocks: u64,
    /// `null`: not reported.
    capacity_blocks: Option<u64>,
    capacity_source: Option<&'static str>,
    block_size_tokens: Option<u32>,
    block_size_source: Option<&'static str>,
    used_blocks: Option<u64>,
    stored_total: u64,
    /// Multimodal inputs of stored blocks, counted once per stored event.
    multimodal_inputs_total: u64,
    /// Former name of `multimodal_inputs_total`, kept for one release.
    pictures_total: u64,
    removed_total: u64,
    cleared_total: u64,
    store_events_total: u64,
    remove_events_total: u64,
    empty_stores_total: u64,
    unknown_parents_total: u64,
    unknown_removed_total: u64,
    missed: u64,
    /// Whether more of its events may be lost.
    missed_at_least: bool,
    /// Of those, the ones recovered by queries to it.
    recovered: u64,
    /// How much of its cache is known.
    knowledge: WorkerKnowledge,
    /// Lower cache tiers for which events were received.
    tiers: Vec<TierRow>,
    /// Blocks in events of all tiers below device memory, including shared caches.
    other_tier_stored_total: u64,
    other_tier_removed_total: u64,
    first_ms: Millis,
    last_event_ms: Option<Millis>,
    last_sign_ms: Option<Millis>,
    router_loads: Vec<RouterLoad>,
    requests: Sequences,
    decisions_total: u64,
    /// Requests in flight; `null`: no source reports when requests end.
    in_flight: Option<u32>,
    /// Transports of its KV events.
    lines: Vec<WorkerTransport>,
    /// Departure; `null`: present.
    gone: Option<DepartureRow>,
    /// Block lifetimes, from a sample; `null`: unknown.
    block_ages: Option<BlockResidency>,
}

#[derive(Serialize)]
struct TierRow {
    /// `host_pinned`, `disk` or `external`.
    tier: Tier,
    /// Cached blocks there.
    blocks: u64,
    #[serde(flatten)]
    counts: TierCounts,
}

/// The workers of one component, their tree and the decisions among them. `nodes`, `resident` and `shared` count blocks of
/// `block_size_tokens` tokens, as in `tree`.
#[derive(Serialize)]
struct PoolRow {
    /// `NAMESPACE/COMPONENT`.
    pool: String,
    /// `null`: unknown.
    role: Option<Role>,
    role_source: Option<RoleEvidence>,
    /// The model, if its workers serve only one; `null`: not reported, or see `models`.
    model: Option<String>,
    models: Vec<String>,
    /// `null`: unknown, or its workers differ.
    block_size_tokens: Option<u32>,
    /// The cache domain, which is the pool.
    domain: String,
    /// Settings of its router: as reported, or inferred from its latest decisions and role; others are Dynamo's defaults. `null`:
    /// unknown.
    router: Option<RouterSettings>,
    /// Where the numbers of its router are known from; empty where `router` is unknown.
    router_numbers: Vec<NumberRow>,
    /// Present workers.
    workers: usize,
    /// How much of the caches is known. Until it is complete, the counts below cover the known part.
    knowledge: PoolKnowledge,
    nodes: u64,
    resident: u64,
    shared: u64,
    copies: u64,
    unattached: u64,
    decisions_total: u64,
    /// Prompt blocks of decisions that report prompt and overlap, and how many of them were cached on the chosen workers; 0 in
    /// a decode pool, whose router ignores caches.
    isl_blocks: u64,
    overlap_blocks: u64,
}

#[derive(Serialize)]
struct DepartureRow {
    #[serde(flatten)]
    known: Departure,
    /// Its KV events and requests routed to it since then.
    events_after: u64,
    choices_after: u64,
}

#[derive(Serialize)]
struct ProcessRow {
    name: String,
    role: ProcessRole,
    /// Its connection id: a worker's is its worker id, a frontend's its router's id; `null` below Dynamo 1.0.
    instance: Option<Decimal>,
    first_ms: Millis,
    /// Last successful scrape.
    last_ms: Millis,
    restarts: u32,
    restarted_ms: Option<Millis>,
    /// Figures of a frontend, per model.
    models: Vec<ModelFigures>,
    /// Figures of a worker's engine, per rank.
    ranks: Vec<RankFigures>,
}

#[derive(Serialize)]
struct RouterRow {
    router_id: Decimal,
    first_ms: Millis,
    last_ms: Millis,
    /// `null`: there are several routers, and not every decision names its own.
    decisions_total: Option<u64>,
}

/// `resident` and `total` are the sum of `blocks` over the workers, `shown` the part of it in the picture. `copies` are the
/// holders beyond the first of the blocks in `nodes`. All are counts of blocks but for `max_depth`, which is a length in
/// blocks, and `allocated` and `limit`, which count nodes in memory.
#[derive(Serialize)]
struct TreeRow {
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

pub(super) async fn cluster(State(hub): State<Hub>, uri: Uri) -> Result<Json<ClusterResponse>, ApiError> {
    Params::of(&uri, &[])?;
    let refused = hub.refusals().list();
    Ok(Json(hub.read(|view| of(view, refused)).await?))
}

fn of(view: &mut View<'_>, refused: Vec<RefusedCount>) -> ClusterResponse {
    let max_depth = view.max_depth();
    let cluster = view.cluster;
    let totals = cluster.totals();
    ClusterResponse {
        seq: cluster.seq(),
        at_ms: view.at_ms,
        digest: Decimal(cluster.digest()),
        sources: cluster.sources().iter().map(source).collect(),
        workers: cluster.workers_by_id().into_iter().filter_map(|ix| worker(cluster, ix)).collect(),
        pools: cluster.pools_in_use().into_iter().filter_map(|ix| pool(cluster, ix)).collect(),
        processes: cluster.processes().iter().map(process).collect(),
        routers: cluster.routers().iter().map(|one| router(cluster, one)).collect(),
        router_settings: cluster.settings().iter().map(SettingsRow::of).collect(),
        policy_classes: cluster.policy_classes().iter().flat_map(PolicyClassRow::all_of).collect(),
        engines: EngineRow::all(cluster),
        indexers: IndexerRow::all(cluster),
        other_routers: OtherRouterRow::all(cluster, view.at_ms),
        decisions: cluster.decisions().totals().into(),
        history: view.history(),
        recording: view.recording(),
        refused,
        tree: TreeRow {
            nodes: totals.nodes,
            shared: totals.shared,
            copies: totals.copies(),
            resident: totals.resident,
            unattached: totals.unattached,
            max_depth,
            shown: totals.resident - totals.hidden,
            total: totals.resident,
            allocated: cluster.trees().map(|(_, tree)| tree.allocated()).sum(),
            limit: cluster.limit_nodes(),
        },
    }
}

fn source(source: &SourceState) -> SourceRow {
    let missed = |known: &MissedCount| MissedRow {
        at_least: source.is_at_least(known),
        counts_again: known.cause.counts_again(),
        known: known.clone(),
    };
    SourceRow {
        name: source.name.clone(),
        kind: source.kind,
        state: source.state,
        detail: source.detail.clone(),
        since_ms: source.since_ms,
        received: source.received,
        dropped: source.dropped_total(),
        last_ms: source.last_ms,
        lag_ms: source.lag_ms,
        missed_total: source.missed_total(),
        recovered_total: source.recovered_total(),
        missed_at_least: source.is_missed_at_least(),
        missed: source.missed.iter().map(missed).collect(),
        gaps: source.unknown_gaps().map(|&known| GapsRow { known, messages: () }).collect(),
        rejected: source.rejected.clone(),
    }
}

fn worker(cluster: &Cluster, ix: WorkerIx) -> Option<WorkerRow> {
    let w: &WorkerState = cluster.worker(ix)?;
    let held = cluster.holdings(ix);
    let pool = cluster.pool(w.pool)?;
    let tier = |tier: Tier| {
        let blocks = cluster.tier_blocks(ix, tier)?;
        Some(TierRow { tier, blocks, counts: w.tiers[tier as usize] })
    };
    let (capacity, size) = (cluster.capacity(ix), cluster.block_size(ix));
    Some(WorkerRow {
        worker: w.id,
        namespace: pool.namespace.clone(),
        component: pool.component.clone(),
        pool: pool.name(),
        role: cluster.role(w.pool).map(|(role, _)| role),
        model: Some(w.model.clone()).filter(|model| !model.is_empty()),
        endpoint: cluster.endpoint_of(ix).map(str::to_owned),
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
        multimodal_inputs_total: w.multimodal_inputs_total,
        pictures_total: w.multimodal_inputs_total,
        removed_total: w.removed_total,
        cleared_total: w.cleared_total,
        store_events_total: w.store_events_total,
        remove_events_total: w.remove_events_total,
        empty_stores_total: w.empty_stores_total,
        unknown_parents_total: w.unknown_parents_total,
        unknown_removed_total: w.unknown_removed_total,
        missed: w.missed_total,
        missed_at_least: cluster.is_missed_at_least(ix),
        recovered: w.recovered_total,
        knowledge: WorkerKnowledge::of(cluster, ix, w),
        tiers: Tier::ALL.into_iter().filter_map(tier).collect(),
        other_tier_stored_total: w.below_device().stored,
        other_tier_removed_total: w.below_device().removed,
        first_ms: w.first_ms,
        last_event_ms: w.last_event_ms,
        last_sign_ms: w.last_sign_ms,
        router_loads: w.router_loads.clone(),
        requests: w.sequences,
        decisions_total: cluster.decisions().totals_of(ix).count,
        in_flight: w.in_flight.now(),
        lines: w.lines.clone(),
        gone: w.departure.map(|known| DepartureRow {
            known,
            events_after: w.events_after_departure,
            choices_after: w.choices_after_departure,
        }),
        block_ages: w.lifetimes,
    })
}

fn pool(cluster: &Cluster, ix: PoolIx) -> Option<PoolRow> {
    let state = cluster.pool(ix)?;
    let (totals, decided, role) =
        (cluster.tree(ix).totals(), cluster.decisions().totals_in(ix), cluster.role(ix));
    let models = cluster.models_in(ix);
    let is_there =
        |&worker: &WorkerIx| cluster.worker(worker).is_some_and(|worker| worker.departure.is_none());
    Some(PoolRow {
        pool: state.name(),
        role: role.map(|(role, _)| role),
        role_source: role.map(|(_, evidence)| evidence),
        model: match models.as_slice() {
            [only] => Some((*only).to_owned()),
            _ => None,
        },
        models: models.into_iter().map(str::to_owned).collect(),
        block_size_tokens: cluster.block_tokens(ix),
        domain: state.name(),
        router: whatif::deployed(cluster, ix),
        router_numbers: NumberRow::of_pool(cluster, ix),
        workers: cluster.workers_in(ix).filter(is_there).count(),
        knowledge: PoolKnowledge::of(cluster, ix),
        nodes: totals.nodes,
        resident: totals.resident,
        shared: totals.shared,
        copies: totals.copies(),
        unattached: totals.unattached,
        decisions_total: decided.count,
        isl_blocks: decided.isl_blocks,
        overlap_blocks: decided.overlap_blocks,
    })
}

fn process(process: &ProcessState) -> ProcessRow {
    ProcessRow {
        name: process.name.clone(),
        role: process.role,
        instance: process.instance().map(Decimal),
        first_ms: process.first_ms,
        last_ms: process.last_ms,
        restarts: process.restarts,
        restarted_ms: process.restarted_ms,
        models: process.models().to_vec(),
        ranks: process.ranks().to_vec(),
    }
}

fn router(cluster: &Cluster, router: &RouterState) -> RouterRow {
    RouterRow {
        router_id: Decimal(router.id),
        first_ms: router.first_ms,
        last_ms: router.last_ms,
        decisions_total: cluster.decisions_of(router),
    }
}
