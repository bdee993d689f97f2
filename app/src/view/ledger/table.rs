//! The table: only the lines in sight are in the document, in elements that are used again. Newest first. At the top it
//! follows what comes; scrolled down, or with a decision open, the lines in sight stay where they are.

use leptos::html;
use leptos::prelude::*;
use radixscope_model::id::DecisionId;
use radixscope_state::cluster::Verdict;
use web_sys::KeyboardEvent;

use super::row::Row;
use super::state::Ledger;
use crate::format::{self, UNKNOWN};
use crate::view::chip::Chip;
use crate::view::resize;

/// Id of what takes the focus.
pub(super) const GRID_ID: &str = "ledger-grid";
/// Height of a line and of the head, CSS pixels. Fixed, so that the place of every line is known.
const LINE: f64 = 26.0;
/// Lines in the document at most: more than the tallest screen shows.
const MOST: usize = 200;
/// Lines beyond those in sight, so that the last one may be cut.
const SPARE: usize = 2;

/// The head: class that says where the column stands, name, explanation.
const COLUMNS: [(&str, &str, &str); 11] = [
    (
        "l-time",
        "Time",
        "When it was decided, by the router's own clock where that is known, else when it was heard; each line says which",
    ),
    ("l-request", "Request", "The router's request id, shortened; click a line for all of it"),
    ("l-worker", "Worker", "The worker chosen"),
    ("l-prompt n", "Prompt", "Length in tokens, if known, and in blocks, the begun one included"),
    (
        "l-overlap n",
        "Overlap",
        "Blocks of the prompt that the chosen worker held, by the router's own count, else as reconstructed here",
    ),
    ("l-share", "Share", "Overlap over prompt blocks"),
    ("l-cost n", "Cost", "Cost of the chosen worker, in blocks"),
    ("l-margin n", "Margin", "Cost of the next best less that of the chosen one, in blocks"),
    (
        "l-verdict",
        "Outcome",
        "How much of the prompt was held; tie: several share the lowest cost; lost: blocks that another worker held beyond the chosen one's",
    ),
    (
        "l-known",
        "Known",
        "How the costs are known: of all candidates from the router, reconstructed here for the decision's own time, or of the chosen one only",
    ),
    ("l-ttft n", "First token", "From the decision to the first output token"),
];

/// Where the reader is.
#[derive(Clone, Copy)]
struct Place {
    grid: NodeRef<html::Div>,
    /// The line at the upper edge and how far it is cut; `None` follows the newest.
    anchor: StoredValue<Option<(DecisionId, f64)>>,
    first: RwSignal<usize>,
    /// Raised when the lines in sight are to be looked up anew.
    turn: RwSignal<u32>,
    height: RwSignal<f64>,
}

impl Place {
    fn top(self) -> f64 {
        self.grid.get_untracked().map_or(0.0, |grid| f64::from(grid.scroll_top()))
    }

    fn scroll_to(self, top: f64) {
        if let Some(grid) = self.grid.get_untracked()
            && (f64::from(grid.scroll_top()) - top).abs() >= 1.0
        {
            grid.set_scroll_top(top.round() as i32);
        }
    }

    /// Takes what is at the upper edge now for what stays there.
    fn hold(self, ledger: Ledger) {
        let top = self.top();
        let is_open = ledger.store.address.with_untracked(|address| address.decision.is_some());
        let line = (top / LINE) as usize;
        let anchor = (top >= 1.0 || is_open).then(|| ledger.id_at(line)).flatten();
        self.anchor.set_value(anchor.map(|id| (id, top - line as f64 * LINE)));
        self.begin_with(line);
    }

    fn begin_with(self, line: usize) {
        if self.first.get_untracked() != line {
            self.first.set(line);
        }
    }

    /// Brings what is to stay back to where it was, after lines came or went.
    fn keep(self, ledger: Ledger) {
        // Called in a later frame, when the panel may be gone.
        let Some(anchor) = self.anchor.try_get_value() else { return };
        let line = match anchor {
            None => 0,
            Some((id, cut)) => {
                let line = ledger.line_of(id);
                self.scroll_to(line as f64 * LINE + cut);
                (self.top() / LINE) as usize
            }
        };
        self.begin_with(line);
        self.turn.update(|turn| *turn += 1);
    }

    /// Lines that fit, at least one.
    fn fitting(self) -> usize {
        ((self.height.get_untracked() - LINE) / LINE).max(1.0) as usize
    }

    /// Scrolls as little as brings `line` into sight.
    fn show(self, ledger: Ledger, line: usize) {
        let (at, fitting, top) = (line as f64 * LINE, self.fitting() as f64 * LINE, self.top());
        if at < top {
            self.scroll_to(at);
        } else if at + LINE > top + fitting {
            self.scroll_to(at + LINE - fitting);
        }
        self.hold(ledger);
    }
}

#[component]
pub(super) fn Table(ledger: Ledger) -> impl IntoView {
    let place = Place {
        grid: NodeRef::new(),
        anchor: StoredValue::new(None),
        first: RwSignal::new(0),
        turn: RwSignal::new(0),
        height: RwSignal::new(0.0),
    };
    Effect::new(move |_| {
        if let Some(grid) = place.grid.get() {
            let of = grid.clone();
            resize::observe(&grid, move || place.height.set(f64::from(of.client_height())));
        }
    });
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
    let slots = Memo::new(move |_| ((place.height.get() / LINE).ceil() as usize + SPARE).min(MOST));
    let lines = fill(ledger, place, slots);
    let above = Memo::new(move |_| place.first.get());
    let head = COLUMNS.map(|(class, name, title)| {
        view! { <span class=class role="columnheader" title=title>{name}</span> }
    });
    let active = move || ledger.cursor.get().map(row_id);
    view! {
        <div class="ledger-table">
            <div class="ledger-grid" id=GRID_ID node_ref=place.grid tabindex="0" role="grid" data-testid="ledger-grid"
                style=format!("--line-height: {LINE}px") aria-label="Decisions, newest first" aria-colcount=COLUMNS.len()
                aria-rowcount=move || count.get() + 1 aria-activedescendant=active
                on:scroll=move |_| place.hold(ledger) on:keydown=move |event| key(ledger, place, &event)>
                <div class="ledger-row ledger-head" role="row" aria-rowindex="1">{head.into_iter().collect_view()}</div>
                <div class="ledger-lines" role="rowgroup" style=move || format!("height: {}px", count.get() as f64 * LINE)>
                    <div class="ledger-sight" role="presentation" style=move || format!("transform: translateY({}px)", place.first.get() as f64 * LINE)>
                        <For each=move || 0..slots.get() key=|slot| *slot let:slot>
                            <Line ledger row=lines[slot]/>
                        </For>
                    </div>
                </div>
                <Show when=move || count.get() == 0>
                    <p class="ledger-none" data-testid="ledger-none">"No decision that is kept is like that: choose another outcome, worker or request"</p>
                </Show>
            </div>
            <Show when=move || { above.get() > 0 }>
                <button class="to-top" data-testid="ledger-to-top" on:click=move |_| {
                    place.scroll_to(0.0);
                    place.hold(ledger);
                }>
                    {move || format!("↑ {} newer", format::count(above.get() as u64))}
                </button>
            </Show>
        </div>
    }
}

/// Keeps the rows of as many slots as there are filled with what is in sight.
fn fill(ledger: Ledger, place: Place, slots: Memo<usize>) -> [RwSignal<Option<Row>>; MOST] {
    let lines = std::array::from_fn(|_| RwSignal::new(None::<Row>));
    let zone_ms = js_sys::Date::new_0().get_timezone_offset() as i64 * -60_000;
    Effect::new(move |_| {
        let (slots, first) = (slots.get(), place.first.get());
        // Not the view itself: what is in sight is known only when the place is kept.
        place.turn.track();
        let rows: Vec<Option<Row>> = ledger.look(|_, shown| {
            ledger.view.with_untracked(|view| {
                let at = |line: usize| {
                    let decided = shown.at(*view.picked.at.get(line)?)?;
                    Some(Row::of(decided, line, zone_ms))
                };
                (first..first + slots).map(at).collect()
            })
        });
        for (line, row) in lines.iter().zip(rows) {
            if line.with_untracked(|before| *before != row) {
                line.set(row);
            }
        }
    });
    lines
}

fn row_id(id: DecisionId) -> String {
    format!("ledger-{id}")
}

/// One line in sight; it shows one decision after the other.
#[component]
fn Line(ledger: Ledger, row: RwSignal<Option<Row>>) -> impl IntoView {
    let store = ledger.store;
    let id = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.id)));
    let worker = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.worker)));
    let verdict =
        Memo::new(move |_| row.with(|row| row.as_ref().map_or(Verdict::Unknown, |row| row.verdict)));
    let of = move |part: fn(&Row) -> &str| {
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
        <div class="ledger-row" role="row" class:vacant=move || id.get().is_none() class:open=is_open class:cursor=is_cursor
            id=move || id.get().map(row_id) aria-selected=move || is_open().to_string()
            aria-rowindex=move || row.with(|row| row.as_ref().map(|row| row.line + 2))
            data-testid="ledger-row" data-decision=move || id.get().map(|id| id.to_string()) on:click=open>
            <span class="l-time" role="gridcell" title=of(|row| row.time_title)>{of(|row| &row.time)}</span>
            <span class="l-request mono" role="gridcell" title=of(|row| &row.request_full)>{of(|row| &row.request)}</span>
            <span class="l-worker" role="gridcell">{move || worker.get().map(|worker| view! { <Chip store worker/> })}</span>
            <span class="l-prompt n" role="gridcell">{of(|row| &row.prompt)}</span>
            <span class="l-overlap n" role="gridcell">{of(|row| &row.overlap)}</span>
            <span class="l-share" role="gridcell">
                <span class="meter" aria-hidden="true"><i style=move || format!("width: {}", share().map_or("0%".to_owned(), format::width))></i></span>
                <span>{move || share().map_or(UNKNOWN.to_owned(), format::share)}</span>
            </span>
            <span class="l-cost n" role="gridcell">{of(|row| &row.cost)}</span>
            <span class="l-margin n" role="gridcell" title=of(|row| &row.margin_title)>{of(|row| &row.margin)}</span>
            <span class="l-verdict" role="gridcell">
                <b class=move || format!("verdict {}", verdict.get().as_str())>{move || verdict.get().as_str()}</b>
                <span class="flags">{of(|row| &row.flags)}</span>
            </span>
            <span class="l-known" role="gridcell" title=of(|row| &row.known_title)>{of(|row| row.known)}</span>
            <span class="l-ttft n" role="gridcell" title=of(|row| row.ttft_title)>{of(|row| &row.ttft)}</span>
        </div>
    }
}

fn key(ledger: Ledger, place: Place, event: &KeyboardEvent) {
    let lines = ledger.view.with_untracked(|view| view.picked.at.len());
    if lines == 0 || event.ctrl_key() || event.meta_key() || event.alt_key() {
        return;
    }
    let at = ledger.cursor.get_untracked().map(|id| ledger.line_of(id));
    let page = place.fitting();
    let here = at.unwrap_or(0);
    let to = match event.key().as_str() {
        "ArrowDown" => at.map_or(place.first.get_untracked(), |at| at + 1),
        "ArrowUp" => here.saturating_sub(1),
        "PageDown" => here + page,
        "PageUp" => here.saturating_sub(page),
        "Home" => 0,
        "End" => lines - 1,
        "Enter" => {
            if let Some(id) = ledger.cursor.get_untracked() {
                ledger.open(Some(id));
                event.prevent_default();
            }
            return;
        }
        _ => return,
    };
    event.prevent_default();
    let line = to.min(lines - 1);
    let id = ledger.id_at(line);
    ledger.cursor.set(id);
    place.show(ledger, line);
    if ledger.store.address.with_untracked(|address| address.decision.is_some()) {
        ledger.open(id);
    }
}
