//! From a prompt in any of its forms to blocks, length and block size.

use super::WhatIf;
use super::request::{MAX_PROMPT_BLOCKS, Prompt, Refused, WhatIfRequest};
use radixscope_model::id::PoolIx;
use radixscope_router::RoutedRequest;
use radixscope_router::hash::{Blocking, Seed, block_hashes};
use radixscope_state::cluster::Cluster;
use radixscope_state::requests;
use radixscope_state::tree::NodeId;

/// Hashes of a prompt's full blocks (reference §5.10).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hashes {
    /// Of each block alone.
    Local(Vec<u64>),
    /// Of each block and everything before it.
    Chain(Vec<u64>),
}

impl Hashes {
    fn as_prompt(&self) -> requests::Prompt<'_> {
        match self {
            Hashes::Local(hashes) => requests::Prompt::Local(hashes),
            Hashes::Chain(hashes) => requests::Prompt::Chain(hashes),
        }
    }
}

/// A prompt of known blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// Its full blocks.
    pub hashes: Hashes,
    /// Its length. `None`: exactly its full blocks.
    pub isl_tokens: Option<u64>,
    /// Tokens per block that the hashes were made with, where that is known.
    pub block_size_tokens: Option<u32>,
}

impl Blocks {
    /// Of token ids, cut and hashed as Dynamo's router does it.
    pub fn of_tokens(tokens: &[u32], block_size_tokens: u32, seed: Seed) -> Self {
        let blocking = Blocking { block_size_tokens, is_eagle: false };
        let hashes = block_hashes(tokens, blocking, seed).iter().map(|hash| hash.0).collect();
        Self {
            hashes: Hashes::Local(hashes),
            isl_tokens: Some(tokens.len() as u64),
            block_size_tokens: Some(block_size_tokens),
        }
    }
}

/// What a prompt came to; its hashes are in the buffers.
pub(super) struct ResolvedPrompt {
    pub(super) request: RoutedRequest,
    pub(super) full_blocks: u64,
}

impl WhatIf {
    /// Fills `local` and `chain`, by the tree of `pool`.
    pub(super) fn resolve(
        &mut self,
        cluster: &Cluster,
        pool: PoolIx,
        question: &WhatIfRequest,
    ) -> Result<ResolvedPrompt, Refused> {
        self.local.clear();
        self.chain.clear();
        let of_cluster = cluster.block_tokens(pool);
        match &question.prompt {
            Prompt::Blocks(blocks) => {
                let known = blocks.block_size_tokens.or(of_cluster);
                let size = same_size(known, question.block_size_tokens)?;
                if let Some(other) = of_cluster.filter(|&other| other != size) {
                    self.notes.push(format!(
                        "The pool's blocks have {other} tokens: a prompt cut into blocks of {size} finds none of them."
                    ));
                }
                let prompt = blocks.hashes.as_prompt();
                let full = prompt.len() as u64;
                let isl_tokens = blocks.isl_tokens.unwrap_or(full.saturating_mul(size.into()));
                if blocks.isl_tokens.is_none() {
                    self.notes.push(format!(
                        "The prompt's length is taken as its {full} full blocks, {isl_tokens} tokens; up to {} more may follow.",
                        size - 1
                    ));
                }
                let found = found(isl_tokens, size)?;
                if found.full_blocks < full {
                    return Err(Refused::BadLength { isl_tokens, blocks: full, block_size_tokens: size });
                }
                prompt.local_in(cluster.trees_in(pool), &mut self.local);
                prompt.chain(&mut self.chain);
                Ok(found)
            }
            Prompt::After { worker, block_hash, new_tokens } => {
                let size = same_size(of_cluster, question.block_size_tokens)?;
                let tree = cluster.tree(pool);
                let slot = cluster.slot(*worker);
                let node = slot.and_then(|slot| tree.find(slot, *block_hash));
                let node = node.filter(|&node| tree.is_attached(node));
                let mut at = node.ok_or_else(|| Refused::NoBlock {
                    worker: cluster
                        .worker(*worker)
                        .map_or_else(|| "unknown".to_owned(), |w| w.id.to_string()),
                    block_hash: *block_hash,
                })?;
                while at != NodeId::ROOT {
                    self.local.push(tree.tokens_hash(at));
                    let Some(parent) = tree.parent(at) else { break };
                    at = parent;
                }
                self.local.reverse();
                let own: Vec<u64> = self.local.iter().map(|hash| hash.0).collect();
                requests::Prompt::Local(&own).chain(&mut self.chain);
                let held = own.len() as u64 * u64::from(size);
                found(held.saturating_add(*new_tokens), size)
            }
            Prompt::Length { isl_tokens } => {
                let size = question.block_size_tokens.or(of_cluster).ok_or(Refused::NoBlockSize)?;
                self.notes.push(
                    "Only a length was given: nothing of the prompt is taken to be cached anywhere. Its token ids or block \
                     hashes are needed for that."
                        .to_owned(),
                );
                found(*isl_tokens, size)
            }
            // Handled elsewhere, without the tree.
            Prompt::Example | Prompt::Recorded(_) => Err(Refused::NoBlockSize),
        }
    }
}

/// Blocks known by their hashes have the size they were made with.
pub(super) fn same_size(known: Option<u32>, requested: Option<u32>) -> Result<u32, Refused> {
    match (known.filter(|&size| size > 0), requested) {
        (Some(known), Some(requested)) if known != requested => Err(Refused::Rechunk { known, requested }),
        (Some(size), _) | (None, Some(size)) => Ok(size),
        (None, None) => Err(Refused::NoBlockSize),
    }
}

fn found(isl_tokens: u64, block_size_tokens: u32) -> Result<ResolvedPrompt, Refused> {
    let request = RoutedRequest::new(isl_tokens, block_size_tokens);
    let full_blocks = isl_tokens / u64::from(block_size_tokens.max(1));
    if request.blocks() > MAX_PROMPT_BLOCKS {
        return Err(Refused::TooLong(request.blocks()));
    }
    Ok(ResolvedPrompt { request, full_blocks })
}
