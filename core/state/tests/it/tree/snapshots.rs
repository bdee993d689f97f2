//! The tree as bytes and back: the same tree, or an error, and never more than the bytes justify.

use proptest::prelude::*;
use radixscope_model::id::Slot;
use radixscope_state::tree::{NodeId, RestoreError, Tree, TreePart, TreeReader};

use crate::tree::model::{Op, block, ops};

/// A tree's parts, as they are sent.
pub(crate) fn bytes(tree: &Tree) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    tree.snapshot(|part| -> Result<(), postcard::Error> {
        parts.push(postcard::to_allocvec(part)?);
        Ok(())
    })
    .unwrap();
    parts
}

/// Workers beyond those that the tests use.
const WORKERS: u16 = 512;

fn hidden(tree: &Tree) -> Vec<(Slot, u64)> {
    (0..WORKERS).map(|w| (Slot(w), tree.holdings(Slot(w)).hidden)).filter(|h| h.1 > 0).collect()
}

pub(crate) fn restored(parts: &[Vec<u8>], of: &Tree) -> Tree {
    read(parts, of.limit(), hidden(of)).unwrap()
}

#[derive(Debug)]
enum ReadError {
    #[expect(dead_code, reason = "shown when a test fails")]
    Codec(postcard::Error),
    Restore(RestoreError),
}

fn read(parts: &[Vec<u8>], limit: u32, hidden: Vec<(Slot, u64)>) -> Result<Tree, ReadError> {
    let mut reader = TreeReader::new(limit);
    let mut left_bytes: usize = parts.iter().map(Vec::len).sum();
    for part in parts {
        left_bytes -= part.len();
        let part: TreePart = postcard::from_bytes(part).map_err(ReadError::Codec)?;
        reader.part(&part, left_bytes).map_err(ReadError::Restore)?;
    }
    reader.finish(hidden).map_err(ReadError::Restore)
}

/// Whatever was restored must live on like any other tree.
fn live_on(mut tree: Tree, ops: &[Op]) {
    for (i, op) in ops.iter().enumerate() {
        op.apply(&mut tree, i as u32);
    }
    let digest = tree.digest();
    assert_eq!(restored(&bytes(&tree), &tree).digest(), digest);
    for w in 0..=u16::MAX {
        tree.clear(Slot(w));
    }
    assert_eq!(tree.totals(), Tree::default().totals());
    assert_eq!(tree.allocated(), 0);
    let mut empty = Tree::default();
    for (node, touched) in tree.hits() {
        assert_eq!(node, NodeId::ROOT);
        empty.hit(node, touched);
    }
    assert_eq!(tree.digest(), empty.digest());
}

#[test]
fn a_tree_of_several_parts_comes_back_whole() {
    let mut tree = Tree::default();
    for i in 0..3000u64 {
        let run: Vec<_> = (0..50).map(|k| block(i << 16 | k, if k < 3 { k } else { i << 16 | k })).collect();
        tree.store(Slot((i % 100) as u16), None, &run, i as u32);
    }
    tree.store(Slot(3), Some(radixscope_model::id::BlockHash(u64::MAX)), &[block(1, 1)], 1);
    let parts = bytes(&tree);
    assert!(parts.len() > 1);
    let again = restored(&parts, &tree);
    assert_eq!((again.digest(), again.totals()), (tree.digest(), tree.totals()));
    assert_eq!(bytes(&again), parts);
}

#[test]
fn hidden_blocks_that_cannot_be_counted_are_refused() {
    let absurd = vec![(Slot(0), u64::MAX), (Slot(1), u64::MAX)];
    assert!(matches!(read(&[], 10, absurd), Err(ReadError::Restore(RestoreError::Hidden))));
    let twice = vec![(Slot(0), 1), (Slot(0), 1)];
    assert!(matches!(read(&[], 10, twice), Err(ReadError::Restore(RestoreError::Hidden))));
}

/// Where the columns of a part stand, so that a test can write one by hand.
#[derive(serde::Serialize)]
struct Columns {
    up: Vec<u32>,
    orphan_parents: Vec<(u32, u16, [u8; 8])>,
    tokens: Vec<[u8; 8]>,
    blocks: Vec<[u8; 8]>,
    touched: Vec<u32>,
    stored_before: Vec<u32>,
    sets: Vec<Vec<u16>>,
    set: Vec<u32>,
    variants: Vec<(u32, u16, [u8; 8])>,
    names: Vec<(u32, u16, [u8; 8])>,
    hits: Vec<(u32, u32)>,
}

/// A chain of blocks 1, 2, … each held by the workers given.
fn columns(owners: &[&[u16]]) -> Columns {
    let n = owners.len() as u64;
    Columns {
        up: vec![0; owners.len()],
        orphan_parents: Vec::new(),
        tokens: (1..=n).map(u64::to_le_bytes).collect(),
        blocks: (1..=n).map(u64::to_le_bytes).collect(),
        touched: vec![0; owners.len()],
        stored_before: vec![0; owners.len()],
        sets: owners.iter().map(|o| o.to_vec()).collect(),
        set: (0..owners.len() as u32).collect(),
        variants: Vec::new(),
        names: Vec::new(),
        hits: Vec::new(),
    }
}

fn read_columns(columns: &Columns) -> Result<Tree, ReadError> {
    read(&[postcard::to_allocvec(columns).unwrap()], 100, Vec::new())
}

#[test]
fn a_part_written_by_hand_is_read() {
    assert_eq!(read_columns(&columns(&[&[], &[0, 1], &[1]])).unwrap().totals().resident, 3);
}

#[test]
fn a_leaf_without_owners_is_refused() {
    let refused = |c: &Columns| matches!(read_columns(c), Err(ReadError::Restore(RestoreError::Unheld(_))));
    assert!(refused(&columns(&[&[0], &[]])));
    let mut between = columns(&[&[0], &[], &[0]]);
    between.up = vec![0, 0, 1];
    assert!(refused(&between));
    let mut bare_anchor = columns(&[&[]]);
    bare_anchor.orphan_parents = vec![(0, 0, [9; 8])];
    assert!(refused(&bare_anchor));
}

#[test]
fn hits_at_nodes_that_were_not_written_are_refused() {
    let mut hit = columns(&[&[0], &[0]]);
    hit.hits = vec![(0, 5), (2, 5)];
    assert_eq!(read_columns(&hit).unwrap().requests(5), 2);
    hit.hits.push((3, 5));
    assert!(matches!(read_columns(&hit), Err(ReadError::Restore(RestoreError::Columns))));
}

#[test]
fn what_waits_for_a_parent_of_one_worker_cannot_belong_to_another() {
    let mut foreign = columns(&[&[], &[1]]);
    foreign.orphan_parents = vec![(0, 0, [9; 8])];
    assert!(matches!(read_columns(&foreign), Err(ReadError::Restore(RestoreError::Columns))));
}

#[test]
fn one_name_of_a_worker_for_two_blocks_is_refused() {
    let mut twice = columns(&[&[0], &[0]]);
    twice.blocks[1] = twice.blocks[0];
    assert!(matches!(read_columns(&twice), Err(ReadError::Restore(RestoreError::Twice(_)))));
    let mut by_variant = columns(&[&[0, 1], &[0, 1]]);
    by_variant.variants = vec![(1, 1, 1u64.to_le_bytes())];
    assert!(matches!(read_columns(&by_variant), Err(ReadError::Restore(RestoreError::Twice(_)))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_tree_is_the_same_and_goes_on_the_same(before in ops(50), after in ops(30)) {
        let mut tree = Tree::default();
        for (i, op) in before.iter().enumerate() {
            op.apply(&mut tree, i as u32);
        }
        let parts = bytes(&tree);
        let mut again = restored(&parts, &tree);
        prop_assert_eq!(bytes(&again), parts);
        for (i, op) in after.iter().enumerate() {
            prop_assert_eq!((again.digest(), again.totals()), (tree.digest(), tree.totals()));
            prop_assert_eq!(again.allocated(), tree.allocated());
            op.apply(&mut tree, i as u32);
            op.apply(&mut again, i as u32);
        }
        prop_assert_eq!((again.digest(), again.totals()), (tree.digest(), tree.totals()));
    }

    #[test]
    fn damaged_bytes_give_an_error_or_a_tree_that_works(
        before in ops(50),
        after in ops(20),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut tree = Tree::default();
        for (i, op) in before.iter().enumerate() {
            op.apply(&mut tree, i as u32);
        }
        let mut parts = bytes(&tree);
        let Some(part) = parts.first_mut() else { return Ok(()) };
        for (at, byte) in damage {
            let at = at.index(part.len());
            // Small changes keep more of the structure than random bytes do.
            part[at] = if byte < 128 { part[at].wrapping_add(byte % 5) } else { byte };
        }
        if let Some(cut) = cut {
            part.truncate(cut.index(part.len()));
        }
        if let Ok(tree) = read(&parts, 1000, hidden(&tree)) {
            live_on(tree, &after);
        }
    }

    #[test]
    fn parts_made_up_of_plausible_numbers_give_an_error_or_a_tree_that_works(
        up in proptest::collection::vec(0u32..3, 1..12),
        hashes in proptest::collection::vec((0u64..6, 0u64..30), 12),
        sets in proptest::collection::vec(proptest::collection::vec(0u16..4, 1..3), 3),
        set in proptest::collection::vec(0u32..3, 12),
        orphan_parents in proptest::collection::vec((0u32..12, 0u16..4, 0u64..4), 0..3),
        variants in proptest::collection::vec((0u32..12, 0u16..4, 0u64..30), 0..3),
        names in proptest::collection::vec((0u32..12, 0u16..4, 0u64..30), 0..3),
        hits in proptest::collection::vec((0u32..12, 0u32..20_000), 0..6),
        after in ops(20),
    ) {
        let n = up.len();
        let word = |w: u64| w.to_le_bytes();
        let (mut orphan_parents, mut variants, mut names) = (orphan_parents, variants, names);
        orphan_parents.sort_unstable();
        variants.sort_unstable();
        names.sort_unstable();
        let columns = Columns {
            tokens: hashes[..n].iter().map(|h| word(h.0)).collect(),
            blocks: hashes[..n].iter().map(|h| word(h.1)).collect(),
            touched: vec![0; n],
            stored_before: vec![0; n],
            sets,
            set: set[..n].to_vec(),
            orphan_parents: orphan_parents.into_iter().map(|(at, w, h)| (at, w, word(h))).collect(),
            variants: variants.into_iter().map(|(at, w, h)| (at, w, word(h))).collect(),
            names: names.into_iter().map(|(at, w, h)| (at, w, word(h))).collect(),
            hits,
            up,
        };
        if let Ok(tree) = read_columns(&columns) {
            live_on(tree, &after);
        }
    }
}
