//! The arena of nodes: fixed chunks, so that it grows without copying and without slack, and a free list.

use std::ops::{Index, IndexMut};

use super::NodeId;
use super::owners::SetId;

const CHUNK_BITS: u32 = 9;
/// Nodes per chunk: 18 KiB at 36 bytes a node, the most that is ever idle at the end.
const CHUNK: usize = 1 << CHUNK_BITS;

/// In [`Node::child`]: nothing below.
pub(super) const NO_CHILD: u32 = u32::MAX;

/// One block of one path. 32 bytes, and four beside them; anything derivable is not here.
#[derive(Clone, Copy)]
pub(super) struct Node {
    /// Tokens hash; in an orphan parent the worker's index.
    pub(super) tokens: u64,
    /// Engine hash as a present holder gives it; in an orphan parent the missing parent's hash.
    pub(super) block: u64,
    /// Node above, `NONE` for the root and for orphan parents; in a free slot the next free slot.
    pub(super) parent: NodeId,
    /// None, one child, or several (see `children`).
    pub(super) child: u32,
    /// Owner set and the three flags below.
    set_and_flags: u32,
    /// When a worker last stored this block.
    pub(super) touched: u32,
}

/// What is in a slot that was never used.
const NEVER_USED: Node =
    Node { tokens: 0, block: 0, parent: NodeId::NONE, child: NO_CHILD, set_and_flags: FREE, touched: 0 };

const UNATTACHED: u32 = 1 << 31;
const ANCHOR: u32 = 1 << 30;
/// Requests' held prefixes ended here (see `hits`).
const HIT: u32 = 1 << 29;
const SET_MASK: u32 = HIT - 1;
const FREE: u32 = u32::MAX;

impl Node {
    pub(super) const fn set(&self) -> SetId {
        SetId(self.set_and_flags & SET_MASK)
    }

    pub(super) fn change_set(&mut self, set: SetId) {
        debug_assert!(set.0 < SET_MASK);
        self.set_and_flags = (self.set_and_flags & !SET_MASK) | set.0;
    }

    pub(super) const fn is_unattached(&self) -> bool {
        self.set_and_flags & UNATTACHED != 0
    }

    pub(super) fn mark_attached(&mut self) {
        self.set_and_flags &= !UNATTACHED;
    }

    pub(super) const fn is_orphan_parent(&self) -> bool {
        self.set_and_flags & ANCHOR != 0
    }

    /// What the blocks below have of this one in the digest.
    #[inline]
    pub(super) const fn as_above(&self) -> u64 {
        if self.is_orphan_parent() { self.block } else { self.tokens }
    }

    pub(super) const fn is_hit(&self) -> bool {
        self.set_and_flags & HIT != 0
    }

    pub(super) fn change_hit(&mut self, is_hit: bool) {
        self.set_and_flags = (self.set_and_flags & !HIT) | if is_hit { HIT } else { 0 };
    }

    pub(super) const fn is_free(&self) -> bool {
        self.set_and_flags == FREE
    }
}

#[derive(Clone)]
struct Chunk {
    nodes: Box<[Node; CHUNK]>,
    /// When a worker first stored each node's block. Beside the nodes, because hardly anything needs it.
    first_stored: Box<[u32; CHUNK]>,
}

impl Chunk {
    const HEAP_BYTES: usize = CHUNK * (size_of::<Node>() + size_of::<u32>());

    fn new() -> Self {
        // Filled where they are: an array in a box would be copied there.
        Self { nodes: filled(NEVER_USED), first_stored: filled(0) }
    }
}

fn filled<T: Copy>(with: T) -> Box<[T; CHUNK]> {
    vec![with; CHUNK].try_into().unwrap_or_else(|_| Box::new([with; CHUNK]))
}

#[derive(Clone)]
pub(super) struct Arena {
    chunks: Vec<Chunk>,
    /// Slots ever used.
    len: u32,
    free: NodeId,
    live: u32,
}

impl Arena {
    pub(super) fn new() -> Self {
        let mut arena = Self { chunks: Vec::new(), len: 0, free: NodeId::NONE, live: 0 };
        let root = arena.push(Node {
            tokens: 0,
            block: 0,
            parent: NodeId::NONE,
            child: NO_CHILD,
            set_and_flags: 0,
            touched: 0,
        });
        debug_assert_eq!(root, NodeId::ROOT);
        arena.live = 0;
        arena
    }

    /// Nodes in use, the root not counted.
    pub(super) fn live(&self) -> u32 {
        self.live
    }

    /// Adds a node without owners, below `parent` but not among its children yet; attached if `parent` is. It is
    /// first stored and touched at `touched`.
    #[inline]
    pub(super) fn add(&mut self, parent: NodeId, tokens: u64, block: u64, touched: u32) -> NodeId {
        let is_unattached = self[parent].is_unattached();
        self.add_owned(parent, is_unattached, tokens, block, touched, SetId::EMPTY)
    }

    /// The same with owners; `is_unattached`: whether `parent` is.
    #[inline]
    pub(super) fn add_owned(
        &mut self,
        parent: NodeId,
        is_unattached: bool,
        tokens: u64,
        block: u64,
        touched: u32,
        owners: SetId,
    ) -> NodeId {
        debug_assert!(owners.0 < SET_MASK && is_unattached == self[parent].is_unattached());
        let set_and_flags = if is_unattached { UNATTACHED } else { 0 } | owners.0;
        self.push(Node { tokens, block, parent, child: NO_CHILD, set_and_flags, touched })
    }

    pub(super) fn add_orphan_parent(&mut self, worker: u64, missing: u64) -> NodeId {
        self.push(Node {
            tokens: worker,
            block: missing,
            parent: NodeId::NONE,
            child: NO_CHILD,
            set_and_flags: UNATTACHED | ANCHOR,
            touched: 0,
        })
    }

    #[inline]
    fn push(&mut self, node: Node) -> NodeId {
        self.live += 1;
        let mut id = self.free;
        if id == NodeId::NONE {
            id = NodeId(self.len);
            if self.len as usize == self.chunks.len() * CHUNK {
                self.add_chunk();
            }
            self.len += 1;
        } else {
            self.free = self[id].parent;
        }
        let chunk = &mut self.chunks[id.at() >> CHUNK_BITS];
        let at = id.at() & (CHUNK - 1);
        (chunk.nodes[at], chunk.first_stored[at]) = (node, node.touched);
        id
    }

    #[cold]
    fn add_chunk(&mut self) {
        self.chunks.push(Chunk::new());
    }

    #[inline]
    pub(super) fn free(&mut self, id: NodeId) {
        let next = self.free;
        let node = &mut self[id];
        debug_assert!(!node.is_free());
        node.set_and_flags = FREE;
        node.parent = next;
        self.free = id;
        self.live -= 1;
    }

    #[inline]
    pub(super) fn first_stored(&self, id: NodeId) -> u32 {
        self.chunks[id.at() >> CHUNK_BITS].first_stored[id.at() & (CHUNK - 1)]
    }

    #[inline]
    pub(super) fn set_first_stored(&mut self, id: NodeId, touched: u32) {
        self.chunks[id.at() >> CHUNK_BITS].first_stored[id.at() & (CHUNK - 1)] = touched;
    }

    /// Node `id` and those that lie behind it in the same chunk, whatever they are.
    #[inline]
    pub(super) fn row(&self, id: NodeId) -> &[Node] {
        &self.chunks[id.at() >> CHUNK_BITS].nodes[id.at() & (CHUNK - 1)..]
    }

    /// Every id ever used, the root and free slots included.
    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.len).map(NodeId)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.chunks.len() * Chunk::HEAP_BYTES + self.chunks.capacity() * size_of::<Chunk>()
    }
}

impl Index<NodeId> for Arena {
    type Output = Node;

    #[inline]
    fn index(&self, id: NodeId) -> &Node {
        &self.chunks[id.at() >> CHUNK_BITS].nodes[id.at() & (CHUNK - 1)]
    }
}

impl IndexMut<NodeId> for Arena {
    #[inline]
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.chunks[id.at() >> CHUNK_BITS].nodes[id.at() & (CHUNK - 1)]
    }
}
