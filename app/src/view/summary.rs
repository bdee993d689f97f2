//! The overview's first lines: five figures, each a link to the panel that explains it, and the worst finding with its fix. All keep their
//! place and their height, whatever they say. What they say is computed by [`overview`].

use leptos::prelude::*;
use radixscope_panels::overview::{self, StatusLine, TileSettings};
pub(super) use radixscope_panels::overview::{TILES, Tile};

use super::clipboard::CopyButton;
use super::latency::goals::{LatencyTarget, TPOT, TTFT};
use super::nav;
use crate::store::{Feed, Store, zone};
use crate::url::Panel;
use crate::view::control::view;

/// The figures, once a second.
pub(super) fn tiles(store: Store) -> Memo<[Tile; 5]> {
    let second = store.second();
    let goals = [LatencyTarget::of(store, TTFT), LatencyTarget::of(store, TPOT)].map(|goal| goal.ms);
    Memo::new(move |_| {
        let (now, goals) = (second.get(), goals.map(|ms| ms.get()));
        let settings = TileSettings {
            targets_ms: goals,
            is_current: store.as_of(Feed::Metrics).is_none(),
            round_robin: store.simulated_round_robin(),
            zone: zone(),
        };
        store.pools.track();
        match store.ready() {
            true => store.peek(|shown| overview::tiles(shown, now, &settings)),
            false => Default::default(),
        }
    })
}

/// The figures, and below them the worst finding.
#[component]
pub(super) fn Summary(store: Store) -> impl IntoView {
    let tiles = tiles(store);
    let tile = move |(at, label, id, panel): (usize, &'static str, &'static str, Panel)| {
        let of = move |part: fn(&Tile) -> &String| move || tiles.with(|all| part(&all[at]).clone());
        view! {
            <a class=move || tiles.with(|all| format!("tile {}", all[at].state)) data-testid=id
                href=move || nav::href(store, panel) on:click=move |event| { nav::open(store, panel, &event); }
                title=of(|tile| &tile.title)>
                <span class="tile-label">{label}</span>
                <b>{of(|tile| &tile.value)}</b>
                <span class="tile-status">{of(|tile| &tile.status_text)}</span>
                <span class="tile-more">{move || tiles.with(|all| all[at].more_text().to_owned())}</span>
            </a>
        }
    };
    view! {
        <section class="summary" aria-label="Summary" data-testid="summary">
            <div class="tiles">{TILES.map(tile).collect_view()}</div>
            <Worst store tiles/>
        </section>
    }
}

/// The worst finding on one line, its fix to copy, and the others after it.
#[component]
fn Worst(store: Store, tiles: Memo<[Tile; 5]>) -> impl IntoView {
    let line = Memo::new(move |_| {
        let is_old = !super::old(store).is_empty();
        tiles.with(|tiles| store.on_beat(|shown| StatusLine::of(shown, tiles, is_old, zone())))
    });
    let of = move |part: fn(&StatusLine) -> &String| Memo::new(move |_| line.with(|line| part(line).clone()));
    let (text, since, setting) = (of(|l| &l.text), of(|l| &l.since), of(|l| &l.setting));
    let more = of(|l| &l.more);
    let setting_title = Memo::new(move |_| line.with(StatusLine::setting_title));
    let has_setting = Memo::new(move |_| setting.with(|setting| !setting.is_empty()));
    view! {
        <div class=move || line.with(|line| format!("worst {}", line.level)) role="status" data-testid="notice-findings">
            <span class="worst-text" title=text>{text}</span>
            <span class="worst-since">{since}</span>
            <Show when=move || has_setting.get()>
                <code title=setting_title data-testid="worst-setting">{setting}</code>
                <CopyButton label="Copy fix" id="copy-fix" text=Callback::new(move |()| setting.get_untracked())/>
            </Show>
            <span class="worst-more" title=more>{more}</span>
            <a class="plain" data-testid="show-findings" href=move || nav::href(store, Panel::Findings)
                on:click=move |event| { nav::open(store, Panel::Findings, &event); }>{move || line.with(|line| line.link)}</a>
        </div>
    }
}
