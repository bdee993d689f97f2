//! Paints the picture: by owners or by heat, as one or in lanes, and what fades over it.

use radixscope_icicle::changes::ByChange;
use radixscope_icicle::evicted;
use radixscope_icicle::fading::Fadings;
use radixscope_icicle::heat::{ByHeat, Scale};
use radixscope_icicle::lanes::{self, Lanes};
use radixscope_icicle::palette::{Palette, Rgb, label};
use radixscope_icicle::raster::{ByOwner, Drawn, Fills, Pixels, raster};
use radixscope_icicle::sessions::BySession;
use radixscope_icicle::viewport::Viewport;
use radixscope_model::id::{Slot, WorkerIx};
use radixscope_panels::tree::{How, LanePlace, Painting};
use radixscope_state::tree::forest::Forest;

use super::state::Choice;
use crate::draw::annotations;
use crate::draw::surface::Surface;
use crate::store::{Store, ViewContext, now_ms};
use crate::theme;

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
    painting: Painting,
}

impl Brush {
    /// How to paint now. `size` in device pixels, `scrolled` the CSS pixels of lanes above the picture.
    pub(super) fn how(
        &mut self,
        store: Store,
        seen: (&ViewContext<'_>, &Forest),
        (choice, picked, dark): (Choice, Option<WorkerIx>, bool),
        surface: &Surface,
        scrolled: f64,
    ) -> How {
        if self.scale.as_ref().is_none_or(|(of, _)| *of != dark) {
            self.scale = Some((dark, Scale::read(theme::token, dark)));
        }
        let place = LanePlace { height: f64::from(surface.size.1), scale: surface.scale, scrolled };
        self.painting.how(seen, (&choice, picked, store.now_ms()), place)
    }

    /// Sessions with colours, as of the last look.
    pub(super) fn coloured_sessions(&self) -> &[(Box<str>, Slot)] {
        self.painting.sessions().coloured()
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
                look(&BySession { palette, sessions: self.painting.sessions(), picked })
            }
            (Some(measure), Some((_, scale))) => look(&ByHeat { palette, scale, measure, picked }),
            _ => look(&ByOwner { palette, picked, replicas: how.replicas }),
        }
    }
}
