//! A table of many lines: only those in sight are in the document, in elements that are used again. Knows where the reader
//! is; not what a line shows, nor which line is to stay in sight when others come and go.

use std::ops::Range;

use crate::view::control::view;
use leptos::html;
use leptos::prelude::*;
use radixscope_panels::tree::line_after;
use web_sys::KeyboardEvent;

use super::resize;

/// Height of a line and of the head, CSS pixels. Fixed, so that the place of every line is known.
const LINE: f64 = 26.0;
/// Lines beyond those in visible, so that the last one may be cut.
const SPARE: usize = 2;
/// Lines in the document at most: more than the tallest screen shows.
const MOST_SLOTS: usize = 200;

/// How far a table is scrolled; copied freely.
#[derive(Clone, Copy)]
pub(super) struct Scroll {
    element: NodeRef<html::Div>,
    first: RwSignal<usize>,
    height: RwSignal<f64>,
}

impl Scroll {
    /// At the top.
    pub(super) fn new() -> Self {
        Self { element: NodeRef::new(), first: RwSignal::new(0), height: RwSignal::new(0.0) }
    }

    /// The first line in sight. Tracked.
    pub(super) fn first(self) -> usize {
        self.first.get()
    }

    /// The line at the upper edge by the element itself, and how far it is cut, CSS pixels.
    pub(super) fn at_edge(self) -> (usize, f64) {
        let top = self.top();
        let line = (top / LINE) as usize;
        (line, top - line as f64 * LINE)
    }

    /// Scrolls so that `line` is at the upper edge, cut by so many CSS pixels.
    pub(super) fn to(self, (line, cut): (usize, f64)) {
        self.scroll_to(line as f64 * LINE + cut);
        self.follow();
    }

    /// Scrolls as little as brings `line` into sight.
    pub(super) fn show(self, line: usize) {
        let (at, fitting, top) = (line as f64 * LINE, self.fitting() as f64 * LINE, self.top());
        if at < top {
            self.scroll_to(at);
        } else if at + LINE > top + fitting {
            self.scroll_to(at + LINE - fitting);
        }
        self.follow();
    }

    /// Whether `line` is in sight.
    pub(super) fn is_in_sight(self, line: usize) -> bool {
        let (first, _) = self.at_edge();
        (first..=first + self.fitting()).contains(&line)
    }

    /// Which of `lines` lines a key leads to from the one that the keyboard is on; `None` for other keys.
    pub(super) fn line_after(self, key: &str, at: Option<usize>, lines: usize) -> Option<usize> {
        line_after(key, at, lines, (self.first.get_untracked(), self.fitting()))
    }

    /// Takes note of where the element is scrolled to. Nothing where the table is gone.
    pub(super) fn follow(self) {
        let (line, _) = self.at_edge();
        if self.first.try_get_untracked().is_some_and(|first| first != line) {
            self.first.set(line);
        }
    }

    fn top(self) -> f64 {
        let element = self.element.try_get_untracked().flatten();
        element.map_or(0.0, |element| f64::from(element.scroll_top()))
    }

    fn scroll_to(self, top: f64) {
        if let Some(element) = self.element.try_get_untracked().flatten()
            && (f64::from(element.scroll_top()) - top).abs() >= 1.0
        {
            element.set_scroll_top(top.round() as i32);
        }
    }

    /// Lines that fit, at least one.
    fn fitting(self) -> usize {
        ((self.height.get_untracked() - LINE) / LINE).max(1.0) as usize
    }
}

/// The table. A line's element has the class `virtual-row`.
#[component]
pub(super) fn VirtualTable<R: PartialEq + Send + Sync + 'static>(
    scroll: Scroll,
    /// Id of the element that takes the focus; its class and test id too.
    id: &'static str,
    /// `grid` or `treegrid`.
    role: &'static str,
    /// What it is, for those who hear the page.
    label: &'static str,
    /// Columns in all.
    columns: usize,
    /// Lines in all.
    #[prop(into)]
    count: Signal<usize>,
    /// Id of the line that the keyboard is on.
    #[prop(into)]
    active: Signal<Option<String>>,
    /// The cells of the head.
    head: AnyView,
    /// Looks these lines up; `None` beyond the last. Tracked.
    #[prop(into)]
    rows: Callback<Range<usize>, Vec<Option<R>>>,
    /// An element for a line; it shows one line after the other.
    #[prop(into)]
    line: Callback<RwSignal<Option<R>>, AnyView>,
    /// Scrolled, by the reader or by a call.
    #[prop(into)]
    on_scroll: Callback<()>,
    #[prop(into)] on_key: Callback<KeyboardEvent>,
    /// What stands below the lines.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    Effect::new(move |_| {
        if let Some(element) = scroll.element.get() {
            let of = element.clone();
            resize::observe(&element, move || scroll.height.set(f64::from(of.client_height())));
        }
    });
    let slots = Memo::new(move |_| ((scroll.height.get() / LINE).ceil() as usize + SPARE).min(MOST_SLOTS));
    let in_sight: [_; MOST_SLOTS] = std::array::from_fn(|_| RwSignal::new(None::<R>));
    Effect::new(move |_| {
        let first = scroll.first();
        for (slot, row) in in_sight.iter().zip(rows.run(first..first + slots.get())) {
            if slot.with_untracked(|before| *before != row) {
                slot.set(row);
            }
        }
    });
    let all = move || format!("height: {}px", count.get() as f64 * LINE);
    let sight = move || format!("transform: translateY({}px)", scroll.first() as f64 * LINE);
    view! {
        <div class=format!("virtual-table {id}") id=id node_ref=scroll.element tabindex="0" role=role data-testid=id
            style=format!("--line-height: {LINE}px") aria-label=label aria-colcount=columns
            aria-rowcount=move || count.get() + 1 aria-activedescendant=active
            on:scroll=move |_| on_scroll.run(()) on:keydown=move |event| on_key.run(event)>
            <div class="virtual-row virtual-head" role="row" aria-rowindex="1">{head}</div>
            <div class="virtual-lines" role="rowgroup" style=move || all()>
                <div class="virtual-sight" role="presentation" style=move || sight()>
                    <For each=move || 0..slots.get() key=|slot| *slot children=move |slot| line.run(in_sight[slot])/>
                </div>
            </div>
            {children.map(|children| children())}
        </div>
    }
}
