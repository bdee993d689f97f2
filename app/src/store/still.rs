//! The tree holds still while somebody points at it: what is drawn and read of it is a copy from the moment when that
//! began, and the state goes on beside it. One copy at most, as large as the tree that is drawn.

use leptos::prelude::*;
use radixscope_state::tree::forest::{Arrangement, Forest};
use radixscope_state::tree::{Tree, Turnover};

use super::Store;
use crate::view_context::DrawnTree;

/// The copy, and whether there is to be one.
#[derive(Default)]
pub(super) struct Still {
    is_held: bool,
    copy: Option<(DrawnTree, Box<Tree>)>,
}

impl Still {
    /// Makes the copy if it is requested and is not there yet, and lets go of one of something else.
    pub(super) fn keep(&mut self, tree: &Tree, drawn: DrawnTree, arrangement: Arrangement) {
        let is_arranged = |tree: &Tree| tree.forest().map(Forest::arrangement) == Some(arrangement);
        self.copy = self.copy.take().filter(|(of, copy)| self.is_held && *of == drawn && is_arranged(copy));
        if self.is_held && self.copy.is_none() {
            self.copy = Some((drawn, Box::new(tree.copy_with_forest())));
        }
    }

    /// Whether the tree is to hold still.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
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
    /// From the next frame of the tree on it holds still, or no longer. Called by who draws it.
    pub fn hold_tree(self, is_held: bool) {
        // A moment of the past holds still by itself, and who steps through it wants to see each.
        self.live.update_value(|live| {
            let may_move = live.past.is_none() || live.compared.tree().is_some();
            live.still.is_held = is_held && may_move;
        });
    }

    /// Takes in all that waits; if the tree is to hold still, it does so from there on.
    pub fn renew_tree(self) {
        self.live.update_value(|live| live.still.renew());
    }

    /// What was stored and evicted since the tree holds still; `None`: it does not.
    pub fn waiting(self) -> Option<Turnover> {
        self.peek_drawn(|shown| Some(shown.live_tree().turnover().since(shown.still?.turnover())))
    }
}
