//! How the picture is painted: by owners or by heat, as one or in lanes, and what fades over it.

use std::sync::Arc;

use radixscope_export::tree::recency;
use radixscope_export::tree::sessions::SessionBoxes;
use radixscope_icicle::changes::ByChange;
use radixscope_icicle::evicted;
use radixscope_icicle::fading::Fadings;
use radixscope_icicle::heat::{self, ByHeat, Measure, Scale};
use radixscope_icicle::lanes::{self, Lanes};
use radixscope_icicle::palette::{Palette, ReplicaScale, Rgb, label};
use radixscope_icicle::raster::{ByOwner, Drawn, Fills, Pixels, raster};
use radixscope_icicle::sessions::BySession;
use radixscope_icicle::viewport::{Rect, Viewport};
use radixscope_model::id::{Millis, Seq, Slot, WorkerIx};
use radixscope_state::cluster::touch;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{ChainId, Forest};

use super::state::{Choice, Heat, known_requests};
use crate::draw::annotations;
use crate::draw::surface::Surface;
use crate::store::{Store, ViewContext, now_ms};
use crate::theme;

/// What the pixels depend on beside the tree, the window and the theme.
#[derive(Clone, PartialEq)]
pub(super) struct How {
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

impl How {
    /// Units and block position under a device pixel of the picture.
    pub(super) fn under(&self, view: &Viewport, x: f64, y: f64) -> Option<(f64, f64)> {
        match &self.lanes {
            None => Some(view.under(x, y)),
            Some(lanes) => lanes::under(view, lanes, x, y).map(|(_, units, position)| (units, position)),
        }
    }

    /// Where a box stands: once, or in the visible lanes of its owners.
    pub(super) fn places(&self, tree: &Tree, forest: &Forest, view: &Viewport, id: ChainId) -> Vec<Rect> {
        let Some(lanes) = &self.lanes else { return vec![view.rect_of(forest, id)] };
        let (rect, seen) = (lanes.lane_view(view).rect_of(forest, id), lanes.visible(f64::from(view.height)));
        let owners = tree
            .chain_owners(forest.chain(id))
            .iter()
            .filter(|&worker| lanes.lane_of(worker).is_some_and(|lane| seen.contains(&lane)));
        owners.filter_map(|worker| lanes.place(view, worker, rect)).collect()
    }
}

/// Everything that the axis is made of.
#[derive(PartialEq)]
struct DrawnAxis {
    /// Whether there is a tree beside it.
    has_tree: bool,
    /// Positions of its ends.
    ends: (f64, f64),
    size: (u32, u32),
    scale: f64,
    colour: Rgb,
    block_tokens: Option<u32>,
    lanes: Option<Lanes>,
}

/// What painting keeps between frames.
#[derive(Default)]
pub(super) struct Brush {
    axis: Option<DrawnAxis>,
    scale: Option<(bool, Scale)>,
    fadings: Fadings,
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
    fn look(&mut self, cluster: &ViewContext<'_>, forest: &Forest) -> u32 {
        let of = Some((cluster.seq(), forest.revision()));
        if self.of != of {
            // The tree of another tier has no decisions.
            let boxes = match cluster.tier {
                None => SessionBoxes::of(cluster.cluster, cluster.pool, cluster.tree(), forest),
                Some(_) => SessionBoxes::default(),
            };
            self.look = self.look.wrapping_add(u32::from(boxes != self.boxes));
            (self.of, self.boxes) = (of, boxes);
        }
        self.look
    }
}

impl Brush {
    /// How to paint now. `size` in device pixels, `scrolled` the CSS pixels of lanes above the picture.
    pub(super) fn how(
        &mut self,
        store: Store,
        (cluster, forest): (&ViewContext<'_>, &Forest),
        (choice, picked, dark): (Choice, Option<WorkerIx>, bool),
        surface: &Surface,
        scrolled: f64,
    ) -> How {
        if self.scale.as_ref().is_none_or(|(of, _)| *of != dark) {
            self.scale = Some((dark, Scale::read(theme::token, dark)));
        }
        let now = store.now_ms();
        let measure = match choice.heat {
            Heat::Owner | Heat::Sessions => None,
            Heat::Recency => {
                let now = heat::clock(now);
                // Once a step of the clock: it looks at every box.
                let fresh = self.oldest_ms.filter(|&(at, _)| at == now);
                let end = || recency::end_ms(recency::oldest_age_ms(forest, touch(now)));
                let (_, oldest_ms) = fresh.unwrap_or_else(|| (now, end()));
                self.oldest_ms = Some((now, oldest_ms));
                Some(Measure::Recency { now, oldest_ms })
            }
            Heat::Hits => {
                let is_known = known_requests(cluster, now) > 0;
                let fresh = self.most_hits.filter(|&(revision, _)| revision == forest.revision());
                let (_, most) = fresh.unwrap_or_else(|| (forest.revision(), heat::most_hits(forest)));
                self.most_hits = Some((forest.revision(), most));
                Some(Measure::Hits { end: is_known.then(|| heat::hits_end(most)) })
            }
            Heat::Owners => Some(Measure::Owners { workers: cluster.drawn_workers().count() }),
        };
        let workers: Arc<[Slot]> = match choice.lanes {
            true => cluster.drawn_workers().map(|worker| worker.slot()).collect(),
            false => Arc::default(),
        };
        let lanes = (!workers.is_empty()).then(|| {
            let stage = f64::from(surface.size.1) / surface.scale;
            let height = Lanes::height_css(stage, workers.len()) * surface.scale;
            Lanes { workers, height, scrolled: scrolled * surface.scale }
        });
        let is_of_changes = cluster.changes.is_some();
        // Of changes each has its own colour for what a worker picked out does not hold.
        let picked = picked.filter(|_| !is_of_changes).and_then(|worker| cluster.slot(worker));
        let sessions = (choice.heat == Heat::Sessions).then(|| self.sessions.look(cluster, forest));
        let replicas = ReplicaScale::of(cluster.cluster.pool_workers(cluster.pool));
        How { measure, sessions, is_of_changes, lanes, picked, replicas }
    }

    /// Sessions with colours, as of the last look.
    pub(super) fn coloured_sessions(&self) -> &[(Box<str>, Slot)] {
        self.sessions.boxes.coloured()
    }

    /// Draws what `view` shows.
    pub(super) fn raster(
        &self,
        how: &How,
        cluster: &ViewContext<'_>,
        view: &Viewport,
        palette: &Palette,
        pixels: &mut Pixels,
    ) -> Drawn {
        let tree = cluster.tree();
        let mut drawn = self.with_fills(how, palette, |fills| match &how.lanes {
            None => raster(tree, view, palette, fills, pixels),
            Some(lanes) => {
                let is_heat = how.measure.is_some() || how.sessions.is_some();
                let heat = is_heat.then_some(fills);
                lanes::raster(tree, view, lanes, palette, heat, how.picked, pixels)
            }
        });
        if cluster.paused_tree.is_some() {
            let both = (tree, cluster.live_tree());
            evicted::paint(both, view, how.lanes.as_ref(), palette, pixels, &mut drawn);
        }
        drawn
    }

    /// Writes into boxes, and beside the picture where that is not written yet.
    pub(super) fn draw_text(
        &mut self,
        how: &How,
        surface: &Surface,
        (cluster, forest): (&ViewContext<'_>, &Forest),
        view: &Viewport,
        palette: &Palette,
        drawn: &Drawn,
    ) {
        let (tree, block_tokens) = (cluster.tree(), cluster.block_tokens());
        self.with_fills(how, palette, |fills| {
            let name = |slot: Slot| label(cluster.workers().in_slot(slot).unwrap_or(WorkerIx::first(slot)));
            annotations::labels(surface, tree, forest, &drawn.labelled, fills, (how.picked, &name));
        });
        let axis = DrawnAxis {
            has_tree: forest.width() > 0,
            ends: (view.region.top, view.region.bottom),
            size: surface.size,
            scale: surface.scale,
            colour: palette.quiet,
            block_tokens,
            lanes: how.lanes.clone(),
        };
        if self.axis.as_ref() == Some(&axis) {
            return;
        }
        self.axis = Some(axis);
        surface.clear_axis();
        match &how.lanes {
            _ if forest.width() == 0 => {}
            None => annotations::axis(surface, view, palette, block_tokens),
            Some(lanes) => annotations::lanes_axis(surface, view, lanes, palette, block_tokens),
        }
    }

    /// Takes what an update of the forest brought and took.
    pub(super) fn take_changes(&mut self, forest: &Forest, is_moving: bool) {
        // What is gone stands where it stood: with a moving camera it would only confuse.
        if is_moving || theme::less_motion() {
            self.fadings.stop(forest.revision());
        } else {
            self.fadings.add(forest.revision(), forest.changes(), now_ms());
        }
    }

    /// Lays what appears and fades over the picture. Says whether that goes on.
    pub(super) fn fade(
        &mut self,
        surface: &Surface,
        lanes: Option<&Lanes>,
        view: &Viewport,
        palette: &Palette,
    ) -> bool {
        let now = now_ms();
        let goes_on = self.fadings.go_on(now);
        surface.clear_overlay();
        self.fadings.veils(view, lanes, palette, now, |veil| surface.veil(&veil));
        goes_on
    }

    fn with_fills<T>(&self, how: &How, palette: &Palette, look: impl FnOnce(&dyn Fills) -> T) -> T {
        let picked = how.picked;
        match (how.measure, &self.scale) {
            _ if how.is_of_changes => look(&ByChange { palette }),
            _ if how.sessions.is_some() => {
                look(&BySession { palette, sessions: &self.sessions.boxes, picked })
            }
            (Some(measure), Some((_, scale))) => look(&ByHeat { palette, scale, measure, picked }),
            _ => look(&ByOwner { palette, picked, replicas: how.replicas }),
        }
    }
}
