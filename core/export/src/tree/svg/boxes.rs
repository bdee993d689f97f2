//! The boxes of a picture: what a visit of the forest meets, coloured.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::colours::{ReplicaScale, Theme, ramp};
use super::frame::Plot;
use super::text::{Px, width_px};
use super::{Drawing, Heat, MAX_BOXES, label};
use crate::colour::{Rgb, css, ink};
use crate::tree::recency;
use crate::tree::sessions::BoxSession;
use radixscope_model::id::{Slot, WorkerIx};
use radixscope_model::number_format::{count, plural};
use radixscope_state::cluster::TOUCH_MS;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Chain, Forest, Holder, NarrowBoxes, Sliver, VisibleBox, Window};

/// More owners than this are shown as a number.
const MAX_TICKS: usize = 16;
/// Least and most of the side of an owner's tick, and the gap to the next.
const TICK_PX: (f64, f64) = (3.0, 7.0);
const TICK_GAP_PX: f64 = 2.0;
/// A box at least this wide and high has a tooltip.
const TOLD_PX: f64 = 3.0;
/// A box at least this high has a label.
const LABELLED_PX: f64 = 13.0;
/// Narrowest box that is drawn separately, in pixels.
const ROW_PX: f64 = 0.5;
/// Columns below which a picture is not made coarser.
const MIN_COLUMNS: u32 = 16;

/// All of them, as text.
pub(super) struct Boxes {
    svg: String,
    labels: String,
    /// By worker: the outlines of its ticks.
    ticks: BTreeMap<Slot, String>,
    /// What is below them, so that they stand out of the box.
    tick_grounds: String,
    tick_fills: BTreeMap<Slot, String>,
    /// Boxes written.
    pub(super) drawn: usize,
    /// Boxes that were too many.
    pub(super) left_out: usize,
    pub(super) most_hits: u32,
    /// Where the scale of last use ends, in milliseconds.
    pub(super) oldest_ms: u64,
}

impl Boxes {
    pub(super) fn of(tree: &Tree, forest: &Forest, drawing: &Drawing<'_>, plot: &Plot) -> Self {
        let window = window(forest, drawing, plot);
        let mut most_hits = 0;
        forest.visit(&window, |seen| match seen {
            VisibleBox::Chain { id, .. } => most_hits = most_hits.max(forest.chain(id).sums.hits),
            VisibleBox::Sliver(sliver) => most_hits = most_hits.max(sliver.hits),
            VisibleBox::NarrowBoxes(_) => {}
        });
        let boxes = Self {
            svg: String::new(),
            labels: String::new(),
            ticks: BTreeMap::new(),
            tick_grounds: String::new(),
            tick_fills: BTreeMap::new(),
            drawn: 0,
            left_out: 0,
            most_hits,
            oldest_ms: recency::end_ms(recency::oldest_age_ms(forest, drawing.now)),
        };
        let replicas = ReplicaScale::of(drawing.pool_workers);
        let mut painter =
            Painter { tree, forest, drawing, plot, window, boxes, slivers: String::new(), replicas };
        forest.visit(&window, |seen| match seen {
            VisibleBox::Chain { id, x0 } => painter.chain(forest.chain(id), x0),
            VisibleBox::Sliver(sliver) => painter.sliver(&sliver),
            VisibleBox::NarrowBoxes(run) => painter.run(&run),
        });
        painter.boxes
    }

    pub(super) fn write(&self, theme: &Theme, plot: &Plot, svg: &mut String) {
        let Plot { left, top, width, height, .. } = plot;
        let (left, top, width, height) = (Px(*left), Px(*top), Px(*width), Px(*height));
        let _ = writeln!(
            svg,
            "<clipPath id=\"plot\"><path d=\"M{left} {top}h{width}v{height}h-{width}Z\"/></clipPath>\n\
             <g clip-path=\"url(#plot)\">\n<g stroke=\"{}\" stroke-width=\"0\">{}</g>",
            css(theme.quiet),
            self.svg
        );
        if !self.tick_grounds.is_empty() {
            let _ = writeln!(svg, "<path fill=\"{}\" d=\"{}\"/>", css(theme.ground), self.tick_grounds);
        }
        for (worker, outlines) in &self.ticks {
            let fill = self.tick_fills.get(worker).map_or("", String::as_str);
            let _ = writeln!(svg, "<path fill=\"{fill}\" d=\"{outlines}\"/>");
        }
        let _ = writeln!(svg, "<g pointer-events=\"none\">{}</g>\n</g>", self.labels);
    }
}

/// The finest window with no more than [`MAX_BOXES`] boxes, as far as coarser columns can help.
fn window(forest: &Forest, drawing: &Drawing<'_>, plot: &Plot) -> Window {
    let region = drawing.region;
    let mut window = Window {
        x0: region.x0,
        x1: region.x1,
        top: region.top,
        bottom: region.bottom,
        columns: (plot.width as u32).max(1),
    };
    loop {
        let mut boxes = 0;
        forest.visit(&window, |seen| match seen {
            VisibleBox::Chain { id, .. } => boxes += usize::from(!is_covered(forest, plot, forest.chain(id))),
            VisibleBox::Sliver(_) => boxes += 1,
            VisibleBox::NarrowBoxes(_) => {}
        });
        if boxes <= MAX_BOXES || window.columns / 2 < MIN_COLUMNS {
            return window;
        }
        window.columns /= 2;
    }
}

/// Whether a box above begins in the same row and is drawn over all that this one would be seen of. Boxes are drawn at least
/// a row high, so that nothing vanishes.
fn is_covered(forest: &Forest, plot: &Plot, chain: &Chain) -> bool {
    let row = |position: u32| (plot.y(position.into()) / ROW_PX).floor();
    let begin = row(chain.position);
    begin == row(chain.end())
        && chain.parent().is_some_and(|above| row(forest.chain(above).position) == begin)
}

struct Painter<'a> {
    tree: &'a Tree,
    forest: &'a Forest,
    drawing: &'a Drawing<'a>,
    plot: &'a Plot,
    window: Window,
    boxes: Boxes,
    /// Those of the run that goes on.
    slivers: String,
    /// How deep the colour of so many owners is.
    replicas: ReplicaScale,
}

/// Pixels.
struct Rect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    line: Border,
}

/// What is round a box.
#[derive(Clone, Copy)]
enum Border {
    None,
    /// A hairline: the colours of a scale may be near that of the ground.
    Hair,
    /// A frame of this colour.
    Frame(Rgb),
}

impl Rect {
    /// The same with a frame within it, where there is room for one.
    fn framed(&self, colour: Rgb) -> Option<Self> {
        let (width, height) = (self.width - 1.0, self.height - 1.0);
        let has_room = width > 1.0 && height > 1.0;
        has_room.then_some(Self {
            x: self.x + 0.5,
            y: self.y + 0.5,
            width,
            height,
            line: Border::Frame(colour),
        })
    }
}

impl Painter<'_> {
    fn rect(&self, x0: f64, x1: f64, top: f64, bottom: f64) -> Rect {
        let region = self.drawing.region;
        let (x0, x1) = (x0.max(region.x0), x1.min(region.x1));
        let (top, bottom) = (top.max(region.top), bottom.min(region.bottom));
        // A hairline of ground keeps neighbours of one colour apart, where there is room for it.
        let apart = |px: f64| if px > 3.0 { px - 1.0 } else { px };
        let (width, height) = ((x1 - x0) * self.plot.px_per_unit, (bottom - top) * self.plot.px_per_block);
        Rect {
            x: self.plot.x(x0),
            y: self.plot.y(top),
            width: apart(width),
            height: apart(height).max(ROW_PX),
            line: match self.drawing.heat != Heat::Owner && width > 3.0 && height > 3.0 {
                true => Border::Hair,
                false => Border::None,
            },
        }
    }

    /// Whether there is room for one box more.
    fn has_room(&mut self) -> bool {
        let has_room = self.boxes.drawn < MAX_BOXES;
        self.boxes.drawn += usize::from(has_room);
        self.boxes.left_out += usize::from(!has_room);
        has_room
    }

    fn chain(&mut self, chain: &Chain, x0: f64) {
        let owners = self.tree.chain_owners(chain);
        if self.drawing.only.is_some_and(|only| !only.iter().any(|&slot| owners.contains(slot)))
            || f64::from(chain.end()) <= self.drawing.region.top
            || is_covered(self.forest, self.plot, chain)
            || !self.has_room()
        {
            return;
        }
        let (top, bottom) = (f64::from(chain.position), f64::from(chain.end()));
        let rect = self.rect(x0, x0 + f64::from(chain.width()), top, bottom);
        let (fill, colour) =
            self.paint(Holder::of(owners), (owners.len(), Some(chain)), chain.sums.touched, chain.sums.hits);
        let is_shared = self.drawing.heat == Heat::Owner && owners.len() > 1;
        let framed = rect.framed(self.drawing.theme.shared).filter(|_| is_shared);
        self.write_rect(framed.as_ref().unwrap_or(&rect), &fill, |svg, painter| {
            if rect.width < TOLD_PX || rect.height < TOLD_PX {
                return;
            }
            let _ = write!(
                svg,
                "<title>Block {} at position {}, {} in the chain, {} at and below it, on {}</title>",
                painter.tree.block_hash(chain.first),
                count(chain.position.into()),
                blocks(chain.len),
                blocks(chain.sums.blocks),
                painter.names(owners.iter(), owners.len()),
            );
        });
        self.label(&rect, chain, owners.len(), Holder::of(owners), colour);
    }

    fn sliver(&mut self, sliver: &Sliver) {
        if !self.is_wanted(sliver.holder, sliver.workers) || !self.has_room() {
            return;
        }
        let step = self.window.units_per_column();
        let x0 = self.window.x0 + f64::from(sliver.column) * step;
        let rect = self.rect(x0, x0 + step, sliver.top.into(), sliver.bottom.into());
        let (fill, _) = self.paint(sliver.holder, (sliver.replicas(), None), sliver.touched, sliver.hits);
        let mut text = std::mem::take(&mut self.slivers);
        write_rect(&mut text, &rect, &fill, |_| ());
        self.slivers = text;
    }

    fn run(&mut self, run: &NarrowBoxes) {
        let slivers = std::mem::take(&mut self.slivers);
        if slivers.is_empty() {
            return;
        }
        let workers = (0..64).filter(|ix| run.workers & (1 << ix) != 0).map(Slot);
        let _ = write!(
            self.boxes.svg,
            "<g><title>{} boxes too narrow to be drawn alone, {} at and below them, on {}</title>{slivers}</g>",
            count(run.chains.into()),
            blocks(run.blocks),
            self.names(workers, run.workers.count_ones() as usize),
        );
    }

    /// Whether one of the workers that are shown is among those of a sliver.
    fn is_wanted(&self, holder: Holder, workers: u64) -> bool {
        self.drawing.only.is_none_or(|only| {
            only.iter().any(|&slot| match holder {
                Holder::NoWorker => false,
                Holder::One(holder) => holder == slot,
                // A sliver does not list workers beyond the 64th.
                Holder::Several => slot.0 >= 64 || workers & (1 << slot.0) != 0,
            })
        })
    }

    /// What a box is filled with, and the colour that comes next to it for text.
    fn paint(
        &self,
        holder: Holder,
        (owners, chain): (usize, Option<&Chain>),
        touched: u32,
        hits: u32,
    ) -> (String, Rgb) {
        let theme = self.drawing.theme;
        let share = match self.drawing.heat {
            Heat::Owner => {
                let workers = self.drawing.slots;
                return match holder {
                    Holder::NoWorker => (css(theme.no_worker), theme.no_worker),
                    Holder::Several => {
                        let colour = theme.replicas[self.replicas.shade(owners)];
                        (css(colour), colour)
                    }
                    Holder::One(slot) => {
                        let worker = self.drawing.worker(slot);
                        (fill_of(theme, worker, workers), theme.worker(worker, workers))
                    }
                };
            }
            Heat::Sessions => {
                let sessions = self.drawing.sessions.zip(chain);
                let session = sessions.and_then(|(sessions, chain)| sessions.of_box(chain));
                let colour = match holder {
                    Holder::NoWorker => theme.no_worker,
                    // Too narrow to be told apart.
                    _ if chain.is_none() => theme.session(Some(BoxSession::Several)),
                    _ => theme.session(session),
                };
                return (css(colour), colour);
            }
            Heat::Recency => {
                let age_ms = u64::from(self.drawing.now.saturating_sub(touched)) * TOUCH_MS;
                recency::share(age_ms, self.boxes.oldest_ms)
            }
            Heat::Hits => logarithmic(hits.into(), self.boxes.most_hits.into()),
            Heat::Owners => logarithmic(
                owners.saturating_sub(1) as f64,
                self.drawing.workers.len().saturating_sub(1) as f64,
            ),
        };
        let colour = ramp(share);
        (css(colour), colour)
    }

    fn write_rect(&mut self, rect: &Rect, fill: &str, inside: impl FnOnce(&mut String, &Self)) {
        let mut svg = std::mem::take(&mut self.boxes.svg);
        write_rect(&mut svg, rect, fill, |svg| inside(svg, self));
        self.boxes.svg = svg;
    }

    /// `×128`, who holds it, and a tick per owner where several do.
    fn label(&mut self, rect: &Rect, chain: &Chain, owners: usize, holder: Holder, colour: Rgb) {
        let side = self.tick_side(rect, owners);
        // A number alone is that of the workers.
        let is_count = holder == Holder::Several
            && owners <= MAX_TICKS
            && side.is_none()
            && self.drawing.heat == Heat::Owner;
        let mut text = match holder {
            Holder::One(slot) => label(self.drawing.worker(slot)),
            Holder::Several if owners > MAX_TICKS => format!("{owners} workers"),
            Holder::Several if is_count => owners.to_string(),
            _ => String::new(),
        };
        let length =
            if chain.len > 1 && !is_count { format!("×{}", count(chain.len.into())) } else { String::new() };
        let both = format!("{text} {length}");
        let room = rect.width - 6.0;
        if width_px(&both) <= room {
            text = both;
        } else if width_px(&length) <= room && !length.is_empty() {
            text = length;
        }
        let is_readable = rect.height >= LABELLED_PX && width_px(&text) <= room;
        if is_readable && !text.trim().is_empty() {
            let _ = write!(
                self.boxes.labels,
                "<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>",
                Px(rect.x + 3.0),
                Px(rect.y + 10.0),
                css(ink(colour)),
                text.trim(),
            );
        }
        if let Some(side) = side {
            self.ticks(rect, chain, side);
        }
    }

    /// The side of each owner's tick; `None`: they have none.
    fn tick_side(&self, rect: &Rect, owners: usize) -> Option<f64> {
        let (least, most) = TICK_PX;
        let room = (rect.width / owners.max(1) as f64 - TICK_GAP_PX).min(rect.height / 2.0);
        let is_told = (2..=MAX_TICKS).contains(&owners) && self.drawing.heat == Heat::Owner;
        (is_told && room >= least).then(|| room.min(most).floor())
    }

    fn ticks(&mut self, rect: &Rect, chain: &Chain, side: f64) {
        let step = side + TICK_GAP_PX;
        let y = rect.y + rect.height - side - 1.0;
        let (x, width, height) = (Px(rect.x), Px(rect.width), Px(side + 2.0));
        let _ = write!(self.boxes.tick_grounds, "M{x} {}h{width}v{height}h-{width}Z", Px(y - 1.0));
        for (i, slot) in self.tree.chain_owners(chain).iter().enumerate() {
            let x = rect.x + 1.0 + i as f64 * step;
            let outlines = self.boxes.ticks.entry(slot).or_default();
            let _ = write!(outlines, "M{} {}h{side}v{side}h-{side}Z", Px(x), Px(y));
            self.boxes.tick_fills.entry(slot).or_insert_with(|| {
                fill_of(self.drawing.theme, self.drawing.worker(slot), self.drawing.slots)
            });
        }
    }

    fn names(&self, slots: impl Iterator<Item = Slot>, owners: usize) -> String {
        match owners {
            0 => "no worker".to_owned(),
            1..=MAX_TICKS => {
                slots.map(|slot| label(self.drawing.worker(slot))).collect::<Vec<_>>().join(", ")
            }
            _ => format!("{owners} workers"),
        }
    }
}

/// A worker's colour, or the pattern that distinguishes it from the one with the same hue.
pub(crate) fn fill_of(theme: &Theme, worker: WorkerIx, workers: usize) -> String {
    match worker.slot().at() < theme.many.len() {
        true => css(theme.worker(worker, workers)),
        false => format!("url(#{})", label(worker)),
    }
}

fn write_rect(svg: &mut String, rect: &Rect, fill: &str, inside: impl FnOnce(&mut String)) {
    let (x, y, width, height) = (Px(rect.x), Px(rect.y), Px(rect.width), Px(rect.height));
    let _ = write!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"");
    match rect.line {
        Border::None => {}
        Border::Hair => svg.push_str(" stroke-width=\"0.5\""),
        Border::Frame(colour) => {
            let _ = write!(svg, " stroke=\"{}\" stroke-width=\"1\"", css(colour));
        }
    }
    let before = svg.len();
    svg.push('>');
    let begin = svg.len();
    inside(svg);
    if svg.len() == begin {
        svg.truncate(before);
        svg.push_str("/>");
    } else {
        svg.push_str("</rect>");
    }
}

/// `1 block`, `1,240 blocks`.
pub(super) fn blocks(n: u32) -> String {
    plural(n.into(), "block", "blocks")
}

/// 0 for 0, 1 for `most`; equal ratios are equally far apart.
fn logarithmic(value: f64, most: f64) -> f64 {
    if most > 0.0 { (value.ln_1p() / most.ln_1p()).min(1.0) } else { 0.0 }
}
