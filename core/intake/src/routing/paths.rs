//! From a prompt's hashes to its place in the tree.

use radixscope_model::id::{PoolIx, Slot, TokensHash};
use radixscope_model::record::PathEnd;
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::NodeId;

/// The last block along `prompt` that anybody holds without a hole before it, by the name one of its holders gives it.
pub(super) fn path_end(cluster: &Cluster, pool: PoolIx, prompt: &[TokensHash]) -> Option<PathEnd> {
    let tree = cluster.tree(pool);
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
    let calls_it_so = |slot: &Slot| tree.find(*slot, block_hash) == Some(node);
    let worker = cluster.workers().in_slot(tree.owners(node).iter().find(calls_it_so)?)?;
    Some(PathEnd { worker, block_hash, blocks })
}
