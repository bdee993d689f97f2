//! Known small trees.

use super::*;
use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_model::record::Block;

pub(super) fn blocks(tokens: impl IntoIterator<Item = u64>) -> Vec<Block> {
    let block = |t| Block { block_hash: BlockHash(t * 1000), tokens_hash: TokensHash(t) };
    tokens.into_iter().map(block).collect()
}

pub(super) fn w(i: u16) -> Slot {
    Slot(i)
}

/// Worker 0 holds 1 2 3 4 5, worker 1 holds 1 2 6 7, worker 2 holds 9.
fn forked(order: Order) -> Tree {
    let mut tree = Tree::default();
    tree.build_forest(Arrangement { order, ..Arrangement::default() });
    tree.store(w(0), None, &blocks(1..=5), 0);
    tree.store(w(1), None, &blocks([1, 2, 6, 7]), 0);
    tree.store(w(2), None, &blocks([9]), 0);
    tree.update_forest();
    tree
}

pub(super) type Shape = (u64, u32, u32, u32, u32);

/// First tokens hash, position, length, left edge, width; in pre-order. A run that is too long for one chain counts as
/// one: where it is cut depends on how it came about.
pub(super) fn shapes(tree: &Tree) -> Vec<Shape> {
    let forest = tree.forest().expect("built");
    let mut shapes = Vec::new();
    let mut todo: Vec<ChainId> = forest.children(None).iter().rev().copied().collect();
    while let Some(id) = todo.pop() {
        let chain = forest.chain(id);
        let (mut last, mut len) = (id, chain.len);
        while let [only] = forest.children(Some(last))
            && forest.chain(*only).owners == chain.owners
        {
            last = *only;
            len += forest.chain(last).len;
        }
        let tokens = tree.tokens_hash(chain.first).0;
        shapes.push((tokens, chain.position, len, forest.left(id), chain.width()));
        todo.extend(forest.children(Some(last)).iter().rev());
    }
    shapes
}

#[test]
fn runs_with_the_same_owners_are_one_box_and_larger_siblings_stand_left() {
    let tree = forked(Order::LeftHeavy);
    assert_eq!(shapes(&tree), [(1, 0, 2, 0, 7), (3, 2, 3, 0, 3), (6, 2, 2, 3, 2), (9, 0, 1, 7, 1)]);
    let sums = tree.forest().expect("built").sums();
    assert_eq!((sums.blocks, sums.shared, sums.copies, sums.bottom, sums.chains), (8, 2, 2, 5, 4));
}

#[test]
fn stable_order_ignores_sizes() {
    let mut tree = forked(Order::Stable);
    tree.store(w(2), None, &blocks([9, 10, 11, 12, 13, 14, 15, 16, 17, 18]), 0);
    tree.update_forest();
    assert_eq!(shapes(&tree).iter().map(|s| s.0).collect::<Vec<_>>(), [1, 3, 6, 9]);
    tree.build_forest(Arrangement::default());
    tree.update_forest();
    assert_eq!(shapes(&tree)[0].0, 9);
}

#[test]
fn a_point_finds_its_box() {
    let tree = forked(Order::LeftHeavy);
    let forest = tree.forest().expect("built");
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
    tree.forest().expect("built").visit(&window, |what| seen.push(what));
    let runs: Vec<_> = seen
        .iter()
        .filter_map(|what| match what {
            VisibleBox::NarrowBoxes(run) => Some((run.chains, run.blocks, run.holder, run.top, run.bottom)),
            _ => None,
        })
        .collect();
    assert_eq!(runs, [(1, 1, Holder::One(w(2)), 0, 1), (2, 5, Holder::Several, 2, 5)]);
    let slivers = seen.iter().filter(|what| matches!(what, VisibleBox::Sliver(_))).count();
    assert_eq!((slivers, seen.len()), (2, 5));
}

#[test]
fn a_long_run_is_several_boxes_of_the_same_width() {
    let mut tree = Tree::default();
    tree.build_forest(Arrangement::default());
    let long = u64::from(MAX_CHAIN) * 2 + 3;
    tree.store(w(0), None, &blocks(1..=long), 0);
    tree.update_forest();
    let forest = tree.forest().expect("built");
    assert_eq!(lens_below(forest, 0.0), [MAX_CHAIN, MAX_CHAIN, 3]);
    assert_eq!(shapes(&tree), [(1, 0, long as u32, 0, long as u32)]);
    tree.remove(w(0), BlockHash(20_000));
    tree.update_forest();
    let forest = tree.forest().expect("built");
    assert_eq!(lens_below(forest, 0.0), [MAX_CHAIN, 7, 1, MAX_CHAIN - 8, 3], "a hole");
}

/// Lengths of the chains over `x`, from the top to the bottom of everything.
fn lens_below(forest: &Forest, x: f64) -> Vec<u32> {
    let bottom = forest.at(x, f64::from(forest.sums().bottom) - 0.5).expect("held");
    let mut lens: Vec<u32> = forest.up(bottom).map(|id| forest.chain(id).len).collect();
    lens.reverse();
    lens
}

/// Prefixes 1 2 3 and 1 2 4 5. Of the five requests that were routed one found nothing held, one 1 2 and three more.
fn hit(hits_window: u32) -> Tree {
    let mut tree = Tree::default();
    tree.build_forest(Arrangement { width: Width::Hits, hits_window, ..Arrangement::default() });
    tree.store(w(0), None, &blocks([1, 2, 3]), 0);
    tree.store(w(1), None, &blocks([1, 2, 4, 5]), 0);
    let node = |tree: &Tree, t: u64| tree.find_any(BlockHash(t * 1000)).expect("held");
    for (token, at) in [(3, 100), (4, 300), (5, 320), (2, 330)] {
        tree.hit(node(&tree, token), at);
    }
    tree.hit(NodeId::ROOT, 340);
    tree.update_forest();
    tree
}

#[test]
fn a_box_is_as_wide_as_the_requests_that_found_its_beginning_held() {
    let tree = hit(u32::MAX);
    assert_eq!(shapes(&tree), [(1, 0, 2, 0, 4), (4, 2, 2, 0, 2), (3, 2, 1, 2, 1)]);
    let forest = tree.forest().expect("built");
    assert_eq!((forest.sums().hits, forest.requests(), forest.hits_since()), (4, 5, 0));
    let touched = |t: u64| {
        let node = tree.find_any(BlockHash(t * 1000)).expect("held");
        forest.chain(forest.chain_of(node).expect("attached")).sums.touched
    };
    assert_eq!([touched(1), touched(3), touched(4)], [330, 100, 320], "a hit touches, from its end upward");
}

#[test]
fn what_was_drawn_of_a_forest_is_not_taken_for_that_of_another() {
    let revision = |tree: &Tree| tree.forest().expect("built").revision();
    let (one, mut other) = (forked(Order::LeftHeavy), forked(Order::LeftHeavy));
    assert_ne!(revision(&one), revision(&other), "they stand for themselves, however alike");
    let copy = other.copy_with_forest();
    assert_eq!(revision(&copy), revision(&other));
    other.remove(w(2), BlockHash(9_000));
    other.update_forest();
    assert!(revision(&other) > revision(&copy));
}

#[test]
fn hits_that_leave_the_window_leave_the_picture() {
    let mut tree = hit(150);
    assert_eq!(shapes(&tree), [(1, 0, 2, 0, 3), (4, 2, 2, 0, 2), (3, 2, 1, 2, 0)]);
    let forest = tree.forest().expect("built");
    assert_eq!((forest.sums().hits, forest.requests(), forest.hits_since()), (3, 4, 190));
    tree.expire_hits(475);
    tree.update_forest();
    let forest = tree.forest().expect("built");
    assert_eq!((forest.hits_since(), forest.sums().hits), (320, 2), "in whole seconds");
    let revision = forest.revision();
    tree.expire_hits(479);
    tree.update_forest();
    assert_eq!(tree.forest().expect("built").revision(), revision, "nothing has moved");
}

#[test]
fn hits_of_a_block_that_goes_are_hits_of_the_one_above() {
    let mut tree = hit(u32::MAX);
    tree.remove(w(1), BlockHash(5000));
    tree.remove(w(1), BlockHash(4000));
    tree.update_forest();
    assert_eq!(shapes(&tree), [(1, 0, 2, 0, 4), (3, 2, 1, 0, 1)]);
    assert_eq!(tree.forest().expect("built").sums().touched, 330);
}

fn changes_of(tree: &Tree) -> Vec<(ChangeKind, f64, f64, u32, u32, Holder)> {
    let changes = tree.forest().expect("built").changes();
    changes.iter().map(|c| (c.kind, c.x0, c.width, c.top, c.bottom, c.holder)).collect()
}

/// [`forked`], with 8 behind 7, and changes asked for.
fn watched() -> Tree {
    let mut tree = forked(Order::LeftHeavy);
    tree.store(w(1), Some(BlockHash(7000)), &blocks([8]), 1);
    tree.update_forest();
    assert_eq!(changes_of(&tree), [], "not asked for");
    tree.keep_forest_changes(true);
    tree
}

#[test]
fn appeared_and_removed_boxes_are_reported_where_they_are_and_were() {
    use ChangeKind::{Appeared, Removed};
    let one = |i| Holder::One(w(i));
    let mut tree = watched();
    tree.store(w(2), Some(BlockHash(9000)), &blocks([10, 11]), 2);
    tree.store(w(0), Some(BlockHash(2000)), &blocks([12]), 2);
    tree.remove(w(1), BlockHash(8000));
    tree.remove(w(1), BlockHash(7000));
    tree.update_forest();
    let expected = [
        (Appeared, 7.0, 3.0, 1, 3, one(2)),
        (Removed, 3.0, 3.0, 3, 5, one(1)),
        (Appeared, 4.0, 1.0, 2, 3, one(0)),
    ];
    assert_eq!(changes_of(&tree), expected);
    tree.clear(w(2));
    tree.update_forest();
    assert_eq!(changes_of(&tree), [(Removed, 7.0, 3.0, 0, 3, one(2))]);
}

#[test]
fn owners_short_visits_and_a_new_arrangement_are_no_changes() {
    let mut tree = watched();
    tree.update_forest();
    assert_eq!(changes_of(&tree), [], "nothing happened");
    tree.store(w(1), None, &blocks(1..=5), 3);
    tree.update_forest();
    assert_eq!(changes_of(&tree), [], "only owners changed");
    tree.store(w(2), None, &blocks([13]), 4);
    tree.remove(w(2), BlockHash(13_000));
    tree.update_forest();
    assert_eq!(changes_of(&tree), [], "came and went");
    tree.store(w(2), None, &blocks([13]), 4);
    tree.build_forest(Arrangement { order: Order::Stable, ..Arrangement::default() });
    tree.update_forest();
    assert_eq!(changes_of(&tree), [], "arranged anew");
}

#[test]
fn blocks_that_split_off_go_from_where_they_stood() {
    let mut tree = watched();
    tree.remove(w(0), BlockHash(3000));
    tree.remove(w(0), BlockHash(4000));
    tree.remove(w(0), BlockHash(5000));
    tree.update_forest();
    let changes = changes_of(&tree);
    assert_eq!(changes.iter().map(|c| c.4 - c.3).sum::<u32>(), 3);
    assert!(changes.iter().all(|c| (c.0, c.1, c.2) == (ChangeKind::Removed, 0.0, 3.0)), "{changes:?}");
}

#[test]
fn of_very_many_changes_the_largest_are_reported() {
    let mut tree = Tree::default();
    tree.build_forest(Arrangement::default());
    tree.keep_forest_changes(true);
    for i in 0..2 * MAX_CHANGES as u64 {
        let len = if i < 3 { 2 } else { 1 };
        tree.store(w(0), None, &blocks(10 * i + 1..=10 * i + len), 0);
    }
    tree.update_forest();
    let changes = tree.forest().expect("built").changes();
    assert_eq!(changes.len(), MAX_CHANGES);
    assert_eq!(changes[..4].iter().map(|c| c.bottom).collect::<Vec<_>>(), [2, 2, 2, 1]);
    assert_eq!(tree.forest_backlog(), 0);
    tree.clear(w(0));
    assert!(tree.forest_backlog() > 0);
    tree.update_forest();
    assert_eq!(tree.forest().expect("built").changes().len(), MAX_CHANGES);
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
