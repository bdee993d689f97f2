//! One block in all its particulars.

use std::fmt::Write as _;

use super::element::Element;
use super::sums::Sums;
use super::{NotFound, OrNull, Picture};
use radixscope_model::id::{BlockHash, TokensHash, WorkerIx};
use radixscope_state::tree::NodeId;

/// Most places of one hash that are told.
pub const MAX_MATCHES: usize = 20;
/// Most elements above a block that are told, from the top.
pub const MAX_PATH: usize = 1_000;

/// Which block is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// What one of these workers, or anyone, calls so.
    Block(BlockHash, Option<Vec<WorkerIx>>),
    /// What the router calls so: there may be several, under different prefixes.
    Tokens(TokensHash),
}

impl Picture {
    /// A block and what is above and below it, as JSON. Of several places of one hash all are named, and the first of them is
    /// told of.
    ///
    /// # Errors
    /// There is no such block.
    pub fn block(&self, asked: &Asked, window_ms: u64) -> Result<String, NotFound> {
        let mut places = match asked {
            Asked::Block(hash, None) => self.places(*hash),
            Asked::Block(hash, Some(workers)) => vec![self.find(*hash, Some(workers), "hash")?],
            Asked::Tokens(hash) => self.tree().find_tokens(*hash, MAX_MATCHES),
        };
        places.truncate(MAX_MATCHES);
        let name = || match asked {
            Asked::Block(hash, _) => format!("hash={hash}"),
            Asked::Tokens(hash) => format!("tokens={hash}"),
        };
        let &node = places.first().ok_or_else(|| NotFound::Block(name()))?;
        let mut json = String::from("{");
        self.write_head(&mut json);
        json.push_str(",\"block\":{");
        self.write_block(node, window_ms, &mut json);
        json.push_str("},\"matches\":[");
        for (i, &place) in places.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(
                json,
                "{comma}{{\"block_hash\":\"{}\",\"tokens_hash\":\"{}\",\"position\":{}}}",
                self.tree().block_hash(place),
                self.tree().tokens_hash(place),
                OrNull(self.position(place)),
            );
        }
        json.push_str("]}");
        Ok(json)
    }

    fn position(&self, node: NodeId) -> Option<u32> {
        self.tree().is_attached(node).then(|| self.tree().position(node))
    }

    fn write_block(&self, node: NodeId, window_ms: u64, json: &mut String) {
        let tree = self.tree();
        let heads = self.heads(node);
        // The chain as the tree shows it; the block may be in the midst of it.
        let &head = heads.last().unwrap_or(&node);
        let sums = Sums::below(tree, head, None, self.since(window_ms));
        let (end, len) = sums.chain(tree, 0);
        let (mut place, mut index) = (0, 0);
        while sums.row(place).node != node
            && place != end
            && let Some(next) = sums.branches(place).next()
        {
            (place, index) = (next, index + 1);
        }
        let (row, requests) = (sums.row(place), self.requests(window_ms));
        let begin = self.position(head);
        let (block, tokens) = (tree.block_hash(node), tree.tokens_hash(node));
        let element = Element {
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
        };
        element.write(self, json);
        let tokens_of = |copies: u64| self.block_size_tokens.map(|size| copies.saturating_mul(size.into()));
        let _ = write!(
            json,
            ",\"block_hash_hex\":\"{:#018x}\",\"tokens_hash_hex\":\"{:#018x}\",\"subtree_copies_tokens\":{},\
             \"requests\":{},\"hits_window_ms\":{window_ms},\"branches\":{},\
             \"chain\":{{\"block_hash\":\"{}\",\"position\":{},\"len\":{len},\"index\":{index}}},\"names\":[",
            block.0,
            tokens.0,
            OrNull(tokens_of(row.copies)),
            OrNull(requests),
            tree.children(node).len(),
            tree.block_hash(head),
            OrNull(begin),
        );
        self.write_names(node, json);
        let _ = write!(json, "],\"path_elements\":{},\"path\":[", heads.len());
        for (i, &above) in heads.iter().take(MAX_PATH).enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(
                json,
                "{comma}{{\"block_hash\":\"{}\",\"tokens_hash\":\"{}\"}}",
                tree.block_hash(above),
                tree.tokens_hash(above)
            );
        }
        json.push(']');
    }

    /// What each holder calls the block, where they differ.
    fn write_names(&self, node: NodeId, json: &mut String) {
        let tree = self.tree();
        if tree.hashes_agree(node) {
            return;
        }
        let owners = tree.owners(node).iter();
        let named = owners.filter_map(|ix| self.workers.get(ix.at()).map(|worker| (ix, worker)));
        for (i, (ix, worker)) in named.enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(
                json,
                "{comma}{{\"worker_id\":\"{}\",\"dp_rank\":{},\"block_hash\":\"{}\"}}",
                worker.id,
                worker.dp_rank,
                tree.block_hash_by(node, ix),
            );
        }
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
