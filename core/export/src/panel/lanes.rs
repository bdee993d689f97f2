//! The prefix tree once per worker, one lane below the other: what stands beside a lane, and how its boxes look.
//!
//! A block stands at the same place across in every lane: in full colour where one worker alone has it, weaker below a neutral
//! edge where others have it too. Behind them is a faint outline of the whole tree, so that the eye finds its place.

use std::ops::Range;

use radixscope_insight::completeness::known_text;
use radixscope_insight::occupancy::Occupancy;
use radixscope_model::id::{Millis, Slot, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, percent, plural, short};
use radixscope_state::cluster::{Cluster, Liveness};
use radixscope_state::tree::forest::{Forest, Holder, Sliver, VisibleBox, Window};

/// Its heading in a picture.
pub const TITLE: &str = "Prefix tree by worker";
/// Opacity of a worker's colour where others have the same blocks.
pub const SHARED_OPACITY: f64 = 0.5;
/// Opacity of the neutral colour where others have blocks and this worker has not.
pub const SILHOUETTE_OPACITY: f64 = 0.10;
/// Height of the edge of a box that others have too, CSS pixels; boxes lower than three of it have none.
pub const EDGE_PX: u32 = 2;

/// What stands beside a lane.
#[derive(Clone, PartialEq, Debug)]
pub struct LaneFigures {
    /// Cached blocks.
    pub blocks: Option<u64>,
    /// Cached share of the capacity, 0 … 1; `None`: unknown.
    pub share: Option<f64>,
    /// The same with the capacity, or how much is known of the worker's blocks.
    pub occupancy: String,
    /// Why the lane may be empty or old; empty: the worker is active.
    pub sign: &'static str,
    /// Whether blocks of it are missing.
    pub is_incomplete: bool,
}

impl LaneFigures {
    /// Of a worker.
    pub fn of(cluster: &Cluster, worker: WorkerIx, now: Millis) -> Option<Self> {
        let Occupancy { blocks, capacity, share, .. } = Occupancy::of(cluster, worker);
        let share = share.filter(|_| capacity.is_some());
        let is_incomplete = cluster.is_incomplete(worker);
        let occupancy = match (share, &capacity) {
            _ if is_incomplete => known_text(cluster, worker),
            (Some(share), Some(all)) => format!("{} of {}", percent(share), short(all.value)),
            _ => "capacity unknown".to_owned(),
        };
        let sign = match cluster.worker(worker)?.sign(now) {
            Liveness::Active => "",
            Liveness::Quiet => "quiet",
            Liveness::NeverSeen => "nothing received",
            Liveness::Left => "gone",
        };
        Some(Self { blocks, share, occupancy, sign, is_incomplete })
    }

    /// Cached blocks, as text.
    pub fn blocks_text(&self) -> String {
        self.blocks.map_or(UNKNOWN.to_owned(), |blocks| plural(blocks, "block", "blocks"))
    }
}

/// Whether the worker of a slot has any block of a sliver. Of several workers only the first 64 are known.
pub fn holds_sliver(sliver: &Sliver, slot: Slot) -> bool {
    match sliver.holder {
        Holder::NoWorker => false,
        Holder::One(only) => only == slot,
        Holder::Several => slot.0 < 64 && sliver.workers & (1 << slot.0) != 0,
    }
}

/// The outline of the whole tree: for each column of `window` the end of the deepest box there, as a block position.
/// `columns_of` gives the columns between two places in units, for a box of its own.
pub fn silhouette(
    forest: &Forest,
    window: &Window,
    columns_of: impl Fn(f64, f64) -> Range<usize>,
) -> Vec<u32> {
    let mut depths = vec![0u32; window.columns as usize];
    forest.visit(window, |seen| {
        let (columns, end) = match seen {
            VisibleBox::Chain { id, x0 } => {
                let chain = forest.chain(id);
                (columns_of(x0, x0 + f64::from(chain.width())), chain.end())
            }
            VisibleBox::Sliver(sliver) => (sliver.column as usize..sliver.column as usize + 1, sliver.bottom),
            VisibleBox::NarrowBoxes(_) => return,
        };
        let columns = columns.start..columns.end.min(depths.len());
        let below = depths.get_mut(columns).unwrap_or_default();
        below.iter_mut().for_each(|depth| *depth = (*depth).max(end));
    });
    depths
}
