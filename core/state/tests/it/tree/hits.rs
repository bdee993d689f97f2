//! Hits and times of first storing: whatever happens to the blocks, both are where and what a plain list of paths says.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use radixscope_model::id::{BlockHash, Slot};
use radixscope_model::record::Block;
use radixscope_state::tree::{HIT_WINDOW, MAX_HITS, NodeId, Step, Tree};

use crate::tree::model::{Model, Op, Path, Top, anarchic_op, block, chain, engine_op, path_of};
use crate::tree::snapshots::{bytes, restored};

const W: Slot = Slot(0);
/// Time between two changes, such that hits grow too old in the course of a history.
const STEP: u32 = 700;

/// Times of first storing by path, and paths where requests' held prefixes ended.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Times {
    first_stored: BTreeMap<Path, u32>,
    ends: Vec<(Path, u32)>,
}

impl Times {
    pub(crate) fn store(&mut self, path: &Path, touched: u32) {
        self.first_stored.entry(path.clone()).or_insert(touched);
    }

    pub(crate) fn hit(&mut self, held: Option<&Path>, above: usize, touched: u32) {
        let (top, path) = held.cloned().unwrap_or((Top::Root, Vec::new()));
        // What waits for a parent has nothing above its first block.
        let least = usize::from(top != Top::Root);
        let len = path.len().saturating_sub(above).max(least);
        self.ends.push(((top, path[..len].to_vec()), touched));
        self.expire(touched);
    }

    pub(crate) fn expire(&mut self, now: u32) {
        self.ends.retain(|(_, touched)| now - touched <= HIT_WINDOW);
    }

    /// What waited at `waiting` is now below `path`.
    pub(crate) fn join(&mut self, waiting: Top, path: &Path) {
        let moved = |below: &[u64]| (path.0, [&path.1, below].concat());
        for (at, _) in self.ends.iter_mut().filter(|(at, _)| at.0 == waiting) {
            *at = moved(&at.1);
        }
        for ((top, below), touched) in std::mem::take(&mut self.first_stored) {
            let at = if top == waiting { moved(&below) } else { (top, below) };
            let first = self.first_stored.entry(at).or_insert(touched);
            *first = touched.min(*first);
        }
    }

    /// Of the blocks only those at `needed` are left.
    pub(crate) fn drop_unneeded(&mut self, needed: &BTreeSet<Path>) {
        self.first_stored.retain(|path, _| needed.contains(path));
        for (at, _) in &mut self.ends {
            while !needed.contains(at) && *at != (Top::Root, Vec::new()) {
                if at.1.pop().is_none() {
                    at.0 = Top::Root;
                }
            }
        }
    }
}

/// Every node with its path, the root and orphan parents included.
fn places(tree: &Tree) -> BTreeMap<NodeId, Path> {
    let mut places = BTreeMap::new();
    for beginning in std::iter::once(NodeId::ROOT).chain(tree.orphan_parents()) {
        let top = match beginning {
            NodeId::ROOT => Top::Root,
            orphan_parent => {
                Top::Missing(tree.tokens_hash(orphan_parent).0 as u16, tree.block_hash(orphan_parent).0)
            }
        };
        for step in tree.walk(beginning) {
            let Step::Enter { node, depth } = step else { continue };
            let path = if depth == 0 { Vec::new() } else { path_of(tree, node) };
            places.insert(node, (top, path));
        }
    }
    places
}

fn check(tree: &Tree, model: &Model) {
    let places = places(tree);
    let Times { first_stored, ends } = &model.times;
    let got: Vec<(Path, u32)> = tree.hits().map(|(node, at)| (places[&node].clone(), at)).collect();
    assert_eq!(&got, ends);
    for (&node, path) in &places {
        if !path.1.is_empty() {
            assert_eq!(Some(&tree.first_stored(node)), first_stored.get(path), "{path:?}");
        }
        for since in [0, ends.last().map_or(0, |end| end.1.saturating_sub(2 * STEP)), u32::MAX] {
            let want = ends.iter().filter(|(at, touched)| at == path && *touched >= since).count();
            assert_eq!(tree.hits_at(node, since) as usize, want, "{path:?} since {since}");
        }
    }
    for since in [0, STEP * 20, u32::MAX] {
        let want = ends.iter().filter(|(_, touched)| *touched >= since).count();
        assert_eq!(tree.requests(since) as usize, want);
    }
}

/// A history of changes and requests: one of orderly engines, or anarchy.
fn history(most: usize) -> impl Strategy<Value = Vec<Op>> {
    use proptest::collection::vec;
    let hit = |hash: BoxedStrategy<u64>| {
        let worker = proptest::sample::select(&[0u16, 1, 63][..]);
        (worker, hash, 0usize..4).prop_map(|(worker, hash, above)| Op::Hit { worker, hash, above })
    };
    let path = vec(0u64..3, 1..6);
    let chained = (path, 1u64..3).prop_map(|(path, seed)| chain(seed, &path)).boxed();
    prop_oneof![
        vec(prop_oneof![3 => engine_op(2), 2 => hit(chained)], 1..most),
        vec(prop_oneof![3 => anarchic_op(), 2 => hit((0u64..9).boxed())], 1..most),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_every_change_hits_and_first_stores_are_where_the_model_has_them(ops in history(60)) {
        let (mut tree, mut model) = (Tree::default(), Model::default());
        for (i, op) in ops.iter().enumerate() {
            let now = i as u32 * STEP;
            op.apply(&mut tree, now);
            model.apply(op, now);
            if i % 4 == 0 {
                tree.expire_hits(now);
                model.times.expire(now);
            }
            check(&tree, &model);
        }
    }

    #[test]
    fn a_tree_from_bytes_has_the_same_hits_and_first_stores(
        before in history(50), after in history(30), limit in prop_oneof![3u32..20, Just(1_000)],
    ) {
        let mut tree = Tree::with_limit(limit);
        for (i, op) in before.iter().enumerate() {
            op.apply(&mut tree, i as u32 * STEP);
        }
        let parts = bytes(&tree);
        let mut other = restored(&parts, &tree);
        prop_assert_eq!(bytes(&other), parts);
        for (i, op) in after.iter().enumerate() {
            prop_assert_eq!(tree.digest(), other.digest());
            op.apply(&mut tree, (before.len() + i) as u32 * STEP);
            op.apply(&mut other, (before.len() + i) as u32 * STEP);
        }
        prop_assert_eq!(tree.digest(), other.digest());
        let places = (places(&tree), places(&other));
        let hits = |tree: &Tree, places: &BTreeMap<NodeId, Path>| -> Vec<(Path, u32)> {
            tree.hits().map(|(node, at)| (places[&node].clone(), at)).collect()
        };
        prop_assert_eq!(hits(&tree, &places.0), hits(&other, &places.1));
        let firsts = |tree: &Tree, places: &BTreeMap<NodeId, Path>| -> BTreeMap<Path, u32> {
            places.iter().map(|(&node, path)| (path.clone(), tree.first_stored(node))).collect()
        };
        prop_assert_eq!(firsts(&tree, &places.0), firsts(&other, &places.1));
    }

    #[test]
    fn at_the_limit_an_end_is_at_the_deepest_block_of_its_path_that_is_left(
        ops in proptest::collection::vec(engine_op(2), 1..60),
        prompts in proptest::collection::vec(proptest::collection::vec(0u64..3, 1..6), 60),
        limit in 1u32..16,
    ) {
        let mut tree = Tree::with_limit(limit);
        let mut ends: Vec<Vec<u64>> = Vec::new();
        // How much of a path is in the tree, and its last node there.
        let left = |tree: &Tree, path: &[u64]| {
            let mut at = (0, NodeId::ROOT);
            for &tokens in path {
                let Some(child) = tree.child(at.1, radixscope_model::id::TokensHash(tokens)) else { break };
                at = (at.0 + 1, child);
            }
            at
        };
        for (i, (op, prompt)) in ops.iter().zip(&prompts).enumerate() {
            op.apply(&mut tree, i as u32);
            for path in &mut ends {
                path.truncate(left(&tree, path).0);
            }
            let (len, node) = left(&tree, prompt);
            tree.hit(node, i as u32);
            ends.push(prompt[..len].to_vec());
            let got: Vec<Vec<u64>> = tree.hits().map(|(node, _)| path_of(&tree, node)).collect();
            prop_assert_eq!(&got, &ends);
        }
    }
}

fn run(hashes: std::ops::Range<u64>) -> Vec<Block> {
    hashes.map(|i| block(i, i)).collect()
}

#[test]
fn no_more_ends_are_kept_than_there_is_room_for_and_the_oldest_go() {
    let mut tree = Tree::default();
    tree.store(W, None, &run(0..3), 0);
    let nodes: Vec<NodeId> = (0..3).map(|h| tree.find(W, BlockHash(h)).unwrap()).collect();
    let count = MAX_HITS as u32 + 1_000;
    for i in 0..count {
        tree.hit(nodes[i as usize % 3], i / 100);
    }
    assert_eq!((tree.hits().len(), tree.requests(0)), (MAX_HITS, MAX_HITS as u32));
    assert_eq!(tree.hits().next().map(|(_, at)| at), Some(10), "the first thousand went");
    assert_eq!(nodes.iter().map(|&node| tree.hits_at(node, 0)).sum::<u32>(), MAX_HITS as u32);
    let again = restored(&bytes(&tree), &tree);
    assert_eq!(again.digest(), tree.digest());
    assert_eq!(again.requests(600), tree.requests(600));
}

#[test]
fn ends_expire_when_time_advances() {
    let mut tree = Tree::default();
    tree.store(W, None, &run(0..2), 0);
    let node = tree.find(W, BlockHash(1)).unwrap();
    let without = tree.digest();
    tree.hit(node, 10);
    let with = tree.digest();
    assert_ne!(with, without);
    tree.expire_hits(10 + HIT_WINDOW);
    assert_eq!(tree.hits_at(node, 0), 1);
    tree.expire_hits(11 + HIT_WINDOW);
    assert_eq!((tree.hits_at(node, 0), tree.requests(0), tree.digest()), (0, 0, without));
}

#[test]
fn a_time_that_goes_back_counts_as_the_latest() {
    let mut tree = Tree::default();
    tree.hit(NodeId::ROOT, 50_000);
    tree.hit(NodeId::ROOT, 7);
    assert!(tree.hits().eq([(NodeId::ROOT, 50_000); 2]));
}

#[test]
fn the_digest_covers_where_and_when_but_neither_order_nor_id() {
    let hit = |stores: [u64; 2], hits: [(u64, u32); 2]| {
        let mut tree = Tree::default();
        for first in stores {
            tree.store(W, None, &run(first..first + 5), 0);
        }
        for (hash, at) in hits {
            tree.hit(tree.find(W, BlockHash(hash)).unwrap(), at);
        }
        tree.digest()
    };
    let one = hit([0, 100], [(3, 9), (101, 9)]);
    assert_eq!(one, hit([100, 0], [(101, 9), (3, 9)]));
    assert_ne!(one, hit([0, 100], [(3, 8), (101, 9)]));
    assert_ne!(one, hit([0, 100], [(2, 9), (101, 9)]));
}

#[test]
fn a_chain_full_of_ends_goes_block_by_block_in_linear_time() {
    const LEN: u64 = 200_000;
    let mut tree = Tree::default();
    tree.store(W, None, &run(0..LEN), 0);
    for i in 0..MAX_HITS as u64 {
        tree.hit(tree.find(W, BlockHash(LEN - 1 - i)).unwrap(), 0);
    }
    for i in (0..LEN).rev() {
        tree.remove(W, BlockHash(i));
    }
    assert_eq!((tree.allocated(), tree.hits_at(NodeId::ROOT, 0)), (0, MAX_HITS as u32));
    assert!(tree.heap_bytes() < 16 << 20);
}

#[test]
fn a_block_that_comes_again_is_first_stored_then() {
    let mut tree = Tree::with_limit(16);
    let stored = |tree: &Tree| tree.first_stored(tree.find(W, BlockHash(0)).unwrap());
    tree.store(W, None, &run(0..1), 5);
    tree.store(W, None, &run(0..1), 6);
    assert_eq!(stored(&tree), 5, "it was never gone");
    for i in 1..20 {
        tree.store(W, None, &run(i..i + 1), 6 + i as u32);
    }
    assert_eq!(tree.find(W, BlockHash(0)), None, "the limit took it");
    tree.store(W, None, &run(0..1), 90);
    assert_eq!(stored(&tree), 90);
}

#[test]
fn what_ended_at_a_missing_parent_is_at_the_parent_once_it_comes() {
    let mut tree = Tree::default();
    tree.store(W, Some(BlockHash(9)), &[block(1, 1)], 0);
    tree.store(W, Some(BlockHash(9)), &[block(2, 2)], 0);
    tree.hit(tree.find(W, BlockHash(1)).unwrap(), 0);
    tree.remove(W, BlockHash(1));
    tree.store(W, None, &[block(9, 9)], 0);
    assert_eq!(tree.hits_at(tree.find(W, BlockHash(9)).unwrap(), 0), 1);
}

#[test]
fn an_empty_tree_with_ends_goes_through_bytes() {
    let mut tree = Tree::default();
    tree.hit(NodeId::ROOT, 4);
    let again = restored(&bytes(&tree), &tree);
    assert_eq!((again.digest(), again.requests(4)), (tree.digest(), 1));
}

#[test]
fn blocks_are_found_by_their_tokens_those_of_known_paths_first() {
    let mut tree = Tree::default();
    tree.store(W, Some(BlockHash(900)), &[block(1, 7)], 0);
    tree.store(W, None, &[block(2, 7), block(3, 7), block(4, 8)], 0);
    tree.remove(W, BlockHash(2));
    let found = |most| {
        let nodes = tree.find_tokens(radixscope_model::id::TokensHash(7), most);
        nodes.into_iter().map(|node| tree.block_hash(node).0).collect::<Vec<_>>()
    };
    assert_eq!(found(9), [3, 1], "no worker holds the first block of the path");
    assert_eq!((found(1), found(0)), (vec![3], vec![]));
    assert_eq!(tree.find_tokens(radixscope_model::id::TokensHash(0), 9), []);
}
