//! What a tree says that an event changed is the difference between what workers held before and after it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_router::hash::chain_hash;
use radixscope_state::tree::{ChangedBlock, Tree};

use crate::tree::model::{Model, Op, Path, block, ops};

/// Places that `worker` holds.
fn places(model: &Model, worker: u16) -> BTreeSet<Path> {
    model.workers.get(&worker).map(|held| held.values().cloned().collect()).unwrap_or_default()
}

/// The hash of the last block of a path with everything before it.
fn chain_of((_, path): &Path) -> Option<BlockHash> {
    path.iter().fold(None, |above, &tokens| Some(chain_hash(above, TokensHash(tokens))))
}

/// How many more places with these tokens at their end are in `after` than in `before`.
fn by_tokens(before: &BTreeSet<Path>, after: &BTreeSet<Path>) -> BTreeMap<u64, i64> {
    let mut more: BTreeMap<u64, i64> = BTreeMap::new();
    for (of, by) in [(after.difference(before), 1), (before.difference(after), -1)] {
        of.filter_map(|(_, path)| path.last()).for_each(|tokens| *more.entry(*tokens).or_default() += by);
    }
    more.retain(|_, by| *by != 0);
    more
}

fn sum(changed: &[ChangedBlock]) -> BTreeMap<u64, i64> {
    let mut more: BTreeMap<u64, i64> = BTreeMap::new();
    for block in changed {
        *more.entry(block.tokens.0).or_default() += if block.was_held { -1 } else { 1 };
    }
    more.retain(|_, by| *by != 0);
    more
}

/// Whether the block before the first is held, so that none waits for it.
fn is_attached(op: &Op, tree: &Tree) -> bool {
    match op {
        Op::Store { worker, parent: Some(parent), .. } => {
            tree.find(Slot(*worker), BlockHash(*parent)).is_some()
        }
        _ => true,
    }
}

/// A hash of 0 is no hash.
fn from_one(op: &Op) -> Op {
    match op.clone() {
        Op::Store { worker, parent, blocks } => {
            let blocks = blocks.into_iter().map(|(hash, tokens)| (hash, tokens + 1)).collect();
            Op::Store { worker, parent, blocks }
        }
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_event_changes_what_is_held_after_it_and_was_not_before(ops in ops(60)) {
        let (mut tree, mut model) = (Tree::default(), Model::default());
        tree.follow_blocks(true);
        tree.keep_chain_hashes();
        for (i, op) in ops.iter().map(from_one).enumerate() {
            let op = &op;
            if !is_attached(op, &tree) {
                continue;
            }
            let (worker, all_before) = (op.worker(), model.paths());
            let before = places(&model, worker);
            op.apply(&mut tree, i as u32);
            model.apply(op, i as u32);
            let after = places(&model, worker);
            if !matches!(op, Op::Store { .. } | Op::Remove { .. }) {
                continue;
            }
            let changed = tree.changed_blocks().unwrap();
            prop_assert_eq!(sum(changed.blocks()), by_tokens(&before, &after), "{:?}", op);
            let mut gone: Vec<_> = changed.gone().to_vec();
            gone.sort_unstable();
            if let Op::Remove { hash, .. } = op {
                let all_after = model.paths();
                let mut expected: Vec<_> =
                    all_before.keys().filter(|path| !all_after.contains_key(*path)).filter_map(chain_of).collect();
                expected.sort_unstable();
                prop_assert_eq!(gone, expected);
                prop_assert!(changed.blocks().iter().all(|of| of.was_held && of.block == BlockHash(*hash)));
                prop_assert_eq!(changed.first_stored(), None);
            }
            if let Op::Store { parent, blocks, .. } = op {
                let mut above = *parent;
                let names: BTreeMap<_, _> = blocks
                    .iter()
                    .map(|&(hash, _)| (BlockHash(hash), above.replace(hash).map(BlockHash)))
                    .collect();
                for of in changed.blocks().iter().filter(|of| !of.was_held) {
                    let is_one = names.contains_key(&of.block);
                    // A name that comes twice in one event has two places.
                    let is_of = names.len() < blocks.len() || names.get(&of.block) == Some(&of.parent());
                    prop_assert!(is_one && is_of, "{:?} of {:?}", of, op);
                }
                let first = changed.blocks().iter().any(|of| !of.was_held);
                prop_assert_eq!(first, changed.first_stored().is_some());
            }
        }
    }
}

#[test]
fn the_first_block_that_is_new_is_known_with_everything_before_it() {
    let mut tree = Tree::default();
    tree.follow_blocks(true);
    tree.keep_chain_hashes();
    tree.store(Slot(0), None, &[block(1, 10), block(2, 20)], 1);
    tree.store(Slot(0), None, &[block(1, 10), block(2, 20), block(3, 30), block(4, 40)], 2);
    let changed = tree.changed_blocks().unwrap();
    let new = |of: &ChangedBlock| (of.block.0, of.tokens.0, of.parent().map(|of| of.0), of.was_held);
    assert_eq!(
        changed.blocks().iter().map(new).collect::<Vec<_>>(),
        [(3, 30, Some(2), false), (4, 40, Some(3), false)]
    );
    let chain = [10, 20, 30].iter().fold(None, |above, &tokens| Some(chain_hash(above, TokensHash(tokens))));
    assert_eq!(changed.first_stored(), chain);

    // Another worker joins, and the first one drops the end: it is gone where nobody else holds it.
    tree.store(Slot(1), None, &[block(1, 10), block(2, 20), block(3, 30)], 3);
    assert_eq!(tree.changed_blocks().unwrap().blocks().len(), 3);
    tree.remove_all(Slot(0), &[BlockHash(4), BlockHash(3), BlockHash(77)]);
    let changed = tree.changed_blocks().unwrap();
    assert_eq!(
        changed.blocks().iter().map(new).collect::<Vec<_>>(),
        [(4, 40, Some(3), true), (3, 30, Some(2), true)]
    );
    assert_eq!(changed.gone(), [chain_hash(chain, TokensHash(40))]);
    tree.store(Slot(0), None, &[block(1, 10)], 4);
    assert!(tree.changed_blocks().unwrap().blocks().is_empty(), "it held it");

    // Nobody asks any more.
    tree.follow_blocks(false);
    tree.remove_all(Slot(0), &[BlockHash(1)]);
    assert!(tree.changed_blocks().is_none());
}

#[test]
fn blocks_that_wait_for_their_parent_change_nothing_that_a_prompt_leads_to() {
    let mut tree = Tree::default();
    tree.follow_blocks(true);
    tree.keep_chain_hashes();
    tree.store(Slot(0), Some(BlockHash(1)), &[block(2, 20), block(3, 30)], 1);
    let changed = tree.changed_blocks().unwrap();
    assert_eq!((changed.blocks().len(), changed.first_stored()), (2, None));
    // Its parent comes: of this event only that one is new.
    tree.store(Slot(0), None, &[block(1, 10)], 2);
    let changed = tree.changed_blocks().unwrap();
    assert_eq!(changed.blocks().iter().map(|of| of.block.0).collect::<Vec<_>>(), [1]);
    tree.remove_all(Slot(0), &[BlockHash(3)]);
    assert_eq!(tree.changed_blocks().unwrap().gone().len(), 1);
}
