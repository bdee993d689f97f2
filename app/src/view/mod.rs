//! The page: what stands where. One file a panel; panels read the store and know nothing of each other.

mod chip;
mod decisions;
mod figure;
mod help;
mod losses;
mod notices;
mod rates;
mod resize;
mod status;
mod tree;
mod workers;

use leptos::prelude::*;

use crate::store::{Link, Store};
use crate::url::{Address, Panel};
use crate::{keys, net, theme};

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    let query = window().location().search().unwrap_or_default();
    let store = Store::new(Address::parse(&query));
    let dark = theme::provide(store);
    let help = RwSignal::new(0);
    keys::listen(store, help);
    keep_address(store);
    keep_attributes(store);
    let shown = window_event_listener_untyped("visibilitychange", move |_| store.shown_again());
    on_cleanup(move || shown.remove());
    leptos::task::spawn_local(net::socket::run(store));

    let incompatible = Memo::new(move |_| match store.link.get() {
        Link::Incompatible { theirs } => Some(theirs),
        _ => None,
    });
    let panel = Memo::new(move |_| store.address.with(|a| a.panel));
    let kiosk = Memo::new(move |_| store.address.with(|a| a.kiosk));
    view! {
        <a class="skip" href="#tree" on:click=move |event| {
            event.prevent_default();
            keys::focus("tree");
        }>
            "Skip to the tree"
        </a>
        <div class="page" class:kiosk=move || kiosk.get() data-view=move || panel.get().as_str()>
            <Show when=move || !kiosk.get()>
                <status::StatusBar store help/>
            </Show>
            <notices::Notices store/>
            <main class="panels" class:single=move || panel.get() != Panel::Overview>
                {move || panel_views(store, dark, panel.get())}
            </main>
        </div>
        <losses::Losses store/>
        <help::Help raised=help/>
        {move || incompatible.get().map(|theirs| view! { <notices::Incompatible store theirs/> })}
    }
}

fn panel_views(store: Store, dark: Signal<bool>, panel: Panel) -> AnyView {
    match panel {
        Panel::Overview => view! {
            <div class="column wide">
                <tree::TreePanel store dark/>
                <rates::RatesPanel store dark/>
            </div>
            <div class="column">
                <workers::WorkersPanel store/>
                <decisions::DecisionsPanel store/>
            </div>
        }
        .into_any(),
        Panel::Tree => view! { <tree::TreePanel store dark/> }.into_any(),
        Panel::Workers => view! { <workers::WorkersPanel store/> }.into_any(),
        Panel::Rates => view! { <rates::RatesPanel store dark/> }.into_any(),
        Panel::Decisions => view! { <decisions::DecisionsPanel store/> }.into_any(),
    }
}

/// Writes the view into the address, so that it can be sent to someone.
fn keep_address(store: Store) {
    Effect::new(move |before: Option<String>| {
        let query = store.address.with(Address::query);
        if before.is_some_and(|before| before != query) {
            let location = window().location();
            let path = location.pathname().unwrap_or_default();
            let fragment = location.hash().unwrap_or_default();
            // A relative address would be resolved against <base>.
            let url = format!("{path}{query}{fragment}");
            if let Ok(history) = window().history() {
                let _ = history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(&url));
            }
        }
        query
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
    Effect::new(move |_| {
        set("data-seq", &store.on_frame(|cluster| cluster.seq().to_string()));
        if let Some((seq, digest)) = store.digest() {
            set("data-digest", &digest.to_string());
            set("data-digest-seq", &seq.to_string());
        }
    });
    Effect::new(move |_| set("data-connection", store.link.get().as_str()));
    Effect::new(move |_| set("data-stale", if store.stale.get() { "true" } else { "false" }));
}
