//! Boxes coloured by what changed between two moments: a colour and a pattern for each change, what is retained quieter. Knows no
//! canvas.

use radixscope_insight::changes::{BlockChange, ChangeTree};
use radixscope_model::id::Slot;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Chain, Sliver};

use crate::palette::{Palette, Pattern, blend, shared_body};
use crate::raster::{DIMMED, Fill, Fills};

/// Fills by change.
pub struct ByChange<'a> {
    /// Colours.
    pub palette: &'a Palette,
}

impl ByChange<'_> {
    fn fill(&self, change: Option<BlockChange>) -> Fill {
        let Palette { ground, shared, evicted_parent, stored, evicted, moved, .. } = *self.palette;
        match change {
            None => Fill::plain(evicted_parent),
            Some(BlockChange::Elsewhere) => Fill::plain(blend(ground, shared, DIMMED)),
            // As quiet as the body of a box of several workers: what changed stands out.
            Some(BlockChange::Retained) => Fill::plain(shared_body(ground, shared)),
            Some(BlockChange::Stored) => Fill::of(stored, ground, Pattern::Bars),
            Some(BlockChange::Evicted) => Fill::of(evicted, ground, Pattern::Stripes),
            Some(BlockChange::Moved) => Fill::of(moved, ground, Pattern::Dots),
        }
    }
}

impl Fills for ByChange<'_> {
    fn of_chain(&self, tree: &Tree, chain: &Chain) -> Fill {
        self.fill(ChangeTree::of_chain(tree, chain))
    }

    /// What changed is seen among what did not, however little it is.
    fn of_sliver(&self, sliver: &Sliver) -> Fill {
        let is_change = |change: &BlockChange| {
            matches!(change, BlockChange::Stored | BlockChange::Evicted | BlockChange::Moved)
        };
        let mut changes = ChangeTree::of_sliver(sliver).filter(is_change);
        match (changes.next(), changes.next()) {
            (Some(_), Some(_)) => Fill::plain(self.palette.quiet),
            (Some(only), None) => self.fill(Some(only)),
            (None, _) => self.fill(ChangeTree::of_sliver(sliver).next()),
        }
    }

    fn of_tick(&self, _: Slot) -> Option<Fill> {
        None
    }

    fn word(&self, tree: &Tree, chain: &Chain) -> Option<String> {
        Some(match ChangeTree::of_chain(tree, chain)? {
            BlockChange::Elsewhere => String::new(),
            change => change.as_str().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{BlockHash, Millis, Seq, TokensHash, Worker, WorkerIx};
    use radixscope_model::record::{Block, Entry, Record};
    use radixscope_state::cluster::Cluster;
    use radixscope_state::tree::forest::{Arrangement, Order};

    use super::*;
    use crate::palette::contrast;
    use crate::raster::{Pixels, raster};
    use crate::testing::token_text;
    use crate::viewport::{Region, Viewport};

    fn fold(cluster: &mut Cluster, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(1_800_000_000_000), record });
    }

    fn stored(worker: u16, tokens: std::ops::Range<u64>) -> Record<'static> {
        let block = |t| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) };
        let blocks: Vec<Block> = tokens.map(block).collect();
        Record::Stored { worker: WorkerIx::first(Slot(worker)), parent: None, blocks: blocks.into() }
    }

    fn removed(worker: u16, tokens: std::ops::Range<u64>) -> Record<'static> {
        let hashes: Vec<BlockHash> = tokens.map(BlockHash).collect();
        Record::Removed { worker: WorkerIx::first(Slot(worker)), hashes: hashes.into() }
    }

    /// Four prompts of 30 blocks, which are retained, evicted, moved to the other worker, and stored.
    fn tree() -> ChangeTree {
        let mut cluster = Cluster::default();
        for worker in 0..2 {
            let id = Worker::new(u64::from(worker) + 7, 0);
            fold(&mut cluster, Record::new_worker(WorkerIx::first(Slot(worker)), id, "dynamo", "backend"));
        }
        for from in [100, 200, 300] {
            fold(&mut cluster, stored(0, from..from + 30));
        }
        let a = cluster.copy_without_forests();
        fold(&mut cluster, removed(0, 200..230));
        fold(&mut cluster, removed(0, 300..330));
        fold(&mut cluster, stored(1, 300..330));
        fold(&mut cluster, stored(1, 400..430));
        ChangeTree::of(&a, &cluster, "dynamo/backend", None, None)
    }

    #[test]
    fn each_change_has_its_colour_and_pattern() {
        let mut changes = tree();
        let arrangement = Arrangement { order: Order::Stable, ..Arrangement::default() };
        changes.tree_mut().build_forest(arrangement);
        let tree = changes.tree();
        let region = Region::all(tree.forest().expect("built"));
        let view = Viewport { region, width: 120, height: 30, scale: 1.0 };
        for dark in [false, true] {
            let palette = Palette::read(token_text, dark, 2);
            let (fills, mut pixels) = (ByChange { palette: &palette }, Pixels::default());
            raster(tree, &view, &palette, &fills, &mut pixels);
            let seen = |from: usize| {
                let all = (from..from + 29).flat_map(|x| (0..29).map(move |y| (x, y)));
                all.fold((0, 0, Vec::new()), |(mut marked, mut plain, mut colours), (x, y)| {
                    let colour = pixels.at(x, y);
                    let is_first = pixels.at(from, 4) == colour;
                    (marked, plain) = (marked + usize::from(!is_first), plain + usize::from(is_first));
                    if !colours.contains(&colour) {
                        colours.push(colour);
                    }
                    (marked, plain, colours)
                })
            };
            let retained = shared_body(palette.ground, palette.shared);
            assert_eq!(seen(0).2, [retained], "what is retained is plain");
            for (from, colour) in [(30, palette.evicted), (60, palette.moved), (90, palette.stored)] {
                let (_, _, colours) = seen(from);
                assert!(
                    colours.len() == 2 && colours.contains(&colour),
                    "{from}: {colours:?} and {colour:?}"
                );
                assert!(contrast(colour, palette.ground) >= 3.0, "{from}, dark {dark}");
            }
        }
    }

    #[test]
    fn what_changed_is_seen_where_there_is_no_room_for_it() {
        let mut changes = tree();
        changes.tree_mut().build_forest(Arrangement::default());
        let tree = changes.tree();
        let palette = Palette::read(token_text, true, 2);
        let fills = ByChange { palette: &palette };
        let sliver = |workers| Sliver {
            column: 0,
            top: 0,
            bottom: 1,
            holder: radixscope_state::tree::forest::Holder::Several,
            workers,
            touched: 0,
            hits: 0,
            blocks: 1,
            copies: 0,
        };
        assert_eq!(fills.of_sliver(&sliver(0b00011)).colour, palette.stored);
        assert_eq!(fills.of_sliver(&sliver(0b00101)).colour, palette.evicted);
        assert_eq!(fills.of_sliver(&sliver(0b00111)).colour, palette.quiet, "several kinds");
        assert_eq!(fills.of_sliver(&sliver(0b00001)), fills.fill(Some(BlockChange::Retained)));
        let forest = tree.forest().expect("built");
        let text: Vec<_> =
            forest.children(None).iter().map(|&id| fills.word(tree, forest.chain(id))).collect();
        assert!(text.contains(&Some("evicted".to_owned())) && text.contains(&Some("moved".to_owned())));
    }
}
