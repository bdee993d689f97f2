//! What the latest event changed in a tree, block by block, for whoever needs the past: a fold looks each block up anyway, and who asked
//! the tree before it would look up all of them again.
//!
//! Only there on request. What is not an event of a worker's own blocks (a whole cache that is cleared, blocks that waited for their
//! parent and are joined to it, the limit) is not here.

use super::{NodeId, Tree};
use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;

/// A block that a worker began or ceased to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangedBlock {
    /// What the worker calls it.
    pub block: BlockHash,
    /// Hash of its tokens alone.
    pub tokens: TokensHash,
    /// What the worker calls the block before, if there is one.
    before: BlockHash,
    begins_prompt: bool,
    /// Whether the worker held it before, and does not any more.
    pub was_held: bool,
}

impl ChangedBlock {
    /// `parent`: what the worker calls the block before; `None`: the block begins a prompt.
    pub const fn new(
        block: BlockHash,
        tokens: TokensHash,
        parent: Option<BlockHash>,
        was_held: bool,
    ) -> Self {
        let (before, begins_prompt) = match parent {
            Some(parent) => (parent, false),
            None => (BlockHash(0), true),
        };
        Self { block, tokens, before, begins_prompt, was_held }
    }

    /// What the worker calls the block before; `None`: it begins a prompt.
    pub const fn parent(&self) -> Option<BlockHash> {
        if self.begins_prompt { None } else { Some(self.before) }
    }
}

const _: () = assert!(size_of::<ChangedBlock>() <= 32, "hundreds of thousands of them are retained");

/// What one event changed.
#[derive(Default, Debug)]
pub struct ChangedBlocks {
    /// In the order of the event.
    blocks: Vec<ChangedBlock>,
    /// Of the blocks that the worker ceased to hold, those that nobody holds any more, each with everything before it.
    gone: Vec<BlockHash>,
    /// The first block that the worker began to hold, with everything before it.
    first_stored: Option<BlockHash>,
}

impl ChangedBlocks {
    /// In the order of the event.
    pub fn blocks(&self) -> &[ChangedBlock] {
        &self.blocks
    }

    /// Of the blocks that the worker ceased to hold, those that no worker holds in this tree any more: the hash of each with everything
    /// before it, where the tree keeps these hashes and what is before it is known.
    pub fn gone(&self) -> &[BlockHash] {
        &self.gone
    }

    /// The hash of the first block that the worker began to hold, with everything before it, where the tree keeps these hashes.
    pub const fn first_stored(&self) -> Option<BlockHash> {
        self.first_stored
    }

    /// Another event begins.
    pub(super) fn begin(&mut self) {
        self.blocks.clear();
        self.gone.clear();
        self.first_stored = None;
    }

    /// The worker ceased to hold a block. `chain`: its hash with everything before it, if that is known and nobody holds it any more.
    #[inline]
    pub(super) fn removed(
        &mut self,
        block: BlockHash,
        tokens: TokensHash,
        parent: Option<BlockHash>,
        chain: Option<BlockHash>,
    ) {
        self.blocks.push(ChangedBlock::new(block, tokens, parent, true));
        self.gone.extend(chain);
    }
}

impl Tree {
    /// From now on [`Tree::changed_blocks`] is known, or not any more.
    pub fn follow_blocks(&mut self, follow: bool) {
        match follow {
            true => drop(self.changed.get_or_insert_default()),
            false => self.changed = None,
        }
    }

    /// What the latest call of [`Tree::store`] or [`Tree::remove_all`] changed. `None`: nobody asked for it.
    pub fn changed_blocks(&self) -> Option<&ChangedBlocks> {
        self.changed.as_deref()
    }

    /// What `worker` calls the block before `node`, or all others call it where it does not hold it. `Err`: `node` waits for a block that
    /// is not known, so that no prompt leads to it.
    pub fn name_before(&self, node: NodeId, worker: Slot) -> Result<Option<BlockHash>, NotAttached> {
        match self.parent(node).ok_or(NotAttached)? {
            NodeId::ROOT => Ok(None),
            above => Ok(Some(self.block_hash_by(above, worker))),
        }
    }

    /// Notes new blocks, the first of them at `first` behind what the worker calls `name_before`, each the only one below the one
    /// before.
    pub(super) fn note_appended(&mut self, first: NodeId, name_before: Option<BlockHash>, blocks: &[Block]) {
        if let Some(chains) = &mut self.chain_hashes {
            chains.add_all(&self.arena, first, blocks);
        }
        let Some(changed) = &mut self.changed else { return };
        if changed.first_stored.is_none() {
            changed.first_stored = self.chain_hashes.as_ref().and_then(|chains| chains.get(first));
        }
        let names = std::iter::once(name_before).chain(blocks.iter().map(|block| Some(block.block_hash)));
        let stored = blocks
            .iter()
            .zip(names)
            .map(|(block, before)| ChangedBlock::new(block.block_hash, block.tokens_hash, before, false));
        changed.blocks.extend(stored);
    }

    /// Notes that the worker that stores began to hold `node`, which it calls `name`, behind what it calls `name_before`.
    pub(super) fn note_stored(&mut self, node: NodeId, name: BlockHash, name_before: Option<BlockHash>) {
        if let Some(changed) = &mut self.changed {
            let tokens = TokensHash(self.arena[node].tokens);
            if changed.first_stored.is_none() {
                changed.first_stored = self.chain_hashes.as_ref().and_then(|chains| chains.get(node));
            }
            changed.blocks.push(ChangedBlock::new(name, tokens, name_before, false));
        }
    }

    /// Notes that `worker` is about to lose `node`, which it calls `name`.
    #[cold]
    pub(super) fn note_removed(&mut self, worker: Slot, node: NodeId, name: BlockHash) {
        let Ok(parent) = self.name_before(node, worker) else { return };
        let (tokens, is_last) = (self.tokens_hash(node), self.owners(node).len() == 1);
        let chain = if is_last { self.chain_hash(node) } else { None };
        if let Some(changed) = &mut self.changed {
            changed.removed(name, tokens, parent, chain);
        }
    }
}

/// A block waits for one before it that was never reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAttached;
