//! The status bar: is it connected, is it current, is it complete, is it right.

use leptos::prelude::*;
use radixscope_model::id::Millis;
use radixscope_panels::status::{self, PastMoment, StatusFacts};

use super::losses::LOSSES_ID;
use super::nav::Nav;
use super::pools::PoolSwitch;
use super::timeline;
use crate::store::{Feed, Store, zone};
use crate::url::{Panel, Theme};
use crate::view::control::view;

/// The bar at the top.
#[component]
pub(super) fn StatusBar(store: Store, help: RwSignal<u32>) -> impl IntoView {
    view! {
        <header class="bar">
            <Mark/>
            <Nav store/>
            <Connection store/>
            <PoolSwitch store/>
            <div class="facts"><Facts store/></div>
            <ThemeButton store/>
            <button class="icon" on:click=move |_| help.update(|n| *n += 1) aria-label="Keys and how to read the tree"
                title="Keys and how to read the tree (?)" data-testid="help-button">
                "?"
            </button>
        </header>
    }
}

/// Our name.
#[component]
pub(super) fn Mark() -> impl IntoView {
    view! {
        <h1 class="mark">
            <svg viewBox="0 0 20 20" aria-hidden="true">
                <rect x="1" y="2" width="18" height="4" rx="1"/>
                <rect x="1" y="8" width="10" height="4" rx="1"/>
                <rect x="13" y="8" width="6" height="4" rx="1"/>
                <rect x="1" y="14" width="5" height="4" rx="1"/>
            </svg>
            "Radixscope"
        </h1>
    }
}

/// Where the link to the server stands, in a word.
#[component]
pub(super) fn Connection(store: Store) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let link = store.link.get();
        match store.at.get() {
            0 => {
                let replayed = store.replayed.get().then(|| store.newest_name());
                status::Connection::of_link(link, store.stale.get(), replayed).unwrap_or_else(|| {
                    store.on_beat(|cluster| status::Connection::of_sources(cluster.sources()))
                })
            }
            at => status::Connection::of_past(&past_moment(store, Millis(at)), zone()),
        }
    });
    let title = move || store.server.with(|server| status::server_title(server));
    view! {
        <span class=move || shown.with(|shown| format!("state {}", shown.state)) title=move || title() data-testid="connection">
            <i aria-hidden="true"></i>
            {move || shown.with(|shown| shown.text.clone())}
        </span>
    }
}

fn past_moment(store: Store, at: Millis) -> PastMoment {
    let shown_meanwhile = store.past_waits.get().then(|| Millis(store.past_ms()));
    let speed = Some(store.speed.get()).filter(|speed| *speed != 0).map(timeline::speed_name);
    if shown_meanwhile.is_none() && speed.is_none() {
        // It grows older while it stands.
        store.history_version.track();
    }
    PastMoment { at, shown_meanwhile, speed, age: store.age_of_past() }
}

#[component]
fn Facts(store: Store) -> impl IntoView {
    let facts = Memo::new(move |_| match store.ready() {
        true => {
            let is_current = store.as_of(Feed::Events).is_none();
            store.on_beat(|shown| StatusFacts::of(shown, is_current))
        }
        false => StatusFacts::default(),
    });
    let of =
        move |part: fn(&StatusFacts) -> &String| Memo::new(move |_| facts.with(|facts| part(facts).clone()));
    let (coverage, coverage_title) = (of(|facts| &facts.coverage), of(|facts| &facts.coverage_title));
    let (lost, lost_title) = (of(|facts| &facts.lost), of(|facts| &facts.lost_title));
    let verified = Memo::new(move |_| status::verified(store.check.get(), store.at.get() != 0));
    let check = move || verified.with(|(_, text)| text.clone());
    view! {
        <button class="fact coverage" class:some=move || facts.with(|facts| facts.is_incomplete) title=coverage_title
            on:click=move |_| store.address.update(|address| address.panel = Panel::Workers)>
            <span>"Coverage"</span>
            <b data-testid="coverage">{coverage}</b>
        </button>
        <Fact label="Lag" id="lag" value=of(|facts| &facts.lag)
            title="Arrival minus publication of the slowest recent message, by the publisher's and the server's clock"/>
        <button class="fact" class:some=move || facts.with(|facts| facts.has_lost) popovertarget=LOSSES_ID title=lost_title
            data-testid="losses-button">
            <span>"Lost"</span>
            <b data-testid="drops">{lost}</b>
        </button>
        <Fact label="Blocks shown" id="shown" value=of(|facts| &facts.blocks) title=of(|facts| &facts.blocks_title)/>
        <span class="fact seq" title=move || check()>
            <span>"Record"</span>
            <b data-testid="seq">{of(|facts| &facts.seq)}</b>
            <span class=move || verified.with(|(class, _)| format!("check {class}")) data-testid="verified">
                {move || check()}
            </span>
        </span>
    }
}

#[component]
fn Fact(
    label: &'static str,
    id: &'static str,
    #[prop(into)] value: Signal<String>,
    #[prop(into)] title: Signal<String>,
) -> impl IntoView {
    view! {
        <span class="fact" title=title>
            <span>{label}</span>
            <b data-testid=id>{value}</b>
        </span>
    }
}

#[component]
pub(super) fn ThemeButton(store: Store) -> impl IntoView {
    let theme = move || store.address.with(|a| a.theme);
    let name = move || format!("Theme: {} (T)", theme().as_str());
    let path = move || match theme() {
        Theme::Auto => "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13",
        Theme::Dark => "M13.5 9.8A6 6 0 1 1 6.2 2.5a4.8 4.8 0 0 0 7.3 7.3z",
        Theme::Light => {
            "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5v1.5M1 8h1.5M13.5 8h1.5M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1"
        }
    };
    let half = move || if theme() == Theme::Auto { "M8 1.5a6.5 6.5 0 0 0 0 13z" } else { "" };
    view! {
        <button class="icon" on:click=move |_| store.address.update(|a| a.theme = a.theme.next()) title=move || name()
            aria-label=move || name() data-testid="theme">
            <svg viewBox="0 0 16 16" aria-hidden="true">
                <path d=move || path()/>
                <path class="fill" d=move || half()/>
            </svg>
        </button>
    }
}
