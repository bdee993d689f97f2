//! The page: what stands where. One file a panel; panels read the store and know nothing of each other.

mod ask;
mod changes;
mod charted;
mod chip;
mod clipboard;
mod compare;
mod control;
mod costs;
mod counterfactual;
mod decisions;
mod figure;
mod file;
mod findings;
mod fleet;
mod help;
mod hint;
mod history;
mod kiosk;
mod latency;
pub mod lazy;
mod ledger;
mod legend;
mod losses;
mod marks;
mod memory;
mod nav;
mod notices;
mod page_meta;
mod pools;
mod prompt_text;
mod rates;
mod recording;
mod resize;
mod reuse;
mod session_turns;
mod stage;
mod status;
mod summary;
mod time_chart;
mod time_menu;
pub(crate) mod timeline;
pub(crate) mod tour;
mod tree;
mod virtual_table;
#[cfg(test)]
mod web_tests;
mod whatif;
mod workers;

pub use changes::ChangesPanel;
pub use compare::ComparePanel;
pub use counterfactual::CounterfactualPanel;
pub use findings::FindingsPanel;
pub use fleet::FleetPage;
pub use kiosk::Kiosk;
pub use latency::LatencyPanel;
pub use ledger::LedgerPanel;
use leptos::prelude::*;
pub use memory::MemoryPanel;
pub use rates::RatesChartView;
pub use reuse::ReusePanelView;
pub use stage::StageBar;
pub use tour::TourCard;
pub use tree::{OverviewTreeView, TreePanel};
pub use whatif::WhatIfPanel;

use crate::store::{Feed, Link, Store};
use crate::url::{Address, Panel};
use crate::view::control::view;
use crate::view::lazy::{Lazy, LazyView};
use crate::{keys, theme};

/// The whole page.
#[component]
pub(crate) fn App() -> impl IntoView {
    let query = window().location().search().unwrap_or_default();
    let store = Store::new(Address::parse(&query));
    if fleet::is_served() {
        let dark = theme::provide(store);
        return view! { <Lazy of=LazyView::Fleet store dark/> };
    }
    store.begin();
    recording::take_drops(store);
    let dark = theme::provide(store);
    let help = RwSignal::new(0);
    keys::listen(store, help);
    help::open_when(help, store);
    history::keep_address(store);
    history::keep_moment(store);
    store.keep_timeline();
    keep_attributes(store);
    store.keep_time();
    let seen_again = window_event_listener_untyped("visibilitychange", move |_| store.shown_again());
    on_cleanup(move || seen_again.remove());

    let incompatible = move || match store.link.get() {
        Link::Incompatible { theirs } => Some(view! { <notices::Incompatible store theirs/> }),
        _ => None,
    };
    let shown = Memo::new(move |_| store.address.with(|a| a.panel));
    drop_skeleton(store);
    focus_another(shown);
    let is = |what: fn(&Address) -> bool| Memo::new(move |_| store.address.with(what));
    let has_stage = stage::is_served();
    let (wants_stage, is_touring) = (is(stage::is_wanted), is(tour::is_asked));
    let (is_kiosk, is_bare) = (is(Address::is_kiosk), is(Address::is_bare));
    // On the root: `:has(.kiosk)` there would look the whole page up again with every element that comes or goes.
    Effect::new(move |_| {
        if let Some(root) = document().document_element() {
            let _ = root.toggle_attribute_with_force("data-kiosk", is_kiosk.get());
        }
    });
    view! {
        <Show when=move || !is_bare.get()>
            <a class="skip" href="#tree" on:click=move |event| {
                event.prevent_default();
                keys::focus("tree");
            }>
                "Skip to the tree"
            </a>
        </Show>
        <div class="page" class:bare=move || is_bare.get() data-view=move || shown.get().as_str()
            data-old=move || old(store) data-waiting=move || (!store.ready()).then_some("")>
            <Show when=move || !is_bare.get()>
                <status::StatusBar store help/>
            </Show>
            <notices::Notices store/>
            <Show when=move || shown.get() == Panel::Overview && !is_kiosk.get()><summary::Summary store/></Show>
            <main class="panels" id="panels" tabindex="-1" class:single=move || shown.get() != Panel::Overview>
                {move || match is_kiosk.get() {
                    true => view! { <Lazy of=LazyView::Kiosk store dark/> },
                    false => panel(shown.get(), store, dark),
                }}
            </main>
            <Show when=move || !is_bare.get()><timeline::Timeline store/></Show>
            <Show when=move || has_stage && wants_stage.get()><Lazy of=LazyView::Stage store dark/></Show>
        </div>
        <Show when=move || is_touring.get()><Lazy of=LazyView::Tour store dark/></Show>
        <losses::Losses store/>
        {move || incompatible()}
    }
}

/// The skeleton of the document shows through until there is something to show: panels then appear in its place, and nothing
/// moves.
fn drop_skeleton(store: Store) {
    Effect::new(move |_| {
        if store.ready()
            && let Some(skeleton) = document().get_element_by_id("skeleton")
        {
            skeleton.remove();
        }
    });
}

/// What is not current, for the style sheets: everything, what comes from the event plane, or what is scraped.
fn old(store: Store) -> &'static str {
    let is_old = |feed| store.as_of(feed).is_some();
    match (store.is_lost(), is_old(Feed::Events), is_old(Feed::Metrics)) {
        (true, ..) => "all",
        (_, true, true) => "events metrics",
        (_, true, false) => "events",
        (_, false, true) => "metrics",
        (false, false, false) => "",
    }
}

/// What fills the page.
fn panel(panel: Panel, store: Store, dark: Memo<bool>) -> AnyView {
    match panel {
        Panel::Overview => view! {
            <div class="column wide">
                <tree::OverviewTree store dark/>
                <rates::RatesPanel store dark/>
            </div>
            <div class="column">
                <workers::WorkersPanel store/>
                <decisions::DecisionsPanel store/>
            </div>
        },
        Panel::Workers => view! { <workers::WorkersPanel store/> },
        Panel::Rates => view! { <rates::RatesPanel store dark/> },
        lazy => view! { <Lazy of=LazyView::Panel(lazy) store dark/> },
    }
}

/// Another panel takes the focus with its heading.
fn focus_another(shown: Memo<Panel>) {
    Effect::new(move |before: Option<Panel>| {
        let panel = shown.get();
        if before.is_some_and(|before| before != panel) {
            figure::focus_heading(panel);
        }
        panel
    });
}

/// Whether one sees the present, a moment that stands, or one that plays: for tests and style sheets.
fn moment_name(store: Store) -> &'static str {
    match (store.at.get(), store.speed.get()) {
        (0, _) => "live",
        (_, 0) => "paused",
        _ => "replay",
    }
}

/// Says on the body what the page knows, for whoever reads it from outside.
fn keep_attributes(store: Store) {
    let set = |name: &str, value: &str| {
        if let Some(body) = document().body()
            && body.get_attribute(name).as_deref() != Some(value)
        {
            let _ = body.set_attribute(name, value);
        }
    };
    Effect::new(move |_| {
        set("data-seq", &store.on_frame(|cluster| cluster.seq().to_string()));
        if let Some((seq, digest)) = store.digest() {
            set("data-digest", &digest.to_string());
            set("data-digest-seq", &seq.to_string());
        }
        store.at.track();
        set("data-at", &store.past_ms().to_string());
    });
    Effect::new(move |_| set("data-connection", store.link.get().as_str()));
    Effect::new(move |_| set("data-moment", moment_name(store)));
    Effect::new(move |_| set("data-stale", if store.stale.get() { "true" } else { "false" }));
}
