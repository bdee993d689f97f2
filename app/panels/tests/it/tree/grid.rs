//! The tree as a table: its lines are the boxes of the recorded tree, and keys reach all of them.

use std::collections::HashSet;

use radixscope_icicle::crumb::Crumb;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_panels::format::count;
use radixscope_panels::tree::{
    COLUMNS, GridMove, GridRow, RowKey, edge_after, is_sideways, line_after, line_of, lines, sideways,
};
use radixscope_sim::Topology;
use radixscope_state::tree::forest::{Arrangement, RowOrder};

use super::{as_on_page, with_forest};
use crate::folded::Folded;

#[test]
fn lines_are_the_boxes_at_the_top_the_largest_first_and_open_to_those_below() {
    let mut folded = Folded::recorded("0.9.1-healthy");
    let now = folded.now;
    with_forest(&mut folded, Arrangement::default(), |shown, forest| {
        let tree = shown.tree();
        let mut open = HashSet::new();
        let top = lines(tree, forest, RowOrder::Blocks, &open);
        assert_eq!(top.len(), forest.children(None).len());
        assert!(
            top.iter().all(|line| line.level == 1 && line.siblings as usize == top.len() && !line.is_open)
        );
        assert_eq!(
            top.iter().map(|line| line.place as usize).collect::<Vec<_>>(),
            (1..=top.len()).collect::<Vec<_>>()
        );
        let blocks: Vec<u32> =
            top.iter().map(|line| forest.chain(line.crumb.chain(tree).unwrap()).sums.blocks).collect();
        assert!(blocks.is_sorted_by(|a, b| a >= b), "{blocks:?}");
        assert_eq!(
            blocks.iter().map(|&n| u64::from(n)).sum::<u64>(),
            tree.totals().nodes,
            "every attached block is in one of them"
        );
        for (at, &key) in top.iter().enumerate() {
            let row = GridRow::of(shown, now, at, key).unwrap();
            let id = key.crumb.chain(tree).unwrap();
            assert_eq!(row.blocks, count(blocks[at].into()));
            let holders: Vec<WorkerIx> = shown.owners(tree.owners(key.crumb.node(tree).unwrap())).collect();
            assert_eq!(row.owners, holders);
            assert_eq!(
                row.owner_labels(),
                holders.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            );
            let (named, more) = row.named_owners();
            assert_eq!(
                (named.len(), more),
                (holders.len().min(3), (holders.len() > 3).then(|| format!("+{}", holders.len() - 3)))
            );
            assert_eq!(row.has_children, !forest.children(Some(id)).is_empty());
            let len = forest.chain(id).len;
            assert_eq!(
                row.prefix,
                if len > 1 { format!("block 0 ×{}", count(len.into())) } else { "block 0".to_owned() }
            );
        }
        // One that branches is opened: the boxes below it follow it, a level deeper.
        let at = top
            .iter()
            .position(|line| !forest.children(line.crumb.chain(tree)).is_empty())
            .expect("some prompt goes on in several ways");
        let parent = top[at].crumb;
        assert_eq!(sideways(&top, at, "ArrowRight"), Some(GridMove::Open(parent)));
        assert_eq!(sideways(&top, at, "ArrowLeft"), None, "there is no line above it");
        open.insert(parent.hash.0);
        let opened = lines(tree, forest, RowOrder::Blocks, &open);
        let children = forest.children(parent.chain(tree)).len();
        assert_eq!(opened.len(), top.len() + children);
        assert!(opened[at].is_open);
        for child in &opened[at + 1..=at + children] {
            assert_eq!((child.level, child.siblings as usize), (2, children));
        }
        assert_eq!(opened[at + 1].indent(), "padding-left: 14px");
        assert_eq!(sideways(&opened, at, "ArrowRight"), Some(GridMove::To(at + 1)));
        assert_eq!(sideways(&opened, at + children, "ArrowLeft"), Some(GridMove::To(at)));
        assert_eq!(sideways(&opened, at, "ArrowLeft"), Some(GridMove::Close(parent)));
        assert_eq!(sideways(&opened, at, "Enter"), Some(GridMove::Show(parent)));
        assert_eq!(sideways(&opened, opened.len(), "Enter"), None);
        assert_eq!(line_of(&opened, parent), Some(at));
    });
}

#[test]
fn lines_are_ordered_by_blocks_hits_or_last_use() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 40);
    let now = folded.now;
    with_forest(&mut folded, as_on_page(), |shown, forest| {
        let tree = shown.tree();
        let by = |order| lines(tree, forest, order, &HashSet::new());
        let sums = |line: &RowKey| forest.chain(line.crumb.chain(tree).unwrap()).sums;
        assert!(by(RowOrder::Blocks).is_sorted_by_key(|line| std::cmp::Reverse(sums(line).blocks)));
        assert!(by(RowOrder::Hits).is_sorted_by_key(|line| std::cmp::Reverse(sums(line).hits)));
        assert!(by(RowOrder::Recency).is_sorted_by_key(|line| std::cmp::Reverse(sums(line).touched)));
        let first = by(RowOrder::Hits)[0];
        let row = GridRow::of(shown, now, 0, first).unwrap();
        assert_eq!(row.hits, count(sums(&first).hits.into()));
        assert!(sums(&first).hits > 0 && row.used.ends_with("ago") || row.used == "just now", "{row:?}");
        let gone =
            RowKey { crumb: Crumb { hash: radixscope_model::id::BlockHash(1), ..first.crumb }, ..first };
        assert_eq!(GridRow::of(shown, now, 0, gone), None);
    });
    let orders: Vec<_> =
        COLUMNS.iter().filter_map(|column| column.order.map(|order| (column.name, order))).collect();
    assert_eq!(
        orders,
        [("Blocks", RowOrder::Blocks), ("Hits, 5 min", RowOrder::Hits), ("Last used", RowOrder::Recency)]
    );
    let mut silent = Folded::without_requests(20);
    let now = Millis(silent.now.0);
    with_forest(&mut silent, Arrangement::default(), |shown, forest| {
        let tree = shown.tree();
        let key = lines(tree, forest, RowOrder::Blocks, &HashSet::new())[0];
        let row = GridRow::of(shown, now, 0, key).unwrap();
        assert_eq!(
            row.hits,
            if tree.requests(0) > 0 { row.hits.as_str() } else { "–" },
            "no source tells of requests"
        );
    });
}

#[test]
fn the_line_that_the_reader_is_on_stays_where_it_is() {
    let key = |hash: u64| RowKey {
        crumb: Crumb {
            hash: radixscope_model::id::BlockHash(hash),
            tokens: radixscope_model::id::TokensHash(hash),
            position: 0,
        },
        level: 1,
        place: 1,
        siblings: 1,
        is_open: false,
    };
    let before: Vec<RowKey> = (0..20).map(key).collect();
    let mut after = before.clone();
    after.insert(2, key(90));
    after.insert(2, key(91));
    let cursor = Some(before[7].crumb);
    assert_eq!(edge_after(&before, &after, (5, false), cursor), Some(7), "two lines came above");
    assert_eq!(
        edge_after(&before, &after, (5, false), None),
        Some(7),
        "without a cursor the line at the edge stays"
    );
    assert_eq!(edge_after(&before, &after, (0, true), None), None, "at the top, what comes is seen");
    assert_eq!(
        edge_after(&before, &after, (0, false), Some(before[1].crumb)),
        None,
        "above them nothing moved"
    );
    assert_eq!(edge_after(&before, &before[3..], (5, false), cursor), Some(2));
    assert_eq!(edge_after(&before, &after[..4], (5, false), cursor), None, "its line is gone");
}

#[test]
fn keys_up_and_down_stay_within_the_lines() {
    let after = |key, at| line_after(key, at, 50, (10, 8));
    assert_eq!(after("ArrowDown", None), Some(10), "the first in sight");
    assert_eq!([after("ArrowDown", Some(3)), after("ArrowDown", Some(49))], [Some(4), Some(49)]);
    assert_eq!([after("ArrowUp", Some(3)), after("ArrowUp", Some(0))], [Some(2), Some(0)]);
    assert_eq!([after("PageDown", Some(3)), after("PageUp", Some(3))], [Some(11), Some(0)]);
    assert_eq!(
        [after("Home", Some(3)), after("End", Some(3)), after("x", Some(3))],
        [Some(0), Some(49), None]
    );
    assert!(
        ["ArrowRight", "ArrowLeft", "Enter", " "].into_iter().all(is_sideways) && !is_sideways("ArrowDown")
    );
}
