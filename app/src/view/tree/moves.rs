//! Moving in the tree by keys: what a key asks for, and which box that leads to.

use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{ChainId, Forest};

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    /// To the box above.
    Above,
    /// To the largest box below.
    Below,
    /// To the sibling at the left.
    Left,
    /// To the sibling at the right.
    Right,
    /// Zoom to the focused box.
    Enter,
    /// One level up.
    Out,
    /// Show everything.
    Home,
}

impl Move {
    /// Of a key's name.
    pub(super) fn of(key: &str) -> Option<Self> {
        Some(match key {
            "ArrowUp" => Move::Above,
            "ArrowDown" => Move::Below,
            "ArrowLeft" => Move::Left,
            "ArrowRight" => Move::Right,
            "Enter" | " " => Move::Enter,
            "Escape" | "Backspace" => Move::Out,
            "Home" => Move::Home,
            _ => return None,
        })
    }
}

/// The leftmost box below `parent` that has a width.
pub(super) fn first_wide(forest: &Forest, parent: Option<ChainId>) -> Option<ChainId> {
    forest.children(parent).iter().copied().find(|&id| forest.chain(id).width() > 0)
}

/// The box beside, above or below `at`.
pub(super) fn neighbour(forest: &Forest, at: ChainId, to: Move) -> Option<ChainId> {
    let parent = forest.chain(at).parent();
    let siblings = forest.children(parent);
    let here = || siblings.iter().position(|&id| id == at);
    match to {
        Move::Above => parent,
        Move::Below => first_wide(forest, Some(at)),
        Move::Left => siblings.get(here()?.checked_sub(1)?).copied(),
        Move::Right => siblings.get(here()? + 1).copied().filter(|&id| forest.chain(id).width() > 0),
        Move::Enter | Move::Out | Move::Home => None,
    }
}

/// A box that is cached nowhere cannot be found again once the tree changes.
pub(super) fn is_held(tree: &Tree, forest: &Forest, id: ChainId) -> bool {
    tree.held_in(forest.chain(id)) > 0
}
