//! The prefix tree once per worker, one lane below the other.

use std::fmt::Write as _;
use std::sync::Arc;

use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::plural;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Arrangement, Chain, Forest, Holder, Region, VisibleBox, Window};

use super::super::lanes::{
    self, EDGE_PX, LaneFigures, SHARED_OPACITY, SILHOUETTE_OPACITY, TITLE, holds_sliver,
};
use super::super::tree;
use super::chart_area::{Area, ChartArea, LINE_PX};
use super::{Body, Content, PanelRequest, present_workers};
use crate::colour::{blend, css};
use crate::tree::TreeSnapshot;
use crate::tree::svg::MAX_BOXES;
use crate::tree::svg::text::Px;

/// Least and greatest height of a lane, and what is free between two.
const LANE_PX: (f64, f64) = (40.0, 200.0);
const GAP_PX: f64 = 4.0;
/// Width of what stands beside a lane.
const HEAD_PX: f64 = 176.0;
/// Columns below which a picture is not made coarser.
const MIN_COLUMNS: u32 = 16;

struct Lane {
    worker: WorkerIx,
    figures: LaneFigures,
}

struct Lanes {
    picture: Arc<TreeSnapshot>,
    lanes: Vec<Lane>,
}

pub(super) fn content(
    shown: &ViewContext<'_>,
    picture: Option<Arc<TreeSnapshot>>,
    request: &PanelRequest,
    now: Millis,
) -> Content {
    let of_pool = ViewContext { only: Some(shown.pool), ..*shown };
    let workers = present_workers(&of_pool, request);
    let (Some(picture), false) = (picture, workers.is_empty()) else {
        return Content::empty(TITLE, &super::workers::empty());
    };
    let totals = picture.tree().totals();
    if totals.nodes == 0 {
        return Content::empty(TITLE, &tree::empty(shown));
    }
    let lane = |worker| Some(Lane { worker, figures: LaneFigures::of(shown.cluster, worker, now)? });
    let lanes = workers.into_iter().filter_map(lane).collect();
    let facts = format!(
        "{} in the tree; across: the same blocks stand above each other; down: position in the prompt. Full colour: one worker \
         alone has it cached; half: others too.",
        plural(totals.nodes, "distinct block", "distinct blocks")
    );
    Content::new(TITLE, facts, Lanes { picture, lanes })
}

impl Body for Lanes {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let room = (area.height / LANE_PX.0) as usize;
        let has_more = self.lanes.len() > room;
        let seen = &self.lanes[..self.lanes.len().min(room.max(1))];
        let bottom = if has_more { LINE_PX } else { 0.0 };
        let height = ((area.height - bottom) / seen.len().max(1) as f64).floor().min(LANE_PX.1);
        let forest = Forest::of(self.picture.tree(), Arrangement::default());
        let inner = Inner {
            width: (area.width - HEAD_PX).max(1.0).floor(),
            height: (height - GAP_PX).max(1.0),
            region: Region::all(&forest),
        };
        let outlines = inner.outlines(self.picture.tree(), &forest, seen);
        let silhouette = inner.silhouette(&forest);
        let (ground, shared) = (paper.theme.ground, paper.theme.shared);
        let faint = css(blend(ground, shared, SILHOUETTE_OPACITY));
        for (at, (lane, outline)) in seen.iter().zip(&outlines).enumerate() {
            let y = area.y + height * at as f64;
            lane.head(paper, area, y);
            paper.raw(&format!("<g transform=\"translate({} {})\">\n", Px(area.x + HEAD_PX), Px(y)));
            paper.shape(&silhouette, &faint, 1.0);
            let fill = paper.fill(lane.worker);
            paper.shape(&outline.shared, &css(ground), 1.0);
            let (weak, opacity) = paper.weak_fill(lane.worker, SHARED_OPACITY);
            paper.shape(&outline.shared, &weak, opacity);
            paper.shape(&outline.own, &fill, 1.0);
            paper.shape(&outline.edges, &css(shared), 1.0);
            paper.raw("</g>\n");
        }
        if has_more {
            let text = format!("{} not shown: the picture is too low", more(self.lanes.len() - seen.len()));
            paper.text(area.x, area.bottom() - 2.0, paper.quiet(), &text);
        }
    }
}

/// `1 more worker`, `12 more workers`.
pub(super) fn more(workers: usize) -> String {
    plural(workers as u64, "more worker", "more workers")
}

impl Lane {
    fn head(&self, paper: &mut ChartArea<'_>, area: Area, y: f64) {
        let chip = paper.chip(area.x, y + 12.0, self.worker);
        let figures = &self.figures;
        let blocks = format!("{} {}", figures.blocks_text(), figures.sign);
        paper.text_within(area.x + chip, y + 12.0, HEAD_PX - chip - 8.0, paper.plain(), blocks.trim_end());
        let meter = Area { x: area.x, y: y + 20.0, width: 44.0, height: 7.0 };
        let fill = paper.fill(self.worker);
        paper.meter(meter, figures.share, &fill);
        paper.text_within(area.x + 50.0, y + 27.0, HEAD_PX - 58.0, paper.quiet(), &figures.occupancy);
    }
}

/// What is drawn into a lane.
#[derive(Default)]
struct Outline {
    own: String,
    shared: String,
    edges: String,
}

/// A lane's own pixels.
struct Inner {
    width: f64,
    height: f64,
    region: Region,
}

impl Inner {
    fn x(&self, units: f64) -> f64 {
        (units - self.region.x0) * self.width / (self.region.x1 - self.region.x0)
    }

    fn y(&self, position: u32) -> f64 {
        f64::from(position) * self.height / self.region.bottom
    }

    fn window(&self, columns: u32) -> Window {
        let Region { x0, x1, top, bottom } = self.region;
        Window { x0, x1, top, bottom, columns }
    }

    /// Whether all that would be seen of a box is covered by the one above it, which begins in the same row.
    fn is_covered(&self, forest: &Forest, chain: &Chain) -> bool {
        let row = |position: u32| (self.y(position) * 2.0).floor();
        let begin = row(chain.position);
        begin == row(chain.end())
            && chain.parent().is_some_and(|above| row(forest.chain(above).position) == begin)
    }

    fn outlines(&self, tree: &Tree, forest: &Forest, lanes: &[Lane]) -> Vec<Outline> {
        let mut columns = (self.width as u32).max(1);
        loop {
            let (outlines, boxes) = self.outlines_of(tree, forest, lanes, columns);
            if boxes <= MAX_BOXES || columns / 2 < MIN_COLUMNS {
                return outlines;
            }
            columns /= 2;
        }
    }

    fn outlines_of(
        &self,
        tree: &Tree,
        forest: &Forest,
        lanes: &[Lane],
        columns: u32,
    ) -> (Vec<Outline>, usize) {
        let window = self.window(columns);
        let mut outlines: Vec<Outline> = lanes.iter().map(|_| Outline::default()).collect();
        let mut boxes = 0;
        forest.visit(&window, |seen| match seen {
            VisibleBox::Chain { id, x0 } if !self.is_covered(forest, forest.chain(id)) => {
                let chain = forest.chain(id);
                let owners = tree.chain_owners(chain);
                let x = (self.x(x0), self.x(x0 + f64::from(chain.width())));
                let y = (self.y(chain.position), self.y(chain.end()));
                let held =
                    lanes.iter().zip(&mut outlines).filter(|(lane, _)| owners.contains(lane.worker.slot()));
                for (_, outline) in held {
                    outline.add(x, y, owners.len() > 1);
                    boxes += 1;
                }
            }
            VisibleBox::Chain { .. } | VisibleBox::NarrowBoxes(_) => {}
            VisibleBox::Sliver(sliver) => {
                let x0 = window.x0 + f64::from(sliver.column) * window.units_per_column();
                let x = (self.x(x0), self.x(x0 + window.units_per_column()));
                let y = (self.y(sliver.top), self.y(sliver.bottom));
                let held = lanes
                    .iter()
                    .zip(&mut outlines)
                    .filter(|(lane, _)| holds_sliver(&sliver, lane.worker.slot()));
                for (_, outline) in held {
                    outline.add(x, y, sliver.holder == Holder::Several);
                    boxes += 1;
                }
            }
        });
        (outlines, boxes)
    }

    /// The outline of the whole tree.
    fn silhouette(&self, forest: &Forest) -> String {
        let columns_of = |from: f64, to: f64| self.x(from).floor() as usize..self.x(to).ceil() as usize;
        let depths = lanes::silhouette(forest, &self.window(self.width.max(1.0) as u32), columns_of);
        let mut way = "M0 0".to_owned();
        for run in depths.chunk_by(|a, b| a == b) {
            if let [depth, ..] = run {
                let _ = write!(way, "V{}h{}", Px(self.y(*depth)), run.len());
            }
        }
        way.push_str("V0Z");
        way
    }
}

impl Outline {
    fn add(&mut self, x: (f64, f64), y: (f64, f64), is_shared: bool) {
        let width = (x.1 - x.0).max(0.5);
        // As on the page: boxes that are wide enough have a gap to their neighbour.
        let width = if width >= 4.0 { width - 1.0 } else { width };
        let height = (y.1 - y.0).max(0.5);
        let way = if is_shared { &mut self.shared } else { &mut self.own };
        let box_of = |way: &mut String, height: f64| {
            let _ = write!(way, "M{} {}h{}v{}h{}Z", Px(x.0), Px(y.0), Px(width), Px(height), Px(-width));
        };
        box_of(way, height);
        if is_shared && height >= 3.0 * f64::from(EDGE_PX) {
            box_of(&mut self.edges, f64::from(EDGE_PX));
        }
    }
}
