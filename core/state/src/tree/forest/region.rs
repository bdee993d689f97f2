//! A part of the picture, by what the forest counts in.

use super::{ChainId, Forest};

/// A rectangle of the tree: units across, block positions downward.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Region {
    /// Left edge, units.
    pub x0: f64,
    /// Right edge.
    pub x1: f64,
    /// First block position.
    pub top: f64,
    /// Position behind the last.
    pub bottom: f64,
}

impl Region {
    /// Everything.
    pub fn all(forest: &Forest) -> Self {
        Self {
            x0: 0.0,
            x1: f64::from(forest.width().max(1)),
            top: 0.0,
            bottom: f64::from(forest.sums().bottom.max(1)),
        }
    }

    /// A box from the block at `position` on, and everything below it.
    pub fn of(forest: &Forest, id: ChainId, position: u32) -> Self {
        let chain = forest.chain(id);
        let left = f64::from(forest.left(id));
        Self {
            x0: left,
            x1: left + f64::from(chain.width().max(1)),
            top: f64::from(position),
            bottom: f64::from(chain.sums.bottom),
        }
    }

    /// The way from the top to the block at `position` of a box, with the box in the middle third and a little below it.
    pub fn to(forest: &Forest, id: ChainId, position: u32) -> Self {
        let all = Self::all(forest);
        let end = Self::of(forest, id, position);
        // The end of a path may be a hair beside a box of millions: without its neighbours it says nothing.
        let side = (end.x1 - end.x0).max(all.x1 / 200.0);
        let depth = f64::from(position) + 1.0;
        Self {
            x0: (end.x0 - side).max(0.0),
            x1: (end.x1 + side).min(all.x1),
            top: 0.0,
            bottom: (depth + (depth / 8.0).max(1.0)).min(all.bottom),
        }
    }

    /// On the way from `self` to `to`: 0 … 1.
    pub fn towards(self, to: Self, share: f64) -> Self {
        let mix = |a: f64, b: f64| a + (b - a) * share;
        Self {
            x0: mix(self.x0, to.x0),
            x1: mix(self.x1, to.x1),
            top: mix(self.top, to.top),
            bottom: mix(self.bottom, to.bottom),
        }
    }
}
