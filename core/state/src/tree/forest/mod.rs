//! The tree as an icicle, kept up to date while it changes: which box stands where, and what it sums up.
//!
//! A run of blocks with one child each and the same owners is a *chain*, drawn as one box. Down is the block's position
//! in its prompt. Across is counted in **units**: blocks held, or hits, see [`Width`]. A box is exactly as wide as its
//! subtree has units, wherever it stands, so that widths compare; its children stand side by side from its left edge,
//! and what they leave free at the right are the chain's own units.
//!
//! The tree tells of every change (`apply`); that touches one or two chains. [`Tree::update_forest`] then sums up and
//! orders what changed and the way from there to the top. [`Forest::visit`] goes through what a window shows and
//! nothing else. Knows nothing of pixels, colours or zoom. A tree keeps a forest only if asked to, see
//! [`Tree::build_forest`]: the server does not.
//!
//! # How it works
//!
//! A forest is kept beside a tree only where somebody draws it; the server's own fold keeps none. It has one *chain*
//! for each run of blocks with one child each and the same owners, up to 16,384 blocks, so that a million blocks of
//! conversations are some fifteen thousand boxes. A chain has sums over its subtree (held and shared blocks, copies,
//! hits, depth, holder, workers, latest touch) and its children in order. The tree tells of every change by a hook;
//! that changes one or two chains and marks them. An update then sums up the marked ones and what is above them,
//! children first, and nothing else: a layout made anew for every frame would cost what the tree is large, this costs
//! what has changed. Nothing has to be updated for the sums of the tree itself, but dead chains are used again only then;
//! `Tree::forest_backlog` says how many wait.
//!
//! Places are counted in whole units, blocks or hits, from the left edge of the chain above. A change moves no
//! descendant, widths compare over the whole picture, and no sum of fractions drifts. Where a chain has more than 96
//! children it is cut into groups of at most 32 neighbours, each with its own sums: an update rebuilds the groups in
//! which something changed, and a visit of a million sibling leaves passes over those that fall into one column of
//! pixels as a whole. A hit is counted into the chain where it ended; that count is made anew when hits or their
//! chains moved, or the window's beginning did, by the second. What appeared and what went is reported on request, the
//! 256 largest boxes of an update, with the place of what went as it was before.

mod apply;
mod block;
mod changes;
mod rank;
mod region;
mod rows;
mod siblings;
mod update;
mod visit;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use super::owners::{OwnerSet, SetId};
use super::{NodeId, Tree};
use radixscope_model::id::Slot;

use changes::ForestChanges;
use siblings::{Marks, Siblings};

pub(in crate::tree) use apply::TreeNodes;
pub use block::Prefix;
pub use changes::{Change, ChangeKind, MAX_CHANGES};
pub use region::Region;
pub use rows::{Row, RowOrder};
pub use visit::{NarrowBoxes, Sliver, VisibleBox, Window};

/// In which order siblings stand, left to right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Most units first, then by tokens hash.
    #[default]
    LeftHeavy,
    /// By tokens hash alone: a box changes its width but never its neighbours. Those without width come last.
    Stable,
}

/// What a box is as wide as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Width {
    /// Blocks in its subtree that somebody holds.
    #[default]
    Blocks,
    /// Requests within [`Arrangement::hits_window`] that found its first block held. Boxes without a hit have no width.
    Hits,
}

/// How the forest is to be arranged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrangement {
    /// Order of siblings.
    pub order: Order,
    /// What widths are.
    pub width: Width,
    /// How far back hits count, in the units of [`Tree::touched`].
    pub hits_window: u32,
}

impl Default for Arrangement {
    fn default() -> Self {
        Self { order: Order::default(), width: Width::default(), hits_window: u32::MAX }
    }
}

/// Who holds the blocks of a subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Holder {
    /// No worker.
    #[default]
    NoWorker,
    /// This worker alone holds every held block.
    One(Slot),
    /// Two workers or more.
    Several,
}

impl Holder {
    /// Of a set of owners.
    pub fn of(owners: &OwnerSet) -> Self {
        let mut workers = owners.iter();
        match (workers.next(), workers.next()) {
            (None, _) => Holder::NoWorker,
            (Some(only), None) => Holder::One(only),
            _ => Holder::Several,
        }
    }

    /// Of both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (Holder::NoWorker, any) | (any, Holder::NoWorker) => any,
            (a, b) if a == b => a,
            _ => Holder::Several,
        }
    }
}

/// Address of a chain. Valid until the next change of the tree; what outlasts that is a block's hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ChainId(u32);

impl ChainId {
    const NONE: ChainId = ChainId(u32::MAX);

    const fn at(self) -> usize {
        self.0 as usize
    }
}

/// Sums over a chain and everything below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    /// Blocks that somebody holds.
    pub blocks: u32,
    /// Of those, held by two workers or more.
    pub shared: u32,
    /// Copies beyond the first: the sum of holders over the blocks, less `blocks`.
    pub copies: u64,
    /// Hits that ended here, within the arrangement's window.
    pub hits: u32,
    /// Position behind the deepest block.
    pub bottom: u32,
    /// When a worker last stored, or a request last used, one of these blocks, as long as the chain stands.
    pub touched: u32,
    /// Who holds them.
    pub holder: Holder,
    /// Workers 0 … 63 that hold one of them, a bit each.
    pub workers: u64,
    /// Chains, this one included.
    pub chains: u32,
}

/// A run of blocks with one child each and the same owners.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its first block.
    pub first: NodeId,
    /// Its last block.
    pub last: NodeId,
    /// Blocks in the chain.
    pub len: u32,
    /// Position of the first block in its prompt, from 0.
    pub position: u32,
    /// Router's hash of the first block, by which siblings are ordered.
    tokens: u64,
    parent: ChainId,
    /// Units of the siblings to the left, of those in the same group where the siblings are in groups.
    before: u32,
    /// Units of this box.
    width: u32,
    /// Owner set of every block of the chain.
    owners: u32,
    own_hits: u32,
    /// Latest touch of a block of the chain itself.
    own_touched: u32,
    /// Of its last blocks, how many are new since the last update. Nothing old ever comes to hang below them.
    new: u32,
    /// During an update: children whose sums are to be made first.
    pending: u32,
    /// Over the chain and everything below, as of the last update.
    pub sums: Sums,
    siblings: Siblings,
}

impl Chain {
    /// The chain above; `None` at the top.
    pub fn parent(&self) -> Option<ChainId> {
        (self.parent != ChainId::NONE).then_some(self.parent)
    }

    /// Width of the box in units.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Position behind the chain's last block.
    pub fn end(&self) -> u32 {
        self.position + self.len
    }

    fn is_dead(&self) -> bool {
        self.len == 0
    }
}

/// Longest chain in blocks: splitting one costs at most half of this. Longer runs are several boxes.
pub const MAX_CHAIN: u32 = if cfg!(test) { 12 } else { 16 * 1024 };

/// The chains of a tree. See the module's documentation.
#[derive(Clone)]
pub struct Forest {
    chains: Vec<Chain>,
    free: Vec<ChainId>,
    dead: Vec<ChainId>,
    /// By node: the chain it is in.
    of_node: Vec<ChainId>,
    top: Siblings,
    /// Sums over everything.
    sums: Sums,
    width: u32,
    arrangement: Arrangement,
    /// Chains whose sums are to be made anew, those that died included, each once: those that are marked.
    stale: Vec<ChainId>,
    marks: Marks,
    top_is_stale: bool,
    /// Chains with hits of their own.
    hot: Vec<ChainId>,
    /// Whether hits, or the chains that have some, are others than those counted.
    hits_moved: bool,
    hits_since: u32,
    requests: u32,
    /// The latest time that the tree was given.
    now: u32,
    changes: ForestChanges,
    revision: u64,
}

impl Forest {
    fn new(arrangement: Arrangement) -> Self {
        Self {
            chains: Vec::new(),
            free: Vec::new(),
            dead: Vec::new(),
            of_node: Vec::new(),
            top: Siblings::default(),
            sums: Sums::default(),
            width: 0,
            arrangement,
            stale: Vec::new(),
            marks: Marks::default(),
            top_is_stale: true,
            hot: Vec::new(),
            hits_moved: true,
            hits_since: 0,
            requests: 0,
            now: 0,
            changes: ForestChanges::default(),
            revision: 0,
        }
    }

    /// The forest of a tree as it is, arranged like this. Linear in the tree.
    pub fn of(tree: &Tree, arrangement: Arrangement) -> Self {
        let mut forest = Self::new(arrangement);
        forest.build(tree);
        forest.update(tree);
        forest
    }

    /// Rises whenever an update changed something. No two forests have the same, but for copies that did not change since:
    /// what was drawn of one is never taken for another's, whose boxes have other addresses.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How the chains are arranged.
    pub fn arrangement(&self) -> Arrangement {
        self.arrangement
    }

    /// Sums over all attached blocks. Its hits are the denominator of any chain's hits within the picture.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Requests of the window of which it is known how much the chosen worker held, those of which it held nothing
    /// included: the denominator of a hit rate.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Hits count from this time on, in the units of [`Tree::touched`]: the latest time that the tree was given, less
    /// [`Arrangement::hits_window`].
    pub fn hits_since(&self) -> u32 {
        self.hits_since
    }

    /// Units of the whole picture.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// A chain.
    pub fn chain(&self, id: ChainId) -> &Chain {
        &self.chains[id.at()]
    }

    /// Chains below one, or those at the top, from left to right.
    pub fn children(&self, parent: Option<ChainId>) -> &[ChainId] {
        &self.siblings(parent).ids
    }

    fn siblings(&self, parent: Option<ChainId>) -> &Siblings {
        parent.map_or(&self.top, |id| &self.chains[id.at()].siblings)
    }

    /// The chain that a block is in; `None` for unattached ones.
    pub fn chain_of(&self, node: NodeId) -> Option<ChainId> {
        self.of_node.get(node.at()).copied().filter(|&id| id != ChainId::NONE)
    }

    /// Left edge of a box, in units from the left edge of everything. Walks up.
    pub fn left(&self, id: ChainId) -> u32 {
        self.up(id).map(|id| self.before(id)).sum()
    }

    /// Units of the siblings to the left.
    fn before(&self, id: ChainId) -> u32 {
        let chain = self.chain(id);
        chain.before + self.siblings(chain.parent()).group_before(chain, self.arrangement.order)
    }

    /// The chain and those above it, upward.
    pub fn up(&self, id: ChainId) -> impl Iterator<Item = ChainId> + '_ {
        std::iter::successors(Some(id), |id| self.chains[id.at()].parent())
    }

    /// The chain over `x` units from the left that covers the block position `position`.
    pub fn at(&self, x: f64, position: f64) -> Option<ChainId> {
        let (mut above, mut left) = (None, 0.0);
        loop {
            let here = self.child_at(above, x - left)?;
            let chain = self.chain(here);
            if position < f64::from(chain.position) {
                return None;
            }
            if position < f64::from(chain.end()) {
                return Some(here);
            }
            left += f64::from(self.before(here));
            above = Some(here);
        }
    }

    /// The child of `parent` over `x` units from its left edge; with `None` the box at the top.
    pub fn child_at(&self, parent: Option<ChainId>, x: f64) -> Option<ChainId> {
        let (ids, before) = self.siblings(parent).near(x);
        let behind = ids.partition_point(|&id| f64::from(before + self.chain(id).before) <= x);
        // Boxes without width stand behind all others, so the last that begins left of `x` is the only one it can be.
        let found = *ids.get(behind.checked_sub(1)?)?;
        let chain = self.chain(found);
        (x < f64::from(before + chain.before) + f64::from(chain.width)).then_some(found)
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        let child_index: usize = self.chains.iter().map(|chain| chain.siblings.heap_bytes()).sum();
        self.chains.capacity() * size_of::<Chain>()
            + child_index
            + self.top.heap_bytes()
            + (self.of_node.capacity() + self.free.capacity() + self.dead.capacity()) * size_of::<ChainId>()
            + (self.stale.capacity() + self.hot.capacity()) * size_of::<ChainId>()
            + self.marks.heap_bytes()
            + self.changes.heap_bytes()
    }
}

impl Tree {
    /// Keeps a forest from now on, arranged like this. One that is kept already is arranged anew.
    pub fn build_forest(&mut self, arrangement: Arrangement) {
        if let Some(forest) = &mut self.forest {
            forest.arrange(arrangement);
            return;
        }
        self.forest = Some(Box::new(Forest::of(self, arrangement)));
    }

    /// Keeps no forest any more.
    pub fn drop_forest(&mut self) {
        self.forest = None;
    }

    /// The forest, if one is kept.
    pub fn forest(&self) -> Option<&Forest> {
        self.forest.as_deref()
    }

    /// Brings sums and orders up to date with all that changed. Without a forest it does nothing.
    pub fn update_forest(&mut self) {
        if let Some(mut forest) = self.forest.take() {
            forest.update(self);
            self.forest = Some(forest);
        }
    }

    /// What waits for the next update: chains to sum up and dead ones, whose memory is used again after it. Grows
    /// until the next update; a caller that only folds, such as a page in a hidden tab, should update it when it is some ten
    /// thousands. 0 without a forest.
    pub fn forest_backlog(&self) -> usize {
        self.forest.as_ref().map_or(0, |forest| forest.stale.len() + forest.dead.len())
    }

    /// Owners of a chain's blocks. Asks no block: a picture of a hundred thousand boxes would wait for memory each time.
    pub fn chain_owners(&self, chain: &Chain) -> &OwnerSet {
        self.sets.get(SetId(chain.owners))
    }

    /// Blocks of the chain itself that somebody holds: all or none.
    pub fn held_in(&self, chain: &Chain) -> u32 {
        if self.chain_owners(chain).is_empty() { 0 } else { chain.len }
    }

    /// The block of `chain` at `position`, which lies within it. Walks within the chain.
    pub fn block_at(&self, chain: &Chain, position: u32) -> NodeId {
        let (down, up) = (position.saturating_sub(chain.position), chain.end().saturating_sub(position + 1));
        let step_up = |node: NodeId| self.parent(node).unwrap_or(node);
        let step_down = |node: NodeId| self.children(node).next().unwrap_or(node);
        if up < down {
            (0..up).fold(chain.last, |node, _| step_up(node))
        } else {
            (0..down).fold(chain.first, |node, _| step_down(node))
        }
    }
}
