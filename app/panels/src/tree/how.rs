//! How the picture is painted: by owners or by heat, as one or in lanes; and what a pointer over it means.

use std::sync::Arc;

use radixscope_export::tree::recency;
use radixscope_export::tree::sessions::SessionBoxes;
use radixscope_export::tree::svg::Heat;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::heat::{self, Measure};
use radixscope_icicle::lanes::{self, Lanes};
use radixscope_icicle::palette::ReplicaScale;
use radixscope_icicle::raster::Drawn;
use radixscope_icicle::viewport::{Rect, Viewport};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, Seq, Slot, WorkerIx};
use radixscope_state::cluster::touch;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{ChainId, Forest};

use super::choice::{Choice, Hovered, Narrow, known_requests};
use super::moves::at;

/// What the pixels depend on beside the tree, the window and the theme.
#[derive(Clone, PartialEq)]
pub struct How {
    /// What boxes are coloured by; `None`: their owners.
    pub measure: Option<Measure>,
    /// Which look at the sessions they are coloured by instead.
    pub sessions: Option<u32>,
    /// Whether they are coloured by what changed between two moments instead.
    pub is_of_changes: bool,
    /// Where the lanes stand; `None`: one picture of all.
    pub lanes: Option<Lanes>,
    /// The worker picked out.
    pub picked: Option<Slot>,
    /// How deep the colour of shared boxes is.
    pub replicas: ReplicaScale,
}

/// The place that lanes have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LanePlace {
    /// Height of the picture, device pixels.
    pub height: f64,
    /// Device pixels of a CSS pixel.
    pub scale: f64,
    /// CSS pixels of lanes above the picture.
    pub scrolled: f64,
}

/// What is kept between looks, because each looks at every box.
#[derive(Default)]
pub struct Painting {
    /// Most hits of any box, as of an update of the forest.
    most_hits: Option<(u64, u32)>,
    /// Where the scale of last use ends, as of a step of the clock.
    oldest_ms: Option<(Millis, u64)>,
    sessions: Sessions,
}

/// The sessions of boxes, looked at anew when the state changed.
#[derive(Default)]
struct Sessions {
    /// State and update of the forest: decisions get their sessions and paths after they are counted.
    of: Option<(Seq, u64)>,
    boxes: SessionBoxes,
    /// Counts looks that showed something else.
    look: u32,
}

impl Sessions {
    fn look(&mut self, shown: &ViewContext<'_>, forest: &Forest) -> u32 {
        let of = Some((shown.seq(), forest.revision()));
        if self.of != of {
            // The tree of another tier has no decisions.
            let boxes = match shown.tier {
                None => SessionBoxes::of(shown.cluster, shown.pool, shown.tree(), forest),
                Some(_) => SessionBoxes::default(),
            };
            self.look = self.look.wrapping_add(u32::from(boxes != self.boxes));
            (self.of, self.boxes) = (of, boxes);
        }
        self.look
    }
}

impl Painting {
    /// How to paint now.
    pub fn how(
        &mut self,
        (shown, forest): (&ViewContext<'_>, &Forest),
        (choice, picked, now): (&Choice, Option<WorkerIx>, Millis),
        place: LanePlace,
    ) -> How {
        let measure = match choice.heat {
            Heat::Owner | Heat::Sessions => None,
            Heat::Recency => {
                let now = heat::clock(now);
                // Once a step of the clock.
                let fresh = self.oldest_ms.filter(|&(at, _)| at == now);
                let end = || recency::end_ms(recency::oldest_age_ms(forest, touch(now)));
                let (_, oldest_ms) = fresh.unwrap_or_else(|| (now, end()));
                self.oldest_ms = Some((now, oldest_ms));
                Some(Measure::Recency { now, oldest_ms })
            }
            Heat::Hits => {
                let is_known = known_requests(shown, now) > 0;
                let fresh = self.most_hits.filter(|&(revision, _)| revision == forest.revision());
                let (_, most) = fresh.unwrap_or_else(|| (forest.revision(), heat::most_hits(forest)));
                self.most_hits = Some((forest.revision(), most));
                Some(Measure::Hits { end: is_known.then(|| heat::hits_end(most)) })
            }
            Heat::Owners => Some(Measure::Owners { workers: shown.drawn_workers().count() }),
        };
        let workers: Arc<[Slot]> = match choice.lanes {
            true => shown.drawn_workers().map(|worker| worker.slot()).collect(),
            false => Arc::default(),
        };
        let lanes = (!workers.is_empty()).then(|| {
            let LanePlace { height, scale, scrolled } = place;
            let height = Lanes::height_css(height / scale, workers.len()) * scale;
            Lanes { workers, height, scrolled: scrolled * scale }
        });
        let is_of_changes = shown.changes.is_some();
        // Of changes each has its own colour for what a worker picked out does not hold.
        let picked = picked.filter(|_| !is_of_changes).and_then(|worker| shown.slot(worker));
        let sessions = (choice.heat == Heat::Sessions).then(|| self.sessions.look(shown, forest));
        let replicas = ReplicaScale::of(shown.cluster.pool_workers(shown.pool));
        How { measure, sessions, is_of_changes, lanes, picked, replicas }
    }

    /// The sessions of boxes, as of the last look.
    pub const fn sessions(&self) -> &SessionBoxes {
        &self.sessions.boxes
    }
}

impl How {
    /// Units and block position under a device pixel of the picture.
    fn under(&self, view: &Viewport, x: f64, y: f64) -> Option<(f64, f64)> {
        match &self.lanes {
            None => Some(view.under(x, y)),
            Some(lanes) => lanes::under(view, lanes, x, y).map(|(_, units, position)| (units, position)),
        }
    }

    /// Where a box stands: once, or in the visible lanes of its owners.
    pub fn places(&self, tree: &Tree, forest: &Forest, view: &Viewport, id: ChainId) -> Vec<Rect> {
        let Some(lanes) = &self.lanes else { return vec![view.rect_of(forest, id)] };
        let (rect, seen) = (lanes.lane_view(view).rect_of(forest, id), lanes.visible(f64::from(view.height)));
        let owners = tree
            .chain_owners(forest.chain(id))
            .iter()
            .filter(|&worker| lanes.lane_of(worker).is_some_and(|lane| seen.contains(&lane)));
        owners.filter_map(|worker| lanes.place(view, worker, rect)).collect()
    }

    /// What is under a device pixel of the picture, and the box with the position in it if it is one.
    pub fn hovered(
        &self,
        (tree, forest): (&Tree, &Forest),
        view: &Viewport,
        drawn: &Drawn,
        (x, y): (f64, f64),
    ) -> Option<(Hovered, Option<(ChainId, u32)>)> {
        let (across, position) = self.under(view, x, y)?;
        // Slivers have a column each, so a pointer beside a narrow one by less than a column still means it.
        let slack = view.window().units_per_column();
        let run = drawn.runs.iter().find(|run| {
            (run.x0 - slack..run.x1 + slack).contains(&across)
                && (f64::from(run.top)..f64::from(run.bottom)).contains(&position)
        });
        if let Some(run) = run {
            return Some((Hovered::NarrowBoxes(Narrow::of(run)), None));
        }
        let (id, position) = at(forest, across, position)?;
        let crumb = Crumb::at(tree, tree.block_at(forest.chain(id), position), position);
        Some((Hovered::Block(crumb), Some((id, position))))
    }
}
