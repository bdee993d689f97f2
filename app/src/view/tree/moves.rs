//! Moving in the tree: clicks and keys into focus and zoom.

use leptos::prelude::*;
use radixscope_core::tree::layout::Layout;

use super::Look;
use super::scene::Scene;
use crate::store::Store;

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

/// Zooms to what was clicked; a click on the box zoomed to goes up.
pub(super) fn click(look: Look, point: (f64, f64)) {
    let hit = look.scene.with_value(|scene| {
        let scene = scene.as_ref()?;
        let (index, _) = scene.under(point)?;
        Some((scene.path_to(index), is_held(scene, index)))
    });
    let Some((path, held)) = hit else { return };
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
            let path = look.scene.with_value(|scene| {
                let scene = scene.as_ref()?;
                let index = scene.index_of(look.focus.get_untracked()?)?;
                is_held(scene, index).then(|| scene.path_to(index))
            });
            if let Some(path) = path {
                look.zoom.set(path);
                return true;
            }
            false
        }
        Move::Above | Move::Below | Move::Left | Move::Right => step(look, to),
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

fn step(look: Look, to: Move) -> bool {
    let next = look.scene.with_value(|scene| {
        let scene = scene.as_ref()?;
        let boxes = scene.layout.boxes();
        let focused = look.focus.get_untracked().and_then(|f| scene.index_of(f));
        let zoomed = look.zoom.with_untracked(|zoom| zoom.last().and_then(|&c| scene.index_of(c)));
        let Some(at) = focused else { return zoomed.or_else(|| scene.layout.siblings(None).next()) };
        neighbour(&scene.layout, at, to).filter(|&i| i < boxes.len())
    });
    let Some(next) = next else { return true };
    let path = look.scene.with_value(|scene| scene.as_ref().map(|s| s.path_to(next))).unwrap_or_default();
    look.pointer.set(None);
    look.focus.set(path.last().copied());
    // The focus must not leave the picture: the view follows it up.
    let common = look.zoom.with_untracked(|zoom| zoom.iter().zip(&path).take_while(|(a, b)| a == b).count());
    if common < look.zoom.with_untracked(Vec::len) {
        look.zoom.update(|zoom| zoom.truncate(common));
    }
    true
}

fn neighbour(layout: &Layout, at: usize, to: Move) -> Option<usize> {
    let parent = layout.boxes()[at].parent.map(|p| p as usize);
    match to {
        Move::Above => parent,
        Move::Below => layout.siblings(Some(at)).next(),
        Move::Left => layout.siblings(parent).take_while(|&i| i < at).last(),
        Move::Right => layout.siblings(parent).find(|&i| i > at),
        Move::Enter | Move::Out | Move::Home => None,
    }
}

/// A box that nobody holds cannot be found again once the tree changes.
fn is_held(scene: &Scene, index: usize) -> bool {
    scene.layout.boxes().get(index).is_some_and(|b| !scene.layout.owners(b).is_empty())
}
