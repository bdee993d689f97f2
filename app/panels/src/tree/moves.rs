//! Moving in the tree by keys: what a key asks for, and which box that leads to.

use radixscope_icicle::camera::Goal;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::viewport::Region;
use radixscope_icicle::visible;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{ChainId, Forest};

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
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
    pub fn of(key: &str) -> Option<Self> {
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
pub fn first_wide(forest: &Forest, parent: Option<ChainId>) -> Option<ChainId> {
    forest.children(parent).iter().copied().find(|&id| forest.chain(id).width() > 0)
}

/// The box beside, above or below `at`.
pub fn neighbour(forest: &Forest, at: ChainId, to: Move) -> Option<ChainId> {
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
pub fn is_held(tree: &Tree, forest: &Forest, id: ChainId) -> bool {
    tree.held_in(forest.chain(id)) > 0
}

/// The next box in a direction. Those that are cached nowhere are skipped: they cannot be found again once the tree changes.
pub fn next_held(tree: &Tree, forest: &Forest, from: ChainId, to: Move) -> Option<ChainId> {
    let mut at = neighbour(forest, from, to)?;
    while !is_held(tree, forest, at) {
        at = neighbour(forest, at, to)?;
    }
    Some(at)
}

/// What the keyboard begins with: the deepest box of the path that is looked at, else the leftmost one that is seen.
pub fn first_seen(tree: &Tree, forest: &Forest, path: &[Crumb], heading: Option<Region>) -> Option<ChainId> {
    let deepest = path.last().and_then(|crumb| crumb.chain(tree));
    deepest.or_else(|| {
        let region = heading?;
        let seen = forest.at(region.x0.max(0.0), region.top.max(0.0));
        seen.filter(|&id| is_held(tree, forest, id)).or_else(|| first_wide(forest, None))
    })
}

/// The box itself, without what is below it.
pub fn own_place(forest: &Forest, id: ChainId) -> Region {
    let chain = forest.chain(id);
    Region { bottom: f64::from(chain.end()), ..Region::of(forest, id, chain.position) }
}

/// The box over `x` units and its block at a position.
pub fn at(forest: &Forest, x: f64, position: f64) -> Option<(ChainId, u32)> {
    if x < 0.0 || position < 0.0 {
        return None;
    }
    Some((forest.at(x, position)?, position as u32))
}

/// The box and block position under shares of a region.
pub fn under(forest: &Forest, region: Region, (across, down): (f64, f64)) -> Option<(ChainId, u32)> {
    let Region { x0, x1, top, bottom } = region;
    at(forest, x0 + across * (x1 - x0), top + down * (bottom - top))
}

/// Boxes from the top to what is looked at, or that span a region; the last one is the block that is looked at. Those that are cached
/// nowhere are left out.
pub fn path_to(goal: Goal, region: Region, (tree, forest): (&Tree, &Forest)) -> Vec<Crumb> {
    let boxes = match goal {
        Goal::All => Vec::new(),
        Goal::Free => visible::spanning(forest, region),
        Goal::Block(crumb) | Goal::Path(crumb) => {
            let mut path: Vec<ChainId> =
                crumb.chain(tree).map(|id| forest.up(id).collect()).unwrap_or_default();
            path.reverse();
            path
        }
    };
    let held = boxes.into_iter().filter(|&id| is_held(tree, forest, id));
    let mut path: Vec<Crumb> = held.map(|id| Crumb::of(tree, forest, id)).collect();
    if let (Goal::Block(crumb) | Goal::Path(crumb), Some(last)) = (goal, path.last_mut()) {
        *last = crumb;
    }
    path
}

/// What the camera shows, for whoever reads the page from outside.
pub fn goal_text(goal: Goal) -> String {
    match goal {
        Goal::All => "all".to_owned(),
        Goal::Free => "free".to_owned(),
        Goal::Block(crumb) => crumb.hash.to_string(),
        Goal::Path(crumb) => format!("path to {}", crumb.hash),
    }
}
