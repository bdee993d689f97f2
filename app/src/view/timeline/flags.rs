//! The moments marked A and B: the buttons that mark, swap and clear them, and their flags on the timeline.

use leptos::prelude::*;
use radixscope_panels::changes::NAMES;
use radixscope_panels::timeline::{Flag, MarkButtons, flags};

use super::{TimelineView, left};
use crate::store::{Store, zone};
use crate::view::control::view;

/// Mark, swap, clear.
#[component]
pub(in crate::view) fn Flags(store: Store) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let is_second = store.second.with(Option::is_some);
        store.address.with(|address| MarkButtons::of(address, is_second, zone()))
    });
    let mark = move |side: usize| {
        let name = NAMES[side];
        let title = move || shown.with(|shown| shown.titles[side].clone());
        let is_marked = move || shown.with(|shown| shown.are_marked[side]);
        view! {
            <button class="plain" title=move || title() aria-label=move || title() aria-pressed=move || is_marked().to_string()
                data-testid=format!("mark-{name}") on:click=move |_| store.mark(side)>{name}</button>
        }
    };
    let clear = move |_| {
        store.close_second();
        store.address.update(|address| address.marks = [None; 2]);
    };
    view! {
        <span class="moments-flags" role="group" aria-label="Moments to compare">
            {mark(0)}{mark(1)}
            <button class="icon" title="Swap A and B" aria-label="Swap A and B" data-testid="mark-swap"
                disabled=move || shown.with(|shown| !shown.can_swap) on:click=move |_| store.swap_marks()>
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2 5h11l-3-3M14 11H3l3 3"/></svg>
            </button>
            <button class="icon" title="Clear A and B" aria-label="Clear A and B" data-testid="mark-clear"
                disabled=move || shown.with(|shown| !shown.can_clear) on:click=clear>
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M4 4l8 8M12 4l-8 8"/></svg>
            </button>
        </span>
    }
}

/// The flags of moments that the timeline shows.
pub(super) fn drawn(timeline: TimelineView) -> AnyView {
    let Some(span) = timeline.span() else { return ().into_any() };
    let store = timeline.store;
    let is_second = store.second.with(Option::is_some);
    let all = store.address.with(|address| flags(address, is_second, span, zone()));
    let flag = |Flag { name, share, is_late, title }: Flag| {
        view! {
            <i class="moments-flag" class:end=is_late style=left(share) data-testid=format!("flag-{name}") title=title>
                <b>{name}</b>
            </i>
        }
    };
    all.into_iter().map(flag).collect_view().into_any()
}
