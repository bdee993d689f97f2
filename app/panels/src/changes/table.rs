//! Changes worker by worker, with those of its lower tiers, and of each pool.

use radixscope_insight::changes::{Blocks, Changes, PoolChange, WorkerChange};
use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::record::Tier;

use super::{Compared, pools, sentences};
use crate::format::{self, UNKNOWN};

/// Columns: for tests, name, what it counts.
pub const COLUMNS: [(&str, &str, &str); 11] = [
    ("before", "At A", "Blocks that it holds at A"),
    (
        "stored",
        "Stored",
        "Blocks that it holds at B and not at A. What it stored and evicted in between is in neither state and not counted",
    ),
    ("evicted", "Evicted", "Blocks that it holds at A and not at B; those of a worker that left too"),
    (
        "moved-in",
        "Moved in",
        "Of its stored blocks, those that another worker of the pool evicted between A and B",
    ),
    (
        "moved-out",
        "Moved out",
        "Of its evicted blocks, those that another worker of the pool stored between A and B",
    ),
    ("kept", "Retained", "Blocks that it has cached at A and at B"),
    ("after", "At B", "Blocks that it holds at B"),
    ("decisions", "Decisions", "Decisions for it between A and B"),
    (
        "hit-rate",
        "Hit rate",
        "KV hit rate: cached blocks ÷ prompt blocks, over the decisions of the 60 s before A → before B",
    ),
    ("ttft-p50", "TTFT p50", "Time to first token, median of the 60 s before A → before B"),
    ("ttft-p95", "TTFT p95", "Time to first token, 95th percentile of the 60 s before A → before B"),
];

/// Text of a cell, what stands below it, and what it says in full.
pub type CellText = [String; 3];

/// A line of the table.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ChangesRow {
    /// A worker; `None`: a pool, or a tier of the worker above.
    pub worker: Option<(Worker, WorkerIx)>,
    /// In place of a worker, or beside it.
    pub name: String,
    /// What it lacks.
    pub note: &'static str,
    /// By column; a tier has the first ones only.
    pub cells: Vec<CellText>,
}

/// Each pool shown, with its workers and their tiers.
pub fn rows(changes: &Changes, shown: &Compared) -> Vec<ChangesRow> {
    let mut rows = Vec::new();
    for pool in pools(changes, shown) {
        let name = if changes.pools.len() > 1 { pool.name.clone() } else { "All workers".to_owned() };
        rows.push(of_pool(pool, name, changes.at));
        for worker in &pool.workers {
            rows.push(of_worker(worker, changes.at));
            rows.extend(worker.tiers.iter().map(|(tier, blocks)| of_tier(*tier, blocks)));
        }
    }
    rows
}

fn plain(text: String) -> CellText {
    [text, String::new(), String::new()]
}

fn of_blocks(blocks: &Blocks) -> Vec<CellText> {
    let counts = [
        blocks.before,
        blocks.stored,
        blocks.evicted,
        blocks.moved_in,
        blocks.moved_out,
        blocks.retained(),
        blocks.after(),
    ];
    counts.into_iter().map(|count| plain(format::count(count))).collect()
}

fn count(known: Option<u64>) -> CellText {
    plain(known.map_or(UNKNOWN.to_owned(), format::count))
}

fn of_pool(pool: &PoolChange, name: String, at: [Millis; 2]) -> ChangesRow {
    let mut cells = of_blocks(&pool.blocks);
    cells.push(count(pool.decisions));
    cells.extend([
        sentences::hit_rate(&pool.requests, at),
        sentences::ttft(&pool.requests, 0),
        sentences::ttft(&pool.requests, 1),
    ]);
    ChangesRow { worker: None, name, note: "", cells }
}

fn of_worker(worker: &WorkerChange, at: [Millis; 2]) -> ChangesRow {
    let mut cells = of_blocks(&worker.blocks);
    if let Some((stored, removed)) = worker.events {
        let of_events = |events: u64| {
            format!("Its events between A and B: {}", format::plural(events, "block", "blocks"))
        };
        cells[1][2] = of_events(stored);
        cells[2][2] = of_events(removed);
    }
    cells.push(count(worker.decisions));
    cells.extend([
        sentences::hit_rate(&worker.requests, at),
        sentences::ttft(&worker.requests, 0),
        sentences::ttft(&worker.requests, 1),
    ]);
    let name = worker.presence.map(sentences::presence).unwrap_or_default();
    let note = if worker.is_partial { "Not all blocks of this worker are known at A or B" } else { "" };
    ChangesRow { worker: Some((worker.id, worker.ix)), name, note, cells }
}

fn of_tier(tier: Tier, blocks: &Blocks) -> ChangesRow {
    ChangesRow { worker: None, name: format!("in {}", tier.as_str()), note: "", cells: of_blocks(blocks) }
}
