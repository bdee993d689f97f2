//! The bound on memory: what leaves the picture, what stays true, and that equal input drops equal blocks.

use proptest::prelude::*;
use radixscope_model::id::{BlockHash, Slot};
use radixscope_model::record::Block;
use radixscope_state::tree::Tree;

use crate::tree::model::{Model, Op, block, ops};
use crate::tree::snapshots::{bytes, restored};

const W: Slot = Slot(0);

#[test]
fn the_coldest_leaves_leave_the_picture_and_are_counted() {
    let mut tree = Tree::with_limit(32);
    for i in 0..40u64 {
        tree.store(W, None, &[block(i, i)], i as u32);
    }
    assert!(tree.allocated() <= 32);
    assert_eq!(tree.totals().resident, 40);
    assert_eq!(tree.totals().hidden + tree.totals().nodes, 40);
    assert_eq!(tree.find(W, BlockHash(0)), None, "the coldest is out of the picture");
    assert!(tree.find(W, BlockHash(39)).is_some(), "the warmest is in it");
}

#[test]
fn blocks_outside_the_picture_are_no_copies() {
    let mut tree = Tree::with_limit(32);
    for i in 0..40u64 {
        for worker in 0..3 {
            tree.store(Slot(worker), None, &[block(i, i)], i as u32);
        }
    }
    let totals = tree.totals();
    assert!(totals.hidden > 0);
    assert_eq!((totals.shared, totals.copies()), (totals.nodes, 2 * totals.nodes));
}

#[test]
fn a_leaf_goes_before_what_it_hangs_on() {
    let mut tree = Tree::with_limit(32);
    let old: Vec<Block> = (0..20).map(|i| block(i, i)).collect();
    tree.store(W, None, &old, 0);
    let young: Vec<Block> = (100..113).map(|i| block(i, i)).collect();
    tree.store(W, None, &young, 9);
    // 33 nodes; down to 30: the three last blocks of the old chain.
    let held = |i| tree.find(W, BlockHash(i)).is_some();
    assert!((0..17).all(held) && !(17..20).any(held) && (100..113).all(held));
}

#[test]
fn removing_a_block_outside_the_picture_is_counted() {
    let mut tree = Tree::with_limit(16);
    for i in 0..20u64 {
        tree.store(W, None, &[block(i, i)], i as u32);
    }
    let hidden = tree.holdings(W).hidden;
    assert!(hidden > 0);
    assert!(tree.remove(W, BlockHash(0)));
    assert_eq!(tree.holdings(W).hidden, hidden - 1);
    assert_eq!(tree.totals().resident, 19);
    assert_eq!(tree.clear(W), 19);
    assert_eq!(tree.totals(), Tree::default().totals());
}

#[test]
fn one_chain_far_beyond_the_limit_is_cut_from_its_end_in_linear_time() {
    let blocks: Vec<Block> = (1..=1_000_000).map(|i| block(i, i)).collect();
    let mut tree = Tree::with_limit(10_000);
    tree.store(W, None, &blocks, 0);
    assert!(tree.allocated() <= 10_000);
    assert_eq!(tree.totals().resident, 1_000_000);
    assert!(tree.find(W, BlockHash(1)).is_some());
    assert_eq!(tree.find(W, BlockHash(1_000_000)), None);
}

#[test]
fn what_waits_for_a_parent_is_bounded_too() {
    let mut tree = Tree::with_limit(64);
    for i in 0..1000u64 {
        tree.store(W, Some(BlockHash(1_000_000 + i)), &[block(i, i)], i as u32);
        assert!(tree.allocated() <= 64);
    }
    assert_eq!(tree.totals().resident, 1000);
    let orphan_parents = tree.orphan_parents().count() as u64;
    assert_eq!(orphan_parents, tree.totals().unattached, "an orphan parent goes with what waits below it");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn live_and_restored_trees_drop_the_same(
        before in ops(60), after in ops(60), limit in 1u32..24, nap in 1u32..5,
    ) {
        let mut live = Tree::with_limit(limit);
        for (i, op) in before.iter().enumerate() {
            op.apply(&mut live, i as u32 / nap);
            prop_assert!(live.allocated() <= limit.max(1));
        }
        let mut other = restored(&bytes(&live), &live);
        prop_assert_eq!(live.digest(), other.digest());
        for (i, op) in after.iter().enumerate() {
            op.apply(&mut live, (before.len() + i) as u32 / nap);
            op.apply(&mut other, (before.len() + i) as u32 / nap);
            prop_assert_eq!(live.totals(), other.totals());
            prop_assert_eq!(live.digest(), other.digest());
        }
        prop_assert_eq!(bytes(&live), bytes(&other));
    }

    #[test]
    fn resident_stays_what_was_stored_and_not_removed(
        runs in proptest::collection::vec((0u16..70, 0u64..1000, 1u64..9), 1..60), limit in 8u32..64,
    ) {
        // Distinct chains, so that nothing is stored twice while it is out of the picture.
        let mut tree = Tree::with_limit(limit);
        let mut model = Model::default();
        for (i, (worker, _, len)) in runs.iter().enumerate() {
            let at = |k: u64| (i as u64) << 8 | k;
            let op = Op::Store {
                worker: *worker, parent: None, blocks: (0..*len).map(|k| (at(k), at(k))).collect(),
            };
            op.apply(&mut tree, i as u32);
            model.apply(&op, i as u32);
        }
        let held = |w: u16| model.workers.get(&w).map_or(0, |held| held.len() as u64);
        for w in 0..70 {
            let holdings = tree.holdings(Slot(w));
            prop_assert_eq!(holdings.resident + holdings.hidden, held(w));
        }
        for w in 0..70 {
            prop_assert_eq!(tree.clear(Slot(w)), held(w));
        }
        prop_assert_eq!(tree.totals().resident, 0);
    }
}
