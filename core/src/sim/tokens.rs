//! Token ids as a pure function of text and position, and Dynamo's hashes over them (reference §5.10).
//! Must not know who holds or asks for a block.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::id::{BlockHash, TokensHash};
use crate::record::Block;

/// Seed of Dynamo's block and chain hashes for plain text.
pub const HASH_SEED: u64 = 1337;
/// Vocabulary of Llama 3: token ids are below it.
const VOCABULARY: u64 = 128_000;
/// Bytes of one token id in a hash.
const TOKEN_BYTES: usize = size_of::<u32>();

/// Token id at `position` of the text named `text`.
pub fn token_id(text: u64, position: u32) -> u32 {
    // The finaliser of SplitMix64: neighbouring positions give unrelated ids.
    let mut x = text ^ u64::from(position).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) % VOCABULARY) as u32
}

/// Appends a token id as the hash reads it.
fn push_token(bytes: &mut Vec<u8>, token: u32) {
    bytes.extend_from_slice(&token.to_le_bytes());
}

/// The router's hash of one block's token ids, little-endian `u32` each.
fn tokens_hash(token_bytes: &[u8]) -> TokensHash {
    TokensHash(xxh3_64_with_seed(token_bytes, HASH_SEED))
}

/// The chain hash of a block below `parent`, which is what the mocker calls its `block_hash`.
fn chain_hash(parent: Option<BlockHash>, own: TokensHash) -> BlockHash {
    let Some(parent) = parent else { return BlockHash(own.0) };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&parent.0.to_le_bytes());
    bytes[8..].copy_from_slice(&own.0.to_le_bytes());
    BlockHash(xxh3_64_with_seed(&bytes, HASH_SEED))
}

/// Turns token ids into a growing chain of full blocks.
#[derive(Debug)]
pub(super) struct BlockHasher {
    block_size_tokens: u32,
    /// Bytes of the block being hashed; kept only to be used again.
    scratch: Vec<u8>,
}

impl BlockHasher {
    pub(super) fn new(block_size_tokens: u32) -> Self {
        Self { block_size_tokens, scratch: Vec::with_capacity(block_size_tokens as usize * TOKEN_BYTES) }
    }

    /// Appends to `blocks` every full block of the first `len_tokens` tokens that is not there yet.
    pub(super) fn extend(&mut self, blocks: &mut Vec<Block>, len_tokens: u32, token_at: impl Fn(u32) -> u32) {
        let full = len_tokens / self.block_size_tokens;
        for index in blocks.len() as u32..full {
            self.scratch.clear();
            let first = index * self.block_size_tokens;
            for position in first..first + self.block_size_tokens {
                push_token(&mut self.scratch, token_at(position));
            }
            let tokens_hash = tokens_hash(&self.scratch);
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

    fn hashes(blocks: &[Block]) -> (Vec<u64>, Vec<u64>) {
        blocks.iter().map(|b| (b.tokens_hash.0, b.block_hash.0)).unzip()
    }

    #[test]
    fn hashes_equal_the_vectors_computed_independently() {
        let tokens: Vec<u32> = (1..=12).collect();
        let (own, chain) = hashes(&blocks_of(&tokens, 4));
        assert_eq!(own, [14643705804678351452, 16777012769546811212, 483935686894639516]);
        assert_eq!(chain, [14643705804678351452, 4945711292740353085, 12583592247330656132]);
        let tokens: Vec<u32> = (0..64).collect();
        let (own, chain) = hashes(&blocks_of(&tokens[..32], 16));
        assert_eq!(own, [15310707395893867146, 15292316782987903195]);
        assert_eq!(chain, [15310707395893867146, 13769157705258532664]);
        assert_eq!(hashes(&blocks_of(&tokens[..32], 32)).0, [5756925433886871916]);
        assert_eq!(hashes(&blocks_of(&tokens, 64)).0, [3480597578098033343]);
        assert_eq!(tokens_hash(&[]).0, 15128690059815094969);
    }

    #[test]
    fn hashes_equal_those_seen_on_the_wire_of_a_real_dynamo() {
        let tokens = [
            3, 2086, 203, 1140, 998, 460, 2288, 1423, 87, 16, 1722, 87, 16, 859, 89, 980, 368, 1925, 2132,
            18, 381, 73, 998, 460, 2288, 1423, 87, 16, 1722, 87, 16, 859, 89, 980, 368, 1925, 2132, 18, 381,
            73, 998, 460, 2288, 1423, 87, 16, 1722, 87,
        ];
        let (own, chain) = hashes(&blocks_of(&tokens, 16));
        assert_eq!(own, [12128555125535577085, 7625024881536107986, 2576030650997921669]);
        assert_eq!(chain, [12128555125535577085, 9530828268919501585, 14586695072876706265]);
    }

    #[test]
    fn the_tail_of_a_text_is_hashed_once_its_block_is_full() {
        let mut blocks = blocks_of(&[1, 2, 3, 4, 5, 6, 7], 4);
        assert_eq!(blocks.len(), 1);
        BlockHasher::new(4).extend(&mut blocks, 8, |p| p + 1);
        assert_eq!(blocks, blocks_of(&[1, 2, 3, 4, 5, 6, 7, 8], 4));
    }
}
