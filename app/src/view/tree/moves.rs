//! Moving in the tree: clicks and keys into focus and zoom.

use leptos::prelude::*;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{ChainId, Forest};

use super::Look;
use super::scene::path_to;
use crate::store::Store;

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Move {
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
    pub(crate) fn of(key: &str) -> Option<Self> {
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

/// Zooms to what was clicked; a click on the box zoomed to goes up.
pub(super) fn click(store: Store, look: Look, point: (f64, f64)) {
    let hit = store.with_tree(|tree, forest| {
        let (id, _) = look.scene.with_value(|scene| scene.as_ref()?.under(forest, point))?;
        Some((path_to(tree, forest, id), is_held(tree, forest, id)))
    });
    let Some((path, held)) = hit.flatten() else { return };
    look.focus.set(None);
    if look.zoom.with_untracked(|zoom| zoom.last() == path.last()) {
        look.zoom.update(|zoom| {
            zoom.pop();
        });
    } else if held {
        look.zoom.set(path);
    }
}

/// Makes a move; `false` if there was nothing to do, so that the key keeps its ordinary meaning.
pub(super) fn make(store: Store, look: Look, to: Move) -> bool {
    match to {
        Move::Home => {
            look.zoom.set(Vec::new());
            look.focus.set(None);
            true
        }
        Move::Out => leave(store, look),
        Move::Enter => {
            let path = store.with_tree(|tree, forest| {
                let id = look.focus.get_untracked()?.chain(tree)?;
                is_held(tree, forest, id).then(|| path_to(tree, forest, id))
            });
            if let Some(path) = path.flatten() {
                look.zoom.set(path);
                return true;
            }
            false
        }
        Move::Above | Move::Below | Move::Left | Move::Right => step(store, look, to),
    }
}

fn leave(store: Store, look: Look) -> bool {
    if look.zoom.with_untracked(|zoom| !zoom.is_empty()) {
        look.zoom.update(|zoom| {
            zoom.pop();
        });
    } else if look.focus.get_untracked().is_some() {
        look.focus.set(None);
    } else if store.address.with_untracked(|a| a.worker.is_some()) {
        store.address.update(|a| a.worker = None);
    } else {
        return false;
    }
    true
}

fn step(store: Store, look: Look, to: Move) -> bool {
    let path = store.with_tree(|tree, forest| {
        let focused = look.focus.get_untracked().and_then(|crumb| crumb.chain(tree));
        let zoomed = look.zoom.with_untracked(|zoom| zoom.last().and_then(|crumb| crumb.chain(tree)));
        let next = match focused {
            Some(at) => neighbour(forest, at, to),
            None => zoomed.or_else(|| first_wide(forest, None)),
        };
        Some(path_to(tree, forest, next?))
    });
    let Some(path) = path.flatten() else { return true };
    look.pointer.set(None);
    look.focus.set(path.last().copied());
    // The focus must not leave the picture: the view follows it up.
    let common = look.zoom.with_untracked(|zoom| zoom.iter().zip(&path).take_while(|(a, b)| a == b).count());
    if common < look.zoom.with_untracked(Vec::len) {
        look.zoom.update(|zoom| zoom.truncate(common));
    }
    true
}

/// The leftmost box below `parent` that has a width.
pub(crate) fn first_wide(forest: &Forest, parent: Option<ChainId>) -> Option<ChainId> {
    forest.children(parent).iter().copied().find(|&id| forest.chain(id).width() > 0)
}

/// The box beside, above or below `at`.
pub(crate) fn neighbour(forest: &Forest, at: ChainId, to: Move) -> Option<ChainId> {
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

/// A box that nobody holds cannot be found again once the tree changes.
pub(crate) fn is_held(tree: &Tree, forest: &Forest, id: ChainId) -> bool {
    tree.held_in(forest.chain(id)) > 0
}
