//! Dynamo's hashes over token ids: of a block alone, and of a block with everything before it (reference §5.10).
//!
//! For plain text they are the same in every version from 0.8 to 1.6. Must not know who holds or asks for a block.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use radixscope_model::id::{BlockHash, TokensHash};

/// Seed of block hashes of plain text, and of every link of a chain.
const PLAIN: u64 = 1337;
/// Seed of the hash of a cache salt.
const SALT: u64 = 1;
/// Bytes of one token id in a hash.
const TOKEN_BYTES: usize = size_of::<u32>();

/// What a block's hash depends on beside its tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(u64);

impl Seed {
    /// Plain text; all that 0.8 and 0.9 know.
    pub const PLAIN: Seed = Seed(PLAIN);

    /// With a LoRA adapter (≥ 1.0) and a cache salt (later 1.x). An empty string counts as absent.
    pub fn of(lora_name: Option<&str>, cache_salt: Option<&str>) -> Seed {
        let term = |text: Option<&str>, seed| {
            text.filter(|t| !t.is_empty()).map_or(0, |t| xxh3_64_with_seed(t.as_bytes(), seed))
        };
        Seed(PLAIN.wrapping_add(term(lora_name, 0)).wrapping_add(term(cache_salt, SALT)))
    }
}

/// Hexadecimal digits of a digest, and how many of them Dynamo's hash of an image is.
const DIGEST_DIGITS: usize = 64;
const HASH_DIGITS: usize = 16;

/// Dynamo's hash of an image or the like by the engine's name of it: the front of a digest, or a hash of any other name (1.6).
pub fn multimodal_hash(name: &[u8]) -> u64 {
    let is_digest = name.len() == DIGEST_DIGITS && name.iter().all(u8::is_ascii_hexdigit);
    let front =
        name.get(..HASH_DIGITS).filter(|_| is_digest).and_then(|front| std::str::from_utf8(front).ok());
    let hash = front.and_then(|front| u64::from_str_radix(front, 16).ok());
    hash.unwrap_or_else(|| xxhash_rust::xxh3::xxh3_64(name))
}

/// How a prompt is cut into blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocking {
    /// Tokens of one block as the router counts; 0 gives no blocks.
    pub block_size_tokens: u32,
    /// Eagle speculative decoding: each hash also covers the token after its block.
    pub is_eagle: bool,
}

/// Computes hashes; keeps only memory to be used again.
#[derive(Clone, Debug, Default)]
pub struct Hasher {
    bytes: Vec<u8>,
}

impl Hasher {
    /// The router's hash of one block: its `tokens` and the hashes of the images or other objects in it.
    pub fn block(
        &mut self,
        seed: Seed,
        tokens: impl IntoIterator<Item = u32>,
        multimodal: &[u64],
    ) -> TokensHash {
        self.bytes.clear();
        for token in tokens {
            self.bytes.extend_from_slice(&token.to_le_bytes());
        }
        if !multimodal.is_empty() {
            let mut sorted = multimodal.to_vec();
            sorted.sort();
            sorted.iter().for_each(|hash| self.bytes.extend_from_slice(&hash.to_le_bytes()));
        }
        TokensHash(xxh3_64_with_seed(&self.bytes, seed.0))
    }
}

/// The router's hashes of all full blocks of a prompt of text; what is left over at its end is not hashed.
pub fn block_hashes(tokens: &[u32], blocking: Blocking, seed: Seed) -> Vec<TokensHash> {
    let stride = blocking.block_size_tokens as usize;
    if stride == 0 {
        return Vec::new();
    }
    let window = stride + usize::from(blocking.is_eagle);
    let mut hasher = Hasher { bytes: Vec::with_capacity(window * TOKEN_BYTES) };
    let starts = (0..tokens.len()).step_by(stride).take_while(|start| start + window <= tokens.len());
    starts.map(|start| hasher.block(seed, tokens[start..start + window].iter().copied(), &[])).collect()
}

/// The hash of a block and everything before it: what the mocker calls its block hash, and what requests carry as
/// their token sequence. `parent` is that of the block before.
pub fn chain_hash(parent: Option<BlockHash>, own: TokensHash) -> BlockHash {
    let Some(parent) = parent else { return BlockHash(own.0) };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&parent.0.to_le_bytes());
    bytes[8..].copy_from_slice(&own.0.to_le_bytes());
    BlockHash(xxh3_64_with_seed(&bytes, PLAIN))
}

/// The chain over a whole prompt.
pub fn chain(own: &[TokensHash]) -> Vec<BlockHash> {
    let link = |above: &mut Option<BlockHash>, &own: &TokensHash| {
        *above = Some(chain_hash(*above, own));
        *above
    };
    own.iter().scan(None, link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(tokens: &[u32], block_size_tokens: u32) -> Vec<u64> {
        let blocking = Blocking { block_size_tokens, is_eagle: false };
        block_hashes(tokens, blocking, Seed::PLAIN).iter().map(|h| h.0).collect()
    }

    fn chained(own: &[u64]) -> Vec<u64> {
        let own: Vec<TokensHash> = own.iter().map(|&h| TokensHash(h)).collect();
        chain(&own).iter().map(|h| h.0).collect()
    }

    fn one(seed: Seed, tokens: &[u32], multimodal: &[u64]) -> u64 {
        Hasher::default().block(seed, tokens.iter().copied(), multimodal).0
    }

    #[test]
    fn hashes_equal_the_vectors_computed_independently() {
        let tokens: Vec<u32> = (1..=12).collect();
        let blocks = own(&tokens, 4);
        assert_eq!(blocks, [14643705804678351452, 16777012769546811212, 483935686894639516]);
        assert_eq!(chained(&blocks), [14643705804678351452, 4945711292740353085, 12583592247330656132]);
        let tokens: Vec<u32> = (0..64).collect();
        assert_eq!(own(&tokens[..32], 16), [15310707395893867146, 15292316782987903195]);
        assert_eq!(chained(&own(&tokens[..32], 16)), [15310707395893867146, 13769157705258532664]);
        assert_eq!(own(&tokens[..32], 32), [5756925433886871916]);
        assert_eq!(own(&tokens, 64), [3480597578098033343]);
        assert_eq!(one(Seed::PLAIN, &[], &[]), 15128690059815094969);
    }

    #[test]
    fn adapter_and_salt_change_the_seed_and_empty_ones_do_not() {
        let lora = Seed::of(Some("my-lora"), None);
        assert_eq!(lora.0, 12827409268353072861);
        assert_eq!(one(lora, &[1, 2, 3, 4], &[]), 15671544057904749233);
        let salt = Seed::of(None, Some("s1"));
        assert_eq!(salt.0, 13745234085381429708);
        assert_eq!(one(salt, &[1, 2, 3, 4], &[]), 3402648387515217860);
        assert_eq!(Seed::of(Some(""), Some("")), Seed::PLAIN);
    }

    #[test]
    fn images_count_in_whatever_order_they_are_named() {
        assert_eq!(one(Seed::PLAIN, &[1, 2, 3, 4], &[42]), 14000361058806882387);
        assert_eq!(one(Seed::PLAIN, &[1], &[3, 2]), one(Seed::PLAIN, &[1], &[2, 3]));
    }

    #[test]
    fn an_image_is_named_by_the_front_of_its_digest_or_by_a_hash() {
        assert_eq!(multimodal_hash(&b"a3".repeat(32)), 0xa3a3_a3a3_a3a3_a3a3);
        assert_eq!(multimodal_hash(b"image-0"), xxhash_rust::xxh3::xxh3_64(b"image-0"));
        assert_ne!(multimodal_hash(&b"zz".repeat(32)), multimodal_hash(&b"zy".repeat(32)));
    }

    #[test]
    fn with_eagle_a_block_covers_the_token_after_it() {
        let eagle = Blocking { block_size_tokens: 4, is_eagle: true };
        assert_eq!(block_hashes(&[1, 2, 3, 4, 5], eagle, Seed::PLAIN), [TokensHash(1914873892905420881)]);
        assert!(block_hashes(&[1, 2, 3, 4], eagle, Seed::PLAIN).is_empty());
        assert_eq!(block_hashes(&[1, 2, 3, 4, 5, 6, 7, 8, 9], eagle, Seed::PLAIN).len(), 2);
    }

    #[test]
    fn hashes_equal_those_seen_on_the_wire_of_a_real_dynamo() {
        let tokens = [
            3, 2086, 203, 1140, 998, 460, 2288, 1423, 87, 16, 1722, 87, 16, 859, 89, 980, 368, 1925, 2132,
            18, 381, 73, 998, 460, 2288, 1423, 87, 16, 1722, 87, 16, 859, 89, 980, 368, 1925, 2132, 18, 381,
            73, 998, 460, 2288, 1423, 87, 16, 1722, 87,
        ];
        let blocks = own(&tokens, 16);
        assert_eq!(blocks, [12128555125535577085, 7625024881536107986, 2576030650997921669]);
        assert_eq!(chained(&blocks), [12128555125535577085, 9530828268919501585, 14586695072876706265]);
        let long = [
            7585370176810793920,
            8781325924315300312,
            15531002972164205331,
            17411909183618070679,
            11218477035612597577,
            9805470739332507249,
            77862808600554338,
        ];
        let want = [
            7585370176810793920,
            5214045902298629111,
            11251714421823650919,
            2657608401742381948,
            17722738961137020821,
            17751910831491268224,
            938045547881740595,
        ];
        assert_eq!(chained(&long), want);
        let short = [7585370176810793920, 13967042560713726215];
        assert_eq!(chained(&short), [7585370176810793920, 11186640057831448559]);
    }

    #[test]
    fn the_tail_of_a_prompt_and_blocks_of_no_tokens_are_not_hashed() {
        assert_eq!(own(&[1, 2, 3, 4, 5, 6, 7], 4).len(), 1);
        assert!(own(&[1, 2, 3], 4).is_empty());
        assert!(own(&[1, 2, 3], 0).is_empty());
    }
}
