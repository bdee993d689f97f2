//! What the workers' KV memory is filled with, and below it what would fit.

mod calculator;
mod remedies;
mod results;
mod row;

use radixscope_export::panel::EmptyText;
use radixscope_export::panel::workers::NO_WORKER;
use radixscope_icicle::palette::label;
use radixscope_insight::capacity::CurrentUsage;
use radixscope_insight::memory::{self, Memory, MemorySegment};
use radixscope_insight::view_context::{PoolLabel, ViewContext};
use radixscope_model::id::Millis;

pub use calculator::{Calculator, FieldGroup, FieldLabels, fill_from_live};
pub use remedies::{Remedies, RemedyRow, settings};
pub use results::{CapacityFigure, FitLine, Results, against_live_note};
pub use row::{MemoryCell, MemoryRow};

use crate::format::{self, UNKNOWN};

/// A column: its name, and what it counts; empty where its name says all.
pub const COLUMNS: [(&str, &str); 9] = [
    ("Worker", ""),
    ("KV memory", ""),
    ("In use", "Blocks of running requests, reported by the engine"),
    (
        "Cached, evictable",
        "Cached blocks that no running request uses: estimated from KV events less blocks in use",
    ),
    ("Free", "Capacity less cached or used blocks"),
    ("Capacity, blocks", "Blocks there are"),
    ("Evicted ÷ stored", "Blocks evicted ÷ stored over the last 60 s"),
    ("Lifetime p50", "From stored to removed; sampled"),
    ("Re-use gap p50", "From one use to the next; sampled"),
];

/// Class and name of each stretch of a bar.
pub fn legend() -> [(&'static str, &'static str); 5] {
    [
        MemorySegment::Used,
        MemorySegment::Retained,
        MemorySegment::UsedOrCached,
        MemorySegment::Free,
        MemorySegment::Rest,
    ]
    .map(|part| (class(part), part.label()))
}

/// Class of a stretch.
const fn class(part: MemorySegment) -> &'static str {
    match part {
        MemorySegment::Used => "used",
        MemorySegment::Retained => "retained",
        MemorySegment::UsedOrCached => "held-part",
        MemorySegment::Free => "free",
        MemorySegment::Rest => "rest",
    }
}

/// The figures in the panel's head. Pools have blocks of different size, so that all of them together have no sum: of several each
/// has its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryFigures {
    /// Share of the blocks that running requests use.
    pub used: String,
    /// Share that is cached and evictable.
    pub retained: String,
    /// What both are shares of.
    pub title: String,
}

impl MemoryFigures {
    /// Of the pools shown, which are called as in `labels`.
    pub fn of(shown: &ViewContext<'_>, labels: &[PoolLabel], now: Millis) -> Self {
        let name = |pool| labels.iter().find(|label| label.pool == pool).map(|label| label.short.clone());
        let pools = shown.pool_list().into_iter();
        let sums: Vec<(String, CurrentUsage)> =
            pools.map(|pool| (name(pool).unwrap_or_default(), memory::live(shown, pool, now))).collect();
        let share = |of: fn(&CurrentUsage) -> Option<u64>| {
            by_pool(&sums, |live| {
                let capacity = live.capacity_blocks.filter(|&all| all > 0);
                let share = capacity.zip(of(live)).map(|(all, blocks)| blocks as f64 / all as f64);
                share.map_or(UNKNOWN.to_owned(), format::percent)
            })
        };
        Self {
            used: share(|live| live.used_blocks),
            retained: share(|live| live.retained_blocks),
            title: by_pool(&sums, |live| match live.capacity_blocks {
                Some(all) => format!("Of the {} blocks of all workers", format::count(all)),
                None => "The capacity of at least one worker is unknown".to_owned(),
            }),
        }
    }
}

/// A figure of each pool, with its name where there are several.
fn by_pool(sums: &[(String, CurrentUsage)], figure: impl Fn(&CurrentUsage) -> String) -> String {
    match sums {
        [] => UNKNOWN.to_owned(),
        [(_, one)] => figure(one),
        all => {
            all.iter().map(|(name, live)| format!("{name} {}", figure(live))).collect::<Vec<_>>().join(" · ")
        }
    }
}

/// What GiB are by, below the table.
pub fn units_note(bytes_per_token: Option<u64>) -> String {
    let gib = match bytes_per_token {
        Some(bytes) => format!("GiB by the calculator's {} bytes per token.", format::count(bytes)),
        None => "GiB appear once the calculator below is given the model.".to_owned(),
    };
    format!("{gib} Lifetimes and gaps are measured on a sample of blocks.")
}

/// What is unknown of which workers, and what would report it.
pub fn missing(shown: &ViewContext<'_>, now: Millis) -> Vec<String> {
    let mut missing: Vec<(&'static str, Vec<String>)> = Vec::new();
    for worker in shown.worker_list() {
        let memory = Memory::of(shown, worker, now);
        for what in memory.into_iter().flat_map(|memory| memory.missing()) {
            match missing.iter_mut().find(|(known, _)| *known == what) {
                Some((_, workers)) => workers.push(label(worker)),
                None => missing.push((what, vec![label(worker)])),
            }
        }
    }
    let sentence =
        |(what, workers): (&str, Vec<String>)| format!("Unknown for {}: {what}.", listed(&workers));
    missing.into_iter().map(sentence).collect()
}

/// A few names, then how many more.
fn listed(workers: &[String]) -> String {
    match workers {
        [first @ .., _, _] if workers.len() > 6 => {
            format!("{} and {} more", first[..5].join(", "), workers.len() - 5)
        }
        all => all.join(", "),
    }
}

/// Why there is no table.
pub fn empty() -> EmptyText {
    EmptyText {
        id: "mem-empty",
        head: NO_WORKER,
        paragraphs: vec![
            "Workers appear with their first KV event or load report. `--prometheus frontend=http://HOST:8000/metrics` adds block \
             size and capacity, and the same with a worker's system port its engine's own figures. The calculator below works \
             without any."
                .into(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn of_many_workers_five_are_named() {
        let names = |n: u32| (1..=n).map(|n| format!("W{n}")).collect::<Vec<_>>();
        assert_eq!(listed(&names(6)), "W1, W2, W3, W4, W5, W6");
        assert_eq!(listed(&names(7)), "W1, W2, W3, W4, W5 and 2 more");
        assert_eq!(listed(&names(1)), "W1");
    }
}
