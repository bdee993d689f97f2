//! Blocks stored and removed per second over time, one band per worker.

use leptos::prelude::*;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::{Bucket, TimeSteps};

use super::figure::{Figure, PanelHead};
use super::legend::{Hidden, Legend, Series};
use super::time_chart::{TimeChart, shown_span};
use super::time_menu::TimeMenu;
use crate::draw::palette::{Palette, Pattern, label, token};
use crate::draw::rates::{self, Band};
use crate::format;
use crate::store::{Feed, Shown, Store};
use crate::url::Panel;

/// More workers than this are drawn as one band: they could not be told apart.
const MAX_BANDS: usize = 24;
/// Their name.
const OTHERS: &str = "others";
/// Key in the address: the bands that are hidden, workers by their ids.
const HIDDEN_KEY: &str = "rates.hide";
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
                c.worker_list()
                    .filter_map(|w| c.rate_per_second(w, now, MEAN_SECONDS))
                    .map(of)
                    .reduce(|sum, more| sum + more)
            });
            sum.map_or(format::UNKNOWN.to_owned(), format::rate)
        })
    };
    let stored = sum(|rates| rates.0);
    let removed = sum(|rates| rates.1);
    let span = shown_span(store);
    let picked = Memo::new(move |_| store.picked());
    let hidden = Hidden::of(store, HIDDEN_KEY);
    let legend = Memo::new(move |_| {
        let all = store.listed.get().into_iter().filter(|&worker| picked.get().is_none_or(|of| of == worker));
        store.peek(|shown| series(shown, &all.collect::<Vec<_>>(), store.workers.get()))
    });
    let option = move |palette: &Palette| {
        let (span, picked) = (span.get(), picked.get());
        store.pools.track();
        Some(store.peek(|cluster| {
            let steps = TimeSteps::between(span.from, span.until, store.received_ms());
            let times: Vec<Millis> = steps.begins().collect();
            rates::option(&bands(cluster, palette, picked, steps, |id| hidden.has(id)), &times, span)
        }))
    };
    view! {
        <section class="panel rates" aria-labelledby="rates-title" data-testid="rates">
            <PanelHead store panel=Panel::Rates title="Block rates">
                <Figure id="stored-rate-all" label="stored/s" value=stored title="All workers, mean of the last 10 s"/>
                <Figure id="removed-rate-all" label="removed/s" value=removed title="All workers, mean of the last 10 s"/>
            </PanelHead>
            <div class="chart-tools"><Legend hidden all=legend/><TimeMenu store span/></div>
            <TimeChart store dark id="rates-chart" insets=rates::INSETS span option
                words="Blocks stored and removed per second and worker. The table of workers has the present rates."/>
        </section>
    }
}

/// Bands of which each is a worker's, and one for all others.
fn series(shown: &Shown<'_>, workers: &[WorkerIx], of: usize) -> Vec<Series> {
    let alone = workers.iter().filter(|worker| worker.at() < MAX_BANDS || workers.len() == 1);
    let of_worker = |&worker: &WorkerIx| {
        let id = shown.worker(worker)?.id.to_string();
        let (swatch, colour) = (Pattern::of(worker).class(), token(worker, of));
        Some(Series { id, name: label(worker), swatch, colour })
    };
    let all = alone.filter_map(of_worker);
    let others =
        (workers.len() > 1 && workers.iter().any(|worker| worker.at() >= MAX_BANDS)).then(|| Series {
            id: OTHERS.to_owned(),
            name: OTHERS.to_owned(),
            swatch: "",
            colour: "--tree-shared".to_owned(),
        });
    all.chain(others).collect()
}

fn bands(
    cluster: &Shown<'_>,
    palette: &Palette,
    picked: Option<WorkerIx>,
    steps: TimeSteps,
    is_hidden: impl Fn(&str) -> bool,
) -> Vec<Band> {
    let all = cluster.worker_list().filter(|&w| picked.is_none_or(|picked| picked == w));
    let per_s = |blocks: u32| f64::from(blocks) / steps.len_s() as f64;
    let mut bands: Vec<Band> = Vec::new();
    for worker in all {
        let is_alone = worker.at() < MAX_BANDS || picked.is_some();
        let id = cluster.worker(worker).filter(|_| is_alone).map(|state| state.id.to_string());
        if is_hidden(id.as_deref().unwrap_or(OTHERS)) {
            continue;
        }
        let of = |n: fn(Bucket) -> u32| move |bucket: Option<Bucket>| bucket.map(|b| per_s(n(b)));
        let (stored, removed): (Vec<_>, Vec<_>) =
            cluster.rates_in(worker, steps).map(|b| (of(|b| b.stored)(b), of(|b| b.removed)(b))).unzip();
        match bands.last_mut().filter(|_| !is_alone) {
            Some(others) if others.name == OTHERS => {
                add(&mut others.stored, &stored);
                add(&mut others.removed, &removed);
            }
            _ if is_alone => {
                bands.push(Band { name: label(worker), colour: palette.worker(worker), stored, removed })
            }
            _ => bands.push(Band { name: OTHERS.to_owned(), colour: palette.shared, stored, removed }),
        }
    }
    bands
}

/// Adds what is known; a second that is not known of one worker is what the others stored.
fn add(sums: &mut [Option<f64>], more: &[Option<f64>]) {
    for (sum, &n) in sums.iter_mut().zip(more) {
        *sum = sum.zip(n).map(|(sum, n)| sum + n).or(*sum).or(n);
    }
}
