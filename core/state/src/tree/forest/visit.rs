//! Going through what a window shows, and nothing else.

use super::siblings::Siblings;
use super::{ChainId, Forest, Holder, Sums};

/// What is looked at, and how finely.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// Left edge in units.
    pub x0: f64,
    /// Right edge in units.
    pub x1: f64,
    /// First block position.
    pub top: f64,
    /// Position behind the last.
    pub bottom: f64,
    /// Columns of pixels from `x0` to `x1`. A box narrower than one of them is not visited any further.
    pub columns: u32,
}

impl Window {
    /// Units in a column.
    pub fn units_per_column(&self) -> f64 {
        (self.x1 - self.x0) / f64::from(self.columns.max(1))
    }
}

/// Boxes too narrow for a column of their own that fall into the same one, with everything below them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sliver {
    /// The column, from 0 at the window's left edge.
    pub column: u32,
    /// Position of the boxes.
    pub top: u32,
    /// Position behind the deepest block below them.
    pub bottom: u32,
    /// Who holds their blocks.
    pub holder: Holder,
    /// Workers 0 … 63 that hold one of them, a bit each.
    pub workers: u64,
    /// Latest touch of one of their blocks.
    pub touched: u32,
    /// Their hits.
    pub hits: u32,
    /// Held blocks in them and below.
    pub blocks: u32,
    /// Copies of these blocks beyond the first of each.
    pub copies: u64,
}

impl Sliver {
    /// On how many workers its blocks are on average, rounded.
    pub fn replicas(&self) -> usize {
        let blocks = u64::from(self.blocks.max(1));
        usize::try_from(1 + (self.copies + blocks / 2) / blocks).unwrap_or(usize::MAX)
    }
}

/// Neighbours that are all too narrow, from the first to the last of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NarrowBoxes {
    /// Left edge in units.
    pub x0: f64,
    /// Right edge in units.
    pub x1: f64,
    /// Position of the boxes.
    pub top: u32,
    /// Position behind the deepest block below them.
    pub bottom: u32,
    /// The chain they hang below; `None` at the top.
    pub parent: Option<ChainId>,
    /// The leftmost of them.
    pub first: ChainId,
    /// How many boxes, those below them included.
    pub chains: u32,
    /// Held blocks in them and below.
    pub blocks: u32,
    /// Their hits.
    pub hits: u32,
    /// Who holds their blocks.
    pub holder: Holder,
    /// Workers 0 … 63 that hold one of them, a bit each.
    pub workers: u64,
}

/// What a visit meets: parents before children, siblings from left to right.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum VisibleBox {
    /// A box at least a column wide.
    Chain {
        /// Which.
        id: ChainId,
        /// Its left edge in units.
        x0: f64,
    },
    /// Boxes that share a column.
    Sliver(Sliver),
    /// The same boxes once more, after their slivers: all neighbouring siblings that are too narrow.
    NarrowBoxes(NarrowBoxes),
}

impl Forest {
    /// Goes through what lies within `window`.
    ///
    /// Boxes too narrow count towards their column and run even where they end above the window, so that both look the
    /// same while the window moves down; a column or run that ends above it as a whole is left out.
    pub fn visit(&self, window: &Window, mut see: impl FnMut(VisibleBox)) {
        let least = window.units_per_column();
        if least <= 0.0 || least.is_nan() {
            return;
        }
        // The chain above some siblings, and their left edge.
        let mut todo = vec![(None, 0.0)];
        while let Some((parent, left)) = todo.pop() {
            let top = parent.map_or(0, |id| self.chain(id).end());
            if f64::from(top) >= window.bottom {
                continue;
            }
            let begin = todo.len();
            let narrow = Narrow { window, least, parent, top, sliver: None, run: None };
            let mut visit = Visit { forest: self, narrow, see: &mut see, todo: &mut todo };
            visit.groups(self.siblings(parent), left);
            visit.narrow.end(visit.see);
            todo[begin..].reverse();
        }
    }
}

/// On the way through siblings.
struct Visit<'a, S> {
    forest: &'a Forest,
    narrow: Narrow<'a>,
    see: &'a mut S,
    todo: &'a mut Vec<(Option<ChainId>, f64)>,
}

impl<S: FnMut(VisibleBox)> Visit<'_, S> {
    fn groups(&mut self, siblings: &Siblings, left: f64) {
        let groups = siblings.groups();
        if groups.is_empty() {
            self.siblings(&siblings.ids, left);
            return;
        }
        let (window, least) = (self.narrow.window, self.narrow.least);
        let from = groups.partition_point(|group| left + f64::from(group.before + group.width) <= window.x0);
        for group in &groups[from..] {
            let x0 = left + f64::from(group.before);
            let x1 = x0 + f64::from(group.width);
            // Those without width are the last.
            if x0 >= window.x1 || group.width == 0 {
                return;
            }
            let is_inside = x0 >= window.x0 && x1 <= window.x1;
            let are_narrow = f64::from(group.widest) < least && group.narrowest > 0;
            // Each has a unit at least, so the last one begins no farther right.
            if is_inside && are_narrow && self.narrow.column(x0) == self.narrow.column(x1 - 1.0) {
                if let Some(&first) = siblings.members(group).first() {
                    self.narrow.take(first, x0, x1, &group.sums, self.see);
                }
            } else {
                self.siblings(siblings.members(group), x0);
            }
        }
    }

    /// Siblings side by side from `left` on.
    fn siblings(&mut self, ids: &[ChainId], left: f64) {
        let (forest, window) = (self.forest, self.narrow.window);
        let from = ids.partition_point(|&id| {
            let chain = forest.chain(id);
            left + f64::from(chain.before) + f64::from(chain.width) <= window.x0
        });
        for &id in &ids[from..] {
            let chain = forest.chain(id);
            let (x0, width) = (left + f64::from(chain.before), f64::from(chain.width));
            if x0 >= window.x1 || chain.width == 0 {
                return;
            }
            if width < self.narrow.least {
                self.narrow.take(id, x0, x0 + width, &chain.sums, self.see);
                continue;
            }
            self.narrow.end(self.see);
            if f64::from(chain.sums.bottom) > window.top {
                (self.see)(VisibleBox::Chain { id, x0 });
                if !chain.siblings.ids.is_empty() {
                    self.todo.push((Some(id), x0));
                }
            }
        }
    }
}

/// Gathers neighbours that are too narrow.
struct Narrow<'a> {
    window: &'a Window,
    least: f64,
    parent: Option<ChainId>,
    /// Position of the siblings.
    top: u32,
    sliver: Option<Sliver>,
    run: Option<NarrowBoxes>,
}

impl Narrow<'_> {
    fn column(&self, x: f64) -> u32 {
        let across = ((x - self.window.x0) / self.least).max(0.0) as u32;
        across.min(self.window.columns.saturating_sub(1))
    }

    /// Takes in what stands from `x0` to `x1`: one, or several of the same column with `first` as the leftmost.
    #[inline]
    fn take(&mut self, first: ChainId, x0: f64, x1: f64, sums: &Sums, see: &mut impl FnMut(VisibleBox)) {
        let (column, top) = (self.column(x0), self.top);
        let &Sums { bottom, holder, workers, touched, hits, chains, blocks, copies, .. } = sums;
        match &mut self.sliver {
            Some(sliver) if sliver.column == column => {
                sliver.bottom = sliver.bottom.max(bottom);
                sliver.holder = sliver.holder.with(holder);
                sliver.workers |= workers;
                sliver.touched = sliver.touched.max(touched);
                sliver.hits += hits;
                sliver.blocks += blocks;
                sliver.copies += copies;
            }
            _ => {
                self.end_sliver(see);
                self.sliver =
                    Some(Sliver { column, top, bottom, holder, workers, touched, hits, blocks, copies });
            }
        }
        match &mut self.run {
            Some(run) => {
                run.x1 = x1;
                run.bottom = run.bottom.max(bottom);
                run.chains += chains;
                run.blocks += blocks;
                run.hits += hits;
                run.holder = run.holder.with(holder);
                run.workers |= workers;
            }
            none => {
                let parent = self.parent;
                *none = Some(NarrowBoxes {
                    x0,
                    x1,
                    top,
                    bottom,
                    parent,
                    first,
                    chains,
                    blocks,
                    hits,
                    holder,
                    workers,
                });
            }
        }
    }

    fn end_sliver(&mut self, see: &mut impl FnMut(VisibleBox)) {
        if let Some(sliver) = self.sliver.take()
            && f64::from(sliver.bottom) > self.window.top
        {
            see(VisibleBox::Sliver(sliver));
        }
    }

    fn end(&mut self, see: &mut impl FnMut(VisibleBox)) {
        self.end_sliver(see);
        if let Some(run) = self.run.take()
            && f64::from(run.bottom) > self.window.top
        {
            see(VisibleBox::NarrowBoxes(run));
        }
    }
}
