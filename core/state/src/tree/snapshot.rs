//! The tree as bytes: column vectors of nodes in pre-order, in parts of bounded size, and back.
//!
//! A part is self-contained but for its place: parts are restored in order. What is derivable (totals, index,
//! digest) is not sent; it is rebuilt, and the digest proves that it came out the same.

use serde::{Deserialize, Serialize};

use super::{NodeId, OwnerSet, Step, Tree};
use radixscope_model::id::{BlockHash, Slot, TokensHash};

/// Most nodes in one part: bounds the size of a message and the time to build one.
pub(super) const PART_NODES: usize = 64 * 1024;
/// Least bytes of a node in a part: two hashes, and a byte of each of the four other columns.
const NODE_BYTES: usize = 2 * 8 + 4;

/// A run of nodes in pre-order.
#[derive(Serialize, Deserialize, Default)]
pub struct TreePart {
    /// How many levels to go up from the node before to reach this node's parent; for an orphan parent, all of them.
    up: Vec<u32>,
    /// Anchors in this part: index of the node, worker, missing parent's hash.
    orphan_parents: Vec<(u32, Slot, BlockHash)>,
    tokens: Vec<TokensHash>,
    blocks: Vec<BlockHash>,
    touched: Vec<u32>,
    /// How long before `touched` each was first stored, wrapping: small where the times themselves are not.
    stored_before: Vec<u32>,
    /// Owner sets of this part, and per node which one.
    sets: Vec<Vec<u16>>,
    set: Vec<u32>,
    /// Names that differ: index of the node, worker, its name.
    variants: Vec<(u32, Slot, BlockHash)>,
    /// Names beyond the first of a worker for a node: index of the node, worker, the name.
    names: Vec<(u32, Slot, BlockHash)>,
    /// In the last part: where requests' held prefixes ended, as the place of the node in pre-order over all parts, the
    /// root being 0, and when; the oldest first.
    hits: Vec<(u32, u32)>,
}

impl Tree {
    /// Calls `part` with the tree in parts, in order. An empty tree without hits gives none.
    pub fn snapshot<E>(&self, mut part: impl FnMut(&TreePart) -> Result<(), E>) -> Result<(), E> {
        let mut writer = Writer::default();
        writer.hit.insert(NodeId::ROOT, 0);
        let mut orphan_parents: Vec<NodeId> = self.orphan_parents().collect();
        // Node ids differ between two trees that received the same; the bytes should not.
        orphan_parents.sort_by_key(|&a| (self.arena[a].tokens, self.arena[a].block));
        for top in std::iter::once(NodeId::ROOT).chain(orphan_parents) {
            for step in self.walk(top) {
                let Step::Enter { node, depth } = step else { continue };
                if node == NodeId::ROOT {
                    continue;
                }
                writer.push(self, node, depth);
                if writer.part.up.len() == PART_NODES {
                    part(&writer.part)?;
                    writer.start_part();
                }
            }
        }
        writer.hits(self);
        if writer.part.up.is_empty() && writer.part.hits.is_empty() { Ok(()) } else { part(&writer.part) }
    }
}

#[derive(Default)]
struct Writer {
    part: TreePart,
    /// Nodes written, in all parts.
    count: u32,
    /// Of those with hits, the place in pre-order.
    hit: hashbrown::HashMap<NodeId, u32>,
    local: hashbrown::HashMap<u32, u32>,
    /// Depth of the node before, counted from the root or the orphan parent.
    depth: u32,
}

impl Writer {
    fn start_part(&mut self) {
        self.part = TreePart::default();
        self.local.clear();
    }

    fn push(&mut self, tree: &Tree, node: NodeId, depth: u32) {
        let part = &mut self.part;
        let at = part.up.len() as u32;
        let n = &tree.arena[node];
        if n.is_orphan_parent() {
            part.up.push(self.depth);
            part.orphan_parents.push((at, Slot(n.tokens as u16), BlockHash(n.block)));
        } else {
            part.up.push(self.depth + 1 - depth);
        }
        self.depth = depth;
        part.tokens.push(TokensHash(n.tokens));
        part.blocks.push(BlockHash(n.block));
        part.touched.push(n.touched);
        part.stored_before.push(n.touched.wrapping_sub(tree.first_stored(node)));
        self.count += 1;
        if n.is_hit() {
            self.hit.insert(node, self.count);
        }
        let owners = tree.owners(node);
        let next = part.sets.len() as u32;
        let set = *self.local.entry(n.set().0).or_insert_with(|| {
            part.sets.push(owners.iter().map(|w| w.0).collect());
            next
        });
        part.set.push(set);
        if tree.index.has_variant(node) {
            for worker in owners.iter() {
                let name = tree.index.name(&tree.arena, node, worker);
                if name != n.block {
                    part.variants.push((at, worker, BlockHash(name)));
                }
            }
        }
        if !tree.duplicate_hashes.is_empty() {
            for worker in owners.iter() {
                let names = tree.duplicate_hashes.names(node, worker);
                part.names.extend(names.into_iter().map(|name| (at, worker, BlockHash(name))));
            }
        }
    }

    fn hits(&mut self, tree: &Tree) {
        let placed = tree.hits().filter_map(|(node, touch)| Some((*self.hit.get(&node)?, touch)));
        self.part.hits.extend(placed);
    }
}

/// Why parts do not make a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RestoreError {
    /// Columns of one part differ in length, or an index points outside.
    #[error("the snapshot's columns do not fit together")]
    Columns,
    /// A node's place is above the root.
    #[error("the snapshot's node {0} has no place in the tree")]
    Place(u32),
    /// The same node, orphan parent or block twice.
    #[error("the snapshot has node {0} twice")]
    Twice(u32),
    /// A leaf without owners.
    #[error("the snapshot's node {0} and everything below it have no owner")]
    Unheld(u32),
    /// Counts of blocks outside the picture that cannot be.
    #[error("the snapshot's blocks outside the picture cannot be counted")]
    Hidden,
}

/// Most blocks outside the picture that a snapshot may claim: far beyond any cluster, and counting on from it
/// cannot overflow.
const MAX_HIDDEN: u64 = 1 << 48;

/// Builds a tree from parts.
pub struct TreeReader {
    tree: Tree,
    /// Path to the node restored last, the root or orphan parent first.
    path: Vec<NodeId>,
    count: u32,
    /// Whether the node restored last has no owner, so that one must follow below it.
    open: bool,
    /// Below an orphan parent: the one worker whose blocks may be there.
    waiting: Option<Slot>,
    /// The owners of the node restored last.
    owners: Vec<Slot>,
}

impl TreeReader {
    /// Begins an empty tree that keeps at most `limit` nodes.
    pub fn new(limit: u32) -> Self {
        Self {
            tree: Tree::with_limit(limit),
            path: vec![NodeId::ROOT],
            count: 0,
            open: false,
            waiting: None,
            owners: Vec::new(),
        }
    }

    /// Adds the next part; so many bytes of further ones are at hand, 0 where that is not known.
    pub fn part(&mut self, part: &TreePart, left_bytes: usize) -> Result<(), RestoreError> {
        let n = part.up.len();
        let hashes = [part.tokens.len(), part.blocks.len()];
        if hashes != [n; 2] || [part.touched.len(), part.stored_before.len(), part.set.len()] != [n; 3] {
            return Err(RestoreError::Columns);
        }
        self.tree.index.reserve(&self.tree.arena, n.min(PART_NODES) + left_bytes / NODE_BYTES);
        let sets: Vec<OwnerSet> = part.sets.iter().map(|s| s.iter().map(|&w| Slot(w)).collect()).collect();
        let ids: Vec<_> = sets.into_iter().map(|s| self.tree.sets.intern(s)).collect();
        let mut orphan_parents = part.orphan_parents.iter().peekable();
        let mut variants = part.variants.iter().peekable();
        let mut names = part.names.iter().peekable();
        for i in 0..n {
            let node = match orphan_parents.next_if(|a| a.0 as usize == i) {
                Some(&(_, worker, missing)) => self.orphan_parent(worker, missing)?,
                None => self.node(part.up[i], part.tokens[i], part.blocks[i])?,
            };
            self.count += 1;
            self.tree.arena[node].touched = part.touched[i];
            self.tree.arena.set_first_stored(node, part.touched[i].wrapping_sub(part.stored_before[i]));
            let set = *ids.get(part.set[i] as usize).ok_or(RestoreError::Columns)?;
            self.tree.sets.add_use(set);
            self.tree.arena[node].change_set(set);
            let mut named = false;
            while let Some(&(_, worker, name)) = variants.next_if(|v| v.0 as usize == i) {
                self.variant(node, worker, name)?;
                named = true;
            }
            self.count_owners(node, named)?;
            while let Some(&(_, worker, name)) = names.next_if(|v| v.0 as usize == i) {
                self.further_name(node, worker, name)?;
            }
        }
        if orphan_parents.next().is_some() || variants.next().is_some() || names.next().is_some() {
            return Err(RestoreError::Columns);
        }
        for &(place, touch) in &part.hits {
            if place > self.count {
                return Err(RestoreError::Columns);
            }
            // Nothing was ever freed here: a node's id is its place.
            self.tree.hit(NodeId(place), touch);
        }
        Ok(())
    }

    /// The tree, with `hidden` blocks per worker outside the picture.
    pub fn finish(mut self, hidden: impl IntoIterator<Item = (Slot, u64)>) -> Result<Tree, RestoreError> {
        self.close()?;
        for (worker, hidden) in hidden {
            let before = std::mem::replace(&mut self.tree.holdings_mut(worker).hidden, hidden);
            let total = self.tree.totals.hidden.checked_add(hidden).filter(|&total| total <= MAX_HIDDEN);
            if before > 0 || total.is_none() {
                return Err(RestoreError::Hidden);
            }
            self.tree.totals.hidden += hidden;
            self.tree.totals.resident += hidden;
        }
        Ok(self.tree)
    }

    /// The node restored last has nothing below it.
    fn close(&self) -> Result<(), RestoreError> {
        if self.open { Err(RestoreError::Unheld(self.count - 1)) } else { Ok(()) }
    }

    fn orphan_parent(&mut self, worker: Slot, missing: BlockHash) -> Result<NodeId, RestoreError> {
        self.close()?;
        self.waiting = Some(worker);
        if self.tree.orphan_parents.contains_key(&(worker, missing)) {
            return Err(RestoreError::Twice(self.count));
        }
        let orphan_parent = self.tree.arena.add_orphan_parent(u64::from(worker.0), missing.0);
        self.tree.orphan_parents.insert((worker, missing), orphan_parent);
        self.path.clear();
        self.path.push(orphan_parent);
        Ok(orphan_parent)
    }

    fn node(&mut self, up: u32, tokens: TokensHash, block: BlockHash) -> Result<NodeId, RestoreError> {
        if up > 0 {
            self.close()?;
        }
        let keep = self.path.len().checked_sub(up as usize).filter(|&k| k > 0);
        self.path.truncate(keep.ok_or(RestoreError::Place(self.count))?);
        let parent = *self.path.last().ok_or(RestoreError::Place(self.count))?;
        if self.tree.child(parent, tokens).is_some() {
            return Err(RestoreError::Twice(self.count));
        }
        let node = self.tree.arena.add(parent, tokens.0, block.0, 0);
        self.tree.child_index.link(&mut self.tree.arena, parent, node);
        self.path.push(node);
        Ok(node)
    }

    fn variant(&mut self, node: NodeId, worker: Slot, name: BlockHash) -> Result<(), RestoreError> {
        let tree = &mut self.tree;
        let primary = tree.arena[node].block;
        if !tree.owners(node).contains(worker) || name.0 == primary {
            return Err(RestoreError::Columns);
        }
        let is_named = tree.index.name(&tree.arena, node, worker) != primary;
        if is_named || tree.find(worker, name).is_some() {
            return Err(RestoreError::Twice(self.count - 1));
        }
        tree.index.set_variant(node, worker, name.0);
        Ok(())
    }

    fn further_name(&mut self, node: NodeId, worker: Slot, name: BlockHash) -> Result<(), RestoreError> {
        if !self.tree.owners(node).contains(worker) {
            return Err(RestoreError::Columns);
        }
        if self.tree.find(worker, name).is_some() {
            return Err(RestoreError::Twice(self.count - 1));
        }
        self.tree.add_name(worker, node, name.0);
        Ok(())
    }

    fn count_owners(&mut self, node: NodeId, named: bool) -> Result<(), RestoreError> {
        let tree = &mut self.tree;
        let set = tree.arena[node].set();
        let owners = tree.sets.get(set).len() as u64;
        self.open = owners == 0;
        if owners == 0 {
            return Ok(());
        }
        let is_foreign = self.waiting.is_some_and(|w| owners > 1 || !tree.sets.get(set).contains(w));
        let is_named = tree.index.uses_primary(node, owners as usize);
        if tree.arena[node].is_orphan_parent() || is_foreign || !is_named {
            return Err(RestoreError::Columns);
        }
        if tree.index.is_taken(&tree.arena, &tree.sets, node) {
            return Err(RestoreError::Twice(self.count - 1));
        }
        let key = tree.index.key(tree.arena[node].block);
        tree.index.enter(&tree.arena, node, key);
        let unattached = tree.arena[node].is_unattached();
        tree.totals.resident += owners;
        if unattached {
            tree.totals.unattached += owners;
        } else {
            tree.totals.nodes += 1;
            tree.totals.shared += u64::from(owners > 1);
        }
        self.owners.clear();
        self.owners.extend(tree.sets.get(set).iter());
        for &worker in &self.owners {
            let name =
                if named { tree.index.name(&tree.arena, node, worker) } else { tree.arena[node].block };
            tree.digest = tree.digest.wrapping_add(tree.term(worker, node, name));
            let holdings = tree.holdings_mut(worker);
            holdings.resident += 1;
            holdings.unattached += u64::from(unattached);
        }
        Ok(())
    }
}
