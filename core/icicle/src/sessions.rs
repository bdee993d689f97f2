//! Boxes coloured by the session whose requests found them cached. Knows no canvas.

use radixscope_export::tree::sessions::{BoxSession, SessionBoxes};
use radixscope_export::tree::svg::colours::of_session;
use radixscope_model::id::Slot;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Chain, Holder, Sliver};

use crate::palette::{Palette, blend};
use crate::raster::{DIMMED, Fill, Fills, lacks, lacks_sliver};

/// Fills by session.
pub struct BySession<'a> {
    /// Colours.
    pub palette: &'a Palette,
    /// Whose the boxes are.
    pub sessions: &'a SessionBoxes,
    /// The worker picked out: what it does not hold is dimmed.
    pub picked: Option<Slot>,
}

impl BySession<'_> {
    fn fill(&self, session: Option<BoxSession>, is_held: bool, is_dimmed: bool) -> Fill {
        let Palette { ground, shared, quiet, evicted_parent, .. } = *self.palette;
        let colour = match is_held {
            true => of_session(session, [ground, shared, quiet], |slot| self.palette.session(slot)),
            false => evicted_parent,
        };
        Fill::plain(if is_dimmed { blend(ground, colour, DIMMED) } else { colour })
    }
}

impl Fills for BySession<'_> {
    fn of_chain(&self, tree: &Tree, chain: &Chain) -> Fill {
        let owners = tree.chain_owners(chain);
        self.fill(self.sessions.of_box(chain), !owners.is_empty(), lacks(self.picked, owners))
    }

    /// Boxes too narrow to be told apart.
    fn of_sliver(&self, sliver: &Sliver) -> Fill {
        let is_held = sliver.holder != Holder::NoWorker;
        self.fill(Some(BoxSession::Several), is_held, lacks_sliver(self.picked, sliver))
    }

    fn of_tick(&self, _: Slot) -> Option<Fill> {
        None
    }

    fn word(&self, tree: &Tree, chain: &Chain) -> Option<String> {
        if tree.chain_owners(chain).is_empty() {
            return None;
        }
        Some(match self.sessions.of_box(chain) {
            Some(BoxSession::One(slot)) => self.sessions.name(slot).unwrap_or_default().to_owned(),
            Some(BoxSession::Several) => "several sessions".to_owned(),
            Some(BoxSession::Other) | None => String::new(),
        })
    }
}
