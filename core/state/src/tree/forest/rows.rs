//! The forest as lines, one box each, indented and in an order of their own: for who reads it as a table.

use std::cmp::Reverse;

use super::{Chain, ChainId, Forest};

/// What siblings are ordered by in a table, most first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RowOrder {
    /// Blocks in the subtree.
    #[default]
    Blocks,
    /// Hits of the arrangement's window.
    Hits,
    /// Latest store or use in the subtree.
    Recency,
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The box.
    pub id: ChainId,
    /// How deep it is, 1 at the top.
    pub level: u32,
    /// Its place among its siblings, from 1.
    pub place: u32,
    /// How many siblings there are, itself included.
    pub siblings: u32,
    /// Whether the boxes below follow.
    pub is_open: bool,
}

impl Forest {
    /// The lines: boxes at the top, and below each one for which `is_open` says so, its children. At most `most`.
    /// Boxes without a held block at or below them are left out.
    pub fn rows(&self, order: RowOrder, most: usize, is_open: impl Fn(&Chain) -> bool) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut todo: Vec<Row> = Vec::new();
        self.push_siblings(None, 1, order, &mut todo);
        while let Some(mut row) = todo.pop() {
            if rows.len() == most {
                break;
            }
            row.is_open = !self.children(Some(row.id)).is_empty() && is_open(self.chain(row.id));
            rows.push(row);
            if row.is_open {
                self.push_siblings(Some(row.id), row.level + 1, order, &mut todo);
            }
        }
        rows
    }

    /// Puts siblings onto the stack, the last first.
    fn push_siblings(&self, parent: Option<ChainId>, level: u32, order: RowOrder, todo: &mut Vec<Row>) {
        let held = |id: &ChainId| self.chain(*id).sums.blocks > 0;
        let keyed = |id: ChainId| {
            let chain = self.chain(id);
            let by = match order {
                RowOrder::Blocks => chain.sums.blocks,
                RowOrder::Hits => chain.sums.hits,
                RowOrder::Recency => chain.sums.touched,
            };
            ((Reverse(by), Reverse(chain.sums.blocks), chain.tokens), id)
        };
        let mut keys: Vec<_> = self.children(parent).iter().copied().filter(held).map(keyed).collect();
        keys.sort_by_key(|&(key, _)| key);
        let siblings = keys.len() as u32;
        let row = |(i, &(_, id)): (usize, &(_, ChainId))| Row {
            id,
            level,
            place: i as u32 + 1,
            siblings,
            is_open: false,
        };
        todo.extend(keys.iter().enumerate().rev().map(row));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arrangement;
    use super::*;
    use crate::tree::Tree;
    use radixscope_model::id::{BlockHash, Slot, TokensHash};
    use radixscope_model::record::Block;

    fn store(tree: &mut Tree, worker: u16, tokens: &[u64], touched: u32) {
        let block = |&t: &u64| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) };
        let blocks: Vec<Block> = tokens.iter().map(block).collect();
        tree.store(Slot(worker), None, &blocks, touched);
    }

    /// 1 2 with 3 4 5 and 6 below; 8 9 stored last.
    fn tree() -> Tree {
        let mut tree = Tree::default();
        store(&mut tree, 0, &[1, 2, 3, 4, 5], 1);
        store(&mut tree, 1, &[1, 2, 6], 2);
        store(&mut tree, 2, &[8, 9], 3);
        tree.build_forest(Arrangement::default());
        tree
    }

    fn rows_of(tree: &Tree, order: RowOrder, most: usize, open: bool) -> Vec<(u64, u32, u32, u32)> {
        let forest = tree.forest().expect("built");
        let rows = forest.rows(order, most, |_| open);
        let tokens = |row: &Row| tree.tokens_hash(forest.chain(row.id).first).0;
        rows.iter().map(|row| (tokens(row), row.level, row.place, row.siblings)).collect()
    }

    #[test]
    fn open_boxes_are_followed_by_what_is_below_them() {
        let rows = rows_of(&tree(), RowOrder::Blocks, 100, true);
        assert_eq!(rows, [(1, 1, 1, 2), (3, 2, 1, 2), (6, 2, 2, 2), (8, 1, 2, 2)]);
    }

    #[test]
    fn closed_boxes_stand_alone() {
        assert_eq!(rows_of(&tree(), RowOrder::Blocks, 100, false), [(1, 1, 1, 2), (8, 1, 2, 2)]);
    }

    #[test]
    fn the_latest_come_first_if_requested() {
        let rows = rows_of(&tree(), RowOrder::Recency, 100, true);
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [8, 1, 6, 3]);
    }

    #[test]
    fn lines_have_a_bound() {
        assert_eq!(rows_of(&tree(), RowOrder::Blocks, 2, true).len(), 2);
    }

    #[test]
    fn blocks_without_owners_are_not_listed() {
        let mut tree = tree();
        tree.update_forest();
        [1, 2].into_iter().for_each(|t| assert!(tree.remove(Slot(0), BlockHash(t))));
        [1, 2, 6].into_iter().for_each(|t| assert!(tree.remove(Slot(1), BlockHash(t))));
        tree.update_forest();
        let rows = rows_of(&tree, RowOrder::Blocks, 100, true);
        assert_eq!(
            rows,
            [(1, 1, 1, 2), (3, 2, 1, 1), (8, 1, 2, 2)],
            "blocks that lead to held ones are kept"
        );
    }
}
