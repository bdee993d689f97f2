//! The table, newest first or by a column. At the top it follows what comes; scrolled down, or with a decision open, the
//! lines in sight stay where they are; with the pointer or the keyboard in it, all of it stays.

use std::ops::Range;

use leptos::prelude::*;
use radixscope_export::panel::decisions::PromptBars;
use radixscope_icicle::palette::session_token;
use radixscope_model::id::{DecisionId, Slot};
use radixscope_state::cluster::{CacheOutcome, Column, Sort};
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusEvent, KeyboardEvent};

use super::row::{DecisionLine, IGNORED};
use super::state::Ledger;
use crate::format::{self, UNKNOWN};
use crate::view::chip::ChipInPlace;
use crate::view::control::view;
use crate::view::decisions::PromptBar;
use crate::view::virtual_table::{Scroll, VirtualTable};

/// Id of what takes the focus.
pub(super) const GRID_ID: &str = "ledger-grid";

/// The head, a row for each of [`Column::ALL`]: class that says where the column stands, name, explanation.
const COLUMNS: [(&str, &str, &str); 12] = [
    (
        "l-time",
        "Time",
        "When it was decided, by the router's own clock where that is known, else when it was received; each row says which",
    ),
    (
        "l-request",
        "Request",
        "The router's request id, shortened; click a row for all of it. The dot is its session, in the colour that the tree can show",
    ),
    ("l-worker", "Worker", "The worker chosen"),
    ("l-prompt n", "Prompt", "Length in tokens, if known, and in blocks, a partial last one included"),
    (
        "l-overlap n",
        "Cached",
        "Blocks of the prompt that were cached on the chosen worker, as the router counted them, else as reconstructed here; after +, those in host memory and below",
    ),
    (
        "l-share",
        "Hit rate",
        "KV hit rate: cached blocks ÷ prompt blocks. The bar is as long as the prompt beside the others in sight, filled as far as it was cached",
    ),
    ("l-cost n", "Cost", "Cost of the chosen worker, in blocks"),
    ("l-margin n", "Cost gap", "Cost of the next best candidate − cost of the chosen one, in blocks"),
    (
        "l-verdict",
        "Outcome",
        "How much of the prompt was cached on the chosen worker; tie: several share the lowest cost; −N: so many more blocks were cached on another worker; session, bound, policy: what decided, not the cost",
    ),
    (
        "l-known",
        "Detail",
        "Whose costs are known: all candidates' from the router, all candidates' reconstructed here for the decision's own time, the same on a tree that lacked blocks, or the chosen worker's only",
    ),
    ("l-ttft n", "TTFT", "Time to first token: from the decision to the first output token"),
    (
        "l-client n",
        "Client TTFT",
        "Time to first token as the client measured it (--client-results): the network and what waits before the frontend are in it",
    ),
];

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
    let count = Memo::new(move |_| ledger.view.with(|view| view.picked.at.len()));
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
        ledger.look(|_, shown| {
            ledger.view.with_untracked(|view| {
                let row = |line: usize| {
                    let decided = shown.at(*view.picked.at.get(line)?)?;
                    Some(DecisionLine::of(decided, line, &view.sessions))
                };
                let mut rows: Vec<Option<DecisionLine>> = lines.map(row).collect();
                let bars = PromptBars::of(rows.iter().flatten().map(|row| row.prompt_blocks));
                for row in rows.iter_mut().flatten() {
                    row.prompt_bar = bars.length(row.prompt_blocks);
                }
                rows
            })
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
                    <p class="ledger-none" data-testid="ledger-none">"No retained decision matches these filters: choose another outcome, worker or text"</p>
                </Show>
            </VirtualTable>
            <Show when=move || { above.get() > 0 }>
                <button class="to-top" data-testid="ledger-to-top" on:click=move |_| {
                    place.scroll.to((0, 0.0));
                    place.hold(ledger);
                }>
                    {move || format!("↑ {} newer", format::count(above.get() as u64))}
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
    let order = move || {
        let sort = ledger.sort();
        match (sort.column == column, sort.is_descending) {
            (false, _) => "none",
            (true, true) => "descending",
            (true, false) => "ascending",
        }
    };
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
fn Line(ledger: Ledger, row: RwSignal<Option<DecisionLine>>) -> impl IntoView {
    let store = ledger.store;
    let id = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.id)));
    let worker = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.worker)));
    let verdict =
        Memo::new(move |_| row.with(|row| row.as_ref().map_or(CacheOutcome::Unknown, |row| row.verdict)));
    let of_pool = Memo::new(move |_| {
        let pool = row.with(|row| row.as_ref().map(|row| row.pool))?;
        store.labels.with(|all| {
            let label = all.iter().find(|label| label.pool == pool).filter(|_| all.len() > 1)?;
            Some((label.beside(all), label.to_text()))
        })
    });
    let session = Memo::new(move |_| row.with(|row| row.as_ref().and_then(|row| row.session.clone())));
    let of = move |part: fn(&DecisionLine) -> &str| {
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
                <span>{move || share().map_or(UNKNOWN.to_owned(), format::percent)}</span>
            </span>
            <span class="l-cost n" role="gridcell">{of(|row| &row.cost)}</span>
            <span class="l-margin n" role="gridcell" title=of(|row| &row.cost_gap_title)>{of(|row| &row.cost_gap)}</span>
            <span class="l-verdict" role="gridcell">
                <b class=move || format!("verdict {}", verdict.get().as_str()) title=move || (verdict.get() == CacheOutcome::Ignored).then_some(IGNORED)>
                    {move || match verdict.get() { CacheOutcome::Ignored => UNKNOWN, known => known.as_str() }}
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
    let lines = ledger.view.with_untracked(|view| view.picked.at.len());
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
