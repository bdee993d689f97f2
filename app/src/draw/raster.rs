//! The icicle as pixels: a pure function of layout, viewport and colours, written into a byte buffer that is put on
//! the screen at once. Knows no canvas and no text.
//!
//! Cost follows what is visible: subtrees outside are skipped, subtrees narrower than a pixel become one column.

use radixscope_core::id::WorkerIx;
use radixscope_core::tree::OwnerSet;
use radixscope_core::tree::layout::{ChainBox, Holder, Layout};

use super::palette::{Palette, Pattern, Rgb, blend};
use super::viewport::{Rect, Viewport};

/// More owners than this are not drawn as ticks one by one; the label counts them.
pub const MAX_TICKS: usize = 16;
/// What is left of the colour of a box that does not belong to the worker picked out.
const DIMMED: f64 = 0.22;
/// A box at least this wide, in CSS pixels, has a gap to its neighbour.
const GAP_FROM: f64 = 4.0;
/// Height of the ticks, in CSS pixels.
const TICK_HEIGHT: f64 = 4.0;
/// Widest tick, in CSS pixels.
const TICK_WIDTH: f64 = 14.0;
/// Smallest box that has room for text, in CSS pixels.
const LABEL_FROM: (f64, f64) = (24.0, 14.0);

/// A buffer of pixels, red, green, blue, alpha.
#[derive(Default)]
pub struct Pixels {
    width: usize,
    height: usize,
    data: Vec<[u8; 4]>,
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

    fn reset(&mut self, width: u32, height: u32, ground: Rgb) {
        (self.width, self.height) = (width as usize, height as usize);
        self.data.clear();
        self.data.resize(self.width * self.height, opaque(ground));
    }

    fn fill(&mut self, x: (usize, usize), y: (usize, usize), colour: Rgb) {
        for row in y.0..y.1.min(self.height) {
            let from = row * self.width;
            self.data[from + x.0.min(self.width)..from + x.1.min(self.width)].fill(opaque(colour));
        }
    }

    fn paint(&mut self, x: (usize, usize), y: (usize, usize), fill: Fill, scale: usize) {
        if fill.pattern == Pattern::Plain {
            return self.fill(x, y, fill.colour);
        }
        for row in y.0..y.1.min(self.height) {
            for column in x.0..x.1.min(self.width) {
                let colour =
                    if fill.pattern.marks(column / scale, row / scale) { fill.mark } else { fill.colour };
                self.data[row * self.width + column] = opaque(colour);
            }
        }
    }
}

impl Pattern {
    const fn marks(self, x: usize, y: usize) -> bool {
        match self {
            Pattern::Plain => false,
            Pattern::Stripes => (x + y) % 6 < 2,
            Pattern::Dots => x % 5 < 2 && y % 5 < 2,
            Pattern::Bars => y % 5 < 2,
        }
    }
}

#[derive(Clone, Copy)]
struct Fill {
    colour: Rgb,
    mark: Rgb,
    pattern: Pattern,
}

const fn opaque([r, g, b]: Rgb) -> [u8; 4] {
    [r, g, b, 255]
}

/// A box that has room for text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Labelled {
    /// Index in the layout.
    pub index: usize,
    /// The visible part of the box.
    pub rect: Rect,
    /// What it is filled with.
    pub colour: Rgb,
}

/// A subtree narrower than a pixel.
struct Sliver {
    column: usize,
    y: (usize, usize),
    holder: Holder,
}

/// Draws `layout` into `pixels` and returns the boxes that have room for text. `picked` dims what another holds.
pub fn raster(
    layout: &Layout,
    view: &Viewport,
    palette: &Palette,
    picked: Option<WorkerIx>,
    pixels: &mut Pixels,
) -> Vec<Labelled> {
    pixels.reset(view.width, view.height, palette.ground);
    let painter = Painter { palette, picked, scale: view.scale.round().max(1.0) as usize };
    let mut labelled = Vec::new();
    let mut slivers = Vec::new();
    let (width, height) = (f64::from(view.width), f64::from(view.height));
    let boxes = layout.boxes();
    let mut i = 0;
    while let Some(b) = boxes.get(i) {
        let rect = view.rect(b);
        let subtree_bottom = view.y(f64::from(b.bottom));
        if rect.right <= 0.0 || rect.left >= width || rect.top >= height || subtree_bottom <= 0.0 {
            i = b.end as usize;
            continue;
        }
        if rect.right - rect.left < 1.0 {
            let column = (rect.left.max(0.0) as usize).min(pixels.width - 1);
            slivers.push(Sliver {
                column,
                y: span(rect.top, subtree_bottom, pixels.height),
                holder: b.holder,
            });
            i = b.end as usize;
            continue;
        }
        if rect.bottom > 0.0 {
            let owners = layout.owners(b);
            let fill = painter.of_owners(owners);
            painter.draw(b, owners, rect, fill, pixels);
            let rect = visible(rect, width, height);
            let (least_width, least_height) = (LABEL_FROM.0 * view.scale, LABEL_FROM.1 * view.scale);
            if rect.right - rect.left >= least_width && rect.bottom - rect.top >= least_height {
                labelled.push(Labelled { index: i, rect, colour: fill.colour });
            }
        }
        i += 1;
    }
    painter.draw_slivers(&slivers, pixels);
    labelled
}

struct Painter<'a> {
    palette: &'a Palette,
    picked: Option<WorkerIx>,
    scale: usize,
}

impl Painter<'_> {
    fn of_owners(&self, owners: &OwnerSet) -> Fill {
        let mut workers = owners.iter();
        let holder = match (workers.next(), workers.next()) {
            (None, _) => Holder::Nobody,
            (Some(only), None) => Holder::One(only),
            _ => Holder::Several,
        };
        self.fill(holder, self.picked.is_some_and(|picked| !owners.contains(picked)))
    }

    fn fill(&self, holder: Holder, dimmed: bool) -> Fill {
        let Palette { ground, shared, nobody, .. } = *self.palette;
        let (colour, pattern) = match holder {
            Holder::Nobody => (nobody, Pattern::Plain),
            Holder::One(worker) => (self.palette.worker(worker), Pattern::of(worker)),
            Holder::Several => (shared, Pattern::Plain),
        };
        let colour = if dimmed { blend(ground, colour, DIMMED) } else { colour };
        Fill { colour, mark: blend(colour, ground, 0.45), pattern }
    }

    fn draw(&self, b: &ChainBox, owners: &OwnerSet, rect: Rect, fill: Fill, pixels: &mut Pixels) {
        let mut x = span(rect.left, rect.right, pixels.width);
        let mut y = span(rect.top, rect.bottom, pixels.height);
        let gap = self.scale;
        if rect.right - rect.left >= GAP_FROM * gap as f64 && x.1 < pixels.width {
            x.1 -= gap.min(x.1 - x.0);
        }
        if y.1 - y.0 >= 3 * gap && y.1 < pixels.height {
            y.1 -= gap;
        }
        pixels.paint(x, y, fill, self.scale);
        let above_is_visible = rect.top >= -0.5;
        if b.len > 0 && owners.len() > 1 && above_is_visible {
            self.draw_ticks(owners, x, y, pixels);
        }
    }

    /// One tick per owner along the upper edge, on a strip of ground so that hues are told apart.
    fn draw_ticks(&self, owners: &OwnerSet, x: (usize, usize), y: (usize, usize), pixels: &mut Pixels) {
        let height = (TICK_HEIGHT as usize) * self.scale;
        let n = owners.len();
        let room = x.1 - x.0;
        let step = (room / n).min(TICK_WIDTH as usize * self.scale);
        let gap = self.scale;
        if n > MAX_TICKS || step < 2 * gap + 1 || y.1 - y.0 < height + 3 * gap {
            return;
        }
        pixels.fill(x, (y.0, y.0 + height + gap), self.palette.ground);
        for (i, worker) in owners.iter().enumerate() {
            let left = x.0 + i * step;
            let dimmed = self.picked.is_some_and(|picked| picked != worker);
            let fill = self.fill(Holder::One(worker), dimmed);
            pixels.paint((left, left + step - gap), (y.0, y.0 + height), fill, self.scale);
        }
    }

    /// Slivers come last: a neighbour that rounds onto their column must not hide them.
    fn draw_slivers(&self, slivers: &[Sliver], pixels: &mut Pixels) {
        let mut painted: Vec<Option<(usize, usize)>> = vec![None; pixels.width];
        for sliver in slivers {
            let dimmed = self.picked.is_some_and(|picked| match sliver.holder {
                Holder::One(only) => only != picked,
                Holder::Nobody | Holder::Several => true,
            });
            let fill = self.fill(sliver.holder, dimmed);
            let columns = (sliver.column, sliver.column + 1);
            let (top, bottom) = sliver.y;
            let known = painted[sliver.column];
            match known {
                // The first, which in the order by size is the largest, keeps its place.
                Some((from, to)) => {
                    if top < from {
                        pixels.fill(columns, (top, from), fill.colour);
                    }
                    if bottom > to {
                        pixels.fill(columns, (to, bottom), fill.colour);
                    }
                    painted[sliver.column] = Some((from.min(top), to.max(bottom)));
                }
                None => {
                    pixels.fill(columns, (top, bottom), fill.colour);
                    painted[sliver.column] = Some((top, bottom));
                }
            }
        }
    }
}

/// Whole pixels from `from` to `to`, at least one, within `0 … limit`.
fn span(from: f64, to: f64, limit: usize) -> (usize, usize) {
    let first = (from.round().max(0.0) as usize).min(limit.saturating_sub(1));
    let behind = (to.round().max(0.0) as usize).clamp(first + 1, limit.max(first + 1));
    (first, behind)
}

fn visible(rect: Rect, width: f64, height: f64) -> Rect {
    Rect {
        left: rect.left.max(0.0),
        top: rect.top.max(0.0),
        right: rect.right.min(width),
        bottom: rect.bottom.min(height),
    }
}

#[cfg(test)]
mod tests {
    use radixscope_core::id::{BlockHash, TokensHash};
    use radixscope_core::record::Block;
    use radixscope_core::tree::Tree;
    use radixscope_core::tree::layout::Order;

    use super::super::viewport::Region;
    use super::*;

    const GROUND: &str = "#101010";

    fn palette() -> Palette {
        let value = |name: &str| match name {
            "--panel" => GROUND.to_owned(),
            "--tree-shared" => "#808080".to_owned(),
            "--tree-nobody" => "#202020".to_owned(),
            other => format!("#{0}{0}{0}0{0}", other.bytes().last().map_or(0, |b| b - b'0').min(9)),
        };
        Palette::read(value, true, 4)
    }

    fn store(tree: &mut Tree, worker: u16, tokens: impl IntoIterator<Item = u64>) {
        let block = |t| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) };
        let blocks: Vec<Block> = tokens.into_iter().map(block).collect();
        tree.store(WorkerIx(worker), None, &blocks, 0);
    }

    fn draw(tree: &Tree, width: u32, height: u32, picked: Option<u16>) -> (Pixels, Vec<Labelled>) {
        let layout = Layout::new(tree, Order::LeftHeavy, &[]);
        let view = Viewport { region: Region::all(&layout), width, height, scale: 1.0 };
        let mut pixels = Pixels::default();
        let labelled = raster(&layout, &view, &palette(), picked.map(WorkerIx), &mut pixels);
        (pixels, labelled)
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
    fn one_owner_gives_its_colour_and_several_give_the_neutral_one() {
        let (pixels, _) = draw(&three(), 100, 60, None);
        let p = palette();
        assert_eq!(pixels.at(30, 30), p.worker(WorkerIx(0)));
        assert_eq!(pixels.at(75, 20), p.shared);
        assert_eq!(pixels.at(75, 40), p.ground, "below the shared chain of 30");
        assert_eq!(pixels.at(95, 5), p.worker(WorkerIx(2)));
        assert_eq!(pixels.at(95, 12), p.ground);
    }

    #[test]
    fn a_gap_parts_neighbours() {
        let (pixels, _) = draw(&three(), 100, 60, None);
        assert_eq!(pixels.at(59, 30), palette().ground);
        assert_eq!(pixels.at(58, 30), palette().worker(WorkerIx(0)));
    }

    #[test]
    fn a_shared_box_has_one_tick_per_owner() {
        let (pixels, _) = draw(&three(), 100, 60, None);
        let p = palette();
        assert_eq!(pixels.at(62, 1), p.worker(WorkerIx(0)));
        assert_eq!(pixels.at(76, 1), p.worker(WorkerIx(1)));
        assert_eq!(pixels.at(73, 1), p.ground, "between two ticks");
        assert_eq!(pixels.at(62, 4), p.ground, "below the ticks");
        assert_eq!(pixels.at(62, 6), p.shared);
    }

    #[test]
    fn more_owners_than_ticks_leave_the_box_neutral() {
        let mut tree = Tree::default();
        (0..MAX_TICKS as u16 + 1).for_each(|w| store(&mut tree, w, 1..=50));
        let (pixels, _) = draw(&tree, 400, 100, None);
        assert_eq!(pixels.at(5, 1), palette().shared);
    }

    #[test]
    fn what_another_holds_is_dimmed() {
        let (pixels, _) = draw(&three(), 100, 60, Some(1));
        let p = palette();
        assert_eq!(pixels.at(30, 30), blend(p.ground, p.worker(WorkerIx(0)), DIMMED));
        assert_eq!(pixels.at(75, 20), p.shared);
    }

    #[test]
    fn narrow_subtrees_become_a_column_and_never_vanish() {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=5000);
        store(&mut tree, 1, [9001, 9002]);
        let (pixels, _) = draw(&tree, 100, 5000, None);
        assert_eq!(pixels.at(99, 1), palette().worker(WorkerIx(1)));
        assert_eq!(pixels.at(99, 3), palette().worker(WorkerIx(0)), "only as deep as the subtree");
        assert_eq!(pixels.at(98, 1), palette().worker(WorkerIx(0)));
    }

    #[test]
    fn a_column_shows_the_neutral_colour_where_holders_differ() {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=100_000);
        store(&mut tree, 1, [200_001, 200_002, 200_003]);
        store(&mut tree, 2, [200_001, 200_004]);
        let (pixels, _) = draw(&tree, 10, 100, None);
        assert_eq!(pixels.at(9, 0), palette().shared);
    }

    #[test]
    fn a_repeated_hue_has_its_pattern() {
        let mut tree = Tree::default();
        store(&mut tree, 9, 1..=10);
        let (pixels, _) = draw(&tree, 40, 40, None);
        let seen: std::collections::BTreeSet<Rgb> = (0..12).map(|x| pixels.at(x, 10)).collect();
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn only_boxes_with_room_have_labels() {
        let (_, labelled) = draw(&three(), 100, 60, None);
        assert_eq!(labelled.iter().map(|l| l.index).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(labelled[0].rect, Rect { left: 0.0, top: 0.0, right: 60.0, bottom: 60.0 });
    }

    #[test]
    fn an_empty_tree_is_ground() {
        let (pixels, labelled) = draw(&Tree::default(), 4, 4, None);
        assert!(labelled.is_empty() && pixels.bytes().chunks(4).all(|p| p == [16, 16, 16, 255]));
    }
}
