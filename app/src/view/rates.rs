//! Blocks stored and removed per second over time, one band per worker.

use leptos::prelude::*;
use radixscope_export::panel::rates::{self, REMOVED, RatesChart, STORED, TITLE};
use radixscope_icicle::palette::{Palette, Pattern, label, token};
use radixscope_insight::block_rates::{MAX_BANDS, OTHERS};
use radixscope_model::id::WorkerIx;

use super::figure::{Figure, PanelHead};
use super::lazy::{AfterFigures, LazyView};
use super::legend::{Hidden, Legend, LegendEntry};
use super::time_chart::{TimeChart, shown_span};
use super::time_menu::TimeMenu;
use crate::draw::rates as chart;
use crate::format;
use crate::store::{Feed, Store, ViewContext};
use crate::time_range::TimeSpan;
use crate::url::Panel;
use crate::view::control::view;

/// Key in the address: the bands that are hidden, workers by their ids.
const HIDDEN_KEY: &str = "rates.hide";

/// The panel.
#[component]
pub(super) fn RatesPanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let means = Memo::new(move |_| match store.as_of(Feed::Events) {
        Some(_) => [format::UNKNOWN, format::UNKNOWN].map(str::to_owned),
        None => {
            let now = store.now_ms();
            store.on_beat(|shown| rates::means(shown, None, now))
        }
    });
    let mean = move |at: usize| Memo::new(move |_| means.with(|means| means[at].clone()));
    let mean_title = format!("All workers, {}", rates::mean_window());
    let span = shown_span(store);
    let picked = Memo::new(move |_| store.picked());
    let hidden = Hidden::of(store, HIDDEN_KEY);
    // Also those that left long ago: the chart may reach back to them.
    let workers = Memo::new(move |_| {
        let picked = picked.get();
        let is_shown = |worker: &WorkerIx| picked.is_none_or(|of| of == *worker);
        store.on_beat(|shown| shown.worker_list().filter(is_shown).collect::<Vec<_>>())
    });
    let legend = Memo::new(move |_| {
        workers.with(|workers| store.peek(|shown| series(shown, workers, store.workers.get())))
    });
    view! {
        <section class="panel rates" aria-labelledby="rates-title" data-testid="rates">
            <PanelHead store panel=Panel::Rates title=TITLE>
                <Figure id="stored-rate-all" label=STORED value=mean(0) title=mean_title.clone()/>
                <Figure id="removed-rate-all" label=REMOVED value=mean(1) title=mean_title/>
            </PanelHead>
            <div class="chart-tools"><Legend hidden all=legend/><span class="quiet">{format!("↑ {STORED} ↓ {REMOVED}")}</span><TimeMenu store span/></div>
            <AfterFigures of=LazyView::RatesChart store dark/>
        </section>
    }
}

/// The panel's chart.
#[component]
pub fn RatesChartView(store: Store, dark: Memo<bool>) -> impl IntoView {
    let span = whole_points(store, shown_span(store));
    let picked = Memo::new(move |_| store.picked());
    let hidden = Hidden::of(store, HIDDEN_KEY);
    let option = move |palette: &Palette| {
        let (span, picked) = (span.get(), picked.get());
        store.pools.track();
        let now = store.received_ms();
        Some(store.peek(|shown| {
            chart::option(&RatesChart::of(shown, picked, span, now, |id| hidden.has(id)), palette)
        }))
    };
    view! {
        <TimeChart store dark id="rates-chart" insets=chart::INSETS span option
            description="Blocks stored and removed per second and worker. The table of workers has the present rates."/>
    }
}

/// The time that the chart shows. It moves on when a point is complete, which with many bands takes seconds: drawing the chart
/// takes tens of milliseconds, and until then it would be nearly the same.
fn whole_points(store: Store, span: Memo<TimeSpan>) -> Memo<TimeSpan> {
    Memo::new(move |before: Option<&TimeSpan>| {
        let span = span.get();
        let bands = if store.picked().is_some() { 1 } else { store.workers.get().min(MAX_BANDS + 1) };
        let has_moved_on = |before: &TimeSpan| {
            let length = |span: &TimeSpan| span.until.since(span.from);
            let is_later = (before.until..).contains(&span.until) && length(before) == length(&span);
            !is_later || span.until.since(before.until) >= chart::point_ms(bands, span)
        };
        // A moment of the past is shown as it was.
        let is_live = store.at.get() == 0;
        before.copied().filter(|before| is_live && !has_moved_on(before)).unwrap_or(span)
    })
}

/// Bands of which each is a worker's, and one for all others.
fn series(shown: &ViewContext<'_>, workers: &[WorkerIx], of: usize) -> Vec<LegendEntry> {
    let alone = workers.iter().filter(|worker| worker.slot().at() < MAX_BANDS || workers.len() == 1);
    let of_worker = |&worker: &WorkerIx| {
        let id = shown.worker(worker)?.id.to_string();
        let (swatch, colour) = (Pattern::of(worker.slot()).class(), token(worker.slot(), of));
        Some(LegendEntry { id, name: label(worker), swatch, colour })
    };
    let all = alone.filter_map(of_worker);
    let others =
        (workers.len() > 1 && workers.iter().any(|worker| worker.slot().at() >= MAX_BANDS)).then(|| {
            LegendEntry {
                id: OTHERS.to_owned(),
                name: OTHERS.to_owned(),
                swatch: "",
                colour: "--tree-shared".to_owned(),
            }
        });
    all.chain(others).collect()
}
