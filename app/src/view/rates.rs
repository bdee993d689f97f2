//! Blocks stored and removed per second over time, one band per worker.

use leptos::prelude::*;
use radixscope_insight::block_rates::{self, BlockRates, MAX_BANDS, OTHERS};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::TimeSteps;

use super::figure::{Figure, PanelHead};
use super::legend::{Hidden, Legend, Series};
use super::time_chart::{TimeChart, shown_span};
use super::time_menu::TimeMenu;
use crate::draw::palette::{Palette, Pattern, label, token};
use crate::draw::rates::{self, Band};
use crate::format;
use crate::store::{Feed, Store, ViewContext};
use crate::url::Panel;
use crate::view::control::view;

/// Key in the address: the bands that are hidden, workers by their ids.
const HIDDEN_KEY: &str = "rates.hide";

/// The panel.
#[component]
pub(super) fn RatesPanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let sum = |of: fn((f64, f64)) -> f64| {
        Memo::new(move |_| {
            if store.as_of(Feed::Events).is_some() {
                return format::UNKNOWN.to_owned();
            }
            let now = store.now_ms();
            let sum = store.on_beat(|shown| block_rates::mean(shown, None, now).map(of));
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
            let bands = block_rates::bands(cluster, picked, steps, |id| hidden.has(id));
            let highest = block_rates::highest(&bands);
            let coloured: Vec<Band> = bands.into_iter().map(|rates| coloured(rates, palette)).collect();
            rates::option(&coloured, &times, span, highest)
        }))
    };
    view! {
        <section class="panel rates" aria-labelledby="rates-title" data-testid="rates">
            <PanelHead store panel=Panel::Rates title="Block rates">
                <Figure id="stored-rate-all" label="stored/s" value=stored title="All workers, mean of the last 10 s"/>
                <Figure id="removed-rate-all" label="removed/s" value=removed title="All workers, mean of the last 10 s"/>
            </PanelHead>
            <div class="chart-tools"><Legend hidden all=legend/><span class="quiet">"↑ stored/s ↓ removed/s"</span><TimeMenu store span/></div>
            <TimeChart store dark id="rates-chart" insets=rates::INSETS span option
                words="Blocks stored and removed per second and worker. The table of workers has the present rates."/>
        </section>
    }
}

/// Bands of which each is a worker's, and one for all others.
fn series(shown: &ViewContext<'_>, workers: &[WorkerIx], of: usize) -> Vec<Series> {
    let alone = workers.iter().filter(|worker| worker.slot().at() < MAX_BANDS || workers.len() == 1);
    let of_worker = |&worker: &WorkerIx| {
        let id = shown.worker(worker)?.id.to_string();
        let (swatch, colour) = (Pattern::of(worker.slot()).class(), token(worker.slot(), of));
        Some(Series { id, name: label(worker), swatch, colour })
    };
    let all = alone.filter_map(of_worker);
    let others =
        (workers.len() > 1 && workers.iter().any(|worker| worker.slot().at() >= MAX_BANDS)).then(|| Series {
            id: OTHERS.to_owned(),
            name: OTHERS.to_owned(),
            swatch: "",
            colour: "--tree-shared".to_owned(),
        });
    all.chain(others).collect()
}

/// A band in the colours of the page.
fn coloured(rates: BlockRates, palette: &Palette) -> Band {
    Band {
        name: rates.worker.map_or(OTHERS.to_owned(), label),
        colour: rates.worker.map_or(palette.shared, |worker| palette.worker(worker.slot())),
        stored: rates.stored,
        removed: rates.removed,
    }
}
