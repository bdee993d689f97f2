//! The icicle as pixels: a pure function of tree, viewport and colours, written into a byte buffer that is put on
//! the screen at once. Knows no canvas and no text.
//!
//! By hand: ECharts has no icicle, and a million blocks are drawn within a frame only as pixels.
//!
//! Cost follows what is visible, see [`radixscope_state::tree::forest::Forest::visit`].

use std::ops::Range;

use radixscope_model::id::Slot;
use radixscope_state::tree::forest::{Chain, ChainId, Holder, NarrowBoxes, Sliver, VisibleBox};
use radixscope_state::tree::{OwnerSet, Tree};

use crate::palette::{Palette, Pattern, ReplicaScale, Rgb, blend};
use crate::viewport::{Rect, Viewport};

/// More owners than this are not drawn as ticks one by one; the label counts them.
pub const MAX_TICKS: usize = 16;
/// What is left of the colour of a box that the worker picked out does not hold.
pub const DIMMED: f64 = 0.22;
/// A box at least this wide, in CSS pixels, has a gap to its neighbour.
const GAP_FROM: f64 = 4.0;
/// Height of the ticks and of the ground below them, in CSS pixels.
pub const TICKS_HEIGHT: usize = 8;
/// Narrowest and widest tick, in CSS pixels: a narrower one is not seen from a metre away.
const TICK_WIDTH: (usize, usize) = (3, 20);
/// Smallest box that has room for text, in CSS pixels; and the width of one that must say a number, because it has no ticks.
const LABEL_FROM: (f64, f64) = (24.0, 14.0);
const COUNT_FROM: f64 = 15.0;

/// Smallest run that is reported as one, in CSS pixels across or down.
const POINTED_FROM: f64 = 3.0;

/// A buffer of pixels, red, green, blue, alpha.
#[derive(Default)]
pub struct Pixels {
    width: usize,
    height: usize,
    data: Vec<[u8; 4]>,
    /// Room for slivers, reused from picture to picture.
    pub(crate) slivers: Vec<Sliver>,
    /// What waits to be painted, by bands of rows: in the order of the tree each box would be in other pages of memory
    /// than the one before.
    bands: Vec<Vec<PaintJob>>,
}

/// Rows of a band.
const BAND: usize = 32;

/// Narrowest stretch of a row that is copied from another in place of being filled: the copy of a browser is not made pixel by pixel.
const COPIED_FROM: usize = 64;

/// Something to be painted.
#[derive(Clone, Copy)]
struct PaintJob {
    x: (u16, u16),
    y: (u16, u16),
    fill: Fill,
    /// Width of its frame, which has the colour of the marks.
    frame: u16,
}

impl Pixels {
    /// The bytes, row by row.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_flattened()
    }

    /// The pixel at `x`, `y`.
    pub fn at(&self, x: usize, y: usize) -> Rgb {
        let [r, g, b, _] = self.data[y * self.width + x];
        [r, g, b]
    }

    pub(crate) fn reset(&mut self, width: u32, height: u32, ground: Rgb) {
        (self.width, self.height) = (width as usize, height as usize);
        self.data.resize(self.width * self.height, opaque(ground));
        let width = self.width;
        if let Some(first) = self.data.get_mut(..width) {
            first.fill(opaque(ground));
        }
        (1..self.height).for_each(|row| self.data.copy_within(..width, row * width));
        self.bands.resize_with(self.height.div_ceil(BAND), Vec::new);
    }

    /// Will fill a rectangle, see [`Pixels::paint`].
    pub(crate) fn fill(&mut self, x: (usize, usize), y: (usize, usize), colour: Rgb) {
        self.paint(x, y, Fill::plain(colour));
    }

    /// In the row `at`: the columns of which `depths` says more than `depth`.
    pub(crate) fn fill_deeper(&mut self, at: usize, depths: &[u32], depth: u32, colour: Rgb) {
        let Some(row) = self.data.get_mut(at * self.width..(at + 1) * self.width) else { return };
        for (pixel, &deep) in row.iter_mut().zip(depths) {
            *pixel = if deep > depth { opaque(colour) } else { *pixel };
        }
    }

    /// Will fill a rectangle with the next [`Pixels::flush`], over earlier rectangles.
    pub(crate) fn paint(&mut self, x: (usize, usize), y: (usize, usize), fill: Fill) {
        self.paint_framed(x, y, fill, 0);
    }

    /// The same with a frame of so many pixels within it, in the colour of the marks.
    fn paint_framed(&mut self, x: (usize, usize), y: (usize, usize), fill: Fill, frame: usize) {
        let short = |at: usize, limit: usize| at.min(limit).min(usize::from(u16::MAX)) as u16;
        let (top, bottom) = (y.0, y.1.min(self.height));
        let x = (short(x.0, self.width), short(x.1, self.width));
        let y = (short(top, self.height), short(bottom, self.height));
        let frame = short(frame, self.width);
        if top < bottom {
            for band in &mut self.bands[top / BAND..bottom.div_ceil(BAND)] {
                band.push(PaintJob { x, y, fill, frame });
            }
        }
    }

    /// Paints what waits. `scale`: device pixels per CSS pixel.
    pub(crate) fn flush(&mut self, scale: usize) {
        let mut bands = std::mem::take(&mut self.bands);
        for (at, band) in bands.iter_mut().enumerate() {
            let rows = (at * BAND, (at + 1) * BAND);
            for job in band.drain(..) {
                match job.fill.pattern {
                    Pattern::Plain => self.paint_plain(job, rows),
                    _ => self.paint_pattern(job, rows, scale),
                }
            }
        }
        self.bands = bands;
    }

    /// Columns of a job, and which of `rows` it has.
    fn extent(&self, job: &PaintJob, rows: (usize, usize)) -> (Range<usize>, Range<usize>) {
        let of = |(from, to): (u16, u16), (first, behind): (usize, usize)| {
            usize::from(from).max(first)..usize::from(to).min(behind)
        };
        (of(job.x, (0, self.width)), of(job.y, (rows.0, rows.1.min(self.height))))
    }

    fn paint_plain(&mut self, job: PaintJob, rows: (usize, usize)) {
        let (columns, rows) = self.extent(&job, rows);
        let (frame, width) = (usize::from(job.frame), columns.len());
        let (colour, mark) = (opaque(job.fill.colour), opaque(job.fill.mark));
        let inner = usize::from(job.y.0) + frame..usize::from(job.y.1).saturating_sub(frame);
        // Where the last row of the frame and the last one within it begin.
        let mut painted: [Option<usize>; 2] = [None; 2];
        for row in rows {
            let at = row * self.width + columns.start;
            let is_within = inner.contains(&row) && width > 2 * frame;
            let same = painted[usize::from(is_within)].replace(at);
            match same.filter(|_| width >= COPIED_FROM) {
                Some(same) => self.data.copy_within(same..same + width, at),
                None if is_within => {
                    let line = &mut self.data[at..at + width];
                    line[..frame].fill(mark);
                    line[frame..width - frame].fill(colour);
                    line[width - frame..].fill(mark);
                }
                None => self.data[at..at + width].fill(mark),
            }
        }
    }

    fn paint_pattern(&mut self, job: PaintJob, rows: (usize, usize), scale: usize) {
        let (columns, rows) = self.extent(&job, rows);
        let (left, right) = (columns.start, columns.end);
        for row in rows {
            let line = &mut self.data[row * self.width + left..row * self.width + right];
            line.fill(opaque(job.fill.colour));
            let Some(PatternMarks { phase, period, len }) = job.fill.pattern.marks(row / scale) else {
                continue;
            };
            // From the mark that begins at the box's left edge or before it.
            let mut at = (left / scale) as isize - ((left / scale + phase) % period) as isize;
            while at * (scale as isize) < right as isize {
                let begin = |cell: isize| (cell.max(0) as usize * scale).max(left) - left;
                let to = begin(at + len as isize).min(line.len());
                line[begin(at).min(to)..to].fill(opaque(job.fill.mark));
                at += period as isize;
            }
        }
    }
}

/// Where a row of a pattern is marked: `len` cells of every `period`, beginning where cell + `phase` is a multiple of it.
struct PatternMarks {
    phase: usize,
    period: usize,
    len: usize,
}

impl Pattern {
    const fn marks(self, y: usize) -> Option<PatternMarks> {
        match self {
            Pattern::Stripes => Some(PatternMarks { phase: y % 6, period: 6, len: 2 }),
            Pattern::Dots if y % 5 < 2 => Some(PatternMarks { phase: 0, period: 5, len: 2 }),
            Pattern::Bars if y % 5 < 2 => Some(PatternMarks { phase: 0, period: 1, len: 1 }),
            _ => None,
        }
    }
}

/// What a box is filled with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// Its colour.
    pub colour: Rgb,
    /// Colour of the pattern's marks; without a pattern, of the frame.
    pub mark: Rgb,
    /// What tells apart workers of the same hue.
    pub pattern: Pattern,
}

impl Fill {
    /// A colour with a pattern in a darker or lighter one, towards the ground.
    pub fn of(colour: Rgb, ground: Rgb, pattern: Pattern) -> Self {
        let mark = if pattern == Pattern::Plain { colour } else { blend(colour, ground, 0.45) };
        Self { colour, mark, pattern }
    }

    /// One colour.
    pub const fn plain(colour: Rgb) -> Self {
        Self { colour, mark: colour, pattern: Pattern::Plain }
    }
}

/// Which fill boxes have.
pub trait Fills {
    /// Of a chain.
    fn of_chain(&self, tree: &Tree, chain: &Chain) -> Fill;

    /// Of what is too narrow to be distinguished.
    fn of_sliver(&self, sliver: &Sliver) -> Fill;

    /// Of the tick of one owner among several; `None` where owners have none.
    fn of_tick(&self, worker: Slot) -> Option<Fill>;

    /// What is written into a chain in place of its owners.
    fn word(&self, _tree: &Tree, _chain: &Chain) -> Option<String> {
        None
    }
}

/// Whether a worker is picked out that is none of `owners`.
pub fn lacks(picked: Option<Slot>, owners: &OwnerSet) -> bool {
    picked.is_some_and(|picked| !owners.contains(picked))
}

/// Whether a worker is picked out that surely holds nothing of a sliver: workers from 64 on have no bit.
pub fn lacks_sliver(picked: Option<Slot>, sliver: &Sliver) -> bool {
    picked.is_some_and(|picked| match sliver.holder {
        Holder::One(only) => only != picked,
        Holder::NoWorker => true,
        Holder::Several => picked.0 < 64 && sliver.workers & (1 << picked.0) == 0,
    })
}

const fn opaque([r, g, b]: Rgb) -> [u8; 4] {
    [r, g, b, 255]
}

/// A box that has room for text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Labelled {
    /// Which.
    pub id: ChainId,
    /// The visible part of the box.
    pub rect: Rect,
    /// What it is filled with.
    pub fill: Fill,
}

/// What was drawn, as far as text belongs to it.
#[derive(Default)]
pub struct Drawn {
    /// Boxes that have room for text.
    pub labelled: Vec<Labelled>,
    /// Neighbours too narrow for boxes of their own that together are wide enough to be pointed at.
    pub runs: Vec<NarrowBoxes>,
}

/// Draws what `view` shows of the tree's forest into `pixels`.
pub fn raster(
    tree: &Tree,
    view: &Viewport,
    palette: &Palette,
    fills: &dyn Fills,
    pixels: &mut Pixels,
) -> Drawn {
    pixels.reset(view.width, view.height, palette.ground);
    let mut drawn = Drawn::default();
    let Some(forest) = tree.forest() else { return drawn };
    let painter = Painter { palette, fills, scale: view.scale.round().max(1.0) as usize };
    let mut slivers = std::mem::take(&mut pixels.slivers);
    slivers.clear();
    let (width, height) = (f64::from(view.width), f64::from(view.height));
    forest.visit(&view.window(), |seen| match seen {
        VisibleBox::Chain { id, x0 } => {
            let chain = forest.chain(id);
            let rect = view.rect(x0, f64::from(chain.width()), chain.position, chain.end());
            if rect.bottom <= 0.0 {
                return;
            }
            let fill = fills.of_chain(tree, chain);
            let owners = tree.chain_owners(chain);
            painter.draw(owners, rect, fill, pixels);
            let rect = rect.within(width, height);
            if has_label(rect, view.scale) || has_count(rect, owners.len(), view.scale) {
                drawn.labelled.push(Labelled { id, rect, fill });
            }
        }
        VisibleBox::Sliver(sliver) => slivers.push(sliver),
        VisibleBox::NarrowBoxes(run) => drawn.runs.extend(can_be_pointed_at(view, &run).then_some(run)),
    });
    pixels.flush(painter.scale);
    painter.draw_slivers(view, &slivers, pixels);
    pixels.flush(painter.scale);
    pixels.slivers = slivers;
    drawn
}

/// Fills by owner: a worker's colour where it alone holds, a neutral one where several do, deeper for more.
pub struct ByOwner<'a> {
    /// Colours.
    pub palette: &'a Palette,
    /// The worker picked out: what others hold is dimmed.
    pub picked: Option<Slot>,
    /// How deep the colour of so many owners is.
    pub replicas: ReplicaScale,
}

impl ByOwner<'_> {
    /// `replicas` counts where several hold.
    fn fill(&self, holder: Holder, replicas: usize, dimmed: bool) -> Fill {
        let Palette { ground, evicted_parent, .. } = *self.palette;
        let (colour, pattern) = match holder {
            Holder::NoWorker => (evicted_parent, Pattern::Plain),
            Holder::One(worker) => (self.palette.worker(worker), Pattern::of(worker)),
            Holder::Several => (self.palette.replicas[self.replicas.shade(replicas)], Pattern::Plain),
        };
        let colour = if dimmed { blend(ground, colour, DIMMED) } else { colour };
        Fill::of(colour, ground, pattern)
    }

    /// With a frame that is seen on the ground where the colour of few replicas hardly is.
    fn framed(&self, fill: Fill, dimmed: bool) -> Fill {
        let Palette { ground, shared, .. } = *self.palette;
        Fill { mark: if dimmed { blend(ground, shared, DIMMED) } else { shared }, ..fill }
    }
}

impl Fills for ByOwner<'_> {
    fn of_chain(&self, tree: &Tree, chain: &Chain) -> Fill {
        let owners = tree.chain_owners(chain);
        let (replicas, dimmed) = (owners.len(), lacks(self.picked, owners));
        let fill = self.fill(Holder::of(owners), replicas, dimmed);
        if replicas > 1 { self.framed(fill, dimmed) } else { fill }
    }

    /// Of several workers: as deep as its blocks have replicas on average.
    fn of_sliver(&self, sliver: &Sliver) -> Fill {
        self.fill(sliver.holder, sliver.replicas(), lacks_sliver(self.picked, sliver))
    }

    fn of_tick(&self, worker: Slot) -> Option<Fill> {
        let dimmed = self.picked.is_some_and(|picked| picked != worker);
        Some(self.fill(Holder::One(worker), 1, dimmed))
    }
}

struct Painter<'a> {
    palette: &'a Palette,
    fills: &'a dyn Fills,
    scale: usize,
}

impl Painter<'_> {
    fn draw(&self, owners: &OwnerSet, rect: Rect, fill: Fill, pixels: &mut Pixels) {
        let (x, y) = body(rect, (pixels.width, pixels.height), self.scale);
        let has_frame = fill.pattern == Pattern::Plain && fill.mark != fill.colour;
        pixels.paint_framed(x, y, fill, if has_frame { self.scale } else { 0 });
        let above_is_visible = rect.top >= -0.5;
        if owners.len() > 1 && above_is_visible {
            self.draw_ticks(owners, x, y, pixels);
        }
    }

    /// One tick per owner along the upper edge, on a strip of ground so that hues are distinguished.
    fn draw_ticks(&self, owners: &OwnerSet, x: (usize, usize), y: (usize, usize), pixels: &mut Pixels) {
        let gap = self.scale;
        let height = TICKS_HEIGHT * gap - gap;
        let Some(step) = tick_step((x.1 - x.0, y.1 - y.0), owners.len(), gap) else { return };
        let mut ground = Some(self.palette.ground);
        for (i, worker) in owners.iter().enumerate() {
            let Some(fill) = self.fills.of_tick(worker) else { return };
            if let Some(ground) = ground.take() {
                pixels.fill(x, (y.0, y.0 + height + gap), ground);
            }
            let left = x.0 + i * step;
            pixels.paint((left, left + step - gap), (y.0, y.0 + height), fill);
        }
    }

    /// Slivers come last: a neighbour that rounds onto their column must not hide them.
    fn draw_slivers(&self, view: &Viewport, slivers: &[Sliver], pixels: &mut Pixels) {
        let mut stripes = Stripes::default();
        // The first, which in the order by size is the largest, is painted last and so keeps its place.
        for sliver in slivers.iter().rev() {
            let (top, bottom) =
                span(view.y(f64::from(sliver.top)), view.y(f64::from(sliver.bottom)), pixels.height);
            let colour = self.fills.of_sliver(sliver).colour;
            stripes.push(Stripe { column: sliver.column as usize, top, bottom, colour }, pixels);
        }
        stripes.flush(pixels);
    }
}

/// A stretch of a column in one colour.
#[derive(Clone, Copy)]
pub(crate) struct Stripe {
    pub(crate) column: usize,
    pub(crate) top: usize,
    pub(crate) bottom: usize,
    pub(crate) colour: Rgb,
}

/// Stripes that stand together are painted together, row by row: down a single column every pixel is in another line of
/// the processor's cache, which takes ten times as long.
#[derive(Default)]
pub(crate) struct Stripes {
    waiting: Vec<Stripe>,
}

impl Stripes {
    /// Most stripes painted together.
    const MOST: usize = 64;
    /// Columns that the next one may be away.
    const NEAR: usize = 8;
    /// Rows up to which painting by rows gains nothing.
    const LOW: usize = 8;

    /// Paints a stripe over those before it, now or later.
    pub(crate) fn push(&mut self, stripe: Stripe, pixels: &mut Pixels) {
        let is_apart = |last: &Stripe| {
            let is_beside = last.top < stripe.bottom && stripe.top < last.bottom;
            !is_beside || last.column.abs_diff(stripe.column) > Self::NEAR
        };
        if self.waiting.len() >= Self::MOST || self.waiting.last().is_some_and(is_apart) {
            self.flush(pixels);
        }
        self.waiting.push(stripe);
    }

    /// Paints what waits.
    pub(crate) fn flush(&mut self, pixels: &mut Pixels) {
        let top = self.waiting.iter().map(|stripe| stripe.top).min().unwrap_or(0);
        let bottom = self.waiting.iter().map(|stripe| stripe.bottom).max().unwrap_or(0);
        // What is low or alone is painted with the others of its rows.
        if bottom - top <= Self::LOW || self.waiting.len() == 1 {
            for Stripe { column, top, bottom, colour } in self.waiting.drain(..) {
                pixels.fill((column, column + 1), (top, bottom), colour);
            }
            return;
        }
        for row in top..bottom.min(pixels.height) {
            let line = &mut pixels.data[row * pixels.width..(row + 1) * pixels.width];
            for stripe in self.waiting.iter().filter(|stripe| stripe.top <= row && row < stripe.bottom) {
                line[stripe.column] = opaque(stripe.colour);
            }
        }
        self.waiting.clear();
    }
}

/// From one tick to the next in a box of this size, device pixels; `None` where there is no room for so many, or they are too many to
/// be told one by one.
fn tick_step((width, height): (usize, usize), owners: usize, scale: usize) -> Option<usize> {
    let (least, most) = TICK_WIDTH;
    let step = (width / owners.max(1)).min((most + 1) * scale);
    let has_room = step >= (least + 1) * scale && height >= (TICKS_HEIGHT + 2) * scale;
    (owners <= MAX_TICKS && has_room).then_some(step)
}

/// Whether a box has a tick for each of its owners; else a number says how many they are.
pub fn has_ticks(rect: Rect, owners: usize, scale: f64) -> bool {
    let scale = scale.round().max(1.0) as usize;
    let (x, y) = body(rect, (usize::from(u16::MAX), usize::from(u16::MAX)), scale);
    owners > 1 && tick_step((x.1 - x.0, y.1 - y.0), owners, scale).is_some()
}

/// Columns and rows that a box covers of so many, without the gap to its neighbours.
pub(crate) fn body(rect: Rect, size: (usize, usize), gap: usize) -> ((usize, usize), (usize, usize)) {
    let (mut x, mut y) = (span(rect.left, rect.right, size.0), span(rect.top, rect.bottom, size.1));
    if rect.right - rect.left >= GAP_FROM * gap as f64 && x.1 < size.0 {
        x.1 -= gap.min(x.1 - x.0);
    }
    if y.1 - y.0 >= 3 * gap && y.1 < size.1 {
        y.1 -= gap;
    }
    (x, y)
}

/// Whether somebody could mean this with a pointer.
pub(crate) fn can_be_pointed_at(view: &Viewport, run: &NarrowBoxes) -> bool {
    let rect = view.rect(run.x0, run.x1 - run.x0, run.top, run.bottom);
    (rect.right - rect.left).max(rect.bottom - rect.top) >= POINTED_FROM * view.scale
}

/// Whether the visible part of a box has room for text.
pub(crate) fn has_label(visible: Rect, scale: f64) -> bool {
    visible.right - visible.left >= LABEL_FROM.0 * scale
        && visible.bottom - visible.top >= LABEL_FROM.1 * scale
}

/// Whether the visible part of a box of several owners has room for their number alone, and none for their ticks.
fn has_count(visible: Rect, owners: usize, scale: f64) -> bool {
    owners > 1
        && visible.right - visible.left >= COUNT_FROM * scale
        && visible.bottom - visible.top >= LABEL_FROM.1 * scale
        && !has_ticks(visible, owners, scale)
}

/// Whole pixels from `from` to `to`, at least one, within `0 … limit`.
pub(crate) fn span(from: f64, to: f64, limit: usize) -> (usize, usize) {
    let first = (from.round().max(0.0) as usize).min(limit.saturating_sub(1));
    let behind = (to.round().max(0.0) as usize).clamp(first + 1, limit.max(first + 1));
    (first, behind)
}

#[cfg(test)]
mod tests {
    use radixscope_state::tree::forest::Arrangement;

    use super::*;
    use crate::testing::{palette, store};
    use crate::viewport::Region;

    fn draw(tree: &mut Tree, width: u32, height: u32, picked: Option<u16>) -> (Pixels, Drawn) {
        tree.build_forest(Arrangement::default());
        let region = Region::all(tree.forest().expect("grown"));
        let view = Viewport { region, width, height, scale: 1.0 };
        let (mut pixels, palette) = (Pixels::default(), palette());
        let replicas = ReplicaScale::of(3);
        let fills = ByOwner { palette: &palette, picked: picked.map(Slot), replicas };
        let drawn = raster(tree, &view, &palette, &fills, &mut pixels);
        (pixels, drawn)
    }

    /// Worker 0 alone holds 60 blocks, workers 0 and 1 share 30, worker 2 alone holds 10.
    fn three() -> Tree {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=60);
        store(&mut tree, 0, 101..=130);
        store(&mut tree, 1, 101..=130);
        store(&mut tree, 2, 201..=210);
        tree
    }

    #[test]
    fn one_owner_gives_its_colour_and_several_give_a_neutral_one() {
        let (pixels, _) = draw(&mut three(), 100, 60, None);
        let p = palette();
        assert_eq!(pixels.at(30, 30), p.worker(Slot(0)));
        assert_eq!(pixels.at(75, 20), p.replicas[0], "two of three workers");
        assert_eq!(pixels.at(75, 28), p.shared, "its frame");
        assert_eq!(pixels.at(75, 40), p.ground, "below the shared chain of 30");
        assert_eq!(pixels.at(95, 5), p.worker(Slot(2)));
        assert_eq!(pixels.at(95, 12), p.ground);
    }

    #[test]
    fn a_gap_parts_neighbours() {
        let (pixels, _) = draw(&mut three(), 100, 60, None);
        assert_eq!(pixels.at(59, 30), palette().ground);
        assert_eq!(pixels.at(58, 30), palette().worker(Slot(0)));
    }

    #[test]
    fn a_shared_box_has_one_tick_per_owner() {
        let (pixels, _) = draw(&mut three(), 100, 60, None);
        let p = palette();
        assert_eq!(pixels.at(62, 1), p.worker(Slot(0)));
        assert_eq!(pixels.at(76, 1), p.worker(Slot(1)));
        assert_eq!(pixels.at(73, 1), p.ground, "between two ticks");
        assert_eq!(pixels.at(62, 7), p.ground, "below the ticks");
        assert_eq!(pixels.at(62, 9), p.replicas[0]);
    }

    #[test]
    fn a_shared_box_is_deeper_the_more_workers_hold_it() {
        let mut tree = three();
        (1..3).for_each(|worker| store(&mut tree, worker, 1..=60));
        let (pixels, _) = draw(&mut tree, 100, 60, None);
        let p = palette();
        assert_eq!([pixels.at(30, 30), pixels.at(75, 20)], [p.replicas[3], p.replicas[0]]);
    }

    #[test]
    fn ticks_are_wide_enough_to_be_seen_and_else_a_number_says_how_many() {
        let rect = |width| Rect { left: 0.0, top: 0.0, right: width, bottom: 40.0 };
        assert!(has_ticks(rect(17.0), 4, 1.0) && !has_ticks(rect(16.0), 4, 1.0), "3 pixels and a gap each");
        assert!(!has_ticks(rect(33.0), 4, 2.0) && has_ticks(rect(34.0), 4, 2.0), "of CSS pixels");
        assert_eq!([has_count(rect(16.0), 4, 1.0), has_count(rect(17.0), 4, 1.0)], [true, false]);
        assert!(!has_count(rect(14.0), 4, 1.0), "no room for a number either");
        assert!(has_count(rect(400.0), MAX_TICKS + 1, 1.0) && !has_count(rect(400.0), 1, 1.0));
    }

    #[test]
    fn more_owners_than_ticks_leave_the_box_neutral() {
        let mut tree = Tree::default();
        (0..MAX_TICKS as u16 + 1).for_each(|w| store(&mut tree, w, 1..=50));
        let (pixels, _) = draw(&mut tree, 400, 100, None);
        assert_eq!(pixels.at(5, 0), palette().shared, "the frame");
    }

    #[test]
    fn what_another_holds_is_dimmed() {
        let (pixels, _) = draw(&mut three(), 100, 60, Some(1));
        let p = palette();
        assert_eq!(pixels.at(30, 30), blend(p.ground, p.worker(Slot(0)), DIMMED));
        assert_eq!(pixels.at(75, 20), p.replicas[0]);
    }

    #[test]
    fn narrow_subtrees_become_a_column_and_never_vanish() {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=5000);
        store(&mut tree, 1, [9001, 9002]);
        let (pixels, _) = draw(&mut tree, 100, 5000, None);
        assert_eq!(pixels.at(99, 1), palette().worker(Slot(1)));
        assert_eq!(pixels.at(99, 3), palette().worker(Slot(0)), "only as deep as the subtree");
        assert_eq!(pixels.at(98, 1), palette().worker(Slot(0)));
    }

    #[test]
    fn a_column_shows_the_neutral_colour_where_holders_differ() {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=100_000);
        store(&mut tree, 1, [200_001, 200_002, 200_003]);
        store(&mut tree, 2, [200_001, 200_004]);
        let (pixels, _) = draw(&mut tree, 10, 100, None);
        assert_eq!(pixels.at(9, 0), palette().replicas[0]);
    }

    #[test]
    fn a_column_is_as_deep_as_its_blocks_have_replicas_on_average() {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=100_000);
        (0..3).for_each(|worker| store(&mut tree, worker, 200_001..=200_004));
        let (pixels, _) = draw(&mut tree, 10, 100, None);
        assert_eq!(pixels.at(9, 0), palette().replicas[3]);
    }

    #[test]
    fn a_repeated_hue_has_its_pattern() {
        let mut tree = Tree::default();
        store(&mut tree, 9, 1..=10);
        let (pixels, _) = draw(&mut tree, 40, 40, None);
        let seen: std::collections::BTreeSet<Rgb> = (0..12).map(|x| pixels.at(x, 10)).collect();
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn only_boxes_with_room_have_labels() {
        let (_, labelled) = draw(&mut three(), 100, 60, None);
        let labelled = labelled.labelled;
        assert_eq!(labelled.len(), 2);
        assert_eq!(labelled[0].rect, Rect { left: 0.0, top: 0.0, right: 60.0, bottom: 60.0 });
    }

    #[test]
    fn an_empty_tree_is_ground() {
        let (pixels, labelled) = draw(&mut Tree::default(), 4, 4, None);
        assert!(labelled.labelled.is_empty() && pixels.bytes().chunks(4).all(|p| p == [16, 16, 16, 255]));
    }
}
