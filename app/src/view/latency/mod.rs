//! How long requests take against their targets, how many there are, and how evenly they lie on the workers.

pub(super) mod goals;
mod load;
mod quantity;
mod spread;

use leptos::prelude::*;
use radixscope_export::panel::latency::{self, TITLE};
use radixscope_panels::latency::subtitle;

use goals::{LatencyTarget, TPOT, TTFT};
use load::Numbers;
use quantity::QuantityCard;
use spread::SpreadSection;

use crate::store::{Feed, Store, zone};
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
                <span class="quiet cf-sub">{move || subtitle(store.as_of(Feed::Metrics), zone())}</span>
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
