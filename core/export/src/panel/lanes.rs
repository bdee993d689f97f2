//! The prefix tree once per worker, one lane below the other: a block stands at the same place across in every lane, in full
//! colour where one worker alone holds it, in half where others do too, under a neutral edge.

use std::fmt::Write as _;
use std::sync::Arc;

use radixscope_insight::completeness::known_text;
use radixscope_insight::occupancy::Occupancy;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, percent, plural, short};
use radixscope_state::cluster::Liveness;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Arrangement, Chain, Forest, Holder, Region, Seen, Sliver, Window};

use super::chart_area::{Area, ChartArea, LINE_PX};
use super::tree::empty_text;
use super::{Body, Content, PanelRequest, workers};
use crate::colour::{blend, css};
use crate::tree::TreeSnapshot;
use crate::tree::svg::MAX_BOXES;
use crate::tree::svg::text::Px;

const TITLE: &str = "Prefix tree by worker";
/// Least and greatest height of a lane, and what is free between two.
const LANE_PX: (f64, f64) = (40.0, 200.0);
const GAP_PX: f64 = 4.0;
/// Width of what stands beside a lane.
const HEAD_PX: f64 = 176.0;
/// What is left of a worker's colour where others hold the same blocks.
const SHARED: f64 = 0.5;
/// How much of the neutral colour shows where others hold blocks and this worker does not.
const SILHOUETTE: f64 = 0.10;
/// Height of the edge of a box that others hold too.
const EDGE_PX: f64 = 2.0;
/// Columns below which a picture is not made coarser.
const MIN_COLUMNS: u32 = 16;

struct Lane {
    worker: WorkerIx,
    held: String,
    sign: &'static str,
    occupancy: String,
    share: Option<f64>,
}

struct Lanes {
    picture: Arc<TreeSnapshot>,
    lanes: Vec<Lane>,
}

pub(super) fn content(
    shown: &ViewContext<'_>,
    picture: Option<Arc<TreeSnapshot>>,
    asked: &PanelRequest,
    now: Millis,
) -> Content {
    let of_pool = ViewContext { only: Some(shown.pool), ..*shown };
    let workers = workers(&of_pool, asked);
    let (Some(picture), false) = (picture, workers.is_empty()) else { return super::no_worker(TITLE) };
    if picture.tree().totals().nodes == 0 {
        return Content::empty(TITLE, "", empty_text(shown));
    }
    let lanes: Vec<Lane> = workers.into_iter().filter_map(|worker| Lane::of(shown, worker, now)).collect();
    let totals = picture.tree().totals();
    let facts = format!(
        "{} in the tree; across: the same blocks stand above each other; down: position in the prompt. Full colour: one worker \
         alone holds it; half: others too.",
        plural(totals.nodes, "distinct block", "distinct blocks")
    );
    Content::new(TITLE, facts, Lanes { picture, lanes })
}

impl Lane {
    fn of(shown: &ViewContext<'_>, worker: WorkerIx, now: Millis) -> Option<Self> {
        let Occupancy { blocks, capacity, share } = Occupancy::of(shown.cluster, worker);
        let occupancy = match (share, &capacity) {
            _ if shown.is_incomplete(worker) => known_text(shown.cluster, worker),
            (Some(share), Some(all)) => format!("{} of {}", percent(share), short(all.value)),
            _ => "capacity unknown".to_owned(),
        };
        Some(Self {
            worker,
            held: blocks.map_or(UNKNOWN.to_owned(), |blocks| plural(blocks, "block", "blocks")),
            sign: match shown.worker(worker)?.sign(now) {
                Liveness::Active => "",
                Liveness::Quiet => "quiet",
                Liveness::NeverSeen => "nothing received",
                Liveness::Left => "gone",
            },
            occupancy,
            share: share.filter(|_| capacity.is_some()),
        })
    }
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
        let faint = css(blend(ground, shared, SILHOUETTE));
        for (at, (lane, outline)) in seen.iter().zip(&outlines).enumerate() {
            let y = area.y + height * at as f64;
            lane.head(paper, area, y);
            paper.raw(&format!("<g transform=\"translate({} {})\">\n", Px(area.x + HEAD_PX), Px(y)));
            paper.shape(&silhouette, &faint, 1.0);
            let fill = paper.fill(lane.worker);
            paper.shape(&outline.shared, &css(ground), 1.0);
            let (weak, opacity) = paper.weak_fill(lane.worker, SHARED);
            paper.shape(&outline.shared, &weak, opacity);
            paper.shape(&outline.own, &fill, 1.0);
            paper.shape(&outline.edges, &css(shared), 1.0);
            paper.raw("</g>\n");
        }
        if has_more {
            let words = format!("{} not shown: the picture is too low", more(self.lanes.len() - seen.len()));
            paper.text(area.x, area.bottom() - 2.0, paper.quiet(), &words);
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
        let words = [self.held.as_str(), self.sign].join(" ");
        paper.text_within(area.x + chip, y + 12.0, HEAD_PX - chip - 8.0, paper.plain(), words.trim());
        let meter = Area { x: area.x, y: y + 20.0, width: 44.0, height: 7.0 };
        let fill = paper.fill(self.worker);
        paper.meter(meter, self.share, &fill);
        paper.text_within(area.x + 50.0, y + 27.0, HEAD_PX - 58.0, paper.quiet(), &self.occupancy);
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
            Seen::Chain { id, x0 } if !self.is_covered(forest, forest.chain(id)) => {
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
            Seen::Chain { .. } | Seen::Run(_) => {}
            Seen::Sliver(sliver) => {
                let x0 = window.x0 + f64::from(sliver.column) * window.units_per_column();
                let x = (self.x(x0), self.x(x0 + window.units_per_column()));
                let y = (self.y(sliver.top), self.y(sliver.bottom));
                let held = lanes.iter().zip(&mut outlines).filter(|(lane, _)| holds(&sliver, lane.worker));
                for (_, outline) in held {
                    outline.add(x, y, sliver.holder == Holder::Several);
                    boxes += 1;
                }
            }
        });
        (outlines, boxes)
    }

    /// The outline of the whole tree: as deep in each column as the deepest box there.
    fn silhouette(&self, forest: &Forest) -> String {
        let columns = self.width.max(1.0) as u32;
        let window = self.window(columns);
        let mut depths = vec![0u32; columns as usize];
        forest.visit(&window, |seen| {
            let (from, to, bottom) = match seen {
                Seen::Chain { id, x0 } => {
                    let chain = forest.chain(id);
                    let right = self.x(x0 + f64::from(chain.width())).ceil();
                    (self.x(x0).floor() as usize, right as usize, chain.end())
                }
                Seen::Sliver(sliver) => (sliver.column as usize, sliver.column as usize + 1, sliver.bottom),
                Seen::Run(_) => return,
            };
            let to = to.min(depths.len());
            depths[from.min(to)..to].iter_mut().for_each(|depth| *depth = (*depth).max(bottom));
        });
        let mut way = "M0 0".to_owned();
        for run in (0..depths.len()).collect::<Vec<_>>().chunk_by(|&a, &b| depths[a] == depths[b]) {
            if let [first, ..] = run {
                let _ = write!(way, "V{}h{}", Px(self.y(depths[*first])), run.len());
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
        if is_shared && height >= 3.0 * EDGE_PX {
            box_of(&mut self.edges, EDGE_PX);
        }
    }
}

/// A sliver of several boxes does not list workers from the 64th on.
fn holds(sliver: &Sliver, worker: WorkerIx) -> bool {
    let slot = worker.slot();
    match sliver.holder {
        Holder::NoWorker => false,
        Holder::One(only) => only == slot,
        Holder::Several => slot.0 < 64 && sliver.workers & (1 << slot.0) != 0,
    }
}
