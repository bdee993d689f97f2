//! Any sequence of changes leaves the tree as the model says.

use proptest::prelude::*;
use radixscope_state::tree::Tree;

use crate::tree::model::{FEW_HASHES, Model, Op, anarchic_op, check, engine_op, ops, prompts};

fn run(ops: &[Op]) -> (Tree, Model) {
    let (mut tree, mut model) = (Tree::default(), Model::default());
    for (i, op) in ops.iter().enumerate() {
        op.apply(&mut tree, i as u32);
        model.apply(op, i as u32);
    }
    (tree, model)
}

/// The same history in another order of the workers, each worker's own order kept.
fn reorder(ops: &[Op], keys: &[u8]) -> Vec<Op> {
    let mut queues: Vec<(u16, Vec<Op>)> = Vec::new();
    for op in ops.iter().rev() {
        match queues.iter_mut().find(|(w, _)| *w == op.worker()) {
            Some((_, queue)) => queue.push(op.clone()),
            None => queues.push((op.worker(), vec![op.clone()])),
        }
    }
    let mut out = Vec::new();
    for key in keys.iter().cycle() {
        queues.retain(|(_, queue)| !queue.is_empty());
        if queues.is_empty() {
            break;
        }
        let at = usize::from(*key) % queues.len();
        out.extend(queues[at].1.pop());
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_every_change_the_tree_equals_the_model(ops in ops(40), prompts in prompts()) {
        let (mut tree, mut model) = (Tree::default(), Model::default());
        let hashes: Vec<u64> = (0..FEW_HASHES).collect();
        for (i, op) in ops.iter().enumerate() {
            op.apply(&mut tree, i as u32);
            model.apply(op, i as u32);
            check(&tree, &model, &hashes, &prompts);
        }
    }

    #[test]
    fn a_long_anarchic_history_leaves_what_the_model_says(
        ops in proptest::collection::vec(anarchic_op(), 100..400),
        prompts in prompts(),
    ) {
        let (tree, model) = run(&ops);
        check(&tree, &model, &(0..FEW_HASHES).collect::<Vec<_>>(), &prompts);
    }

    #[test]
    fn the_order_between_workers_changes_nothing(
        ops in ops(40),
        keys in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let (one, model) = run(&ops);
        let (other, again) = run(&reorder(&ops, &keys));
        prop_assert_eq!(model.state(), again.state());
        prop_assert_eq!(one.digest(), other.digest());
        prop_assert_eq!(one.totals(), other.totals());
    }

    #[test]
    fn digests_are_equal_exactly_if_the_states_are(
        ops in proptest::collection::vec(engine_op(2), 1..40),
        more in proptest::collection::vec(engine_op(2), 0..4),
    ) {
        let (one, before) = run(&ops);
        let (other, after) = run(&[ops, more].concat());
        prop_assert_eq!(before.state() == after.state(), one.digest() == other.digest());
    }

    #[test]
    fn everything_removed_leaves_the_empty_tree(ops in ops(60)) {
        let (mut tree, mut model) = run(&ops);
        for (worker, held) in model.state() {
            for hash in held.into_keys() {
                let op = Op::Remove { worker, hash };
                op.apply(&mut tree, 0);
                model.apply(&op, 0);
            }
        }
        prop_assert_eq!(tree.digest(), Tree::default().digest());
        prop_assert_eq!(tree.totals(), Tree::default().totals());
        prop_assert_eq!(tree.allocated(), 0);
        prop_assert_eq!(tree.orphan_parents().count(), 0);
    }

    #[test]
    fn parents_that_come_late_lead_to_the_same_state(
        runs in proptest::collection::vec((0u16..3, proptest::collection::vec(0u64..3, 1..7)), 1..8),
        order in proptest::collection::vec(any::<u32>(), 1..60),
    ) {
        // Every block its own event; nothing is ever removed, so any order must end alike.
        let mut events = Vec::new();
        for (worker, path) in &runs {
            for len in 1..=path.len() {
                let name = |len: usize| crate::tree::model::chain(1 + u64::from(*worker), &path[..len]);
                let parent = (len > 1).then(|| name(len - 1));
                events.push(Op::Store { worker: *worker, parent, blocks: vec![(name(len), path[len - 1])] });
            }
        }
        let (in_order, model) = run(&events);
        let mut keyed: Vec<_> = order.iter().cycle().zip(&events).map(|(k, op)| (*k, op.clone())).collect();
        keyed.sort_by_key(|(k, _)| *k);
        let shuffled: Vec<Op> = keyed.into_iter().map(|(_, op)| op).collect();
        let (late, again) = run(&shuffled);
        prop_assert_eq!(model.state(), again.state());
        prop_assert_eq!(in_order.digest(), late.digest());
        prop_assert_eq!(in_order.totals(), late.totals());
        prop_assert_eq!(in_order.max_depth(), late.max_depth());
        prop_assert_eq!(late.totals().unattached, 0);
    }
}
