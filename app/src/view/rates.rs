//! Blocks stored and removed per second over the last minutes, one band per worker.

use gloo_timers::future::TimeoutFuture;
use leptos::html;
use leptos::prelude::*;
use radixscope_core::cluster::{Cluster, RATE_WINDOW_S};
use radixscope_core::id::{Millis, WorkerIx};

use super::chip::Chip;
use super::figure::{Figure, PanelHead};
use super::resize;
use crate::draw::chart::{Band, RatesChart};
use crate::draw::palette::{Palette, label};
use crate::format;
use crate::store::{Store, now_ms};
use crate::theme;
use crate::url::Panel;

/// Shortest time between two drawings: buckets are whole seconds.
const REDRAW_MS: f64 = 500.0;
/// Wait before the chart's library is fetched again after a failure.
const RETRY_MS: u32 = 3_000;
/// More workers than this are drawn as one band: they could not be told apart.
const MAX_BANDS: usize = 24;
/// Up to so many workers are named in the head; more would leave no room for the figures.
const LEGEND_WORKERS: usize = 6;
/// Figures are means over so many full seconds.
const MEAN_SECONDS: u64 = 10;

/// The panel.
#[component]
pub(super) fn RatesPanel(store: Store, dark: Signal<bool>) -> impl IntoView {
    let sums = Memo::new(move |_| {
        let now = store.now_ms();
        let heard = store.heard();
        heard.then(|| {
            store.on_beat(|c| {
                let each = c.workers().iter().map(|w| w.rates.per_second(now, MEAN_SECONDS));
                each.fold((0.0, 0.0), |sum, rate| (sum.0 + rate.0, sum.1 + rate.1))
            })
        })
    });
    let stored = Signal::derive(move || sums.get().map_or(format::UNKNOWN.to_owned(), |s| format::rate(s.0)));
    let removed =
        Signal::derive(move || sums.get().map_or(format::UNKNOWN.to_owned(), |s| format::rate(s.1)));
    let frame = NodeRef::<html::Div>::new();
    let chart = StoredValue::new_local(None::<RatesChart>);
    let failed = RwSignal::new(false);
    let loaded = RwSignal::new(false);
    load_after_first_paint(frame, chart, loaded, failed);
    keep_drawn(store, dark, chart, loaded);
    view! {
        <section class="panel rates" aria-labelledby="rates-title" data-testid="rates">
            <PanelHead store panel=Panel::Rates title="Block rates">
                <Show when=move || store.workers.get() <= LEGEND_WORKERS>
                    <span class="chips" aria-hidden="true">
                        <For each=move || 0..store.workers.get() as u16 key=|i| *i let:i>
                            <Chip store worker=WorkerIx(i)/>
                        </For>
                    </span>
                </Show>
                <Figure id="stored-rate-all" label="stored/s" value=stored title="All workers, mean of the last 10 s"/>
                <Figure id="removed-rate-all" label="removed/s" value=removed title="All workers, mean of the last 10 s"/>
            </PanelHead>
            <div class="chart-box">
                <div class="chart" node_ref=frame role="img" data-testid="rates-chart" data-ready=move || loaded.get().to_string()
                    aria-label="Blocks stored and removed per second and worker over the last 5 minutes. The table of workers has the present rates."></div>
                <span class="side up" aria-hidden="true">"stored"</span>
                <span class="side down" aria-hidden="true">"removed"</span>
                <Show when=move || failed.get()>
                    <p class="empty" data-testid="rates-failed">"The chart library could not be fetched from this server. Trying again every few seconds."</p>
                </Show>
            </div>
        </section>
    }
}

fn load_after_first_paint(
    frame: NodeRef<html::Div>,
    chart: StoredValue<Option<RatesChart>, LocalStorage>,
    loaded: RwSignal<bool>,
    failed: RwSignal<bool>,
) {
    Effect::new(move |_| {
        let Some(element) = frame.get() else { return };
        resize::observe(&element, move || {
            chart.try_with_value(|c| c.iter().for_each(RatesChart::resize)).unwrap_or_default()
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
    chart: StoredValue<Option<RatesChart>, LocalStorage>,
    loaded: RwSignal<bool>,
    failed: RwSignal<bool>,
) -> bool {
    let made = RatesChart::new(element).await;
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

fn keep_drawn(
    store: Store,
    dark: Signal<bool>,
    chart: StoredValue<Option<RatesChart>, LocalStorage>,
    loaded: RwSignal<bool>,
) {
    Effect::new(move |before: Option<(f64, u64, (bool, usize))>| {
        let (dark, picked) = (dark.get(), store.picked());
        let now = store.now_ms();
        let second = store.on_beat(|_| now.0 / 1000);
        if !loaded.get() {
            return (f64::NEG_INFINITY, 0, (dark, usize::MAX));
        }
        let look = (dark, picked.map_or(usize::MAX, WorkerIx::at));
        if let Some((drawn_ms, drawn_second, drawn_look)) = before
            && drawn_look == look
            && (drawn_second == second || now_ms() - drawn_ms < REDRAW_MS)
        {
            return (drawn_ms, drawn_second, drawn_look);
        }
        store.peek(|cluster| {
            let palette = Palette::read(theme::token, dark, cluster.workers().len());
            let bands = bands(cluster, &palette, picked, now);
            let font = root_font_px() * 0.85;
            chart.with_value(|c| c.iter().for_each(|c| c.show(&bands, &palette, font)));
        });
        (now_ms(), second, look)
    });
}

fn bands(cluster: &Cluster, palette: &Palette, picked: Option<WorkerIx>, now: Millis) -> Vec<Band> {
    let all = (0..cluster.workers().len() as u16)
        .map(WorkerIx)
        .filter(|&w| picked.is_none_or(|picked| picked == w));
    let mut bands: Vec<Band> = Vec::new();
    for worker in all {
        let Some(state) = cluster.worker(worker) else { continue };
        let buckets = state.rates.last(now, RATE_WINDOW_S).map(|(_, b)| b);
        let (stored, removed): (Vec<f64>, Vec<f64>) =
            buckets.map(|b| (f64::from(b.stored), f64::from(b.removed))).unzip();
        match bands.last_mut().filter(|_| worker.at() >= MAX_BANDS && picked.is_none()) {
            Some(others) if others.name == "others" => {
                others.stored.iter_mut().zip(&stored).for_each(|(sum, n)| *sum += n);
                others.removed.iter_mut().zip(&removed).for_each(|(sum, n)| *sum += n);
            }
            Some(_) => {
                bands.push(Band { name: "others".to_owned(), colour: palette.shared, stored, removed })
            }
            None => bands.push(Band { name: label(worker), colour: palette.worker(worker), stored, removed }),
        }
    }
    bands
}

pub(super) fn root_font_px() -> f64 {
    let root = document().document_element();
    let style = root.and_then(|root| window().get_computed_style(&root).ok().flatten());
    let size = style.and_then(|style| style.get_property_value("font-size").ok());
    size.map(|size| js_sys::parse_float(&size)).filter(|px| px.is_finite()).unwrap_or(13.0)
}
