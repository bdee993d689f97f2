//! The kiosk: what a screen on a wall says to those who stand before it. Nothing in it can be clicked or takes the focus;
//! the style sheet sizes everything by the screen.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_panels::kiosk::{
    FIGURES, KioskFigure, LatestDecision, NOW, WorstFinding, no_decision, pool_at, pool_label,
};

use super::chip::Chip;
use super::status::{Connection, Mark};
use super::summary::{TILES, Tile, tiles};
use super::tree::KioskTree;
use crate::store::{Feed, Store, time_of_day, zone};
use crate::view::control::view;

/// How long a reason stays: it has to be read from afar.
const TURN: Duration = Duration::from_secs(5);

/// The whole page.
#[component]
pub fn Kiosk(store: Store, dark: Memo<bool>) -> impl IntoView {
    let turn = RwSignal::new(0_usize);
    if let Ok(turning) = set_interval_with_handle(move || turn.update(|n| *n += 1), TURN) {
        on_cleanup(move || turning.clear());
    }
    turn_pools(store, turn);
    let name = Memo::new(move |_| store.on_beat(pool_label));
    let as_of = move || store.as_of(Feed::Any).or_else(|| store.as_of(Feed::Events));
    let tiles = tiles(store);
    let figure = move |(at, id): (usize, &'static str)| {
        let of = move |part: fn(&Tile) -> &String| move || tiles.with(|all| part(&all[at]).clone());
        view! {
            <div class=move || tiles.with(|all| all[at].state)>
                <dt>{TILES[at].1}</dt>
                <dd data-testid=id>{of(|tile| &tile.value)}</dd>
                <dd class="kiosk-note">{of(|tile| &tile.status_text)}<span>{of(|tile| &tile.more)}</span></dd>
            </div>
        }
    };
    view! {
        <div class="kiosk" data-testid="kiosk">
            <header class="kiosk-head">
                <Mark/>
                <p class="kiosk-name" data-testid="kiosk-name">{move || name.get()}</p>
                {move || as_of().map(|at| view! { <p class="as-of" data-testid="as-of">"as of "{time_of_day(at)}</p> })}
                <Connection store/>
            </header>
            <dl class="kiosk-figures">{FIGURES.map(figure).collect_view()}</dl>
            <KioskTree store dark/>
            <div class="kiosk-words"><Worst store tiles/><Reason store turn/><Now store/></div>
        </div>
    }
}

/// Where several pools are shown, the tree and the latest decision are of one after the other.
fn turn_pools(store: Store, turn: RwSignal<usize>) {
    Effect::new(move |_| {
        let turn = turn.get();
        store.turned_to.set(store.peek(|shown| pool_at(shown, turn)));
    });
    on_cleanup(move || store.turned_to.set(None));
}

/// Why the latest decision went where it went; it stays for a turn.
#[component]
fn Reason(store: Store, turn: RwSignal<usize>) -> impl IntoView {
    let latest = Memo::new(move |before: Option<&(usize, Option<LatestDecision>)>| {
        let turn = turn.get();
        let is_due = before.is_none_or(|(at, status_text)| *at != turn || status_text.is_none());
        // Without one it is looked for with every beat.
        let found = store.on_beat(|shown| is_due.then(|| LatestDecision::of(shown, zone())).flatten());
        (turn, if is_due { found } else { before.and_then(|(_, status_text)| status_text.clone()) })
    });
    let hint = move || store.on_beat(|shown| no_decision(shown));
    view! {
        <section class="kiosk-card kiosk-reason">
            {move || match latest.get().1 {
                Some(status_text) => view! {
                    <h2>"Latest decision: "<Chip store worker=status_text.worker/></h2>
                    <p data-testid="kiosk-why">{status_text.why}</p>
                    {status_text.instead.map(|instead| view! { <p data-testid="kiosk-instead">{instead}</p> })}
                    <p class="kiosk-note">{status_text.at}</p>
                },
                None => view! { <h2>"Latest decision"</h2><p data-testid="kiosk-no-decision">{move || hint()}</p> },
            }}
        </section>
    }
}

/// The worst finding; where there is none, how much was checked.
#[component]
fn Worst(store: Store, tiles: Memo<[Tile; 5]>) -> impl IntoView {
    let shown = Memo::new(move |_| tiles.with(|tiles| store.on_beat(|shown| WorstFinding::of(shown, tiles))));
    let class = move || format!("kiosk-card kiosk-worst {}", shown.with(|shown| shown.class));
    view! {
        <section class=class data-testid="kiosk-worst">
            <h2>{move || shown.with(|shown| shown.head.clone())}" "<span class="kiosk-note">{move || shown.with(|shown| shown.more.clone())}</span></h2>
            <p>{move || shown.with(|shown| shown.text.clone())}</p>
        </section>
    }
}

/// What the cluster holds and does, beside what requests see.
#[component]
fn Now(store: Store) -> impl IntoView {
    let figure = move |(id, look): KioskFigure| {
        let shown = Memo::new(move |_| store.on_beat(|shown| look(shown, store.received_ms())));
        view! {
            <div>
                <dt>{move || shown.with(|figure| figure.of.clone())}</dt>
                <dd data-testid=id>{move || shown.with(|figure| figure.value.clone())}</dd>
            </div>
        }
    };
    view! { <dl class="kiosk-card kiosk-now">{NOW.map(figure)}</dl> }
}
