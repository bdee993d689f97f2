//! How long requests take against their targets, how many there are, and how evenly they lie on the workers.

mod counts;
pub(super) mod goals;
mod quantity;
mod spread;

use leptos::prelude::*;
use radixscope_export::panel::latency::{self, TITLE};

use counts::Numbers;
use goals::{LatencyTarget, TPOT, TTFT};
use quantity::QuantityCard;
use spread::SpreadSection;

use crate::store::{Feed, Store, time_of_day};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::PanelHead;
use crate::view::time_chart::shown_span;
use crate::view::time_menu::TimeMenu;

/// The panel.
#[component]
pub fn LatencyPanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let second = store.second();
    let span = shown_span(store);
    let (ttft, tpot) = (LatencyTarget::of(store, TTFT), LatencyTarget::of(store, TPOT));
    view! {
        <section class="panel latency" aria-labelledby="latency-title" data-testid="latency">
            <PanelHead store panel=Panel::Latency title=TITLE>
                <span class="quiet cf-sub">{move || match store.as_of(Feed::Metrics) {
                    None => "Last 60 s against the targets, and in-flight imbalance between workers".to_owned(),
                    Some(at) => format!("60 s before {}; not current", time_of_day(at)),
                }}</span>
            </PanelHead>
            <div class="chart-tools"><TimeMenu store span/></div>
            <div class="scroll latency-scroll">
                <div class="latency-two">
                    <QuantityCard store dark second goal=ttft labels=latency::TTFT span/>
                    <QuantityCard store dark second goal=tpot labels=latency::ITL span/>
                </div>
                <div class="latency-two uneven">
                    <SpreadSection store dark second span/>
                    <Numbers store second/>
                </div>
            </div>
        </section>
    }
}
