//! What a window of the tree shows, in boxes and figures. Pure.

use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{ChainId, Forest};

use crate::viewport::Region;

/// Boxes that reach from `x0` to `x1` or beyond, from the top down to `bottom`.
pub fn over(forest: &Forest, x0: f64, x1: f64, bottom: f64) -> Vec<ChainId> {
    let (mut path, mut above, mut left) = (Vec::new(), None, 0.0);
    while let Some(id) = forest.child_at(above, x0 - left) {
        let chain = forest.chain(id);
        left = f64::from(forest.left(id));
        if x1 > left + f64::from(chain.width()) || f64::from(chain.position) >= bottom {
            break;
        }
        path.push(id);
        above = Some(id);
    }
    path
}

/// Boxes that span the window from side to side, from the top down.
pub fn spanning(forest: &Forest, region: Region) -> Vec<ChainId> {
    // What a journey leaves behind the last digit must not push a box out of the path that was gone to.
    let slack = (region.x1 - region.x0) * 1e-6;
    over(forest, region.x0.max(0.0) + slack, region.x1.min(f64::from(forest.width())) - slack, region.bottom)
}

/// Held blocks in boxes that have no hit, when widths are hits: they are not seen.
pub fn without_hit(tree: &Tree, forest: &Forest) -> u32 {
    let mut seen = 0;
    let mut todo: Vec<Option<ChainId>> = vec![None];
    while let Some(parent) = todo.pop() {
        for &id in forest.children(parent) {
            let chain = forest.chain(id);
            if chain.sums.hits > 0 {
                seen += tree.held_in(chain);
                todo.push(Some(id));
            }
        }
    }
    forest.sums().blocks - seen
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{BlockHash, Slot, TokensHash};
    use radixscope_model::record::Block;
    use radixscope_state::tree::forest::{Arrangement, Width};

    use super::*;

    /// Blocks 1 … 10, below them 11 … 20 and 31 … 34.
    fn tree(width: Width) -> Tree {
        let mut tree = Tree::default();
        let block = |t| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) };
        tree.store(Slot(0), None, &(1..=20).map(block).collect::<Vec<_>>(), 0);
        tree.store(Slot(0), Some(BlockHash(10)), &(31..=34).map(block).collect::<Vec<_>>(), 0);
        let end = tree.find_any(BlockHash(31)).expect("it is there");
        tree.hit(end, 0);
        tree.build_forest(Arrangement { width, hits_window: u32::MAX, ..Arrangement::default() });
        tree.update_forest();
        tree
    }

    fn firsts(tree: &Tree, path: &[ChainId]) -> Vec<u64> {
        let forest = tree.forest().expect("grown");
        path.iter().map(|&id| tree.tokens_hash(forest.chain(id).first).0).collect()
    }

    #[test]
    fn the_path_names_the_boxes_that_span_the_window() {
        let tree = tree(Width::Blocks);
        let forest = tree.forest().expect("grown");
        let path = |x0, x1, bottom| firsts(&tree, &spanning(forest, Region { x0, x1, top: 0.0, bottom }));
        assert_eq!(path(0.0, 24.0, 20.0), [1]);
        assert_eq!(path(0.0, 10.0, 20.0), [1, 11]);
        assert_eq!(path(10.5, 13.5, 20.0), [1, 31]);
        assert_eq!(path(10.5, 13.5, 9.0), [1], "what begins below the window is none of the path");
        assert_eq!(path(8.0, 13.0, 20.0), [1], "two boxes share the window");
    }
}
