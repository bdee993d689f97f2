//! A worker's memory as text: figures with their shares, tokens and GiB, and the sentences below them.

use radixscope_insight::capacity::GIB;
use radixscope_insight::memory::{EstimateStatus, Memory, MemorySegment, Sourced, seconds};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::Cluster;

use super::class;
use crate::format::{self, UNKNOWN};

/// A figure, what it is in other units, and how it is known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MemoryCell {
    /// Blocks, a ratio or a time.
    pub main: String,
    /// Share of the capacity, tokens and GiB, as far as they are known.
    pub sub: String,
    /// Who reports it.
    pub title: String,
}

/// One worker's memory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MemoryRow {
    /// Its whole id.
    pub id: String,
    /// End of its id, and its rank where that is not 0.
    pub tail: String,
    /// Class, width and text of each stretch of its bar.
    pub parts: Vec<(&'static str, String, String)>,
    /// Blocks of running requests.
    pub used: MemoryCell,
    /// Blocks that are cached and evictable.
    pub retained: MemoryCell,
    /// Blocks that are free.
    pub free: MemoryCell,
    /// Blocks there are.
    pub capacity: MemoryCell,
    /// Evicted ÷ stored.
    pub churn: MemoryCell,
    /// From stored to removed.
    pub lifetime: MemoryCell,
    /// From one use to the next.
    pub gap: MemoryCell,
    /// How the tree's count stands to the engine's, as the bar's hint.
    pub estimate: String,
    /// Where sources contradict each other: what is to be seen.
    pub contradictions: Vec<String>,
}

impl MemoryRow {
    /// Of a worker at `now`; GiB where it is known how many bytes a token takes.
    pub fn of(
        cluster: &Cluster,
        worker: WorkerIx,
        bytes_per_token: Option<u64>,
        now: Millis,
    ) -> Option<Self> {
        let state = cluster.worker(worker)?;
        let memory = Memory::of(cluster, worker, now)?;
        let capacity = memory.capacity.map(|capacity| capacity.value);
        let units =
            Units { tokens_per_block: memory.block_size.map(|size| size.value), bytes_per_token, capacity };
        let rank = if state.id.dp_rank > 0 { format!(" dp {}", state.id.dp_rank) } else { String::new() };
        Some(Self {
            id: state.id.to_string(),
            tail: format!("{}{rank}", format::tail(state.id.id.0)),
            parts: parts(&memory),
            used: used(&memory, &units, now),
            retained: units.cell(
                memory.retained_blocks(),
                "Estimated: blocks by KV events stored and removed, less those in use by the engine"
                    .to_owned(),
            ),
            free: units.cell(
                memory.free_blocks(),
                "Capacity less cached or used blocks, whichever are more".to_owned(),
            ),
            capacity: capacity_cell(&memory, &units, now),
            churn: churn(&memory),
            lifetime: lifetime(&memory),
            gap: gap(&memory),
            estimate: estimate(&memory, now),
            contradictions: contradictions(&memory),
        })
    }

    /// The bar in words. An empty bar says why it is empty.
    pub fn spoken(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|(.., text)| text.as_str()).collect();
        match parts.is_empty() {
            true => self.estimate.clone(),
            false => format!("{}. {}", parts.join(", "), self.estimate),
        }
    }

    /// Its contradictions in one text; `None`: there are none.
    pub fn status(&self) -> Option<String> {
        (!self.contradictions.is_empty()).then(|| self.contradictions.join(" "))
    }
}

/// Blocks in other units.
struct Units {
    tokens_per_block: Option<u32>,
    bytes_per_token: Option<u64>,
    capacity: Option<u64>,
}

impl Units {
    fn cell(&self, blocks: Option<u64>, title: String) -> MemoryCell {
        let Some(blocks) = blocks else {
            return MemoryCell { main: UNKNOWN.to_owned(), sub: String::new(), title };
        };
        let mut sub = Vec::new();
        let capacity = self.capacity.filter(|&all| all > 0);
        sub.extend(capacity.map(|all| format::percent(blocks as f64 / all as f64)));
        let tokens = self.tokens_per_block.map(|size| blocks.saturating_mul(u64::from(size)));
        sub.extend(tokens.map(|tokens| format!("{} tok", format::short(tokens))));
        let bytes = tokens.zip(self.bytes_per_token).map(|(tokens, bytes)| tokens as f64 * bytes as f64);
        sub.extend(bytes.map(|bytes| format!("{:.1} GiB", bytes / GIB as f64)));
        MemoryCell { main: format::count(blocks), sub: sub.join(" · "), title }
    }
}

fn ago(at: Option<Millis>, now: Millis) -> String {
    at.map_or(String::new(), |at| format!(" ({})", format::ago(now.since(at))))
}

fn source<S>(
    reported: Option<Sourced<u64, S>>,
    label: fn(&S) -> &'static str,
    now: Millis,
    unknown: &str,
) -> String {
    match reported {
        Some(reported) => format!("By {}{}", label(&reported.source), ago(reported.at_ms, now)),
        None => unknown.to_owned(),
    }
}

fn used(memory: &Memory, units: &Units, now: Millis) -> MemoryCell {
    let unknown = "The engine has not reported the blocks of running requests";
    let title = source(memory.used, |s| s.label(), now, unknown);
    units.cell(memory.used.map(|used| used.value), title)
}

fn capacity_cell(memory: &Memory, units: &Units, now: Millis) -> MemoryCell {
    let title = source(memory.capacity, |s| s.label(), now, "Capacity: not reported by any source");
    let mut cell = units.cell(memory.capacity.map(|capacity| capacity.value), title);
    // Its share of itself says nothing; its source does.
    let label = memory.capacity.map_or("", |capacity| capacity.source.label());
    let rest = cell.sub.split_once(" · ").map_or(String::new(), |(_, rest)| rest.to_owned());
    let known = [rest.as_str(), label].into_iter().filter(|s| !s.is_empty());
    cell.sub = known.collect::<Vec<_>>().join(" · ");
    cell
}

fn churn(memory: &Memory) -> MemoryCell {
    MemoryCell {
        main: memory.churn.and_then(|churn| churn.ratio()).map_or(UNKNOWN.to_owned(), format::share),
        sub: memory.churn.map_or(String::new(), |churn| {
            format!("{} ÷ {}", format::short(churn.removed), format::short(churn.stored))
        }),
        title: memory.eviction_ratio_text().unwrap_or("No KV event received".to_owned()),
    }
}

fn lifetime(memory: &Memory) -> MemoryCell {
    let ages = memory.ages.as_ref();
    let sampled = ages.map_or("Unknown yet: no sampled block was removed".to_owned(), |ages| {
        format!(
            "Median and 95th percentile from stored to removed, last minute: age at eviction. One block in {} is sampled, {} were removed",
            ages.one_in,
            format::count(u64::from(ages.removed))
        )
    });
    MemoryCell {
        main: span(ages.and_then(|ages| ages.lifetime_p50_ms)),
        sub: ages
            .and_then(|ages| ages.lifetime_p95_ms)
            .map_or(String::new(), |ms| format!("p95 {}", seconds(ms))),
        title: memory.lifetime_text().unwrap_or(sampled),
    }
}

fn gap(memory: &Memory) -> MemoryCell {
    let ages = memory.ages.as_ref();
    MemoryCell {
        main: span(ages.and_then(|ages| ages.reuse_p50_ms)),
        sub: ages.filter(|ages| ages.came_back > 0).map_or(String::new(), |ages| {
            format!("{} back after {}", format::count(u64::from(ages.came_back)), span(ages.came_back_p50_ms))
        }),
        title: "Median from one use of a block to the next while it was cached; below, sampled blocks that came back after they had been removed".to_owned(),
    }
}

fn span(ms: Option<u64>) -> String {
    ms.map_or(UNKNOWN.to_owned(), seconds)
}

fn parts(memory: &Memory) -> Vec<(&'static str, String, String)> {
    let parts = memory.parts();
    let sum = parts.iter().map(|(_, blocks)| *blocks as f64).sum::<f64>().max(1.0);
    // Without a capacity a bar has no end to be a share of.
    if memory.capacity.is_none() {
        return Vec::new();
    }
    let part = |&(part, blocks): &(MemorySegment, u64)| {
        let text = format!("{} {}", format::count(blocks), part.label());
        (class(part), format::width(blocks as f64 / sum), text)
    };
    parts.iter().map(part).collect()
}

fn estimate(memory: &Memory, now: Millis) -> String {
    let mirror = memory.mirror.map(|mirror| {
        format!("Radixscope {} blocks{}", format::count(mirror.blocks), ago(Some(mirror.at_ms), now))
    });
    let engine = memory.used.map(|used| {
        format!("engine {} by {}{}", format::count(used.value), used.source.label(), ago(used.at_ms, now))
    });
    let witnesses: Vec<String> = [mirror, engine].into_iter().flatten().collect();
    match witnesses.is_empty() || memory.has_left {
        true => memory.estimate_status_text(),
        false => format!("{}. {}", witnesses.join("; "), memory.estimate_status_text()),
    }
}

/// What every worker has is said once, below the table; what one lacks beside the others, below it.
fn contradictions(memory: &Memory) -> Vec<String> {
    let is_usual = matches!(
        memory.belief(),
        EstimateStatus::Plausible(_)
            | EstimateStatus::Nothing
            | EstimateStatus::NoEngine
            | EstimateStatus::NoEvents
    );
    let estimate = (!is_usual).then(|| memory.estimate_status_text());
    [estimate, memory.capacity_text()].into_iter().flatten().collect()
}
