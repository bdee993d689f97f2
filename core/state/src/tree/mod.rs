//! The mirror of what the workers hold: one union tree over all of them, keyed by the path of [`TokensHash`]es.
//!
//! ```text
//! blocks   one node of 36 bytes per distinct path, in an arena of fixed chunks, addressed by a u32
//! owners   per node the id of an interned set of workers: neighbours nearly always share one
//! index    engine hash → node, with the worker checked in the node's owners
//! orphans  (worker, missing parent's hash) → a subtree that waits for that parent
//! hits     where the held prefixes of the latest requests ended
//! ```
//!
//! It keeps what the engines reported (residency) and nothing of what a router made of it; the routers' matching rules
//! are answered in `overlap`. No recursion anywhere: depth comes from outside. Knows nothing of messages or time
//! zones; `touched` is a number the caller chooses to mean time.
//!
//! # How it works
//!
//! One node of 36 bytes per distinct path in an arena of fixed chunks. A node has its tokens hash, the engine hash as its
//! first present holder gave it, its parent, its only child or a map of children (an insertion-ordered hash map,
//! for the few nodes that branch), the id of an interned set of owners, and the time it was last stored. An engine
//! hash is found through a table of node ids; where engines hash differently, the deviating names are kept aside per
//! worker. A removal in the middle of a chain leaves a node without owners that still leads to held blocks; it goes
//! when nothing is below it. A store with an unknown parent hangs below an *orphan parent*, keyed by worker and missing
//! hash, and is joined when that worker stores the parent. The digest of the tree is a sum over (worker, block,
//! place), kept up with every change, so it is order-independent and costs nothing to read. At the limit (two million
//! nodes) a sweep drops the leaves stored longest ago; the choice depends only on what was received, so server and
//! browser drop the same.
//!
//! Beside the nodes lies when each block was *first stored* since it is in the tree, four bytes a block. A *hit* is a
//! request that the router sent to a worker that already held the beginning of its prompt, as the tree showed it when
//! the decision was folded; it is kept as the place where that beginning ended, so a block's hits are the places at
//! it or below it. Requests of which the worker held nothing have theirs at the root, so that all places together are
//! the requests that could be judged; where prompt or overlap are unknown nothing is counted. Places last fifteen
//! minutes and are 65,536 at most. When a block goes its places pass to its parent, all at once (`hits`): a flag in
//! the node makes that cost one test for every other block. Both are in the snapshot, and the digest takes in the
//! hits.

mod arena;
mod chain_hashes;
mod changed_blocks;
mod children;
mod coldest;
mod duplicate_hashes;
pub mod forest;
mod hits;
mod index;
mod join;
mod moves;
mod overlap;
mod owners;
mod snapshot;
mod store;
mod turnover;
mod union;
mod walk;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use hashbrown::{DefaultHashBuilder, HashMap};

use radixscope_model::id::{BlockHash, Slot, TokensHash};

pub use changed_blocks::{ChangedBlock, ChangedBlocks, NotAttached};
pub use children::Children;
pub use hits::{HIT_WINDOW, MAX_HITS};
pub use overlap::OverlapRule;
pub use owners::OwnerSet;
pub use snapshot::{RestoreError, TreePart, TreeReader};
pub use store::StoreOutcome;
pub use turnover::Turnover;
pub use union::{Holders, Union};
pub use walk::{Step, Walk};

use arena::Arena;
use chain_hashes::ChainHashes;
use children::ChildIndex;
use duplicate_hashes::DuplicateHashes;
use forest::{Forest, TreeNodes};
use hits::Hits;
use index::BlockIndex;
use owners::OwnerSets;

/// Nodes a tree keeps unless set otherwise; beyond it the coldest leaves leave the picture.
pub const DEFAULT_LIMIT_NODES: u32 = 2_000_000;

/// Address of a node. Valid until the next change of the tree; never sent anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(u32);

impl NodeId {
    /// The empty prompt: parent of every first block. Holds no block itself.
    pub const ROOT: NodeId = NodeId(0);
    const NONE: NodeId = NodeId(u32::MAX);

    const fn at(self) -> usize {
        self.0 as usize
    }
}

/// Totals over the tree. All are counts of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// Distinct attached blocks held by at least one worker.
    pub nodes: u64,
    /// Of those, held by two workers or more.
    pub shared: u64,
    /// Cached blocks, summed over the workers, unattached ones and those outside the picture included.
    pub resident: u64,
    /// Sum over the workers of blocks whose parent was never seen.
    pub unattached: u64,
    /// Sum over the workers of blocks that the limit has pushed out of the picture.
    pub hidden: u64,
}

impl Totals {
    /// Copies beyond the first in the picture: the holders of every attached block, less one each.
    pub fn copies(&self) -> u64 {
        self.resident.saturating_sub(self.unattached + self.hidden + self.nodes)
    }
}

impl Totals {
    /// Both sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes + other.nodes,
            shared: self.shared + other.shared,
            resident: self.resident + other.resident,
            unattached: self.unattached + other.unattached,
            hidden: self.hidden + other.hidden,
        }
    }
}

/// What one worker holds. All are counts of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Holdings {
    /// Blocks in the tree or waiting for a parent.
    pub resident: u64,
    /// Of those, waiting for a parent that was never seen.
    pub unattached: u64,
    /// Blocks that the limit has pushed out of the picture; the worker still holds them.
    pub hidden: u64,
    /// Blocks at the same place as another one of `resident`, under a name of their own: one salt or adapter each.
    pub further: u64,
}

impl Holdings {
    /// Whether the worker holds nothing.
    pub fn is_empty(&self) -> bool {
        self.resident + self.hidden == 0
    }
}

/// The prefix tree mirror. See the module's documentation.
pub struct Tree {
    arena: Arena,
    child_index: ChildIndex,
    sets: OwnerSets,
    index: BlockIndex,
    duplicate_hashes: DuplicateHashes,
    orphan_parents: HashMap<(Slot, BlockHash), NodeId>,
    holdings: Vec<Holdings>,
    totals: Totals,
    hits: Hits,
    digest: u64,
    limit: u32,
    turnover: Turnover,
    chain_hashes: Option<ChainHashes>,
    changed: Option<Box<ChangedBlocks>>,
    forest: Option<Box<Forest>>,
}

impl Default for Tree {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT_NODES)
    }
}

impl Tree {
    /// The time of a block whose stored event was not received.
    pub const TIME_UNKNOWN: u32 = 0;

    /// An empty tree that keeps at most `limit` nodes.
    pub fn with_limit(limit: u32) -> Self {
        Self {
            arena: Arena::new(),
            child_index: ChildIndex::default(),
            sets: OwnerSets::default(),
            index: BlockIndex::default(),
            duplicate_hashes: DuplicateHashes::default(),
            orphan_parents: HashMap::with_hasher(DefaultHashBuilder::default()),
            holdings: Vec::new(),
            totals: Totals::default(),
            hits: Hits::default(),
            digest: 0,
            limit: limit.max(1),
            turnover: Turnover::default(),
            chain_hashes: None,
            changed: None,
            forest: None,
        }
    }

    /// A copy without what only its owner asked for (forest, chain hashes, changes), for a slow reader. Takes some tens of milliseconds for a million nodes.
    #[must_use]
    pub fn copy_without_forest(&self) -> Self {
        Self {
            arena: self.arena.clone(),
            child_index: self.child_index.clone(),
            sets: self.sets.clone(),
            index: self.index.clone(),
            duplicate_hashes: self.duplicate_hashes.clone(),
            orphan_parents: self.orphan_parents.clone(),
            holdings: self.holdings.clone(),
            totals: self.totals,
            hits: self.hits.clone(),
            digest: self.digest,
            limit: self.limit,
            turnover: self.turnover,
            chain_hashes: None,
            changed: None,
            forest: None,
        }
    }

    /// A tree without blocks, for whoever asks for one that is not there.
    pub fn empty<'t>() -> &'t Self {
        static EMPTY: LazyLock<Tree> = LazyLock::new(Tree::default);
        &EMPTY
    }

    /// From the next store on the tree keeps at most so many nodes.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit.max(1);
    }

    /// Most nodes this tree keeps.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Totals over all workers.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What `worker` holds.
    pub fn holdings(&self, worker: Slot) -> Holdings {
        self.holdings.get(worker.at()).copied().unwrap_or_default()
    }

    /// Nodes in memory: held blocks, blocks that only lead to held ones, and orphan parents.
    pub fn allocated(&self) -> u32 {
        self.arena.live()
    }

    /// Order-independent digest of who holds what where, and of the hits: equal on two trees that received the same.
    pub fn digest(&self) -> u64 {
        self.digest
            .wrapping_add(mix(self.totals.nodes, self.totals.hidden))
            .wrapping_add(mix(self.totals.shared, self.totals.resident))
            .wrapping_add(self.hits.digest())
            .wrapping_add(self.duplicate_hashes.digest())
    }

    /// The router's hash of the block at `node`.
    pub fn tokens_hash(&self, node: NodeId) -> TokensHash {
        TokensHash(self.arena[node].tokens)
    }

    /// The engine's hash of the block at `node`, as one of its present holders calls it.
    pub fn block_hash(&self, node: NodeId) -> BlockHash {
        BlockHash(self.arena[node].block)
    }

    /// What `worker`, which holds `node`, calls its block.
    pub fn block_hash_by(&self, node: NodeId, worker: Slot) -> BlockHash {
        BlockHash(self.index.name(&self.arena, node, worker))
    }

    /// Whether all holders of `node` gave it the same engine hash.
    pub fn hashes_agree(&self, node: NodeId) -> bool {
        !self.index.has_variant(node)
    }

    /// Blocks that a worker's engine names otherwise than the first present holder's engine does.
    pub fn differing_names(&self) -> u64 {
        self.index.variants()
    }

    /// Names beyond the first that workers have for blocks they hold.
    pub fn further_names(&self) -> u64 {
        self.duplicate_hashes.len() as u64
    }

    /// Workers that hold the block at `node`; empty where it only leads to held blocks.
    pub fn owners(&self, node: NodeId) -> &OwnerSet {
        self.sets.get(self.arena[node].set())
    }

    /// A number that is equal for two nodes exactly if they have the same owners. Valid until the next change.
    pub fn owners_key(&self, node: NodeId) -> u32 {
        self.arena[node].set().0
    }

    /// When a worker last stored this block, in the caller's units; [`Tree::TIME_UNKNOWN`]: before anybody listened.
    pub fn touched(&self, node: NodeId) -> u32 {
        self.arena[node].touched
    }

    /// When a worker first stored this block since it is in the tree, in the caller's units; 0 for the root, for
    /// orphan parents and where it is not known ([`Tree::TIME_UNKNOWN`]).
    pub fn first_stored(&self, node: NodeId) -> u32 {
        self.arena.first_stored(node)
    }

    /// The block before this one, [`NodeId::ROOT`] for the first block of a prompt, `None` for the root and for
    /// the first block after a missing parent.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        let parent = self.arena[node].parent;
        (parent != NodeId::NONE && !self.arena[parent].is_orphan_parent()).then_some(parent)
    }

    /// The block after `node` whose tokens have this hash.
    pub fn child(&self, node: NodeId, tokens: TokensHash) -> Option<NodeId> {
        self.child_index.find(&self.arena, node, tokens.0)
    }

    /// Whether the path from the root to `node` is known.
    pub fn is_attached(&self, node: NodeId) -> bool {
        !self.arena[node].is_unattached()
    }

    /// Position of the block in its prompt, the first block being 0. Walks up: O(position).
    pub fn position(&self, node: NodeId) -> u32 {
        let mut position = 0;
        let mut at = node;
        while let Some(parent) = self.parent(at) {
            if parent == NodeId::ROOT {
                break;
            }
            position += 1;
            at = parent;
        }
        position
    }

    /// Node where `worker` holds the block it calls `hash`.
    pub fn find(&self, worker: Slot, hash: BlockHash) -> Option<NodeId> {
        let first = self.index.find(&self.arena, &self.sets, worker, self.index.key(hash.0));
        if self.duplicate_hashes.is_empty() {
            first
        } else {
            first.or_else(|| self.duplicate_hashes.find(worker, hash.0))
        }
    }

    /// A node that some worker calls `hash`.
    pub fn find_any(&self, hash: BlockHash) -> Option<NodeId> {
        self.index.find_any(&self.arena, hash).or_else(|| self.duplicate_hashes.find_any(hash.0))
    }

    /// Bytes of heap in use by the tree.
    pub fn heap_bytes(&self) -> usize {
        self.arena.heap_bytes()
            + self.child_index.heap_bytes()
            + self.sets.heap_bytes()
            + self.index.heap_bytes()
            + self.duplicate_hashes.heap_bytes()
            + self.hits.heap_bytes()
            + self.orphan_parents.capacity() * size_of::<((Slot, BlockHash), NodeId)>()
            + self.holdings.capacity() * size_of::<Holdings>()
            + self.chain_hashes.as_ref().map_or(0, ChainHashes::heap_bytes)
    }

    /// Notifies the forest, if there is one, of a change.
    #[inline]
    fn notify(&mut self, notify: impl FnOnce(&mut Forest, TreeNodes<'_>)) {
        if let Some(forest) = &mut self.forest {
            notify(
                forest,
                TreeNodes { arena: &self.arena, child_index: &self.child_index, sets: &self.sets },
            );
        }
    }

    fn nodes(&self) -> TreeNodes<'_> {
        TreeNodes { arena: &self.arena, child_index: &self.child_index, sets: &self.sets }
    }

    #[inline]
    fn holdings_mut(&mut self, worker: Slot) -> &mut Holdings {
        if self.holdings.len() <= worker.at() {
            self.holdings.resize(worker.at() + 1, Holdings::default());
        }
        &mut self.holdings[worker.at()]
    }

    /// What `worker` holding `node` as `hash` contributes to the digest.
    #[inline]
    fn term(&self, worker: Slot, node: NodeId, hash: u64) -> u64 {
        let n = &self.arena[node];
        term(worker, n.tokens, self.above(n.parent), hash)
    }

    /// What the block below `parent` has of it in the digest.
    #[inline]
    fn above(&self, parent: NodeId) -> u64 {
        self.arena[parent].as_above()
    }
}

/// What `worker` holding a block of these tokens as `hash`, below the block of the tokens `above`, contributes to the digest.
#[inline]
fn term(worker: Slot, tokens: u64, above: u64, hash: u64) -> u64 {
    // One multiplication: it runs for every block. Hashes are spread already; worker and place only have to
    // keep from falling onto each other.
    let who = u64::from(worker.0).wrapping_mul(0xa076_1d64_78bd_642f);
    mix(tokens ^ above.rotate_left(32), hash.wrapping_add(who))
}

/// Mixes two words so that neither order nor value of either is lost.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product =
        u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b.rotate_left(23) ^ 0xd6e8_feb8_6659_fd93);
    (product as u64) ^ ((product >> 64) as u64) ^ a.rotate_left(41)
}

/// Hash of a block hash for the tables here: an adversary must not be able to choose collisions.
#[inline]
fn table_hash(builder: &DefaultHashBuilder, value: u64) -> u64 {
    use std::hash::BuildHasher;
    builder.hash_one(value)
}
