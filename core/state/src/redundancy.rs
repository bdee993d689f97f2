//! What it costs that several workers hold the same blocks: copies beyond the first, in blocks, tokens and bytes. Pure.

use std::fmt::Write as _;

use crate::tree::Totals;
use crate::tree::forest::Prefix;
use radixscope_model::number_format::{count, digits, percent};
use radixscope_model::units::GIB;

/// Blocks of a subtree, or of everything, and how often they are held. Only blocks of known paths count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Redundancy {
    /// Distinct blocks that somebody holds.
    pub blocks: u64,
    /// Of those, held by two workers or more.
    pub shared: u64,
    /// Copies beyond the first: the sum of holders over the blocks, less `blocks`.
    pub copies: u64,
}

/// What a block is in other units. `None` is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockSize {
    /// Tokens of a block.
    pub tokens: Option<u32>,
    /// Bytes of KV cache that a token takes.
    pub bytes_per_token: Option<u64>,
}

impl BlockSize {
    /// Tokens of so many blocks.
    pub fn tokens(self, blocks: u64) -> Option<u64> {
        Some(blocks.saturating_mul(self.tokens?.into()))
    }

    /// Bytes of so many blocks.
    pub fn bytes(self, blocks: u64) -> Option<u64> {
        Some(self.tokens(blocks)?.saturating_mul(self.bytes_per_token?))
    }
}

impl From<Totals> for Redundancy {
    fn from(totals: Totals) -> Self {
        Self { blocks: totals.nodes, shared: totals.shared, copies: totals.copies() }
    }
}

impl From<&Prefix> for Redundancy {
    fn from(prefix: &Prefix) -> Self {
        Self { blocks: prefix.blocks.into(), shared: prefix.shared.into(), copies: prefix.copies }
    }
}

impl Redundancy {
    /// Blocks of memory that these take on all workers together: every holder's counted.
    pub fn held(&self) -> u64 {
        self.blocks.saturating_add(self.copies)
    }

    /// Share of the distinct blocks that two workers or more hold; `None` where nothing is held.
    pub fn shared_share(&self) -> Option<f64> {
        (self.blocks > 0).then(|| self.shared as f64 / self.blocks as f64)
    }

    /// Share of the memory these take that goes to copies; `None` where nothing is held.
    pub fn copies_share(&self) -> Option<f64> {
        (self.held() > 0).then(|| self.copies as f64 / self.held() as f64)
    }

    /// What it means, in a sentence with its denominator.
    pub fn sentence(&self, size: BlockSize) -> String {
        let Some(share) = self.copies_share() else { return "No block is cached here.".to_owned() };
        let held = count(self.held());
        if self.copies == 0 {
            return format!("Each of the {held} blocks here is cached on one worker only: no duplicates.");
        }
        let mut text = format!(
            "Of {held} blocks of memory that the workers use for these, {} ({}) are copies of another worker's blocks",
            count(self.copies),
            percent(share)
        );
        if let Some(tokens) = size.tokens(self.copies) {
            let _ = write!(text, ": {} tokens", count(tokens));
        }
        if let Some(bytes) = size.bytes(self.copies) {
            let _ = write!(text, ", {}", gib(bytes));
        }
        text.push('.');
        text
    }
}

/// Bytes in GiB with two to three digits that count.
pub fn gib(bytes: u64) -> String {
    match bytes as f64 / GIB as f64 {
        none if bytes == 0 => format!("{} GiB", digits(none)),
        small if small < 0.01 => "<0.01 GiB".to_owned(),
        gib => format!("{} GiB", digits(gib)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use crate::tree::forest::Arrangement;
    use radixscope_model::id::{BlockHash, Slot, TokensHash};
    use radixscope_model::record::Block;

    fn tree(stores: &[(u16, &[u64])]) -> Tree {
        let mut tree = Tree::default();
        tree.build_forest(Arrangement::default());
        for &(worker, hashes) in stores {
            let block = |&h: &u64| Block { block_hash: BlockHash(h), tokens_hash: TokensHash(h) };
            let blocks: Vec<Block> = hashes.iter().map(block).collect();
            tree.store(Slot(worker), None, &blocks, 0);
        }
        tree.update_forest();
        tree
    }

    #[test]
    fn copies_are_holders_beyond_the_first_in_all_and_below_a_block() {
        let tree = tree(&[(0, &[1, 2, 3]), (1, &[1, 2]), (2, &[1, 9])]);
        let all = Redundancy::from(tree.totals());
        assert_eq!(all, Redundancy { blocks: 4, shared: 2, copies: 3 });
        assert_eq!((all.held(), all.shared_share(), all.copies_share()), (7, Some(0.5), Some(3.0 / 7.0)));
        let second = tree.find(Slot(0), BlockHash(2)).and_then(|node| tree.prefix(node));
        let second = Redundancy::from(&second.expect("attached"));
        assert_eq!(second, Redundancy { blocks: 2, shared: 1, copies: 1 });
    }

    #[test]
    fn blocks_outside_the_picture_are_no_copies() {
        let mut tree = tree(&[(0, &[1, 2]), (1, &[1])]);
        let lost = Block { block_hash: BlockHash(8), tokens_hash: TokensHash(8) };
        tree.store(Slot(1), Some(BlockHash(7)), &[lost], 0);
        assert_eq!(tree.totals().unattached, 1);
        assert_eq!(Redundancy::from(tree.totals()), Redundancy { blocks: 2, shared: 1, copies: 1 });
    }

    #[test]
    fn the_sentence_says_of_how_many_and_in_every_unit_that_is_known() {
        let some = Redundancy { blocks: 3_000, shared: 500, copies: 1_000 };
        assert_eq!(
            some.sentence(BlockSize::default()),
            "Of 4,000 blocks of memory that the workers use for these, 1,000 (25 %) are copies of another worker's blocks."
        );
        let size = BlockSize { tokens: Some(16), bytes_per_token: Some(131_072) };
        assert!(
            some.sentence(size).ends_with("another worker's blocks: 16,000 tokens, 1.95 GiB."),
            "{}",
            some.sentence(size)
        );
        assert_eq!(gib(1), "<0.01 GiB");
        let single = Redundancy { blocks: 3, shared: 0, copies: 0 };
        assert!(single.sentence(size).ends_with("no duplicates."));
        assert_eq!(Redundancy::default().copies_share(), None);
    }
}
