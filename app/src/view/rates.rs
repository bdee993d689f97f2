//! Blocks stored and removed per second over the last minutes, one band per worker.

use leptos::html;
use leptos::prelude::*;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::{Bucket, Cluster, RATE_WINDOW_S};

use super::charted::{load_after_first_paint, root_font_px};
use super::chip::Chip;
use super::figure::{Figure, PanelHead};
use crate::draw::chart::Chart;
use crate::draw::palette::{Palette, label};
use crate::draw::rates::{self, Band};
use crate::format;
use crate::store::{Feed, Store, now_ms};
use crate::theme;
use crate::url::Panel;

/// Shortest time between two drawings: buckets are whole seconds.
const REDRAW_MS: f64 = 500.0;
/// More workers than this are drawn as one band: they could not be told apart.
const MAX_BANDS: usize = 24;
/// Up to so many workers are named in the head; more would leave no room for the figures.
const LEGEND_WORKERS: usize = 6;
/// Figures are means over so many full seconds.
const MEAN_SECONDS: u64 = 10;

/// The panel.
#[component]
pub(super) fn RatesPanel(store: Store, dark: Signal<bool>) -> impl IntoView {
    let sum = |of: fn((f64, f64)) -> f64| {
        Memo::new(move |_| {
            if store.as_of(Feed::Events).is_some() {
                return format::UNKNOWN.to_owned();
            }
            let now = store.now_ms();
            let sum = store.on_beat(|c| {
                let all = (0..c.workers().len() as u16).map(WorkerIx);
                all.filter_map(|w| c.rate_per_second(w, now, MEAN_SECONDS))
                    .map(of)
                    .reduce(|sum, more| sum + more)
            });
            sum.map_or(format::UNKNOWN.to_owned(), format::rate)
        })
    };
    let stored = sum(|rates| rates.0);
    let removed = sum(|rates| rates.1);
    let frame = NodeRef::<html::Div>::new();
    let chart = StoredValue::new_local(None::<Chart>);
    let failed = RwSignal::new(false);
    let loaded = RwSignal::new(false);
    load_after_first_paint(frame, chart, loaded, failed);
    keep_drawn(store, dark, chart, loaded);
    view! {
        <section class="panel rates" aria-labelledby="rates-title" data-testid="rates">
            <PanelHead store panel=Panel::Rates title="Block rates">
                <Show when=move || store.workers.get() <= LEGEND_WORKERS>
                    <span class="chips" aria-hidden="true">
                        {move || {
                            let chip = |i| view! { <Chip store worker=WorkerIx(i)/> };
                            (0..store.workers.get() as u16).map(chip).collect_view()
                        }}
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

fn keep_drawn(
    store: Store,
    dark: Signal<bool>,
    chart: StoredValue<Option<Chart>, LocalStorage>,
    loaded: RwSignal<bool>,
) {
    let mut drawn = None;
    Effect::new(move |_| {
        let (dark, picked) = (dark.get(), store.picked());
        let now = store.received_ms();
        let second = store.on_beat(|_| now.0 / 1000);
        if !loaded.get() {
            drawn = None;
            return;
        }
        let look = (dark, picked);
        if let Some((drawn_ms, drawn_second, drawn_look)) = drawn
            && drawn_look == look
            && (drawn_second == second || now_ms() - drawn_ms < REDRAW_MS)
        {
            return;
        }
        store.peek(|cluster| {
            let palette = Palette::read(theme::token, dark, cluster.workers().len());
            let bands = bands(cluster, &palette, picked, now);
            let font = root_font_px() * 0.85;
            chart.with_value(|c| c.iter().for_each(|c| rates::show(c, &bands, &palette, font)));
        });
        drawn = Some((now_ms(), second, look));
    });
}

fn bands(cluster: &Cluster, palette: &Palette, picked: Option<WorkerIx>, now: Millis) -> Vec<Band> {
    let all = (0..cluster.workers().len() as u16)
        .map(WorkerIx)
        .filter(|&w| picked.is_none_or(|picked| picked == w));
    let mut bands: Vec<Band> = Vec::new();
    for worker in all {
        let buckets = cluster.rates(worker, now, RATE_WINDOW_S).map(|(_, bucket)| bucket);
        let of =
            |n: fn(Bucket) -> u32| move |bucket: Option<Bucket>| bucket.map_or(f64::NAN, |b| f64::from(n(b)));
        let (stored, removed): (Vec<f64>, Vec<f64>) =
            buckets.map(|b| (of(|b| b.stored)(b), of(|b| b.removed)(b))).unzip();
        match bands.last_mut().filter(|_| worker.at() >= MAX_BANDS && picked.is_none()) {
            Some(others) if others.name == "others" => {
                add(&mut others.stored, &stored);
                add(&mut others.removed, &removed);
            }
            Some(_) => {
                bands.push(Band { name: "others".to_owned(), colour: palette.shared, stored, removed })
            }
            None => bands.push(Band { name: label(worker), colour: palette.worker(worker), stored, removed }),
        }
    }
    bands
}

/// Adds what is known; a second that is not known of one worker is what the others stored.
fn add(sums: &mut [f64], more: &[f64]) {
    for (sum, &n) in sums.iter_mut().zip(more) {
        *sum = if sum.is_nan() {
            n
        } else if n.is_nan() {
            *sum
        } else {
            *sum + n
        };
    }
}
