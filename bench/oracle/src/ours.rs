//! Our tree, given the same events.

use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;
use radixscope_state::tree::{NodeId, OverlapRule, Step, Tree};

use crate::{Change, Event};

/// Applies an event.
pub fn apply(tree: &mut Tree, event: &Event) {
    let worker = Slot(event.worker);
    match &event.change {
        Change::Stored { parent, blocks } => {
            let block = |&(hash, tokens): &(u64, u64)| Block {
                block_hash: BlockHash(hash),
                tokens_hash: TokensHash(tokens),
            };
            let blocks: Vec<Block> = blocks.iter().map(block).collect();
            tree.store(worker, parent.map(BlockHash), &blocks, 0);
        }
        Change::Removed(hashes) => hashes.iter().for_each(|&hash| {
            tree.remove(worker, BlockHash(hash));
        }),
        Change::Cleared => {
            tree.clear(worker);
        }
    }
}

/// Overlap of `prompt` with each of the first `workers` workers by the rule from 1.0 on, in blocks.
pub fn overlap(tree: &Tree, prompt: &[u64], workers: usize) -> Vec<u32> {
    let mut scores = Vec::new();
    tree.overlap(OverlapRule::Prefix, prompt.iter().map(|&t| TokensHash(t)), &mut scores);
    scores.resize(workers, 0);
    scores
}

/// The tokens hashes of every path from the root to a leaf: all prompts that there can be overlap with, as prefixes
/// of them have the same overlap cut short.
pub fn paths(tree: &Tree) -> Vec<Vec<u64>> {
    let (mut paths, mut path) = (Vec::new(), Vec::new());
    let mut is_leaf = false;
    for step in tree.walk(NodeId::ROOT) {
        match step {
            Step::Enter { node, depth } if depth > 0 => {
                path.push(tree.tokens_hash(node).0);
                is_leaf = true;
            }
            Step::Leave { depth, .. } if depth > 0 => {
                if is_leaf {
                    paths.push(path.clone());
                }
                path.pop();
                is_leaf = false;
            }
            _ => {}
        }
    }
    paths
}
