//! A prompt as Dynamo writes it: the hashes of its full blocks.

use crate::tree::{NodeId, Tree};
use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_router::hash::chain_hash;

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

    /// The same by the one of several trees that knows most of the path.
    pub fn local_in<'t>(&self, trees: impl Iterator<Item = &'t Tree>, into: &mut Vec<TokensHash>) {
        into.clear();
        let mut one = Vec::new();
        for tree in trees {
            self.local(tree, &mut one);
            if one.len() > into.len() {
                std::mem::swap(&mut one, into);
            }
            if matches!(self, Prompt::Local(_)) {
                break;
            }
        }
    }

    /// Hashes of each block alone, written to `into`; of chain hashes as far as the tree knows the path: beyond that
    /// no worker holds a block anyway.
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
