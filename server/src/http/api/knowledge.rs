//! How much of the workers' caches is known, as in `GET /api/v1/cluster`.

use serde::Serialize;

use radixscope_insight::completeness::{Trust, coverage_text, query_text, why_text};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{Divergence, KnowledgeWhy, QueryState, TreeKnowledge};
use radixscope_state::cluster::{Cluster, QueryTotals, WorkerState};

/// Knowledge about a worker's cache.
#[derive(Serialize)]
pub(super) struct WorkerKnowledge {
    /// `complete`, `partial` or `unknown`.
    state: TreeKnowledge,
    why: KnowledgeWhy,
    since_ms: Millis,
    /// Its blocks in the tree.
    known_blocks: u64,
    /// Its cached blocks; `null`: unknown.
    used_blocks: Option<u64>,
    /// `complete` (all are known), or the source of the capacity of a full cache: `engine`, `model_card`, `frontend`.
    used_source: Option<&'static str>,
    /// `no`, `no_endpoint`, `on_request`, `waiting`, `dump`, `range`, `joining` or `failed`.
    asking: &'static str,
    /// When a failed query is retried; `null`: no retry, or none failed.
    next_query_ms: Option<Millis>,
    /// Description.
    message: String,
    queries: QueryTotals,
    /// How its last two full responses differed from the tree; `null`: they did not, or there were none.
    drift: Option<Divergence>,
}

/// Knowledge about the caches of a pool. Workers that publish no KV events by design do not count.
#[derive(Serialize)]
pub(super) struct PoolKnowledge {
    /// `complete`: of every worker; `unknown`: of none; otherwise `partial`.
    state: TreeKnowledge,
    workers: u32,
    complete_workers: u32,
    /// Workers with known missing blocks. Without any, figures of the tree are exact.
    incomplete_workers: u32,
    known_blocks: u64,
    /// `null`: unknown for at least one worker.
    used_blocks: Option<u64>,
    /// `known_blocks` ÷ `used_blocks`, 0 to 1.
    known_share: Option<f64>,
    /// Description: `54 % of used blocks · 2 of 3 workers complete`.
    message: String,
    /// Why shares, duplicates and depths of this pool's tree are withheld; `null`: they are not.
    withheld: Option<String>,
}

impl WorkerKnowledge {
    pub(super) fn of(cluster: &Cluster, ix: WorkerIx, worker: &WorkerState) -> Self {
        let knowledge = &worker.knowledge;
        let (known_blocks, used) = cluster.known_of_used(ix);
        let asking = query_text(knowledge, cluster.now_ms());
        let why = why_text(knowledge.why);
        Self {
            state: knowledge.state,
            why: knowledge.why,
            since_ms: knowledge.since_ms,
            known_blocks,
            used_blocks: used.map(|used| used.value),
            used_source: used.map(|used| used.source.as_str()),
            asking: knowledge.asking.as_str(),
            next_query_ms: match knowledge.asking {
                QueryState::Failed { next_ms } => next_ms,
                _ => None,
            },
            message: asking.map_or_else(|| why.to_owned(), |asking| format!("{why}; {asking}")),
            queries: knowledge.queries,
            drift: knowledge.drift,
        }
    }
}

impl PoolKnowledge {
    pub(super) fn of(cluster: &Cluster, ix: PoolIx) -> Self {
        let coverage = cluster.coverage([ix]);
        Self {
            state: match (coverage.workers, coverage.complete) {
                (workers, complete) if workers > 0 && workers == complete => TreeKnowledge::Complete,
                (_, 0) if coverage.known_blocks == 0 => TreeKnowledge::Unknown,
                _ => TreeKnowledge::Partial,
            },
            workers: coverage.workers,
            complete_workers: coverage.complete,
            incomplete_workers: coverage.incomplete,
            known_blocks: coverage.known_blocks,
            used_blocks: coverage.used_blocks,
            known_share: coverage.share(),
            message: coverage_text(&coverage),
            withheld: Trust::of(cluster, ix).withheld().map(str::to_owned),
        }
    }
}
