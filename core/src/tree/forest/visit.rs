//! Going through what a window shows, and nothing else.

use super::{ChainId, Forest, Holder};

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
    /// Columns of pixels from `x0` to `x1`. A box narrower than one of them is not gone through any further.
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
}

/// Neighbours that are all too narrow, from the first to the last of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
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
pub enum Seen {
    /// A box at least a column wide.
    Chain {
        /// Which.
        id: ChainId,
        /// Its left edge in units.
        x0: f64,
    },
    /// Boxes that share a column.
    Sliver(Sliver),
    /// The same boxes once more, after their slivers: all neighbours of a family that are too narrow.
    Run(Run),
}

impl Forest {
    /// Goes through what lies within `window`.
    pub fn visit(&self, window: &Window, mut see: impl FnMut(Seen)) {
        let least = window.units_per_column();
        if least <= 0.0 {
            return;
        }
        // A family: the chain above, its children from the first visible one on, the left edge of the family.
        let mut todo = vec![(None, 0.0)];
        while let Some((parent, left)) = todo.pop() {
            let family = self.children(parent);
            let from = family.partition_point(|&id| {
                let chain = self.chain(id);
                left + f64::from(chain.before) + f64::from(chain.width) <= window.x0
            });
            let begin = todo.len();
            let mut narrow = Narrow::new(self, window, least, parent);
            for &id in &family[from..] {
                let chain = self.chain(id);
                let (x0, width) = (left + f64::from(chain.before), f64::from(chain.width));
                if x0 >= window.x1 || f64::from(chain.position) >= window.bottom {
                    break;
                }
                if width == 0.0 || f64::from(chain.sums.bottom) <= window.top {
                    continue;
                }
                if width < least {
                    narrow.take(id, x0, &mut see);
                    continue;
                }
                narrow.end(&mut see);
                see(Seen::Chain { id, x0 });
                if !chain.children.is_empty() {
                    todo.push((Some(id), x0));
                }
            }
            narrow.end(&mut see);
            todo[begin..].reverse();
        }
    }
}

/// Gathers neighbours that are too narrow.
struct Narrow<'a> {
    forest: &'a Forest,
    window: &'a Window,
    least: f64,
    parent: Option<ChainId>,
    sliver: Option<Sliver>,
    run: Option<Run>,
}

impl<'a> Narrow<'a> {
    fn new(forest: &'a Forest, window: &'a Window, least: f64, parent: Option<ChainId>) -> Self {
        Self { forest, window, least, parent, sliver: None, run: None }
    }

    #[inline]
    fn take(&mut self, id: ChainId, x0: f64, see: &mut impl FnMut(Seen)) {
        let chain = self.forest.chain(id);
        let sums = &chain.sums;
        let across = ((x0 - self.window.x0) / self.least).max(0.0) as u32;
        let column = across.min(self.window.columns.saturating_sub(1));
        match &mut self.sliver {
            Some(sliver) if sliver.column == column => {
                sliver.bottom = sliver.bottom.max(sums.bottom);
                sliver.holder = sliver.holder.with(sums.holder);
                sliver.workers |= sums.workers;
                sliver.touched = sliver.touched.max(sums.touched);
                sliver.hits += sums.hits;
            }
            other => {
                let new = Sliver {
                    column,
                    top: chain.position,
                    bottom: sums.bottom,
                    holder: sums.holder,
                    workers: sums.workers,
                    touched: sums.touched,
                    hits: sums.hits,
                };
                if let Some(done) = other.replace(new) {
                    see(Seen::Sliver(done));
                }
            }
        }
        let x1 = x0 + f64::from(chain.width);
        match &mut self.run {
            Some(run) => {
                run.x1 = x1;
                run.bottom = run.bottom.max(sums.bottom);
                run.chains += sums.chains;
                run.blocks += sums.blocks;
                run.hits += sums.hits;
                run.holder = run.holder.with(sums.holder);
                run.workers |= sums.workers;
            }
            none => {
                *none = Some(Run {
                    x0,
                    x1,
                    top: chain.position,
                    bottom: sums.bottom,
                    parent: self.parent,
                    first: id,
                    chains: sums.chains,
                    blocks: sums.blocks,
                    hits: sums.hits,
                    holder: sums.holder,
                    workers: sums.workers,
                });
            }
        }
    }

    fn end(&mut self, see: &mut impl FnMut(Seen)) {
        if let Some(sliver) = self.sliver.take() {
            see(Seen::Sliver(sliver));
        }
        if let Some(run) = self.run.take() {
            see(Seen::Run(run));
        }
    }
}
