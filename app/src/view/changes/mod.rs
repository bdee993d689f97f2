//! What changed between the moments marked A and B: in a sentence, worker by worker, and in the tree. Core compares; this shows.

mod sentences;
mod table;

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::changes::{Blocks, Changes};
use radixscope_model::id::Millis;

use crate::format::{self, UNKNOWN};
use crate::net::source::Opened;
use crate::store::{MARK_NAMES, Store, time_of_day};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{Empty, Figure, PanelHead};
use crate::view::recording::open;
use crate::view::tree::ChangedTree;
use crate::view_context::PoolLabel;
use table::Table;

/// What is compared; `None`: not yet, or it cannot be.
pub(super) type ChangesSignal = RwSignal<Option<Arc<Changes>>>;

/// The panel.
#[component]
pub fn ChangesPanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let compared: ChangesSignal = RwSignal::new(None);
    begin(store);
    keep(store, compared);
    let figure = move |of: fn(&Blocks) -> u64| {
        Memo::new(move |_| match total(store, compared) {
            Some(blocks) => format::count(of(&blocks)),
            None => UNKNOWN.to_owned(),
        })
    };
    let sentences = move || {
        let labels: Vec<PoolLabel> = store.labels.get();
        compared.with(|changes| changes.as_ref().map(|changes| sentences::sentences(store, changes, &labels)))
    };
    let sentences = move || {
        let line = |text: String| view! { <p data-testid="changes-sentence">{text}</p> };
        sentences().into_iter().flatten().map(line).collect_view()
    };
    let is_there = Memo::new(move |_| compared.with(Option::is_some));
    view! {
        <section class="panel changes" aria-labelledby="changes-title" data-testid="changes">
            <PanelHead store panel=Panel::Changes title="Changes">
                <Figure id="changes-all-stored" label="stored" value=figure(|blocks| blocks.stored)
                    title="Blocks that workers hold at B and not at A, each worker's counted"/>
                <Figure id="changes-all-evicted" label="evicted" value=figure(|blocks| blocks.evicted)
                    title="Blocks that workers held at A and not at B, each worker's counted"/>
                <Figure id="changes-all-moved" label="moved" value=figure(|blocks| blocks.moved_in)
                    title="Distinct blocks that at least one worker evicted and at least one other stored between A and B"/>
            </PanelHead>
            <div class="changes-marks">{mark(store, 0)}{mark(store, 1)}{move || second(store)}</div>
            <Show when=move || is_there.get() fallback=move || view! { <Nothing store/> }>
                <div class="changes-status">{move || sentences()}</div>
                <div class="changes-body">
                    <div class="scroll changes-scroll" tabindex="0" role="region" aria-label="Changes by worker"><Table store compared/></div>
                    <div class="changes-tree tree"><ChangedTree store dark compared/></div>
                </div>
            </Show>
        </section>
    }
}

/// Which moment a mark is, and the way to another one.
fn mark(store: Store, side: usize) -> AnyView {
    let name = MARK_NAMES[side];
    let at = move || store.address.with(|address| address.marks[side]);
    let text = move || match (at(), side) {
        (Some(at), _) => time_of_day(at),
        (None, 1) => store.newest_name().to_owned(),
        (None, _) => "not marked".to_owned(),
    };
    let go = move |_| match store.address.with_untracked(|address| address.marks[side]) {
        Some(at) => store.go(at),
        None => store.back_to_live(),
    };
    view! {
        <span class="changes-mark">
            <b>{name}</b>" "
            <button class="plain" title=format!("Show the moment {name}") disabled=move || side == 0 && at().is_none() || is_second(store, side)
                data-testid=format!("changes-at-{name}") on:click=go>{move || text()}</button>
        </span>
    }
}

/// Whether a mark is one of the second recording. Tracked.
fn is_second(store: Store, side: usize) -> bool {
    side == 1 && store.second.with(Option::is_some)
}

/// The way to compare with a second recording; or to another moment of it, and back.
fn second(store: Store) -> AnyView {
    let Some(Opened { name, from, until, .. }) = store.second.get() else { return open(store, true) };
    let at = move || store.address.with(|address| address.marks[1].unwrap_or(until).0.to_string());
    // Once the handle is let go: each moment is a state that is fetched and compared.
    let go = move |event| {
        let at = event_target_value(&event).parse().ok().map(Millis);
        store.address.update(|address| address.marks[1] = at);
    };
    view! {
        <input type="range" min=from.0.to_string() max=until.0.to_string() step="1000" prop:value=at title="Moment B" data-testid="second-at" on:change=go/>
        <button class="plain" data-testid="second-close" on:click=move |_| store.close_second()>"Close "{name}</button>
    }
    .into_any()
}

/// Why nothing is compared.
#[component]
fn Nothing(store: Store) -> impl IntoView {
    let is_marked = move || store.address.with(|address| address.marks[0].is_some());
    let head = move || {
        let fault = store.changes_fault();
        match (fault.is_empty(), is_marked()) {
            (false, _) => {
                view! { <Empty id="changes-fault" head="These moments cannot be compared"><p>{fault}"."</p></Empty> }
            }
            (true, true) => view! { <Empty id="changes-wait" head="Fetching the moments that are marked"/> },
            (true, false) => view! {
                <Empty id="changes-empty" head="Mark a moment to compare with the present">
                    <p>
                        "Go to a moment on the timeline below and press "<kbd>"A"</kbd>", or the button A beside it. With "<kbd>"B"</kbd>
                        " another moment takes the place of the present."
                    </p>
                    <p><button class="plain" data-testid="changes-five-minutes" on:click=move |_| store.mark_five_minutes_ago()>"Compare with 5 min ago"</button></p>
                </Empty>
            },
        }
    };
    view! { {move || head()} }
}

/// Blocks of the pools shown, which have the same size or are one; else those of the pool that is drawn.
fn total(store: Store, compared: ChangesSignal) -> Option<Blocks> {
    let pool = store.pool();
    let name = store.peek(|shown| shown.cluster.pool(pool).map(|pool| pool.name()));
    compared.with(|changes| {
        let pools = &changes.as_ref()?.pools;
        let drawn = pools.iter().find(|pool| Some(&pool.name) == name.as_ref());
        drawn.or(pools.first()).map(|pool| pool.blocks)
    })
}

/// Opened live with nothing marked, the panel compares the present with five minutes ago: what one mostly wants to know. Once, so
/// that marks can be cleared; whoever stands at another moment chooses.
fn begin(store: Store) {
    let is_decided = StoredValue::new(false);
    Effect::new(move |_| {
        store.history_version.track();
        if is_decided.get_value() || !store.ready() || store.history_span().is_none() {
            return;
        }
        is_decided.set_value(true);
        let is_untouched = store.address.with_untracked(|address| address.marks == [None; 2]);
        if is_untouched && store.at.get_untracked() == 0 && store.second.with_untracked(Option::is_none) {
            store.mark_five_minutes_ago();
        }
    });
}

/// Fetches the states that are marked and compares them: once where both stand, again and again where B is the present.
fn keep(store: Store, compared: ChangesSignal) {
    let marks = Memo::new(move |_| store.address.with(|address| address.marks));
    let worker = Memo::new(move |_| store.address.with(|address| address.worker));
    Effect::new(move |_| {
        store.history_version.track();
        store.changes_fetched.track();
        store.fetch_marks(marks.get());
    });
    let turn = RwSignal::new(0_u32);
    Effect::new(move |before: Option<Millis>| {
        let now = store.on_beat(|shown| shown.cluster.now_ms());
        let is_due = marks.get()[1].is_none() && before != Some(now) && store.changes_are_due();
        if is_due {
            turn.update(|n| *n += 1);
            return now;
        }
        before.unwrap_or_default()
    });
    Effect::new(move |_| {
        turn.track();
        store.changes_fetched.track();
        store.pools.track();
        compared.set(store.count_changes(marks.get(), worker.get()));
    });
    on_cleanup(move || store.end_comparison());
}
