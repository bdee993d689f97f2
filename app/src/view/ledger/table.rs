//! The table, newest first or by a column. At the top it follows what comes; scrolled down, or with a decision open, the
//! lines in sight stay where they are; with the pointer or the keyboard in it, all of it stays.

use std::ops::Range;

use leptos::prelude::*;
use radixscope_icicle::palette::session_token;
use radixscope_model::id::{DecisionId, Slot};
use radixscope_panels::decisions::list::{NONE_LISTED, above_text, order_of};
use radixscope_panels::decisions::row::{COLUMNS, DecisionRow};
use radixscope_state::cluster::{Column, Sort};
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusEvent, KeyboardEvent};

use super::state::Ledger;
use crate::store::zone;
use crate::view::chip::ChipInPlace;
use crate::view::control::view;
use crate::view::decisions::PromptBar;
use crate::view::virtual_table::{Scroll, VirtualTable};

/// Id of what takes the focus.
pub(super) const GRID_ID: &str = "ledger-grid";

/// Where the reader is.
#[derive(Clone, Copy)]
struct Place {
    scroll: Scroll,
    /// The line at the upper edge and how far it is cut; `None` follows the newest.
    anchor: StoredValue<Option<(DecisionId, f64)>>,
    /// Raised when the lines in sight are to be looked up anew.
    turn: RwSignal<u32>,
}

impl Place {
    /// Takes what is at the upper edge now for what stays there.
    fn hold(self, ledger: Ledger) {
        let (line, cut) = self.scroll.at_edge();
        let is_open = ledger.store.address.with_untracked(|address| address.decision.is_some());
        let is_at_top = line == 0 && cut < 1.0;
        let anchor = (!is_at_top || is_open).then(|| ledger.id_at(line)).flatten();
        self.anchor.set_value(anchor.map(|id| (id, cut)));
        self.scroll.follow();
    }

    /// Brings what is to stay back to where it was, after lines came or went.
    fn keep(self, ledger: Ledger) {
        // Called in a later frame, when the panel may be gone.
        let Some(anchor) = self.anchor.try_get_value() else { return };
        match anchor.map(|(id, cut)| (ledger.line_of(id), cut)) {
            Some((Some(line), cut)) => self.scroll.to((line, cut)),
            Some((None, _)) => self.scroll.follow(),
            None => self.scroll.to((0, 0.0)),
        }
        self.turn.update(|turn| *turn += 1);
    }
}

#[component]
pub(super) fn Table(ledger: Ledger) -> impl IntoView {
    let place = Place { scroll: Scroll::new(), anchor: StoredValue::new(None), turn: RwSignal::new(0) };
    let count = Memo::new(move |_| ledger.view.with(|view| view.len()));
    Effect::new(move |_| {
        ledger.view.track();
        // The height of all lines is in the document with the next frame; without it there is nowhere to scroll to.
        request_animation_frame(move || place.keep(ledger));
    });
    let is_open = Memo::new(move |_| ledger.store.address.with(|address| address.decision.is_some()));
    Effect::new(move |before: Option<bool>| {
        let now = is_open.get();
        if before.is_some_and(|before| before != now) {
            place.hold(ledger);
        }
        now
    });
    let rows = move |lines: Range<usize>| {
        // Not the view itself: what is in sight is known only when the place is known.
        place.turn.track();
        ledger.look(|_, listed| {
            ledger.view.with_untracked(|list| DecisionRow::of_lines(list, listed, lines, zone()))
        })
    };
    // Another order begins at its top.
    Effect::new(move |before: Option<Sort>| {
        let sort = ledger.sort();
        if before.is_some_and(|before| before != sort) {
            place.scroll.to((0, 0.0));
            place.anchor.set_value(None);
        }
        sort
    });
    let head = Column::ALL.into_iter().zip(COLUMNS).map(|(column, named)| heading(ledger, column, named));
    let active = Memo::new(move |_| ledger.cursor.get().map(row_id));
    let above = Memo::new(move |_| place.scroll.first());
    // Without results of clients the column would be empty for good.
    let has_clients = Memo::new(move |_| {
        ledger.view.track();
        ledger.look(|cluster, _| cluster.clients().joined() > 0)
    });
    view! {
        <div class="ledger-table" class:with-clients=move || has_clients.get() class:with-pools=move || ledger.store.labels.with(|labels| labels.len() > 1)
            on:pointerenter=move |_| ledger.visit(|(pointer, _)| *pointer = true)
            on:pointerleave=move |_| ledger.visit(|(pointer, _)| *pointer = false)
            on:focusin=move |event| if is_by_keyboard(&event) { ledger.visit(|(_, keyboard)| *keyboard = true) }
            on:focusout=move |_| ledger.visit(|(_, keyboard)| *keyboard = false)>
            <VirtualTable scroll=place.scroll id=GRID_ID role="grid" label="Decisions" columns=COLUMNS.len() count active
                head=head.collect_view().into_any() rows line=move |row| view! { <Line ledger row/> }
                on_scroll=move |()| place.hold(ledger) on_key=move |event| key(ledger, place, &event)>
                <Show when=move || count.get() == 0>
                    <p class="ledger-none" data-testid="ledger-none">{NONE_LISTED}</p>
                </Show>
            </VirtualTable>
            <Show when=move || { above.get() > 0 }>
                <button class="to-top" data-testid="ledger-to-top" on:click=move |_| {
                    place.scroll.to((0, 0.0));
                    place.hold(ledger);
                }>
                    {move || above_text(above.get())}
                </button>
            </Show>
        </div>
    }
}

/// The heading of a column, which orders the lines by it.
fn heading(
    ledger: Ledger,
    column: Column,
    (class, name, title): (&'static str, &'static str, &'static str),
) -> impl IntoView {
    let order = move || order_of(column, ledger.sort());
    view! {
        <span class=class role="columnheader" title=title aria-sort=move || order()>
            <button type="button" data-testid=column.as_str() on:click=move |_| ledger.sort_by(column)>{name}</button>
        </span>
    }
}

/// Whether the focus came by the keyboard: with the mouse it stays behind when the pointer has long left.
fn is_by_keyboard(event: &FocusEvent) -> bool {
    let element = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    element.is_some_and(|element| element.matches(":focus-visible").unwrap_or(false))
}

fn row_id(id: DecisionId) -> String {
    format!("ledger-{id}")
}

/// A session: a dot in its colour, a ring where it has none.
#[component]
fn SessionMark(name: String, colour: Option<Slot>) -> impl IntoView {
    let style = colour.map(|slot| format!("--c: var({})", session_token(slot)));
    view! {
        <i class="session-mark" class:coloured=colour.is_some() style=style role="img" aria-label=format!("session {name}")
            title=format!("Session {name}") data-testid="ledger-session"></i>
    }
}

/// One line in sight; it shows one decision after the other.
#[component]
fn Line(ledger: Ledger, row: RwSignal<Option<DecisionRow>>) -> impl IntoView {
    let store = ledger.store;
    let id = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.id)));
    let worker = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.worker)));
    let verdict = Memo::new(move |_| {
        row.with(|row| {
            row.as_ref().map(|row| (row.verdict.as_str(), row.outcome_text(), row.outcome_title()))
        })
    });
    let of_pool = Memo::new(move |_| {
        let pool = row.with(|row| row.as_ref().map(|row| row.pool))?;
        store.labels.with(|all| {
            let label = all.iter().find(|label| label.pool == pool).filter(|_| all.len() > 1)?;
            Some((label.beside(all), label.to_text()))
        })
    });
    let session = Memo::new(move |_| row.with(|row| row.as_ref().and_then(|row| row.session.clone())));
    let of = move |part: fn(&DecisionRow) -> &str| {
        move || row.with(|row| row.as_ref().map_or_else(String::new, |row| part(row).to_owned()))
    };
    let is_open = move || id.get().is_some() && store.address.with(|address| address.decision) == id.get();
    let is_cursor = move || id.get().is_some() && ledger.cursor.get() == id.get();
    let share = move || row.with(|row| row.as_ref().and_then(|row| row.share));
    let open = move |_| {
        let is_open = store.address.with_untracked(|address| address.decision) == id.get_untracked();
        ledger.open(id.get_untracked().filter(|_| !is_open));
    };
    view! {
        <div class="virtual-row" role="row" class:vacant=move || id.get().is_none() class:open=move || is_open() class:cursor=move || is_cursor()
            id=move || id.get().map(row_id) class:partial=move || row.with(|row| row.as_ref().is_some_and(|row| row.is_partial)) aria-selected=move || is_open().to_string()
            aria-rowindex=move || row.with(|row| row.as_ref().map(|row| row.line + 2))
            data-testid="ledger-row" data-decision=move || id.get().map(|id| id.to_string()) on:click=open>
            <span class="l-time" role="gridcell" title=of(|row| row.time_title)>{of(|row| &row.time)}</span>
            <span class="l-request mono" role="gridcell" title=of(|row| &row.request_full)>
                {move || session.get().map(|(name, colour)| view! { <SessionMark name colour/> })}
                {of(|row| &row.request)}
            </span>
            <span class="l-worker" role="gridcell">
                <ChipInPlace store worker/>
                {move || of_pool.get().map(|(beside, text)| view! { <span class="of-pool" title=text data-testid="ledger-pool">{beside}</span> })}
            </span>
            <span class="l-prompt n" role="gridcell">{of(|row| &row.prompt)}</span>
            <span class="l-overlap n" role="gridcell">{of(|row| &row.overlap)}</span>
            <span class="l-share" role="gridcell">
                <PromptBar length=Signal::derive(move || row.with(|row| row.as_ref()?.prompt_bar)) cached=Signal::derive(share)/>
                <span>{move || row.with(|row| row.as_ref().map(DecisionRow::share_text))}</span>
            </span>
            <span class="l-cost n" role="gridcell">{of(|row| &row.cost)}</span>
            <span class="l-margin n" role="gridcell" title=of(|row| &row.cost_gap_title)>{of(|row| &row.cost_gap)}</span>
            <span class="l-verdict" role="gridcell">
                <b class=move || format!("verdict {}", verdict.get().map_or("unknown", |(class, ..)| class)) title=move || verdict.get().and_then(|(.., title)| title)>
                    {move || verdict.get().map(|(_, text, _)| text)}
                </b>
                <span class="by" title=of(|row| &row.by_title)>{of(|row| row.by)}</span>
                <span class="flags">{of(|row| &row.flags)}</span>
            </span>
            <span class="l-known" role="gridcell" title=of(|row| &row.known_title)>{of(|row| row.known)}</span>
            <span class="l-ttft n" role="gridcell" title=of(|row| row.ttft_title)>{of(|row| &row.ttft)}</span>
            <span class="l-client n" role="gridcell" title=of(|row| &row.client_title)>{of(|row| &row.client)}</span>
        </div>
    }
}

fn key(ledger: Ledger, place: Place, event: &KeyboardEvent) {
    let lines = ledger.view.with_untracked(|view| view.len());
    let is_on_heading = event.target().is_some_and(|target| target.has_type::<web_sys::HtmlButtonElement>());
    if lines == 0 || is_on_heading || event.ctrl_key() || event.meta_key() || event.alt_key() {
        return;
    }
    ledger.visit(|(_, keyboard)| *keyboard = true);
    let cursor = ledger.cursor.get_untracked();
    let key = event.key();
    if key == "Enter" {
        if cursor.is_some() {
            ledger.open(cursor);
            event.prevent_default();
        }
        return;
    }
    let at = cursor.and_then(|id| ledger.line_of(id));
    let Some(line) = place.scroll.line_after(&key, at, lines) else { return };
    event.prevent_default();
    let id = ledger.id_at(line);
    ledger.cursor.set(id);
    place.scroll.show(line);
    place.hold(ledger);
    if ledger.store.address.with_untracked(|address| address.decision.is_some()) {
        ledger.open(id);
    }
}
