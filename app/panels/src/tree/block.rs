//! What a block in a box is, in short: hashes, place, owners, size, age.

use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{BlockHash, Millis, TokensHash, WorkerIx};
use radixscope_state::cluster::touched_ms;
use radixscope_state::tree::forest::{ChainId, Forest};

use crate::format;

/// A block in a box.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockSummary {
    /// Engine's hash of the block.
    pub hash: BlockHash,
    /// Hash of its tokens.
    pub tokens: TokensHash,
    /// Position of the block in its prompt.
    pub position: u32,
    block_tokens: Option<u32>,
    /// Who holds it.
    pub owners: Vec<WorkerIx>,
    /// Blocks in its box.
    pub len: u32,
    /// Held blocks in the box and below.
    pub blocks: u32,
    /// Of those, the ones above the block.
    pub above: u32,
    /// When a worker last stored the block.
    pub touched: Millis,
    /// Whether workers name the block differently.
    pub names_differ: bool,
    /// Whether it was evicted since the tree holds still.
    pub is_evicted: bool,
    /// Who held it at A, where two moments are compared; `owners` are those at B then.
    pub before: Option<Vec<WorkerIx>>,
}

impl BlockSummary {
    /// The block at `position` of a box.
    pub fn of(cluster: &ViewContext<'_>, forest: &Forest, id: ChainId, position: u32) -> Self {
        let (tree, chain) = (cluster.tree(), forest.chain(id));
        let position = position.max(chain.position).min(chain.end().saturating_sub(1));
        let node = tree.block_at(chain, position);
        let holders = cluster.changes.map(|changes| changes.holders_of(node));
        Self {
            hash: tree.block_hash(node),
            tokens: tree.tokens_hash(node),
            position,
            block_tokens: cluster.block_tokens(),
            owners: cluster.owners(holders.map_or_else(|| tree.owners(node), |of| &of.after)).collect(),
            len: chain.len,
            blocks: chain.sums.blocks,
            above: if tree.chain_owners(chain).is_empty() { 0 } else { position - chain.position },
            touched: touched_ms(tree.touched(node)),
            names_differ: !tree.hashes_agree(node),
            is_evicted: cluster.has_evicted(node),
            before: holders.map(|of| cluster.owners(&of.before).collect()),
        }
    }

    /// The tokens that the block stands for, first to last; `None` where a block's size is not known.
    pub fn tokens_of(&self) -> Option<String> {
        let (size, position) = (u64::from(self.block_tokens?), u64::from(self.position));
        Some(format!("{}–{}", format::count(position * size), format::count((position + 1) * size - 1)))
    }

    /// For those who hear the page.
    pub fn sentence(&self, now: Millis) -> String {
        let names: Vec<String> = self.owners.iter().map(|&w| label(w)).collect();
        let holders = if names.is_empty() { "no worker".to_owned() } else { names.join(", ") };
        let age = format::ago(now.since(self.touched));
        format!(
            "Block {} of the prompt, {} in a row, on {holders}, {} in the subtree, last stored {age}, hash {}",
            self.position,
            format::plural(u64::from(self.len), "block", "blocks"),
            format::plural(u64::from(self.blocks), "block", "blocks"),
            self.hash
        )
    }

    /// Position, and tokens where a block's size is known.
    pub fn place(&self) -> String {
        let position = format::count(u64::from(self.position));
        match self.tokens_of() {
            Some(tokens) => format!("{position} (tokens {tokens})"),
            None => position,
        }
    }

    /// Labels of all its workers.
    pub fn owner_labels(&self) -> String {
        self.owners.iter().map(|&worker| label(worker)).collect::<Vec<_>>().join(" ")
    }

    /// What the block's hash is called.
    pub const fn hash_name(&self) -> &'static str {
        if self.names_differ { "Block hash (one of several)" } else { "Block hash" }
    }

    /// The first of its workers, and how many more there are, as text.
    pub fn named_owners(&self, most: usize) -> (&[WorkerIx], Option<String>) {
        let named = &self.owners[..self.owners.len().min(most)];
        let more = self.owners.len() - named.len();
        (named, (more > 0).then(|| format!("+{more}")))
    }
}
