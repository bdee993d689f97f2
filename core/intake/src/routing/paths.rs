//! From a prompt's hashes to its place in the tree.

use radixscope_model::id::{TokensHash, WorkerIx};
use radixscope_model::record::PathEnd;
use radixscope_state::tree::{NodeId, Tree};

/// The last block along `prompt` that anybody holds without a hole before it, by the name one of its holders gives it.
pub(super) fn path_end(tree: &Tree, prompt: &[TokensHash]) -> Option<PathEnd> {
    let mut end = None;
    let mut at = NodeId::ROOT;
    for (i, &tokens) in prompt.iter().enumerate() {
        let Some(child) = tree.child(at, tokens).filter(|&child| !tree.owners(child).is_empty()) else {
            break;
        };
        at = child;
        end = Some((at, i as u32 + 1));
    }
    let (node, blocks) = end?;
    let block_hash = tree.block_hash(node);
    let calls_it_so = |worker: &WorkerIx| tree.find(*worker, block_hash) == Some(node);
    let worker = tree.owners(node).iter().find(calls_it_so)?;
    Some(PathEnd { worker, block_hash, blocks })
}
