//! Depth and breadth beyond what engines make: time linear in the input, stack independent of it, memory used
//! again. The sizes are such that anything quadratic would take minutes.

use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;
use radixscope_state::tree::{NodeId, OverlapRule, Tree};

use crate::tree::model::block;
use crate::tree::snapshots::{bytes, restored};

const W: Slot = Slot(0);

fn deep_chain(len: u64) -> Vec<Block> {
    (1..=len).map(|i| block(i, i % 7)).collect()
}

#[test]
fn a_chain_of_a_million_blocks_is_stored_walked_written_read_and_removed() {
    let blocks = deep_chain(1_000_000);
    let mut tree = Tree::default();
    tree.store(W, None, &blocks, 0);
    assert_eq!(tree.max_depth(), 1_000_000);
    let mut scores = Vec::new();
    for rule in [OverlapRule::Prefix, OverlapRule::PathNodes] {
        tree.overlap(rule, blocks.iter().map(|b| b.tokens_hash), &mut scores);
        assert_eq!(scores, [1_000_000]);
    }
    let again = restored(&bytes(&tree), &tree);
    assert_eq!(again.digest(), tree.digest());
    for b in blocks.iter().rev() {
        assert!(tree.remove(W, b.block_hash));
    }
    assert_eq!(tree.allocated(), 0);
}

#[test]
fn a_chain_removed_from_its_root_stays_until_its_last_block_goes() {
    let blocks = deep_chain(100_000);
    let mut tree = Tree::default();
    tree.store(W, None, &blocks, 0);
    for b in &blocks[..99_999] {
        assert!(tree.remove(W, b.block_hash));
    }
    assert_eq!((tree.allocated(), tree.totals().nodes), (100_000, 1));
    assert!(tree.remove(W, blocks[99_999].block_hash));
    assert_eq!(tree.allocated(), 0);
}

#[test]
fn a_chain_received_backwards_joins_block_by_block() {
    let blocks = deep_chain(100_000);
    let mut tree = Tree::default();
    for pair in blocks.windows(2).rev() {
        tree.store(W, Some(pair[0].block_hash), &pair[1..], 0);
    }
    assert_eq!(tree.totals().unattached, 99_999);
    tree.store(W, None, &blocks[..1], 0);
    assert_eq!((tree.totals().unattached, tree.max_depth()), (0, 100_000));
    assert_eq!(tree.orphan_parents().count(), 0);
}

#[test]
fn branches_that_wait_at_every_depth_of_a_chain_join_when_the_chain_comes() {
    let blocks = deep_chain(50_000);
    let mut tree = Tree::default();
    for (i, b) in blocks.iter().enumerate() {
        tree.store(W, Some(b.block_hash), &[block(1_000_000 + i as u64, 99)], 0);
    }
    tree.store(W, None, &blocks, 0);
    assert_eq!((tree.totals().unattached, tree.totals().nodes), (0, 100_000));
}

#[test]
fn two_hundred_thousand_siblings_come_and_go() {
    let mut tree = Tree::default();
    for i in 0..200_000 {
        tree.store(W, None, &[block(i, i)], 0);
    }
    assert_eq!(tree.children(NodeId::ROOT).len(), 200_000);
    for i in 0..200_000 {
        let mut scores = Vec::new();
        if i % 1000 == 0 {
            tree.overlap(OverlapRule::Prefix, [TokensHash(i)], &mut scores);
            assert_eq!(scores, [1]);
        }
        assert!(tree.remove(W, BlockHash(i)));
    }
    assert_eq!(tree.allocated(), 0);
}

#[test]
fn hundreds_of_workers_share_a_block() {
    let mut tree = Tree::default();
    let blocks = deep_chain(50);
    for w in 0..300 {
        tree.store(Slot(w), None, &blocks[..50 - usize::from(w) % 7], 0);
    }
    let first = tree.find(W, BlockHash(1)).unwrap();
    assert_eq!(tree.owners(first).len(), 300);
    assert!(tree.owners(first).iter().map(|w| w.0).eq(0..300));
    let mut scores = Vec::new();
    tree.overlap(OverlapRule::Prefix, blocks.iter().map(|b| b.tokens_hash), &mut scores);
    assert!(scores.iter().enumerate().all(|(w, &score)| score as usize == 50 - w % 7));
    for w in (0..300).step_by(3) {
        assert_eq!(tree.clear(Slot(w)), 50 - u64::from(w) % 7);
    }
    let first = tree.find(Slot(1), BlockHash(1)).unwrap();
    assert_eq!(tree.owners(first).len(), 200);
}

#[test]
fn memory_of_removed_blocks_is_used_again() {
    let mut tree = Tree::default();
    let mut after_first = 0;
    for round in 0..20u64 {
        for chain in 0..1000u64 {
            let at = |i: u64| (round << 32) + chain * 100 + i;
            let blocks: Vec<Block> = (0..20).map(|i| block(at(i), at(i))).collect();
            tree.store(Slot((chain % 80) as u16), None, &blocks, 0);
        }
        if round == 0 {
            after_first = tree.heap_bytes();
        }
        for w in 0..80 {
            tree.clear(Slot(w));
        }
        assert_eq!(tree.allocated(), 0);
    }
    assert!(tree.heap_bytes() <= after_first * 3 / 2, "{} then {}", after_first, tree.heap_bytes());
}

#[test]
fn a_block_takes_36_bytes_and_its_place_in_the_index() {
    const BLOCKS: u64 = 1 << 20;
    let mut tree = Tree::default();
    for first in (0..BLOCKS).step_by(64) {
        let blocks: Vec<Block> = (first..first + 64).map(|i| block(i, i)).collect();
        tree.store(Slot((first / 64 % 8) as u16), None, &blocks, 0);
    }
    let bytes = tree.heap_bytes() as f64 / BLOCKS as f64;
    println!("{bytes:.2} bytes a block");
    // The index is just over the size at which it doubles, and takes eleven bytes a block; elsewhere it takes less.
    assert!((36.0..=48.0).contains(&bytes), "{bytes} bytes a block");
}

#[test]
fn unused_owner_sets_are_dropped() {
    let mut tree = Tree::default();
    tree.store(W, None, &[block(1, 1)], 0);
    // A block walks through thousands of distinct sets of owners.
    for i in 0..40_000u32 {
        let worker = Slot(1 + (i.wrapping_mul(2_654_435_761) >> 20) as u16 % 400);
        if !tree.remove(worker, BlockHash(1)) {
            tree.store(worker, None, &[block(1, 1)], 0);
        }
    }
    assert!(tree.heap_bytes() < 8 << 20, "{} bytes for one block", tree.heap_bytes());
}
