//! One engine's block cache: prefix reuse, and eviction of the least recently used block, mostly after those that follow it.
//!
//! Full blocks are known by their hash and shared; a block that is still being filled belongs to one request alone
//! and counts as private. What running requests may still need is promised to them at admission, so an admitted
//! request never has to stop. Must not know requests, time or the wire.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use radixscope_model::id::BlockHash;
use radixscope_model::record::Block;

/// Index of a cached block.
pub(super) type NodeIx = u32;

/// Which of the blocks of a prompt goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EvictionOrder {
    /// The last one: a block goes after those that follow it.
    EndsFirst,
    /// The first one, as with an engine that looks at blocks alone.
    BeginningsFirst,
}

#[derive(Debug)]
struct Node {
    block: Block,
    /// The block before it, which may be gone where beginnings go first. `None`: it begins a prompt.
    above: Option<BlockHash>,
    /// Cached blocks that have to go before it: those that continue it.
    children: u32,
    /// Running requests that use it.
    pins: u32,
    /// Counter value of the last release.
    last_used: u64,
}

/// Blocks of the cache that a running request pins.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// Cached blocks it uses, from the root down.
    nodes: Vec<NodeIx>,
    /// Blocks allocated to it and not full yet.
    private: u32,
    /// Blocks it may still allocate.
    promised: u32,
}

impl Lease {
    /// Full blocks it uses.
    pub(super) fn full_blocks(&self) -> u32 {
        self.nodes.len() as u32
    }
}

/// The cache of one worker.
#[derive(Debug)]
pub(super) struct BlockCache {
    capacity: u32,
    order: EvictionOrder,
    by_hash: FxHashMap<BlockHash, NodeIx>,
    nodes: Vec<Node>,
    free: Vec<NodeIx>,
    /// Unused blocks without cached children, least recently used first.
    evictable: BTreeSet<(u64, NodeIx)>,
    pinned: u32,
    private: u32,
    promised: u32,
    clock: u64,
}

impl BlockCache {
    pub(super) fn new(capacity: u32, order: EvictionOrder) -> Self {
        Self {
            capacity,
            order,
            by_hash: FxHashMap::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            evictable: BTreeSet::new(),
            pinned: 0,
            private: 0,
            promised: 0,
            clock: 0,
        }
    }

    /// Blocks it can hold.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Full blocks in the cache.
    pub(super) fn cached(&self) -> u32 {
        self.by_hash.len() as u32
    }

    /// Blocks used by running requests, full or not.
    pub(super) fn in_use(&self) -> u32 {
        self.pinned + self.private
    }

    /// Hashes of the full blocks in the cache, in no order.
    pub(super) fn hashes(&self) -> impl Iterator<Item = BlockHash> + '_ {
        self.by_hash.keys().copied()
    }

    /// Whether a full block is in the cache.
    pub(super) fn holds(&self, hash: BlockHash) -> bool {
        self.by_hash.contains_key(&hash)
    }

    /// The full blocks in the cache whose prompts are there from their beginning, each with the one before it, which comes first.
    pub(super) fn tree(&self) -> Vec<(Option<BlockHash>, Block)> {
        let mut tree = Vec::with_capacity(self.by_hash.len());
        // Whether all is there that leads to a block.
        let mut is_listed: FxHashMap<BlockHash, bool> = FxHashMap::default();
        let mut way = Vec::new();
        for &ix in self.by_hash.values() {
            let (mut at, mut leads) = (Some(ix), true);
            while let Some(ix) = at {
                let Node { block, above, .. } = self.nodes[ix as usize];
                if let Some(&listed) = is_listed.get(&block.block_hash) {
                    leads = listed;
                    break;
                }
                way.push((above, block));
                at = above.and_then(|above| self.by_hash.get(&above).copied());
                leads = above.is_none() || at.is_some();
            }
            while let Some((above, block)) = way.pop() {
                is_listed.insert(block.block_hash, leads);
                if leads {
                    tree.push((above, block));
                }
            }
        }
        tree
    }

    /// The same without anything in it.
    pub(super) fn emptied(&self) -> Self {
        Self::new(self.capacity, self.order)
    }

    /// Blocks at the beginning of `chain` that are in the cache.
    pub(super) fn prefix_len(&self, chain: &[Block]) -> u32 {
        chain.iter().take_while(|block| self.holds(block.block_hash)).count() as u32
    }

    /// Keeps a copy of a whole chain; `filled` gets the place of each block that is new, `evicted` what had to go for it. A
    /// chain for which there is no room is not retained.
    pub(super) fn keep(
        &mut self,
        chain: &[Block],
        lease: Lease,
        evicted: impl FnMut(BlockHash),
        mut filled: impl FnMut(u32),
    ) -> Lease {
        let mut lease = match self.admit(chain, chain.len() as u32, lease) {
            Ok(lease) => lease,
            Err(lease) => return lease,
        };
        let first = lease.full_blocks();
        self.allocate(&mut lease, chain.len() as u32 - first, evicted);
        for (at, block) in (0..).zip(chain).skip(first as usize) {
            if self.fill(&mut lease, *block) {
                filled(at);
            }
        }
        self.release(lease)
    }

    /// Admits a request of `total_blocks` at most, reusing the cached prefix of `prompt`; `None` if the blocks
    /// promised to running requests leave too few. `lease` is an empty one to fill.
    pub(super) fn admit(
        &mut self,
        prompt: &[Block],
        total_blocks: u32,
        mut lease: Lease,
    ) -> Result<Lease, Lease> {
        lease.nodes.clear();
        let hits = prompt.iter().map_while(|b| self.by_hash.get(&b.block_hash).copied());
        lease.nodes.extend(hits);
        let newly_pinned = lease.nodes.iter().filter(|&&n| self.nodes[n as usize].pins == 0).count() as u32;
        let needed = total_blocks.saturating_sub(lease.full_blocks());
        let taken = self.pinned + newly_pinned + self.private + self.promised;
        if u64::from(taken) + u64::from(needed) > u64::from(self.capacity) {
            return Err(lease);
        }
        for at in 0..lease.nodes.len() {
            self.pin(lease.nodes[at]);
        }
        lease.private = 0;
        lease.promised = needed;
        self.promised += needed;
        Ok(lease)
    }

    /// Gives `count` of its promised blocks to a request, evicting what is needed; `evicted` is called for each eviction.
    pub(super) fn allocate(&mut self, lease: &mut Lease, count: u32, mut evicted: impl FnMut(BlockHash)) {
        debug_assert!(count <= lease.promised, "a request allocates at most what it was promised");
        let count = count.min(lease.promised);
        lease.promised -= count;
        lease.private += count;
        self.promised -= count;
        self.private += count;
        while self.cached() + self.private > self.capacity {
            // Pinned, private and promised blocks never exceed the capacity, so here some cached block is not
            // pinned; the last cached block below it is not pinned either and is therefore evictable.
            let Some(hash) = self.evict() else { break };
            evicted(hash);
        }
    }

    /// Turns one private block of a request, now full, into a shared one below those it already uses. Returns
    /// whether the block is new to the cache; if another request was faster, the copy is dropped.
    pub(super) fn fill(&mut self, lease: &mut Lease, block: Block) -> bool {
        debug_assert!(lease.private > 0, "a block is filled after it was allocated");
        lease.private -= 1;
        self.private -= 1;
        let known = self.by_hash.get(&block.block_hash).copied();
        let node = known.unwrap_or_else(|| self.insert(lease.nodes.last().copied(), block));
        self.pin(node);
        lease.nodes.push(node);
        known.is_none()
    }

    /// Ends a request's use of its blocks. The full ones stay cached; the emptied lease can be used again.
    pub(super) fn release(&mut self, mut lease: Lease) -> Lease {
        self.clock += 1;
        self.private -= lease.private;
        self.promised -= lease.promised;
        for &ix in &lease.nodes {
            // Of one request the beginning counts as used first.
            self.clock += u64::from(self.order == EvictionOrder::BeginningsFirst);
            let node = &mut self.nodes[ix as usize];
            node.last_used = self.clock;
            node.pins -= 1;
            if node.pins == 0 {
                self.pinned -= 1;
                if node.children == 0 {
                    self.evictable.insert((node.last_used, ix));
                }
            }
        }
        lease.nodes.clear();
        lease.private = 0;
        lease.promised = 0;
        lease
    }

    fn pin(&mut self, ix: NodeIx) {
        let node = &mut self.nodes[ix as usize];
        node.pins += 1;
        if node.pins == 1 {
            self.pinned += 1;
            if node.children == 0 {
                self.evictable.remove(&(node.last_used, ix));
            }
        }
    }

    /// A new node, not pinned yet: the caller pins it at once, so it never is among the evictable ones.
    fn insert(&mut self, parent: Option<NodeIx>, block: Block) -> NodeIx {
        let above = parent.map(|parent| self.nodes[parent as usize].block.block_hash);
        let node = Node { block, above, children: 0, pins: 0, last_used: self.clock };
        let ix = match self.free.pop() {
            Some(ix) => {
                self.nodes[ix as usize] = node;
                ix
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as NodeIx
            }
        };
        self.by_hash.insert(block.block_hash, ix);
        if let (EvictionOrder::EndsFirst, Some(parent)) = (self.order, parent) {
            self.nodes[parent as usize].children += 1;
        }
        ix
    }

    fn evict(&mut self) -> Option<BlockHash> {
        let (_, ix) = self.evictable.pop_first()?;
        let Node { block: Block { block_hash: hash, .. }, above, .. } = self.nodes[ix as usize];
        self.by_hash.remove(&hash);
        self.free.push(ix);
        let parent = above.filter(|_| self.order == EvictionOrder::EndsFirst);
        if let Some(parent) = parent.and_then(|above| self.by_hash.get(&above).copied()) {
            let node = &mut self.nodes[parent as usize];
            node.children -= 1;
            if node.children == 0 && node.pins == 0 {
                self.evictable.insert((node.last_used, parent));
            }
        }
        Some(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::TokensHash;

    fn chain(name: u64, len: u64) -> Vec<Block> {
        let block = |i| Block { block_hash: BlockHash(name * 1000 + i), tokens_hash: TokensHash(i) };
        (0..len).map(block).collect()
    }

    /// Runs a request over `blocks` to its end; returns what was evicted for it.
    fn run(cache: &mut BlockCache, blocks: &[Block]) -> Vec<u64> {
        let lease = hold(cache, blocks);
        let evicted = lease.1;
        cache.release(lease.0);
        evicted
    }

    fn hold(cache: &mut BlockCache, blocks: &[Block]) -> (Lease, Vec<u64>) {
        let mut evicted = Vec::new();
        let mut lease = cache.admit(blocks, blocks.len() as u32, Lease::default()).expect("fits");
        let hits = lease.full_blocks();
        cache.allocate(&mut lease, blocks.len() as u32 - hits, |h| evicted.push(h.0));
        for block in &blocks[hits as usize..] {
            cache.fill(&mut lease, *block);
            assert!(cache.cached() + cache.private <= cache.capacity);
        }
        (lease, evicted)
    }

    #[test]
    fn the_least_recently_used_leaf_goes_first() {
        let mut cache = BlockCache::new(6, EvictionOrder::EndsFirst);
        run(&mut cache, &chain(1, 3));
        run(&mut cache, &chain(2, 3));
        run(&mut cache, &chain(1, 3));
        assert_eq!(run(&mut cache, &chain(3, 4)), [2002, 2001, 2000, 1002]);
    }

    #[test]
    fn where_blocks_are_looked_at_alone_beginnings_go_first_and_what_follows_stays() {
        let mut cache = BlockCache::new(6, EvictionOrder::BeginningsFirst);
        run(&mut cache, &chain(1, 3));
        run(&mut cache, &chain(2, 3));
        assert_eq!(run(&mut cache, &chain(3, 2)), [1000, 1001]);
        assert_eq!((cache.prefix_len(&chain(1, 3)), cache.holds(BlockHash(1002))), (0, true));
        let tree: Vec<u64> = cache.tree().into_iter().map(|(_, block)| block.block_hash.0).collect();
        assert_eq!((tree.len(), tree.contains(&1002)), (5, false), "nothing leads to it: {tree:?}");
        assert_eq!(run(&mut cache, &chain(1, 3)), [1002, 2000, 2001], "it was used before those");
        assert_eq!(cache.prefix_len(&chain(1, 3)), 3);
    }

    #[test]
    fn a_tree_lists_what_leads_to_a_block_before_it() {
        let mut cache = BlockCache::new(9, EvictionOrder::EndsFirst);
        run(&mut cache, &chain(1, 4));
        run(&mut cache, &chain(2, 3));
        let tree = cache.tree();
        let listed =
            |above: BlockHash, until: usize| tree[..until].iter().any(|(_, of)| of.block_hash == above);
        assert_eq!(tree.len(), 7);
        assert!((0..7).all(|at| tree[at].0.is_none_or(|above| listed(above, at))), "{tree:?}");
    }

    #[test]
    fn blocks_of_running_requests_stay() {
        let mut cache = BlockCache::new(6, EvictionOrder::EndsFirst);
        let (lease, _) = hold(&mut cache, &chain(1, 3));
        run(&mut cache, &chain(2, 3));
        assert_eq!(run(&mut cache, &chain(3, 3)), [2002, 2001, 2000]);
        assert!(cache.admit(&chain(4, 4), 4, Lease::default()).is_err(), "only 3 blocks are not in use");
        cache.release(lease);
        assert!(cache.admit(&chain(4, 4), 4, Lease::default()).is_ok());
    }

    #[test]
    fn promised_blocks_are_kept_for_the_request_they_were_promised_to() {
        let mut cache = BlockCache::new(6, EvictionOrder::EndsFirst);
        let lease = cache.admit(&chain(1, 2), 4, Lease::default()).expect("fits");
        assert!(cache.admit(&chain(2, 2), 3, Lease::default()).is_err());
        cache.release(lease);
        assert!(cache.admit(&chain(2, 2), 3, Lease::default()).is_ok());
    }

    #[test]
    fn two_requests_that_fill_the_same_block_share_it() {
        let mut cache = BlockCache::new(6, EvictionOrder::EndsFirst);
        let blocks = chain(1, 1);
        let mut first = cache.admit(&blocks, 1, Lease::default()).expect("fits");
        let mut second = cache.admit(&blocks, 1, Lease::default()).expect("fits");
        cache.allocate(&mut first, 1, |_| {});
        cache.allocate(&mut second, 1, |_| {});
        assert_eq!(cache.in_use(), 2);
        assert!(cache.fill(&mut first, blocks[0]));
        assert!(!cache.fill(&mut second, blocks[0]));
        assert_eq!((cache.cached(), cache.in_use()), (1, 1));
    }
}
