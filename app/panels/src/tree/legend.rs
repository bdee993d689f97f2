//! What the colours of the picture mean, with numbers and units.

use radixscope_export::tree::recency;
use radixscope_icicle::heat::{clock, hits_end, most_hits};
use radixscope_icicle::palette::{ReplicaScale, label, replicas_to_text, replicas_token};
use radixscope_icicle::raster::MAX_TICKS;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::touch;
use radixscope_state::tree::forest::Forest;

use super::choice::HITS_WINDOW_MS;
use crate::format;

/// Workers whose colours are listed; of more, the number.
const LISTED: usize = 20;

/// Where the scale of last use ends: how long ago the oldest box was used.
pub fn oldest_text(forest: Option<&Forest>, now: Millis) -> String {
    let now = touch(clock(now));
    let age = forest.map_or(0, |forest| recency::oldest_age_ms(forest, now));
    recency::end_to_text(recency::end_ms(age))
}

/// Where the scale of replica counts ends.
pub fn replicas_end(workers: usize) -> String {
    let steps = if workers > MAX_TICKS { ", in steps from 17 on" } else { "" };
    format!("{}{steps}", format::plural(workers as u64, "worker", "workers"))
}

/// Where the scale of hits ends; `None`: no hit is known. `requests`: those of which the cached part is known.
pub fn hits_end_text(requests: u32, forest: Option<&Forest>) -> Option<String> {
    let most = most_hits(forest.filter(|_| requests > 0)?);
    let end = format::plural(hits_end(most).into(), "hit", "hits");
    Some(format!("{end} in {} min (most: {})", HITS_WINDOW_MS / 60_000, format::count(most.into())))
}

/// What is said where no hit is known.
pub fn hits_unknown_text() -> String {
    format!(
        "Hits unknown: no request of the last {} min has a known worker. Routing decisions on NATS or a frontend's log report it.",
        HITS_WINDOW_MS / 60_000
    )
}

/// What is said where no session is known.
pub const NO_SESSION: &str =
    "No retained decision names a session. Session affinity, request traces or the log report it.";

/// What a worker that is picked out does to the picture.
pub fn picked_text(worker: WorkerIx) -> String {
    format!("dimmed: not on {}", label(worker))
}

/// A shade of shared boxes: its token, and the replica counts that it stands for.
pub fn replica_steps(workers: usize) -> Vec<(String, String)> {
    let step = |(shade, replicas)| (replicas_token(shade), replicas_to_text(&replicas, workers.max(2)));
    ReplicaScale::of(workers).steps().map(step).collect()
}

/// The workers whose colours are listed, what is said of the others, and whether there are more than a box has ticks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerKey {
    /// In their order.
    pub listed: Vec<WorkerIx>,
    /// `+5 more`.
    pub more: Option<String>,
    /// What stands in a box on more workers than it has ticks for, where there are so many.
    pub beyond_ticks: Option<String>,
}

impl WorkerKey {
    /// Of the workers of the pool that is drawn.
    pub fn of(drawn: &[WorkerIx]) -> Self {
        let more = drawn.len().saturating_sub(LISTED);
        Self {
            listed: drawn.iter().take(LISTED).copied().collect(),
            more: (more > 0).then(|| format!("+{more} more")),
            beyond_ticks: (drawn.len() > MAX_TICKS)
                .then(|| format!("more than {MAX_TICKS} workers: their number")),
        }
    }
}
