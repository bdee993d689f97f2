//! From a prompt's hashes to its place in the tree.

use crate::id::{BlockHash, TokensHash, WorkerIx};
use crate::record::PathEnd;
use crate::router::hash::chain_hash;
use crate::tree::{NodeId, Tree};

/// Hashes of a prompt's full blocks, in one of the two forms that Dynamo writes (reference §5.10).
#[derive(Clone, Copy, Debug)]
pub enum Prompt<'a> {
    /// Of each block and everything before it.
    Chain(&'a [u64]),
    /// Of each block alone.
    Local(&'a [u64]),
}

impl Prompt<'_> {
    /// Full blocks.
    pub fn len(&self) -> usize {
        let (Prompt::Chain(hashes) | Prompt::Local(hashes)) = self;
        hashes.len()
    }

    /// Whether there is no full block.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Chain hashes, written to `into`.
    pub fn chain(&self, into: &mut Vec<u64>) {
        into.clear();
        match self {
            Prompt::Chain(hashes) => into.extend_from_slice(hashes),
            Prompt::Local(hashes) => {
                let mut last = None;
                into.extend(hashes.iter().map(|&own| {
                    let link = chain_hash(last, TokensHash(own));
                    last = Some(link);
                    link.0
                }));
            }
        }
    }

    /// Hashes of each block alone, written to `into`; of chain hashes as far as the tree knows the path: beyond that
    /// nobody holds a block anyway.
    pub fn local(&self, tree: &Tree, into: &mut Vec<TokensHash>) {
        into.clear();
        match self {
            Prompt::Local(hashes) => into.extend(hashes.iter().map(|&hash| TokensHash(hash))),
            Prompt::Chain(hashes) => {
                let (mut at, mut above) = (NodeId::ROOT, None);
                for &link in *hashes {
                    let is_next =
                        |&child: &NodeId| chain_hash(above, tree.tokens_hash(child)) == BlockHash(link);
                    let Some(child) = tree.children(at).find(is_next) else { break };
                    into.push(tree.tokens_hash(child));
                    (at, above) = (child, Some(BlockHash(link)));
                }
            }
        }
    }
}

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
