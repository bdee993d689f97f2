//! Behaviour of the tree, one sentence a test. Sequences of any kind are tested against a model in `tests/it/tree`.

use super::{Holdings, NodeId, OverlapRule, Tree};
use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;

const A: Slot = Slot(0);
const B: Slot = Slot(1);

/// Blocks whose tokens hash is a hundred less than the engine's hash.
fn blocks(hashes: &[u64]) -> Vec<Block> {
    let block = |&h: &u64| Block { block_hash: BlockHash(h), tokens_hash: TokensHash(h - 100) };
    hashes.iter().map(block).collect()
}

/// The same blocks by the names of another engine.
fn renamed(hashes: &[u64], by: u64) -> Vec<Block> {
    let other = |b: Block| Block { block_hash: BlockHash(b.block_hash.0 + by), ..b };
    blocks(hashes).into_iter().map(other).collect()
}

fn tree(stores: &[(Slot, &[u64])]) -> Tree {
    let mut tree = Tree::default();
    for (worker, hashes) in stores {
        tree.store(*worker, None, &blocks(hashes), 0);
    }
    tree
}

fn overlap(tree: &Tree, rule: OverlapRule, hashes: &[u64]) -> Vec<u32> {
    let mut scores = Vec::new();
    tree.overlap(rule, blocks(hashes).iter().map(|b| b.tokens_hash), &mut scores);
    scores
}

#[test]
fn a_run_of_blocks_is_a_path() {
    let tree = tree(&[(A, &[101, 102, 103])]);
    let last = tree.find(A, BlockHash(103)).unwrap();
    assert_eq!((tree.position(last), tree.max_depth()), (2, 3));
    assert_eq!(tree.tokens_hash(last), TokensHash(3));
}

#[test]
fn equal_prefixes_of_two_workers_are_one_path() {
    let tree = tree(&[(A, &[101, 102, 103]), (B, &[101, 102, 104])]);
    let totals = tree.totals();
    assert_eq!((totals.nodes, totals.shared, totals.resident), (4, 2, 6));
    let shared = tree.find(B, BlockHash(102)).unwrap();
    assert!(tree.owners(shared).iter().eq([A, B]));
    assert_eq!(tree.children(shared).len(), 2);
}

#[test]
fn copies_are_the_holders_beyond_the_first_of_what_is_in_the_picture() {
    let mut tree = tree(&[(A, &[101, 102, 103]), (B, &[101, 102])]);
    let copies = |tree: &Tree| tree.totals().copies();
    assert_eq!(copies(&tree), 2);
    tree.store(B, Some(BlockHash(999)), &blocks(&[150, 151]), 0);
    assert_eq!(copies(&tree), 2, "blocks that wait for a parent are not duplicates");
    assert!(tree.remove(B, BlockHash(102)));
    assert_eq!(copies(&tree), 1);
}

#[test]
fn a_copy_stays_as_the_tree_was() {
    let mut tree = tree(&[(A, &[101, 102, 103]), (B, &[101, 104])]);
    tree.hit(NodeId::ROOT, 5);
    let copy = tree.copy_without_forest();
    assert_eq!((copy.digest(), copy.totals()), (tree.digest(), tree.totals()));
    assert_eq!(copy.find(B, BlockHash(104)), tree.find(B, BlockHash(104)));
    let before = tree.digest();
    tree.store(B, Some(BlockHash(104)), &blocks(&[105]), 0);
    assert!(tree.remove(A, BlockHash(103)));
    assert_eq!((copy.digest(), copy.max_depth()), (before, 3));
}

#[test]
fn removing_the_last_owner_frees_the_chain() {
    let mut tree = tree(&[(A, &[101, 102]), (B, &[101, 102])]);
    for worker in [A, B] {
        for hash in [102, 101] {
            assert!(tree.remove(worker, BlockHash(hash)));
        }
    }
    assert_eq!(tree.allocated(), 0);
    assert_eq!(tree.digest(), Tree::default().digest());
}

#[test]
fn a_hole_in_a_chain_keeps_what_is_below_it() {
    let mut tree = tree(&[(A, &[101, 102, 103])]);
    tree.remove(A, BlockHash(102));
    assert_eq!((tree.totals().nodes, tree.allocated()), (2, 3));
    assert_eq!(tree.find(A, BlockHash(102)), None);
    let outcome = tree.store(A, None, &blocks(&[101, 102]), 0);
    assert_eq!((outcome.new, outcome.known), (1, 1));
    assert_eq!(overlap(&tree, OverlapRule::Prefix, &[101, 102, 103]), [3]);
}

#[test]
fn the_prefix_rule_stops_at_a_hole_and_the_path_rule_counts_on() {
    let mut tree = tree(&[(A, &[101, 102, 103]), (B, &[101, 102, 103])]);
    tree.remove(A, BlockHash(102));
    let prompt = [101, 102, 103, 104];
    assert_eq!(overlap(&tree, OverlapRule::Prefix, &prompt), [1, 3]);
    assert_eq!(overlap(&tree, OverlapRule::PathNodes, &prompt), [2, 3]);
}

#[test]
fn both_rules_stop_where_no_worker_holds_the_block() {
    let mut tree = tree(&[(A, &[101, 102, 103]), (B, &[101, 102, 103])]);
    for worker in [A, B] {
        tree.remove(worker, BlockHash(102));
    }
    for rule in [OverlapRule::Prefix, OverlapRule::PathNodes] {
        assert_eq!(overlap(&tree, rule, &[101, 102, 103]), [1, 1]);
    }
}

#[test]
fn a_store_that_repeats_what_is_held_changes_nothing() {
    let mut tree = tree(&[(A, &[101, 102])]);
    let before = (tree.digest(), tree.totals());
    let outcome = tree.store(A, None, &blocks(&[101, 102]), 7);
    assert_eq!((outcome.new, outcome.known), (0, 2));
    assert_eq!((tree.digest(), tree.totals()), before);
    assert_eq!(tree.touched(tree.find(A, BlockHash(102)).unwrap()), 7, "but for the time");
}

#[test]
fn a_store_without_blocks_changes_nothing() {
    let mut tree = tree(&[(A, &[101])]);
    let before = tree.digest();
    assert!(!tree.store(A, None, &[], 0).parent_unknown);
    assert!(tree.store(A, Some(BlockHash(999)), &[], 0).parent_unknown);
    assert_eq!((tree.digest(), tree.allocated()), (before, 1));
}

#[test]
fn blocks_below_an_unknown_parent_wait_and_join_it_when_it_comes() {
    let mut tree = Tree::default();
    assert!(tree.store(A, Some(BlockHash(102)), &blocks(&[103, 104]), 0).parent_unknown);
    assert_eq!(tree.holdings(A), Holdings { resident: 2, unattached: 2, hidden: 0, further: 0 });
    assert_eq!((tree.totals().nodes, tree.max_depth()), (0, 0));
    assert_eq!(overlap(&tree, OverlapRule::Prefix, &[103]), [0]);
    tree.store(A, None, &blocks(&[101, 102]), 0);
    assert_eq!(tree.holdings(A), Holdings { resident: 4, unattached: 0, hidden: 0, further: 0 });
    assert_eq!(tree.digest(), self::tree(&[(A, &[101, 102, 103, 104])]).digest());
}

#[test]
fn a_parent_that_another_worker_holds_is_not_known() {
    let mut tree = tree(&[(A, &[101])]);
    assert!(tree.store(B, Some(BlockHash(101)), &blocks(&[102]), 0).parent_unknown);
    assert_eq!(tree.totals().unattached, 1);
}

#[test]
fn blocks_that_wait_can_be_removed_and_take_their_orphan_parent_along() {
    let mut tree = Tree::default();
    tree.store(A, Some(BlockHash(102)), &blocks(&[103, 104]), 0);
    assert!(tree.remove(A, BlockHash(104)) && tree.remove(A, BlockHash(103)));
    assert_eq!((tree.allocated(), tree.orphan_parents().count()), (0, 0));
}

#[test]
fn waiting_blocks_that_turn_out_to_be_known_ones_are_merged() {
    let mut tree = tree(&[(B, &[101, 102, 103])]);
    tree.store(A, Some(BlockHash(101)), &blocks(&[102, 103]), 0);
    tree.store(A, None, &blocks(&[101]), 0);
    assert_eq!((tree.totals().nodes, tree.totals().shared, tree.allocated()), (3, 3, 3));
}

#[test]
fn a_block_that_claims_to_be_its_own_ancestor_keeps_waiting() {
    let mut tree = Tree::default();
    tree.store(A, Some(BlockHash(103)), &blocks(&[101, 102, 103]), 0);
    assert_eq!((tree.totals().unattached, tree.orphan_parents().count()), (3, 1));
    assert_eq!(tree.clear(A), 3);
    assert_eq!(tree.allocated(), 0);
}

#[test]
fn a_block_stored_elsewhere_under_the_same_hash_has_moved() {
    let mut tree = tree(&[(A, &[101, 102])]);
    let elsewhere = [Block { block_hash: BlockHash(102), tokens_hash: TokensHash(77) }];
    assert_eq!(tree.store(A, None, &elsewhere, 0).new, 1);
    assert_eq!((tree.totals().resident, tree.totals().nodes), (2, 2));
    assert_eq!(tree.tokens_hash(tree.find(A, BlockHash(102)).unwrap()), TokensHash(77));
}

#[test]
fn a_block_stored_again_under_another_hash_is_held_under_both() {
    let mut tree = tree(&[(A, &[101])]);
    tree.store(A, None, &renamed(&[101], 50), 0);
    let node = tree.find(A, BlockHash(101)).unwrap();
    assert_eq!(tree.find(A, BlockHash(151)), Some(node));
    assert_eq!((tree.totals().resident, tree.holdings(A).resident, tree.holdings(A).further), (1, 1, 1));
    assert!(tree.remove(A, BlockHash(101)));
    assert_eq!((tree.block_hash(node), tree.holdings(A).further), (BlockHash(151), 0));
    assert!(tree.remove(A, BlockHash(151)));
    assert!(!tree.remove(A, BlockHash(151)));
    assert_eq!((tree.digest(), tree.allocated()), (Tree::default().digest(), 0));
}

#[test]
fn a_lower_tier_has_the_way_to_its_blocks_without_holding_it() {
    let device = tree(&[(A, &[101, 102, 103])]);
    let mut host = Tree::default();
    host.store_below(&device, A, Some(BlockHash(102)), &blocks(&[104, 105]), 0);
    assert_eq!((host.holdings(A).resident, host.totals().nodes, host.totals().unattached), (2, 2, 0));
    assert_eq!(host.position(host.find(A, BlockHash(104)).unwrap()), 2);
    assert_eq!(host.find(A, BlockHash(102)), None, "held on the device alone");
    // Blocks held already stay, and blocks with unknown parents wait.
    host.store_below(&device, A, Some(BlockHash(104)), &blocks(&[106]), 0);
    host.store_below(&device, A, Some(BlockHash(999)), &blocks(&[107]), 0);
    assert_eq!((host.holdings(A).resident, host.holdings(A).unattached), (4, 1));
    host.clear(A);
    assert_eq!(host.allocated(), 0, "nothing is left of the way");
}

#[test]
fn engines_with_different_seeds_share_paths_and_keep_their_own_names() {
    let mut tree = tree(&[(A, &[101, 102])]);
    tree.store(B, None, &renamed(&[101, 102], 50), 0);
    let node = tree.find(A, BlockHash(102)).unwrap();
    assert_eq!(tree.find(B, BlockHash(152)), Some(node));
    assert_eq!(tree.find(B, BlockHash(102)), None);
    assert!(!tree.hashes_agree(node));
    assert!(!tree.remove(B, BlockHash(102)), "a hash means something only within its worker");
    assert!(tree.remove(B, BlockHash(152)));
    assert!(tree.hashes_agree(node));
}

#[test]
fn a_name_that_no_worker_uses_is_forgotten() {
    let mut tree = tree(&[(A, &[101])]);
    tree.store(B, None, &renamed(&[101], 50), 0);
    tree.remove(A, BlockHash(101));
    let node = tree.find(B, BlockHash(151)).unwrap();
    assert_eq!(tree.block_hash(node), BlockHash(151));
    assert!(tree.hashes_agree(node));
    assert_eq!(tree.find_any(BlockHash(101)), None);
}

#[test]
fn a_name_that_moves_between_blocks_with_several_names_stays_known() {
    let mut tree = tree(&[(A, &[101]), (A, &[102])]);
    tree.store(B, None, &renamed(&[101], 50), 0);
    tree.store(B, None, &renamed(&[102], 60), 0);
    // B now calls the second block as it called the first.
    let second = [Block { block_hash: BlockHash(151), tokens_hash: TokensHash(2) }];
    tree.store(B, None, &second, 0);
    assert_eq!(tree.find(B, BlockHash(151)), tree.find(A, BlockHash(102)));
    assert!(tree.remove(B, BlockHash(151)));
    assert!(tree.remove(B, BlockHash(162)), "its other name");
    assert_eq!(tree.holdings(B), Holdings::default());
}

#[test]
fn removing_what_was_never_stored_changes_nothing() {
    let mut tree = tree(&[(A, &[101])]);
    let before = tree.digest();
    assert!(!tree.remove(A, BlockHash(999)));
    assert!(!tree.remove(B, BlockHash(101)));
    assert_eq!(tree.digest(), before);
}

#[test]
fn clearing_a_worker_leaves_the_others() {
    let mut tree = tree(&[(A, &[101, 102, 103]), (B, &[101, 104])]);
    tree.store(A, Some(BlockHash(999)), &blocks(&[500]), 0);
    assert_eq!(tree.clear(A), 4);
    assert_eq!(tree.holdings(A), Holdings::default());
    assert_eq!(tree.digest(), self::tree(&[(B, &[101, 104])]).digest());
    assert_eq!(tree.clear(A), 0);
}

#[test]
fn children_come_in_the_order_in_which_they_were_first_seen() {
    let mut tree = tree(&[(A, &[103]), (A, &[101]), (B, &[102]), (A, &[104])]);
    tree.remove(A, BlockHash(101));
    let order: Vec<u64> = tree.children(NodeId::ROOT).map(|n| tree.tokens_hash(n).0).collect();
    assert_eq!(order, [3, 2, 4]);
}

#[test]
fn the_digest_covers_position_hash_and_owner() {
    let digest = |worker, parent: &[u64], hash: u64, tokens: u64| {
        let mut tree = tree(&[(A, &[101, 102]), (B, &[101, 102])]);
        let block = Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(tokens) };
        tree.store(worker, parent.last().copied().map(BlockHash), &[block], 0);
        tree.digest()
    };
    let same = digest(A, &[101], 105, 5);
    assert_eq!(digest(A, &[101], 105, 5), same);
    assert_ne!(digest(B, &[101], 105, 5), same);
    assert_ne!(digest(A, &[102], 105, 5), same);
    assert_ne!(digest(A, &[101], 106, 5), same);
    assert_ne!(digest(A, &[101], 105, 6), same);
    assert_ne!(digest(A, &[], 105, 5), same);
}

#[test]
fn names_are_compared_where_another_worker_holds_the_block() {
    let mut tree = tree(&[(A, &[101, 102, 103])]);
    let alike = tree.store(B, None, &blocks(&[101, 102, 104]), 0);
    assert_eq!((alike.new, alike.compared, alike.differing), (3, 2, 0));
    let again = tree.store(B, None, &blocks(&[101, 102]), 0);
    assert_eq!((again.known, again.compared), (2, 0), "a block that it holds is not compared again");
    let other = tree.store(Slot(2), None, &renamed(&[101, 102, 105], 1_000), 0);
    assert_eq!((other.new, other.compared, other.differing), (3, 2, 2));
}
