//! Known small trees, and random ones held against a forest planted anew.

use super::*;
use crate::id::{BlockHash, TokensHash};
use crate::record::Block;
use proptest::prelude::*;

fn blocks(tokens: impl IntoIterator<Item = u64>) -> Vec<Block> {
    let block = |t| Block { block_hash: BlockHash(t * 1000), tokens_hash: TokensHash(t) };
    tokens.into_iter().map(block).collect()
}

fn w(i: u16) -> WorkerIx {
    WorkerIx(i)
}

/// Worker 0 holds 1 2 3 4 5, worker 1 holds 1 2 6 7, worker 2 holds 9.
fn forked(order: Order) -> Tree {
    let mut tree = Tree::default();
    tree.grow_forest(Arrangement { order, ..Arrangement::default() });
    tree.store(w(0), None, &blocks(1..=5), 0);
    tree.store(w(1), None, &blocks([1, 2, 6, 7]), 0);
    tree.store(w(2), None, &blocks([9]), 0);
    tree.settle_forest();
    tree
}

type Shape = (u64, u32, u32, u32, u32);

/// First tokens hash, position, length, left edge, width; in pre-order.
fn shapes(tree: &Tree) -> Vec<Shape> {
    let forest = tree.forest().expect("grown");
    let mut shapes = Vec::new();
    let mut todo: Vec<ChainId> = forest.children(None).iter().rev().copied().collect();
    while let Some(id) = todo.pop() {
        let chain = forest.chain(id);
        let tokens = tree.tokens_hash(chain.first).0;
        shapes.push((tokens, chain.position, chain.len, forest.left(id), chain.width()));
        todo.extend(forest.children(Some(id)).iter().rev());
    }
    shapes
}

#[test]
fn runs_with_the_same_owners_are_one_box_and_larger_siblings_stand_left() {
    let tree = forked(Order::LeftHeavy);
    assert_eq!(shapes(&tree), [(1, 0, 2, 0, 7), (3, 2, 3, 0, 3), (6, 2, 2, 3, 2), (9, 0, 1, 7, 1)]);
    let sums = tree.forest().expect("grown").sums();
    assert_eq!((sums.blocks, sums.shared, sums.copies, sums.bottom, sums.chains), (8, 2, 2, 5, 4));
}

#[test]
fn stable_order_ignores_sizes() {
    let mut tree = forked(Order::Stable);
    tree.store(w(2), None, &blocks([9, 10, 11, 12, 13, 14, 15, 16, 17, 18]), 0);
    tree.settle_forest();
    assert_eq!(shapes(&tree).iter().map(|s| s.0).collect::<Vec<_>>(), [1, 3, 6, 9]);
    tree.grow_forest(Arrangement::default());
    tree.settle_forest();
    assert_eq!(shapes(&tree)[0].0, 9);
}

#[test]
fn a_point_finds_its_box() {
    let tree = forked(Order::LeftHeavy);
    let forest = tree.forest().expect("grown");
    let at = |x, y| forest.at(x, y).map(|id| tree.tokens_hash(forest.chain(id).first).0);
    assert_eq!(
        [at(0.5, 0.5), at(0.5, 4.5), at(3.5, 2.0), at(7.5, 0.0)],
        [Some(1), Some(3), Some(6), Some(9)]
    );
    assert_eq!(
        [at(3.5, 4.5), at(5.5, 2.5), at(8.0, 0.0)],
        [None; 3],
        "beyond the end, a chain's own units, right of all"
    );
}

#[test]
fn what_is_narrower_than_a_column_is_gathered() {
    let tree = forked(Order::LeftHeavy);
    let mut seen = Vec::new();
    let window = Window { x0: 0.0, x1: 8.0, top: 0.0, bottom: 5.0, columns: 2 };
    tree.forest().expect("grown").visit(&window, |what| seen.push(what));
    let runs: Vec<_> = seen
        .iter()
        .filter_map(|what| match what {
            Seen::Run(run) => Some((run.chains, run.blocks, run.holder, run.top, run.bottom)),
            _ => None,
        })
        .collect();
    assert_eq!(runs, [(1, 1, Holder::One(w(2)), 0, 1), (2, 5, Holder::Several, 2, 5)]);
    let slivers = seen.iter().filter(|what| matches!(what, Seen::Sliver(_))).count();
    assert_eq!((slivers, seen.len()), (2, 5));
}

/// Sums over a subtree, made from the tree block by block.
fn naive(tree: &Tree, from: NodeId, depth: u32) -> (u32, u32, u64, u32) {
    let (mut held, mut shared, mut copies, mut bottom) = (0, 0, 0, 0);
    for step in tree.walk(from) {
        if let super::super::Step::Enter { node, depth: below } = step {
            let owners = tree.owners(node).len() as u64;
            held += u32::from(owners > 0);
            shared += u32::from(owners > 1);
            copies += owners.saturating_sub(1);
            bottom = bottom.max(depth + below + 1);
        }
    }
    (held, shared, copies, bottom)
}

#[derive(Clone, Debug)]
enum Op {
    Store { worker: u16, parent: Option<u64>, tokens: Vec<u64> },
    Remove { worker: u16, token: u64 },
    Clear { worker: u16 },
    Settle,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0u16..3, proptest::option::of(1u64..24), proptest::collection::vec(1u64..24, 1..7))
            .prop_map(|(worker, parent, tokens)| Op::Store { worker, parent, tokens }),
        6 => (0u16..3, 1u64..24).prop_map(|(worker, token)| Op::Remove { worker, token }),
        1 => (0u16..3).prop_map(|worker| Op::Clear { worker }),
        2 => Just(Op::Settle),
    ];
    proptest::collection::vec(op, 1..60)
}

proptest! {
    #[test]
    fn a_forest_that_grew_equals_one_planted_anew(ops in ops(), limit in prop_oneof![Just(16u32), Just(1000)]) {
        let mut tree = Tree::with_limit(limit);
        tree.grow_forest(Arrangement::default());
        for (i, op) in ops.into_iter().enumerate() {
            match op {
                Op::Store { worker, parent, tokens } => {
                    tree.store(w(worker), parent.map(|p| BlockHash(p * 1000)), &blocks(tokens), i as u32);
                }
                Op::Remove { worker, token } => {
                    tree.remove(w(worker), BlockHash(token * 1000));
                }
                Op::Clear { worker } => {
                    tree.clear(w(worker));
                }
                Op::Settle => tree.settle_forest(),
            }
        }
        tree.settle_forest();
        let grown = shapes(&tree);
        {
            let forest = tree.forest().expect("grown");
            for at in tree.arena.ids().skip(1) {
                let node = &tree.arena[at];
                let is_in = !node.is_free() && !node.is_unattached();
                prop_assert_eq!(forest.chain_of(at).is_some(), is_in);
                if let Some(id) = forest.chain_of(at) {
                    let chain = forest.chain(id);
                    prop_assert_eq!(chain.owners, tree.owners_key(at));
                    if chain.first == at {
                        let s = &chain.sums;
                        prop_assert_eq!((s.blocks, s.shared, s.copies, s.bottom), naive(&tree, at, chain.position));
                        prop_assert_eq!(chain.position, tree.position(at));
                    }
                }
            }
        }
        tree.forest = None;
        tree.grow_forest(Arrangement::default());
        prop_assert_eq!(grown, shapes(&tree));
    }

    #[test]
    fn a_window_shows_every_unit_once(ops in ops(), columns in 1u32..30) {
        let mut tree = Tree::default();
        for op in ops {
            if let Op::Store { worker, tokens, .. } = op {
                tree.store(w(worker), None, &blocks(tokens), 0);
            }
        }
        tree.grow_forest(Arrangement::default());
        let forest = tree.forest().expect("grown");
        let window = Window { x0: 0.0, x1: f64::from(forest.width()), top: 0.0, bottom: 100.0, columns };
        let mut seen = 0;
        forest.visit(&window, |what| match what {
            Seen::Chain { id, .. } => seen += tree.held_in(forest.chain(id)),
            Seen::Run(run) => seen += run.blocks,
            Seen::Sliver(sliver) => assert!(sliver.column < columns),
        });
        prop_assert_eq!(seen, forest.sums().blocks);
    }
}

#[test]
fn a_prefix_that_ends_within_a_box_counts_what_is_at_and_below_it() {
    let tree = forked(Order::LeftHeavy);
    let prefix = |worker, hash| {
        let p = tree.prefix(tree.find(w(worker), BlockHash(hash)).expect("held")).expect("attached");
        ((p.position, p.place, p.chain_len), (p.blocks, p.shared, p.copies), p.bottom, p.children)
    };
    assert_eq!(prefix(0, 1000), ((0, 0, 2), (7, 2, 2), 5, 1));
    assert_eq!(prefix(1, 2000), ((1, 1, 2), (6, 1, 1), 5, 2));
    assert_eq!(prefix(0, 4000), ((3, 1, 3), (2, 0, 0), 5, 1));
    assert_eq!(prefix(0, 5000), ((4, 2, 3), (1, 0, 0), 5, 0));
}
