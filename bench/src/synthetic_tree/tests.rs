use std::collections::{HashMap, HashSet};

use super::*;

const SIZE: u64 = 10_000;
const WORKERS: u16 = 8;

fn tree(seed: u64) -> (SyntheticTree, Vec<Event>) {
    let mut tree = SyntheticTree::new(SIZE, WORKERS, seed);
    let events = tree.by_ref().collect();
    (tree, events)
}

/// What each worker holds after `events`; every store must have its parent, every removal its block.
fn held<'a>(events: impl IntoIterator<Item = &'a Event>) -> HashMap<u16, HashSet<BlockHash>> {
    let mut held: HashMap<u16, HashSet<BlockHash>> = HashMap::new();
    for Event { worker, change } in events {
        let held = held.entry(*worker).or_default();
        match change {
            Change::Stored { parent, blocks } => {
                assert!(parent.is_none_or(|parent| held.contains(&parent)), "a parent is known");
                assert!(!blocks.is_empty());
                blocks.iter().for_each(|block| assert!(held.insert(block.block_hash), "stored once"));
            }
            Change::Removed(hashes) => {
                hashes.iter().for_each(|hash| assert!(held.remove(hash), "what goes was there"));
            }
        }
    }
    held
}

fn counts(held: &HashMap<u16, HashSet<BlockHash>>) -> (u64, u64) {
    let all: HashSet<_> = held.values().flatten().collect();
    (all.len() as u64, held.values().map(|held| held.len() as u64).sum())
}

#[test]
fn a_seed_grows_the_same_tree_and_another_one_another() {
    let (_, events) = tree(7);
    assert_eq!(events, tree(7).1);
    assert_ne!(events, tree(8).1);
}

#[test]
fn it_has_exactly_the_requested_blocks_on_workers_that_have_all_parents() {
    let (tree, events) = tree(1);
    let held = held(&events);
    assert_eq!(held.len(), usize::from(WORKERS));
    assert_eq!(counts(&held), (SIZE, tree.held_blocks()));
    assert_eq!(tree.distinct_blocks(), SIZE);
}

#[test]
fn system_prompts_are_everybodys_and_most_of_the_rest_is_one_workers() {
    let mut tree = SyntheticTree::new(100_000, WORKERS, 1);
    tree.by_ref().for_each(drop);
    let boxes = tree.boxes();
    let blocks = |with: &dyn Fn(&Drawn) -> bool| -> u64 {
        boxes.iter().filter(|b| with(b)).map(|b| u64::from(b.len)).sum()
    };
    let all = (1 << WORKERS) - 1;
    assert!(boxes.iter().all(|b| b.parent.is_some() == (b.owners != all)), "what is on top is everybody's");
    assert_eq!(boxes.iter().filter(|b| b.parent.is_none()).count(), STARTERS);
    let (one, two) = (blocks(&|b| b.owners.count_ones() == 1), blocks(&|b| b.owners.count_ones() == 2));
    let share = two as f64 / (one + two) as f64;
    assert!((0.03..0.2).contains(&share), "a tenth of the conversations is on a second worker, not {share}");
    let deepest = boxes.iter().map(|b| b.depth + b.len).max().expect("boxes");
    assert!((900..=LONGEST_BLOCKS as u32).contains(&deepest), "{deepest}");
}

#[test]
fn few_system_prompts_have_most_conversations() {
    let mut tree = SyntheticTree::new(100_000, WORKERS, 1);
    tree.by_ref().for_each(drop);
    let mut widths: Vec<u64> = tree.boxes().iter().filter(|b| b.parent.is_none()).map(|b| b.width).collect();
    widths.sort_unstable();
    let most: u64 = widths.iter().rev().take(10).sum();
    assert!(most * 2 > widths.iter().sum(), "{widths:?}");
}

#[test]
fn boxes_lie_in_the_box_above_and_beside_each_other() {
    let (mut tree, _) = tree(3);
    for _ in 0..5_000 {
        tree.live();
    }
    let boxes = tree.boxes();
    assert_eq!(boxes.iter().map(|b| u64::from(b.len)).sum::<u64>(), tree.distinct_blocks());
    let mut edges: HashMap<Option<u32>, u64> = HashMap::new();
    let mut children: HashMap<u32, Vec<Drawn>> = HashMap::new();
    let mut by_x = boxes.clone();
    by_x.sort_by_key(|b| b.x);
    for b in &by_x {
        let left = b.parent.map_or(0, |parent| boxes[parent as usize].x);
        assert_eq!(*edges.entry(b.parent).or_insert(left), b.x, "no gap and no overlap");
        edges.insert(b.parent, b.x + b.width);
        if let Some(parent) = b.parent {
            children.entry(parent).or_default().push(*b);
        }
    }
    for (parent, below) in children {
        let above = boxes[parent as usize];
        let sum: u64 = below.iter().map(|b| b.width).sum();
        assert_eq!(above.width, sum + u64::from(above.len));
        assert!(below.iter().all(|b| b.depth == above.depth + above.len));
        assert!(below.len() > 1 || below[0].owners != above.owners, "one chain is one box");
    }
}

#[test]
fn live_events_keep_the_size_with_as_many_stores_as_removals_in_their_order() {
    let (mut tree, mut events) = tree(5);
    let before = events.len();
    events.extend(std::iter::repeat_with(|| tree.live()).take(20_000));
    let stores = events[before..].iter().filter(|e| matches!(e.change, Change::Stored { .. })).count();
    assert!((7_000..13_000).contains(&stores), "{stores}");
    let (distinct, _) = counts(&held(&events));
    assert!(distinct.abs_diff(SIZE) < 100, "{distinct}");
    let (least, most) = PIECE_BLOCKS;
    for event in &events[before..] {
        let blocks = match &event.change {
            Change::Stored { blocks, .. } => blocks.len(),
            Change::Removed(hashes) => hashes.len(),
        };
        assert!((least..=most).contains(&(blocks as u64)));
    }
}

#[test]
fn sizes_are_read_as_people_write_them() {
    assert_eq!(["10k", "1M", "250000"].map(blocks_of), [10_000, 1_000_000, 250_000].map(Ok));
}
