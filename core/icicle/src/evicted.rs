//! What was evicted since the picture holds still: it keeps its place, hatched. Knows no canvas.

use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::VisibleBox;

use crate::lanes::Lanes;
use crate::palette::{Palette, Pattern, blend};
use crate::raster::{Drawn, Fill, Pixels, body};
use crate::viewport::{Rect, Viewport};

/// Where blocks were that are no longer cached, or that a lane's worker does not.
fn fill(palette: &Palette) -> Fill {
    let mark = blend(palette.evicted_parent, palette.quiet, 0.5);
    Fill { colour: palette.evicted_parent, mark, pattern: Pattern::Stripes }
}

/// Draws over the picture of `tree` which of its blocks were evicted since, as `now` has it. What is too narrow to be told apart
/// stays as it was.
pub fn paint(
    (tree, now): (&Tree, &Tree),
    view: &Viewport,
    lanes: Option<&Lanes>,
    palette: &Palette,
    pixels: &mut Pixels,
    drawn: &mut Drawn,
) {
    let Some(forest) = tree.forest() else { return };
    if now.forest().is_some_and(|now| now.revision() == forest.revision()) {
        return;
    }
    let inner = lanes.map_or(*view, |lanes| lanes.lane_view(view));
    let (fill, scale) = (fill(palette), view.scale.round().max(1.0) as usize);
    let size = (view.width as usize, view.height as usize);
    let seen = lanes.map(|lanes| lanes.visible(f64::from(view.height)));
    let mut hatch = |rect: Rect| {
        let (x, y) = body(rect, size, scale);
        pixels.paint(x, y, fill);
        // A label stands at the top of its box.
        let is_there =
            |label: &Rect| (label.top - rect.top.max(0.0)).abs() < 1.0 && label.left + 1.0 > rect.left;
        for label in &mut drawn.labelled {
            if is_there(&label.rect) && label.rect.left < rect.right {
                label.fill = fill;
            }
        }
    };
    forest.visit(&inner.window(), |seen_box| {
        let VisibleBox::Chain { id, x0 } = seen_box else { return };
        let chain = forest.chain(id);
        let rect = |from, to| inner.rect(x0, f64::from(chain.width()), from, to);
        let Some((lanes, seen)) = lanes.zip(seen.as_ref()) else {
            now.evicted_in(tree, chain, None, |from, to| {
                let rect = rect(from, to);
                if rect.bottom > 0.0 && rect.top < f64::from(view.height) {
                    hatch(rect);
                }
            });
            return;
        };
        for worker in tree.chain_owners(chain).iter() {
            if lanes.lane_of(worker).is_some_and(|lane| seen.contains(&lane)) {
                now.evicted_in(tree, chain, Some(worker), |from, to| {
                    lanes.place(view, worker, rect(from, to)).into_iter().for_each(&mut hatch);
                });
            }
        }
    });
    pixels.flush(scale);
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{BlockHash, Slot};
    use radixscope_state::tree::forest::Arrangement;

    use super::*;
    use crate::raster::{ByOwner, raster};
    use crate::testing::{palette, store};
    use crate::viewport::Region;

    const SIZE: (u32, u32) = (100, 100);

    fn tree() -> Tree {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=50);
        store(&mut tree, 1, 1..=50);
        tree.build_forest(Arrangement::default());
        tree
    }

    fn draw(tree: &Tree, now: &Tree, lanes: Option<&Lanes>) -> (Pixels, Drawn) {
        let region = Region::all(tree.forest().expect("grown"));
        let view = Viewport { region, width: SIZE.0, height: SIZE.1, scale: 1.0 };
        let (palette, mut pixels) = (palette(), Pixels::default());
        let replicas = crate::palette::ReplicaScale::of(2);
        let fills = ByOwner { palette: &palette, picked: None, replicas };
        let mut drawn = match lanes {
            None => raster(tree, &view, &palette, &fills, &mut pixels),
            Some(lanes) => super::super::lanes::raster(tree, &view, lanes, &palette, None, None, &mut pixels),
        };
        paint((tree, now), &view, lanes, &palette, &mut pixels, &mut drawn);
        (pixels, drawn)
    }

    fn is_hatched(pixels: &Pixels, y: usize) -> bool {
        let Fill { colour, mark, .. } = fill(&palette());
        let row: Vec<_> = (10..30).map(|x| pixels.at(x, y)).collect();
        row.contains(&colour) && row.contains(&mark) && row.iter().all(|pixel| [colour, mark].contains(pixel))
    }

    #[test]
    fn blocks_that_no_worker_holds_any_more_are_hatched_in_place() {
        let mut tree = tree();
        let then = tree.copy_with_forest();
        for worker in [0, 1] {
            (26..=50).rev().for_each(|t| assert!(tree.remove(Slot(worker), BlockHash(t))));
        }
        tree.update_forest();
        let (pixels, drawn) = draw(&then, &tree, None);
        assert!(!is_hatched(&pixels, 30));
        assert!(is_hatched(&pixels, 60) && is_hatched(&pixels, 90));
        assert_ne!(drawn.labelled[0].fill, fill(&palette()), "its label stands on what is held");
        (1..=25).rev().for_each(|t| {
            assert!(tree.remove(Slot(0), BlockHash(t)) && tree.remove(Slot(1), BlockHash(t)));
        });
        tree.update_forest();
        let (pixels, drawn) = draw(&then, &tree, None);
        assert!(is_hatched(&pixels, 30));
        assert_eq!(drawn.labelled[0].fill, fill(&palette()));
    }

    #[test]
    fn a_lane_is_hatched_where_its_worker_evicted() {
        let mut tree = tree();
        let then = tree.copy_with_forest();
        (26..=50).rev().for_each(|t| assert!(tree.remove(Slot(1), BlockHash(t))));
        tree.update_forest();
        let lanes = Lanes { workers: (0..2).map(Slot).collect(), height: 50.0, scrolled: 0.0 };
        let (pixels, _) = draw(&then, &tree, Some(&lanes));
        assert!(!is_hatched(&pixels, 40), "the first worker's lane");
        assert!(!is_hatched(&pixels, 60) && is_hatched(&pixels, 85), "the second one's");
    }
}
