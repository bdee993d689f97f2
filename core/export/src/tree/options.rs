//! A picture of the tree for who knows hashes and workers, not boxes.

use super::svg::colours::Theme;
use super::svg::{Drawing, EMPTY, Heat, draw};
use super::{MAX_HITS_WINDOW_MS, NotFound, TreeSnapshot};
use radixscope_model::id::{BlockHash, WorkerIx};
use radixscope_state::cluster::{TOUCH_MS, touch};
use radixscope_state::tree::forest::{Arrangement, Forest, Order, Region, Width};

/// What is to be drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct DrawOptions {
    /// The block whose box fills the picture; `None`: everything.
    pub root: Option<BlockHash>,
    /// Only what one of these holds.
    pub workers: Option<Vec<WorkerIx>>,
    /// Width in pixels.
    pub width_px: u32,
    /// Height in pixels.
    pub height_px: u32,
    /// Dark colours instead of light ones.
    pub is_dark: bool,
    /// Order of siblings.
    pub order: Order,
    /// What boxes are as wide as.
    pub width: Width,
    /// What colours say.
    pub heat: Heat,
    /// How far back hits count.
    pub hits_window_ms: u64,
    /// The time of the copy, in words.
    pub at: String,
    /// What is missing in it, in words.
    pub note: Option<String>,
    /// What stands in the place of a tree without a block.
    pub empty: String,
}

impl Default for DrawOptions {
    fn default() -> Self {
        Self {
            root: None,
            workers: None,
            width_px: 1_280,
            height_px: 720,
            is_dark: false,
            order: Order::default(),
            width: Width::default(),
            heat: Heat::default(),
            hits_window_ms: MAX_HITS_WINDOW_MS,
            at: String::new(),
            note: None,
            empty: EMPTY.to_owned(),
        }
    }
}

impl TreeSnapshot {
    /// The tree as SVG, see [`draw`].
    ///
    /// # Errors
    /// The root is not in the tree, or below a parent that was never seen.
    pub fn svg(&self, shown: &DrawOptions) -> Result<String, NotFound> {
        let tree = self.tree();
        let hits_window = u32::try_from(shown.hits_window_ms / TOUCH_MS).unwrap_or(u32::MAX);
        let forest = Forest::of(tree, Arrangement { order: shown.order, width: shown.width, hits_window });
        let (region, title) = match shown.root {
            None => (Region::all(&forest), "Prefix tree".to_owned()),
            Some(hash) => {
                let node = self.find(hash, shown.workers.as_deref(), "root")?;
                let chain = forest.chain_of(node).ok_or(NotFound::Unattached(hash))?;
                (
                    Region::of(&forest, chain, forest.chain(chain).position),
                    format!("Prefix tree below block {hash}"),
                )
            }
        };
        let names: Vec<(WorkerIx, String)> =
            self.workers.iter().flatten().map(|(worker, id)| (*worker, id.to_string())).collect();
        let only = shown.workers.as_deref().map(|workers| self.slots(workers));
        let is_drawn = |worker: &WorkerIx| shown.workers.as_ref().is_some_and(|of| of.contains(worker));
        let whose: Vec<&str> =
            names.iter().filter(|(worker, _)| is_drawn(worker)).map(|(_, name)| name.as_str()).collect();
        let title = if whose.is_empty() { title } else { format!("{title}: blocks on {}", whose.join(", ")) };
        let drawing = Drawing {
            width_px: shown.width_px,
            height_px: shown.height_px,
            theme: if shown.is_dark { &Theme::DARK } else { &Theme::LIGHT },
            region,
            heat: shown.heat,
            sessions: None,
            title: &title,
            at: &shown.at,
            note: shown.note.as_deref(),
            empty: &shown.empty,
            now: touch(self.at_ms),
            workers: &names,
            slots: self.workers.len(),
            pool_workers: self.pool_workers,
            only: only.as_deref(),
            block_size_tokens: self.block_size_tokens,
        };
        Ok(draw(tree, &forest, &drawing))
    }
}
