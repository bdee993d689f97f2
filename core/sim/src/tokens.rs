//! Token ids as a pure function of text and position, and the blocks they make.
//! Must not know workers or requests.

use radixscope_model::record::Block;
use radixscope_router::hash::{Hasher, Seed, chain_hash};

/// Vocabulary of Llama 3: token ids are below it.
const VOCABULARY: u64 = 128_000;

/// Token id at `position` of the text named `text`.
pub fn token_id(text: u64, position: u32) -> u32 {
    (mix(text ^ u64::from(position).wrapping_mul(0x9e37_79b9_7f4a_7c15)) % VOCABULARY) as u32
}

/// The finaliser of SplitMix64: neighbouring numbers give unrelated ones.
pub(super) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Turns token ids into a growing chain of full blocks.
#[derive(Debug)]
pub(super) struct BlockHasher {
    block_size_tokens: u32,
    hasher: Hasher,
}

impl BlockHasher {
    pub(super) fn new(block_size_tokens: u32) -> Self {
        Self { block_size_tokens, hasher: Hasher::default() }
    }

    /// Appends to `blocks` every full block of the first `len_tokens` tokens that is not there yet.
    pub(super) fn extend(&mut self, blocks: &mut Vec<Block>, len_tokens: u32, token_at: impl Fn(u32) -> u32) {
        let full = len_tokens / self.block_size_tokens;
        for index in blocks.len() as u32..full {
            let first = index * self.block_size_tokens;
            let tokens = (first..first + self.block_size_tokens).map(&token_at);
            let tokens_hash = self.hasher.block(Seed::PLAIN, tokens, &[]);
            let block_hash = chain_hash(blocks.last().map(|b| b.block_hash), tokens_hash);
            blocks.push(Block { block_hash, tokens_hash });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks_of(tokens: &[u32], block_size_tokens: u32) -> Vec<Block> {
        let mut blocks = Vec::new();
        BlockHasher::new(block_size_tokens).extend(&mut blocks, tokens.len() as u32, |p| tokens[p as usize]);
        blocks
    }

    #[test]
    fn blocks_of_a_text_are_hashed_as_the_router_does() {
        let tokens: Vec<u32> = (1..=8).collect();
        let (own, chain): (Vec<_>, Vec<_>) =
            blocks_of(&tokens, 4).iter().map(|b| (b.tokens_hash.0, b.block_hash.0)).unzip();
        assert_eq!(own, [14643705804678351452, 16777012769546811212]);
        assert_eq!(chain, [14643705804678351452, 4945711292740353085]);
    }

    #[test]
    fn the_tail_of_a_text_is_hashed_once_its_block_is_full() {
        let mut blocks = blocks_of(&[1, 2, 3, 4, 5, 6, 7], 4);
        assert_eq!(blocks.len(), 1);
        BlockHasher::new(4).extend(&mut blocks, 8, |p| p + 1);
        assert_eq!(blocks, blocks_of(&[1, 2, 3, 4, 5, 6, 7, 8], 4));
    }
}
