//! Puts a chart into a panel: after the page is painted, again if the library could not be fetched.

use gloo_timers::future::TimeoutFuture;
use leptos::html;
use leptos::prelude::*;

use super::resize;
use crate::draw::chart::Chart;

/// Wait before the chart's library is fetched again after a failure.
const RETRY_MS: u32 = 3_000;

/// Puts a chart into `frame` once that is in the document; `loaded` and `failed` say how it went.
pub(super) fn load_after_first_paint(
    frame: NodeRef<html::Div>,
    chart: StoredValue<Option<Chart>, LocalStorage>,
    loaded: RwSignal<bool>,
    failed: RwSignal<bool>,
) {
    Effect::new(move |_| {
        let Some(element) = frame.get() else { return };
        resize::observe(&element, move || {
            chart.try_with_value(|c| c.iter().for_each(Chart::resize)).unwrap_or_default()
        });
        // Two frames: the first paints the page.
        request_animation_frame(move || {
            request_animation_frame(move || {
                leptos::task::spawn_local(async move {
                    while !mount(&element, chart, loaded, failed).await {
                        TimeoutFuture::new(RETRY_MS).await;
                    }
                });
            });
        });
    });
    on_cleanup(move || {
        chart.try_update_value(Option::take);
    });
}

/// Puts the chart into `element`. `false`: the library could not be fetched, the server being away perhaps, and the
/// panel is still there to try again for.
async fn mount(
    element: &web_sys::Element,
    chart: StoredValue<Option<Chart>, LocalStorage>,
    loaded: RwSignal<bool>,
    failed: RwSignal<bool>,
) -> bool {
    let made = Chart::new(element).await;
    let ok = made.is_ok();
    // Setting a signal gives the value back where the panel is gone; then the chart goes too.
    let gone = failed.try_set(!ok).is_some();
    if let Ok(made) = made
        && chart.try_update_value(|c| *c = Some(made)).is_some()
    {
        loaded.try_set(true);
    }
    ok || gone
}

/// Size of the page's text, CSS pixels.
pub(super) fn root_font_px() -> f64 {
    let root = document().document_element();
    let style = root.and_then(|root| window().get_computed_style(&root).ok().flatten());
    let size = style.and_then(|style| style.get_property_value("font-size").ok());
    size.map(|size| js_sys::parse_float(&size)).filter(|px| px.is_finite()).unwrap_or(13.0)
}
