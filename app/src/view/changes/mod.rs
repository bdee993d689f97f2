//! What changed between the moments marked A and B: in a sentence, worker by worker, and in the tree. Core compares; this shows.

mod table;

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::changes::Changes;
use radixscope_model::id::{Millis, PoolIx};
use radixscope_panels::changes::{
    ChangesFigures, Compared, HOW_TO_MARK, MarkButton, NAMES, NotCompared, UNMARKED, sentences,
};

use crate::net::source::Opened;
use crate::store::{Store, zone};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{Empty, Figure, PanelHead};
use crate::view::recording::open;
use crate::view::tree::ChangedTree;
use table::Table;

/// What is compared; `None`: not yet, or it cannot be.
pub(super) type ChangesSignal = RwSignal<Option<Arc<Changes>>>;

/// The panel.
#[component]
pub fn ChangesPanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let compared: ChangesSignal = RwSignal::new(None);
    begin(store);
    keep(store, compared);
    let figures = Memo::new(move |_| {
        let drawn = name_of(store, Some(store.pool()));
        compared.with(|changes| ChangesFigures::of(changes.as_deref(), drawn.as_deref()))
    });
    let figure =
        move |of: fn(&ChangesFigures) -> &String| Memo::new(move |_| figures.with(|all| of(all).clone()));
    let sentences = move || {
        let (labels, shown) = (store.labels.get(), shown(store));
        let all = compared.with(|changes| {
            changes.as_ref().map_or_else(Vec::new, |changes| sentences(changes, &shown, &labels))
        });
        let line = |text: String| view! { <p data-testid="changes-sentence">{text}</p> };
        all.into_iter().map(line).collect_view()
    };
    let is_there = Memo::new(move |_| compared.with(Option::is_some));
    view! {
        <section class="panel changes" aria-labelledby="changes-title" data-testid="changes">
            <PanelHead store panel=Panel::Changes title="Changes">
                <Figure id="changes-all-stored" label="stored" value=figure(|all| &all.stored)
                    title="Blocks that workers hold at B and not at A, each worker's counted"/>
                <Figure id="changes-all-evicted" label="evicted" value=figure(|all| &all.evicted)
                    title="Blocks that workers held at A and not at B, each worker's counted"/>
                <Figure id="changes-all-moved" label="moved" value=figure(|all| &all.moved)
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

/// What of the changes is shown. Tracked.
fn shown(store: Store) -> Compared {
    Compared {
        only: name_of(store, store.pools.get().only),
        is_b_marked: store.address.with(|address| address.marks[1].is_some()),
        zone: zone(),
    }
}

/// A pool's name.
fn name_of(store: Store, pool: Option<PoolIx>) -> Option<String> {
    pool.and_then(|pool| store.peek(|shown| shown.cluster.pool(pool).map(|pool| pool.name())))
}

/// Which moment a mark is, and the way to another one.
fn mark(store: Store, side: usize) -> AnyView {
    let name = NAMES[side];
    let button = Memo::new(move |_| {
        let (newest, is_second) = (store.newest_name(), store.second.with(Option::is_some));
        store.address.with(|address| MarkButton::of(side, address, is_second, newest, zone()))
    });
    let go = move |_| match store.address.with_untracked(|address| address.marks[side]) {
        Some(at) => store.go(at),
        None => store.back_to_live(),
    };
    view! {
        <span class="changes-mark">
            <b>{name}</b>" "
            <button class="plain" title=format!("Show the moment {name}") disabled=move || button.with(|button| !button.is_enabled)
                data-testid=format!("changes-at-{name}") on:click=go>{move || button.with(|button| button.text.clone())}</button>
        </span>
    }
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
    let why = Memo::new(move |_| {
        let fault = store.changes_fault();
        store.address.with(|address| NotCompared::of(&fault, address))
    });
    let key = |(at, part): (usize, &'static str)| match at % 2 {
        0 => part.into_any(),
        _ => view! { <kbd>{part}</kbd> },
    };
    move || match why.get() {
        NotCompared::Fault(why) => {
            view! { <Empty id="changes-fault" head="These moments cannot be compared"><p>{why}</p></Empty> }
        }
        NotCompared::Fetching => {
            view! { <Empty id="changes-wait" head="Fetching the moments that are marked"/> }
        }
        NotCompared::Unmarked => view! {
            <Empty id="changes-empty" head=UNMARKED>
                <p>{HOW_TO_MARK.split('`').enumerate().map(key).collect_view()}</p>
                <p><button class="plain" data-testid="changes-five-minutes" on:click=move |_| store.mark_five_minutes_ago()>"Compare with 5 min ago"</button></p>
            </Empty>
        },
    }
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
