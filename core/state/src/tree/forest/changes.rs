//! What the last update added and removed, as boxes.
//!
//! What appeared is known once all has its place: each chain counts the blocks at its end that are new. What goes is
//! noted when it goes, with its place as of the update before; chains that split or merge meanwhile take that place
//! along.

use std::cmp::Reverse;

use super::apply::TreeNodes;
use super::{ChainId, Forest, Holder};
use crate::tree::Tree;

/// Most changes listed of one update: more could not be distinguished.
pub const MAX_CHANGES: usize = 256;
/// Most boxes noted as removed between two updates; of more, only the largest are kept.
const MAX_NOTED: usize = 16 * MAX_CHANGES;

/// Which way a change went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeKind {
    /// Blocks that were not in the tree before.
    Appeared,
    /// Blocks that are not in the tree any more.
    Removed,
}

/// Blocks of one chain that appeared or went together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Left edge in units: of the new arrangement for what appeared, of the one before for what was removed.
    pub x0: f64,
    /// Width in units, likewise.
    pub width: f64,
    /// Position of the first block.
    pub top: u32,
    /// Position behind the last block.
    pub bottom: u32,
    /// Which way it went.
    pub kind: ChangeKind,
    /// Who holds them, or held them last.
    pub holder: Holder,
}

impl Change {
    /// Width × blocks.
    fn area(&self) -> u64 {
        self.width as u64 * u64::from(self.bottom - self.top)
    }
}

/// The largest first, and no more than are listed.
fn keep_largest(all: &mut Vec<Found>) {
    all.sort_by_key(|(_, change)| (Reverse(change.area()), change.top, change.kind));
    all.truncate(MAX_CHANGES);
}

#[derive(Clone, Default)]
pub(super) struct ForestChanges {
    is_enabled: bool,
    /// The next update lists nothing: it arranges anew.
    is_skipped: bool,
    latest: Vec<Change>,
    removed: Vec<Found>,
    /// By chain, as far as needed.
    notes: Vec<Note>,
    /// Chains with a note that says something.
    noted: Vec<ChainId>,
}

/// A change, with the chain whose left edge it is to get, if it has none yet.
type Found = (Option<ChainId>, Change);

const NONE: u32 = u32::MAX;

/// What is remembered of a chain until the next update.
#[derive(Clone, Copy)]
struct Note {
    /// Left edge as of the update before, if the chain split or merged since.
    edge: u32,
    /// Its latest entry in `removed`.
    removed: u32,
}

const NO_NOTE: Note = Note { edge: NONE, removed: NONE };

impl ForestChanges {
    pub(super) fn keep(&mut self, keep: bool) {
        if self.is_enabled != keep {
            *self = Self { is_enabled: keep, ..Self::default() };
        }
    }

    pub(super) fn skip(&mut self) {
        self.is_skipped = true;
    }

    /// An update begins.
    pub(super) fn begin(&mut self) {
        self.latest.clear();
    }

    /// Forgets what was noted since the last update.
    fn forget(&mut self) {
        self.removed.clear();
        for id in self.noted.drain(..) {
            self.notes[id.at()] = NO_NOTE;
        }
    }

    fn edge(&self, id: ChainId) -> Option<u32> {
        self.notes.get(id.at()).map(|note| note.edge).filter(|&edge| edge != NONE)
    }

    fn note_mut(&mut self, id: ChainId) -> &mut Note {
        if self.notes.len() <= id.at() {
            self.notes.resize(id.at() + 1, NO_NOTE);
        }
        let note = &mut self.notes[id.at()];
        if (note.edge, note.removed) == (NONE, NONE) {
            self.noted.push(id);
        }
        note
    }

    /// The block at `position` of a chain was removed.
    fn note_removed(&mut self, id: ChainId, position: u32, x0: u32, width: u32, holder: Holder) {
        let (x0, width) = (f64::from(x0), f64::from(width));
        // The one noted last is asked too: a chain goes from its end, but what was one may be several by then.
        for latest in [self.note_mut(id).removed as usize, self.removed.len().wrapping_sub(1)] {
            if let Some((_, change)) = self.removed.get_mut(latest)
                && (change.x0, change.width, change.top) == (x0, width, position + 1)
            {
                change.top = position;
                change.holder = change.holder.with(holder);
                return;
            }
        }
        if self.removed.len() >= MAX_NOTED {
            keep_largest(&mut self.removed);
            for id in &self.noted {
                self.notes[id.at()].removed = NONE;
            }
        }
        self.note_mut(id).removed = self.removed.len() as u32;
        let change =
            Change { x0, width, top: position, bottom: position + 1, kind: ChangeKind::Removed, holder };
        self.removed.push((None, change));
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.latest.capacity() * size_of::<Change>()
            + self.removed.capacity() * size_of::<Found>()
            + self.notes.capacity() * size_of::<Note>()
            + self.noted.capacity() * size_of::<ChainId>()
    }
}

impl Forest {
    /// What the last update added and removed, the largest first, at most [`MAX_CHANGES`]. Empty unless asked for, see
    /// [`Tree::keep_forest_changes`], and after planting or arranging anew. Blocks that only changed owners are not in
    /// it, nor are those that came and went between two updates.
    pub fn changes(&self) -> &[Change] {
        &self.changes.latest
    }

    /// Left edge, in the arrangement of the update before while the tree changes. Notes that of all on the way, so that
    /// no way is walked twice, however deep.
    fn left_noted(&mut self, id: ChainId) -> u32 {
        let mut left = 0;
        let mut way = Vec::new();
        for id in self.up(id) {
            if let Some(edge) = self.changes.edge(id) {
                left = edge;
                break;
            }
            way.push(id);
        }
        for id in way.into_iter().rev() {
            left += self.before(id);
            self.changes.note_mut(id).edge = left;
        }
        left
    }

    /// The last block of a chain is about to go.
    pub(super) fn note_removed(&mut self, nodes: TreeNodes<'_>, id: ChainId) {
        if !self.changes.is_enabled || self.chain(id).new > 0 {
            return;
        }
        let x0 = self.left_noted(id);
        let chain = &self.chains[id.at()];
        let holder = Holder::of(nodes.set(chain.owners));
        self.changes.note_removed(id, chain.end() - 1, x0, chain.width, holder);
    }

    /// A chain is about to be parted.
    pub(super) fn note_split(&mut self, id: ChainId) {
        if self.changes.is_enabled {
            self.left_noted(id);
        }
    }

    /// `part` has been parted from `id`.
    pub(super) fn note_parted(&mut self, id: ChainId, part: ChainId) {
        if let Some(edge) = self.changes.edge(id) {
            self.changes.note_mut(part).edge = edge;
        }
    }

    /// `upper` and `lower` are about to become `one` of them.
    pub(super) fn note_merge(&mut self, upper: ChainId, lower: ChainId, one: ChainId) {
        if !self.changes.is_enabled {
            return;
        }
        // What goes first is the end, and what hangs below is placed by the lower one.
        let lower_is_new = self.chain(lower).new == self.chain(lower).len;
        let place = if lower_is_new { upper } else { lower };
        let (edge, width) = (self.left_noted(place), self.chain(place).width);
        self.changes.note_mut(one).edge = edge;
        self.chains[one.at()].width = width;
    }

    /// Tells what appeared, now that it has its place, and what went.
    pub(super) fn record_changes(&mut self, nodes: TreeNodes<'_>, stale: &[ChainId]) {
        if self.changes.is_enabled && !self.changes.is_skipped {
            let mut all = std::mem::take(&mut self.changes.removed);
            let appeared = stale.iter().map(|&id| (id, self.chain(id)));
            all.extend(appeared.filter(|(_, chain)| !chain.is_dead() && chain.new > 0).map(|(id, chain)| {
                let change = Change {
                    x0: 0.0,
                    width: f64::from(chain.width),
                    top: chain.end() - chain.new,
                    bottom: chain.end(),
                    kind: ChangeKind::Appeared,
                    holder: Holder::of(nodes.set(chain.owners)),
                };
                (Some(id), change)
            }));
            keep_largest(&mut all);
            // From here on places are those of the new arrangement.
            self.changes.forget();
            for (id, change) in &mut all {
                if let Some(id) = *id {
                    change.x0 = f64::from(self.left_noted(id));
                }
            }
            self.changes.latest.extend(all.into_iter().map(|(_, change)| change));
        }
        self.changes.is_skipped = false;
        self.changes.forget();
    }
}

impl Tree {
    /// Whether updates list what appeared and what went, see [`Forest::changes`]. Off at first: nothing is
    /// collected then. Does nothing without a forest.
    pub fn keep_forest_changes(&mut self, keep: bool) {
        if let Some(forest) = &mut self.forest {
            forest.changes.keep(keep);
        }
    }
}
