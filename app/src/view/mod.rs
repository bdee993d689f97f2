//! The page: what stands where. One file a panel; panels read the store and know nothing of each other.

mod charted;
mod chip;
mod decisions;
mod figure;
pub(crate) mod full;
mod help;
mod history;
mod losses;
mod nav;
mod notices;
mod rates;
mod resize;
mod status;
pub mod tree;
mod workers;

use futures_util::FutureExt;
use futures_util::future::abortable;
use leptos::prelude::*;

use crate::bundle::{self, Bundle, Handed};
use crate::erased::{Show, effect, next_frame};
use crate::store::{Feed, Link, Store};
use crate::url::{Address, Panel};
use crate::{keys, net, theme};

/// The whole page; `handed` is what another bundle gave.
pub(crate) fn app<B: Bundle>(handed: Option<Handed>) -> impl IntoView {
    let query = window().location().search().unwrap_or_default();
    let store = Store::new(Address::parse(&query));
    let is_opened = handed.is_some();
    if let Some(handed) = handed {
        handed.put_into(store);
    }
    let dark = theme::provide(store);
    let help = RwSignal::new(0);
    keys::listen(store, help);
    history::keep_address(store);
    keep_attributes(store);
    store.keep_time();
    let seen_again = window_event_listener_untyped("visibilitychange", move |_| store.shown_again());
    on_cleanup(move || seen_again.remove());

    let incompatible = move || match store.link.get() {
        Link::Incompatible { theirs } => Some(view! { <notices::Incompatible store theirs/> }.into_any()),
        _ => None,
    };
    let asked = move || store.address.with(|a| a.panel);
    // While a panel is being opened that this bundle has not, the one before stays; at first there is none.
    let shown = Memo::new(move |before: Option<&Option<Panel>>| {
        let panel = asked();
        if B::FULL || !panel.is_full() { Some(panel) } else { before.copied().flatten() }
    });
    if !B::FULL {
        bundle::keep_open(store, Memo::new(move |_| store.address.with(Address::is_full)));
        bundle::offer(store);
    }
    follow(store, shown, is_opened);
    let kiosk = Memo::new(move |_| store.address.with(|a| a.kiosk));
    view! {
        <a class="skip" href="#tree" on:click=move |event| {
            event.prevent_default();
            keys::focus("tree");
        }>
            "Skip to the tree"
        </a>
        <div class="page" class:kiosk=move || kiosk.get() data-view=move || shown.get().unwrap_or(asked()).as_str()
            data-old=move || old(store)>
            <Show when=move || !kiosk.get()>
                <status::StatusBar store help/>
            </Show>
            <notices::Notices store/>
            <main class="panels" id="panels" tabindex="-1" class:single=move || shown.get() != Some(Panel::Overview)>
                {move || shown.get().map(|panel| B::panel(panel, store, dark).unwrap_or_else(|| panel_views(store, dark, panel, B::PAINTER)))}
            </main>
        </div>
        <losses::Losses store/>
        <help::Help raised=help/>
        {incompatible}
    }
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

fn panel_views(store: Store, dark: Signal<bool>, panel: Panel, painter: Option<tree::Painter>) -> AnyView {
    match panel {
        Panel::Overview => view! {
            <div class="column wide">
                <tree::TreePanel store dark painter/>
                <rates::RatesPanel store dark/>
            </div>
            <div class="column">
                <workers::WorkersPanel store/>
                <decisions::DecisionsPanel store/>
            </div>
        }
        .into_any(),
        Panel::Workers => view! { <workers::WorkersPanel store/> }.into_any(),
        Panel::Rates => view! { <rates::RatesPanel store dark/> }.into_any(),
        // The others are the bundle's.
        _ => ().into_any(),
    }
}

/// Connects as soon as there is something to show, since a bundle that is only there to load the other one needs no
/// state. And another panel takes the focus with its heading: it is read aloud, and the keyboard goes on from there.
fn follow(store: Store, shown: Memo<Option<Panel>>, is_opened: bool) {
    let (link, stop) = abortable(net::socket::run(store));
    on_cleanup(move || stop.abort());
    let mut link = Some(link);
    let mut before = None;
    effect(move || {
        let Some(panel) = shown.get() else { return };
        if let Some(link) = link.take() {
            leptos::task::spawn_local(link.map(drop));
        }
        if before.replace(panel).map_or(is_opened, |before| before != panel) {
            // The next frame has it in the document.
            next_frame(move || keys::focus(&figure::heading_id(panel)));
        }
    });
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
    effect(move || {
        set("data-seq", &store.on_frame(|cluster| cluster.seq().to_string()));
        if let Some((seq, digest)) = store.digest() {
            set("data-digest", &digest.to_string());
            set("data-digest-seq", &seq.to_string());
        }
    });
    effect(move || set("data-connection", store.link.get().as_str()));
    effect(move || set("data-stale", if store.stale.get() { "true" } else { "false" }));
}
