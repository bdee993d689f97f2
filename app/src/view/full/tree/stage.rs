//! The canvas: drawn whenever something that is drawn changed.

use leptos::html;
use leptos::prelude::*;
use radixscope_core::cluster::Cluster;
use radixscope_core::tree::Tree;
use radixscope_core::tree::forest::Forest;

use super::paint::{Brush, How};
use super::state::{Choice, TreeView};
use crate::draw::palette::Palette;
use crate::draw::raster::{Drawn, Pixels};
use crate::draw::surface::Surface;
use crate::draw::viewport::{Region, Viewport};
use crate::draw::words::{self, GUTTER};
use crate::theme;
use crate::view::resize;

/// Everything that pixels are made of.
#[derive(Clone, Copy, PartialEq)]
struct Made {
    revision: u64,
    region: Region,
    palette_of: (bool, usize),
    choice: Choice,
    how: How,
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
    brush: Brush,
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
            brush: Brush::default(),
        }));
        resize::observe(&frame, move || tree.redraw.update(|n| *n += 1));
    });
    Effect::new(move |_| {
        tree.redraw.track();
        let (dark, picked, choice) = (tree.dark.get(), tree.store.picked(), tree.choice.get());
        let scrolled = tree.scrolled.get();
        let Some(frame) = frame.get() else { return };
        tree.store.keep_tree_changes();
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
                let seen = (cluster, forest);
                let how = stage.brush.how(tree.store, seen, (choice, picked, dark), &stage.surface, scrolled);
                if stage.paint(seen, region, goes_on, how, choice, palette_of) | goes_on {
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
    /// Says whether something goes on to move.
    fn paint(
        &mut self,
        (cluster, forest): (&Cluster, &Forest),
        region: Region,
        is_moving: bool,
        how: How,
        choice: Choice,
        palette_of: (bool, usize),
    ) -> bool {
        let (width, height) = self.surface.size;
        if width == 0 || height == 0 {
            return false;
        }
        let tree: &Tree = cluster.tree();
        let view = Viewport { region, width, height, scale: self.surface.scale };
        let size = (width, height);
        let made = Made { revision: forest.revision(), region, palette_of, choice, how, size };
        if self.made != Some(made) {
            self.drawn = self.brush.raster(&how, tree, &view, &self.palette, &mut self.pixels);
            self.surface.put(&self.pixels);
            self.made = Some(made);
        }
        self.surface.clear_above();
        let fades = self.brush.fade(&how, &self.surface, forest, &view, &self.palette, is_moving);
        self.brush.words(&how, &self.surface, (cluster, forest), &view, &self.palette, &self.drawn);
        fades
    }
}
