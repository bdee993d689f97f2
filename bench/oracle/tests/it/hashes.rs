//! Our hashes equal those of Dynamo's crate.

use dynamo_kv_router::compute_block_hash_for_seq;
use dynamo_kv_router::protocols::{
    BlockExtraInfo, BlockHashOptions, BlockMmObjectInfo, LocalBlockHash, compute_seq_hash_for_block,
};
use proptest::prelude::*;
use radixscope_model::id::TokensHash;
use radixscope_router::hash::{Blocking, Hasher, Seed, block_hashes, chain};
use radixscope_sim::token_id;

fn name() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(prop_oneof![Just(String::new()), "[a-z/-]{1,12}".prop_map(String::from)])
}

proptest! {
    #[test]
    fn hashes_of_blocks_and_chains_equal_dynamos(
        tokens in proptest::collection::vec(any::<u32>(), 0..200),
        block_size_tokens in 1u32..40,
        lora in name(),
        salt in name(),
        is_eagle in any::<bool>(),
    ) {
        let options = BlockHashOptions {
            block_mm_infos: None,
            lora_name: lora.as_deref(),
            cache_namespace: salt.as_deref(),
            is_eagle: Some(is_eagle),
        };
        let theirs = compute_block_hash_for_seq(&tokens, block_size_tokens, options);
        let blocking = Blocking { block_size_tokens, is_eagle };
        let ours = block_hashes(&tokens, blocking, Seed::of(lora.as_deref(), salt.as_deref()));
        prop_assert!(theirs.iter().map(|h| h.0).eq(ours.iter().map(|h| h.0)));
        let their_chain = compute_seq_hash_for_block(&theirs);
        prop_assert!(their_chain.iter().copied().eq(chain(&ours).iter().map(|h| h.0)));
    }

    #[test]
    fn hashes_with_images_equal_dynamos(
        tokens in proptest::collection::vec(any::<u32>(), 16),
        images in proptest::collection::vec(any::<u64>(), 1..4),
    ) {
        let objects = images.iter().map(|&mm_hash| BlockMmObjectInfo { mm_hash, offsets: vec![(0, 4)] });
        let infos = [Some(BlockExtraInfo { mm_objects: objects.collect() })];
        let options = BlockHashOptions { block_mm_infos: Some(&infos), ..BlockHashOptions::default() };
        let theirs = compute_block_hash_for_seq(&tokens, 16, options);
        let ours = Hasher::default().block(Seed::PLAIN, tokens, &images);
        prop_assert_eq!(theirs, vec![LocalBlockHash(ours.0)]);
    }

    #[test]
    fn the_simulators_texts_hash_as_dynamo_hashes_them(text in any::<u64>(), len in 1u32..300) {
        let tokens: Vec<u32> = (0..len).map(|position| token_id(text, position)).collect();
        let theirs = compute_block_hash_for_seq(&tokens, 16, BlockHashOptions::default());
        let ours = block_hashes(&tokens, Blocking { block_size_tokens: 16, is_eagle: false }, Seed::PLAIN);
        prop_assert!(theirs.iter().map(|h| TokensHash(h.0)).eq(ours));
    }
}
