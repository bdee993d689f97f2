//! The canvas: drawn whenever something that is drawn changed.

use leptos::html;
use leptos::prelude::*;
use radixscope_core::cluster::Cluster;
use radixscope_core::id::WorkerIx;
use radixscope_core::tree::Tree;
use radixscope_core::tree::forest::Forest;

use super::state::{Choice, TreeView};
use crate::draw::palette::Palette;
use crate::draw::raster::{ByOwner, Drawn, Pixels, raster};
use crate::draw::surface::Surface;
use crate::draw::viewport::{Region, Viewport};
use crate::draw::words::{self, GUTTER};
use crate::theme;
use crate::view::full::painted::PAINTER;
use crate::view::resize;
use crate::view::tree::Canvas as Layer;

/// Everything that pixels are made of.
#[derive(Clone, Copy, PartialEq)]
struct Made {
    revision: u64,
    region: Region,
    picked: Option<WorkerIx>,
    palette_of: (bool, usize),
    choice: Choice,
    size: (u32, u32),
}

/// What is on the canvas.
struct Stage {
    surface: Surface,
    palette: Palette,
    palette_of: Option<(bool, usize)>,
    pixels: Pixels,
    drawn: Drawn,
    made: Option<Made>,
}

/// The picture.
#[component]
pub(super) fn Canvas(tree: TreeView) -> impl IntoView {
    let frame = NodeRef::<html::Div>::new();
    let below = NodeRef::<html::Canvas>::new();
    let above = NodeRef::<html::Canvas>::new();
    let stage = StoredValue::new_local(None::<Stage>);
    Effect::new(move |_| {
        let (Some(frame), Some(below), Some(above)) = (frame.get(), below.get(), above.get()) else { return };
        stage.set_value(Surface::new(&below, &above).map(|surface| Stage {
            surface,
            palette: Palette::default(),
            palette_of: None,
            pixels: Pixels::default(),
            drawn: Drawn::default(),
            made: None,
        }));
        resize::observe(&frame, move || tree.redraw.update(|n| *n += 1));
    });
    Effect::new(move |_| {
        tree.redraw.track();
        let (dark, picked, choice) = (tree.dark.get(), tree.store.picked(), tree.choice.get());
        let decision = tree.store.address.with(|address| address.decision);
        let Some(frame) = frame.get() else { return };
        tree.store.on_tree_frame(choice.arrangement, |cluster, forest| {
            stage.update_value(|stage| {
                let Some(stage) = stage else { return };
                stage.surface.fit(f64::from(frame.client_width()), f64::from(frame.client_height()), GUTTER);
                let palette_of = (dark, cluster.workers().len());
                if stage.palette_of != Some(palette_of) {
                    stage.palette = Palette::read(theme::token, dark, palette_of.1);
                    stage.palette_of = Some(palette_of);
                }
                let moved = tree.camera.try_update_value(|camera| camera.step(cluster.tree(), forest));
                let Some((region, goes_on)) = moved else { return };
                stage.paint(cluster, forest, region, picked, choice, palette_of);
                let (width, height) = stage.surface.size;
                let view = Viewport { region, width, height, scale: stage.surface.scale };
                let canvas = Layer { surface: &stage.surface, view, forest, palette: &stage.palette };
                (PAINTER.paint)(cluster, &canvas, decision, tree.painted);
                if goes_on {
                    request_animation_frame(move || tree.redraw.update(|n| *n += 1));
                }
            });
        });
    });
    on_cleanup(move || tree.store.no_tree_frames());
    view! {
        <div class="icicle" id="tree" node_ref=frame tabindex="0" role="application" aria-roledescription="icicle"
            aria-label="Prefix tree" data-testid="tree">
            <canvas node_ref=below class="below" aria-hidden="true"></canvas>
            <canvas node_ref=above class="above" aria-hidden="true"></canvas>
        </div>
    }
}

impl Stage {
    fn paint(
        &mut self,
        cluster: &Cluster,
        forest: &Forest,
        region: Region,
        picked: Option<WorkerIx>,
        choice: Choice,
        palette_of: (bool, usize),
    ) {
        let (width, height) = self.surface.size;
        if width == 0 || height == 0 {
            return;
        }
        let tree: &Tree = cluster.tree();
        let view = Viewport { region, width, height, scale: self.surface.scale };
        let size = (width, height);
        let made = Made { revision: forest.revision(), region, picked, palette_of, choice, size };
        if self.made != Some(made) {
            let fills = ByOwner { palette: &self.palette, picked };
            self.drawn = raster(tree, &view, &self.palette, &fills, &mut self.pixels);
            self.surface.put(&self.pixels);
            self.made = Some(made);
        }
        self.surface.clear_above();
        words::labels(&self.surface, tree, forest, &self.drawn.labelled, picked);
        if forest.width() > 0 {
            words::axis(&self.surface, &view, &self.palette, cluster.block_tokens());
        }
    }
}
