//! A layer above the tree that shows an open decision. What paints it is in the full bundle; here is its place.

use leptos::prelude::*;
use radixscope_model::id::DecisionId;
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::forest::Forest;

use crate::draw::palette::Palette;
use crate::draw::surface::Surface;
use crate::draw::viewport::Viewport;
use crate::store::Store;

/// What is painted with.
pub struct Canvas<'a> {
    /// The canvas.
    pub surface: &'a Surface,
    /// Where on it what stands.
    pub view: Viewport,
    /// The boxes.
    pub forest: &'a Forest,
    /// Colours.
    pub palette: &'a Palette,
}

/// What was painted; empty where nothing was.
#[derive(Clone, Copy)]
pub struct Painted {
    /// In words, for everybody.
    pub words: RwSignal<String>,
    /// Label at the end of the path.
    pub end: RwSignal<String>,
}

/// Paints the path of a decision.
#[derive(Clone, Copy)]
pub struct Painter {
    /// Paints, or clears what was said where there is no decision.
    pub paint: fn(&Cluster, &Canvas<'_>, Option<DecisionId>, Painted),
    /// Says what is painted, and lets it go.
    pub note: fn(Store, Painted) -> AnyView,
}
