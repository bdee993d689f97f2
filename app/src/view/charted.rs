//! A chart in a panel: drawn after the page shows its figures, again where what it shows, its size or its colours change.
//! The library is fetched again if it could not be.

use gloo_timers::future::TimeoutFuture;
use leptos::html;
use leptos::prelude::*;
use radixscope_icicle::palette::Palette;

use super::lazy::after_painting;
use super::resize;
use crate::draw::chart::Drawing;
use crate::draw::option::ChartOption;
use crate::draw::theme::theme;
use crate::store::Store;
use crate::theme;
use crate::view::control::view;

/// Wait before the chart's library is fetched again after a failure.
const RETRY_MS: u32 = 3_000;
/// Size of a chart's text in that of the page.
const TEXT: f64 = 0.85;

/// The chart that `option` gives, followed as signals are; `None`: what is shown stays.
#[component]
pub(super) fn Charted(
    store: Store,
    dark: Memo<bool>,
    /// For tests.
    #[prop(into)]
    id: String,
    /// What is seen, for those who do not see it.
    #[prop(into)]
    description: Signal<String>,
    /// Class of its box.
    #[prop(default = "chart-box")]
    class: &'static str,
    /// Where another chart has the pointer, as a place in this one, CSS pixels.
    #[prop(optional, into)]
    pointed: Option<Signal<Option<(f64, f64)>>>,
    /// What is drawn, in the colours given.
    option: impl Fn(&Palette) -> Option<ChartOption> + 'static,
) -> impl IntoView {
    let frame = NodeRef::<html::Div>::new();
    let drawing = StoredValue::new_local(None::<Drawing>);
    let (loaded, failed) = (RwSignal::new(false), RwSignal::new(false));
    load_after_figures(store, frame, drawing, loaded, failed);
    // In a task of its own after the frame with the figures: with many bands ECharts takes tens of milliseconds, part of them for layout.
    let next = StoredValue::new_local(None::<(ChartOption, String)>);
    let draw_next = move || {
        let Some((option, theme)) = next.try_update_value(Option::take).flatten() else { return };
        drawing.try_update_value(|drawing| {
            if let Some(drawing) = drawing {
                drawing.show(&option, theme);
            }
        });
    };
    let palette = Memo::new(move |_| Palette::read(theme::token, dark.get(), store.workers.get()));
    Effect::new(move |_| {
        if !loaded.get() {
            return;
        }
        palette.with(|palette| {
            let Some(option) = option(palette) else { return };
            let theme = theme(palette, root_font_px() * TEXT);
            let is_awaited = next.try_update_value(|next| next.replace((option, theme)).is_some());
            if is_awaited == Some(false) {
                after_painting(draw_next);
            }
        });
    });
    if let Some(pointed) = pointed {
        Effect::new(move |was: Option<bool>| {
            let at = pointed.get();
            if at.is_some() || was == Some(true) {
                drawing.with_value(|drawing| drawing.iter().for_each(|drawing| drawing.point(at)));
            }
            at.is_some()
        });
    }
    let failed_id = format!("{id}-failed");
    view! {
        <div class=class>
            <div class="chart" node_ref=frame role="img" data-testid=id data-ready=move || loaded.get().to_string() aria-label=description></div>
            <Show when=move || failed.get()>
                <p class="empty" data-testid=failed_id.clone()>"The chart library could not be fetched from this server. Trying again every few seconds."</p>
            </Show>
        </div>
    }
}

/// Makes `frame` ready for a chart once it is in the document and the state is there; `loaded` and `failed` say how it
/// went. Fetched earlier, the library would delay the state, which comes over the same line.
fn load_after_figures(
    store: Store,
    frame: NodeRef<html::Div>,
    drawing: StoredValue<Option<Drawing>, LocalStorage>,
    loaded: RwSignal<bool>,
    failed: RwSignal<bool>,
) {
    Effect::new(move |_| {
        if !store.ready() {
            return;
        }
        let Some(element) = frame.get() else { return };
        resize::observe(&element, move || {
            drawing.try_with_value(|d| d.iter().for_each(Drawing::resize)).unwrap_or_default()
        });
        after_painting(move || {
            leptos::task::spawn_local(async move {
                while !fetch(&element, drawing, loaded, failed).await {
                    TimeoutFuture::new(RETRY_MS).await;
                }
            });
        });
    });
    on_cleanup(move || {
        drawing.try_update_value(Option::take);
    });
}

/// Prepares `element`. `false`: the library could not be fetched, the server being away perhaps, and the panel is still
/// there to try again for.
async fn fetch(
    element: &web_sys::Element,
    drawing: StoredValue<Option<Drawing>, LocalStorage>,
    loaded: RwSignal<bool>,
    failed: RwSignal<bool>,
) -> bool {
    let made = Drawing::new(element).await;
    let ok = made.is_ok();
    // Setting a signal gives the value back where the panel is gone; then the chart goes too.
    let gone = failed.try_set(!ok).is_some();
    if let Ok(made) = made
        && drawing.try_update_value(|d| *d = Some(made)).is_some()
    {
        loaded.try_set(true);
    }
    ok || gone
}

/// Size of the page's text, CSS pixels.
fn root_font_px() -> f64 {
    let root = document().document_element();
    let style = root.and_then(|root| window().get_computed_style(&root).ok().flatten());
    let size = style.and_then(|style| style.get_property_value("font-size").ok());
    size.map(|size| js_sys::parse_float(&size)).filter(|px| px.is_finite()).unwrap_or(13.0)
}
