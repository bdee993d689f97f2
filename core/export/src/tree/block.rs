//! One block in all its particulars.

use serde::Serialize;

use super::element::Element;
use super::sums::{Chain, Sums};
use super::{Hashes, NotFound, TreeSnapshot};
use radixscope_model::id::{BlockHash, Millis, Seq, Slot, TokensHash, Worker, WorkerIx};
use radixscope_state::tree::NodeId;

/// Most positions of one hash in a response.
pub const MAX_MATCHES: usize = 20;
/// Most elements above a block in a response, from the root.
pub const MAX_PATH: usize = 1_000;

/// Which block is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockQuery {
    /// What one of these workers, or anyone, calls so.
    Block(BlockHash, Option<Vec<WorkerIx>>),
    /// What the router calls so: there may be several, under different prefixes.
    Tokens(TokensHash),
}

/// A block and what is above and below it.
#[derive(Serialize)]
pub struct BlockResponse<'p> {
    seq: Seq,
    at_ms: Millis,
    pool: &'p str,
    block: Block<'p>,
    /// Every place of the hash; the first is the one in `block`.
    matches: Vec<Match>,
}

#[derive(Serialize)]
struct Match {
    #[serde(flatten)]
    hashes: Hashes,
    position: Option<u32>,
}

#[derive(Serialize)]
struct Block<'p> {
    /// Counted from this block on.
    #[serde(flatten)]
    element: Element<'p>,
    block_hash_hex: String,
    tokens_hash_hex: String,
    subtree_copies_tokens: Option<u64>,
    requests: Option<u32>,
    hits_window_ms: u64,
    chain: InChain,
    names: Vec<Name>,
    /// All elements from the top; `path` has the first [`MAX_PATH`].
    path_elements: usize,
    path: Vec<Hashes>,
}

/// The element that a block is in, and where in it.
#[derive(Serialize)]
struct InChain {
    block_hash: BlockHash,
    position: Option<u32>,
    len: u32,
    index: u32,
}

/// What a holder calls a block.
#[derive(Serialize)]
struct Name {
    #[serde(flatten)]
    worker: Worker,
    block_hash: BlockHash,
}

impl TreeSnapshot {
    /// A block and what is above and below it. If a hash is at several positions, all are listed, and the first is described
    /// of.
    ///
    /// # Errors
    /// There is no such block.
    pub fn block(&self, asked: &BlockQuery, window_ms: u64) -> Result<BlockResponse<'_>, NotFound> {
        let mut places = match asked {
            BlockQuery::Block(hash, None) => self.places(*hash),
            BlockQuery::Block(hash, Some(workers)) => vec![self.find(*hash, Some(workers), "hash")?],
            BlockQuery::Tokens(hash) => self.tree().find_tokens(*hash, MAX_MATCHES),
        };
        places.truncate(MAX_MATCHES);
        let name = || match asked {
            BlockQuery::Block(hash, _) => format!("hash={hash}"),
            BlockQuery::Tokens(hash) => format!("tokens={hash}"),
        };
        let &node = places.first().ok_or_else(|| NotFound::Block(name()))?;
        let matches =
            places.iter().map(|&place| Match { hashes: self.hashes(place), position: self.position(place) });
        Ok(BlockResponse {
            seq: self.seq,
            at_ms: self.at_ms,
            pool: &self.pool_name,
            block: self.particulars(node, window_ms),
            matches: matches.collect(),
        })
    }

    fn position(&self, node: NodeId) -> Option<u32> {
        self.tree().is_attached(node).then(|| self.tree().position(node))
    }

    fn particulars(&self, node: NodeId, window_ms: u64) -> Block<'_> {
        let tree = self.tree();
        let heads = self.heads(node);
        // The chain as the tree shows it; the block may be in the midst of it.
        let &head = heads.last().unwrap_or(&node);
        let sums = Sums::below(tree, head, None, self.since(window_ms));
        let Chain { end, len, .. } = sums.chain(tree, 0);
        let (mut place, mut index) = (0, 0);
        while sums.row(place).node != node
            && place != end
            && let Some(next) = sums.branches(place).next()
        {
            (place, index) = (next, index + 1);
        }
        let (row, requests) = (sums.row(place), self.requests(window_ms));
        let begin = self.position(head);
        let element = Element {
            picture: self,
            level: None,
            first: node,
            last: sums.row(end).node,
            len: len - index,
            position: self.position(node),
            blocks: row.blocks,
            shared: row.shared,
            copies: row.copies,
            depth: begin.map(|begin| begin + row.bottom),
            hits: requests.map(|_| row.hits),
            touched: tree.touched(node),
            subtree_touched: row.touched,
            branches: tree.children(node).len(),
        };
        let Hashes { block_hash, tokens_hash } = self.hashes(node);
        Block {
            block_hash_hex: format!("{:#018x}", block_hash.0),
            tokens_hash_hex: format!("{:#018x}", tokens_hash.0),
            subtree_copies_tokens: self.tokens(row.copies),
            requests,
            hits_window_ms: window_ms,
            chain: InChain { block_hash: tree.block_hash(head), position: begin, len, index },
            names: self.names(node),
            path_elements: heads.len(),
            path: heads.iter().take(MAX_PATH).map(|&above| self.hashes(above)).collect(),
            element,
        }
    }

    /// What each holder calls the block, where they differ.
    fn names(&self, node: NodeId) -> Vec<Name> {
        let tree = self.tree();
        if tree.hashes_agree(node) {
            return Vec::new();
        }
        let name = |slot: Slot| {
            Some(Name { worker: self.worker(slot)?, block_hash: tree.block_hash_by(node, slot) })
        };
        tree.owners(node).iter().filter_map(name).collect()
    }

    /// First blocks of the elements from the top, or from a missing parent, to that of `node`. Walks up.
    fn heads(&self, node: NodeId) -> Vec<NodeId> {
        let tree = self.tree();
        let mut heads = Vec::new();
        let mut at = node;
        loop {
            let above = tree.parent(at).filter(|&above| above != NodeId::ROOT);
            let goes_on = above.is_some_and(|above| {
                tree.children(above).len() == 1 && tree.owners_key(above) == tree.owners_key(at)
            });
            if !goes_on {
                heads.push(at);
            }
            match above {
                Some(above) => at = above,
                None => break,
            }
        }
        heads.reverse();
        heads
    }
}
