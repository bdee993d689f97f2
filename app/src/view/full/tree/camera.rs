//! Which part of the tree is looked at. Pure arithmetic.

use radixscope_core::tree::Tree;
use radixscope_core::tree::forest::Forest;

use crate::draw::viewport::Region;
use crate::view::tree::crumb::Crumb;

/// What is to be looked at.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) enum Goal {
    /// Everything.
    #[default]
    All,
    /// A block, the rest of its box, and everything below it; follows them when the tree changes.
    Block(Crumb),
    /// The way from the top to a block, with what stands beside it; follows it when the tree changes.
    Path(Crumb),
}

/// The camera.
#[derive(Default)]
pub(super) struct Camera {
    goal: Goal,
    shown: Option<Region>,
}

impl Camera {
    /// Sets out for `goal`.
    pub(super) fn go(&mut self, goal: Goal) {
        self.goal = goal;
    }

    /// What is shown now. `None` before the first frame.
    pub(super) fn region(&self) -> Option<Region> {
        self.shown
    }

    /// Moves on and gives what is to be shown now, and whether the movement goes on.
    pub(super) fn step(&mut self, tree: &Tree, forest: &Forest) -> (Region, bool) {
        let region = match self.goal {
            Goal::All => None,
            Goal::Block(crumb) => crumb.chain(tree).map(|id| Region::of(forest, id, crumb.position)),
            Goal::Path(crumb) => crumb.chain(tree).map(|id| Region::to(forest, id, crumb.position)),
        };
        let region = region.unwrap_or_else(|| Region::all(forest));
        self.shown = Some(region);
        (region, false)
    }
}
