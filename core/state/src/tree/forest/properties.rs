//! Random trees, changed at random, compared with what can be worked out of them block by block.

use std::cmp::Reverse;

use proptest::prelude::*;

use super::tests::{blocks, shapes, w};
use super::*;
use crate::tree::Step;
use radixscope_model::id::BlockHash;

#[derive(Clone, Debug)]
enum Op {
    Store { worker: u16, parent: Option<u64>, tokens: Vec<u64> },
    Remove { worker: u16, token: u64 },
    Hit { token: u64 },
    Clear { worker: u16 },
    UpdateForest,
}

const TOKENS: std::ops::Range<u64> = 1..40;

/// Deep trees.
fn deep() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (0u16..3, proptest::option::of(TOKENS), proptest::collection::vec(TOKENS, 1..7))
            .prop_map(|(worker, parent, tokens)| Op::Store { worker, parent, tokens }),
        6 => (0u16..3, TOKENS).prop_map(|(worker, token)| Op::Remove { worker, token }),
        3 => TOKENS.prop_map(|token| Op::Hit { token }),
        1 => (0u16..3).prop_map(|worker| Op::Clear { worker }),
        2 => Just(Op::UpdateForest),
    ];
    proptest::collection::vec(op, 1..80)
}

/// Trees of many short prompts: sets of siblings wide enough for groups.
fn broad() -> impl Strategy<Value = Vec<Op>> {
    let prompt = (0u16..3, 1u64..200, 1u64..4).prop_map(|(worker, token, len)| Op::Store {
        worker,
        parent: None,
        tokens: (0..len).map(|i| token + i * 200).collect(),
    });
    let op = prop_oneof![
        12 => prompt,
        3 => (0u16..3, 1u64..600).prop_map(|(worker, token)| Op::Remove { worker, token }),
        3 => (1u64..600).prop_map(|token| Op::Hit { token }),
        2 => Just(Op::UpdateForest),
    ];
    proptest::collection::vec(op, 1..200)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![deep(), broad()]
}

fn limit() -> impl Strategy<Value = u32> {
    prop_oneof![Just(16), Just(1000)]
}

fn arrangement() -> impl Strategy<Value = Arrangement> {
    let order = prop_oneof![Just(Order::LeftHeavy), Just(Order::Stable)];
    let width = prop_oneof![3 => Just(Width::Blocks), 1 => Just(Width::Hits)];
    let hits_window = prop_oneof![Just(u32::MAX), Just(200)];
    let all = (order, width, hits_window);
    all.prop_map(|(order, width, hits_window)| Arrangement { order, width, hits_window })
}

/// Applies one; time passes.
fn apply(tree: &mut Tree, i: usize, op: Op) {
    let at = 10 * i as u32;
    match op {
        Op::Store { worker, parent, tokens } => {
            tree.store(w(worker), parent.map(|p| BlockHash(p * 1000)), &blocks(tokens), at);
        }
        Op::Remove { worker, token } => {
            tree.remove(w(worker), BlockHash(token * 1000));
        }
        Op::Hit { token } => {
            let node = tree.find_any(BlockHash(token * 1000)).unwrap_or(NodeId::ROOT);
            tree.hit(node, at);
        }
        Op::Clear { worker } => {
            tree.clear(w(worker));
        }
        Op::UpdateForest => tree.update_forest(),
    }
}

fn with_forest(arrangement: Arrangement, ops: Vec<Op>, limit: u32) -> Tree {
    let mut tree = Tree::with_limit(limit);
    tree.build_forest(arrangement);
    ops.into_iter().enumerate().for_each(|(i, op)| apply(&mut tree, i, op));
    tree.update_forest();
    tree
}

/// Sums over a subtree, made from the tree block by block.
fn naive(tree: &Tree, from: NodeId, depth: u32) -> Sums {
    let since = tree.forest().expect("built").hits_since();
    let mut sums = Sums::default();
    for step in tree.walk(from) {
        if let Step::Enter { node, depth: below } = step {
            let set = tree.owners(node);
            let owners = set.len() as u64;
            sums.blocks += u32::from(owners > 0);
            sums.shared += u32::from(owners > 1);
            sums.copies += owners.saturating_sub(1);
            sums.hits += tree.hits().filter(|&(end, at)| end == node && at >= since).count() as u32;
            sums.bottom = sums.bottom.max(depth + below + 1);
            sums.holder = sums.holder.with(Holder::of(set));
            sums.workers |= set.low();
        }
    }
    sums
}

fn attached(tree: &Tree) -> i64 {
    let ids = tree.arena.ids().skip(1).filter(|&at| !tree.arena[at].is_free());
    ids.filter(|&at| !tree.arena[at].is_unattached()).count() as i64
}

/// Every box with its left edge.
fn layout(forest: &Forest) -> Vec<(ChainId, f64)> {
    let mut all = Vec::new();
    let mut todo = vec![(None, 0.0)];
    while let Some((parent, mut left)) = todo.pop() {
        for &id in forest.children(parent) {
            all.push((id, left));
            todo.push((Some(id), left));
            left += f64::from(forest.chain(id).width());
        }
    }
    all
}

/// What [`Forest::visit`] is to meet, in any order: each box looked at on its own.
fn visited(forest: &Forest, window: &Window) -> Vec<VisibleBox> {
    let least = window.units_per_column();
    let mut seen = Vec::new();
    let mut todo = vec![(None, 0.0)];
    while let Some((parent, mut left)) = todo.pop() {
        let top = parent.map_or(0, |id| forest.chain(id).end());
        let mut runs: Vec<Vec<(ChainId, f64)>> = vec![Vec::new()];
        for &id in forest.children(parent) {
            let chain = forest.chain(id);
            let (x0, width) = (left, f64::from(chain.width()));
            left += width;
            if width == 0.0 || left <= window.x0 || x0 >= window.x1 || f64::from(top) >= window.bottom {
                continue;
            }
            if width < least {
                runs.last_mut().expect("one at least").push((id, x0));
                continue;
            }
            runs.push(Vec::new());
            if f64::from(chain.sums.bottom) > window.top {
                seen.push(VisibleBox::Chain { id, x0 });
                todo.push((Some(id), x0));
            }
        }
        let column = |x: f64| (((x - window.x0) / least).max(0.0) as u32).min(window.columns - 1);
        let sum = |some: &[(ChainId, f64)]| {
            let mut sums = Sums::default();
            some.iter().for_each(|&(id, _)| sums.add(&forest.chain(id).sums));
            sums
        };
        for run in runs.iter().filter(|run| !run.is_empty()) {
            for some in run.chunk_by(|a, b| column(a.1) == column(b.1)) {
                let Sums { bottom, holder, workers, touched, hits, blocks, copies, .. } = sum(some);
                let column = column(some[0].1);
                if f64::from(bottom) > window.top {
                    seen.push(VisibleBox::Sliver(Sliver {
                        column,
                        top,
                        bottom,
                        holder,
                        workers,
                        touched,
                        hits,
                        blocks,
                        copies,
                    }));
                }
            }
            let Sums { bottom, holder, workers, hits, chains, blocks, .. } = sum(run);
            let ((first, x0), last) = (run[0], run[run.len() - 1]);
            let x1 = last.1 + f64::from(forest.chain(last.0).width());
            if f64::from(bottom) > window.top {
                let run =
                    NarrowBoxes { x0, x1, top, bottom, parent, first, chains, blocks, hits, holder, workers };
                seen.push(VisibleBox::NarrowBoxes(run));
            }
        }
    }
    seen
}

/// [`Forest::largest`] and [`Forest::hottest`], by looking at all that is left each time.
fn ranked(forest: &Forest, most: usize, of: impl Fn(&Sums) -> u32) -> Vec<ChainId> {
    let mut listed = Vec::new();
    let mut open: Vec<(ChainId, u32)> = forest.children(None).iter().map(|&id| (id, u32::MAX)).collect();
    while listed.len() < most && !open.is_empty() {
        let rank =
            |&(id, _): &(ChainId, u32)| (of(&forest.chain(id).sums), Reverse(forest.chain(id).tokens), id);
        let best = (0..open.len()).max_by_key(|&i| rank(&open[i])).expect("not empty");
        let (id, above) = open.swap_remove(best);
        let size = of(&forest.chain(id).sums);
        if size == 0 {
            break;
        }
        let is_new = above == u32::MAX || f64::from(size) < 0.9 * f64::from(above);
        if is_new {
            listed.push(id);
        }
        let above = if is_new { size } else { above };
        open.extend(forest.children(Some(id)).iter().map(|&child| (child, above)));
    }
    listed
}

proptest! {
    #[test]
    fn an_updated_forest_equals_one_built_anew(ops in ops(), limit in limit(), arrangement in arrangement()) {
        let mut tree = with_forest(arrangement, ops, limit);
        let forest = tree.forest().expect("built");
        for at in tree.arena.ids().skip(1) {
            let node = &tree.arena[at];
            let is_in = !node.is_free() && !node.is_unattached();
            prop_assert_eq!(forest.chain_of(at).is_some(), is_in);
            if let Some(id) = forest.chain_of(at) {
                let chain = forest.chain(id);
                prop_assert!(chain.len <= MAX_CHAIN);
                prop_assert_eq!(chain.owners, tree.owners_key(at));
                if chain.first == at {
                    let sums = naive(&tree, at, chain.position);
                    prop_assert!(chain.sums.touched >= tree.touched(at));
                    let (touched, chains) = (chain.sums.touched, chain.sums.chains);
                    prop_assert_eq!(chain.sums, Sums { touched, chains, ..sums });
                    prop_assert_eq!(chain.position, tree.position(at));
                }
            }
        }
        let (retained, since, now) = (shapes(&tree), forest.hits_since(), forest.now);
        tree.drop_forest();
        tree.build_forest(arrangement);
        // The time that was given may have been that of blocks that were removed.
        tree.expire_hits(now);
        tree.update_forest();
        prop_assert_eq!(since, tree.forest().expect("built").hits_since());
        prop_assert_eq!(retained, shapes(&tree));
    }

    #[test]
    fn siblings_stand_in_order_side_by_side_and_a_point_finds_its_box(
        ops in ops(),
        arrangement in arrangement(),
        points in proptest::collection::vec((0.0..60f64, 0.0..30f64), 20),
    ) {
        let tree = with_forest(arrangement, ops, 1000);
        let forest = tree.forest().expect("built");
        let boxes = layout(forest);
        prop_assert_eq!(boxes.len(), forest.sums().chains as usize);
        let heavy = arrangement.order == Order::LeftHeavy;
        for parent in boxes.iter().map(|&(id, _)| Some(id)).chain([None]) {
            let key = |&id: &ChainId| {
                let chain = forest.chain(id);
                (Reverse(if heavy { chain.width() } else { chain.width().min(1) }), chain.tokens)
            };
            prop_assert!(forest.children(parent).is_sorted_by_key(key));
        }
        for &(id, left) in &boxes {
            prop_assert_eq!(f64::from(forest.left(id)), left);
        }
        for (x, y) in points {
            let covers = |&&(id, left): &&(ChainId, f64)| {
                let chain = forest.chain(id);
                let (top, end) = (f64::from(chain.position), f64::from(chain.end()));
                (left..left + f64::from(chain.width())).contains(&x) && (top..end).contains(&y)
            };
            prop_assert_eq!(forest.at(x, y), boxes.iter().find(covers).map(|found| found.0));
        }
    }

    #[test]
    fn a_window_shows_what_lies_in_it_once(
        ops in ops(),
        arrangement in arrangement(),
        columns in 1u32..60,
        (x0, wide) in (0.0..0.8f64, 0.01..1.1f64),
        (top, high) in (0.0..10f64, 0.1..30f64),
    ) {
        let tree = with_forest(arrangement, ops, 1000);
        let forest = tree.forest().expect("built");
        let all = f64::from(forest.width());
        for (x0, wide, top, high) in [(x0, wide, top, high), (0.0, 1.0, 0.0, 100.0)] {
            let window = Window { x0: x0 * all, x1: (x0 + wide) * all, top, bottom: top + high, columns };
            let mut seen = Vec::new();
            forest.visit(&window, |what| seen.push(what));
            let mut expected = if all > 0.0 { visited(forest, &window) } else { Vec::new() };
            seen.sort_by_key(|what| format!("{what:?}"));
            expected.sort_by_key(|what| format!("{what:?}"));
            prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn the_listed_prefixes_are_the_best(ops in ops(), arrangement in arrangement(), most in 0usize..12) {
        let tree = with_forest(arrangement, ops, 1000);
        let forest = tree.forest().expect("built");
        prop_assert_eq!(forest.largest(most), ranked(forest, most, |sums| sums.blocks));
        prop_assert_eq!(forest.hottest(most), ranked(forest, most, |sums| sums.hits));
    }

    #[test]
    fn what_appeared_less_what_was_removed_is_the_difference(ops in ops(), limit in limit()) {
        let mut tree = Tree::with_limit(limit);
        tree.build_forest(Arrangement::default());
        tree.keep_forest_changes(true);
        let (mut before, mut width) = (0, 0.0);
        for (i, op) in ops.into_iter().chain([Op::UpdateForest]).enumerate() {
            let updates_forest = matches!(op, Op::UpdateForest);
            apply(&mut tree, i, op);
            if !updates_forest {
                continue;
            }
            let forest = tree.forest().expect("built");
            let boxes = layout(forest);
            let mut difference = 0;
            for change in forest.changes() {
                let blocks = i64::from(change.bottom) - i64::from(change.top);
                prop_assert!(blocks > 0);
                if change.kind == ChangeKind::Removed {
                    difference -= blocks;
                    prop_assert!(change.x0 + change.width <= width);
                    continue;
                }
                difference += blocks;
                let stands = |&(id, left): &(ChainId, f64)| {
                    let chain = forest.chain(id);
                    left == change.x0 && chain.end() == change.bottom && chain.position <= change.top
                };
                prop_assert!(boxes.iter().any(stands));
            }
            prop_assert!(forest.changes().len() < MAX_CHANGES);
            prop_assert_eq!(difference, attached(&tree) - before);
            (before, width) = (attached(&tree), f64::from(forest.width()));
        }
    }
}
