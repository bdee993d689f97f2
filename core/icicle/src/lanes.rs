//! The icicle once per worker, one lane below the other: the same blocks stand at the same place across in every lane,
//! so that what several workers hold stands above each other and what one alone holds stands out.
//!
//! A lane shows the whole window, its depth squeezed into the lane's height. Only lanes that are seen cost anything,
//! and one visit of the forest paints all of them.

use std::sync::Arc;

use radixscope_export::panel::lanes::{
    EDGE_PX, SHARED_OPACITY, SILHOUETTE_OPACITY, holds_sliver, silhouette,
};
use radixscope_model::id::Slot;
use radixscope_state::tree::forest::{Forest, Holder, Sliver, VisibleBox};
use radixscope_state::tree::{OwnerSet, Tree};

use crate::palette::{Palette, Pattern, blend};
use crate::raster::{
    DIMMED, Drawn, Fill, Fills, Labelled, Pixels, Stripe, Stripes, body, can_be_pointed_at, has_label, lacks,
    lacks_sliver, span,
};
use crate::viewport::{Rect, Viewport};

/// Least and greatest height of a lane, CSS pixels.
const HEIGHTS: (f64, f64) = (56.0, 200.0);
/// What is free between lanes, CSS pixels.
const GAP: f64 = 3.0;
/// As [`SHARED_OPACITY`], where the worker picked out does not hold the blocks.
const SHARED_DIMMED: f64 = 0.14;

/// Where the lanes stand on the surface.
#[derive(Clone, PartialEq, Debug)]
pub struct Lanes {
    /// Whose they are, from the top, by ascending index.
    pub workers: Arc<[Slot]>,
    /// From the top of one to the top of the next, device pixels.
    pub height: f64,
    /// Device pixels scrolled away at the top.
    pub scrolled: f64,
}

impl Lanes {
    /// Height of a lane, CSS pixels, where `stage` CSS pixels are there for `count` lanes: they fill it if they can.
    pub fn height_css(stage: f64, count: usize) -> f64 {
        (stage / count.max(1) as f64).floor().max(HEIGHTS.0).min(HEIGHTS.1)
    }

    /// Lanes of which something is seen on a surface so many device pixels high.
    pub fn visible(&self, height: f64) -> std::ops::Range<usize> {
        let first = (self.scrolled / self.height).max(0.0) as usize;
        let behind = ((self.scrolled + height) / self.height).ceil().max(0.0) as usize;
        let count = self.workers.len();
        first.min(count)..behind.min(count)
    }

    /// The lane of a worker; `None`: it has none.
    pub fn lane_of(&self, worker: Slot) -> Option<usize> {
        self.workers.binary_search(&worker).ok()
    }

    /// Upper edge of a lane on the surface, device pixels; may lie outside.
    pub fn top(&self, lane: usize) -> f64 {
        (lane as f64 * self.height - self.scrolled).round()
    }

    /// The same in CSS pixels, of which `scale` device pixels are one.
    #[must_use]
    pub fn in_css(&self, scale: f64) -> Self {
        Self { height: self.height / scale, scrolled: self.scrolled / scale, ..self.clone() }
    }

    /// How far down its lane a place of the surface is, in CSS pixels like the lanes: 0 at its top, 1 at its bottom,
    /// beyond that between two lanes.
    pub fn share(&self, y: f64) -> f64 {
        (y + self.scrolled).rem_euclid(self.height) / (self.height - GAP).max(1.0)
    }

    /// The window as one lane shows it: as `view`, but as high as a lane.
    pub fn lane_view(&self, view: &Viewport) -> Viewport {
        Viewport { height: (self.height - GAP * view.scale).floor().max(1.0) as u32, ..*view }
    }

    /// Where in the lane of `worker` a rectangle of the tree stands, its depth cut off at the lane's edges. `rect` is
    /// one of [`Lanes::lane_view`]. `None` where nothing of it is inside.
    pub fn place(&self, view: &Viewport, worker: Slot, rect: Rect) -> Option<Rect> {
        let (top, height) = (self.top(self.lane_of(worker)?), f64::from(self.lane_view(view).height));
        let is_inside = rect.bottom > 0.0 && rect.top < height;
        is_inside.then(|| Rect {
            top: top + rect.top.max(0.0),
            bottom: top + rect.bottom.min(height),
            ..rect
        })
    }
}

/// What lies under a device pixel: the lane's worker, units and block position. `None` between and below the lanes.
pub fn under(view: &Viewport, lanes: &Lanes, x: f64, y: f64) -> Option<(Slot, f64, f64)> {
    let lane = ((y + lanes.scrolled) / lanes.height).floor();
    if lane < 0.0 {
        return None;
    }
    let lane = lane as usize;
    let worker = *lanes.workers.get(lane)?;
    let (within, inner) = (y - lanes.top(lane), lanes.lane_view(view));
    let (units, position) = inner.under(x, within);
    (within < f64::from(inner.height)).then_some((worker, units, position))
}

/// Draws the lanes that are seen. With `heat`, boxes have its colours and not their workers'.
pub fn raster(
    tree: &Tree,
    view: &Viewport,
    lanes: &Lanes,
    palette: &Palette,
    heat: Option<&dyn Fills>,
    picked: Option<Slot>,
    pixels: &mut Pixels,
) -> Drawn {
    pixels.reset(view.width, view.height, palette.ground);
    let mut drawn = Drawn::default();
    let Some(forest) = tree.forest() else { return drawn };
    let (inner, scale) = (lanes.lane_view(view), view.scale.round().max(1.0) as usize);
    let band = |lane: usize| Some(Band::new(*lanes.workers.get(lane)?, lanes.top(lane) as isize, palette));
    let bands: Vec<Band> = lanes.visible(f64::from(view.height)).filter_map(band).collect();
    let painter = LanesPainter { palette, heat, inner: &inner, bands: &bands };
    painter.silhouettes(forest, pixels);
    let mut slivers = std::mem::take(&mut pixels.slivers);
    slivers.clear();
    forest.visit(&inner.window(), |seen| match seen {
        VisibleBox::Chain { id, x0 } => {
            let chain = forest.chain(id);
            let rect = inner.rect(x0, f64::from(chain.width()), chain.position, chain.end());
            if rect.bottom <= 0.0 {
                return;
            }
            let owners = tree.chain_owners(chain);
            let heat = heat.map(|fills| fills.of_chain(tree, chain));
            let style = Style { is_shared: owners.len() > 1, is_dimmed: lacks(picked, owners), heat };
            for band in painter.bands_of(owners) {
                let fill = band.fill(style);
                if let Some(rect) = painter.draw(band, rect, style, fill, pixels)
                    && has_label(rect, view.scale)
                {
                    drawn.labelled.push(Labelled { id, rect, fill });
                }
            }
        }
        VisibleBox::Sliver(sliver) => slivers.push(sliver),
        VisibleBox::NarrowBoxes(run) => drawn.runs.extend(can_be_pointed_at(&inner, &run).then_some(run)),
    });
    pixels.flush(scale);
    bands.iter().for_each(|band| painter.draw_slivers(band, &slivers, picked, pixels));
    pixels.flush(scale);
    pixels.slivers = slivers;
    drawn
}

/// A lane on the surface.
struct Band {
    worker: Slot,
    /// First row; above the surface it is negative.
    top: isize,
    /// How its boxes look: by whether others hold them too, and whether the worker picked out does not.
    fills: [[Fill; 2]; 2],
}

impl Band {
    fn new(worker: Slot, top: isize, palette: &Palette) -> Self {
        let fill = |strength: f64| {
            let colour = blend(palette.ground, palette.worker(worker), strength);
            Fill::of(colour, palette.ground, Pattern::of(worker))
        };
        let fills = [[fill(1.0), fill(DIMMED)], [fill(SHARED_OPACITY), fill(SHARED_DIMMED)]];
        Self { worker, top, fills }
    }

    fn fill(&self, style: Style) -> Fill {
        style.heat.unwrap_or(self.fills[usize::from(style.is_shared)][usize::from(style.is_dimmed)])
    }

    /// Rows of the lane as rows of the surface; what is above it is cut off.
    fn rows(&self, y: (usize, usize)) -> (usize, usize) {
        let at = |row: usize| (self.top + row as isize).max(0) as usize;
        (at(y.0), at(y.1))
    }
}

struct LanesPainter<'a> {
    palette: &'a Palette,
    heat: Option<&'a dyn Fills>,
    inner: &'a Viewport,
    bands: &'a [Band],
}

/// How a box looks in a lane.
#[derive(Clone, Copy)]
struct Style {
    is_shared: bool,
    is_dimmed: bool,
    heat: Option<Fill>,
}

impl<'a> LanesPainter<'a> {
    /// Visible lanes of some owners.
    fn bands_of<'b>(&self, owners: &'b OwnerSet) -> impl Iterator<Item = &'a Band> + use<'a, 'b> {
        let (bands, last) = (self.bands, self.bands.last().map(|band| band.worker));
        let seen = owners.iter().take_while(move |worker| Some(*worker) <= last);
        seen.filter_map(move |worker| {
            bands.get(bands.binary_search_by_key(&worker, |band| band.worker).ok()?)
        })
    }

    /// Draws a box into a lane. Gives its visible part on the surface.
    fn draw(&self, band: &Band, rect: Rect, style: Style, fill: Fill, pixels: &mut Pixels) -> Option<Rect> {
        let scale = self.inner.scale.round().max(1.0) as usize;
        let (x, y) = body(rect, (self.inner.width as usize, self.inner.height as usize), scale);
        pixels.paint(x, band.rows(y), fill);
        let edge = EDGE_PX as usize * scale;
        if style.is_shared && rect.top >= -0.5 && y.1 - y.0 >= 3 * edge {
            let Palette { ground, shared, .. } = *self.palette;
            let neutral = if style.is_dimmed { blend(ground, shared, DIMMED) } else { shared };
            pixels.fill(x, band.rows((y.0, y.0 + edge)), neutral);
        }
        let (top, bottom) = band.rows(y);
        let at = |pixel: usize| pixel as f64;
        (bottom > top).then(|| Rect { left: at(x.0), top: at(top), right: at(x.1), bottom: at(bottom) })
    }

    /// See [`super::raster::raster`]: the first of a column is painted last.
    fn draw_slivers(&self, band: &Band, slivers: &[Sliver], picked: Option<Slot>, pixels: &mut Pixels) {
        let mut stripes = Stripes::default();
        for sliver in slivers.iter().rev().filter(|sliver| holds_sliver(sliver, band.worker)) {
            let style = Style {
                is_shared: sliver.holder == Holder::Several,
                is_dimmed: lacks_sliver(picked, sliver),
                heat: self.heat.map(|fills| fills.of_sliver(sliver)),
            };
            let (top, bottom) = (self.inner.y(f64::from(sliver.top)), self.inner.y(f64::from(sliver.bottom)));
            let (top, bottom) = band.rows(span(top, bottom, self.inner.height as usize));
            let colour = band.fill(style).colour;
            stripes.push(Stripe { column: sliver.column as usize, top, bottom, colour }, pixels);
        }
        stripes.flush(pixels);
    }

    /// The outline of the whole tree into every lane, so that the eye keeps its place.
    fn silhouettes(&self, forest: &Forest, pixels: &mut Pixels) {
        let (width, height) = (self.inner.width as usize, self.inner.height as usize);
        let columns_of = |from: f64, to: f64| {
            let (left, right) = span(self.inner.x(from), self.inner.x(to), width);
            left..right
        };
        let mut depths = silhouette(forest, &self.inner.window(), columns_of);
        for depth in depths.iter_mut().filter(|depth| **depth > 0) {
            let (_, bottom) = span(0.0, self.inner.y(f64::from(*depth)), height);
            *depth = bottom as u32;
        }
        let faint = blend(self.palette.ground, self.palette.shared, SILHOUETTE_OPACITY);
        for band in self.bands {
            for depth in 0..height {
                if let Ok(at) = usize::try_from(band.top + depth as isize) {
                    pixels.fill_deeper(at, &depths, depth as u32, faint);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use radixscope_state::tree::forest::Arrangement;

    use super::*;
    use crate::testing::{palette, store};
    use crate::viewport::Region;

    const W: [Slot; 3] = [Slot(0), Slot(1), Slot(2)];

    /// Worker 0 alone holds 60 blocks, workers 0 and 1 share 30, worker 2 alone holds 10, side by side.
    fn three() -> Tree {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=60);
        store(&mut tree, 0, 101..=130);
        store(&mut tree, 1, 101..=130);
        store(&mut tree, 2, 201..=210);
        tree.build_forest(Arrangement::default());
        tree
    }

    /// Three lanes of 63 pixels, one a block and three between, on 100 columns.
    fn lanes(scrolled: f64) -> Lanes {
        Lanes { workers: Arc::from(W), height: 63.0, scrolled }
    }

    fn view(tree: &Tree, height: u32) -> Viewport {
        let region = Region::all(tree.forest().expect("grown"));
        Viewport { region, width: 100, height, scale: 1.0 }
    }

    fn draw(tree: &Tree, lanes: Lanes, height: u32, picked: Option<u16>) -> (Pixels, Drawn) {
        let (mut pixels, view, picked) = (Pixels::default(), view(tree, height), picked.map(Slot));
        let drawn = raster(tree, &view, &lanes, &palette(), None, picked, &mut pixels);
        (pixels, drawn)
    }

    #[test]
    fn a_shared_prefix_stands_at_the_same_place_in_the_lanes_of_its_owners_alone() {
        let (pixels, p) = (draw(&three(), lanes(0.0), 189, None).0, palette());
        let muted = |worker| blend(p.ground, p.worker(worker), SHARED_OPACITY);
        for x in [61, 75, 88] {
            assert_eq!(pixels.at(x, 20), muted(W[0]));
            assert_eq!(pixels.at(x, 63 + 20), muted(W[1]));
            assert_eq!(
                [pixels.at(x, 0), pixels.at(x, 63)],
                [p.shared; 2],
                "the edge of what others hold too"
            );
        }
        assert_ne!(pixels.at(75, 126 + 20), muted(W[2]));
    }

    #[test]
    fn what_one_alone_holds_is_in_its_lane_alone_and_the_others_keep_its_outline() {
        let (pixels, p) = (draw(&three(), lanes(0.0), 189, None).0, palette());
        let faint = blend(p.ground, p.shared, SILHOUETTE_OPACITY);
        assert_eq!(pixels.at(30, 30), p.worker(W[0]));
        assert_eq!([pixels.at(30, 63 + 30), pixels.at(30, 126 + 30)], [faint; 2]);
        assert_eq!(
            [pixels.at(95, 5), pixels.at(95, 63 + 5), pixels.at(95, 126 + 5)],
            [faint, faint, p.worker(W[2])]
        );
        assert_eq!(pixels.at(95, 126 + 12), p.ground, "below the ten blocks");
        assert_eq!([pixels.at(30, 61), pixels.at(30, 62)], [p.ground; 2], "between two lanes");
    }

    #[test]
    fn with_a_worker_picked_out_the_lanes_keep_what_it_holds_too() {
        let (pixels, p) = (draw(&three(), lanes(0.0), 189, Some(1)).0, palette());
        assert_eq!(
            pixels.at(75, 20),
            blend(p.ground, p.worker(W[0]), SHARED_OPACITY),
            "worker 1 holds it too"
        );
        assert_eq!(pixels.at(30, 30), blend(p.ground, p.worker(W[0]), DIMMED));
        assert_eq!(pixels.at(95, 126 + 5), blend(p.ground, p.worker(W[2]), DIMMED));
    }

    #[test]
    fn lanes_scrolled_away_leave_no_trace_and_the_others_keep_their_distance() {
        let lanes = lanes(83.0);
        let (pixels, p) = (draw(&three(), lanes.clone(), 80, None).0, palette());
        assert_eq!(lanes.visible(80.0), 1..3);
        assert_eq!(
            pixels.at(75, 0),
            blend(p.ground, p.worker(W[1]), SHARED_OPACITY),
            "20 rows of lane 1 are above"
        );
        assert_eq!(pixels.at(95, 43 + 5), p.worker(W[2]));
    }

    #[test]
    fn a_pixel_leads_to_the_worker_and_the_place_in_its_lane() {
        let tree = three();
        let view = view(&tree, 189);
        assert_eq!(under(&view, &lanes(0.0), 30.0, 15.0), Some((W[0], 30.0, 15.0)));
        assert_eq!(under(&view, &lanes(0.0), 30.0, 126.0 + 15.0), Some((W[2], 30.0, 15.0)));
        assert_eq!(under(&view, &lanes(0.0), 30.0, 61.0), None, "between two lanes");
        assert_eq!(under(&view, &lanes(0.0), 30.0, 190.0), None, "below all");
        let scrolled = lanes(70.0);
        assert_eq!(under(&view, &scrolled, 30.0, 0.0), Some((W[1], 30.0, 7.0)));
    }

    #[test]
    fn a_place_in_the_tree_leads_to_its_pixels_in_a_lane() {
        let tree = three();
        let view = view(&tree, 189);
        let lanes = lanes(0.0);
        let rect = lanes.lane_view(&view).rect(60.0, 30.0, 0, 30);
        let placed = lanes.place(&view, W[1], rect).expect("inside");
        assert_eq!((placed.left, placed.top, placed.right, placed.bottom), (60.0, 63.0, 90.0, 93.0));
        assert_eq!(lanes.place(&view, Slot(9), rect), None);
    }

    #[test]
    fn workers_that_are_not_listed_have_no_lane() {
        let tree = three();
        let lanes = Lanes { workers: Arc::from([W[0], W[2]]), height: 63.0, scrolled: 0.0 };
        let (pixels, p) = (draw(&tree, lanes.clone(), 126, None).0, palette());
        assert_eq!(pixels.at(30, 30), p.worker(W[0]));
        assert_eq!(pixels.at(95, 63 + 5), p.worker(W[2]), "the second lane is the third worker's");
        assert_eq!(under(&view(&tree, 126), &lanes, 30.0, 63.0 + 15.0), Some((W[2], 30.0, 15.0)));
        assert_eq!([lanes.lane_of(W[1]), lanes.lane_of(W[2])], [None, Some(1)]);
    }

    #[test]
    fn slivers_are_in_the_lanes_of_those_that_hold_them() {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=5000);
        store(&mut tree, 1, [9001, 9002]);
        store(&mut tree, 70, [9001, 9002]);
        tree.build_forest(Arrangement::default());
        let lanes = Lanes { workers: (0..71).map(Slot).collect(), height: 5003.0, scrolled: 5003.0 };
        let (pixels, p) = (draw(&tree, lanes.clone(), 5000, None).0, palette());
        assert_eq!(pixels.at(99, 1), blend(p.ground, p.worker(W[1]), SHARED_OPACITY));
        let far = Lanes { scrolled: 70.0 * 5003.0, ..lanes };
        let (pixels, _) = draw(&tree, far, 5000, None);
        assert_ne!(pixels.at(99, 1), p.worker(Slot(70)), "of several owners only the first 64 are known");
    }

    #[test]
    fn lanes_fill_the_stage_while_they_can_be_read() {
        assert_eq!([3, 8, 200].map(|n| Lanes::height_css(800.0, n)), [200.0, 100.0, 56.0]);
    }
}
