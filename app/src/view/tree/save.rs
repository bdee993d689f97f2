//! The present view as a file: SVG drawn by core, or PNG of what the canvases show.

use leptos::prelude::*;
use radixscope_export::tree::sessions::SessionBoxes;
use radixscope_export::tree::svg::{self, Drawing, colours::Theme};
use radixscope_icicle::viewport::Region;
use radixscope_model::id::WorkerIx;
use radixscope_panels::tree::{PictureFacts, picture_sums};
use radixscope_state::cluster::touch;
use radixscope_state::tree::forest::Forest;
use wasm_bindgen::JsCast;
use web_sys::HtmlCanvasElement;

use super::state::{Choice, Heat, TreeView};
use crate::draw::photo::{self, Caption};
use crate::store::ViewContext;
use crate::theme;
use crate::view::control::view;
use crate::view::file;

/// The two buttons.
#[component]
pub(super) fn Save(tree: TreeView) -> impl IntoView {
    let status_text = RwSignal::new(String::new());
    let svg = move |_| status_text.set(save_svg(tree));
    let png = move |_| save_png(tree, status_text);
    view! {
        <span class="side-save" role="group" aria-label="Save this view">
            <button class="plain" data-testid="save-svg" on:click=svg title="This view as vector graphics, up to 20,000 boxes">"Save as SVG"</button>
            <button class="plain" data-testid="save-png" on:click=png title="This view as it is on the screen">"Save as PNG"</button>
            <span class="hidden" role="status" data-testid="save-status">{status_text}</span>
        </span>
    }
}

/// What a picture is of.
fn facts(
    tree: TreeView,
    shown: &ViewContext<'_>,
    forest: &Forest,
    region: Region,
    choice: &Choice,
) -> PictureFacts {
    // The cluster's time, not that of the reader's machine.
    let now = (tree.store.now_ms().0 as f64).into();
    let iso = String::from(js_sys::Date::new(&now).to_iso_string());
    PictureFacts::of(shown, forest, region, choice, &iso)
}

/// Looks at what is shown now.
fn view<T>(tree: TreeView, see: impl FnOnce(&ViewContext<'_>, &Forest, Region, Choice) -> T) -> Option<T> {
    let choice = tree.choice.get_untracked();
    let region = tree.camera.with_value(|camera| camera.region());
    tree.store
        .look(|cluster, forest| see(cluster, forest, region.unwrap_or_else(|| Region::all(forest)), choice))
}

fn save_svg(tree: TreeView) -> String {
    let (width, height) = document()
        .get_element_by_id("tree")
        .map_or((1600, 900), |tree| (tree.client_width(), tree.client_height()));
    let dark = tree.dark.get_untracked();
    let drawn = view(tree, |cluster, forest, region, choice| {
        let facts = facts(tree, cluster, forest, region, &choice);
        let workers = cluster.workers();
        let names: Vec<(WorkerIx, String)> =
            workers.indexed().map(|(worker, state)| (worker, state.id.to_string())).collect();
        let sessions = (choice.heat == Heat::Sessions && cluster.tier.is_none())
            .then(|| SessionBoxes::of(cluster.cluster, cluster.pool, cluster.tree(), forest));
        let drawing = Drawing {
            width_px: width.max(0) as u32,
            height_px: height.max(0) as u32,
            theme: if dark { &Theme::DARK } else { &Theme::LIGHT },
            region,
            heat: choice.heat,
            sessions: sessions.as_ref(),
            title: &facts.title,
            at: &facts.at,
            note: None,
            empty: svg::EMPTY,
            now: touch(tree.store.now_ms()),
            workers: &names,
            slots: workers.slots(),
            pool_workers: cluster.cluster.pool_workers(cluster.pool),
            only: None,
            block_size_tokens: cluster.block_tokens(),
        };
        (svg::draw(cluster.tree(), forest, &drawing), format!("{}.svg", facts.name))
    });
    let Some((text, name)) = drawn else { return "There is no picture to save yet".to_owned() };
    match file::offer(&name, "image/svg+xml", &text) {
        Ok(()) => format!("{name} saved"),
        Err(_) => format!("{name} could not be saved: the browser refused"),
    }
}

fn save_png(tree: TreeView, status_text: RwSignal<String>) {
    let facts = view(tree, |cluster, forest, region, choice| {
        let facts = facts(tree, cluster, forest, region, &choice);
        let sums = picture_sums(cluster.tree().totals());
        (facts, sums)
    });
    let (Some((facts, sums)), Some(picture), Some(axis)) = (facts, canvas(".picture"), canvas(".axis"))
    else {
        status_text.set("There is no picture to save yet".to_owned());
        return;
    };
    let caption = Caption {
        title: facts.title,
        at: facts.at,
        sums,
        ground: theme::token("--panel"),
        text: theme::token("--text"),
        quiet: theme::token("--text-quiet"),
    };
    let name = format!("{}.png", facts.name);
    let done = move |blob: Option<web_sys::Blob>| {
        let saved = blob.is_some_and(|blob| file::offer_blob(&name, &blob).is_ok());
        // The panel may be gone by then.
        status_text.try_set(if saved {
            format!("{name} saved")
        } else {
            format!("{name} could not be saved: the browser refused")
        });
    };
    if photo::compose(&picture, &axis, &caption, done).is_none() {
        status_text.set("The browser gives no canvas to put the picture together".to_owned());
    }
}

/// The picture, or its axis.
fn canvas(class: &str) -> Option<HtmlCanvasElement> {
    let found = document().query_selector(&format!("#tree canvas{class}")).ok().flatten()?;
    found.dyn_into().ok()
}
