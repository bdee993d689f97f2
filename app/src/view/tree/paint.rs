//! A layer above the tree that shows an open decision. What paints it is in the full bundle; here is its place.

use leptos::prelude::*;
use radixscope_core::cluster::Cluster;
use radixscope_core::id::DecisionId;
use radixscope_core::tree::layout::Layout;

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
    pub layout: &'a Layout,
    /// Colours.
    pub palette: &'a Palette,
}

/// What was painted.
#[derive(Clone, PartialEq, Debug)]
pub struct Painted {
    /// In words, for everybody.
    pub words: String,
    /// Label at the end of the path; `None` where nothing could be painted.
    pub label: Option<String>,
}

/// Paints a decision's path.
#[derive(Clone, Copy)]
pub struct Painter(pub fn(&Cluster, &Canvas<'_>, DecisionId) -> Painted);

/// Says what is painted, and lets it go.
#[component]
pub(super) fn Note(store: Store, painted: RwSignal<Option<Painted>>) -> impl IntoView {
    let let_go = move |_| store.address.update(|address| address.decision = None);
    move || {
        painted.get().map(|painted| {
            view! {
                <p class="painted" role="status" data-testid="painted">
                    <span>{painted.words}</span>
                    <button class="plain" data-testid="painted-close" on:click=let_go>"Hide"</button>
                </p>
            }
        })
    }
}
