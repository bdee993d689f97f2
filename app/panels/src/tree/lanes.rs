//! Beside each lane: whose it is, how much that worker holds, and what it stored and removed in the last minute.

use radixscope_export::panel::lanes::LaneFigures;
use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::Bucket;

use crate::format;

/// Seconds of the small curve.
pub const LANE_SECONDS: u64 = 60;

/// What stands beside a lane.
#[derive(Clone, PartialEq, Debug)]
pub struct LaneContent {
    /// The worker.
    pub id: String,
    /// How much it holds.
    pub figures: LaneFigures,
    /// Blocks stored in each of the last seconds, oldest first; `None`: unknown.
    pub stored: Vec<Option<f64>>,
    /// Blocks removed.
    pub removed: Vec<Option<f64>>,
    /// Everything as text.
    pub description: String,
}

impl LaneContent {
    /// Of a worker.
    pub fn of(shown: &ViewContext<'_>, worker: WorkerIx, now: Millis) -> Option<Self> {
        let state = shown.worker(worker)?;
        let figures = LaneFigures::of(shown, worker, now)?;
        let buckets = || shown.rates(worker, now, LANE_SECONDS).map(|(_, bucket)| bucket);
        let curve = |of: fn(&Bucket) -> u32| buckets().map(|bucket| Some(f64::from(of(&bucket?)))).collect();
        let known_s = buckets().flatten().count() as u64;
        let (stored, removed) = buckets().flatten().fold((0u64, 0u64), |(stored, removed), bucket| {
            (stored + u64::from(bucket.stored), removed + u64::from(bucket.removed))
        });
        let blocks = format!("{} blocks stored, {} removed", format::count(stored), format::count(removed));
        let rates = match state.last_event_ms {
            None => "no KV event received, so what is cached is unknown".to_owned(),
            Some(_) if known_s < LANE_SECONDS => {
                format!("{blocks} in {known_s} of the last {LANE_SECONDS} s, the others are unknown")
            }
            Some(_) => format!("{blocks} in the last {LANE_SECONDS} s"),
        };
        let sign = match figures.sign {
            "" => String::new(),
            sign => format!(", {sign}"),
        };
        let held = figures.blocks.map_or("blocks unknown".to_owned(), |_| figures.blocks_text());
        let description =
            format!("{}, worker {}{sign}: {held}, {}; {rates}", label(worker), state.id, figures.occupancy);
        Some(Self {
            id: state.id.to_string(),
            description,
            stored: curve(|bucket| bucket.stored),
            removed: curve(|bucket| bucket.removed),
            figures,
        })
    }
}

/// Most blocks that any worker stored or removed in one of the last seconds: the top of every curve.
pub fn highest_rate(shown: &ViewContext<'_>, now: Millis) -> f64 {
    let buckets = shown
        .drawn_workers()
        .flat_map(|worker| shown.rates(worker, now, LANE_SECONDS))
        .filter_map(|(_, bucket)| bucket);
    f64::from(buckets.map(|bucket| bucket.stored.max(bucket.removed)).max().unwrap_or(0).max(1))
}
