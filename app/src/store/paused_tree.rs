//! The tree is paused while the pointer is over it or a box has the focus: a copy from that time is drawn and read, and the
//! state is updated beside it. One copy at most, as large as the tree that is drawn.

use leptos::prelude::*;
use radixscope_state::tree::forest::{Arrangement, Forest};
use radixscope_state::tree::{Tree, Turnover};

use super::Store;
use crate::view_context::DrawnTree;

/// The copy, and whether there is to be one.
#[derive(Default)]
pub(super) struct PausedTree {
    is_paused: bool,
    copy: Option<(DrawnTree, Box<Tree>)>,
}

impl PausedTree {
    /// Makes the copy if it is requested and is not there yet, and lets go of one of something else.
    pub(super) fn keep(&mut self, tree: &Tree, drawn: DrawnTree, arrangement: Arrangement) {
        let is_arranged = |tree: &Tree| tree.forest().map(Forest::arrangement) == Some(arrangement);
        self.copy = self.copy.take().filter(|(of, copy)| self.is_paused && *of == drawn && is_arranged(copy));
        if self.is_paused && self.copy.is_none() {
            self.copy = Some((drawn, Box::new(tree.copy_with_forest())));
        }
    }

    /// Whether the tree is to be paused.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// The next copy is of the present.
    pub(super) fn renew(&mut self) {
        self.copy = None;
    }

    /// No copy from now on.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    pub(super) fn of(&self, drawn: DrawnTree) -> Option<&Tree> {
        self.copy.as_ref().filter(|(of, _)| *of == drawn).map(|(_, tree)| &**tree)
    }
}

impl Store {
    /// From the next frame on the tree is paused, or no longer. Called by who draws it.
    pub fn pause_tree(self, is_paused: bool) {
        // A time in the past does not change by itself, and who steps through it wants to see each.
        self.live.update_value(|live| {
            let may_move = live.past.is_none() || live.compared.tree().is_some();
            live.paused_tree.is_paused = is_paused && may_move;
        });
    }

    /// Applies all pending changes; if the tree is to be paused, it is from there on.
    pub fn renew_tree(self) {
        self.live.update_value(|live| live.paused_tree.renew());
    }

    /// What was stored and evicted since the tree was paused; `None`: it is not.
    pub fn waiting(self) -> Option<Turnover> {
        self.peek_drawn(|shown| Some(shown.live_tree().turnover().since(shown.paused_tree?.turnover())))
    }
}
