//! Blocks stored and removed per second over time, one band per worker.

use leptos::prelude::*;
use radixscope_export::panel::rates::{self, REMOVED, RatesChart, STORED, TITLE};
use radixscope_icicle::palette::{Palette, Pattern, label, token};
use radixscope_insight::block_rates::{BandWorkers, OTHERS, band_workers};

use super::figure::{Figure, PanelHead};
use super::lazy::{AfterFigures, LazyView};
use super::legend::{Hidden, Legend, LegendEntry};
use super::time_chart::{TimeChart, shown_span};
use super::time_menu::TimeMenu;
use crate::draw::rates as chart;
use crate::format;
use crate::store::{Feed, Store, ViewContext};
use crate::time_range::{TimePoint, TimeSpan};
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
    let hidden = Hidden::of(store, HIDDEN_KEY);
    let bands = Memo::new(move |_| {
        let (span, picked) = (span.get(), store.picked());
        store.on_beat(|shown| band_workers(shown, picked, span.from))
    });
    let legend = Memo::new(move |_| {
        bands.with(|bands| store.peek(|shown| legend_entries(shown, bands, store.workers.get())))
    });
    let points =
        Memo::new(move |_| match bands.with(|bands| point_ms(store, hidden, bands, span.get())) / 1_000 {
            0..=1 => String::new(),
            seconds => format!("means of {seconds} s"),
        });
    view! {
        <section class="panel rates" aria-labelledby="rates-title" data-testid="rates">
            <PanelHead store panel=Panel::Rates title=TITLE>
                <Figure id="stored-rate-all" label=STORED value=mean(0) title=mean_title.clone()/>
                <Figure id="removed-rate-all" label=REMOVED value=mean(1) title=mean_title/>
            </PanelHead>
            <div class="chart-tools"><Legend hidden all=legend/><span class="quiet" title=points>{format!("↑ {STORED} ↓ {REMOVED}")} <span class="points" data-testid="rates-points">{points}</span></span><TimeMenu store span/></div>
            <AfterFigures of=LazyView::RatesChart store dark/>
        </section>
    }
}

/// The panel's chart.
#[component]
pub fn RatesChartView(store: Store, dark: Memo<bool>) -> impl IntoView {
    let hidden = Hidden::of(store, HIDDEN_KEY);
    let span = whole_points(store, hidden, shown_span(store));
    let picked = Memo::new(move |_| store.picked());
    let is_on_overview = Memo::new(move |_| store.address.with(|address| address.panel == Panel::Overview));
    let option = move |palette: &Palette| {
        let (span, picked) = (span.get(), picked.get());
        store.pools.track();
        let now = store.received_ms();
        Some(store.peek(|shown| {
            let rates = RatesChart::of(shown, picked, span, now, |id| hidden.has(id));
            chart::option(&rates, is_on_overview.get(), palette)
        }))
    };
    view! {
        <TimeChart store dark id="rates-chart" insets=chart::INSETS span option
            description="Blocks stored and removed per second and worker. The table of workers has the present rates."/>
    }
}

/// Length of the chart's points with these bands, milliseconds. Tracked.
fn point_ms(store: Store, hidden: Hidden, bands: &[BandWorkers], span: TimeSpan) -> u64 {
    let is_shown = |shown: &ViewContext<'_>, band: &BandWorkers| !hidden.has(&band.id(shown));
    let bands = store.peek(|shown| bands.iter().filter(|band| is_shown(shown, band)).count());
    chart::point_ms(bands, span)
}

/// The time that the chart shows. It moves on when a point is complete, which with many bands takes seconds: drawing the chart
/// takes tens of milliseconds, and until then it would be nearly the same.
fn whole_points(store: Store, hidden: Hidden, span: Memo<TimeSpan>) -> Memo<TimeSpan> {
    Memo::new(move |before: Option<&TimeSpan>| {
        let (span, picked) = (span.get(), store.picked());
        let follows_now = store.address.with(|address| matches!(address.range.to, TimePoint::Ago(_)));
        // A moment of the past and a time that was chosen are shown as they are.
        if store.at.get() != 0 || !follows_now {
            return span;
        }
        let bands = store.peek(|shown| band_workers(shown, picked, span.from));
        let point_ms = point_ms(store, hidden, &bands, span).max(1);
        let place = |span: &TimeSpan| (span.until.0 / point_ms, span.until.since(span.from));
        before.copied().filter(|before| place(before) == place(&span)).unwrap_or(span)
    })
}

fn legend_entries(shown: &ViewContext<'_>, bands: &[BandWorkers], of: usize) -> Vec<LegendEntry> {
    let entry = |band: &BandWorkers| {
        let (name, swatch, colour) = match band.worker {
            Some(worker) => (label(worker), Pattern::of(worker.slot()).class(), token(worker.slot(), of)),
            None => (OTHERS.to_owned(), "", "--tree-shared".to_owned()),
        };
        LegendEntry { id: band.id(shown), name, swatch, colour }
    };
    bands.iter().map(entry).collect()
}
