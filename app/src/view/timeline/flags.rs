//! The moments marked A and B: the buttons that mark, swap and clear them, and their flags on the timeline.

use leptos::prelude::*;

use super::{TimelineView, left};
use crate::store::{MARK_NAMES, Store, time_of_day};
use crate::view::control::view;

/// Mark, swap, clear.
#[component]
pub(in crate::view) fn Flags(store: Store) -> impl IntoView {
    let marked = move |side: usize| store.address.with(|address| address.marks[side]);
    let mark = move |side: usize| {
        let name = MARK_NAMES[side];
        let title = move || {
            let is = match marked(side) {
                Some(at) => format!("; it is {}", time_of_day(at)),
                None => String::new(),
            };
            format!("Mark the moment shown as {name} ({name}){is}")
        };
        view! {
            <button class="plain" title=move || title() aria-label=move || title() aria-pressed=move || marked(side).is_some().to_string()
                data-testid=format!("mark-{name}") on:click=move |_| store.mark(side)>{name}</button>
        }
    };
    let is_second = move || store.second.with(Option::is_some);
    let clear = move |_| {
        store.close_second();
        store.address.update(|address| address.marks = [None; 2]);
    };
    let is_none = move || marked(0).is_none() && marked(1).is_none();
    view! {
        <span class="moments-flags" role="group" aria-label="Moments to compare">
            {mark(0)}{mark(1)}
            <button class="icon" title="Swap A and B" aria-label="Swap A and B" data-testid="mark-swap"
                disabled=move || marked(0).is_none() || is_second() on:click=move |_| store.swap_marks()>
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2 5h11l-3-3M14 11H3l3 3"/></svg>
            </button>
            <button class="icon" title="Clear A and B" aria-label="Clear A and B" data-testid="mark-clear"
                disabled=move || is_none() on:click=clear>
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M4 4l8 8M12 4l-8 8"/></svg>
            </button>
        </span>
    }
}

/// The flags of moments that the timeline shows.
pub(super) fn drawn(timeline: TimelineView) -> AnyView {
    let [a, b] = timeline.store.address.with(|address| address.marks);
    // A moment of another recording has no place here.
    let marks = [a, b.filter(|_| timeline.store.second.with(Option::is_none))];
    let flag = |(name, at): (&'static str, Option<_>)| {
        let at = at?;
        let share = timeline.share(at)?;
        // Its name stands on the side where there is room.
        let is_late = share > 0.5;
        Some(view! {
            <i class="moments-flag" class:end=is_late style=left(share) data-testid=format!("flag-{name}") title=format!("{name}: {}", time_of_day(at))>
                <b>{name}</b>
            </i>
        })
    };
    MARK_NAMES.into_iter().zip(marks).filter_map(flag).collect_view().into_any()
}
