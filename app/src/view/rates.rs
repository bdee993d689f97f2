//! Blocks stored and removed per second over time, one band per worker.

use leptos::prelude::*;
use radixscope_export::panel::rates::{REMOVED, RatesChart, STORED, TITLE};
use radixscope_icicle::palette::Palette;
use radixscope_insight::block_rates::{BandWorkers, band_workers};
use radixscope_panels::rates::{self, HIDDEN_KEY};

use super::figure::{Figure, PanelHead};
use super::lazy::{AfterFigures, LazyView};
use super::legend::{Hidden, Legend};
use super::time_chart::{TimeChart, shown_span};
use super::time_menu::TimeMenu;
use crate::draw::rates as chart;
use crate::store::{Feed, Store};
use crate::time_range::TimeSpan;
use crate::url::Panel;
use crate::view::control::view;

/// The panel.
#[component]
pub(super) fn RatesPanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let is_current = Memo::new(move |_| store.as_of(Feed::Events).is_none());
    let means = Memo::new(move |_| {
        let (now, is_current) = (store.now_ms(), is_current.get());
        store.on_beat(|shown| rates::means(shown, now, is_current))
    });
    let mean = move |at: usize| Memo::new(move |_| means.with(|means| means[at].clone()));
    let mean_title = rates::means_title();
    let span = shown_span(store);
    let hidden = Hidden::of(store, HIDDEN_KEY);
    let bands = Memo::new(move |_| {
        let (span, picked) = (span.get(), store.picked());
        store.on_beat(|shown| band_workers(shown, picked, span.from))
    });
    let legend = Memo::new(move |_| {
        bands.with(|bands| store.peek(|shown| rates::legend(shown, bands, store.workers.get())))
    });
    let points = Memo::new(move |_| {
        rates::points_text(bands.with(|bands| point_ms(store, hidden, bands, span.get())))
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
    hidden.with(|hidden| store.peek(|shown| rates::point_ms(shown, bands, hidden, span)))
}

/// The time that the chart shows: it moves on when a point is complete.
fn whole_points(store: Store, hidden: Hidden, span: Memo<TimeSpan>) -> Memo<TimeSpan> {
    Memo::new(move |before: Option<&TimeSpan>| {
        let (span, picked, is_back) = (span.get(), store.picked(), store.at.get() != 0);
        let range = store.address.with(|address| address.range);
        let bands = store.peek(|shown| band_workers(shown, picked, span.from));
        let point_ms = point_ms(store, hidden, &bands, span);
        rates::whole_points(before.copied(), span, range, is_back, point_ms)
    })
}
